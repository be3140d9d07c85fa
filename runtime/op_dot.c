/* jask_dot: from arguments to a committed result. */
#include "runtime/budget.h"
#include "runtime/machine.h"
#include "runtime/pipeline.h"
#include "runtime/plan_api.h"
#include "runtime/read_engine.h"
#include "runtime/resume.h"
#include "runtime/scale.h"
#include "runtime/system.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Files are read in pieces of at most this; of less under a small budget, which such pieces are
 * held against when they are buffered. */
#define BLOCK_BYTES ((uint64_t)4 << 20)
#define BLOCK_MIN ((uint64_t)4096)
/* Pieces that are transposed on the way should fit a cache. */
#define TURN_BLOCK_MAX ((uint64_t)1 << 20)

/* A product that has been checked and planned, but not begun. */
typedef struct jk_dot {
    jask_context *ctx; /* one reference */
    jask_dot_args args;
    jk_matrix a, b, c; /* c.file NULL unless it is read */
    int64_t m, n, k;
    jask_dtype dtype;
    jk_budget budget;
    size_t block_bytes;
    jk_plan plan;
    jk_resume *resume; /* NULL unless asked for */
} jk_dot;

void jask_dot_args_init(jask_dot_args *args, size_t struct_size)
{
    jask_dot_args fresh = {.alpha = 1};
    jk_struct_out(args, struct_size, &fresh, sizeof fresh);
}

/* What the caller's args say; fields that an older caller does not have keep their defaults. */
static void read_args(jk_dot *dot, const jask_dot_args *args)
{
    jask_dot_args_init(&dot->args, sizeof dot->args);
    if (args && args->struct_size > sizeof args->struct_size)
        memcpy(&dot->args, args,
               args->struct_size < sizeof dot->args ? args->struct_size : sizeof dot->args);
}

/* In the type that computes: 1e300 is no f32. */
static bool is_finite_as(double value, jask_dtype dtype)
{
    return dtype == JASK_F32 ? isfinite((float)value) : isfinite(value);
}

static jask_status check_scalars(const jk_dot *dot, jask_error *err)
{
    if (!is_finite_as(dot->args.alpha, dot->dtype) || !is_finite_as(dot->args.beta, dot->dtype))
        return jk_fail(err, JASK_ERR_ARG,
                       "alpha and beta must be finite numbers in the arrays' type, %s",
                       jask_dtype_name(dot->dtype));
    if (dot->args.beta != 0 && !dot->args.c)
        return jk_fail(err, JASK_ERR_ARG,
                       "beta is not 0, so an array C is needed to add beta * C to the product");
    return JASK_OK;
}

/* A and B as they come on, or C: one type that products compute in. */
static jask_status check_type(const jk_dot *dot, const jk_matrix *matrix, const char *what,
                              jask_error *err)
{
    if (matrix->dtype != JASK_F32 && matrix->dtype != JASK_F64)
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "%s '%s' is %s; products compute in f32 and f64: convert it first", what,
                       matrix->path, jask_dtype_name(matrix->dtype));
    if (matrix->dtype != dot->dtype)
        return jk_fail(err, JASK_ERR_ARG,
                       "%s '%s' is %s but A '%s' is %s; a product needs one type: convert one of "
                       "them first",
                       what, matrix->path, jask_dtype_name(matrix->dtype), dot->a.path,
                       jask_dtype_name(dot->dtype));
    return JASK_OK;
}

static int64_t matrix_rows(const jk_matrix *m)
{
    return m->trans ? m->cols : m->rows;
}

static int64_t matrix_cols(const jk_matrix *m)
{
    return m->trans ? m->rows : m->cols;
}

static jask_status check_shapes(jk_dot *dot, jask_error *err)
{
    dot->m = matrix_rows(&dot->a);
    dot->k = matrix_cols(&dot->a);
    dot->n = matrix_cols(&dot->b);
    if (matrix_rows(&dot->b) != dot->k)
        return jk_fail(err, JASK_ERR_ARG,
                       "shapes do not fit: %s '%s' is %" PRId64 " x %" PRId64
                       ", %s '%s' is %" PRId64 " x %" PRId64
                       "; the columns of the first must equal the rows of the second",
                       dot->args.transpose_a ? "the transpose of A" : "A", dot->a.path, dot->m,
                       dot->k, dot->args.transpose_b ? "the transpose of B" : "B", dot->b.path,
                       matrix_rows(&dot->b), dot->n);
    if (dot->c.file && (matrix_rows(&dot->c) != dot->m || matrix_cols(&dot->c) != dot->n))
        return jk_fail(err, JASK_ERR_ARG,
                       "C '%s' is %" PRId64 " x %" PRId64 " but the product is %" PRId64
                       " x %" PRId64,
                       dot->c.path, matrix_rows(&dot->c), matrix_cols(&dot->c), dot->m, dot->n);
    return JASK_OK;
}

