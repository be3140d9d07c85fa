/* jask_add: from arguments to a committed result. */
#include "runtime/add_block.h"
#include "runtime/block_op.h"
#include "runtime/dtype.h"
#include "runtime/plan_api.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whole numbers up to this are exact in a double, and products with 64-bit numbers in 128 bits. */
#define FACTOR_MAX 0x1p53

/* A sum that has been checked and planned, but not begun. Term 0 is alpha * A, term 1 beta * B. */
typedef struct jk_add {
    jk_block_op op;
    jask_add_args args;
    jk_add_terms terms;
    int ndim; /* of the result */
    int64_t shape[JASK_MAX_DIMS];
    bool fortran;     /* the order of the result */
    jk_file in_place; /* the file of A, opened for writing */
} jk_add;

void jask_add_args_init(jask_add_args *args, size_t struct_size)
{
    jask_add_args fresh = {.alpha = 1, .beta = 1};
    jk_struct_out(args, struct_size, &fresh, sizeof fresh);
}

static void read_args(jk_add *add, const jask_add_args *args)
{
    jask_add_args_init(&add->args, sizeof add->args);
    jk_struct_in(&add->args, sizeof add->args, args);
}

static bool is_whole_type(jask_dtype dtype)
{
    return jk_dtype_kind(dtype) == JK_SIGNED || jk_dtype_kind(dtype) == JK_UNSIGNED;
}

/* f16 and bf16 are computed in f32 and rounded once, at the end. */
static jask_dtype work_type(jask_dtype dtype)
{
    return dtype == JASK_F16 || dtype == JASK_BF16 ? JASK_F32 : dtype;
}

static jask_status check_factor(const jk_add *add, const char *name, double factor, jask_error *err)
{
    bool narrow = add->terms.work == JASK_F32 || add->terms.work == JASK_C64;
    if (is_whole_type(add->terms.dtype)) {
        if (factor == floor(factor) && fabs(factor) <= FACTOR_MAX)
            return JASK_OK;
        return jk_fail(err, JASK_ERR_ARG,
                       "%s is %.17g, but a factor of %s must be a whole number up to 2^53", name,
                       factor, jask_dtype_name(add->terms.dtype));
    }
    if (narrow ? isfinite((float)factor) : isfinite(factor))
        return JASK_OK;
    return jk_fail(err, JASK_ERR_ARG, "%s is %g, but must be a finite number in %s", name, factor,
                   jask_dtype_name(add->terms.work));
}

static jask_status choose_types(jk_add *add, const jask_array *a, const jask_array *b,
                                jask_error *err)
{
    jask_dtype x = a->layout.dtype, y = b->layout.dtype, asked = add->args.dtype;
    jask_status st;
    if (asked == JASK_DTYPE_NONE) {
        st = jask_dtype_promote(x, y, &add->terms.dtype, err);
        if (st)
            return jk_fail_in(err, st, "A '%s' and B '%s'", a->path, b->path);
    } else if (jask_dtype_size(asked) == 0 || !jk_dtype_holds(asked, x) ||
               !jk_dtype_holds(asked, y)) {
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "a result in %s cannot hold every value of A '%s', %s, and B '%s', %s",
                       jask_dtype_name(asked), a->path, jask_dtype_name(x), b->path,
                       jask_dtype_name(y));
    } else {
        add->terms.dtype = asked;
    }
    add->terms.work = work_type(add->terms.dtype);
    if (add->args.overflow < JASK_OVERFLOW_REFUSE || add->args.overflow > JASK_OVERFLOW_SATURATE)
        return jk_fail(err, JASK_ERR_ARG, "%d is no rule for overflow", (int)add->args.overflow);
    st = check_factor(add, "alpha", add->args.alpha, err);
    return st ? st : check_factor(add, "beta", add->args.beta, err);
}

/* ---- in place ---- */

static bool same_layout(const jask_array *a, const jask_array *b)
{
    const jk_layout *x = &a->layout, *y = &b->layout;
    return x->data_offset == y->data_offset && x->dtype == y->dtype &&
           x->big_endian == y->big_endian && x->ndim == y->ndim &&
           memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) == 0 &&
           memcmp(x->strides, y->strides, (size_t)x->ndim * sizeof *x->strides) == 0;
}

static bool overlap(const jask_array *a, const jask_array *b)
{
    const jk_layout *x = &a->layout, *y = &b->layout;
    return jk_array_same_file(a, b) && x->data_offset < y->data_offset + y->data_bytes &&
           y->data_offset < x->data_offset + x->data_bytes;
}

