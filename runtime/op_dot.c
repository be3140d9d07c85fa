/* jask_dot and jask_matmul: arguments and shapes of a product. */
#include "runtime/plan_api.h"
#include "runtime/product_job.h"

#include <inttypes.h>
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

static void read_args(jk_dot *dot, const jask_dot_args *args)
{
    jask_dot_args_init(&dot->args, sizeof dot->args);
    jk_struct_in(&dot->args, sizeof dot->args, args);
    dot->job.alpha = dot->args.alpha;
    dot->job.beta = dot->args.beta;
    dot->job.output = dot->args.output;
    dot->job.resumes = dot->args.resume != 0;
}

static jask_status choose_types(jk_dot *dot, bool one_sum, jask_error *err)
{
    jk_job *job = &dot->job;
    const jk_device_info *device = &jk_context_device(job->ctx)->info;
    jask_status st = jk_product_types_of(job->a.dtype, job->b.dtype, dot->args.dtype, one_sum,
                                         device, &job->types, err);
    if (st)
        return jk_fail_in(err, st, "A '%s' and B '%s'", job->a.path, job->b.path);
    if (dot->args.beta != 0 && !dot->args.c)
        return jk_fail(err, JASK_ERR_ARG,
                       "beta is not 0, so an array C is needed to add beta * C to the product");
    return jk_product_check_sums(&job->types, job->a.dtype, job->b.dtype,
                                 dot->args.beta != 0 ? dot->args.c->layout.dtype : JASK_I8, job->k,
                                 dot->args.alpha, dot->args.beta, err);
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
        st = jk_product_takes(&job->types, op.matrix.dtype, err);
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
    uint64_t bytes = (uint64_t)job->m * (uint64_t)job->n * jask_dtype_size(job->types.output);
    int64_t times;
    if (job->batches.count == 0) {
        job->batches = (jk_batches){.count = 1};
        job->m = 0;
        return;
    }
    jk_batches_set_dense(&job->batches, JK_ARRAY_C,
                         (uint64_t)job->m * (uint64_t)job->n * jask_dtype_size(job->c.dtype));
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
    job->a.conj = dot->args.transpose_a == JASK_CONJUGATE_TRANSPOSE;
    job->b.conj = dot->args.transpose_b == JASK_CONJUGATE_TRANSPOSE;
    st = jk_check_inner(&job->a, &job->b, err);
    if (!st)
        st = jk_batches_of(&dot->a, &dot->b, &job->batches, err);
    if (st)
        return st;
    job->m = jk_wanted_rows(&job->a);
    job->n = jk_wanted_cols(&job->b);
    job->k = jk_wanted_cols(&job->a);
    st = choose_types(dot, job->m == 1 && job->n == 1 && lacks.rows && lacks.cols, err);
    if (!st)
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
    jk_dot dot = {.job = {.m = m, .n = n, .k = k, .batches = {.count = 1}}};
    jask_status st;
    if (m < 0 || n < 0 || k < 0)
        return jk_fail(err, JASK_ERR_ARG,
                       "extents cannot be negative: %" PRId64 " x %" PRId64 " x %" PRId64, m, n, k);
    read_args(&dot, args);
    dot.job.a.dtype = dot.job.b.dtype = dtype;
    st = jk_context_get(ctx, &dot.job.ctx, err);
    if (!st)
        st = jk_product_types_of(dtype, dtype, dot.args.dtype, false,
                                 &jk_context_device(dot.job.ctx)->info, &dot.job.types, err);
    dot.job.c.dtype = dot.job.types.output;
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
