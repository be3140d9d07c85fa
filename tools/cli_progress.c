#include "cli_progress.h"

#include "cli_signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_CELLS = 20, TEXT_BYTES = 128 };
static const double bar_seconds = 0.2;
static const double line_seconds = 2.0;

void cli_progress_init(cli_progress *progress, const cli_options *options)
{
    struct winsize size = {0};
    bool terminal = isatty(STDERR_FILENO);
    bool wanted = options->progress == CLI_PROGRESS_ALWAYS ||
                  (options->progress == CLI_PROGRESS_AUTO && terminal && !options->quiet);
    if (terminal)
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    *progress = (cli_progress){.shown = wanted, .bar = terminal, .columns = size.ws_col};
}

void cli_progress_begin(cli_progress *progress, const char *what)
{
    progress->what = what;
    progress->last = (jask_progress){.seconds_left = -1.0};
    progress->next_seconds = progress->bar ? bar_seconds : line_seconds;
    progress->written_percent = -1;
}

static void time_text(double seconds, char *text, size_t text_size)
{
    if (seconds < 0 || seconds > 1e9)
        snprintf(text, text_size, "?");
    else if (seconds < 100)
        snprintf(text, text_size, "%.0f s", seconds);
    else
        snprintf(text, text_size, "%.0f min", seconds / 60);
}

/* "product  42%  step 12 of 96  1.23 GB/s  10 s left"; steps in their millions tell nobody
 * anything. */
static void describe(const cli_progress *p, int percent, char *text, size_t text_size)
{
    const jask_progress *at = &p->last;
    char steps[64] = "";
    char left[32];
    double moved = (double)at->file_read_bytes + (double)at->file_write_bytes;
    double rate = at->seconds > 0 ? moved / at->seconds / 1e9 : 0;
    if (at->steps_total < 1000000)
        snprintf(steps, sizeof steps, "  step %" PRId64 " of %" PRId64, at->steps_done,
                 at->steps_total);
    time_text(percent == 100 ? at->seconds : at->seconds_left, left, sizeof left);
    snprintf(text, text_size, "%s %3d%%%s  %.2f GB/s  %s %s", p->what, percent, steps, rate, left,
             percent == 100 ? "in all" : "left");
}

/* The line over the one before; what that had beyond it is blanked, and nothing wraps. */
static void write_bar(const cli_progress *p, int percent, const char *text)
{
    char bar[BAR_CELLS + 1];
    char line[BAR_CELLS + TEXT_BYTES + 8];
    size_t room = p->columns > 1 ? (size_t)p->columns : 80;
    size_t cells = (size_t)percent * BAR_CELLS / 100;
    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', cells);
    bar[BAR_CELLS] = '\0';
    snprintf(line, room < sizeof line ? room : sizeof line, "[%s] %-57s", bar, text);
    fprintf(stderr, "\r%s%s", line, percent == 100 ? "\n" : "");
}

static void write_progress(cli_progress *p, int percent)
{
    char text[TEXT_BYTES];
    describe(p, percent, text, sizeof text);
    if (p->bar)
        write_bar(p, percent, text);
    else
        fprintf(stderr, "%s\n", text);
    p->written_percent = percent;
}

int cli_progress_step(const jask_progress *progress, void *user)
{
    cli_progress *p = user;
    p->last = *progress;
    /* All done is for cli_progress_end to say. */
    if (p->shown && progress->seconds >= p->next_seconds && progress->fraction < 1.0) {
        p->next_seconds = progress->seconds + (p->bar ? bar_seconds : line_seconds);
        write_progress(p, progress->fraction > 0 ? (int)(progress->fraction * 100) : 0);
    }
    return cli_stop_signal() != 0;
}

void cli_progress_end(cli_progress *progress, bool done)
{
    if (!progress->shown)
        return;
    if (done)
        write_progress(progress, 100);
    else if (progress->bar && progress->written_percent >= 0)
        fputc('\n', stderr);
}
