/* The plain-C kernels over numbers, against what IEEE 754 says by other means. */
#include "kernels/host_numbers.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define F16_INF 0x7c00u

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float from_f16(uint32_t half)
{
    uint16_t x = (uint16_t)half;
    float y;
    jk_f16_to_f32(1, &x, &y);
    return y;
}

static unsigned to_f16(double x)
{
    float f = (float)x;
    uint16_t y;
    cr_assert_eq((double)f, x, "%a is no f32", x);
    jk_f32_to_f16(1, &f, &y);
    return y;
}

static unsigned to_bf16(uint32_t bits)
{
    float x = float_of(bits);
    uint16_t y;
    jk_f32_to_bf16(1, &x, &y);
    return y;
}

/* The k-th half is the one before plus the spacing there: no formula that the kernel could share.
 */
Test(numbers, every_half_has_its_value)
{
    float value = 0, spacing = 0x1p-24f;
    for (uint32_t half = 0; half < F16_INF; half++) {
        if (half >= 0x800 && half % 0x400 == 0)
            spacing *= 2;
        cr_assert_eq(from_f16(half), value, "%04x: %a, not %a", half, from_f16(half), value);
        cr_assert_eq(bits_of(from_f16(half | 0x8000)), bits_of(-value), "-%04x", half);
        value += spacing;
    }
    cr_assert_eq(value, 65536, "counted to %g", value);
    cr_assert_eq(from_f16(0x7c00), INFINITY);
    cr_assert_eq(from_f16(0xfc00), -INFINITY);
    for (uint32_t half = 0x7c01; half < 0x8000; half++) {
        cr_assert_eq(bits_of(from_f16(half)), 0x7f800000u | (half & 0x3ffu) << 13);
        cr_assert_eq(bits_of(from_f16(half | 0x8000)), 0xff800000u | (half & 0x3ffu) << 13);
    }
}

Test(numbers, f32_goes_to_the_nearest_half_and_ties_to_the_even_one)
{
    for (uint32_t half = 0; half < F16_INF; half++) {
        /* Rounding knows no largest half: what comes after it is infinity, at 65536. */
        double low = from_f16(half), high = half + 1 < F16_INF ? (double)from_f16(half + 1) : 65536;
        float tie = (float)((low + high) / 2);
        unsigned even = half % 2 ? half + 1 : half;
        cr_assert_eq(to_f16(low), half);
        cr_assert_eq(to_f16(tie), even, "%04x: %a", half, tie);
        cr_assert_eq(to_f16(nextafterf(tie, 0)), half, "%04x: below %a", half, tie);
        cr_assert_eq(to_f16(nextafterf(tie, 1e9f)), half + 1, "%04x: above %a", half, tie);
        cr_assert_eq(to_f16(-low), half | 0x8000);
        cr_assert_eq(to_f16(-tie), even | 0x8000, "-%04x", half);
    }
    static const float none[] = {0x1p-149f, 0x1p-126f, 0x1p-26f};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_assert_eq(to_f16(-none[i]), 0x8000);
    static const float large[] = {65536, 1e9f, 0x1.fffffep127f, INFINITY};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        cr_assert_eq(to_f16(-large[i]), 0xfc00);
}

Test(numbers, a_bf16_is_the_upper_half_of_an_f32)
{
    for (uint32_t upper = 0; upper < 0x10000; upper++) {
        uint16_t x = (uint16_t)upper;
        float y;
        jk_bf16_to_f32(1, &x, &y);
        cr_assert_eq(bits_of(y), upper << 16);
        if ((upper & 0x7fff) >= 0x7f80)
            continue;
        /* One more in the last place is the next number, after the largest infinity. */
        cr_assert_eq(to_bf16(upper << 16), upper);
        cr_assert_eq(to_bf16(upper << 16 | 0x7fff), upper);
        cr_assert_eq(to_bf16(upper << 16 | 0x8000), upper + upper % 2);
        cr_assert_eq(to_bf16(upper << 16 | 0x8001), upper + 1);
        cr_assert_eq(to_bf16(upper << 16 | 0xffff), upper + 1);
    }
    cr_assert_eq(to_bf16(0x7f800000), 0x7f80);
    cr_assert_eq(to_bf16(0xff800000), 0xff80);
}

