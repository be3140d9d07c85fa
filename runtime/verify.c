/* jask_dot_verify: from arrays to the check, which stands in verify_verdict.c. */
#include "runtime/verify.h"
#include "runtime/context.h"
#include "runtime/operand.h"
#include "runtime/product_types.h"
#include "runtime/system.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Calls of the progress callback, at least this far apart. */
#define PROGRESS_SECONDS 0.1

/* A verification of arrays. */
typedef struct check {
    jask_context *ctx;
    jask_dot_args args;
    jk_batches batches;
    jk_matrix first[JK_ARRAYS]; /* of the first batch, */
    jk_matrix now[JK_ARRAYS];   /* and of the one that is checked */
    jk_verify_matrix from[JK_ARRAYS];
    int64_t batch;
    jask_dtype dtype;  /* that elements are read in */
    jask_dtype output; /* see jk_verify_job */
    double start, told;
    _Atomic uint64_t bytes;
} check;

static jask_status read_window(void *user, const jk_window *window, void *dst, int64_t ld_elems,
                               jask_error *err)
{
    const jk_verify_matrix *from = user;
    return jk_matrix_read(from->matrix, window, dst, ld_elems, from->bytes, err);
}

static jk_verify_source source_of(check *c, int array)
{
    jk_verify_matrix *from = &c->from[array];
    const jk_matrix *m = from->matrix;
    if (c->dtype != JASK_C64 && c->dtype != JASK_C128)
        return (jk_verify_source){read_window, from, m->rows, m->cols, m->trans};
    return array == JK_ARRAY_B ? jk_verify_blocks(from) : jk_verify_pairs(from);
}

static void turn(void *user, int64_t batch)
{
    check *c = user;
    c->batch = batch;
    for (int i = 0; i < JK_ARRAYS; i++)
        c->now[i] = c->batches.count > 0 ? jk_batch_matrix(&c->batches, i, &c->first[i], batch)
                                         : c->first[i];
}

static jask_status tell(void *user, double done, double total, jask_error *err)
{
    check *c = user;
    double now = jk_clock_seconds();
    double fraction = ((double)c->batch + done / total) / (double)c->batches.count;
    double seconds = now - c->start;
    int64_t rows = c->batches.count * jk_wanted_rows(&c->first[JK_ARRAY_A]);
    jask_progress progress = {
        .struct_size = sizeof progress,
        .steps_done = (int64_t)(fraction * (double)rows),
        .steps_total = rows,
        .fraction = fraction,
        .file_read_bytes = c->bytes,
        .seconds = seconds,
        .seconds_left = fraction > 0 ? seconds / fraction - seconds : -1,
    };
    if (fraction < 1 && now - c->told < PROGRESS_SECONDS)
        return JASK_OK;
    c->told = now;
    return jk_context_progress(c->ctx, &progress, err);
}

/* Elements are read in the type of the sums, or a wider one. */
static jask_status choose_types(check *c, jask_dtype of_d, bool one_sum, jask_error *err)
{
    const jk_device_info nothing = {.name = ""};
    jk_matrix *m = c->first;
    jk_product_types types;
    jask_status st = jk_product_types_of(m[JK_ARRAY_A].dtype, m[JK_ARRAY_B].dtype, of_d, one_sum,
                                         &nothing, &types, err);
    if (st)
        return st;
    c->dtype = types.compute;
    c->output = types.output != types.compute ? types.output : JASK_DTYPE_NONE;
    for (int i = 0; i < JK_ARRAYS; i++)
        m[i].memory = c->dtype;
    return JASK_OK;
}

static jask_status take_factors(check *c, const jask_array *a, const jask_array *b, jk_lacks lacks,
                                jask_error *err)
{
    jk_matrix *m = c->first;
    bool turn_a = c->args.transpose_a != 0 && !lacks.rows;
    bool turn_b = c->args.transpose_b != 0 && !lacks.cols;
    jk_operand of_a, of_b;
    jask_status st = jk_operand_of(a, (jk_lacks){.rows = lacks.rows}, turn_a, "A", &of_a, err);
    if (!st)
        st = jk_operand_of(b, (jk_lacks){.cols = lacks.cols}, turn_b, "B", &of_b, err);
    if (st)
        return st;
    m[JK_ARRAY_A] = of_a.matrix;
    m[JK_ARRAY_B] = of_b.matrix;
    m[JK_ARRAY_A].conj = c->args.transpose_a == JASK_CONJUGATE_TRANSPOSE;
    m[JK_ARRAY_B].conj = c->args.transpose_b == JASK_CONJUGATE_TRANSPOSE;
    st = jk_check_inner(&m[JK_ARRAY_A], &m[JK_ARRAY_B], err);
    return st ? st : jk_batches_of(&of_a, &of_b, &c->batches, err);
}

/* C and D have the shape of the product. */
static jask_status take_result(check *c, int which, const jask_array *array, jk_lacks lacks,
                               int ndim, const int64_t *shape, jask_error *err)
{
    const char *what = which == JK_ARRAY_C ? "C" : "D";
    uint64_t elements = (uint64_t)jk_wanted_rows(&c->first[JK_ARRAY_A]) *
                        (uint64_t)jk_wanted_cols(&c->first[JK_ARRAY_B]);
    jk_operand op;
    jask_status st = jk_check_shape(array, what, "the product", ndim, shape, err);
    if (!st)
        st = jk_operand_of(array, lacks, false, what, &op, err);
    if (st)
        return st;
    c->first[which] = op.matrix;
    jk_batches_set_dense(&c->batches, which, elements * jask_dtype_size(op.matrix.dtype));
    return JASK_OK;
}

