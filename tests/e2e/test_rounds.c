/* Many products in one process: nothing of one reaches the next. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

TestSuite(rounds, .init = e2e_init, .fini = e2e_cleanup);

static double one(unsigned seed, int64_t i, int64_t j)
{
    (void)seed, (void)i, (void)j;
    return 1;
}

static double not_a_number(unsigned seed, int64_t i, int64_t j)
{
    (void)seed, (void)i, (void)j;
    return NAN;
}

static jask_array *make(const char *name, int64_t rows, int64_t cols, e2e_value_fn value)
{
    e2e_form f32 = {.dtype = JASK_F32};
    const char *path = e2e_path(name);
    e2e_write(path, f32, rows, cols, 0, value);
    return e2e_open(path);
}

static void check_all(const jask_array *d, int64_t count, double value)
{
    double *got = e2e_read(d);
    for (int64_t e = 0; e < count; e++)
        if (!(got[e] == value || (isnan(got[e]) && isnan(value))))
            cr_assert_fail("element %lld is %g, not %g", (long long)e, got[e], value);
    free(got);
}

/* Each product wants more than half of the budget, in blocks of its own shape: what one has held
 * must be there for the other. */
Test(rounds, memory_of_one_product_serves_the_next_in_any_shape)
{
    jask_context *ctx = e2e_context(1 << 20, "page", true);
    jask_array *large = make("large.npy", 400, 400, one), *flat = make("flat.npy", 130, 400, one);
    for (int round = 0; round < 100; round++) {
        jask_report many, few;
        jask_array *d = e2e_dot(ctx, large, large, NULL, &many);
        jask_array *e = e2e_dot(ctx, flat, large, NULL, &few);
        cr_assert(many.peak_device_bytes > 1 << 19 && few.peak_device_bytes > 1 << 19);
        cr_assert_gt(many.plan.tiles, few.plan.tiles);
        if (round % 10 == 0) {
            check_all(d, 400 * 400, 400);
            check_all(e, 130 * 400, 400);
        }
        jask_array_close(e);
        jask_array_close(d);
    }
    jask_array_close(flat);
    jask_array_close(large);
    jask_context_close(ctx);
}

Test(rounds, a_nan_does_not_outlive_its_product)
{
    jask_context *ctx = e2e_context(64 << 10, "auto", true);
    jask_array *bad = make("bad.npy", 130, 130, not_a_number);
    for (int round = 0; round < 100; round++) {
        int64_t m = 59 + round % 7, n = 50 + round % 11, k = 1 + round;
        jask_array *d = e2e_dot(ctx, bad, bad, NULL, NULL);
        jask_array *a = make("a.npy", m, k, one), *b = make("b.npy", k, n, one);
        jask_array *e = e2e_dot(ctx, a, b, NULL, NULL);
        if (round % 10 == 0)
            check_all(d, 130 * 130, NAN);
        check_all(e, m * n, (double)k);
        jask_array_close(e);
        jask_array_close(b);
        jask_array_close(a);
        jask_array_close(d);
    }
    jask_array_close(bad);
    jask_context_close(ctx);
}