Test(numbers, a_nan_stays_one_quiet_and_signed)
{
    static const struct {
        uint32_t f32;
        unsigned f16, bf16;
    } nans[] = {
        {0x7f800001, 0x7e00, 0x7fc0}, {0xff800001, 0xfe00, 0xffc0}, {0x7fffffff, 0x7fff, 0x7fff},
        {0xffc00000, 0xfe00, 0xffc0}, {0x7fa10000, 0x7f08, 0x7fe1}, {0x7f80ffff, 0x7e07, 0x7fc0},
    };
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        float x = float_of(nans[i].f32), back;
        double wide;
        uint16_t half;
        jk_f32_to_f16(1, &x, &half);
        cr_assert_eq(half, nans[i].f16, "%08x: %04x", nans[i].f32, half);
        cr_assert_eq(to_bf16(nans[i].f32), nans[i].bf16, "%08x", nans[i].f32);
        jk_f32_to_f64(1, &x, &wide);
        jk_f64_to_f32(1, &wide, &back);
        cr_assert(isnan(wide) && isnan(back));
    }
}

Test(numbers, f64_goes_to_the_nearest_f32)
{
    static const struct {
        double from;
        float to;
    } cases[] = {
        {1 + 0x1p-24, 1},
        {1 + 0x1.8p-23, 1 + 0x1p-22f},
        {1 + 0x1.000001p-24, 1 + 0x1p-23f},
        {-0x1.fffffefffffffp127, -0x1.fffffep127f},
        {0x1.ffffffp127, INFINITY},
        {-1e300, -INFINITY},
        {0x1p-149, 0x1p-149f},
        {0x1p-150, 0},
        {0x1.8p-150, 0x1p-149f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float to;
        double back;
        jk_f64_to_f32(1, &cases[i].from, &to);
        cr_assert_eq(to, cases[i].to, "%a: %a", cases[i].from, to);
        jk_f32_to_f64(1, &to, &back);
        cr_assert_eq(back, (double)to);
    }
}

Test(numbers, axpby_rounds_the_product_and_the_sum_once)
{
    /* x^2 - 1 exactly; rounding x^2 first would lose the last bit. */
    float x = 1 + 0x1p-12f, y = 1, z = 0;
    jk_axpby_f32(1, x, &x, -1, &y, &z);
    cr_assert_eq(z, 0x1p-11f + 0x1p-24f);
    double dx = 1 + 0x1p-27, dy = 1, dz = 0;
    jk_axpby_f64(1, dx, &dx, -1, &dy, &dz);
    cr_assert_eq(dz, 0x1p-26 + 0x1p-54);

    float a[] = {1, 2, 3}, b[] = {10, 20, 30};
    jk_axpby_f32(3, 1, a, 1, b, a);
    cr_assert(a[0] == 11 && a[1] == 22 && a[2] == 33, "into x");
    jk_axpby_f32(3, 2, a, -1, b, b);
    cr_assert(b[0] == 12 && b[1] == 24 && b[2] == 36, "into y");
}

Test(numbers, axpby_reads_no_y_with_beta_0_and_skips_no_x_with_alpha_0)
{
    float x[] = {1, INFINITY, NAN}, z[3];
    jk_axpby_f32(3, 2, x, 0, NULL, z);
    cr_assert(z[0] == 2 && z[1] == INFINITY && isnan(z[2]));
    float y[] = {1, 1, 1};
    jk_axpby_f32(3, 0, x, 1, y, z);
    cr_assert(z[0] == 1 && isnan(z[1]) && isnan(z[2]));
    double dx[] = {3}, dz[1];
    jk_axpby_f64(1, -1, dx, 0, NULL, dz);
    cr_assert_eq(dz[0], -3);
}

static const int64_t counts[] = {1,       2,       255,     1023,    1024,   1025,
                                 1000000, 1048576, 1048577, 2097153, 3000000};

Test(numbers, parts_cover_every_element_once)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = counts[i], parts = jk_parts(n), elems = jk_part_elems(n);
        cr_assert(parts >= 1 && parts <= JK_MAX_PARTS);
        cr_assert((parts - 1) * elems < n && n <= parts * elems, "%lld", (long long)n);
        cr_assert_eq(elems % (4 * JK_LANES), 0);
    }
    cr_assert_eq(jk_parts(0), 1);
    cr_assert(jk_parts(INT64_MAX) <= JK_MAX_PARTS);
}

