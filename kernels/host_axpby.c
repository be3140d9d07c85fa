#include "kernels/host_axpby.h"

#include "kernels/host_wide.h"

#include <assert.h>
#include <math.h>

/* With alpha 1 there is but one rounding after that of beta * y either way, and no call of fma. */
#define DEFINE_REAL(name, real, fma_of)                                                            \
    JK_INLINE void name##_loop(int64_t n, real alpha, const real *x, real beta, const real *y,     \
                               real *z)                                                            \
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
    }                                                                                              \
    JK_DEFINE_WIDE(name,                                                                           \
                   (int64_t n, real alpha, const real *x, real beta, const real *y, real *z),      \
                   (n, alpha, x, beta, y, z))

DEFINE_REAL(jk_axpby_wide_f32, float, fmaf)
DEFINE_REAL(jk_axpby_wide_f64, double, fma)

__extension__ typedef __int128 int128;

/* ---- x + y and x - y, in the width of the type ---- */

/* The top bit of what `over` returns tells whether the sum left the type. m is y, or for a difference
 * (`flip` all ones) its complement, of which one more is the negative. */
#define SIGNED_OVER(x, m, sum, flip) (((x) ^ (sum)) & ((m) ^ (sum)))
#define UNSIGNED_OVER(x, m, sum, flip) ((((x) & (m)) | (((x) | (m)) & ~(sum))) ^ (flip))
/* What saturates, given that it left: by the sign of x, or up for sums and down for differences. */
#define SIGNED_LIMIT(x, flip, top, word, whole) ((top) ^ ((whole)(x) < 0 ? (word)-1 : (word)0))
#define UNSIGNED_LIMIT(x, flip, top, word, whole) ((word) ~(flip))

#define DEFINE_PLAIN(name, word, whole, top, OVER, LIMIT)                                          \
    JK_INLINE void name##_loop(int64_t n, const word *x, bool minus, const word *y, bool saturate, \
                               word *z, word *out_over)                                            \
    {                                                                                              \
        word flip = minus ? (word)-1 : (word)0, clip = saturate ? (word)-1 : (word)0, any = 0;     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            word m = (word)(y[i] ^ flip), sum = (word)(x[i] + m - flip);                           \
            word over = (word)(OVER(x[i], m, sum, flip));                                          \
            word left = (whole)over < 0 ? clip : (word)0;                                          \
            word limit = (word)(LIMIT(x[i], flip, top, word, whole));                              \
            z[i] = (word)(sum ^ ((sum ^ limit) & left));                                           \
            any |= over;                                                                           \
        }                                                                                          \
        *out_over = any;                                                                           \
    }                                                                                              \
    static void name(int64_t n, const word *x, bool minus, const word *y, bool saturate, word *z,  \
                     word *out_over);                                                              \
    JK_DEFINE_WIDE(name,                                                                           \
                   (int64_t n, const word *x, bool minus, const word *y, bool saturate, word *z,   \
                    word *out_over),                                                               \
                   (n, x, minus, y, saturate, z, out_over))

DEFINE_PLAIN(plain_i8, uint8_t, int8_t, INT8_MAX, SIGNED_OVER, SIGNED_LIMIT)
DEFINE_PLAIN(plain_i16, uint16_t, int16_t, INT16_MAX, SIGNED_OVER, SIGNED_LIMIT)
DEFINE_PLAIN(plain_i32, uint32_t, int32_t, INT32_MAX, SIGNED_OVER, SIGNED_LIMIT)
DEFINE_PLAIN(plain_i64, uint64_t, int64_t, INT64_MAX, SIGNED_OVER, SIGNED_LIMIT)
DEFINE_PLAIN(plain_u8, uint8_t, int8_t, 0, UNSIGNED_OVER, UNSIGNED_LIMIT)
DEFINE_PLAIN(plain_u16, uint16_t, int16_t, 0, UNSIGNED_OVER, UNSIGNED_LIMIT)
DEFINE_PLAIN(plain_u32, uint32_t, int32_t, 0, UNSIGNED_OVER, UNSIGNED_LIMIT)
DEFINE_PLAIN(plain_u64, uint64_t, int64_t, 0, UNSIGNED_OVER, UNSIGNED_LIMIT)

/* ---- any factors: exactly, in a type that holds every value ---- */

/* Two's complement: what lies outside [least, most] becomes what the rule says. */
#define DEFINE_SCALED(name, type, exact, least, most)                                              \
    static int64_t name(int64_t n, int64_t alpha, const type *x, int64_t beta, const type *y,      \
                        jask_overflow rule, type *z)                                               \
    {                                                                                              \
        int64_t first = n;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            exact value = (exact)alpha * x[i] + (beta ? (exact)beta * y[i] : 0);                   \
            bool fits = value >= (exact)(least) && value <= (exact)(most);                         \
            z[i] = (type)value;                                                                    \
            if (!fits) {                                                                           \
                first = jk_min(first, i);                                                          \
                if (rule == JASK_OVERFLOW_SATURATE)                                                \
                    z[i] = value < 0 ? (least) : (most);                                           \
            }                                                                                      \
        }                                                                                          \
        return first;                                                                              \
    }

