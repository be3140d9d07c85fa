#include "kernels/host_halves.h"

#include "kernels/host_wide.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Of its own, as all here: what the slow twins in host_numbers.c had in common with it, no comparison of the
 * two would test. */
JK_INLINE float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

JK_INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Values are all computed and then chosen from, so that the compiler can make loops wide. */

/* Exponent and fraction taken for a float's are a number 2^112 times too small, also where the half is
 * subnormal, and one exact product mends it. */
JK_INLINE float widen_one_f16(uint16_t x)
{
    uint32_t rest = x & 0x7fffu, special = 0x7f800000u | (rest & 0x3ffu) << 13;
    uint32_t finite = bits_of(float_of(rest << 13) * 0x1p112f);
    return float_of((rest < 0x7c00 ? finite : special) | (x & 0x8000u) << 16);
}

/* Adding 1/2, whose last place is the least half, rounds a number below the normal halves. */
JK_INLINE uint16_t narrow_one_f16(float x)
{
    uint32_t rest = bits_of(x) & 0x7fffffffu;
    uint32_t normal = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
    uint32_t subnormal = bits_of(float_of(rest) + 0.5f) - bits_of(0.5f);
    uint32_t half = rest < 0x38800000u ? subnormal : normal;
    half = rest >= 0x47800000u ? 0x7c00u : half;
    half = rest > 0x7f800000u ? 0x7e00u | (rest >> 13 & 0x3ffu) : half;
    return (uint16_t)(half | (bits_of(x) >> 16 & 0x8000u));
}

JK_INLINE void jk_widen_bf16_loop(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = float_of((uint32_t)x[i] << 16);
}

JK_INLINE void jk_narrow_bf16_loop(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(x[i]);
        uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        y[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
    }
}

JK_DEFINE_WIDE(jk_widen_bf16, (int64_t n, const uint16_t *x, float *y), (n, x, y))
JK_DEFINE_WIDE(jk_narrow_bf16, (int64_t n, const float *x, uint16_t *y), (n, x, y))

/* Of f16 the first elements, a multiple of 8 and maybe none, by the processor's own conversions. */
#if defined(__x86_64__)

JK_WIDE static int64_t widen_eights(int64_t n, const uint16_t *x, float *y)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
    return i;
}

JK_WIDE static int64_t narrow_eights(int64_t n, const float *x, uint16_t *y)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

#else

static inline bool jk_has_wide(void)
{
    return false;
}

static int64_t widen_eights(int64_t n, const uint16_t *x, float *y)
{
    (void)n, (void)x, (void)y;
    return 0;
}

static int64_t narrow_eights(int64_t n, const float *x, uint16_t *y)
{
    (void)n, (void)x, (void)y;
    return 0;
}

#endif

void jk_widen_f16(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = jk_has_wide() ? widen_eights(n, x, y) : 0; i < n; i++)
        y[i] = widen_one_f16(x[i]);
}

void jk_narrow_f16(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = jk_has_wide() ? narrow_eights(n, x, y) : 0; i < n; i++)
        y[i] = narrow_one_f16(x[i]);
}
