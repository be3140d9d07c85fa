#include "runtime/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {
    [JASK_LOG_ERROR] = "error",
    [JASK_LOG_WARN] = "warn",
    [JASK_LOG_INFO] = "info",
    [JASK_LOG_DEBUG] = "debug",
};

#define LEVELS ((int)(sizeof level_names / sizeof *level_names))

const char *jask_log_level_name(jask_log_level level)
{
    int i = (int)level;
    return i > 0 && i < LEVELS ? level_names[i] : "none";
}

void jk_log_init(jk_log *log, jask_log_fn say, void *user)
{
    *log = (jk_log){.say = say, .user = user};
    pthread_mutex_init(&log->lock, NULL);
}

void jk_log_begin(jk_log *log, const char *level)
{
    for (int i = 1; i < LEVELS; i++)
        if (strcmp(level, level_names[i]) == 0)
            log->most = (jask_log_level)i;
}

void jk_log_fini(jk_log *log)
{
    pthread_mutex_destroy(&log->lock);
}

bool jk_log_wants(const jk_log *log, jask_log_level level)
{
    return log && log->say && level <= log->most;
}

/* With the lock held. */
static void say(const jk_log *log, jask_log_level level, const char *fmt, va_list args)
    JK_PRINTF(3, 0);

static void say(const jk_log *log, jask_log_level level, const char *fmt, va_list args)
{
    char text[JK_LOG_TEXT];
    vsnprintf(text, sizeof text, fmt, args);
    log->say(level, text, log->user);
}

void jk_log_write(jk_log *log, jask_log_level level, const char *fmt, ...)
{
    va_list args;
    if (!jk_log_wants(log, level))
        return;
    va_start(args, fmt);
    pthread_mutex_lock(&log->lock);
    say(log, level, fmt, args);
    pthread_mutex_unlock(&log->lock);
    va_end(args);
}

void jk_log_once(jk_log *log, jk_log_topic topic, jask_log_level level, const char *fmt, ...)
{
    unsigned bit = 1u << (unsigned)topic;
    va_list args;
    if (!jk_log_wants(log, level))
        return;
    va_start(args, fmt);
    pthread_mutex_lock(&log->lock);
    if (!(log->said & bit))
        say(log, level, fmt, args);
    log->said |= bit;
    pthread_mutex_unlock(&log->lock);
    va_end(args);
}