/* Factors that keep the exact value of a type of up to 32 bits within 64. */
#define SMALL_FACTOR (INT64_C(1) << 30)

static bool is_small(int64_t alpha, int64_t beta)
{
    return alpha <= SMALL_FACTOR && alpha >= -SMALL_FACTOR && beta <= SMALL_FACTOR &&
           beta >= -SMALL_FACTOR;
}

/* The plain way, and where a sum left the type, which was the first. */
#define DEFINE_AXPBY(name, type, word, plain, scaled, scaled_small, least, most)                   \
    DEFINE_SCALED(scaled, type, int128, least, most)                                               \
    static int64_t name(int64_t n, int64_t alpha, const type *x, int64_t beta, const type *y,      \
                        jask_overflow rule, type *z)                                               \
    {                                                                                              \
        word over = 0;                                                                             \
        if (alpha != 1 || (beta != 1 && beta != -1))                                               \
            return is_small(alpha, beta) ? scaled_small(n, alpha, x, beta, y, rule, z)             \
                                         : scaled(n, alpha, x, beta, y, rule, z);                  \
        plain(n, (const word *)x, beta < 0, (const word *)y, rule == JASK_OVERFLOW_SATURATE,       \
              (word *)z, &over);                                                                   \
        for (int64_t i = 0; over >> (8 * sizeof over - 1) && i < n; i++) {                         \
            int128 value = (int128)x[i] + (beta < 0 ? -(int128)y[i] : (int128)y[i]);               \
            if (value < (int128)(least) || value > (int128)(most))                                 \
                return i;                                                                          \
        }                                                                                          \
        return n;                                                                                  \
    }

DEFINE_SCALED(small_i8, int8_t, int64_t, INT8_MIN, INT8_MAX)
DEFINE_SCALED(small_i16, int16_t, int64_t, INT16_MIN, INT16_MAX)
DEFINE_SCALED(small_i32, int32_t, int64_t, INT32_MIN, INT32_MAX)
DEFINE_SCALED(small_u8, uint8_t, int64_t, 0, UINT8_MAX)
DEFINE_SCALED(small_u16, uint16_t, int64_t, 0, UINT16_MAX)
DEFINE_SCALED(small_u32, uint32_t, int64_t, 0, UINT32_MAX)

DEFINE_AXPBY(axpby_i8, int8_t, uint8_t, plain_i8, scaled_i8, small_i8, INT8_MIN, INT8_MAX)
DEFINE_AXPBY(axpby_i16, int16_t, uint16_t, plain_i16, scaled_i16, small_i16, INT16_MIN, INT16_MAX)
DEFINE_AXPBY(axpby_i32, int32_t, uint32_t, plain_i32, scaled_i32, small_i32, INT32_MIN, INT32_MAX)
DEFINE_AXPBY(axpby_i64, int64_t, uint64_t, plain_i64, scaled_i64, scaled_i64, INT64_MIN, INT64_MAX)
DEFINE_AXPBY(axpby_u8, uint8_t, uint8_t, plain_u8, scaled_u8, small_u8, 0, UINT8_MAX)
DEFINE_AXPBY(axpby_u16, uint16_t, uint16_t, plain_u16, scaled_u16, small_u16, 0, UINT16_MAX)
DEFINE_AXPBY(axpby_u32, uint32_t, uint32_t, plain_u32, scaled_u32, small_u32, 0, UINT32_MAX)
DEFINE_AXPBY(axpby_u64, uint64_t, uint64_t, plain_u64, scaled_u64, scaled_u64, 0, UINT64_MAX)

int64_t jk_axpby_integer(jask_dtype dtype, int64_t n, int64_t alpha, const void *x, int64_t beta,
                         const void *y, jask_overflow rule, void *z)
{
    switch (dtype) {
    case JASK_I8:
        return axpby_i8(n, alpha, x, beta, y, rule, z);
    case JASK_I16:
        return axpby_i16(n, alpha, x, beta, y, rule, z);
    case JASK_I32:
        return axpby_i32(n, alpha, x, beta, y, rule, z);
    case JASK_I64:
        return axpby_i64(n, alpha, x, beta, y, rule, z);
    case JASK_U8:
        return axpby_u8(n, alpha, x, beta, y, rule, z);
    case JASK_U16:
        return axpby_u16(n, alpha, x, beta, y, rule, z);
    case JASK_U32:
        return axpby_u32(n, alpha, x, beta, y, rule, z);
    default:
        assert(dtype == JASK_U64);
        return axpby_u64(n, alpha, x, beta, y, rule, z);
    }
}
