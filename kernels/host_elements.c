#include "kernels/host_elements.h"

#include "kernels/host_kernels.h"
#include "kernels/host_numbers.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- conversions: in chunks, by way of the widest type of their kind ---- */

enum { CHUNK = 256 };

typedef enum wide { WIDE_WHOLE, WIDE_REAL, WIDE_COMPLEX } wide;

typedef struct chunk {
    wide kind;
    int64_t whole[CHUNK];
    double real[2 * CHUNK]; /* of a complex number two */
} chunk;

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* As jk_f16_to_f32, in few steps: exponent and fraction taken for a float's are a number 2^112 times
 * too small, also where the half is subnormal, and one exact product mends it. */
static void widen_f16(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t rest = x[i] & 0x7fffu, special = 0x7f800000u | (rest & 0x3ffu) << 13;
        uint32_t bits = rest < 0x7c00 ? bits_of(float_of(rest << 13) * 0x1p112f) : special;
        y[i] = float_of(bits | (x[i] & 0x8000u) << 16);
    }
}

/* As jk_f32_to_f16: adding 1/2, whose last place is the least half, rounds a number below the normal
 * halves. */
static void narrow_f16(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t rest = bits_of(x[i]) & 0x7fffffffu;
        uint32_t half = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
        if (rest < 0x38800000u)
            half = bits_of(float_of(rest) + 0.5f) - bits_of(0.5f);
        if (rest >= 0x47800000u)
            half = 0x7c00u;
        if (rest > 0x7f800000u)
            half = 0x7e00u | (rest >> 13 & 0x3ffu);
        y[i] = (uint16_t)(half | (bits_of(x[i]) >> 16 & 0x8000u));
    }
}

#define LOAD(type, kind_, field, count)                                                            \
    do {                                                                                           \
        type x_[2 * CHUNK];                                                                        \
        memcpy(x_, src, (size_t)(count) * sizeof(type));                                           \
        for (int64_t i_ = 0; i_ < (count); i_++)                                                   \
            c->field[i_] = (__typeof__(c->field[0]))x_[i_];                                        \
        c->kind = kind_;                                                                           \
    } while (0)

static void load(jask_dtype from, const void *src, int64_t n, chunk *c)
{
    uint16_t half[CHUNK];
    float narrow[CHUNK];
    switch (from) {
    case JASK_F16:
    case JASK_BF16:
        memcpy(half, src, (size_t)n * sizeof *half);
        if (from == JASK_F16)
            widen_f16(n, half, narrow);
        else
            jk_bf16_to_f32(n, half, narrow);
        src = narrow;
        LOAD(float, WIDE_REAL, real, n);
        return;
    case JASK_F32:
        LOAD(float, WIDE_REAL, real, n);
        return;
    case JASK_F64:
        LOAD(double, WIDE_REAL, real, n);
        return;
    case JASK_C64:
        LOAD(float, WIDE_COMPLEX, real, 2 * n);
        return;
    case JASK_C128:
        LOAD(double, WIDE_COMPLEX, real, 2 * n);
        return;
    case JASK_I8:
        LOAD(int8_t, WIDE_WHOLE, whole, n);
        return;
    case JASK_I16:
        LOAD(int16_t, WIDE_WHOLE, whole, n);
        return;
    case JASK_I32:
        LOAD(int32_t, WIDE_WHOLE, whole, n);
        return;
    case JASK_I64:
        LOAD(int64_t, WIDE_WHOLE, whole, n);
        return;
    case JASK_U8:
        LOAD(uint8_t, WIDE_WHOLE, whole, n);
        return;
    case JASK_U16:
        LOAD(uint16_t, WIDE_WHOLE, whole, n);
        return;
    case JASK_U32:
        LOAD(uint32_t, WIDE_WHOLE, whole, n);
        return;
    default: /* bits that only u64 itself holds all of */
        assert(from == JASK_U64);
        LOAD(uint64_t, WIDE_WHOLE, whole, n);
    }
}

#define STORE(type, field, count)                                                                  \
    do {                                                                                           \
        type x_[2 * CHUNK];                                                                        \
        for (int64_t i_ = 0; i_ < (count); i_++)                                                   \
            x_[i_] = (type)c->field[i_];                                                           \
        memcpy(dst, x_, (size_t)(count) * sizeof(type));                                           \
    } while (0)

static void store_half(jask_dtype to, const chunk *c, int64_t n, void *dst)
{
    float narrow[CHUNK];
    uint16_t half[CHUNK];
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)c->real[i];
    if (to == JASK_F16)
        narrow_f16(n, narrow, half);
    else
        jk_f32_to_bf16(n, narrow, half);
    memcpy(dst, half, (size_t)n * sizeof *half);
}

