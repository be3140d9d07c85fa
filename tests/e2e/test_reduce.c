/* Reductions through the public API: small exact tables, and bits that depend on nothing else. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(reduce, .init = e2e_init, .fini = e2e_cleanup, .timeout = 300);

/* The reduction's result, its first elements in `out`. */
static jask_array_info reduce(jask_context *ctx, const jask_array *a, jask_reduction what, int axis,
                              void *out)
{
    jask_array *d = NULL;
    jask_array_info info;
    jask_reduce_args args;
    jask_report r = {.struct_size = sizeof r};
    jask_error err;
    jask_reduce_args_init(&args, sizeof args);
    args.reduction = what;
    args.axis = axis;
    cr_assert_eq(jask_reduce(ctx, a, &args, &d, &r, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(r.io.file_read_bytes, r.plan.file_read_bytes);
    cr_assert_eq(r.io.file_write_bytes, r.plan.file_write_bytes);
    cr_assert_eq(r.peak_device_bytes, r.plan.peak_bytes);
    cr_assert_leq(r.peak_device_bytes, r.budget_bytes);
    jask_array_get_info(d, &info, sizeof info);
    cr_assert_eq(jask_array_read(d, 0, info.elements, out, &err), JASK_OK, "%s", err.msg);
    jask_array_close(d);
    return info;
}

Test(reduce, small_tables_are_exact)
{
    static const int64_t shape[] = {2, 3};
    static const float x[] = {1, -2, 3, 4, 5, -6};
    static const double by_rows[] = {2, 3}, by_columns[] = {5, 3, -3};
    static const float most[] = {4, 5, 3};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F32, 2, shape, x);
    double sum[3];
    float extreme[3];
    jask_array_info info = reduce(ctx, a, JASK_SUM, JASK_ALL_AXES, sum);
    cr_assert(info.ndim == 0 && info.dtype == JASK_F64 && sum[0] == 5);
    info = reduce(ctx, a, JASK_SUM, 1, sum);
    cr_assert(info.ndim == 1 && info.shape[0] == 2);
    cr_assert_arr_eq(sum, by_rows, sizeof by_rows);
    reduce(ctx, a, JASK_SUM, -2, sum);
    cr_assert_arr_eq(sum, by_columns, sizeof by_columns);
    reduce(ctx, a, JASK_MEAN, 1, sum);
    cr_assert(sum[0] == 2.0 / 3 && sum[1] == 1);
    info = reduce(ctx, a, JASK_MAX, 0, extreme);
    cr_assert_eq(info.dtype, JASK_F32);
    cr_assert_arr_eq(extreme, most, sizeof most);
    reduce(ctx, a, JASK_MIN, JASK_ALL_AXES, extreme);
    cr_assert_eq(extreme[0], -6);
    reduce(ctx, a, JASK_NORM, JASK_ALL_AXES, sum);
    cr_assert_eq(sum[0], sqrt(91));
    jask_array_close(a);
    jask_context_close(ctx);
}

/* A plain sum in f32 stays at 2^24, one in f64 loses the 1 beside 1e100; norms neither overflow nor
 * vanish. */
Test(reduce, sums_keep_what_additions_round_off)
{
    enum { N = 1025 };
    static const int64_t n[] = {N}, four[] = {4};
    static float ones[N] = {16777216};
    static const double far[] = {1e100, 1, -1e100, 1}, huge[] = {3e300, 4e300, 0, 0},
                        tiny[] = {3e-300, 4e-300, 0, 0};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a, *b;
    double sum;
    for (int i = 1; i < N; i++)
        ones[i] = 1;
    a = e2e_make("a.npy", JASK_F32, 1, n, ones);
    reduce(ctx, a, JASK_SUM, 0, &sum);
    cr_assert_eq(sum, 16778240);
    jask_array_close(a);
    a = e2e_make("a.npy", JASK_F64, 1, four, far);
    reduce(ctx, a, JASK_SUM, JASK_ALL_AXES, &sum);
    cr_assert_eq(sum, 2);
    jask_array_close(a);
    a = e2e_make("a.npy", JASK_F64, 1, four, huge);
    b = e2e_make("b.npy", JASK_F64, 1, four, tiny);
    reduce(ctx, a, JASK_NORM, 0, &sum);
    cr_assert_float_eq(sum / 5e300, 1, 1e-15);
    reduce(ctx, b, JASK_NORM, 0, &sum);
    cr_assert_float_eq(sum / 5e-300, 1, 1e-15);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

Test(reduce, integers_are_exact_and_complex_numbers_have_two_parts)
{
    static const int64_t two[] = {2}, square[] = {2, 2};
    static const int64_t large[] = {INT64_MAX, -5}, over[] = {INT64_MAX, 1};
    static const uint8_t bytes[] = {255, 255};
    static const float z[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const double columns[] = {6, 8, 10, 12}, rows[] = {4, 6, 12, 14};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_I64, 1, two, large), *d = NULL;
    int64_t whole = 0;
    double parts[4];
    jask_reduce_args args;
    jask_error err;
    cr_assert_eq(reduce(ctx, a, JASK_SUM, 0, &whole).dtype, JASK_I64);
    cr_assert_eq(whole, INT64_MAX - 5);
    reduce(ctx, a, JASK_MIN, 0, &whole);
    cr_assert_eq(whole, -5);
    reduce(ctx, a, JASK_MAX, 0, &whole);
    cr_assert_eq(whole, INT64_MAX);
    jask_array_close(a);
    a = e2e_make("a.npy", JASK_I64, 1, two, over);
    cr_assert_eq(jask_reduce(ctx, a, NULL, &d, NULL, &err), JASK_ERR_ARG);
    cr_assert_not_null(strstr(err.msg, "does not fit i64"), "%s", err.msg);
    jask_array_close(a);
    a = e2e_make("a.npy", JASK_U8, 1, two, bytes);
    cr_assert_eq(reduce(ctx, a, JASK_SUM, 0, &whole).dtype, JASK_U64);
    cr_assert_eq(whole, 510);
    jask_array_close(a);
    a = e2e_make("a.npy", JASK_C64, 2, square, z);
    reduce(ctx, a, JASK_SUM, 0, parts);
    cr_assert_arr_eq(parts, columns, sizeof columns);
    reduce(ctx, a, JASK_SUM, 1, parts);
    cr_assert_arr_eq(parts, rows, sizeof rows);
    reduce(ctx, a, JASK_SUM, JASK_ALL_AXES, parts);
    cr_assert(parts[0] == 16 && parts[1] == 20);
    reduce(ctx, a, JASK_NORM, JASK_ALL_AXES, parts);
    cr_assert_eq(parts[0], sqrt(204));
    jask_reduce_args_init(&args, sizeof args);
    args.reduction = JASK_MIN;
    cr_assert_eq(jask_reduce(ctx, a, &args, &d, NULL, &err), JASK_ERR_UNSUPPORTED);
    args.reduction = JASK_SUM;
    args.axis = 2;
    cr_assert_eq(jask_reduce(ctx, a, &args, &d, NULL, &err), JASK_ERR_ARG);
    jask_array_close(a);
    jask_context_close(ctx);
}

static double wild(unsigned seed, int64_t i, int64_t j)
{
    return ldexp((double)e2e_value(seed, i, j) + 0.3, (int)(i * 7 + j * 13) % 60);
}

/* The same bits with every budget, and with threads or without; the sums are right. */
Test(reduce, bits_depend_on_neither_budget_nor_threads)
{
    static const int64_t m = 131, n = 517;
    static const uint64_t budgets[] = {50000, 80000, 200000, 8 << 20};
    for (int form = 0; form < 2; form++) {
        e2e_form f64 = {.dtype = JASK_F64, .fortran = form};
        jask_array *a;
        e2e_write(e2e_path("a.npy"), f64, m, n, 3, wild);
        a = e2e_open(e2e_path("a.npy"));
        for (int axis = -1; axis < 2; axis++) {
            double first[517], got[517];
            for (size_t b = 0; b < 4; b++) {
                jask_context *ctx = e2e_context(budgets[b], "auto", b % 2);
                jask_array_info info =
                    reduce(ctx, a, JASK_SUM, axis < 0 ? JASK_ALL_AXES : axis, b ? got : first);
                if (b)
                    cr_assert_arr_eq(got, first, info.elements * sizeof *got, "axis %d, budget %d",
                                     axis, (int)b);
                reduce(ctx, a, JASK_NORM, axis < 0 ? JASK_ALL_AXES : axis, got);
                jask_context_close(ctx);
            }
            for (int64_t k = 0; axis == 1 && k < m; k++) {
                long double sum = 0;
                for (int64_t j = 0; j < n; j++)
                    sum += (long double)wild(3, k, j);
                cr_assert_float_eq(first[k] / (double)sum, 1, 1e-15, "row %d", (int)k);
            }
        }
        jask_array_close(a);
    }
}

Test(reduce, of_nothing_is_zero_or_not_a_number)
{
    static const int64_t empty[] = {0, 3};
    static const double zeros[] = {0, 0, 0};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F64, 2, empty, zeros), *d = NULL;
    jask_statistics s;
    jask_reduce_args args;
    double got[3] = {1, 1, 1};
    cr_assert_eq(reduce(ctx, a, JASK_SUM, 0, got).elements, 3);
    cr_assert_arr_eq(got, zeros, sizeof zeros);
    reduce(ctx, a, JASK_MEAN, JASK_ALL_AXES, got);
    cr_assert(isnan(got[0]));
    cr_assert_eq(reduce(ctx, a, JASK_MAX, 1, got).elements, 0);
    jask_reduce_args_init(&args, sizeof args);
    args.reduction = JASK_MIN;
    cr_assert_eq(jask_reduce(ctx, a, &args, &d, NULL, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_stats(ctx, a, &s, sizeof s, NULL), JASK_OK);
    cr_assert(s.elements == 0 && s.sum == 0 && isnan(s.mean) && isnan(s.min) && s.first_nan == -1);
    jask_array_close(a);
    jask_context_close(ctx);
}

Test(reduce, statistics_say_what_is_there_and_where)
{
    static const int64_t shape[] = {2, 4};
    static const float x[] = {1, 2, INFINITY, 4, NAN, -INFINITY, NAN, -8};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F32, 2, shape, x);
    jask_statistics s;
    float least;
    cr_assert_eq(jask_stats(ctx, a, &s, sizeof s, NULL), JASK_OK);
    cr_assert_eq(s.elements, 8);
    cr_assert_eq(s.nans, 2);
    cr_assert_eq(s.infinities, 2);
    cr_assert_eq(s.first_nan, 4);
    cr_assert_eq(s.first_infinity, 2);
    cr_assert(isnan(s.sum) && isnan(s.norm) && s.min == -INFINITY && s.max == INFINITY);
    reduce(ctx, a, JASK_MIN, JASK_ALL_AXES, &least);
    cr_assert(isnan(least), "as in NumPy");
    jask_array_close(a);
    jask_context_close(ctx);
}