static jask_status take_arrays(check *c, const jask_array *a, const jask_array *b,
                               const jask_array *d, jask_error *err)
{
    bool with_c = c->args.beta != 0;
    int64_t shape[JASK_MAX_DIMS], m, n;
    int ndim;
    jask_status st;
    if (!isfinite(c->args.alpha) || !isfinite(c->args.beta))
        return jk_fail(err, JASK_ERR_ARG, "alpha and beta must be finite numbers");
    if (!a || !b || !d || (with_c && !c->args.c))
        return jk_fail(err, JASK_ERR_ARG, "%s is NULL",
                       !a   ? "A"
                       : !b ? "B"
                       : !d ? "D"
                            : "beta is not 0 and C");
    jk_lacks lacks = {.rows = a->layout.ndim == 1, .cols = b->layout.ndim == 1};
    st = take_factors(c, a, b, lacks, err);
    if (st)
        return st;
    m = jk_wanted_rows(&c->first[JK_ARRAY_A]);
    n = jk_wanted_cols(&c->first[JK_ARRAY_B]);
    st = jk_product_shape(&c->batches, lacks, m, n, &ndim, shape, err);
    if (!st)
        st = take_result(c, JK_ARRAY_D, d, lacks, ndim, shape, err);
    if (!st && with_c)
        st = take_result(c, JK_ARRAY_C, c->args.c, lacks, ndim, shape, err);
    if (!st)
        st = choose_types(c, d->layout.dtype, m == 1 && n == 1 && lacks.rows && lacks.cols, err);
    for (int i = 0; i < JK_ARRAYS; i++)
        c->from[i] = (jk_verify_matrix){&c->now[i], &c->bytes};
    return st;
}

/* Fields that an older caller does not have keep their defaults. */
static void take_args(check *c, const jask_dot_args *args)
{
    size_t known = sizeof c->args;
    jask_dot_args_init(&c->args, known);
    if (args && args->struct_size < known)
        known = args->struct_size;
    if (args)
        memcpy(&c->args, args, known);
}

/* What the context lets a product do to its inputs, if its device can: tf32 keeps 11 bits. */
static double input_unit(const check *c)
{
    bool tf32 = jk_context_tf32(c->ctx) && jk_context_device(c->ctx)->info.tf32;
    const jk_matrix *m = c->first;
    return tf32 && m[JK_ARRAY_A].dtype == JASK_F32 && m[JK_ARRAY_B].dtype == JASK_F32 ? 0x1p-11 : 0;
}

/* The type of the parts of complex numbers. */
static jask_dtype real_type(jask_dtype dtype)
{
    return dtype == JASK_C64 ? JASK_F32 : dtype == JASK_C128 ? JASK_F64 : dtype;
}

static jask_status run_check(check *c, jask_verification *out, jask_error *err)
{
    int64_t parts = real_type(c->dtype) != c->dtype ? 2 : 1;
    turn(c, 0);
    jk_verify_job job = {
        .batches = c->batches.count,
        .turn = turn,
        .dtype = real_type(c->dtype),
        .output = real_type(c->output),
        /* No batch has no rows. */
        .m = c->batches.count > 0 ? jk_wanted_rows(&c->now[JK_ARRAY_A]) : 0,
        .n = parts * jk_wanted_cols(&c->now[JK_ARRAY_B]),
        .k = parts * jk_wanted_cols(&c->now[JK_ARRAY_A]),
        .alpha = c->args.alpha,
        .beta = c->args.beta,
        .input_unit = input_unit(c),
        .a = source_of(c, JK_ARRAY_A),
        .b = source_of(c, JK_ARRAY_B),
        .c = source_of(c, JK_ARRAY_C),
        .d = source_of(c, JK_ARRAY_D),
        .host = jk_context_host(c->ctx),
        .memory_bytes = jk_context_cpu_budget(c->ctx),
        .tick = tell,
        .tick_user = c,
    };
    return jk_verify_run(&job, out, err);
}

jask_status jask_dot_verify(jask_context *ctx, const jask_array *a, const jask_array *b,
                            const jask_array *d, const jask_dot_args *args, jask_verification *out,
                            size_t struct_size, jask_error *err)
{
    check c = {.start = jk_clock_seconds()};
    jask_verification found = {.struct_size = sizeof found};
    jask_status st = jk_context_get(ctx, &c.ctx, err);
    if (st)
        return st;
    c.told = c.start;
    take_args(&c, args);
    st = take_arrays(&c, a, b, d, err);
    if (st)
        jk_fail_in(err, st, "cannot verify");
    else
        st = run_check(&c, &found, err);
    if (!st) {
        found.seconds = jk_clock_seconds() - c.start;
        found.file_read_bytes = c.bytes;
        jk_struct_out(out, struct_size, &found, sizeof found);
    }
    jk_context_put(c.ctx);
    return st;
}
