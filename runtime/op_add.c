/* jask_add: from arguments to a committed result. */
#include "kernels/host_elements.h"
#include "kernels/host_numbers.h"
#include "runtime/block_op.h"
#include "runtime/dtype.h"
#include "runtime/plan_api.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whole numbers up to this are exact in a double, and products with 64-bit numbers in 128 bits. */
#define FACTOR_MAX 0x1p53

/* A sum that has been checked and planned, but not begun. Term 0 is alpha * A, term 1 beta * B; a
 * factor of 0 leaves its array unread. */
typedef struct jk_add {
    jk_block_op op;
    jask_add_args args;
    double factor[2];
    jask_dtype dtype, work; /* of the result; in which is computed */
    int ndim;               /* of the result */
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
    bool narrow = add->work == JASK_F32 || add->work == JASK_C64;
    if (is_whole_type(add->dtype)) {
        if (factor == floor(factor) && fabs(factor) <= FACTOR_MAX)
            return JASK_OK;
        return jk_fail(err, JASK_ERR_ARG,
                       "%s is %.17g, but a factor of %s must be a whole number up to 2^53", name,
                       factor, jask_dtype_name(add->dtype));
    }
    if (narrow ? isfinite((float)factor) : isfinite(factor))
        return JASK_OK;
    return jk_fail(err, JASK_ERR_ARG, "%s is %g, but must be a finite number in %s", name, factor,
                   jask_dtype_name(add->work));
}

static jask_status choose_types(jk_add *add, const jask_array *a, const jask_array *b,
                                jask_error *err)
{
    jask_dtype x = a->layout.dtype, y = b->layout.dtype, asked = add->args.dtype;
    jask_status st;
    if (asked == JASK_DTYPE_NONE) {
        st = jask_dtype_promote(x, y, &add->dtype, err);
        if (st)
            return jk_fail_in(err, st, "A '%s' and B '%s'", a->path, b->path);
    } else if (jask_dtype_size(asked) == 0 || !jk_dtype_holds(asked, x) ||
               !jk_dtype_holds(asked, y)) {
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "a result in %s cannot hold every value of A '%s', %s, and B '%s', %s",
                       jask_dtype_name(asked), a->path, jask_dtype_name(x), b->path,
                       jask_dtype_name(y));
    } else {
        add->dtype = asked;
    }
    add->work = work_type(add->dtype);
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
    if (x->dtype != add->dtype || x->ndim != add->ndim ||
        memcmp(x->shape, add->shape, (size_t)x->ndim * sizeof *x->shape) != 0)
        return jk_fail(err, JASK_ERR_ARG,
                       "in place the result must have A's shape and type, but A '%s' is %s and the "
                       "result %s, or their shapes differ",
                       a->path, jask_dtype_name(x->dtype), jask_dtype_name(add->dtype));
    if (overlap(a, b) && !same_layout(a, b))
        return jk_fail(err, JASK_ERR_ARG,
                       "A '%s' and B '%s' overlap in one file without being the same: in place, "
                       "the result would depend on the order of writing",
                       a->path, b->path);
    return JASK_OK;
}

/* ---- planning ---- */

/* Whether windows of the array come as the sum is computed: dense, one row-major box each. */
static bool is_dense(const jk_blocks_problem *p, const jk_blocks_operand *o)
{
    for (int d = 0; d < p->ndim; d++)
        if (o->strides[d] == 0 || (d > 0 && o->strides[d] > o->strides[d - 1]))
            return false;
    return true;
}

