/* jask_reduce and jask_stats. */
#include "kernels/host_elements.h"
#include "runtime/dtype.h"
#include "runtime/tally_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A reduction that has been checked and planned, but not begun. */
typedef struct jk_reduce {
    jk_tally_op tally;
    jask_reduce_args args;
    jask_dtype from, dtype; /* of A, of the result */
    int64_t reduced;        /* elements that go into one of the result */
    int ndim;               /* of the result */
    int64_t shape[JASK_MAX_DIMS];
} jk_reduce;

void jask_reduce_args_init(jask_reduce_args *args, size_t struct_size)
{
    jask_reduce_args fresh = {.axis = JASK_ALL_AXES};
    jk_struct_out(args, struct_size, &fresh, sizeof fresh);
}

static void read_args(jk_reduce *r, const jask_reduce_args *args)
{
    jask_reduce_args_init(&r->args, sizeof r->args);
    jk_struct_in(&r->args, sizeof r->args, args);
}

static bool is_extreme(jask_reduction reduction)
{
    return reduction == JASK_MIN || reduction == JASK_MAX;
}

static bool is_whole(jask_dtype dtype)
{
    return jk_dtype_kind(dtype) == JK_SIGNED || jk_dtype_kind(dtype) == JK_UNSIGNED;
}

static jask_dtype result_type(jask_reduction reduction, jask_dtype from)
{
    if (is_extreme(reduction))
        return from;
    if (reduction == JASK_SUM && is_whole(from))
        return jk_dtype_kind(from) == JK_SIGNED ? JASK_I64 : JASK_U64;
    return jk_dtype_kind(from) == JK_COMPLEX && reduction != JASK_NORM ? JASK_C128 : JASK_F64;
}

static jask_status check(jk_reduce *r, const jask_array *a, jask_error *err)
{
    const jk_layout *layout = &a->layout;
    if (r->args.reduction < JASK_SUM || r->args.reduction > JASK_NORM)
        return jk_fail(err, JASK_ERR_ARG, "%d is no reduction", (int)r->args.reduction);
    if (is_extreme(r->args.reduction) && jk_dtype_kind(layout->dtype) == JK_COMPLEX)
        return jk_fail(err, JASK_ERR_UNSUPPORTED, "'%s': %s has no least and no greatest", a->path,
                       jask_dtype_name(layout->dtype));
    if (r->args.axis != JASK_ALL_AXES) {
        int axis = r->args.axis < 0 ? r->args.axis + layout->ndim : r->args.axis;
        if (axis < 0 || axis >= layout->ndim)
            return jk_fail(err, JASK_ERR_ARG, "'%s' has %d dimensions and no axis %d", a->path,
                           layout->ndim, r->args.axis);
        r->args.axis = axis;
    }
    return JASK_OK;
}

/* The space is A's; the result lacks what is reduced. */
static void describe(jk_reduce *r, const jask_array *a)
{
    const jk_layout *layout = &a->layout;
    jk_block_op *op = &r->tally.op;
    int64_t stride = 1;
    r->from = layout->dtype;
    r->dtype = result_type(r->args.reduction, r->from);
    r->reduced = 1;
    op->problem.ndim = layout->ndim;
    memcpy(op->problem.shape, layout->shape, sizeof op->problem.shape);
    for (int d = 0; d < layout->ndim; d++) {
        bool reduced = r->args.axis == JASK_ALL_AXES || r->args.axis == d;
        op->empty = op->empty || layout->shape[d] == 0;
        if (reduced)
            r->reduced *= layout->shape[d];
        else
            r->shape[r->ndim++] = layout->shape[d];
    }
    for (int d = layout->ndim - 1; d >= 0; d--) {
        bool reduced = r->args.axis == JASK_ALL_AXES || r->args.axis == d;
        op->job.output.strides[d] = reduced || layout->shape[d] == 1 ? 0 : stride;
        stride *= reduced ? 1 : layout->shape[d];
    }
    op->problem.output.bytes = (int)jask_dtype_size(r->dtype);
    op->job.output.dtype = r->dtype;
    op->name = "reduce";
    op->dtype = r->dtype;
    op->precision = is_whole(r->from) ? jask_dtype_name(r->dtype) : "f64";
    op->output = r->args.output;
    op->read[0] = a;
}

/* ---- results ---- */

static jask_status finish_whole(const jk_reduce *r, jk_int128 value, void *out, jask_error *err)
{
    uint64_t bits = (uint64_t)value;
    bool fits = r->dtype == JASK_U64 ? value >= 0 && value <= (jk_int128)UINT64_MAX
                                     : value >= INT64_MIN && value <= INT64_MAX;
    if (!fits)
        return jk_fail(err, JASK_ERR_ARG, "a sum of '%s' does not fit %s",
                       r->tally.op.job.input[0].path, jask_dtype_name(r->dtype));
    memcpy(out, &bits, sizeof bits);
    return JASK_OK;
}