/* A takes the result: it must have its shape and type, and B may not lie across it. */
static jask_status check_in_place(const jk_add *add, const jask_array *a, const jask_array *b,
                                  jask_error *err)
{
    const jk_layout *x = &a->layout;
    if (add->args.output)
        return jk_fail(err, JASK_ERR_ARG, "in place there is no output to name: '%s'",
                       add->args.output);
    if (x->dtype != add->terms.dtype || x->ndim != add->ndim ||
        memcmp(x->shape, add->shape, (size_t)x->ndim * sizeof *x->shape) != 0)
        return jk_fail(err, JASK_ERR_ARG,
                       "in place the result must have A's shape and type, but A '%s' is %s and the "
                       "result %s, or their shapes differ",
                       a->path, jask_dtype_name(x->dtype), jask_dtype_name(add->terms.dtype));
    if (overlap(a, b) && !same_layout(a, b))
        return jk_fail(err, JASK_ERR_ARG,
                       "A '%s' and B '%s' overlap in one file without being the same: in place, "
                       "the result would depend on the order of writing",
                       a->path, b->path);
    return JASK_OK;
}

/* ---- planning ---- */

static void describe_result(jk_add *add, const jask_array *a)
{
    jk_strided *out = &add->op.job.output;
    int64_t stride = 1;
    *out = (jk_strided){.dtype = add->terms.dtype, .ndim = add->ndim};
    add->op.problem.output.bytes = (int)jask_dtype_size(add->terms.dtype);
    for (int d = add->ndim - 1; d >= 0; d--) {
        int64_t size = (int64_t)jask_dtype_size(add->terms.dtype);
        out->strides[d] = add->args.in_place ? a->layout.strides[d] / size : stride;
        if (add->shape[d] == 1)
            out->strides[d] = 0;
        stride *= add->shape[d];
    }
}

static jask_status make_plan(jk_add *add, const jask_array *const arrays[2], jask_error *err)
{
    static const char *const names[] = {"A", "B"};
    jk_block_op *op = &add->op;
    jask_status st = JASK_OK;
    op->problem.ndim = add->ndim;
    memcpy(op->problem.shape, add->shape, sizeof add->shape);
    for (int d = 0; d < add->ndim; d++)
        op->empty = op->empty || add->shape[d] == 0;
    describe_result(add, arrays[0]);
    for (int i = 0; !st && i < 2; i++) {
        if (add->terms.factor[i] == 0)
            continue;
        st = jk_strided_of(arrays[i], names[i], add->ndim, add->shape, &op->job.input[i], err);
        op->read[i] =
            add->args.in_place && jk_array_same_file(arrays[i], arrays[0]) ? NULL : arrays[i];
    }
    if (st)
        return st;
    jk_block_op_arrange(op);
    for (int i = 0; i < 2; i++) {
        jk_blocks_operand *o = &op->problem.input[i];
        if (o->bytes > 0 && !jk_add_in_order(&op->problem, o))
            o->spread_bytes = o->bytes;
    }
    return jk_block_op_plan(op, err);
}

static jask_status prepare(jk_add *add, jask_context *ctx, const jask_array *a, const jask_array *b,
                           const jask_add_args *args, jask_error *err)
{
    const jask_array *arrays[2] = {a, b};
    jask_status st;
    memset(add, 0, sizeof *add);
    add->in_place = JK_FILE_NONE;
    if (!a || !b)
        return jk_fail(err, JASK_ERR_ARG, "%s is NULL", a ? "B" : "A");
    read_args(add, args);
    st = jk_context_get(ctx, &add->op.ctx, err);
    if (!st)
        st = choose_types(add, a, b, err);
    if (!st)
        st = jk_broadcast(a, b, &add->ndim, add->shape, err);
    if (!st && add->args.in_place)
        st = check_in_place(add, a, b, err);
    if (st)
        return st;
    add->terms.factor[0] = add->args.alpha;
    add->terms.factor[1] = add->args.beta;
    add->fortran = add->args.in_place && a->layout.fortran_order;
    add->op.name = "add";
    add->op.dtype = add->terms.dtype;
    add->terms.overflow = add->args.overflow;
    add->terms.input = add->op.job.input;
    add->op.precision = jask_dtype_name(add->terms.work);
    add->op.output = add->args.output;
    add->op.in_place = add->args.in_place != 0;
    add->op.trace = add->args.trace;
    return make_plan(add, arrays, err);
}

/* ---- computing ---- */

