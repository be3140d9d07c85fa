/* Threads of the library's own. */
#ifndef JK_RUNTIME_THREAD_H
#define JK_RUNTIME_THREAD_H

#include "common/base.h"

#include <pthread.h>

/* Start a thread that takes no signals. Sets *started only on success. */
jask_status jk_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *arg,
                            bool *started, jask_error *err);

/* A condition that is waited for on the clock of jk_clock_seconds. */
void jk_cond_init(pthread_cond_t *cond);
/* With the lock held: wait for it, at most `seconds`. */
void jk_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds);

#endif