/* An extreme is a value of A's type; of a long integer it is in another place. */
static void finish_extreme(const jk_reduce *r, const jk_tally *t, void *out)
{
    bool least = r->args.reduction == JASK_MIN;
    double value = t->nans > 0 ? (double)NAN : least ? t->min : t->max;
    uint64_t bits = (uint64_t)(least ? t->whole_min : t->whole_max);
    if (r->from == JASK_I64 || r->from == JASK_U64) {
        memcpy(out, &bits, sizeof bits);
    } else if (is_whole(r->from)) {
        int64_t whole = (int64_t)value;
        jk_convert(1, JASK_I64, &whole, r->from, out);
    } else {
        float narrow = (float)value;
        if (r->from == JASK_F64)
            memcpy(out, &value, sizeof value);
        else
            jk_convert(1, JASK_F32, &narrow, r->from, out);
    }
}

/* Sums and means have a part, complex ones two. */
static double finish_part(const jk_reduce *r, const jk_tally *t)
{
    bool is_long = r->from == JASK_I64 || r->from == JASK_U64;
    double sum = is_long ? (double)t->whole : t->sum + t->rest;
    return r->args.reduction == JASK_MEAN ? sum / (double)r->reduced : sum;
}

static jask_status finish_one(const jk_reduce *r, const jk_tally *t, char *out, jask_error *err)
{
    double value[2];
    if (is_extreme(r->args.reduction)) {
        finish_extreme(r, t, out);
        return JASK_OK;
    }
    if (r->args.reduction == JASK_SUM && is_whole(r->from)) {
        bool is_long = r->from == JASK_I64 || r->from == JASK_U64;
        jk_int128 sum = is_long ? t->whole : (jk_int128)t->sum + (jk_int128)t->rest;
        return finish_whole(r, sum, out, err);
    }
    if (r->args.reduction == JASK_NORM) {
        jk_tally both = t[0];
        if (r->tally.complex == 2)
            jk_tally_join(&both, &t[1]);
        value[0] = jk_tally_norm(&both);
    } else {
        for (int part = 0; part < r->tally.complex; part++)
            value[part] = finish_part(r, &t[part]);
    }
    memcpy(out, value, jask_dtype_size(r->dtype));
    return JASK_OK;
}

static jask_status finish(void *user, const jk_block *block, const jk_tally *tallies, int64_t count,
                          jask_error *err)
{
    const jk_reduce *r = user;
    size_t size = jask_dtype_size(r->dtype);
    jask_status st = JASK_OK;
    for (int64_t e = 0; !st && e < count; e++)
        st = finish_one(r, tallies + e * r->tally.lanes, (char *)block->output + (size_t)e * size,
                        err);
    return st;
}

/* Nothing is in the space, but the result may have elements: sums of nothing. */
static jask_status fill_empty(jk_reduce *r, jask_array *d, jask_error *err)
{
    double nan[2] = {(double)NAN, 0};
    uint64_t elements = d->layout.elements;
    jask_status st = JASK_OK;
    if (elements == 0 || r->args.reduction == JASK_SUM || r->args.reduction == JASK_NORM)
        return JASK_OK; /* a new array is all zero */
    if (is_extreme(r->args.reduction))
        return jk_fail(err, JASK_ERR_ARG, "'%s': nothing has no least and no greatest",
                       r->tally.op.job.input[0].path);
    for (uint64_t e = 0; !st && e < elements; e++)
        st = jask_array_write(d, e, 1, nan, err);
    return st;
}

static jask_status prepare(jk_reduce *r, jask_context *ctx, const jask_array *a,
                           const jask_reduce_args *args, jask_error *err)
{
    jk_block_op *op = &r->tally.op;
    jask_status st;
    memset(r, 0, sizeof *r);
    if (!a)
        return jk_fail(err, JASK_ERR_ARG, "A is NULL");
    read_args(r, args);
    st = jk_context_get(ctx, &op->ctx, err);
    if (!st)
        st = check(r, a, err);
    if (st)
        return st;
    describe(r, a);
    r->tally.finish = finish;
    r->tally.user = r;
    r->tally.parts = is_extreme(r->args.reduction)    ? JK_TALLY_RANGE
                     : r->args.reduction == JASK_NORM ? JK_TALLY_SQUARES
                                                      : JK_TALLY_SUM;
    st = jk_strided_of(a, "A", op->problem.ndim, op->problem.shape, &op->job.input[0], err);
    return st ? st : jk_tally_op_plan(&r->tally, err);
}

