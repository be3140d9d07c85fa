/* Progress of a long operation on stderr: a bar on a terminal, plain lines elsewhere when asked. */
#ifndef JASK_TOOLS_CLI_PROGRESS_H
#define JASK_TOOLS_CLI_PROGRESS_H

#include "cli_options.h"

typedef struct cli_progress {
    bool shown, bar;
    int columns; /* of the terminal; 0: not known */
    const char *what;
    jask_progress last;
    double next_seconds; /* nothing is written before */
    int written_percent; /* -1: nothing was written yet */
} cli_progress;

void cli_progress_init(cli_progress *progress, const cli_options *options);

/* Around each operation; `what` names it. After a failure no half line is left. */
void cli_progress_begin(cli_progress *progress, const char *what);
void cli_progress_end(cli_progress *progress, bool done);

/* A jask_progress_fn whose `user` is a cli_progress. Cancels once a signal asked to stop. */
int cli_progress_step(const jask_progress *progress, void *user);

#endif
