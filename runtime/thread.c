#include "runtime/thread.h"

#include "runtime/system.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <time.h>

/* Enough for error messages, little enough to forget. */
#define THREAD_STACK_BYTES ((size_t)256 << 10)

jask_status jk_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *arg,
                            bool *started, jask_error *err)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int code;
    /* Signals are the program's business: its own threads get them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    code = pthread_create(thread, &attr, body, arg);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code != 0) {
        errno = code;
        return jk_fail_errno(err, "cannot start a thread for reading and writing files");
    }
    pthread_setname_np(*thread, name); /* for whoever looks with top or a debugger */
    *started = true;
    return JASK_OK;
}

void jk_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void jk_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds)
{
    double until = jk_clock_seconds() + seconds;
    struct timespec at = {.tv_sec = (time_t)until, .tv_nsec = (long)((until - floor(until)) * 1e9)};
    pthread_cond_timedwait(cond, lock, &at);
}
