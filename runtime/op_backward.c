/* jask_dot_backward: the gradients of a product with respect to its operands.
 *
 * Of D = alpha op(A) op(B), with G the gradient with respect to D, those with respect to op(A) and
 * op(B) are alpha G op(B)' and alpha op(A)' G, ' being the adjoint. Where op is a transpose, the
 * gradient with respect to what is stored is the same transpose of it: alpha conj(op(B)) G^T for a
 * plain one, alpha op(B) G' for an adjoint. */
#include "runtime/plan_api.h"
#include "runtime/product_job.h"

#include <inttypes.h>
#include <string.h>

typedef struct jk_backward {
    jask_context *ctx;
    jask_dot_backward_args args;
    jk_lacks lacks; /* of D: A, or B, is a vector */
    jk_operand a, b, g;
    jk_job jobs[2];
    int count;
    jask_array *before[2]; /* gradients that are added to */
    jask_array **places[2];
    jk_joint joint; /* of both jobs, if they have it */
} jk_backward;

void jask_dot_backward_args_init(jask_dot_backward_args *args, size_t struct_size)
{
    jask_dot_backward_args fresh = {.alpha = 1};
    jk_struct_out(args, struct_size, &fresh, sizeof fresh);
}

static void read_args(jk_backward *w, const jask_dot_backward_args *args)
{
    jask_dot_backward_args_init(&w->args, sizeof w->args);
    jk_struct_in(&w->args, sizeof w->args, args);
}

/* ---- operands ---- */

static jask_status check_gradient(const jk_backward *w, const jask_array *g, jask_error *err)
{
    const jk_matrix *a = &w->a.matrix, *b = &w->b.matrix;
    jk_batches batches;
    int64_t shape[JASK_MAX_DIMS];
    int ndim;
    jask_status st = jk_check_inner(a, b, err);
    if (!st)
        st = jk_batches_of(&w->a, &w->b, &batches, err);
    if (!st)
        st = jk_product_shape(&batches, w->lacks, jk_wanted_rows(a), jk_wanted_cols(b), &ndim,
                              shape, err);
    return st ? st : jk_check_shape(g, "dD", "the product", ndim, shape, err);
}

static jask_status take_operands(jk_backward *w, const jask_array *a, const jask_array *b,
                                 const jask_array *g, jask_error *err)
{
    jask_status st;
    w->lacks = (jk_lacks){.rows = a->layout.ndim == 1, .cols = b->layout.ndim == 1};
    st = jk_operand_of(a, (jk_lacks){.rows = w->lacks.rows},
                       w->args.transpose_a != 0 && !w->lacks.rows, "A", &w->a, err);
    if (!st)
        st = jk_operand_of(b, (jk_lacks){.cols = w->lacks.cols},
                           w->args.transpose_b != 0 && !w->lacks.cols, "B", &w->b, err);
    if (!st)
        st = check_gradient(w, g, err);
    if (!st)
        st = jk_operand_of(g, w->lacks, false, "dD", &w->g, err);
    w->a.matrix.conj = w->args.transpose_a == JASK_CONJUGATE_TRANSPOSE;
    w->b.matrix.conj = w->args.transpose_b == JASK_CONJUGATE_TRANSPOSE;
    return st;
}

/* The transpose, or the adjoint: that of a real array is the same. */
static jk_operand turned(const jk_operand *op, bool conjugated)
{
    jk_operand out = *op;
    out.matrix.trans = !out.matrix.trans;
    out.matrix.conj = out.matrix.conj != conjugated;
    return out;
}

static jk_operand conjugated(const jk_operand *op)
{
    jk_operand out = *op;
    out.matrix.conj = !out.matrix.conj;
    return out;
}

/* ---- products ---- */

/* What one gradient is made of. `of` is the operand it belongs to. */
typedef struct jk_term {
    const char *name; /* "dA" */
    const jask_array *of;
    const jk_operand *op;
    jk_operand left, right;
    const jask_array *left_array, *right_array;
} jk_term;

static jk_term term_of_a(const jk_backward *w, const jask_array *a, const jask_array *b,
                         const jask_array *g)
{
    if (w->lacks.rows || !w->args.transpose_a)
        return (jk_term){"dA", a, &w->a, w->g, turned(&w->b, true), g, b};
    if (w->args.transpose_a == JASK_CONJUGATE_TRANSPOSE)
        return (jk_term){"dA", a, &w->a, w->b, turned(&w->g, true), b, g};
    return (jk_term){"dA", a, &w->a, conjugated(&w->b), turned(&w->g, false), b, g};
}

