/* jask-add: add files. */
#include "cli_context.h"
#include "cli_output.h"
#include "cli_progress.h"
#include "cli_report.h"
#include "cli_signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const cli_options *options;
    cli_progress progress;
    jask_context *ctx;
    jask_array *a, *b;
    jask_add_args args;
    jask_plan *plan;
    char *plan_json;
} job;

static void close_job(job *j)
{
    free(j->plan_json);
    jask_plan_close(j->plan);
    jask_array_close(j->b);
    jask_array_close(j->a);
    jask_context_close(j->ctx);
}

static jask_status open_job(job *j, const cli_options *options, jask_error *err)
{
    *j = (job){.options = options};
    cli_progress_init(&j->progress, options);
    jask_add_args_init(&j->args, sizeof j->args);
    j->args.alpha = options->alpha;
    j->args.beta = options->beta;
    j->args.dtype = options->dtype;
    j->args.overflow = (jask_overflow)options->overflow;
    j->args.output = options->output;
    j->args.in_place = options->in_place;
    j->args.trace = options->trace;
    jask_status st = cli_context_open(options, &j->progress, &j->ctx, err);
    if (st == JASK_OK)
        st = jask_array_open(options->files[0], &j->a, err);
    if (st == JASK_OK)
        st = jask_array_open(options->files[1], &j->b, err);
    if (st == JASK_OK)
        st = jask_add_plan(j->ctx, j->a, j->b, &j->args, &j->plan, err);
    if (st != JASK_OK)
        return st;
    j->plan_json = cli_plan_text(j->plan, 1);
    return j->plan_json ? JASK_OK
                        : cli_set_error(err, JASK_ERR_NOMEM, "no memory for the plan's text");
}

static uint64_t input_bytes(const job *j)
{
    jask_array_info a, b;
    jask_array_get_info(j->a, &a, sizeof a);
    jask_array_get_info(j->b, &b, sizeof b);
    return a.data_bytes + (strcmp(a.path, b.path) == 0 ? 0 : b.data_bytes);
}

static void report(const job *j, const jask_report *r, const jask_array *d, int run)
{
    jask_array_info sum;
    cli_result result = {.report = r,
                         .plan_json = j->plan_json,
                         .output = j->options->in_place ? j->options->files[0] : j->options->output,
                         .input_bytes = input_bytes(j),
                         .sum = &sum,
                         .run = run};
    jask_array_get_info(d ? d : j->a, &sum, sizeof sum);
    if (j->options->json)
        cli_report_json(&result);
    else if (!j->options->quiet)
        cli_report_text(j->options, &result);
    fflush(stdout);
}

static jask_status run_once(job *j, int run, jask_error *err)
{
    jask_report r = {.struct_size = sizeof r};
    jask_array *d = NULL;
    cli_progress_begin(&j->progress, "sum");
    jask_status st =
        jask_add(j->ctx, j->a, j->b, &j->args, j->options->in_place ? NULL : &d, &r, err);
    cli_progress_end(&j->progress, st == JASK_OK);
    if (st == JASK_OK)
        report(j, &r, d, run);
    jask_array_close(d);
    return st;
}

static jask_status run_all(job *j, jask_error *err)
{
    jask_status st = JASK_OK;
    for (int run = 1; run <= j->options->repeat && st == JASK_OK; run++) {
        if (cli_stop_signal())
            return cli_set_error(err, JASK_ERR_CANCELED, "between two runs");
        st = run_once(j, run, err);
    }
    return st;
}

int main(int argc, char **argv)
{
    cli_options options;
    jask_error err;
    job j;
    cli_signals_init();
    int code = cli_options_parse(&options, CLI_ADD, argc, argv);
    if (code >= 0)
        return code;
    jask_status st = open_job(&j, &options, &err);
    if (st == JASK_OK)
        st = options.plan ? cli_print_plan(&options, j.plan, &err) : run_all(&j, &err);
    code = st == JASK_OK ? CLI_OK : cli_fail(&options, &err);
    close_job(&j);
    return cli_finish(options.tool, code);
}