static void store_whole(jask_dtype to, const chunk *c, int64_t n, void *dst)
{
    switch (to) {
    case JASK_I8:
        STORE(int8_t, whole, n);
        return;
    case JASK_U8:
        STORE(uint8_t, whole, n);
        return;
    case JASK_I16:
        STORE(int16_t, whole, n);
        return;
    case JASK_I32:
        STORE(int32_t, whole, n);
        return;
    case JASK_U16:
        STORE(uint16_t, whole, n);
        return;
    case JASK_U32:
        STORE(uint32_t, whole, n);
        return;
    default:
        assert(to == JASK_I64 || to == JASK_U64);
        memcpy(dst, c->whole, (size_t)n * sizeof *c->whole);
    }
}

/* Real numbers become complex in place, from the end on. */
static void add_imaginary_parts(chunk *c, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        c->real[2 * i] = c->real[i];
        c->real[2 * i + 1] = 0;
    }
}

static void store(jask_dtype to, chunk *c, int64_t n, void *dst)
{
    bool complex = to == JASK_C64 || to == JASK_C128;
    bool real = to == JASK_F16 || to == JASK_BF16 || to == JASK_F32 || to == JASK_F64;
    if (c->kind == WIDE_WHOLE && !complex && !real) {
        store_whole(to, c, n, dst);
        return;
    }
    for (int64_t i = 0; c->kind == WIDE_WHOLE && i < n; i++)
        c->real[i] = (double)c->whole[i];
    if (complex && c->kind != WIDE_COMPLEX)
        add_imaginary_parts(c, n);
    if (to == JASK_F16 || to == JASK_BF16)
        store_half(to, c, n, dst);
    else if (to == JASK_F32 || to == JASK_C64)
        STORE(float, real, complex ? 2 * n : n);
    else
        STORE(double, real, complex ? 2 * n : n);
}

static bool is_half(jask_dtype dtype)
{
    return dtype == JASK_F16 || dtype == JASK_BF16;
}

/* Between the types of 16 bits and f32, which they are computed in. */
static void convert_half(int64_t n, jask_dtype from, const void *src, jask_dtype to, void *dst)
{
    uint16_t half[CHUNK];
    float single[CHUNK];
    if (is_half(from)) {
        memcpy(half, src, (size_t)n * sizeof *half);
        if (from == JASK_F16)
            widen_f16(n, half, single);
        else
            jk_bf16_to_f32(n, half, single);
        memcpy(dst, single, (size_t)n * sizeof *single);
        return;
    }
    memcpy(single, src, (size_t)n * sizeof *single);
    if (to == JASK_F16)
        narrow_f16(n, single, half);
    else
        jk_f32_to_bf16(n, single, half);
    memcpy(dst, half, (size_t)n * sizeof *half);
}

/* A chunk is read whole before any of it is written. */
void jk_convert(int64_t n, jask_dtype from, const void *src, jask_dtype to, void *dst)
{
    size_t from_size = jask_dtype_size(from), to_size = jask_dtype_size(to);
    if (from == to) {
        memmove(dst, src, (size_t)n * from_size);
        return;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        chunk c;
        int64_t part = jk_min(CHUNK, n - i);
        const char *x = (const char *)src + (size_t)i * from_size;
        char *y = (char *)dst + (size_t)i * to_size;
        if ((is_half(from) && to == JASK_F32) || (from == JASK_F32 && is_half(to))) {
            convert_half(part, from, x, to, y);
            continue;
        }
        load(from, x, part, &c);
        store(to, &c, part, y);
    }
}

/* The bounds of an integer type in f64; the upper one is the first that does not fit. */
static void bounds_of(jask_dtype dtype, double *low, double *beyond)
{
    int bits = 8 * (int)jask_dtype_size(dtype);
    bool is_signed = dtype >= JASK_I8 && dtype <= JASK_I64;
    *low = is_signed ? -ldexp(1, bits - 1) : 0;
    *beyond = ldexp(1, is_signed ? bits - 1 : bits);
}

int64_t jk_f64_to_whole(int64_t n, const void *src, jask_dtype to, void *dst, double *out_value)
{
    size_t size = jask_dtype_size(to);
    double low, beyond;
    bounds_of(to, &low, &beyond);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits;
        double x;
        memcpy(&x, (const char *)src + (size_t)i * sizeof x, sizeof x);
        if (!(x >= low && x < beyond)) {
            *out_value = x;
            return i;
        }
        bits = x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
        for (size_t b = 0; b < size; b++)
            ((unsigned char *)dst)[(size_t)i * size + b] = (unsigned char)(bits >> (8 * b));
    }
    return n;
}

void jk_conjugate(int64_t n, jask_dtype dtype, void *data)
{
    if (dtype == JASK_C64)
        for (int64_t i = 0; i < n; i++)
            ((float *)data)[2 * i + 1] = -((float *)data)[2 * i + 1];
    else if (dtype == JASK_C128)
        for (int64_t i = 0; i < n; i++)
            ((double *)data)[2 * i + 1] = -((double *)data)[2 * i + 1];
}

/* ---- spreading ---- */

#define COPY_ROW(type)                                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
    memcpy((char *)dst + (size_t)i * sizeof(type),                                                 \
           (const char *)src + (size_t)(i * stride) * sizeof(type), sizeof(type))

