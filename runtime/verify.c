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
    jk_matrix a, b, c, d;
    jask_dtype dtype;  /* that elements are read in */
    jask_dtype output; /* see jk_verify_job */
    bool vectors;      /* both operands are */
    double start, told;
    _Atomic uint64_t bytes;
} check;

/* A matrix as the stream reads it. */
typedef struct reader {
    const jk_matrix *matrix;
    _Atomic uint64_t *bytes;
} reader;

static jask_status read_window(void *user, const jk_window *window, void *dst, int64_t ld_elems,
                               jask_error *err)
{
    const reader *from = user;
    return jk_matrix_read(from->matrix, window, dst, ld_elems, from->bytes, err);
}

static jk_verify_source source_of(reader *from)
{
    const jk_matrix *m = from->matrix;
    return (jk_verify_source){read_window, from, m->rows, m->cols, m->trans};
}

static jask_status tell(void *user, double done, double total, jask_error *err)
{
    check *c = user;
    double now = jk_clock_seconds();
    double fraction = done / total, seconds = now - c->start;
    int64_t rows = c->d.rows;
    jask_progress progress = {
        .struct_size = sizeof progress,
        .steps_done = (int64_t)(fraction * (double)rows),
        .steps_total = rows,
        .fraction = fraction,
        .file_read_bytes = c->bytes,
        .seconds = seconds,
        .seconds_left = fraction > 0 ? seconds / fraction - seconds : -1,
    };
    if (done < total && now - c->told < PROGRESS_SECONDS)
        return JASK_OK;
    c->told = now;
    return jk_context_progress(c->ctx, &progress, err);
}

static jask_status check_matrix(const jk_matrix *m, const char *what, const char *why, int64_t rows,
                                int64_t cols, jask_error *err)
{
    if (jk_wanted_rows(m) != rows || jk_wanted_cols(m) != cols)
        return jk_fail(err, JASK_ERR_ARG,
                       "cannot verify: %s '%s' is %" PRId64 " x %" PRId64 ", but must be %" PRId64
                       " x %" PRId64 " %s",
                       what, m->path, jk_wanted_rows(m), jk_wanted_cols(m), rows, cols, why);
    return JASK_OK;
}

/* A matrix, or a vector where `lacks` says that it is one. */
static jask_status take_matrix(const jask_array *array, jk_lacks lacks, int transpose,
                               const char *what, jk_matrix *out, jask_error *err)
{
    int dims = 2 - lacks.rows - lacks.cols;
    jk_operand op;
    jask_status st;
    if (array->layout.ndim != dims)
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "cannot verify: %s '%s' has %d dimensions, not %d; batches are not checked",
                       what, array->path, array->layout.ndim, dims);
    st = jk_operand_of(array, lacks, transpose != 0, what, &op, err);
    if (!st)
        *out = op.matrix;
    return st;
}

/* Elements are read in the type of the sums, or a wider one. */
static jask_status choose_types(check *c, jask_error *err)
{
    const jk_device_info nothing = {.name = ""};
    jk_product_types types;
    bool one_sum = jk_wanted_rows(&c->d) == 1 && jk_wanted_cols(&c->d) == 1 && c->vectors;
    jask_status st =
        jk_product_types_of(c->a.dtype, c->b.dtype, c->d.dtype, one_sum, &nothing, &types, err);
    if (st)
        return jk_fail_in(err, st, "cannot verify");
    if (types.compute != JASK_F32 && types.compute != JASK_F64)
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "cannot verify: A '%s' and B '%s' make a product in %s, and the check knows "
                       "real numbers only",
                       c->a.path, c->b.path, jask_dtype_name(types.compute));
    c->dtype = types.compute;
    c->output = types.output != types.compute ? types.output : JASK_DTYPE_NONE;
    c->a.memory = c->b.memory = c->c.memory = c->d.memory = c->dtype;
    return JASK_OK;
}

static jask_status take_arrays(check *c, const jask_array *a, const jask_array *b,
                               const jask_array *d, jask_error *err)
{
    static const char why_b[] = "to have as many rows as A has columns";
    static const char why_d[] = "to be the product";
    bool with_c = c->args.beta != 0;
    jk_lacks of_a, of_b, lacks;
    jask_status st;
    if (!isfinite(c->args.alpha) || !isfinite(c->args.beta))
        return jk_fail(err, JASK_ERR_ARG, "cannot verify: alpha and beta must be finite numbers");
    if (!a || !b || !d || (with_c && !c->args.c))
        return jk_fail(err, JASK_ERR_ARG, "cannot verify: %s is NULL",
                       !a   ? "A"
                       : !b ? "B"
                       : !d ? "D"
                            : "beta is not 0 and C");
    of_a = (jk_lacks){.rows = a->layout.ndim == 1};
    of_b = (jk_lacks){.cols = b->layout.ndim == 1};
    lacks = (jk_lacks){.rows = of_a.rows, .cols = of_b.cols};
    c->vectors = lacks.rows && lacks.cols;
    st = take_matrix(a, of_a, of_a.rows ? 0 : c->args.transpose_a, "A", &c->a, err);
    if (!st)
        st = take_matrix(b, of_b, of_b.cols ? 0 : c->args.transpose_b, "B", &c->b, err);
    if (!st)
        st = take_matrix(d, lacks, 0, "D", &c->d, err);
    if (!st && with_c)
        st = take_matrix(c->args.c, lacks, 0, "C", &c->c, err);
    if (!st)
        st = choose_types(c, err);
    if (st)
        return st;
    int64_t m = jk_wanted_rows(&c->a), k = jk_wanted_cols(&c->a), n = jk_wanted_cols(&c->b);
    st = check_matrix(&c->b, "B", why_b, k, n, err);
    if (!st)
        st = check_matrix(&c->d, "D", why_d, m, n, err);
    if (!st && with_c)
        st = check_matrix(&c->c, "C", why_d, m, n, err);
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
    return tf32 && c->a.dtype == JASK_F32 && c->b.dtype == JASK_F32 ? 0x1p-11 : 0;
}

static jask_status run_check(check *c, jask_verification *out, jask_error *err)
{
    reader a = {&c->a, &c->bytes}, b = {&c->b, &c->bytes};
    reader d = {&c->d, &c->bytes}, add = {&c->c, &c->bytes};
    jk_verify_job job = {
        .dtype = c->dtype,
        .output = c->output,
        .m = jk_wanted_rows(&c->a),
        .n = jk_wanted_cols(&c->b),
        .k = jk_wanted_cols(&c->a),
        .alpha = c->args.alpha,
        .beta = c->args.beta,
        .input_unit = input_unit(c),
        .a = source_of(&a),
        .b = source_of(&b),
        .d = source_of(&d),
        .c = source_of(&add),
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
    if (!st)
        st = run_check(&c, &found, err);
    if (!st) {
        found.seconds = jk_clock_seconds() - c.start;
        found.file_read_bytes = c.bytes;
        jk_struct_out(out, struct_size, &found, sizeof found);
    }
    jk_context_put(c.ctx);
    return st;
}