jask_status jask_reduce(jask_context *ctx, const jask_array *a, const jask_reduce_args *args,
                        jask_array **out_d, jask_report *report, jask_error *err)
{
    jk_reduce r;
    jk_block_op *op = &r.tally.op;
    jask_array *d = NULL;
    jask_status st = prepare(&r, ctx, a, args, err);
    if (!st && !r.args.output && !out_d)
        st = jk_fail(err, JASK_ERR_ARG,
                     "the result has nowhere to go: name an output, or take it as an array");
    if (!st)
        st = jask_array_create(op->ctx, r.args.output, r.dtype, r.ndim, r.shape, &d, err);
    if (!st && op->empty)
        st = fill_empty(&r, d, err);
    if (!st) {
        op->job.output.file = jk_array_file(d);
        op->job.output.path = d->path;
        op->job.output.offset = d->layout.data_offset;
        st = jk_block_op_run(op, d, report, err);
    }
    if (!st && out_d) {
        *out_d = d;
        d = NULL;
    }
    jask_array_close(d);
    jk_context_put(op->ctx);
    return st;
}

/* ---- statistics ---- */

/* The first elements, in logical order, that are NaN and that are infinite. */
static jask_status find_first(const jask_array *a, jask_statistics *s, jask_error *err)
{
    enum { CHUNK = 4096 };
    bool complex = jk_dtype_kind(a->layout.dtype) == JK_COMPLEX;
    double *wide = malloc(3 * CHUNK * sizeof(double[2]));
    char *raw = (char *)(wide + 4 * CHUNK);
    jask_status st = JASK_OK;
    if (!wide)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to look at '%s'", a->path);
    for (uint64_t at = 0; !st && at < s->elements; at += CHUNK) {
        uint64_t left = s->elements - at, n = left < CHUNK ? left : CHUNK;
        if ((!s->nans || s->first_nan >= 0) && (!s->infinities || s->first_infinity >= 0))
            break;
        st = jask_array_read(a, at, n, raw, err);
        if (st)
            break;
        jk_convert((int64_t)n, a->layout.dtype, raw, complex ? JASK_C128 : JASK_F64, wide);
        for (uint64_t i = 0; i < n * (complex ? 2 : 1); i++) {
            int64_t index = (int64_t)(at + i / (complex ? 2 : 1));
            if (isnan(wide[i]) && s->first_nan < 0)
                s->first_nan = index;
            if (isinf(wide[i]) && s->first_infinity < 0)
                s->first_infinity = index;
        }
    }
    free(wide);
    return st;
}

static void sum_up(const jk_reduce *r, jk_tally *t, jask_statistics *s)
{
    bool is_long = r->from == JASK_I64 || r->from == JASK_U64, complex = r->tally.complex == 2;
    s->sum = is_long ? (double)t->whole : t->sum + t->rest;
    s->mean = s->sum / (double)s->elements;
    s->sum_imaginary = complex ? t[1].sum + t[1].rest : 0;
    if (complex)
        jk_tally_join(&t[0], &t[1]);
    s->norm = jk_tally_norm(t);
    s->nans = (uint64_t)t->nans;
    s->infinities = (uint64_t)t->infinities;
    s->min = s->max = (double)NAN;
    if (is_long) {
        s->min = (double)t->whole_min;
        s->max = (double)t->whole_max;
    } else if (!complex && t->min <= t->max) {
        s->min = t->min;
        s->max = t->max;
    }
}

jask_status jask_stats(jask_context *ctx, const jask_array *a, jask_statistics *out,
                       size_t struct_size, jask_error *err)
{
    jk_reduce r;
    jk_tally all[JK_TALLY_LANES];
    jask_report report = {.struct_size = sizeof report};
    jask_statistics s = {.struct_size = sizeof s, .first_nan = -1, .first_infinity = -1};
    jask_status st = prepare(&r, ctx, a, NULL, err);
    if (!st) {
        for (int i = 0; i < JK_TALLY_LANES; i++)
            jk_tally_clear(&all[i]);
        r.tally.op.name = "stats";
        r.tally.op.problem.output.bytes = r.tally.op.problem.output.work_bytes = 0;
        r.tally.parts = JK_TALLY_SUM | JK_TALLY_SQUARES | JK_TALLY_RANGE;
        r.tally.all = all;
        st = jk_tally_op_plan(&r.tally, err);
    }
    if (!st)
        st = jk_block_op_run(&r.tally.op, NULL, &report, err);
    if (!st) {
        s.elements = a->layout.elements;
        s.seconds = report.seconds;
        s.file_read_bytes = report.io.file_read_bytes;
        sum_up(&r, all, &s);
        if (s.nans + s.infinities > 0)
            st = find_first(a, &s, err);
    }
    if (!st)
        jk_struct_out(out, struct_size, &s, sizeof s);
    jk_context_put(r.tally.op.ctx);
    return st;
}
