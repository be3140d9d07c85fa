#include "kernels/host_axpby.h"
#include "kernels/host_elements.h"
#include "kernels/host_halves.h"
#include "kernels/host_numbers.h"

#include <criterion/criterion.h>
#include <stdbool.h>
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

/* Every f16 and, of the floats, every upper half with lower bits that matter: as the slow twins, by
 * the wide instructions of many and by those for one. */
Test(host_elements, halves_are_converted_as_their_twins_do)
{
    static const uint32_t lower[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0xffff};
    enum { N = 65536 };
    static uint16_t half[N], many_half[N], twin_half[N], one_half[N];
    static float many[N], twin[N], one[N], x[N];
    for (uint32_t i = 0; i < N; i++)
        half[i] = (uint16_t)i;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        void (*widen)(int64_t, const uint16_t *, float *) = bf16 ? jk_widen_bf16 : jk_widen_f16;
        void (*narrow)(int64_t, const float *, uint16_t *) = bf16 ? jk_narrow_bf16 : jk_narrow_f16;
        (bf16 ? jk_bf16_to_f32 : jk_f16_to_f32)(N, half, twin);
        widen(N, half, many);
        for (int i = 0; i < N; i++)
            widen(1, &half[i], &one[i]);
        for (int i = 0; i < N; i++) {
            bool nan = twin[i] != twin[i];
            cr_assert(nan ? many[i] != many[i] : memcmp(&many[i], &twin[i], 4) == 0, "%04x", i);
            cr_assert(nan ? one[i] != one[i] : memcmp(&one[i], &twin[i], 4) == 0, "%04x", i);
        }
        for (size_t l = 0; l < sizeof lower / sizeof *lower; l++) {
            for (uint32_t i = 0; i < N; i++) {
                uint32_t bits = i << 16 | lower[l];
                memcpy(&x[i], &bits, 4);
            }
            (bf16 ? jk_f32_to_bf16 : jk_f32_to_f16)(N, x, twin_half);
            narrow(N, x, many_half);
            for (int i = 0; i < N; i++)
                narrow(1, &x[i], &one_half[i]);
            cr_assert_arr_eq(many_half, twin_half, sizeof twin_half, "lower bits %x", lower[l]);
            cr_assert_arr_eq(one_half, twin_half, sizeof twin_half, "lower bits %x", lower[l]);
        }
    }
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

static bool same_number(const void *x, const void *y, size_t size)
{
    float f[2];
    double d[2];
    memcpy(size == 4 ? (void *)f : d, x, size);
    memcpy(size == 4 ? (void *)(f + 1) : d + 1, y, size);
    return memcmp(x, y, size) == 0 ||
           (size == 4 ? f[0] != f[0] && f[1] != f[1] : d[0] != d[0] && d[1] != d[1]);
}

/* Of all bit patterns, subnormal, infinite and NaN among them. */
Test(host_elements, wide_sums_are_those_of_their_twins)
{
    enum { N = 4099 };
    static const double factors[][2] = {{1, 1}, {1, -1}, {3, 0.1}, {-0.7, 0}, {0x1p-30, 1}};
    static uint64_t x[N], y[N], z[N], twin[N];
    uint64_t state = 5;
    for (int i = 0; i < N; i++) {
        x[i] = draw(&state);
        y[i] = i % 3 ? draw(&state) : x[i] ^ (draw(&state) & 0x80000001800000ff);
    }
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        double alpha = factors[f][0], beta = factors[f][1];
        for (int64_t n = N - 17; n <= N; n++) {
            jk_axpby_wide_f64(n, alpha, (double *)x, beta, (double *)y, (double *)z);
            jk_axpby_f64(n, alpha, (double *)x, beta, (double *)y, (double *)twin);
            for (int64_t i = 0; i < n; i++)
                cr_assert(same_number(&z[i], &twin[i], 8), "f64 case %zu, %d", f, (int)i);
            jk_axpby_wide_f32(2 * n, (float)alpha, (float *)x, (float)beta, (float *)y, (float *)z);
            jk_axpby_f32(2 * n, (float)alpha, (float *)x, (float)beta, (float *)y, (float *)twin);
            for (int64_t i = 0; i < 2 * n; i++)
                cr_assert(same_number((float *)z + i, (float *)twin + i, 4), "f32 case %zu, %d", f,
                          (int)i);
        }
    }
}

