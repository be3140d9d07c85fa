/* jask_add_backward: the gradients of a sum. Of a broadcast operand it is a sum over the dimensions that
 * served more than one index; of another one it is a multiple of dD. */
#include "kernels/host_elements.h"
#include "runtime/dtype.h"
#include "runtime/tally_op.h"

#include <math.h>
#include <string.h>

/* One gradient: factor * (sum of dD) + old. */
typedef struct jk_gradient {
    const char *name;                     /* of the operand, "A" */
    const jask_array *operand, *dd, *old; /* old NULL: none is added */
    double factor;
    const char *output;
    jask_array *result;
    jask_report report;
    jk_tally_op tally;
} jk_gradient;

void jask_add_backward_args_init(jask_add_backward_args *args, size_t struct_size)
{
    jask_add_backward_args fresh = {.alpha = 1, .beta = 1};
    jk_struct_out(args, struct_size, &fresh, sizeof fresh);
}

static bool same_shape(const jk_layout *x, const jk_layout *y)
{
    return x->ndim == y->ndim &&
           memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) == 0;
}

static jask_status check_types(const jk_gradient *g, jask_error *err)
{
    jask_dtype dtype = g->operand->layout.dtype;
    jk_kind kind = jk_dtype_kind(dtype);
    if (kind != JK_REAL && kind != JK_COMPLEX)
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "%s '%s' is %s; gradients are of real and complex numbers", g->name,
                       g->operand->path, jask_dtype_name(dtype));
    if (g->dd->layout.dtype != dtype || (g->old && g->old->layout.dtype != dtype))
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "%s '%s' is %s, but dD '%s' is %s%s%s; a gradient needs one type: convert "
                       "one of them first",
                       g->name, g->operand->path, jask_dtype_name(dtype), g->dd->path,
                       jask_dtype_name(g->dd->layout.dtype), g->old ? " and what is added " : "",
                       g->old ? jask_dtype_name(g->old->layout.dtype) : "");
    if (g->old && !same_shape(&g->old->layout, &g->operand->layout))
        return jk_fail(err, JASK_ERR_ARG,
                       "the gradient '%s' that is added to has not the shape of %s", g->old->path,
                       g->name);
    if (!isfinite(g->factor))
        return jk_fail(err, JASK_ERR_ARG, "alpha and beta must be finite numbers");
    return JASK_OK;
}

/* ---- sums over what was broadcast ---- */

static double part_of(const jk_gradient *g, const double *old, int part, const jk_tally *t)
{
    double sum = g->factor * (t->sum + t->rest);
    return old ? sum + old[part] : sum;
}

/* Element number e of the output's window, in the window of the old gradient. */
static int64_t place_in_old(const jk_gradient *g, const jk_block *block, int64_t e)
{
    const jk_blocks_problem *p = &g->tally.op.plan.problem;
    int64_t strides[JASK_MAX_DIMS], at = 0;
    jk_strided_memory(&g->tally.op.job.input[1], &block->box, strides);
    for (int d = p->ndim - 1; d >= 0; d--) {
        if (p->output.strides[d] == 0)
            continue;
        at += e % block->box.len[d] * strides[d];
        e /= block->box.len[d];
    }
    return at;
}

static jask_status finish(void *user, const jk_block *block, const jk_tally *tallies, int64_t count,
                          jask_error *err)
{
    const jk_gradient *g = user;
    jask_dtype dtype = g->operand->layout.dtype;
    size_t size = jask_dtype_size(dtype);
    int parts = g->tally.complex;
    (void)err;
    for (int64_t e = 0; e < count; e++) {
        char *out = (char *)block->output + (size_t)e * size;
        double old[2], value[2];
        float narrow[2];
        if (g->old)
            jk_convert(1, dtype, (char *)block->input[1] + (size_t)place_in_old(g, block, e) * size,
                       parts == 2 ? JASK_C128 : JASK_F64, old);
        for (int i = 0; i < parts; i++) {
            value[i] = part_of(g, g->old ? old : NULL, i, &tallies[e * g->tally.lanes + i]);
            narrow[i] = (float)value[i];
        }
        if (dtype == JASK_F64 || dtype == JASK_C128)
            memcpy(out, value, size);
        else
            jk_convert(1, parts == 2 ? JASK_C64 : JASK_F32, narrow, dtype, out);
    }
    return JASK_OK;
}