static jask_status check_operands(jk_dot *dot, const jask_array *a, const jask_array *b,
                                  jask_error *err)
{
    jask_status st = jk_matrix_of(a, dot->args.transpose_a != 0, "A", &dot->a, err);
    if (!st)
        st = jk_matrix_of(b, dot->args.transpose_b != 0, "B", &dot->b, err);
    if (!st) {
        dot->dtype = dot->a.dtype;
        st = check_scalars(dot, err);
    }
    if (!st && dot->args.beta != 0)
        st = jk_matrix_of(dot->args.c, false, "C", &dot->c, err);
    if (st)
        return st;
    st = check_type(dot, &dot->a, "A", err);
    if (!st)
        st = check_type(dot, &dot->b, "B", err);
    if (!st && dot->c.file)
        st = check_type(dot, &dot->c, "C", err);
    return st ? st : check_shapes(dot, err);
}

static jask_status settle_budget(jk_dot *dot, jask_error *err)
{
    jk_result_place place = {.output = dot->args.output, .resumes = dot->args.resume != 0};
    if (!jk_mul_u64((uint64_t)dot->m, (uint64_t)dot->n, &place.bytes) ||
        !jk_mul_u64(place.bytes, jask_dtype_size(dot->dtype), &place.bytes))
        place.bytes = UINT64_MAX; /* making the result refuses it */
    return jk_budget_of(dot->ctx, &place, &dot->budget, err);
}

/* Read buffers are a sixteenth of the one budget; beside a device with memory of its own they have
 * a budget to themselves. */
static jask_status choose_block(jk_dot *dot, jask_error *err)
{
    bool turns = dot->c.file && dot->c.trans;
    int threads = jk_context_io_threads(dot->ctx);
    uint64_t most = turns ? TURN_BLOCK_MAX : BLOCK_BYTES;
    uint64_t share = dot->budget.bytes / 16 / (uint64_t)threads;
    if (!jk_context_device(dot->ctx)->info.host_memory) {
        uint64_t blocks = (uint64_t)jk_pipeline_host_blocks(turns, threads);
        char had[32], least[32];
        share = dot->budget.host_bytes / blocks;
        if (share < BLOCK_MIN)
            return jk_fail(err, JASK_ERR_BUDGET,
                           "a host budget of %s is too little for staging with %d reading threads; "
                           "the least that works is %s (JASK_HOST_BUDGET)",
                           jask_format_size(dot->budget.host_bytes, had, sizeof had), threads,
                           jask_format_size(blocks * BLOCK_MIN, least, sizeof least));
    }
    share = share < BLOCK_MIN ? BLOCK_MIN : share;
    share = share > most ? most : share;
    dot->block_bytes = (size_t)jask_align_to_os_page(share);
    return JASK_OK;
}

static jask_status make_plan(jk_dot *dot, jask_error *err)
{
    const jk_device_ref *device = jk_context_device(dot->ctx);
    uint64_t budget;
    int size = (int)jask_dtype_size(dot->dtype);
    jk_problem problem = {
        .m = dot->m,
        .n = dot->n,
        /* With alpha 0 A and B are not read, as in BLAS. */
        .k = dot->args.alpha == 0 ? 0 : dot->k,
        .a_bytes = size,
        .b_bytes = size,
        .c_bytes = size,
        .read_c = dot->args.beta != 0,
    };
    jk_machine machine;
    jask_status st;
    st = settle_budget(dot, err);
    if (!st)
        st = choose_block(dot, err);
    if (st)
        return st;
    budget = dot->budget.bytes;
    machine =
        jk_machine_of(device, dot->dtype, budget,
                      jk_pipeline_reserve_bytes(&device->info, budget, dot->c.file && dot->c.trans,
                                                jk_context_io_threads(dot->ctx), dot->block_bytes));
    st = jk_plan_make(&problem, &machine, jk_context_planner(dot->ctx),
                      jk_context_pipelined(dot->ctx), &dot->plan, err);
    if (st == JASK_ERR_BUDGET)
        return jk_budget_explain(&dot->budget, dot->ctx, err);
    if (!st && dot->plan.schedule == JK_SCHEDULE_EMPTY) {
        dot->plan.problem.k = dot->k;
        dot->plan.peak_bytes =
            problem.read_c && device->info.host_memory ? jk_scale_bytes(dot->block_bytes) : 0;
    }
    return st;
}