/* Sums and differences of whole numbers, in the width of their type, against 128 bits. */
#define CHECK_TWIN(dtype, type, least, most)                                                       \
    do {                                                                                           \
        enum { N = sizeof x / (sizeof(type)) };                                                    \
        const type *a = (const type *)x, *b = (const type *)y;                                     \
        type *got = (type *)z;                                                                     \
        int64_t bad = N, first = jk_axpby_integer(dtype, N, alpha, x, beta, y, rule, z);           \
        for (int64_t i = 0; i < N; i++) {                                                          \
            int128 value = (int128)alpha * a[i] + (int128)beta * b[i];                             \
            bool fits = value >= (int128)(least) && value <= (int128)(most);                       \
            type expected = (type)value;                                                           \
            if (!fits && rule == JASK_OVERFLOW_SATURATE)                                           \
                expected = value < 0 ? (least) : (most);                                           \
            if (!fits && bad == N)                                                                 \
                bad = i;                                                                           \
            cr_assert(got[i] == expected, "%s, number %d, factors %d and %d, rule %d", #dtype,     \
                      (int)i, (int)alpha, (int)beta, (int)rule);                                   \
        }                                                                                          \
        cr_assert_eq(first, bad, "%s: %d, not %d", #dtype, (int)first, (int)bad);                  \
    } while (0)

__extension__ typedef __int128 int128;

Test(host_elements, sums_of_integers_are_those_of_wider_ones)
{
    static const int64_t factors[][2] = {{1, 1},
                                         {1, -1},
                                         {-3, 5},
                                         {1, 0},
                                         {INT64_C(1) << 30, 7},
                                         {INT64_C(1) << 40, -(INT64_C(1) << 53)}};
    static uint64_t x[301], y[301], z[301];
    uint64_t state = 11;
    for (int round = 0; round < 8; round++) {
        /* Few that leave the type, so that the first can be anywhere; then many. */
        for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
            uint64_t small = round < 4 && draw(&state) % 64 ? 0x0101010101010101u : UINT64_MAX;
            x[i] = draw(&state) & small;
            y[i] = draw(&state) & (round % 2 ? small : x[i]);
        }
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
            for (jask_overflow rule = JASK_OVERFLOW_REFUSE; rule <= JASK_OVERFLOW_SATURATE;
                 rule++) {
                int64_t alpha = factors[f][0], beta = factors[f][1];
                CHECK_TWIN(JASK_I8, int8_t, INT8_MIN, INT8_MAX);
                CHECK_TWIN(JASK_I16, int16_t, INT16_MIN, INT16_MAX);
                CHECK_TWIN(JASK_I32, int32_t, INT32_MIN, INT32_MAX);
                CHECK_TWIN(JASK_I64, int64_t, INT64_MIN, INT64_MAX);
                CHECK_TWIN(JASK_U8, uint8_t, 0, UINT8_MAX);
                CHECK_TWIN(JASK_U16, uint16_t, 0, UINT16_MAX);
                CHECK_TWIN(JASK_U32, uint32_t, 0, UINT32_MAX);
                CHECK_TWIN(JASK_U64, uint64_t, 0, UINT64_MAX);
            }
    }
}

/* A type that grows in place takes another way than one that is converted to other memory. */
Test(host_elements, converts_alike_in_place_and_apart)
{
    enum { N = 700 };
    static uint64_t bits[2 * N], source[2 * N], apart[2 * N], place[2 * N];
    uint64_t state = 3;
    int pairs = 0;
    for (int i = 0; i < 2 * N; i++)
        bits[i] = draw(&state);
    for (jask_dtype from = JASK_F16; from <= JASK_U64; from++)
        for (jask_dtype to = JASK_F16; to <= JASK_U64; to++) {
            size_t size = jask_dtype_size(from), grown = jask_dtype_size(to);
            char *end = (char *)place + N * grown - N * size;
            jask_dtype both;
            if (grown <= size || jask_dtype_promote(from, to, &both, NULL) || both != to)
                continue;
            pairs++;
            if (from >= JASK_I8)
                memcpy(source, bits, N * size);
            else /* no NaN, which may become another */
                jk_convert(N, JASK_I8, bits, from, source);
            memcpy(end, source, N * size);
            jk_convert(N, from, source, to, apart);
            jk_convert(N, from, end, to, place);
            cr_assert_arr_eq(place, apart, N * grown, "%s to %s", jask_dtype_name(from),
                             jask_dtype_name(to));
        }
    cr_assert_gt(pairs, 40);
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
    cr_assert_eq(jk_axpby_integer(JASK_U8, 5, 1, x, 1, y, JASK_OVERFLOW_SATURATE, z), 3);
    cr_assert_arr_eq(z, most, 5);
    cr_assert_eq(jk_axpby_integer(JASK_U8, 0, 1, x, 1, y, JASK_OVERFLOW_REFUSE, z), 0);
}
