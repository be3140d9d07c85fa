/* jask_dot_verify on files: products in every form pass, damaged ones do not, arguments are
 * checked. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(verify_files, .init = e2e_init, .fini = e2e_cleanup);

enum { M = 61, N = 83, K = 47 };

static const e2e_form f32 = {JASK_F32, false, false}, f64 = {JASK_F64, false, false};

/* Reals between -8 and 8, of both types. */
static double real_value(unsigned seed, int64_t i, int64_t j)
{
    return (double)((float)e2e_value(seed, i, j) + (float)e2e_value(seed + 100, i, j) / 19);
}

static const double *result;

static double result_value(unsigned seed, int64_t i, int64_t j)
{
    (void)seed;
    return result[i * N + j];
}

static jask_array *make(const char *name, e2e_form form, int64_t rows, int64_t cols, unsigned seed,
                        e2e_value_fn value)
{
    e2e_write(e2e_path(name), form, rows, cols, seed, value);
    return e2e_open(e2e_path(name));
}

static jask_verification verify(jask_context *ctx, const jask_array *a, const jask_array *b,
                                const jask_array *d, const jask_dot_args *args)
{
    jask_verification v = {0};
    jask_error err;
    cr_assert_eq(jask_dot_verify(ctx, a, b, d, args, &v, sizeof v, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(v.struct_size, sizeof v);
    cr_assert_geq(v.seconds, 0);
    return v;
}

Test(verify_files, products_pass_in_every_form)
{
    static const uint64_t budgets[] = {1 << 18, 1 << 26};
    for (int turn = 0; turn < 128; turn++) {
        bool ta = turn & 1, tb = turn & 2;
        jask_dtype dtype = turn & 4 ? JASK_F64 : JASK_F32;
        e2e_form plain = {dtype, false, false}, odd = {dtype, turn & 8, turn & 16};
        jask_context *ctx = e2e_context(budgets[turn >> 5 & 1], "auto", true);
        jask_array *a = make("a.npy", odd, ta ? K : M, ta ? M : K, 1, real_value);
        jask_array *b = make("b.npy", odd, tb ? N : K, tb ? K : N, 2, real_value);
        jask_array *c = make("c.npy", odd, M, N, 3, real_value);
        jask_array *d, *copy;
        jask_verification v;
        jask_dot_args args;
        double *values;
        size_t elements = (size_t)(M * K + K * N + M * N + (turn & 64 ? M * N : 0));
        jask_dot_args_init(&args, sizeof args);
        args.transpose_a = ta;
        args.transpose_b = tb;
        args.alpha = turn & 64 ? -0.7 : 1;
        args.beta = turn & 64 ? 1.9 : 0;
        args.c = turn & 64 ? c : NULL;
        d = e2e_dot(ctx, a, b, &args, NULL);
        v = verify(ctx, a, b, d, &args);
        cr_assert(v.passed, "turn %d: z max %g rms %g", turn, v.max_z, v.rms_z);
        cr_assert_eq(v.file_read_bytes, elements * jask_dtype_size(dtype));
        result = values = e2e_read(d);
        copy = make("copy.npy", odd, M, N, 0, result_value);
        v = verify(ctx, a, b, copy, &args);
        cr_assert(v.passed, "turn %d, copy: z max %g rms %g", turn, v.max_z, v.rms_z);
        jask_array_close(copy);
        values[23 * N + 7] *= 1.5;
        copy = make("copy.npy", plain, M, N, 0, result_value);
        v = verify(ctx, a, b, copy, &args);
        cr_assert(!v.passed && v.worst_row == 23, "turn %d, damaged: z %g in row %d", turn, v.max_z,
                  (int)v.worst_row);
        free(values);
        jask_array_close(copy);
        jask_array_close(d);
        jask_array_close(c);
        jask_array_close(b);
        jask_array_close(a);
        jask_context_close(ctx);
    }
}

Test(verify_files, arguments_that_do_not_fit_are_refused_by_name)
{
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = make("a.npy", f32, M, K, 1, NULL), *b = make("b.npy", f32, K, N, 2, NULL);
    jask_array *d = make("d.npy", f32, M, N, 3, NULL);
    jask_dot_args plain, with_c, turned, endless;
    jask_verification out = {.max_z = -3}, same = out;
    jask_dot_args_init(&plain, sizeof plain);
    with_c = turned = endless = plain;
    with_c.beta = 1;
    turned.transpose_a = 1;
    endless.alpha = INFINITY;
    const struct {
        const jask_array *a, *b, *d;
        const jask_dot_args *args;
        const char *said;
    } cases[] = {
        {NULL, b, d, &plain, "A is NULL"},     {a, NULL, d, &plain, "B is NULL"},
        {a, b, NULL, NULL, "D is NULL"},       {a, b, d, &with_c, "C is NULL"},
        {a, b, d, &turned, "is 47 x 61, B '"}, {a, b, a, &plain, "D '"},
        {a, b, d, &endless, "finite"},
    };
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        jask_error err = {.msg = ""};
        cr_assert_eq(jask_dot_verify(ctx, cases[q].a, cases[q].b, cases[q].d, cases[q].args, &out,
                                     sizeof out, &err),
                     JASK_ERR_ARG);
        cr_assert_not_null(strstr(err.msg, cases[q].said), "%s", err.msg);
    }
    cr_assert_arr_eq(&out, &same, sizeof out);
    jask_array_close(d);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

static int count_calls(const jask_progress *progress, void *user)
{
    double *last = user;
    /* Steps are rows of the result: elements would tell nobody anything. */
    if (progress->fraction < *last || progress->steps_total != M ||
        progress->steps_done != (int64_t)(progress->fraction * M))
        *last = INFINITY;
    *last = progress->fraction;
    return 0;
}

static int cancel(const jask_progress *progress, void *user)
{
    (void)progress;
    (void)user;
    return 1;
}

Test(verify_files, progress_ends_at_one_and_can_cancel)
{
    double last = 0;
    for (int t = 0; t < 2; t++) {
        jask_options options;
        jask_context *ctx;
        jask_verification v;
        jask_error err;
        jask_array *a = make("a.npy", f64, M, K, 1, NULL), *b = make("b.npy", f64, K, N, 2, NULL);
        jask_array *d = make("d.npy", f64, M, N, 3, NULL);
        jask_options_init(&options, sizeof options);
        options.memory_budget_bytes = 1 << 20;
        options.progress = t ? cancel : count_calls;
        options.progress_user = &last;
        cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
        cr_assert_eq(jask_dot_verify(ctx, a, b, d, NULL, &v, sizeof v, &err),
                     t ? JASK_ERR_CANCELED : JASK_OK, "%s", err.msg);
        jask_array_close(d);
        jask_array_close(b);
        jask_array_close(a);
        jask_context_close(ctx);
    }
    cr_assert_eq(last, 1);
}

Test(verify_files, an_older_caller_gets_what_it_knows)
{
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = make("a.npy", f32, M, K, 1, NULL), *b = make("b.npy", f32, K, N, 2, NULL);
    jask_array *d = e2e_dot(ctx, a, b, NULL, NULL);
    jask_verification v, untouched;
    size_t known = offsetof(jask_verification, rms_z);
    jask_error err;
    memset(&v, 0x55, sizeof v);
    untouched = v;
    cr_assert_eq(jask_dot_verify(ctx, a, b, d, NULL, &v, known, &err), JASK_OK, "%s", err.msg);
    cr_assert(v.passed == 1 && v.struct_size == known);
    cr_assert_eq(memcmp(&v.rms_z, &untouched.rms_z, sizeof v - known), 0);
    jask_array_close(d);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}
