#include "kernels/host_elements.h"

#include "kernels/host_halves.h"
#include "kernels/host_kernels.h"

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

#define LOAD(type, kind_, field, count)                                                            \
    do {                                                                                           \
        for (int64_t i_ = 0; i_ < (count); i_++) {                                                 \
            type x_;                                                                               \
            memcpy(&x_, (const char *)src + (size_t)i_ * sizeof x_, sizeof x_);                    \
            c->field[i_] = (__typeof__(c->field[0]))x_;                                            \
        }                                                                                          \
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
            jk_widen_f16(n, half, narrow);
        else
            jk_widen_bf16(n, half, narrow);
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
        for (int64_t i_ = 0; i_ < (count); i_++) {                                                 \
            type x_ = (type)c->field[i_];                                                          \
            memcpy((char *)dst + (size_t)i_ * sizeof x_, &x_, sizeof x_);                          \
        }                                                                                          \
    } while (0)

static void store_half(jask_dtype to, const chunk *c, int64_t n, void *dst)
{
    float narrow[CHUNK];
    uint16_t half[CHUNK];
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)c->real[i];
    if (to == JASK_F16)
        jk_narrow_f16(n, narrow, half);
    else
        jk_narrow_bf16(n, narrow, half);
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

/* Between the types of 16 bits and f32, which they are computed in; src and dst lie apart. */
static void convert_half(int64_t n, jask_dtype from, const void *src, jask_dtype to, void *dst)
{
    if (from == JASK_F16)
        jk_widen_f16(n, src, dst);
    else if (from == JASK_BF16)
        jk_widen_bf16(n, src, dst);
    else if (to == JASK_F16)
        jk_narrow_f16(n, src, dst);
    else
        jk_narrow_bf16(n, src, dst);
}

/* Types that need no third one between them, each number by itself. */
#define PAIRS(PAIR)                                                                                \
    PAIR(JASK_I8, int8_t, JASK_I16, int16_t)                                                       \
    PAIR(JASK_I8, int8_t, JASK_I32, int32_t)                                                       \
    PAIR(JASK_I8, int8_t, JASK_I64, int64_t)                                                       \
    PAIR(JASK_I8, int8_t, JASK_F32, float)                                                         \
    PAIR(JASK_U8, uint8_t, JASK_I16, int16_t)                                                      \
    PAIR(JASK_U8, uint8_t, JASK_U16, uint16_t)                                                     \
    PAIR(JASK_U8, uint8_t, JASK_I32, int32_t)                                                      \
    PAIR(JASK_U8, uint8_t, JASK_U32, uint32_t)                                                     \
    PAIR(JASK_U8, uint8_t, JASK_F32, float)                                                        \
    PAIR(JASK_I16, int16_t, JASK_I32, int32_t)                                                     \
    PAIR(JASK_I16, int16_t, JASK_I64, int64_t)                                                     \
    PAIR(JASK_I16, int16_t, JASK_F32, float)                                                       \
    PAIR(JASK_U16, uint16_t, JASK_I32, int32_t)                                                    \
    PAIR(JASK_U16, uint16_t, JASK_U32, uint32_t)                                                   \
    PAIR(JASK_U16, uint16_t, JASK_F32, float)                                                      \
    PAIR(JASK_I32, int32_t, JASK_I64, int64_t)                                                     \
    PAIR(JASK_I32, int32_t, JASK_F64, double)                                                      \
    PAIR(JASK_U32, uint32_t, JASK_I64, int64_t)                                                    \
    PAIR(JASK_U32, uint32_t, JASK_U64, uint64_t)                                                   \
    PAIR(JASK_F32, float, JASK_F64, double)                                                        \
    PAIR(JASK_F64, double, JASK_F32, float)

#define CONVERT_PAIR(from_type, from_c, to_type, to_c)                                             \
    case from_type *TYPES + to_type:                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((to_c *)dst)[i] = (to_c)((const from_c *)src)[i];                                     \
        return true;

/* False where the pair has no loop of its own. src and dst lie apart. */
static bool convert_pair(int64_t n, jask_dtype from, const void *src, jask_dtype to, void *dst)
{
    enum { TYPES = 64 };
    switch (from * TYPES + to) {
        PAIRS(CONVERT_PAIR)
    default:
        return false;
    }
}

