#include "kernels/device_kernels.h"
#include "kernels/device_loops.h"

#include <math.h>
#include <string.h>

__device__ static inline float multiply_add(float a, float b, float c)
{
    return fmaf(a, b, c);
}
__device__ static inline double multiply_add(double a, double b, double c)
{
    return fma(a, b, c);
}

/* z = alpha * x + beta * y, or with `scale` alpha * x alone. z may be x or y, so nothing is kept
 * from one element to the next. */
template <class T, bool scale> struct axpby_body {
    enum { count = 16 / sizeof(T) };
    typedef jk_pack<T, count> pack;
    T alpha, beta;
    const T *x, *y;
    T *z;

    __device__ T value(T a, T b) const
    {
        return scale ? alpha * a : multiply_add(alpha, a, beta * b);
    }
    __device__ void one(int64_t i) const { z[i] = value(x[i], scale ? T(0) : y[i]); }
    __device__ void many(int64_t i) const
    {
        pack a = *(const pack *)(x + i), b = scale ? a : *(const pack *)(y + i), c;
        for (int j = 0; j < count; j++)
            c.v[j] = value(a.v[j], b.v[j]);
        *(pack *)(z + i) = c;
    }
};

template <class T>
__device__ static void axpby(jk_span span, T alpha, const T *x, T beta, const T *y, T *z)
{
    enum { count = 16 / sizeof(T) };
    if (beta == 0)
        jk_each<count>(span, axpby_body<T, true>{alpha, beta, x, y, z});
    else
        jk_each<count>(span, axpby_body<T, false>{alpha, beta, x, y, z});
}

/* x, y and z must lie alike: y counts as x where it is not read. */
template <class T> static jk_span axpby_span(int64_t n, const T *x, const T *y, const T *z)
{
    enum { count = 16 / sizeof(T) };
    if (((uintptr_t)x - (uintptr_t)y) % 16 != 0)
        return jk_span{n, n, 0};
    return jk_split(n, count, x, sizeof *x, z, sizeof *z);
}

#define DEFINE_AXPBY(name, real)                                                                   \
    extern "C" __global__ void __launch_bounds__(JK_THREADS)                                       \
        jk_k_##name(jk_span span, real alpha, const real *x, real beta, const real *y, real *z)    \
    {                                                                                              \
        axpby(span, alpha, x, beta, y, z);                                                         \
    }                                                                                              \
    JK_KERNEL(jk_k_##name)                                                                         \
    cudaError_t jk_cuda_##name(int64_t n, real alpha, const real *x, real beta, const real *y,     \
                               real *z, cudaStream_t stream)                                       \
    {                                                                                              \
        if (n < 1)                                                                                 \
            return cudaSuccess;                                                                    \
        const real *read_y = beta == 0 ? x : y;                                                    \
        jk_span span = axpby_span(n, x, read_y, z);                                                \
        return JK_LAUNCH(                                                                          \
            jk_k_##name, jk_span_blocks(span, 16 / sizeof(real)), JK_THREADS, 0, stream,           \
            JK_ACCESS(JK_READS(x, (size_t)n * sizeof *x), JK_READS(read_y, (size_t)n * sizeof *y), \
                      JK_WRITES(z, (size_t)n * sizeof *z)),                                        \
            span, alpha, x, beta, read_y, z);                                                      \
    }

DEFINE_AXPBY(axpby_f32, float)
DEFINE_AXPBY(axpby_f64, double)

__device__ static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

__device__ static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Exponent and fraction taken for a float's are a number 2^112 times too small, also where the half
 * is subnormal: one exact product mends it. */
struct f16_to_f32 {
    __device__ static float convert(uint16_t x)
    {
        uint32_t rest = x & 0x7fffu;
        uint32_t bits = rest < 0x7c00 ? bits_of(float_of(rest << 13) * 0x1p112f)
                                      : 0x7f800000u | (rest & 0x3ffu) << 13;
        return float_of(bits | (x & 0x8000u) << 16);
    }
};

struct bf16_to_f32 {
    __device__ static float convert(uint16_t x) { return float_of((uint32_t)x << 16); }
};

/* Adding 1/2, whose last place is the least half, rounds a number below the normal halves. */
struct f32_to_f16 {
    __device__ static uint16_t convert(float x)
    {
        uint32_t rest = bits_of(x) & 0x7fffffffu, half;
        if (rest > 0x7f800000u)
            half = 0x7e00u | (rest >> 13 & 0x3ffu);
        else if (rest >= 0x47800000u)
            half = 0x7c00u;
        else if (rest < 0x38800000u)
            half = bits_of(float_of(rest) + 0.5f) - bits_of(0.5f);
        else
            half = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
        return (uint16_t)(half | (bits_of(x) >> 16 & 0x8000u));
    }
};

struct f32_to_bf16 {
    __device__ static uint16_t convert(float x)
    {
        uint32_t bits = bits_of(x);
        if ((bits & 0x7fffffffu) > 0x7f800000u)
            return (uint16_t)(bits >> 16 | 0x40u);
        return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
};

struct f32_to_f64 {
    __device__ static double convert(float x) { return (double)x; }
};

struct f64_to_f32 {
    __device__ static float convert(double x) { return (float)x; }
};

template <class Rule, class X, class Y> struct convert_body {
    enum { count = 16 / (sizeof(X) < sizeof(Y) ? sizeof(X) : sizeof(Y)) };
    typedef jk_pack<X, count> pack_in;
    typedef jk_pack<Y, count> pack_out;
    const X *x;
    Y *y;

    __device__ void one(int64_t i) const { y[i] = Rule::convert(x[i]); }
    __device__ void many(int64_t i) const
    {
        pack_in in = *(const pack_in *)(x + i);
        pack_out out;
        for (int j = 0; j < count; j++)
            out.v[j] = Rule::convert(in.v[j]);
        *(pack_out *)(y + i) = out;
    }
};

#define DEFINE_CONVERSION(rule, from, to)                                                          \
    extern "C" __global__ void __launch_bounds__(JK_THREADS)                                       \
        jk_k_##rule(jk_span span, const from *x, to *y)                                            \
    {                                                                                              \
        typedef convert_body<rule, from, to> body;                                                 \
        jk_each<body::count>(span, body{x, y});                                                    \
    }                                                                                              \
    JK_KERNEL(jk_k_##rule)                                                                         \
    cudaError_t jk_cuda_##rule(int64_t n, const from *x, to *y, cudaStream_t stream)               \
    {                                                                                              \
        if (n < 1)                                                                                 \
            return cudaSuccess;                                                                    \
        const int count = convert_body<rule, from, to>::count;                                     \
        jk_span span = jk_split(n, count, x, sizeof *x, y, sizeof *y);                             \
        return JK_LAUNCH(                                                                          \
            jk_k_##rule, jk_span_blocks(span, count), JK_THREADS, 0, stream,                       \
            JK_ACCESS(JK_READS(x, (size_t)n * sizeof *x), JK_WRITES(y, (size_t)n * sizeof *y)),    \
            span, x, y);                                                                           \
    }

DEFINE_CONVERSION(f16_to_f32, uint16_t, float)
DEFINE_CONVERSION(bf16_to_f32, uint16_t, float)
DEFINE_CONVERSION(f32_to_f16, float, uint16_t)
DEFINE_CONVERSION(f32_to_bf16, float, uint16_t)
DEFINE_CONVERSION(f32_to_f64, float, double)
DEFINE_CONVERSION(f64_to_f32, double, float)
