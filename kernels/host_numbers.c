#include "kernels/host_numbers.h"

#include <math.h>
#include <string.h>

uint32_t jk_probe_word(uint32_t seed, uint32_t index)
{
    return seed ^ index * 0x9e3779b9u;
}

/* With alpha 1 there is but one rounding after that of beta * y either way, and no call of fma. */
#define DEFINE_AXPBY(name, real, fma_of)                                                           \
    void name(int64_t n, real alpha, const real *x, real beta, const real *y, real *z)             \
    {                                                                                              \
        if (beta == 0)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = alpha * x[i];                                                               \
        else if (alpha == 1)                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = x[i] + beta * y[i];                                                         \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = fma_of(alpha, x[i], beta * y[i]);                                           \
    }

DEFINE_AXPBY(jk_axpby_f32, float, fmaf)
DEFINE_AXPBY(jk_axpby_f64, double, fma)

/* The fast twins of what follows, in host_halves.c, have their own ways to the bits of a float: no comparison
 * of the two would test what they had in common. */
static float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float f32_of_f16(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    uint32_t sign = (uint32_t)(half >> 15) << 31;
    if (exponent == 31)
        return f32_of_bits(sign | 0x7f800000u | (uint32_t)fraction << 13);
    float value = exponent == 0 ? ldexpf((float)fraction, -24)
                                : ldexpf((float)(fraction + 0x400), exponent - 25);
    return f32_of_bits(sign | f32_bits(value));
}

/* bits / 2^drop, to nearest, ties to even; 1 <= drop <= 31. */
static uint32_t shift_rounded(uint32_t bits, int drop)
{
    uint32_t kept = bits >> drop, rest = bits & ((1u << drop) - 1), tie = 1u << (drop - 1);
    return kept + (rest > tie || (rest == tie && (kept & 1)));
}

static uint16_t f16_of_f32(float x)
{
    uint32_t bits = f32_bits(x), sign = bits >> 31 << 15, fraction = bits & 0x7fffff, half;
    int exponent = (int)(bits >> 23 & 255);
    if (exponent == 255)
        half = 0x7c00 | (fraction ? 0x200 | fraction >> 13 : 0);
    else if (exponent >= 127 + 16)
        half = 0x7c00;
    else if (exponent >= 127 - 14) /* a carry out of the fraction is one more in the exponent */
        half = ((uint32_t)(exponent - 112) << 10) + shift_rounded(fraction, 13);
    else if (exponent >= 127 - 25)
        half = shift_rounded(fraction | 0x800000, 126 - exponent);
    else
        half = 0;
    return (uint16_t)(sign | half);
}

static uint16_t bf16_of_f32(float x)
{
    uint32_t bits = f32_bits(x);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)shift_rounded(bits, 16);
}

void jk_f16_to_f32(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = f32_of_f16(x[i]);
}

void jk_bf16_to_f32(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = f32_of_bits((uint32_t)x[i] << 16);
}

void jk_f32_to_f16(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = f16_of_f32(x[i]);
}

void jk_f32_to_bf16(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = bf16_of_f32(x[i]);
}

void jk_f32_to_f64(int64_t n, const float *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (double)x[i];
}

void jk_f64_to_f32(int64_t n, const double *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)x[i];
}