static jask_status plan_sum(jk_gradient *g, jask_context *ctx, jask_error *err)
{
    jk_block_op *op = &g->tally.op;
    const jk_layout *dd = &g->dd->layout;
    jask_status st;
    op->ctx = ctx;
    op->name = "add_backward";
    op->dtype = g->operand->layout.dtype;
    op->precision = "f64";
    op->problem.ndim = dd->ndim;
    memcpy(op->problem.shape, dd->shape, sizeof op->problem.shape);
    op->empty = dd->elements == 0;
    op->read[0] = g->dd;
    op->read[1] = g->old;
    g->tally.parts = JK_TALLY_SUM;
    g->tally.finish = finish;
    g->tally.user = g;
    st = jk_strided_of(g->dd, "dD", dd->ndim, dd->shape, &op->job.input[0], err);
    if (!st && g->old)
        st = jk_strided_of(g->old, "the old gradient", dd->ndim, dd->shape, &op->job.input[1], err);
    if (!st)
        st = jk_strided_of(g->result, "the gradient", dd->ndim, dd->shape, &op->job.output, err);
    op->problem.output.bytes = (int)jask_dtype_size(op->dtype);
    return st ? st : jk_tally_op_plan(&g->tally, err);
}

/* Sums over nothing are zero: then the gradient is the old one. */
static jask_status make_gradient(jk_gradient *g, jask_context *ctx, jask_error *err)
{
    const jk_layout *x = &g->operand->layout;
    bool nothing = g->dd->layout.elements == 0 && x->elements > 0;
    jask_status st;
    g->report.struct_size = sizeof g->report;
    if (same_shape(x, &g->dd->layout) || (nothing && g->old)) {
        jask_add_args args;
        jask_add_args_init(&args, sizeof args);
        args.alpha = nothing ? 0 : g->factor;
        args.beta = g->old ? 1 : 0;
        args.output = g->output;
        return jk_add_uncommitted(ctx, nothing ? g->old : g->dd, g->old ? g->old : g->dd, &args,
                                  &g->result, &g->report, err);
    }
    st = jask_array_create(ctx, g->output, x->dtype, x->ndim, x->shape, &g->result, err);
    if (!st)
        st = plan_sum(g, ctx, err);
    return st ? st : jk_block_op_run(&g->tally.op, g->result, &g->report, err);
}

/* ---- the API ---- */

/* Both gradients as one operation, whose plan is that of the first with the bytes of both. */
static void join_reports(const jk_gradient *g, int count, jask_report *out)
{
    size_t size = out->struct_size;
    jask_report sum = g[0].report;
    if (count == 2) {
        const jask_report *more = &g[1].report;
        jk_io_cost_add(&sum.io, &more->io);
        jk_io_cost_add(&sum.planned, &more->planned);
        sum.seconds += more->seconds;
        sum.read_seconds += more->read_seconds;
        sum.compute_seconds += more->compute_seconds;
        sum.write_seconds += more->write_seconds;
        sum.stall_seconds += more->stall_seconds;
        sum.plan.steps += more->plan.steps;
        sum.plan.tiles += more->plan.tiles;
        sum.plan.h2d_bytes += more->plan.h2d_bytes;
        sum.plan.h2d_pages += more->plan.h2d_pages;
        sum.plan.d2h_bytes += more->plan.d2h_bytes;
        sum.plan.d2h_pages += more->plan.d2h_pages;
        sum.plan.file_read_bytes += more->plan.file_read_bytes;
        sum.plan.file_write_bytes += more->plan.file_write_bytes;
        if (more->plan.peak_bytes > sum.plan.peak_bytes) {
            sum.plan.peak_bytes = more->plan.peak_bytes;
            sum.peak_device_bytes = more->peak_device_bytes;
            sum.peak_host_bytes = more->peak_host_bytes;
        }
    }
    memset(sum.op, 0, sizeof sum.op);
    memcpy(sum.op, "add_backward", sizeof "add_backward");
    jk_struct_out(out, size, &sum, sizeof sum);
}

