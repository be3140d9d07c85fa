#include "runtime/thread.h"

#include <errno.h>
#include <signal.h>

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
