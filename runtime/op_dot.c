/* jask_dot and jask_matmul: arguments and shapes of a product. */
#include "runtime/plan_api.h"
#include "runtime/product_job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A product on its way from arguments to a job. */
typedef struct jk_dot {
    jask_dot_args args;
    jk_operand a, b;
    jk_job job;
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
    dot->job.alpha = dot->args.alpha;
    dot->job.beta = dot->args.beta;
    dot->job.output = dot->args.output;
    dot->job.resumes = dot->args.resume != 0;
}

/* In the type that computes: 1e300 is no f32. */
static bool is_finite_as(double value, jask_dtype dtype)
{
    return dtype == JASK_F32 ? isfinite((float)value) : isfinite(value);
}

static jask_status check_scalars(const jk_dot *dot, jask_error *err)
{
    jask_dtype dtype = dot->job.dtype;
    if (!is_finite_as(dot->args.alpha, dtype) || !is_finite_as(dot->args.beta, dtype))
        return jk_fail(err, JASK_ERR_ARG,
                       "alpha and beta must be finite numbers in the arrays' type, %s",
                       jask_dtype_name(dtype));
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
    if (matrix->dtype != dot->job.dtype)
        return jk_fail(err, JASK_ERR_ARG,
                       "%s '%s' is %s but A '%s' is %s; a product needs one type: convert one of "
                       "them first",
                       what, matrix->path, jask_dtype_name(matrix->dtype), dot->a.matrix.path,
                       jask_dtype_name(dot->job.dtype));
    return JASK_OK;
}

static jask_status take_c(jk_dot *dot, jk_lacks lacks, jask_error *err)
{
    const jask_array *c = dot->args.c;
    jk_job *job = &dot->job;
    jk_operand op;
    jask_status st;
    st = jk_check_shape(c, "C", "the product", job->ndim, job->shape, err);
    if (!st)
        st = jk_operand_of(c, lacks, false, "C", &op, err);
    if (!st)
        st = check_type(dot, &op.matrix, "C", err);
    if (st)
        return st;
    job->c = op.matrix;
    job->input_c = c;
    return JASK_OK;
}

/* With all shapes known, let the matrices of a batch be as large as they can. */
static void set_batches(jk_dot *dot)
{
    jk_job *job = &dot->job;
    uint64_t bytes = (uint64_t)job->m * (uint64_t)job->n * jask_dtype_size(job->dtype);
    int64_t times;
    if (job->batches.count == 0) {
        job->batches = (jk_batches){.count = 1};
        job->m = 0;
        return;
    }
    jk_batches_set_dense(&job->batches, JK_ARRAY_C, bytes);
    jk_batches_set_dense(&job->batches, JK_ARRAY_D, bytes);
    times = jk_batches_fold(&job->batches, &job->a, &job->c);
    job->m *= times;
    job->a.rows *= times;
    job->c.rows *= times;
}

static jask_status check_operands(jk_dot *dot, const jask_array *a, const jask_array *b,
                                  jask_error *err)
{
    jk_job *job = &dot->job;
    jk_lacks lacks = {.rows = a->layout.ndim == 1, .cols = b->layout.ndim == 1};
    /* A vector is a row on the left and a column on the right; it has no transpose. */
    jask_status st = jk_operand_of(a, (jk_lacks){.rows = lacks.rows},
                                   dot->args.transpose_a != 0 && !lacks.rows, "A", &dot->a, err);
    if (!st)
        st = jk_operand_of(b, (jk_lacks){.cols = lacks.cols},
                           dot->args.transpose_b != 0 && !lacks.cols, "B", &dot->b, err);
    if (st)
        return st;
    job->a = dot->a.matrix;
    job->b = dot->b.matrix;
    job->input_a = a;
    job->input_b = b;
    job->dtype = job->a.dtype;
    st = check_scalars(dot, err);
    if (!st)
        st = check_type(dot, &job->a, "A", err);
    if (!st)
        st = check_type(dot, &job->b, "B", err);
    if (!st)
        st = jk_check_inner(&job->a, &job->b, err);
    if (!st)
        st = jk_batches_of(&dot->a, &dot->b, &job->batches, err);
    if (st)
        return st;
    job->m = jk_wanted_rows(&job->a);
    job->n = jk_wanted_cols(&job->b);
    job->k = jk_wanted_cols(&job->a);
    st = jk_product_shape(&job->batches, lacks, job->m, job->n, &job->ndim, job->shape, err);
    if (!st && dot->args.beta != 0)
        st = take_c(dot, lacks, err);
    if (!st)
        set_batches(dot);
    return st;
}

