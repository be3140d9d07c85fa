#include "kernels/device_kernels.h"
#include "kernels/device_loops.h"

#include <math.h>

struct sum_rule {
    typedef double value;
    __device__ static double nothing() { return 0; }
    __device__ static void take(double *sum, double x) { *sum += x; }
    __device__ static void join(double *sum, const double *other) { *sum += *other; }
};

struct range_rule {
    typedef jk_range value;
    __device__ static jk_range nothing() { return jk_range{HUGE_VAL, -HUGE_VAL, 0}; }
    __device__ static void take(jk_range *range, double x)
    {
        if (!(fabs(x) < HUGE_VAL)) {
            range->nonfinite++;
            return;
        }
        range->min = x < range->min ? x : range->min;
        range->max = x > range->max ? x : range->max;
    }
    __device__ static void join(jk_range *range, const jk_range *other)
    {
        range->min = other->min < range->min ? other->min : range->min;
        range->max = other->max > range->max ? other->max : range->max;
        range->nonfinite += other->nonfinite;
    }
};

/* What one lane makes of a part: its turns of 16 bytes, which are one load where x is aligned. */
template <class Rule, class T>
__device__ static typename Rule::value lane_value(int64_t n, const T *x)
{
    enum { count = 16 / sizeof(T) };
    typedef jk_pack<T, count> pack;
    typename Rule::value value = Rule::nothing();
    bool wide = (uintptr_t)x % 16 == 0;
    for (int64_t i = (int64_t)threadIdx.x * count; i < n; i += JK_LANES * count) {
        if (wide && n - i >= count) {
            pack p = *(const pack *)(x + i);
            for (int j = 0; j < count; j++)
                Rule::take(&value, p.v[j]);
        } else {
            for (int64_t j = i; j < n && j < i + count; j++)
                Rule::take(&value, x[j]);
        }
    }
    return value;
}

template <class Rule, class T>
__device__ static void reduce_part(typename Rule::value *lanes, int64_t n, int64_t part_elems,
                                   const T *x, typename Rule::value *out)
{
    int64_t first = blockIdx.x * part_elems;
    int64_t elems = n - first < part_elems ? n - first : part_elems;
    unsigned lane = threadIdx.x;
    lanes[lane] = lane_value<Rule>(elems, x + first);
    for (unsigned half = JK_LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half)
            Rule::join(&lanes[lane], &lanes[lane + half]);
    }
    if (lane == 0)
        out[blockIdx.x] = lanes[0];
}

#define DEFINE_REDUCTION(name, rule, real)                                                         \
    extern "C" __global__ void __launch_bounds__(JK_LANES)                                         \
        jk_k_##name(int64_t n, int64_t part_elems, const real *x, rule::value *out)                \
    {                                                                                              \
        __shared__ rule::value lanes[JK_LANES];                                                    \
        reduce_part<rule>(lanes, n, part_elems, x, out);                                           \
    }                                                                                              \
    JK_KERNEL(jk_k_##name)                                                                         \
    cudaError_t jk_cuda_##name(int64_t n, const real *x, rule::value *out, cudaStream_t stream)    \
    {                                                                                              \
        int64_t elems = n > 0 ? n : 0, parts = jk_parts(elems);                                    \
        return JK_LAUNCH(jk_k_##name, (unsigned)parts, JK_LANES, 0, stream,                        \
                         JK_ACCESS(JK_READS(x, (size_t)elems * sizeof *x),                         \
                                   JK_WRITES(out, (size_t)parts * sizeof *out)),                   \
                         elems, jk_part_elems(elems), x, out);                                     \
    }

DEFINE_REDUCTION(sum_f32, sum_rule, float)
DEFINE_REDUCTION(sum_f64, sum_rule, double)
DEFINE_REDUCTION(range_f32, range_rule, float)
DEFINE_REDUCTION(range_f64, range_rule, double)