static void describe_result(jk_add *add, const jask_array *a)
{
    jk_strided *out = &add->op.job.output;
    int64_t stride = 1;
    *out = (jk_strided){.dtype = add->dtype, .ndim = add->ndim};
    add->op.problem.output.bytes = (int)jask_dtype_size(add->dtype);
    for (int d = add->ndim - 1; d >= 0; d--) {
        int64_t size = (int64_t)jask_dtype_size(add->dtype);
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
        if (add->factor[i] == 0)
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
        bool as_read = op->job.input[i].dtype == add->work && is_dense(&op->problem, o);
        if (o->bytes > 0 && !as_read)
            o->spread_bytes = (int)jask_dtype_size(add->work);
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
    add->factor[0] = add->args.alpha;
    add->factor[1] = add->args.beta;
    add->fortran = add->args.in_place && a->layout.fortran_order;
    add->op.name = "add";
    add->op.dtype = add->dtype;
    add->op.precision = jask_dtype_name(add->work);
    add->op.output = add->args.output;
    add->op.in_place = add->args.in_place != 0;
    return make_plan(add, arrays, err);
}

/* ---- computing ---- */

/* A term of the block as a dense box in the type that is computed in. */
static const void *term(const jk_add *add, const jk_block *block, int i)
{
    const jk_blocks *plan = &add->op.plan;
    const jk_blocks_operand *o = &plan->problem.input[i];
    const jk_strided *array = &add->op.job.input[i];
    int64_t n = jk_box_elems(plan, block->box.len), strides[JASK_MAX_DIMS];
    size_t size = jask_dtype_size(array->dtype);
    char *work = block->input_work[i],
         *spread = work + (size_t)n * ((size_t)o->spread_bytes - size);
    if (o->spread_bytes == 0)
        return block->input[i];
    if (is_dense(&plan->problem, o)) {
        jk_convert(n, array->dtype, block->input[i], add->work, work);
        return work;
    }
    /* At the end of the memory: from there it can grow into all of it. */
    jk_strided_memory(array, &block->box, strides);
    jk_spread(plan->problem.ndim, block->box.len, size, block->input[i], strides, spread);
    if (array->dtype != add->work)
        jk_convert(n, array->dtype, spread, add->work, work);
    return work;
}

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
        jk_shape_text(add->ndim, at, text, sizeof text), jask_dtype_name(add->dtype));
}

static jask_status add_whole(const jk_add *add, const jk_block *block, const double factor[2],
                             const void *const x[2], jask_error *err)
{
    int64_t n = jk_box_elems(&add->op.plan, block->box.len);
    int64_t first = jk_axpby_integer(add->dtype, n, (int64_t)factor[0], x[0], (int64_t)factor[1],
                                     x[1], add->args.overflow, block->output);
    return first < n && add->args.overflow == JASK_OVERFLOW_REFUSE
               ? fail_overflow(add, block, first, err)
               : JASK_OK;
}

/* Complex numbers are two real ones, because factors are real. */
static void add_real(const jk_add *add, int64_t n, const double factor[2], const void *const x[2],
                     void *out)
{
    if (jk_dtype_kind(add->work) == JK_COMPLEX)
        n *= 2;
    if (add->work == JASK_F32 || add->work == JASK_C64)
        jk_axpby_f32(n, (float)factor[0], x[0], (float)factor[1], x[1], out);
    else
        jk_axpby_f64(n, factor[0], x[0], factor[1], x[1], out);
}

static jask_status compute(void *user, const jk_block *block, jask_error *err)
{
    const jk_add *add = user;
    int64_t n = jk_box_elems(&add->op.plan, block->box.len);
    const void *x[2] = {NULL, NULL};
    double factor[2] = {0, 0};
    int terms = 0, first = -1;
    for (int i = 0; i < 2; i++) {
        if (add->factor[i] == 0)
            continue;
        first = first < 0 ? i : first;
        x[terms] = term(add, block, i);
        factor[terms++] = add->factor[i];
    }
    if (terms == 0)
        memset(block->output, 0, (size_t)n * jask_dtype_size(add->dtype));
    else if (is_whole_type(add->dtype))
        return add_whole(add, block, factor, x, err);
    else if (add->work == add->dtype)
        add_real(add, n, factor, x, block->output);
    else {
        /* The term is a copy, because its type is another. */
        add_real(add, n, factor, x, block->input_work[first]);
        jk_convert(n, add->work, block->input_work[first], add->dtype, block->output);
    }
    return JASK_OK;
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
    st = jask_array_create(add->op.ctx, add->args.output, add->dtype, add->ndim, add->shape, out,
                           err);
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
