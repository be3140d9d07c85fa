#include "kernels/host_elements.h"
#include "kernels/host_numbers.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Each element is its own number, so that every place shows where it came from. */
static void check_spread(int ndim, const int64_t *len, size_t size, const int64_t *strides)
{
    int64_t count = 1, reach = 1;
    unsigned char *src, *dst;
    for (int d = 0; d < ndim; d++) {
        count *= len[d];
        reach += (len[d] - 1) * strides[d];
    }
    src = malloc((size_t)reach * size);
    dst = malloc((size_t)count * size);
    for (int64_t i = 0; i < reach * (int64_t)size; i++)
        src[i] = (unsigned char)(i * 37 + i / 251);
    jk_spread(ndim, len, size, src, strides, dst);
    for (int64_t e = 0; e < count; e++) {
        int64_t rest = e, at = 0;
        for (int d = ndim - 1; d >= 0; d--) {
            at += rest % len[d] * strides[d];
            rest /= len[d];
        }
        cr_assert_arr_eq(dst + (size_t)e * size, src + (size_t)at * size, size, "element %d of %d",
                         (int)e, (int)count);
    }
    free(src);
    free(dst);
}

Test(host_elements, spreads_windows_of_every_form)
{
    static const struct {
        int ndim;
        int64_t len[4], strides[4];
    } cases[] = {
        {0, {0}, {0}},
        {1, {100}, {1}},
        {1, {100}, {0}},
        {2, {30, 40}, {40, 1}},
        {2, {30, 40}, {0, 1}},
        {2, {30, 40}, {1, 0}},
        {2, {33, 70}, {1, 33}},
        {2, {1, 7}, {1, 3}},
        {3, {5, 6, 7}, {1, 5, 30}},
        {3, {5, 6, 7}, {6, 1, 30}},
        {3, {5, 17, 19}, {0, 1, 17}},
        {3, {5, 6, 7}, {1, 0, 5}},
        {4, {3, 4, 5, 6}, {1, 0, 3, 15}},
        {4, {3, 4, 5, 6}, {20, 1, 4, 60}},
    };
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            check_spread(cases[i].ndim, cases[i].len, sizes[s], cases[i].strides);
}

Test(host_elements, converts_at_the_end_of_the_memory_it_grows_into)
{
    enum { N = 1000 };
    static double wide[2 * N];
    int8_t *whole = (int8_t *)wide + sizeof(double[2 * N]) - N;
    for (int i = 0; i < N; i++)
        whole[i] = (int8_t)(i % 256 - 128);
    jk_convert(N, JASK_I8, whole, JASK_C128, wide);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(wide[2 * i], i % 256 - 128);
        cr_assert_eq(wide[2 * i + 1], 0);
    }
    float narrow[600];
    for (int i = 0; i < 600; i++)
        narrow[i] = (float)i / 4;
    jk_convert(600, JASK_F32, narrow, JASK_BF16, narrow);
    jk_convert(1, JASK_BF16, (uint16_t *)narrow + 513, JASK_F32, narrow + 599);
    cr_assert_eq(narrow[599], 128); /* 128.25 in 8 bits */
}

/* Every f16 and, of the floats, every upper half with lower bits that matter: as the slow twins. */
Test(host_elements, halves_are_converted_as_their_twins_do)
{
    static const uint32_t lower[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0xffff};
    for (uint32_t upper = 0; upper < 65536; upper++) {
        uint16_t half = (uint16_t)upper, got, expected;
        float wide, twin, x[8];
        jk_convert(1, JASK_F16, &half, JASK_F32, &wide);
        jk_f16_to_f32(1, &half, &twin);
        cr_assert(memcmp(&wide, &twin, 4) == 0 || (wide != wide && twin != twin), "%04x", upper);
        for (size_t i = 0; i < 8; i++) {
            uint32_t bits = upper << 16 | lower[i];
            memcpy(&x[i], &bits, 4);
            jk_convert(1, JASK_F32, &x[i], JASK_F16, &got);
            jk_f32_to_f16(1, &x[i], &expected);
            if (x[i] != x[i]) /* through f64 a NaN becomes quiet, which it is in f16 anyway */
                cr_assert_eq(got & 0x7e00, 0x7e00, "%08x", bits);
            else
                cr_assert_eq(got, expected, "%08x: %04x, not %04x", bits, got, expected);
        }
    }
}

