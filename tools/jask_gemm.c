/* jask-gemm: multiply files. */
#include "cli_context.h"
#include "cli_output.h"
#include "cli_progress.h"
#include "cli_report.h"
#include "cli_signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const cli_options *options;
    cli_progress progress;
    jask_context *ctx;
    jask_array *a, *b, *c; /* of gradients, c is that of the product */
    jask_dot_args args;
    jask_dot_backward_args gradients;
    jask_plan *plan;
    jask_plan *second; /* of the two of gradients; else NULL */
    char *plan_json, *second_json;
} job;

static void close_job(job *j)
{
    free(j->plan_json);
    free(j->second_json);
    jask_plan_close(j->second);
    jask_plan_close(j->plan);
    jask_array_close(j->c);
    jask_array_close(j->b);
    jask_array_close(j->a);
    jask_context_close(j->ctx);
}

static jask_status make_input(job *j, const char *name, int64_t rows, int64_t cols, uint64_t seed,
                              jask_array **out, jask_error *err)
{
    if (j->progress.shown || j->options->verbose)
        cli_note(j->options, "making %s, %" PRId64 " x %" PRId64 ", in scratch", name, rows, cols);
    return cli_random_array(j->ctx, j->options->dtype, rows, cols, seed, out, err);
}

static jask_status make_inputs(job *j, jask_error *err)
{
    const cli_options *o = j->options;
    const cli_sizes *s = &o->size;
    jask_status st = o->transpose_a ? make_input(j, "A", s->k, s->m, 1, &j->a, err)
                                    : make_input(j, "A", s->m, s->k, 1, &j->a, err);
    if (st == JASK_OK)
        st = o->transpose_b ? make_input(j, "B", s->n, s->k, 2, &j->b, err)
                            : make_input(j, "B", s->k, s->n, 2, &j->b, err);
    if (st == JASK_OK && o->beta != 0)
        st = make_input(j, "C", s->m, s->n, 3, &j->c, err);
    j->args.c = j->c;
    return st;
}

static jask_status open_inputs(job *j, jask_error *err)
{
    const cli_options *o = j->options;
    jask_status st = jask_array_open(o->files[0], &j->a, err);
    if (st == JASK_OK)
        st = jask_array_open(o->files[1], &j->b, err);
    if (st == JASK_OK && o->backward)
        st = jask_array_open(o->files[2], &j->c, err);
    if (st == JASK_OK && o->c && o->beta != 0)
        st = jask_array_open(o->c, &j->c, err);
    j->args.c = j->c;
    return st;
}

static int transpose_of(bool plain, bool conjugate)
{
    return conjugate ? JASK_CONJUGATE_TRANSPOSE : plain ? JASK_TRANSPOSE : JASK_NO_TRANSPOSE;
}

/* Context and input files. */
static jask_status open_job(job *j, const cli_options *options, jask_error *err)
{
    *j = (job){.options = options};
    cli_progress_init(&j->progress, options);
    cli_blas_threads(options);
    jask_dot_args_init(&j->args, sizeof j->args);
    j->args.alpha = options->alpha;
    j->args.beta = options->beta;
    j->args.transpose_a = transpose_of(options->transpose_a, options->adjoint_a);
    j->args.transpose_b = transpose_of(options->transpose_b, options->adjoint_b);
    j->args.dtype = options->out_dtype;
    j->args.output = options->output;
    j->args.resume = options->resume;
    j->args.trace = options->trace;
    jask_dot_backward_args_init(&j->gradients, sizeof j->gradients);
    j->gradients.alpha = options->alpha;
    j->gradients.transpose_a = j->args.transpose_a;
    j->gradients.transpose_b = j->args.transpose_b;
    j->gradients.da_output = options->da;
    j->gradients.db_output = options->db;
    j->gradients.accumulate_a = j->gradients.accumulate_b = options->accumulate;
    jask_status st = cli_context_open(options, &j->progress, &j->ctx, err);
    if (st != JASK_OK)
        return st;
    if (options->size.m < 0)
        st = open_inputs(j, err);
    return st;
}

static int dims_of(const jask_array *array)
{
    jask_array_info info;
    jask_array_get_info(array, &info, sizeof info);
    return info.ndim;
}

static bool has_batches(const job *j)
{
    return dims_of(j->a) > 2 || dims_of(j->b) > 2;
}

static jask_status make_gradient_plans(job *j, jask_error *err)
{
    const cli_options *o = j->options;
    jask_plan *da = NULL, *db = NULL;
    jask_status st = jask_dot_backward_plan(j->ctx, j->a, j->b, j->c, &j->gradients,
                                            o->da ? &da : NULL, o->db ? &db : NULL, err);
    if (st != JASK_OK)
        return st;
    j->plan = da ? da : db;
    j->second = da ? db : NULL;
    j->plan_json = cli_plan_text(j->plan, 1);
    j->second_json = j->second ? cli_plan_text(j->second, 1) : NULL;
    return j->plan_json && (!j->second || j->second_json)
               ? JASK_OK
               : cli_set_error(err, JASK_ERR_NOMEM, "no memory for the plans' texts");
}

