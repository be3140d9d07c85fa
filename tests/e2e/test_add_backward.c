/* Gradients of sums: closed forms, accumulation, and finite differences. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(add_backward, .init = e2e_init, .fini = e2e_cleanup, .timeout = 300);

static void backward(jask_context *ctx, const jask_array *a, const jask_array *b,
                     const jask_array *dd, const jask_add_backward_args *args, jask_array **da,
                     jask_array **db)
{
    jask_report r = {.struct_size = sizeof r};
    jask_error err;
    cr_assert_eq(jask_add_backward(ctx, a, b, dd, args, da, db, &r, &err), JASK_OK, "%s", err.msg);
    cr_assert_str_eq(r.op, "add_backward");
    cr_assert_eq(r.io.file_read_bytes, r.plan.file_read_bytes);
    cr_assert_eq(r.io.file_write_bytes, r.plan.file_write_bytes);
    cr_assert_eq(r.io.file_read_bytes, r.planned.file_read_bytes);
    cr_assert_leq(r.peak_device_bytes, r.budget_bytes);
}

/* A 2 x 3 array plus a row: the row's gradient sums over the rows. */
Test(add_backward, of_a_broadcast_row_is_summed)
{
    static const int64_t square[] = {2, 3}, row[] = {1, 3}, vector[] = {3}, column[] = {2, 1};
    static const float ones[] = {1, 1, 1, 1, 1, 1}, g[] = {1, 2, 3, 4, 5, 6};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F32, 2, square, g),
               *dd = e2e_make("d.npy", JASK_F32, 2, square, ones);
    jask_array *b = e2e_make("b.npy", JASK_F32, 2, row, g), *da, *db;
    jask_array_info info;
    double *got;
    backward(ctx, a, b, dd, NULL, &da, &db);
    jask_array_get_info(da, &info, sizeof info);
    cr_assert(info.ndim == 2 && info.shape[0] == 2 && info.shape[1] == 3);
    got = e2e_read(da);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(got[i], 1);
    free(got);
    got = e2e_read(db);
    jask_array_get_info(db, &info, sizeof info);
    cr_assert(info.ndim == 2 && info.shape[0] == 1 && info.shape[1] == 3);
    cr_assert(got[0] == 2 && got[1] == 2 && got[2] == 2);
    free(got);
    jask_array_close(da);
    jask_array_close(db);
    jask_array_close(b);
    jask_array_close(dd);

    dd = e2e_make("d.npy", JASK_F32, 2, square, g);
    b = e2e_make("b.npy", JASK_F32, 1, vector, g);
    backward(ctx, a, b, dd, NULL, NULL, &db); /* A's is absent */
    got = e2e_read(db);
    cr_assert(got[0] == 5 && got[1] == 7 && got[2] == 9);
    free(got);
    jask_array_close(db);
    jask_array_close(b);
    b = e2e_make("b.npy", JASK_F32, 2, column, g);
    backward(ctx, b, a, dd, NULL, &da, NULL);
    got = e2e_read(da);
    cr_assert(got[0] == 6 && got[1] == 15);
    free(got);
    jask_array_close(da);
    jask_array_close(b);
    jask_array_close(dd);
    jask_array_close(a);
    jask_context_close(ctx);
}

/* Both terms go to an array that is A and B; old gradients are added to, also under their own names. */
Test(add_backward, accumulates_and_adds_both_terms_of_one_array)
{
    static const int64_t shape[] = {4}, one[] = {1};
    static const double g[] = {1, 2, 3, 4}, old[] = {10, 20, 30, 40}, hundred[] = {100};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F64, 1, shape, g), *b = e2e_open(e2e_path("a.npy"));
    jask_array *dd = e2e_make("d.npy", JASK_F64, 1, shape, g), *da;
    jask_array *old_da = e2e_make("da.npy", JASK_F64, 1, shape, old), *scalar, *old_db;
    jask_add_backward_args args;
    double *got;
    jask_add_backward_args_init(&args, sizeof args);
    args.alpha = 2;
    args.beta = 3;
    args.old_da = old_da;
    args.da = e2e_path("da.npy");
    backward(ctx, a, b, dd, &args, NULL, NULL);
    da = e2e_open(e2e_path("da.npy"));
    got = e2e_read(da);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(got[i], old[i] + 5 * g[i]);
    free(got);
    jask_array_close(da);
    jask_array_close(b);

    scalar = e2e_make("s.npy", JASK_F64, 1, one, g);
    old_db = e2e_make("db.npy", JASK_F64, 1, one, hundred);
    args = (jask_add_backward_args){.struct_size = sizeof args, .alpha = 1, .beta = -1};
    args.old_db = old_db;
    backward(ctx, a, scalar, dd, &args, NULL, &da);
    got = e2e_read(da);
    cr_assert_eq(got[0], 90);
    free(got);
    jask_array_close(da);
    jask_array_close(old_db);
    jask_array_close(scalar);
    jask_array_close(old_da);
    jask_array_close(dd);
    jask_array_close(a);
    jask_context_close(ctx);
}