/* The extremes of every type survive in every type that holds it. */
Test(host_elements, converting_loses_nothing)
{
    static const struct {
        jask_dtype from, to;
        unsigned char value[8];
        double expected;
    } cases[] = {
        {JASK_I8, JASK_F16, {0x80}, -128},
        {JASK_U8, JASK_BF16, {0xff}, 255},
        {JASK_U8, JASK_I16, {0xff}, 255},
        {JASK_I16, JASK_F32, {0x00, 0x80}, -32768},
        {JASK_U16, JASK_I32, {0xff, 0xff}, 65535},
        {JASK_U16, JASK_U32, {0xff, 0xff}, 65535},
        {JASK_I32, JASK_F64, {0, 0, 0, 0x80}, -2147483648.0},
        {JASK_I32, JASK_I64, {0xff, 0xff, 0xff, 0xff}, -1},
        {JASK_U32, JASK_C128, {0xff, 0xff, 0xff, 0xff}, 4294967295.0},
        {JASK_U32, JASK_U64, {0xff, 0xff, 0xff, 0xff}, 4294967295.0},
        {JASK_F16, JASK_F64, {1, 0}, 0x1p-24},
        {JASK_BF16, JASK_F32, {0x80, 0x3f}, 1},
        {JASK_F32, JASK_C64, {0, 0, 0xc0, 0x7f}, 0}, /* NaN: looked at below */
        {JASK_C64, JASK_C128, {0, 0, 0x80, 0x3f}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char out[16] = {0};
        double got[2] = {0};
        uint64_t u64;
        int64_t i64;
        jk_convert(1, cases[i].from, cases[i].value, cases[i].to, out);
        switch (cases[i].to) {
        case JASK_U64:
            memcpy(&u64, out, 8);
            got[0] = (double)u64;
            break;
        case JASK_I64:
            memcpy(&i64, out, 8);
            got[0] = (double)i64;
            break;
        default:
            jk_convert(1, cases[i].to, out, JASK_C128, got);
        }
        if (cases[i].from == JASK_F32)
            cr_assert(got[0] != got[0] && got[1] == 0);
        else
            cr_assert_eq(got[0], cases[i].expected, "%s to %s: %g", jask_dtype_name(cases[i].from),
                         jask_dtype_name(cases[i].to), got[0]);
    }
}

/* alpha * x + beta * y for one pair, as a number; *fits as the function tells. */
#define CHECK(dtype, type, alpha, x, beta, y, rule, expected, fits)                                \
    do {                                                                                           \
        type a = (type)(x), b = (type)(y), z = 0;                                                  \
        int64_t first = jk_axpby_integer(dtype, 1, alpha, &a, beta, &b, rule, &z);                 \
        cr_assert_eq(first, (fits) ? 1 : 0, "%s: %s * " #x, #dtype, #alpha);                       \
        cr_assert_eq(z, (type)(expected), "%s: %s * " #x " + %s * " #y, #dtype, #alpha, #beta);    \
    } while (0)

Test(host_elements, sums_of_integers_are_exact_or_follow_the_rule)
{
    const jask_overflow R = JASK_OVERFLOW_REFUSE, W = JASK_OVERFLOW_WRAP,
                        S = JASK_OVERFLOW_SATURATE;
    CHECK(JASK_I8, int8_t, 1, 100, 1, 27, R, 127, true);
    CHECK(JASK_I8, int8_t, 1, 100, 1, 28, W, -128, false);
    CHECK(JASK_I8, int8_t, 1, 100, 1, 28, S, 127, false);
    CHECK(JASK_I8, int8_t, 1, -100, 1, -29, S, -128, false);
    CHECK(JASK_I8, int8_t, 2, -64, 0, 99, R, -128, true);
    CHECK(JASK_I8, int8_t, -1, -128, 0, 0, R, -128, false);
    CHECK(JASK_U8, uint8_t, 1, 200, 1, 56, W, 0, false);
    CHECK(JASK_U8, uint8_t, 1, 200, -1, 201, S, 0, false);
    CHECK(JASK_U8, uint8_t, 3, 100, -2, 25, R, 250, true);
    CHECK(JASK_I16, int16_t, 1, 32767, 1, 1, W, -32768, false);
    CHECK(JASK_U16, uint16_t, 1, 65535, 1, 1, S, 65535, false);
    CHECK(JASK_I32, int32_t, 1, 2147483647, 1, 1, R, 0x80000000, false);
    CHECK(JASK_I32, int32_t, 2, 2147483647, -1, 2147483647, R, 2147483647, true);
    CHECK(JASK_U32, uint32_t, 1, 4294967295, 1, 1, W, 0, false);
    CHECK(JASK_I64, int64_t, 1, INT64_MAX, 1, 1, S, INT64_MAX, false);
    CHECK(JASK_I64, int64_t, 1, INT64_MIN, 1, -1, W, INT64_MAX, false);
    CHECK(JASK_I64, int64_t, 1 << 20, INT64_MAX, -(1 << 20), INT64_MAX - 1, R, 1 << 20, true);
    CHECK(JASK_I64, int64_t, INT64_C(1) << 53, INT64_MIN, 0, 0, S, INT64_MIN, false);
    CHECK(JASK_U64, uint64_t, 1, UINT64_MAX, 1, 1, W, 0, false);
    CHECK(JASK_U64, uint64_t, 1, UINT64_MAX, -1, UINT64_MAX, R, 0, true);
    CHECK(JASK_U64, uint64_t, INT64_C(1) << 53, UINT64_MAX, 1, 0, S, UINT64_MAX, false);
}

Test(host_elements, the_first_sum_that_does_not_fit_is_named)
{
    uint8_t x[5] = {1, 250, 3, 255, 5}, y[5] = {1, 5, 3, 1, 255}, z[5];
    static const uint8_t wrapped[] = {2, 255, 6, 0, 4}, most[] = {2, 255, 6, 255, 255};
    cr_assert_eq(jk_axpby_integer(JASK_U8, 5, 1, x, 1, y, JASK_OVERFLOW_WRAP, z), 3);
    cr_assert_arr_eq(z, wrapped, 5);
    cr_assert_eq(jk_axpby_integer(JASK_U8, 5, 1, x, 1, y, JASK_OVERFLOW_SATURATE, x), 3);
    cr_assert_arr_eq(x, most, 5);
    cr_assert_eq(jk_axpby_integer(JASK_U8, 0, 1, x, 1, y, JASK_OVERFLOW_REFUSE, x), 0);
}