/* NumPy's dot is something else for arrays of more than two dimensions. */
static jask_status check_dot(const jask_array *a, const jask_array *b, jask_error *err)
{
    const jask_array *large = a->layout.ndim > 2 ? a : b;
    if (large->layout.ndim <= 2)
        return JASK_OK;
    return jk_fail(err, JASK_ERR_ARG,
                   "%s '%s' has %d dimensions, but dot takes vectors and matrices; matmul takes "
                   "batches of them",
                   large == a ? "A" : "B", large->path, large->layout.ndim);
}

typedef enum dims_rule { RULE_DOT, RULE_MATMUL } dims_rule;

/* Checks and plans. Give dot->job.ctx back in any case. */
static jask_status prepare(jk_dot *dot, jask_context *ctx, const jask_array *a, const jask_array *b,
                           const jask_dot_args *args, dims_rule rule, jask_error *err)
{
    jask_status st = JASK_OK;
    memset(dot, 0, sizeof *dot);
    if (!a || !b)
        return jk_fail(err, JASK_ERR_ARG, "%s is NULL", a ? "B" : "A");
    read_args(dot, args);
    st = jk_context_get(ctx, &dot->job.ctx, err);
    if (!st && rule == RULE_DOT)
        st = check_dot(a, b, err);
    if (!st)
        st = check_operands(dot, a, b, err);
    return st ? st : jk_job_plan(&dot->job, err);
}

static jask_status make_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                             const jask_dot_args *args, dims_rule rule, jask_plan **out,
                             jask_error *err)
{
    jk_dot dot;
    jask_status st = prepare(&dot, ctx, a, b, args, rule, err);
    if (!st)
        st = jk_job_show_plan(&dot.job, out, err);
    jk_context_put(dot.job.ctx);
    return st;
}

jask_status jask_dot_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                          const jask_dot_args *args, jask_plan **out, jask_error *err)
{
    return make_plan(ctx, a, b, args, RULE_DOT, out, err);
}

jask_status jask_matmul_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                             const jask_dot_args *args, jask_plan **out, jask_error *err)
{
    return make_plan(ctx, a, b, args, RULE_MATMUL, out, err);
}

jask_status jask_dot_plan_sizes(jask_context *ctx, jask_dtype dtype, int64_t m, int64_t n,
                                int64_t k, const jask_dot_args *args, jask_plan **out,
                                jask_error *err)
{
    jk_dot dot = {.job = {.m = m, .n = n, .k = k, .dtype = dtype, .batches = {.count = 1}}};
    jask_status st;
    if (m < 0 || n < 0 || k < 0)
        return jk_fail(err, JASK_ERR_ARG,
                       "extents cannot be negative: %" PRId64 " x %" PRId64 " x %" PRId64, m, n, k);
    if (dtype != JASK_F32 && dtype != JASK_F64)
        return jk_fail(err, JASK_ERR_UNSUPPORTED, "products compute in f32 and f64, not %s",
                       jask_dtype_name(dtype));
    read_args(&dot, args);
    st = jk_context_get(ctx, &dot.job.ctx, err);
    if (!st)
        st = jk_job_plan(&dot.job, err);
    if (!st)
        st = jk_job_show_plan(&dot.job, out, err);
    jk_context_put(dot.job.ctx);
    return st;
}

static jask_status check_places(const jk_dot *dot, jask_array **out_d, jask_error *err)
{
    if (dot->args.resume && !dot->args.output)
        return jk_fail(err, JASK_ERR_ARG, "only a product with a named output can be resumed");
    if (!dot->args.output && !out_d)
        return jk_fail(err, JASK_ERR_ARG,
                       "the product has nowhere to go: name an output, or take the "
                       "result as an array");
    return JASK_OK;
}

static jask_status multiply(jask_context *ctx, const jask_array *a, const jask_array *b,
                            const jask_dot_args *args, dims_rule rule, jask_array **out_d,
                            jask_report *report, jask_error *err)
{
    jk_job_report how = {.op = rule == RULE_DOT ? "dot" : "matmul", .report = report};
    jk_dot dot;
    jask_status st = prepare(&dot, ctx, a, b, args, rule, err);
    if (!st)
        st = check_places(&dot, out_d, err);
    how.trace = dot.args.trace;
    if (!st)
        st = jk_jobs_run(&dot.job, 1, &how, &out_d, err);
    else
        jk_jobs_log_end(&dot.job, 1, st, err);
    jk_context_put(dot.job.ctx);
    return st;
}

jask_status jask_dot(jask_context *ctx, const jask_array *a, const jask_array *b,
                     const jask_dot_args *args, jask_array **out_d, jask_report *report,
                     jask_error *err)
{
    return multiply(ctx, a, b, args, RULE_DOT, out_d, report, err);
}

jask_status jask_matmul(jask_context *ctx, const jask_array *a, const jask_array *b,
                        const jask_dot_args *args, jask_array **out_d, jask_report *report,
                        jask_error *err)
{
    return multiply(ctx, a, b, args, RULE_MATMUL, out_d, report, err);
}