/* Checks and plans. Give dot->ctx back in any case. */
static jask_status prepare(jk_dot *dot, jask_context *ctx, const jask_array *a, const jask_array *b,
                           const jask_dot_args *args, jask_error *err)
{
    jask_status st;
    memset(dot, 0, sizeof *dot);
    if (!a || !b)
        return jk_fail(err, JASK_ERR_ARG, "%s is NULL", a ? "B" : "A");
    read_args(dot, args);
    st = jk_context_get(ctx, &dot->ctx, err);
    if (!st)
        st = check_operands(dot, a, b, err);
    return st ? st : make_plan(dot, err);
}

static void log_plan(const jk_dot *dot)
{
    const jk_plan *p = &dot->plan;
    jk_log_write(jk_context_log(dot->ctx), JASK_LOG_INFO,
                 "plan %s (%s): %" PRId64 " x %" PRId64 " x %" PRId64 " in tiles of %" PRId64
                 " x %" PRId64 " x %" PRId64 ", %" PRId64 " steps; %" PRIu64
                 " bytes to the device, %" PRIu64 " back, %" PRIu64
                 " read from files; peak %" PRIu64 " of %" PRIu64,
                 jk_schedule_name(p->schedule), jk_planner_name(p->planner), dot->m, dot->n, dot->k,
                 p->bm, p->bn, p->bk, p->steps, p->h2d_bytes, p->d2h_bytes, p->file_read_bytes,
                 p->peak_bytes, p->budget_bytes);
}

/* The caller gets the error; a log that is kept has it too. */
static void log_end(const jk_dot *dot, const jk_run_stats *stats, jask_status st,
                    const jask_error *err)
{
    jk_log *log = jk_context_log(dot->ctx);
    const char *name = dot->args.output ? dot->args.output : "(scratch)";
    if (st)
        jk_log_write(log, JASK_LOG_ERROR, "product '%s': %s", name,
                     err ? err->msg : jask_status_name(st));
    else
        jk_log_write(log, JASK_LOG_DEBUG,
                     "product '%s' is complete: %" PRIu64 " bytes read, %" PRIu64
                     " written; the disk moved %" PRIu64 " and %" PRIu64,
                     name, stats->io.file_read_bytes, stats->io.file_write_bytes,
                     stats->io.disk_read_bytes, stats->io.disk_write_bytes);
    if (!st && stats->note[0])
        jk_log_once(log, JK_LOG_STAGING, JASK_LOG_WARN, "%s", stats->note);
}

jask_status jask_dot_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                          const jask_dot_args *args, jask_plan **out, jask_error *err)
{
    jk_dot dot;
    jask_status st = prepare(&dot, ctx, a, b, args, err);
    if (!st)
        st = jk_plan_wrap(&dot.plan, out, err);
    jk_context_put(dot.ctx);
    return st;
}

jask_status jask_dot_plan_sizes(jask_context *ctx, jask_dtype dtype, int64_t m, int64_t n,
                                int64_t k, const jask_dot_args *args, jask_plan **out,
                                jask_error *err)
{
    jk_dot dot = {.m = m, .n = n, .k = k, .dtype = dtype};
    jask_status st;
    if (m < 0 || n < 0 || k < 0)
        return jk_fail(err, JASK_ERR_ARG,
                       "extents cannot be negative: %" PRId64 " x %" PRId64 " x %" PRId64, m, n, k);
    if (dtype != JASK_F32 && dtype != JASK_F64)
        return jk_fail(err, JASK_ERR_UNSUPPORTED, "products compute in f32 and f64, not %s",
                       jask_dtype_name(dtype));
    read_args(&dot, args);
    st = jk_context_get(ctx, &dot.ctx, err);
    if (!st)
        st = make_plan(&dot, err);
    if (!st)
        st = jk_plan_wrap(&dot.plan, out, err);
    jk_context_put(dot.ctx);
    return st;
}