static jk_term term_of_b(const jk_backward *w, const jask_array *a, const jask_array *b,
                         const jask_array *g)
{
    if (w->lacks.cols || !w->args.transpose_b)
        return (jk_term){"dB", b, &w->b, turned(&w->a, true), w->g, a, g};
    if (w->args.transpose_b == JASK_CONJUGATE_TRANSPOSE)
        return (jk_term){"dB", b, &w->b, turned(&w->g, true), w->a, g, a};
    return (jk_term){"dB", b, &w->b, turned(&w->g, false), conjugated(&w->a), g, a};
}

/* Whether a batch dimension of the product is one of the gradient too: those that the operand was
 * broadcast along are summed over. */
static bool is_kept(const jk_term *term, const jk_batches *batches, int d)
{
    int own = d - (batches->ndim - term->op->batch_ndim);
    return batches->extents[d] == 1 || (own >= 0 && term->op->batch_shape[own] != 1);
}

static void append(jk_batches *to, const jk_batches *from, int d)
{
    to->extents[to->ndim] = from->extents[d];
    to->steps[JK_ARRAY_A][to->ndim] = from->steps[JK_ARRAY_A][d];
    to->steps[JK_ARRAY_B][to->ndim] = from->steps[JK_ARRAY_B][d];
    to->count *= from->extents[d];
    to->ndim++;
}

/* One factor is those of all summed batches. */
static void lay_parts(jk_job *job, int array, jk_matrix *matrix, bool beside)
{
    int64_t *extent = beside ? &matrix->cols : &matrix->rows;
    job->parts[array] = (jk_parts){.beside = beside,
                                   .extent = *extent,
                                   .ndim = job->summed.ndim,
                                   .extents = job->summed.extents,
                                   .steps = job->summed.steps[array]};
    matrix->parts = &job->parts[array];
    *extent *= job->summed.count;
}

/* The gradient has fewer batches than the product where its operand was broadcast. The sum over those
 * is a longer k: in one piece where the rows of both factors follow one another, else in parts. */
static jask_status sum_batches(jk_job *job, const jk_term *term, jask_error *err)
{
    jk_batches all;
    int64_t gradients = 1, longest = jk_max(job->k, jk_max(job->m, job->n));
    for (int d = 0; d < term->op->batch_ndim; d++)
        gradients *= term->op->batch_shape[d];
    if (gradients == job->batches.count)
        return JASK_OK;
    if (gradients == 1)
        job->k *= jk_batches_fold_depth(&job->batches, &job->a, &job->b);
    all = job->batches;
    job->batches = job->summed = (jk_batches){.count = 1};
    for (int d = 0; d < all.ndim; d++)
        append(gradients > 1 && is_kept(term, &all, d) ? &job->batches : &job->summed, &all, d);
    if (job->summed.count == 1)
        return JASK_OK;
    if (job->summed.count > (INT64_C(1) << 62) / jk_max(longest, 1) / jk_max(job->k, 1))
        return jk_fail(err, JASK_ERR_UNSUPPORTED, "%s is a sum over too many batches, %" PRId64,
                       term->name, job->summed.count);
    job->k *= job->summed.count;
    lay_parts(job, JK_ARRAY_A, &job->a, !job->a.trans);
    lay_parts(job, JK_ARRAY_B, &job->b, job->b.trans);
    return JASK_OK;
}

static jask_status choose_types(jk_job *job, jask_dtype of, jask_error *err)
{
    const jk_device_info *device = &jk_context_device(job->ctx)->info;
    jask_status st =
        jk_product_types_of(job->a.dtype, job->b.dtype, of, false, device, &job->types, err);
    if (!st)
        st = jk_product_check_sums(&job->types, job->a.dtype, job->b.dtype, of, job->k, job->alpha,
                                   1, err);
    return st;
}