Test(add_backward, of_nothing_is_zero_and_what_does_not_fit_is_refused)
{
    static const int64_t empty[] = {0, 3}, row[] = {3}, square[] = {2, 3};
    static const double x[] = {1, 2, 3, 4, 5, 6};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F64, 2, empty, x),
               *b = e2e_make("b.npy", JASK_F64, 1, row, x);
    jask_array *dd = e2e_make("d.npy", JASK_F64, 2, empty, x), *db = NULL, *da = NULL;
    jask_array *other = e2e_make("o.npy", JASK_F64, 2, square, x),
               *whole = e2e_make("i.npy", JASK_I64, 1, row, x);
    jask_add_backward_args args;
    jask_error err;
    double *got;
    backward(ctx, a, b, dd, NULL, &da, &db);
    got = e2e_read(db);
    cr_assert(got[0] == 0 && got[1] == 0 && got[2] == 0);
    free(got);
    jask_array_close(da);
    jask_array_close(db);
    jask_add_backward_args_init(&args, sizeof args);
    args.old_db = b;
    backward(ctx, a, b, dd, &args, NULL, &db);
    got = e2e_read(db);
    cr_assert(got[0] == 1 && got[1] == 2 && got[2] == 3);
    free(got);
    jask_array_close(db);
    db = NULL;
    cr_assert_eq(jask_add_backward(ctx, a, b, other, NULL, &da, &db, NULL, &err), JASK_ERR_ARG);
    cr_assert_not_null(strstr(err.msg, "dD"), "%s", err.msg);
    cr_assert_eq(jask_add_backward(ctx, other, whole, other, NULL, NULL, &db, NULL, &err),
                 JASK_ERR_UNSUPPORTED);
    cr_assert_eq(jask_add_backward(ctx, other, b, other, NULL, NULL, NULL, NULL, &err),
                 JASK_ERR_ARG);
    args.old_db = other;
    cr_assert_eq(jask_add_backward(ctx, other, b, other, &args, NULL, &db, NULL, &err),
                 JASK_ERR_ARG);
    cr_assert_null(db);
    jask_array_close(whole);
    jask_array_close(other);
    jask_array_close(dd);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

/* The loss is the sum of D * W for fixed W, so that dD is W; the loss is linear, so a difference of any
 * width is exact but for rounding. Shapes broadcast both ways, in many blocks. */
Test(add_backward, agrees_with_finite_differences)
{
    enum { M = 37, N = 53 };
    static double x[M], y[N], w[M * N];
    static const int64_t column[] = {M, 1}, row[] = {N}, both[] = {M, N};
    jask_context *ctx = e2e_context(50000, "auto", true);
    jask_array *a, *b, *dd, *da, *db;
    jask_add_backward_args args;
    double *got_a, *got_b;
    for (int i = 0; i < M * N; i++)
        w[i] = sin(i) + (double)e2e_value(5, i, 1);
    for (int i = 0; i < N; i++)
        y[i] = cos(i), x[i % M] = sin(3 * i);
    a = e2e_make("a.npy", JASK_F64, 2, column, x);
    b = e2e_make("b.npy", JASK_F64, 1, row, y);
    dd = e2e_make("w.npy", JASK_F64, 2, both, w);
    jask_add_backward_args_init(&args, sizeof args);
    args.alpha = 1.5;
    args.beta = -0.25;
    backward(ctx, a, b, dd, &args, &da, &db);
    got_a = e2e_read(da);
    got_b = e2e_read(db);
    for (int side = 0; side < 2; side++)
        for (int e = 0; e < (side ? N : M); e += 5) {
            double loss[2] = {0, 0};
            for (int up = 0; up < 2; up++)
                for (int i = 0; i < M; i++)
                    for (int j = 0; j < N; j++) {
                        double step = up ? 1 : -1;
                        double da_ij = x[i] + (!side && i == e ? step : 0);
                        double db_ij = y[j] + (side && j == e ? step : 0);
                        loss[up] += w[i * N + j] * (args.alpha * da_ij + args.beta * db_ij);
                    }
            cr_assert_float_eq(side ? got_b[e] : got_a[e], (loss[1] - loss[0]) / 2, 1e-9);
        }
    free(got_a);
    free(got_b);
    jask_array_close(da);
    jask_array_close(db);
    jask_array_close(dd);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}