static bool uses_tf32(const jk_dot *dot)
{
    return dot->dtype == JASK_F32 && jk_context_tf32(dot->ctx) &&
           jk_context_device(dot->ctx)->info.tf32;
}

static jk_product describe_product(const jk_dot *dot)
{
    return (jk_product){
        .plan = &dot->plan,
        .device = jk_context_device(dot->ctx),
        .ctx = dot->ctx,
        .a = dot->a,
        .b = dot->b,
        .c = dot->c,
        .alpha = dot->args.alpha,
        .beta = dot->args.beta,
        .tf32 = uses_tf32(dot),
        .io_threads = jk_context_io_threads(dot->ctx),
        .block_bytes = dot->block_bytes,
    };
}

/* The array that takes the result: empty, or what an earlier run has left. */
static jask_status open_result(jk_dot *dot, jask_array **out, jask_error *err)
{
    int64_t shape[2] = {dot->m, dot->n};
    jk_product product = describe_product(dot);
    return dot->args.resume
               ? jk_resume_open(dot->ctx, &product, dot->args.output, out, &dot->resume, err)
               : jask_array_create(dot->ctx, dot->args.output, dot->dtype, 2, shape, out, err);
}

/* Fill the result: by the pipeline, or without one where there is nothing to multiply. */
static jask_status compute(const jk_dot *dot, const jk_matrix *d, jk_run_stats *stats,
                           jask_error *err)
{
    jk_product product = describe_product(dot);
    jask_status st;
    product.d = *d;
    product.resume = dot->resume;
    product.first_tile = dot->resume ? jk_resume_tiles(dot->resume) : 0;
    if (dot->plan.schedule != JK_SCHEDULE_EMPTY)
        return jk_read_engine_run(&product, dot->ctx, stats, err);
    *stats = (jk_run_stats){.io_engine = "pread"};
    if (!dot->c.file)
        return JASK_OK; /* a new array is all zero */
    st = jk_scale_matrix(&dot->c, dot->args.beta, d, dot->block_bytes, stats, err);
    if (!st && !jk_context_device(dot->ctx)->info.host_memory) {
        stats->peak_host_bytes = stats->peak_device_bytes;
        stats->peak_device_bytes = 0;
    }
    return st;
}

static jask_status check_inputs(const jk_dot *dot, const jask_array *a, const jask_array *b,
                                jask_error *err)
{
    jask_status st = jk_array_check_unchanged(a, err);
    if (!st)
        st = jk_array_check_unchanged(b, err);
    if (!st && dot->c.file)
        st = jk_array_check_unchanged(dot->args.c, err);
    return st;
}

/* All is computed. */
static jask_status tell(const jk_dot *dot, const jk_run_stats *stats, double fraction,
                        double seconds, jask_error *err)
{
    jask_progress p = {
        .struct_size = sizeof p,
        .steps_done = dot->plan.steps,
        .steps_total = dot->plan.steps,
        .fraction = fraction,
        .file_read_bytes = stats->io.file_read_bytes,
        .file_write_bytes = stats->io.file_write_bytes,
        .seconds = seconds,
    };
    return jk_context_progress(dot->ctx, &p, err);
}

/* The disk can be waited for long: that may be canceled, for only the name is missing then. */
static jask_status commit(const jk_dot *dot, jask_array *d, const jk_run_stats *stats, double start,
                          jask_error *err)
{
    jask_status st = jk_array_flush(d, err);
    if (!st)
        st = tell(dot, stats, 0.99, jk_clock_seconds() - start, err);
    return st ? st : jk_array_publish(d, err);
}

/* What this run was to move. */
static jask_io_cost planned_cost(const jk_dot *dot, int64_t first_tile)
{
    const jk_plan *plan = &dot->plan;
    jask_io_cost cost = {.struct_size = sizeof cost,
                         .h2d_pages = plan->h2d_pages,
                         .h2d_bytes = plan->h2d_bytes,
                         .d2h_pages = plan->d2h_pages,
                         .d2h_bytes = plan->d2h_bytes,
                         .file_read_bytes = plan->file_read_bytes,
                         .file_write_bytes = plan->file_write_bytes};
    if (first_tile > 0) {
        jk_plan_counts rest = jk_plan_rest(plan, first_tile);
        cost.h2d_pages = rest.h2d_pages;
        cost.d2h_pages = rest.d2h_pages;
        cost.h2d_bytes = rest.h2d_bytes;
        cost.d2h_bytes = rest.d2h_bytes;
        cost.file_read_bytes = rest.file_read_bytes;
        cost.file_write_bytes = rest.file_write_bytes;
    }
    return cost;
}