static jask_status make_job(jk_backward *w, const jk_term *term, jk_job *job, jask_error *err)
{
    const jk_layout *of = &term->of->layout;
    uint64_t bytes;
    jask_status st;
    *job = (jk_job){
        .ctx = w->ctx,
        .input_a = term->left_array,
        .input_b = term->right_array,
        .a = term->left.matrix,
        .b = term->right.matrix,
        .m = jk_wanted_rows(&term->left.matrix),
        .n = jk_wanted_cols(&term->right.matrix),
        .k = jk_wanted_cols(&term->left.matrix),
        .alpha = w->args.alpha,
        .ndim = of->ndim,
        .backward = true,
    };
    memcpy(job->shape, of->shape, sizeof job->shape);
    st = choose_types(job, of->dtype, err);
    if (st)
        return st;
    st = jk_batches_of(&term->left, &term->right, &job->batches, err);
    if (!st && job->batches.count == 0) {
        job->batches = (jk_batches){.count = 1};
        job->k = 0; /* a sum over nothing */
        if (of->elements == 0)
            job->m = 0;
    }
    if (!st)
        st = sum_batches(job, term, err);
    if (st)
        return st;
    bytes = (uint64_t)job->m * (uint64_t)job->n * jask_dtype_size(job->types.output);
    jk_batches_set_dense(&job->batches, JK_ARRAY_C, bytes);
    jk_batches_set_dense(&job->batches, JK_ARRAY_D, bytes);
    return JASK_OK;
}

/* The gradient that lies under the output's name is C of the product. */
static jask_status add_to_output(jk_job *job, const jk_term *term, jask_array **before,
                                 jask_error *err)
{
    const jk_layout *of = &term->of->layout;
    jk_lacks lacks = {.rows = of->ndim == 1};
    jk_operand op;
    jask_status st;
    if (!job->output)
        return jk_fail(err, JASK_ERR_ARG, "to accumulate %s, its output must be named", term->name);
    st = jask_array_open(job->output, before, err);
    if (st)
        return jk_fail_in(err, st, "the gradient to add %s to", term->name);
    st = jk_check_shape(*before, term->name, "its operand", of->ndim, of->shape, err);
    if (!st && (*before)->layout.dtype != job->types.output)
        st = jk_fail(err, JASK_ERR_ARG, "'%s' is %s but %s is %s", job->output,
                     jask_dtype_name((*before)->layout.dtype), term->name,
                     jask_dtype_name(job->types.output));
    if (!st)
        st = jk_operand_of(*before, lacks, false, term->name, &op, err);
    if (st)
        return st;
    job->c = op.matrix;
    if (of->ndim == 1 && job->n == 1) { /* a column has the vector's elements in order, too */
        job->c.rows = op.matrix.cols;
        job->c.cols = 1;
        job->c.row_bytes = jask_dtype_size(job->types.output);
    }
    job->input_c = *before;
    job->beta = 1;
    return JASK_OK;
}

static jask_status plan_term(jk_backward *w, const jk_term *term, const char *output,
                             bool accumulate, jask_array **place, jask_error *err)
{
    int i = w->count;
    jk_job *job = &w->jobs[i];
    jask_status st = make_job(w, term, job, err);
    if (st)
        return st;
    job->output = output;
    if (accumulate)
        st = add_to_output(job, term, &w->before[i], err);
    if (!st)
        st = jk_job_plan(job, err);
    if (st)
        return jk_fail_in(err, st, "%s", term->name);
    w->places[i] = place;
    w->count++;
    return JASK_OK;
}

/* A and B are one array: its gradient has two terms, the second of which is added to the first. */
static jask_status plan_both(jk_backward *w, const jk_term *first, const jk_term *second,
                             jask_array **place, jask_error *err)
{
    jask_status st = plan_term(w, first, w->args.da_output, w->args.accumulate_a != 0, NULL, err);
    if (st)
        return st;
    w->jobs[0].output = NULL;
    st = make_job(w, second, &w->jobs[1], err);
    if (st)
        return st;
    w->jobs[1].output = w->args.da_output;
    w->jobs[1].beta = 1;
    w->jobs[1].adds_to = &w->jobs[0];
    st = jk_job_plan(&w->jobs[1], err);
    w->places[1] = place;
    w->count = 2;
    return st;
}

/* Gradients that are asked for: those with a name or a place. */
typedef struct jk_asked {
    bool a, b;
    jask_array **out_a, **out_b;
} jk_asked;

static bool one_array(const jask_array *a, const jask_array *b)
{
    return jk_array_same_file(a, b) && a->layout.data_offset == b->layout.data_offset &&
           a->layout.dtype == b->layout.dtype && a->layout.ndim == b->layout.ndim &&
           memcmp(a->layout.shape, b->layout.shape,
                  (size_t)a->layout.ndim * sizeof *a->layout.shape) == 0;
}

