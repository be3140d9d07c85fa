/* jask_dot_verify: from arrays to the check, which stands in verify_verdict.c. */
#include "runtime/verify.h"
#include "runtime/context.h"
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

static int64_t wanted_rows(const jk_matrix *m)
{
    return m->trans ? m->cols : m->rows;
}

static int64_t wanted_cols(const jk_matrix *m)
{
    return m->trans ? m->rows : m->cols;
}

static jask_status check_matrix(const jk_matrix *m, const char *what, const char *why, int64_t rows,
                                int64_t cols, jask_dtype dtype, jask_error *err)
{
    if (m->dtype != dtype)
        return jk_fail(err, JASK_ERR_ARG, "cannot verify: %s '%s' is %s, A is %s", what, m->path,
                       jask_dtype_name(m->dtype), jask_dtype_name(dtype));
    if (wanted_rows(m) != rows || wanted_cols(m) != cols)
        return jk_fail(err, JASK_ERR_ARG,
                       "cannot verify: %s '%s' is %" PRId64 " x %" PRId64 ", but must be %" PRId64
                       " x %" PRId64 " %s",
                       what, m->path, wanted_rows(m), wanted_cols(m), rows, cols, why);
    return JASK_OK;
}

static jask_status take_arrays(check *c, const jask_array *a, const jask_array *b,
                               const jask_array *d, jask_error *err)
{
    static const char why_b[] = "to have as many rows as A has columns";
    static const char why_d[] = "to be the product";
    bool with_c = c->args.beta != 0;
    jask_status st;
    if (!isfinite(c->args.alpha) || !isfinite(c->args.beta))
        return jk_fail(err, JASK_ERR_ARG, "cannot verify: alpha and beta must be finite numbers");
    if (!a || !b || !d || (with_c && !c->args.c))
        return jk_fail(err, JASK_ERR_ARG, "cannot verify: %s is NULL",
                       !a   ? "A"
                       : !b ? "B"
                       : !d ? "D"
                            : "beta is not 0 and C");
    st = jk_matrix_of(a, c->args.transpose_a != 0, "A", &c->a, err);
    if (!st)
        st = jk_matrix_of(b, c->args.transpose_b != 0, "B", &c->b, err);
    if (!st)
        st = jk_matrix_of(d, false, "D", &c->d, err);
    if (!st && with_c)
        st = jk_matrix_of(c->args.c, false, "C", &c->c, err);
    if (st)
        return st;
    if (c->a.dtype != JASK_F32 && c->a.dtype != JASK_F64)
        return jk_fail(err, JASK_ERR_UNSUPPORTED, "cannot verify: A '%s' is %s, not f32 or f64",
                       c->a.path, jask_dtype_name(c->a.dtype));
    int64_t m = wanted_rows(&c->a), k = wanted_cols(&c->a), n = wanted_cols(&c->b);
    st = check_matrix(&c->b, "B", why_b, k, n, c->a.dtype, err);
    if (!st)
        st = check_matrix(&c->d, "D", why_d, m, n, c->a.dtype, err);
    if (!st && with_c)
        st = check_matrix(&c->c, "C", why_d, m, n, c->a.dtype, err);
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
    return tf32 && c->a.dtype == JASK_F32 ? 0x1p-11 : 0;
}

static jask_status run_check(check *c, jask_verification *out, jask_error *err)
{
    reader a = {&c->a, &c->bytes}, b = {&c->b, &c->bytes};
    reader d = {&c->d, &c->bytes}, add = {&c->c, &c->bytes};
    jk_verify_job job = {
        .dtype = c->a.dtype,
        .m = wanted_rows(&c->a),
        .n = wanted_cols(&c->b),
        .k = wanted_cols(&c->a),
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
