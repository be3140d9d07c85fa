#include "cli_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    if (stop_signal) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stop_signal = number;
}

static void keep_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        /* The lowest free number is fd itself. Opened the wrong way round, reads and writes fail.
         */
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            abort();
    }
}

void cli_signals_init(void)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    keep_standard_descriptors();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        struct sigaction old;
        struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(stops[i], &stop, NULL);
    }
}

int cli_stop_signal(void)
{
    return stop_signal;
}