static jask_status fail_overflow(const jk_add *add, const jk_block *block, int64_t index,
                                 jask_error *err)
{
    const jk_blocks *plan = &add->op.plan;
    int64_t at[JASK_MAX_DIMS];
    char text[256];
    for (int d = plan->problem.ndim - 1; d >= 0; d--) {
        at[d] = block->box.lo[d] + index % block->box.len[d];
        index /= block->box.len[d];
    }
    /* Its number in the order of the file. */
    index = 0;
    for (int d = 0; d < plan->problem.ndim; d++)
        index += at[d] * plan->problem.output.strides[d];
    for (int i = 0; i < add->ndim; i++) {
        int d = add->fortran ? i : add->ndim - 1 - i;
        at[d] = index % add->shape[d];
        index /= add->shape[d];
    }
    return jk_fail(
        err, JASK_ERR_ARG,
        "element %s of the sum does not fit %s: take a wider type for the result, or let "
        "it wrap or saturate",
        jk_shape_text(add->ndim, at, text, sizeof text), jask_dtype_name(add->terms.dtype));
}

static jask_status compute(void *user, const jk_block *block, jask_error *err)
{
    const jk_add *add = user;
    int64_t first = jk_add_block(&add->terms, &add->op.plan, block);
    return first < jk_box_elems(&add->op.plan, block->box.len) &&
                   add->args.overflow == JASK_OVERFLOW_REFUSE
               ? fail_overflow(add, block, first, err)
               : JASK_OK;
}

/* ---- the API ---- */

/* Where the sum goes: a new array, or A's own file. */
static jask_status open_result(jk_add *add, const jask_array *a, jask_array **out, jask_error *err)
{
    jk_strided *output = &add->op.job.output;
    jask_status st;
    if (add->args.in_place) {
        st = jk_file_reopen(jk_array_file(a), &add->in_place, err);
        output->file = &add->in_place;
        output->path = a->path;
        output->offset = a->layout.data_offset;
        output->swap = a->layout.big_endian != JK_HOST_BIG_ENDIAN;
        return st;
    }
    st = jask_array_create(add->op.ctx, add->args.output, add->terms.dtype, add->ndim, add->shape,
                           out, err);
    if (st)
        return st;
    output->file = jk_array_file(*out);
    output->path = (*out)->path;
    output->offset = (*out)->layout.data_offset;
    return JASK_OK;
}

jask_status jask_add_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                          const jask_add_args *args, jask_plan **out, jask_error *err)
{
    jk_add add;
    jask_status st = prepare(&add, ctx, a, b, args, err);
    if (!st)
        st = jk_blocks_wrap(&add.op.plan, out, err);
    jk_context_put(add.op.ctx);
    return st;
}

/* `commits` false leaves the naming to the caller. */
static jask_status run_add(jask_context *ctx, const jask_array *a, const jask_array *b,
                           const jask_add_args *args, bool commits, jask_array **out_d,
                           jask_report *report, jask_error *err)
{
    jask_array *d = NULL;
    jk_add add;
    jask_status st = prepare(&add, ctx, a, b, args, err);
    if (!st && !add.args.in_place && !add.args.output && !out_d)
        st = jk_fail(err, JASK_ERR_ARG,
                     "the sum has nowhere to go: name an output, or take the result as an array");
    if (!st && add.args.in_place && out_d)
        st = jk_fail(err, JASK_ERR_ARG, "in place the result is A: there is no other array");
    if (!st)
        st = open_result(&add, a, &d, err);
    if (!st) {
        add.op.job.compute = compute;
        add.op.job.user = &add;
        if (!commits)
            add.op.output = NULL;
        st = jk_block_op_run(&add.op, d, report, err);
    }
    if (!st && add.args.in_place && jk_context_sync(add.op.ctx))
        st = jk_file_sync(&add.in_place, err);
    if (!st && out_d) {
        *out_d = d;
        d = NULL;
    }
    jk_file_close(&add.in_place);
    jask_array_close(d);
    jk_context_put(add.op.ctx);
    return st;
}

jask_status jask_add(jask_context *ctx, const jask_array *a, const jask_array *b,
                     const jask_add_args *args, jask_array **out_d, jask_report *report,
                     jask_error *err)
{
    return run_add(ctx, a, b, args, true, out_d, report, err);
}

jask_status jk_add_uncommitted(jask_context *ctx, const jask_array *a, const jask_array *b,
                               const jask_add_args *args, jask_array **out, jask_report *report,
                               jask_error *err)
{
    return run_add(ctx, a, b, args, false, out, report, err);
}