static void fill_report(const jk_dot *dot, const jk_run_stats *stats, double seconds,
                        double commit_seconds, jask_report *out)
{
    const jk_device_ref *device = jk_context_device(dot->ctx);
    size_t size = out->struct_size;
    jask_report report = {
        .op = "dot",
        .dtype = dot->dtype,
        .io = stats->io,
        .seconds = seconds,
        .read_seconds = stats->read_seconds,
        .compute_seconds = stats->compute_seconds,
        .write_seconds = stats->write_seconds,
        .commit_seconds = commit_seconds,
        .stall_seconds = stats->stall_seconds,
        .budget_bytes = dot->budget.bytes,
        .peak_device_bytes = stats->peak_device_bytes,
        .peak_host_bytes = stats->peak_host_bytes,
    };
    snprintf(report.device, sizeof report.device, "%s", device->info.name);
    snprintf(report.device_description, sizeof report.device_description, "%s",
             device->info.description);
    snprintf(report.precision, sizeof report.precision, "%s",
             uses_tf32(dot) ? "tf32" : jask_dtype_name(dot->dtype));
    snprintf(report.io_engine, sizeof report.io_engine, "%s", stats->io_engine);
    snprintf(report.device_note, sizeof report.device_note, "%s", device->note);
    snprintf(report.note, sizeof report.note, "%s",
             dot->resume && !stats->note[0] ? jk_resume_note(dot->resume) : stats->note);
    report.resumed_tiles = dot->resume ? jk_resume_tiles(dot->resume) : 0;
    report.planned = planned_cost(dot, report.resumed_tiles);
    jk_plan_describe(&dot->plan, &report.plan);
    report.io.struct_size = sizeof report.io;
    jk_struct_out(out, size, &report, sizeof report);
}

jask_status jask_dot(jask_context *ctx, const jask_array *a, const jask_array *b,
                     const jask_dot_args *args, jask_array **out_d, jask_report *report,
                     jask_error *err)
{
    double start = jk_clock_seconds(), computed = start, done;
    uint64_t read_before, written_before, read_after, written_after;
    jask_array *d = NULL;
    jk_matrix d_matrix;
    jk_run_stats stats;
    jk_dot dot;
    jask_status st = prepare(&dot, ctx, a, b, args, err);
    if (!st && dot.args.resume && !dot.args.output)
        st = jk_fail(err, JASK_ERR_ARG, "only a product with a named output can be resumed");
    if (!st && !dot.args.output && !out_d)
        st = jk_fail(err, JASK_ERR_ARG,
                     "the product has nowhere to go: name an output, or take the "
                     "result as an array");
    if (st)
        goto out;
    log_plan(&dot);
    jk_process_disk_bytes(&read_before, &written_before);
    st = open_result(&dot, &d, err);
    if (!st)
        st = jk_matrix_of(d, false, "D", &d_matrix, err);
    if (!st)
        st = compute(&dot, &d_matrix, &stats, err);
    if (!st)
        st = check_inputs(&dot, a, b, err);
    computed = jk_clock_seconds();
    if (!st && dot.resume)
        st = jk_resume_settle(dot.resume, err);
    if (!st && dot.args.output)
        st = commit(&dot, d, &stats, start, err);
    if (st)
        goto out;
    if (dot.resume)
        jk_resume_finish(dot.resume);
    done = jk_clock_seconds();
    jk_process_disk_bytes(&read_after, &written_after);
    stats.io.disk_read_bytes = read_after - read_before;
    stats.io.disk_write_bytes = written_after - written_before;
    jk_context_add_io(dot.ctx, &stats.io);
    /* The result is committed: there is nothing left to cancel. */
    (void)tell(&dot, &stats, 1, done - start, NULL);
    if (report)
        fill_report(&dot, &stats, done - start, done - computed, report);
    if (out_d) {
        *out_d = d;
        d = NULL;
    }
out:
    jk_resume_close(dot.resume, st ? err : NULL);
    dot.resume = NULL;
    log_end(&dot, &stats, st, err);
    jask_array_close(d);
    jk_context_put(dot.ctx);
    return st;
}
