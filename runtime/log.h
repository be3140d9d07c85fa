/* Messages for the caller's log: what was decided, and what went less well than it could have. */
#ifndef JK_RUNTIME_LOG_H
#define JK_RUNTIME_LOG_H

#include "common/base.h"

#include <pthread.h>

/* What is said once a context, however often it happens. */
typedef enum jk_log_topic {
    JK_LOG_NAMED,      /* a file that could not be made without a name */
    JK_LOG_UNRESERVED, /* a file whose blocks could not be reserved */
    JK_LOG_IN_RAM,     /* a result in RAM */
    JK_LOG_RESULT_CUT, /* the budget that one leaves */
    JK_LOG_STAGING,    /* less pinned memory than planned, or none */
    JK_LOG_ADVICE,     /* what would make products faster */
} jk_log_topic;

/* Longer messages are cut. */
#define JK_LOG_TEXT 1200

typedef struct jk_log {
    jask_log_fn say; /* may be NULL */
    void *user;
    jask_log_level most;  /* messages beyond this level are dropped */
    pthread_mutex_t lock; /* one message at a time */
    unsigned said;        /* bits of topics */
} jk_log;

void jk_log_init(jk_log *log, jask_log_fn say, void *user);
/* `level` is a word that the log_level setting takes. Before this nothing is said. */
void jk_log_begin(jk_log *log, const char *level);
void jk_log_fini(jk_log *log);

/* For what would cost time to find out. log may be NULL in all of these: nobody listens. */
bool jk_log_wants(const jk_log *log, jask_log_level level);

void jk_log_write(jk_log *log, jask_log_level level, const char *fmt, ...) JK_PRINTF(3, 4);
void jk_log_once(jk_log *log, jk_log_topic topic, jask_log_level level, const char *fmt, ...)
    JK_PRINTF(4, 5);

#endif