/* n elements, `stride` apart (0: one for all), side by side. */
static void copy_row(int64_t n, size_t size, const void *src, int64_t stride, void *dst)
{
    if (stride == 1) {
        memcpy(dst, src, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1:
        COPY_ROW(uint8_t);
        return;
    case 2:
        COPY_ROW(uint16_t);
        return;
    case 4:
        COPY_ROW(uint32_t);
        return;
    case 8:
        COPY_ROW(uint64_t);
        return;
    default:
        assert(size == 16);
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)dst + 16 * i, (const char *)src + 16 * (i * stride), 16);
    }
}

/* The dimension along which src lies side by side, where that is not the last one and the last one
 * has elements apart; -1 otherwise. */
static int turned_dimension(int ndim, const int64_t *len, const int64_t *strides)
{
    if (ndim == 0 || strides[ndim - 1] <= 1)
        return -1;
    for (int d = 0; d < ndim - 1; d++)
        if (strides[d] == 1 && len[d] > 1)
            return d;
    return -1;
}

void jk_spread(int ndim, const int64_t *len, size_t size, const void *src, const int64_t *strides,
               void *dst)
{
    int last = ndim - 1, turned = turned_dimension(ndim, len, strides);
    int64_t at[JASK_MAX_DIMS] = {0}, dst_strides[JASK_MAX_DIMS];
    const char *from = src;
    char *to = dst;
    int d;
    for (int64_t stride = 1, i = last; i >= 0; i--) {
        dst_strides[i] = stride;
        stride *= len[i];
    }
    do { /* a row, or a plane of the last dimension and the turned one */
        if (ndim == 0)
            memcpy(to, from, size);
        else if (turned < 0)
            copy_row(len[last], size, from, strides[last], to);
        else
            jk_transpose(to, dst_strides[turned], from, strides[last], len[last], len[turned],
                         size);
        for (d = last - 1; d >= 0; d--) {
            if (d == turned)
                continue;
            from += (size_t)strides[d] * size;
            to += (size_t)dst_strides[d] * size;
            if (++at[d] < len[d])
                break;
            from -= (size_t)(at[d] * strides[d]) * size;
            to -= (size_t)(at[d] * dst_strides[d]) * size;
            at[d] = 0;
        }
    } while (d >= 0);
}

/* ---- sums of integers ---- */

__extension__ typedef __int128 int128;

/* Two's complement: what lies outside [least, most] becomes what the rule says. */
#define DEFINE_AXPBY(name, type, least, most)                                                      \
    static type name##_fit(int128 value, jask_overflow rule, bool *fits)                           \
    {                                                                                              \
        *fits = value >= (int128)(least) && value <= (int128)(most);                               \
        if (*fits || rule != JASK_OVERFLOW_SATURATE)                                               \
            return (type)value;                                                                    \
        return value < 0 ? (least) : (most);                                                       \
    }                                                                                              \
    static int64_t name##_add(int64_t n, const type *x, const type *y, jask_overflow rule,         \
                              type *z)                                                             \
    {                                                                                              \
        int64_t first = n;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type sum;                                                                              \
            if (__builtin_add_overflow(x[i], y[i], &sum)) {                                        \
                bool fits;                                                                         \
                first = jk_min(first, i);                                                          \
                sum = name##_fit((int128)x[i] + y[i], rule, &fits);                                \
            }                                                                                      \
            z[i] = sum;                                                                            \
        }                                                                                          \
        return first;                                                                              \
    }                                                                                              \
    static int64_t name(int64_t n, int64_t alpha, const type *x, int64_t beta, const type *y,      \
                        jask_overflow rule, type *z)                                               \
    {                                                                                              \
        int64_t first = n;                                                                         \
        if (alpha == 1 && beta == 1)                                                               \
            return name##_add(n, x, y, rule, z);                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            bool fits;                                                                             \
            int128 value = (int128)alpha * x[i] + (beta ? (int128)beta * y[i] : 0);                \
            z[i] = name##_fit(value, rule, &fits);                                                 \
            if (!fits)                                                                             \
                first = jk_min(first, i);                                                          \
        }                                                                                          \
        return first;                                                                              \
    }

DEFINE_AXPBY(axpby_i8, int8_t, INT8_MIN, INT8_MAX)
DEFINE_AXPBY(axpby_i16, int16_t, INT16_MIN, INT16_MAX)
DEFINE_AXPBY(axpby_i32, int32_t, INT32_MIN, INT32_MAX)
DEFINE_AXPBY(axpby_i64, int64_t, INT64_MIN, INT64_MAX)
DEFINE_AXPBY(axpby_u8, uint8_t, 0, UINT8_MAX)
DEFINE_AXPBY(axpby_u16, uint16_t, 0, UINT16_MAX)
DEFINE_AXPBY(axpby_u32, uint32_t, 0, UINT32_MAX)
DEFINE_AXPBY(axpby_u64, uint64_t, 0, UINT64_MAX)

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
