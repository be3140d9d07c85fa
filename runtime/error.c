#include "common/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {
    [JASK_OK] = "ok",
    [JASK_ERR_ARG] = "argument",
    [JASK_ERR_CONFIG] = "config",
    [JASK_ERR_BUDGET] = "budget",
    [JASK_ERR_NOMEM] = "memory",
    [JASK_ERR_IO] = "io",
    [JASK_ERR_FORMAT] = "format",
    [JASK_ERR_UNSUPPORTED] = "unsupported",
    [JASK_ERR_DEVICE] = "device",
    [JASK_ERR_CANCELED] = "canceled",
    [JASK_ERR_INTERNAL] = "internal",
};

const char *jask_status_name(jask_status status)
{
    size_t index = (size_t)status;
    return index < sizeof status_names / sizeof *status_names ? status_names[index] : "unknown";
}

/* Copy `text` into err->msg; what does not fit is cut out of the middle. */
static void set_message(jask_error *err, const char *text)
{
    static const char gap[] = " ... ";
    size_t room = sizeof err->msg - 1;
    size_t len = strlen(text);
    if (len <= room) {
        memcpy(err->msg, text, len + 1);
        return;
    }
    size_t head = room / 2 - sizeof gap;
    size_t tail = room - head - (sizeof gap - 1);
    memcpy(err->msg, text, head);
    memcpy(err->msg + head, gap, sizeof gap - 1);
    memcpy(err->msg + head + sizeof gap - 1, text + len - tail, tail + 1);
}

/* Format prefix and args, then suffix; messages may quote paths of PATH_MAX. */
static void JK_PRINTF(2, 0)
    format_message(jask_error *err, const char *fmt, va_list args, const char *suffix)
{
    char text[8192];
    int len = vsnprintf(text, sizeof text, fmt, args);
    size_t used = len < 0 ? 0 : (size_t)len < sizeof text ? (size_t)len : sizeof text - 1;
    size_t tail = strlen(suffix);
    /* A path longer than the buffer may lose its end, the suffix never. */
    size_t at = used + tail < sizeof text ? used : sizeof text - 1 - tail;
    memcpy(text + at, suffix, tail + 1);
    set_message(err, text);
}

jask_status jk_fail(jask_error *err, jask_status code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        err->code = code;
        err->sys_errno = 0;
        va_start(args, fmt);
        format_message(err, fmt, args, "");
        va_end(args);
    }
    return code;
}

jask_status jk_fail_errno(jask_error *err, const char *fmt, ...)
{
    int saved = errno;
    jask_status code = saved == ENOMEM ? JASK_ERR_NOMEM : JASK_ERR_IO;
    if (err) {
        char reason[160];
        char text[128];
        va_list args;
        snprintf(reason, sizeof reason, ": %s", strerror_r(saved, text, sizeof text));
        err->code = code;
        err->sys_errno = saved;
        va_start(args, fmt);
        format_message(err, fmt, args, reason);
        va_end(args);
    }
    return code;
}

jask_status jk_fail_in(jask_error *err, jask_status code, const char *fmt, ...)
{
    if (err) {
        char message[sizeof err->msg + 2];
        va_list args;
        snprintf(message, sizeof message, ": %s", err->msg);
        va_start(args, fmt);
        format_message(err, fmt, args, message);
        va_end(args);
    }
    return code;
}