/* Both gradients at once, where that is better. */
static void join(jk_backward *w)
{
    jk_joint_problem problem = {
        .m = jk_wanted_rows(&w->g.matrix),
        .n = jk_wanted_cols(&w->g.matrix),
        .k = jk_wanted_cols(&w->a.matrix),
        .g_turned = w->g.matrix.trans,
    };
    problem.side[JK_ROWS].turned = w->args.transpose_a && !w->lacks.rows;
    problem.side[JK_COLS].turned = w->args.transpose_b && !w->lacks.cols;
    jk_jobs_join(w->jobs, &problem, &w->joint);
}

static jask_status plan_terms(jk_backward *w, const jask_array *a, const jask_array *b,
                              const jask_array *g, const jk_asked *asked, jask_error *err)
{
    jk_term of_a = term_of_a(w, a, b, g), of_b = term_of_b(w, a, b, g);
    jask_status st = JASK_OK;
    if (one_array(a, b)) {
        if (asked->b)
            return jk_fail(err, JASK_ERR_ARG,
                           "A and B are one array, '%s': its gradient, the sum of both terms, is "
                           "dA; ask for no dB",
                           a->path);
        return plan_both(w, &of_a, &of_b, asked->out_a, err);
    }
    if (asked->a)
        st = plan_term(w, &of_a, w->args.da_output, w->args.accumulate_a != 0, asked->out_a, err);
    if (!st && asked->b)
        st = plan_term(w, &of_b, w->args.db_output, w->args.accumulate_b != 0, asked->out_b, err);
    if (!st && w->count == 2)
        join(w);
    return st;
}

/* Checks and plans. Give back what it took with `finish` in any case. */
static jask_status prepare(jk_backward *w, jask_context *ctx, const jask_array *a,
                           const jask_array *b, const jask_array *g,
                           const jask_dot_backward_args *args, jk_asked *asked, jask_error *err)
{
    jask_status st;
    memset(w, 0, sizeof *w);
    if (!a || !b || !g)
        return jk_fail(err, JASK_ERR_ARG, "%s is NULL", !a ? "A" : !b ? "B" : "dD");
    read_args(w, args);
    asked->a = asked->a || asked->out_a || w->args.da_output;
    asked->b = asked->b || asked->out_b || w->args.db_output;
    if (!asked->a && !asked->b)
        return jk_fail(err, JASK_ERR_ARG,
                       "no gradient is asked for: name an output for dA or dB, or take it as an "
                       "array");
    st = jk_context_get(ctx, &w->ctx, err);
    if (!st)
        st = take_operands(w, a, b, g, err);
    return st ? st : plan_terms(w, a, b, g, asked, err);
}

static void finish(jk_backward *w)
{
    jask_array_close(w->before[0]);
    jask_array_close(w->before[1]);
    jk_context_put(w->ctx);
}

jask_status jask_dot_backward_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                                   const jask_array *dd, const jask_dot_backward_args *args,
                                   jask_plan **out_da, jask_plan **out_db, jask_error *err)
{
    /* The second product of a single gradient has its plan in dB's place. */
    bool one = a && b && one_array(a, b);
    jk_asked asked = {.a = out_da != NULL, .b = out_db != NULL && !one};
    jask_plan *plans[2] = {NULL, NULL};
    jk_backward w;
    jask_status st = prepare(&w, ctx, a, b, dd, args, &asked, err);
    int last = w.count - 1;
    if (!st && w.jobs[0].joint)
        st = jk_joint_wrap(&w.joint, &plans[0], err);
    for (int i = 0; !st && !w.jobs[0].joint && i < w.count; i++)
        st = jk_plan_wrap(&w.jobs[i].plan, &plans[i], err);
    if (!st && out_da) {
        *out_da = plans[0];
        plans[0] = NULL;
    }
    if (!st && out_db) {
        *out_db = plans[last];
        plans[last] = NULL;
    }
    jask_plan_close(plans[0]);
    jask_plan_close(plans[1]);
    finish(&w);
    return st;
}

jask_status jask_dot_backward(jask_context *ctx, const jask_array *a, const jask_array *b,
                              const jask_array *dd, const jask_dot_backward_args *args,
                              jask_array **out_da, jask_array **out_db, jask_report *report,
                              jask_error *err)
{
    jk_job_report how = {.op = "dot_backward", .report = report};
    jk_asked asked = {.out_a = out_da, .out_b = out_db};
    jk_backward w;
    jask_status st = prepare(&w, ctx, a, b, dd, args, &asked, err);
    if (!st)
        st = jk_jobs_run(w.jobs, w.count, &how, w.places, err);
    finish(&w);
    return st;
}