Test(numbers, sums_and_ranges_of_whole_numbers_are_exact)
{
    enum { most = 3000000 };
    float *x = malloc(most * sizeof *x);
    double *d = malloc(most * sizeof *d), sums[JK_MAX_PARTS];
    jk_range ranges[JK_MAX_PARTS];
    cr_assert(x && d);
    for (int64_t i = 0; i < most; i++)
        d[i] = x[i] = (float)((i * 7919) % 2001 - 1000);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = counts[i], sum = 0, least = 1000, most_value = -1000;
        for (int64_t j = 0; j < n; j++) {
            int64_t value = (j * 7919) % 2001 - 1000;
            sum += value;
            least = value < least ? value : least;
            most_value = value > most_value ? value : most_value;
        }
        jk_sum_f32(n, x, sums);
        cr_assert_eq(jk_sum_join(jk_parts(n), sums), (double)sum);
        jk_sum_f64(n, d, sums);
        cr_assert_eq(jk_sum_join(jk_parts(n), sums), (double)sum);
        jk_range_f32(n, x, ranges);
        jk_range range = jk_range_join(jk_parts(n), ranges);
        cr_assert(range.min == (double)least && range.max == (double)most_value);
        jk_range_f64(n, d, ranges);
        range = jk_range_join(jk_parts(n), ranges);
        cr_assert(range.min == (double)least && range.max == (double)most_value);
        cr_assert_eq(range.nonfinite, 0);
    }
    free(x);
    free(d);
}

/* 2^53 + 1 is no double: ones vanish singly and count in pairs, which shows what is added first. */
Test(numbers, lanes_are_joined_in_halves)
{
    float x[16] = {0x1p53f};
    double sum;
    x[4] = x[12] = 1; /* lanes 1 and 3 meet before lane 0 */
    jk_sum_f32(16, x, &sum);
    cr_assert_eq(sum, 0x1p53 + 2);
    x[12] = 0;
    x[8] = 1; /* lane 2 meets lane 0 first */
    jk_sum_f32(16, x, &sum);
    cr_assert_eq(sum, 0x1p53);
    x[8] = 0;
    x[5] = 1; /* lane 1 itself */
    jk_sum_f32(16, x, &sum);
    cr_assert_eq(sum, 0x1p53 + 2);
}

Test(numbers, a_range_counts_what_is_not_finite_and_leaves_it_out)
{
    double x[] = {NAN, 3, -INFINITY, -2, INFINITY, -NAN};
    jk_range range;
    jk_range_f64(6, x, &range);
    cr_assert(range.min == -2 && range.max == 3 && range.nonfinite == 4);
    float f[] = {NAN, INFINITY};
    jk_range_f32(2, f, &range);
    cr_assert(range.min == INFINITY && range.max == -INFINITY && range.nonfinite == 2);
    double sum = 1;
    jk_sum_f32(0, f, &sum);
    jk_range_f64(0, x, &range);
    cr_assert(sum == 0 && range.min == INFINITY && range.max == -INFINITY && range.nonfinite == 0);
}