static bool apart(const void *x, size_t x_bytes, const void *y, size_t y_bytes)
{
    uintptr_t a = (uintptr_t)x, b = (uintptr_t)y;
    return a + x_bytes <= b || b + y_bytes <= a;
}

void jk_convert(int64_t n, jask_dtype from, const void *src, jask_dtype to, void *dst)
{
    size_t from_size = jask_dtype_size(from), to_size = jask_dtype_size(to);
    bool half = (is_half(from) && to == JASK_F32) || (from == JASK_F32 && is_half(to));
    if (from == to) {
        memmove(dst, src, (size_t)n * from_size);
        return;
    }
    if (apart(src, (size_t)n * from_size, dst, (size_t)n * to_size)) {
        if (half)
            convert_half(n, from, src, to, dst);
        if (half || convert_pair(n, from, src, to, dst))
            return;
    }
    /* A chunk is read whole before any of it is written. */
    for (int64_t i = 0; i < n; i += CHUNK) {
        chunk c;
        int64_t part = jk_min(CHUNK, n - i);
        const char *x = (const char *)src + (size_t)i * from_size;
        char *y = (char *)dst + (size_t)i * to_size;
        if (half) {
            memcpy(c.real, x, (size_t)part * from_size);
            convert_half(part, from, c.real, to, c.whole);
            memcpy(y, c.whole, (size_t)part * to_size);
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

/* Of dst the first `bytes` are there; let it be `times` copies of them. */
static void repeat(char *dst, size_t bytes, int64_t times)
{
    size_t all = bytes * (size_t)times, part;
    for (size_t done = bytes; done < all; done += part) {
        part = done < all - done ? done : all - done;
        memcpy(dst + done, dst, part);
    }
}

/* n elements, `stride` apart (0: one for all), side by side. */
static void copy_row(int64_t n, size_t size, const void *src, int64_t stride, void *dst)
{
    if (stride <= 1) {
        memcpy(dst, src, (stride ? (size_t)n : 1) * size);
        if (stride == 0)
            repeat(dst, size, n);
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

typedef struct spreading {
    int ndim, turned; /* the dimension along which src lies side by side, not the last; -1: none */
    const int64_t *len, *from; /* extents, strides of src */
    int64_t to[JASK_MAX_DIMS]; /* of dst */
    size_t size;
} spreading;

/* Where the last dimension has elements apart. */
static int turned_dimension(int ndim, const int64_t *len, const int64_t *strides)
{
    if (ndim == 0 || strides[ndim - 1] <= 1)
        return -1;
    for (int d = 0; d < ndim - 1; d++)
        if (strides[d] == 1 && len[d] > 1)
            return d;
    return -1;
}

/* Dimensions d and after. With a turned one the last step is a plane of that and the last. */
static void spread_from(const spreading *s, int d, const char *src, char *dst)
{
    int last = s->ndim - 1;
    if (d == last) {
        if (s->turned < 0)
            copy_row(s->len[d], s->size, src, s->from[d], dst);
        else
            jk_transpose(dst, s->to[s->turned], src, s->from[d], s->len[d], s->len[s->turned],
                         s->size);
    } else if (d == s->turned) {
        spread_from(s, d + 1, src, dst);
    } else if (s->from[d] == 0 && (s->turned < 0 || d < s->turned)) {
        /* What is behind dimension d lies in one piece. */
        spread_from(s, d + 1, src, dst);
        repeat(dst, (size_t)s->to[d] * s->size, s->len[d]);
    } else {
        for (int64_t i = 0; i < s->len[d]; i++)
            spread_from(s, d + 1, src + (size_t)(i * s->from[d]) * s->size,
                        dst + (size_t)(i * s->to[d]) * s->size);
    }
}

void jk_spread(int ndim, const int64_t *len, size_t size, const void *src, const int64_t *strides,
               void *dst)
{
    spreading s = {.ndim = ndim,
                   .turned = turned_dimension(ndim, len, strides),
                   .len = len,
                   .from = strides,
                   .size = size};
    if (ndim == 0) {
        memcpy(dst, src, size);
        return;
    }
    for (int64_t stride = 1, d = ndim - 1; d >= 0; d--) {
        s.to[d] = stride;
        stride *= len[d];
    }
    spread_from(&s, 0, src, dst);
}