/* Names are given when all that can fail has been done. */
static jask_status commit(jk_gradient *g, int count, jask_error *err)
{
    jask_status st = JASK_OK;
    for (int i = 0; !st && i < count; i++)
        if (g[i].output)
            st = jk_array_flush(g[i].result, err);
    for (int i = 0; !st && i < count; i++)
        if (g[i].output)
            st = jk_array_publish(g[i].result, err);
    return st;
}

static jask_status check(const jask_array *a, const jask_array *b, const jask_array *dd,
                         jask_error *err)
{
    int ndim;
    int64_t shape[JASK_MAX_DIMS];
    jask_status st;
    if (!a || !b || !dd)
        return jk_fail(err, JASK_ERR_ARG, "A, B and dD are needed");
    st = jk_broadcast(a, b, &ndim, shape, err);
    if (!st && (ndim != dd->layout.ndim ||
                memcmp(shape, dd->layout.shape, (size_t)ndim * sizeof *shape) != 0)) {
        char mine[256], theirs[256];
        st = jk_fail(err, JASK_ERR_ARG, "dD '%s' is %s, but A + B is %s", dd->path,
                     jk_shape_text(dd->layout.ndim, dd->layout.shape, mine, sizeof mine),
                     jk_shape_text(ndim, shape, theirs, sizeof theirs));
    }
    return st;
}

/* What is asked for; one gradient with both terms where A and B are one array. */
static int list_gradients(const jask_array *a, const jask_array *b, const jask_array *dd,
                          const jask_add_backward_args *args, const bool wanted[2],
                          jk_gradient out[2])
{
    bool one = jk_array_same_file(a, b) && a->layout.data_offset == b->layout.data_offset &&
               same_shape(&a->layout, &b->layout);
    int count = 0;
    if (wanted[0])
        out[count++] = (jk_gradient){.name = "A",
                                     .operand = a,
                                     .dd = dd,
                                     .old = args->old_da,
                                     .factor = args->alpha + (one ? args->beta : 0),
                                     .output = args->da};
    if (wanted[1])
        out[count++] = (jk_gradient){.name = "B",
                                     .operand = b,
                                     .dd = dd,
                                     .old = args->old_db,
                                     .factor = args->beta + (one ? args->alpha : 0),
                                     .output = args->db};
    return count;
}

jask_status jask_add_backward(jask_context *ctx, const jask_array *a, const jask_array *b,
                              const jask_array *dd, const jask_add_backward_args *args,
                              jask_array **out_da, jask_array **out_db, jask_report *report,
                              jask_error *err)
{
    jask_add_backward_args mine;
    jk_gradient g[2];
    jask_context *held = NULL;
    jask_array **places[2] = {out_da, out_db};
    int count = 0;
    jask_status st = check(a, b, dd, err);
    jask_add_backward_args_init(&mine, sizeof mine);
    jk_struct_in(&mine, sizeof mine, args);
    if (!st)
        st = jk_context_get(ctx, &held, err);
    if (!st) {
        bool wanted[2] = {mine.da || out_da, mine.db || out_db};
        count = list_gradients(a, b, dd, &mine, wanted, g);
        if (!wanted[0])
            places[0] = places[1];
        if (count == 0)
            st = jk_fail(err, JASK_ERR_ARG,
                         "no gradient has a place to go: name one, or take it as an array");
    }
    for (int i = 0; !st && i < count; i++)
        st = check_types(&g[i], err);
    for (int i = 0; !st && i < count; i++)
        st = make_gradient(&g[i], held, err);
    if (!st)
        st = commit(g, count, err);
    if (!st && report)
        join_reports(g, count, report);
    for (int i = 0; i < count; i++) {
        if (!st && places[i]) {
            *places[i] = g[i].result;
            g[i].result = NULL;
        }
        jask_array_close(g[i].result);
    }
    jk_context_put(held);
    return st;
}