static jask_status make_plan(job *j, jask_error *err)
{
    const cli_options *o = j->options;
    const cli_sizes *s = &o->size;
    if (o->backward)
        return make_gradient_plans(j, err);
    jask_status st =
        j->a ? (has_batches(j) ? jask_matmul_plan : jask_dot_plan)(j->ctx, j->a, j->b, &j->args,
                                                                   &j->plan, err)
             : jask_dot_plan_sizes(j->ctx, o->dtype, s->m, s->n, s->k, &j->args, &j->plan, err);
    if (st != JASK_OK)
        return st;
    j->plan_json = cli_plan_text(j->plan, 1);
    return j->plan_json ? JASK_OK
                        : cli_set_error(err, JASK_ERR_NOMEM, "no memory for the plan's text");
}

/* Where rates to plan with came from, when it is not what is known of the device. */
static void print_machine(const job *j)
{
    const char *value = "", *source = "";
    for (int i = 0; i < jask_setting_count(); i++)
        if (strcmp(jask_setting_get(i)->name, "machine") == 0)
            jask_context_setting(j->ctx, i, &value, &source, NULL);
    if (!j->options->json && *value)
        printf("machine  %s (%s)\n", value, source);
}

static jask_status print_plans(job *j, jask_error *err)
{
    jask_status st = cli_print_plan(j->options, j->plan, err);
    if (st == JASK_OK && j->second)
        st = cli_print_plan(j->options, j->second, err);
    if (st == JASK_OK)
        print_machine(j);
    return st;
}

/* Bytes of the inputs, a file that is given twice counted once. */
static uint64_t input_bytes(const job *j)
{
    const jask_array *inputs[] = {j->a, j->b, j->c};
    jask_array_info info[3];
    uint64_t bytes = 0;
    for (int i = 0; i < 3 && inputs[i]; i++) {
        bool seen = false;
        jask_array_get_info(inputs[i], &info[i], sizeof info[i]);
        for (int earlier = 0; j->options->size.m < 0 && earlier < i; earlier++)
            seen = seen || strcmp(info[earlier].path, info[i].path) == 0;
        bytes += seen ? 0 : info[i].data_bytes;
    }
    return bytes;
}

static jask_status verify(job *j, const jask_array *d, jask_verification *out, jask_error *err)
{
    cli_progress_begin(&j->progress, "verify");
    jask_status st = jask_dot_verify(j->ctx, j->a, j->b, d, &j->args, out, sizeof *out, err);
    cli_progress_end(&j->progress, st == JASK_OK);
    if (st == JASK_OK && !out->passed)
        cli_error(j->options->tool,
                  "'%s' is not the product: largest z %.3g in row %" PRId64 ", rms z %.3g",
                  j->args.output ? j->args.output : "(scratch)", out->max_z, out->worst_row,
                  out->rms_z);
    return st;
}

/* One product, checked and reported. *out_passed is left alone unless a check finds it wrong. */
static jask_status run_once(job *j, int run, bool *out_passed, jask_error *err)
{
    const cli_options *o = j->options;
    jask_report report = {.struct_size = sizeof report};
    jask_verification found = {.struct_size = sizeof found};
    jask_array *d = NULL;
    bool keep = o->verify || !o->output;
    const char *output = o->backward ? (o->da ? o->da : o->db) : o->output;
    cli_progress_begin(&j->progress, "product");
    jask_status st =
        o->backward
            ? jask_dot_backward(j->ctx, j->a, j->b, j->c, &j->gradients, NULL, NULL, &report, err)
            : (has_batches(j) ? jask_matmul : jask_dot)(j->ctx, j->a, j->b, &j->args,
                                                        keep ? &d : NULL, &report, err);
    cli_progress_end(&j->progress, st == JASK_OK);
    if (st == JASK_OK && o->verify)
        st = verify(j, d, &found, err);
    jask_array_close(d);
    if (st != JASK_OK)
        return st;
    cli_result result = {.report = &report,
                         .plan_json = j->plan_json,
                         .verification = o->verify ? &found : NULL,
                         .output = output,
                         .second_plan_json = j->second_json,
                         .second_output = o->da ? o->db : NULL,
                         .input_bytes = input_bytes(j),
                         .run = run};
    if (o->json)
        cli_report_json(&result);
    else if (!o->quiet)
        cli_report_text(o, &result);
    fflush(stdout);
    *out_passed = *out_passed && (!o->verify || found.passed);
    return JASK_OK;
}

/* Inputs are made only now, when it is known that a plan fits. */
static jask_status run_all(job *j, bool *out_passed, jask_error *err)
{
    jask_status st = j->options->size.m < 0 ? JASK_OK : make_inputs(j, err);
    for (int run = 1; run <= j->options->repeat && st == JASK_OK; run++) {
        if (cli_stop_signal())
            return cli_set_error(err, JASK_ERR_CANCELED, "between two runs");
        st = run_once(j, run, out_passed, err);
    }
    return st;
}

int main(int argc, char **argv)
{
    cli_options options;
    jask_error err;
    job j;
    bool passed = true;
    cli_signals_init();
    int code = cli_options_parse(&options, CLI_GEMM, argc, argv);
    if (code >= 0)
        return code;
    jask_status st = open_job(&j, &options, &err);
    if (st == JASK_OK)
        st = make_plan(&j, &err);
    if (st == JASK_OK)
        st = options.plan ? print_plans(&j, &err) : run_all(&j, &passed, &err);
    code = passed ? CLI_OK : CLI_MISMATCH;
    if (st != JASK_OK)
        code = cli_fail(&options, &err);
    close_job(&j);
    return cli_finish(options.tool, code);
}
