/* How kernels walk over elements: 64-bit indices, any grid for any count, and 16 bytes at once
 * where all operands are aligned alike. For *.cu only. */
#ifndef JK_KERNELS_DEVICE_LOOPS_H
#define JK_KERNELS_DEVICE_LOOPS_H

#include "kernels/launch.h"

#define JK_THREADS 256
/* Enough to fill any card; the rest is a loop, so that no limit of the grid is ever met. */
#define JK_MAX_BLOCKS 2048

__host__ __device__ static inline int64_t jk_ceil(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static inline unsigned jk_blocks(int64_t threads)
{
    int64_t blocks = jk_ceil(threads, JK_THREADS);
    return (unsigned)(blocks < JK_MAX_BLOCKS ? blocks : JK_MAX_BLOCKS);
}

__device__ static inline int64_t jk_first()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ static inline int64_t jk_stride()
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* `count` neighbours, loaded and stored 16 bytes at a time. */
template <class T, int count> struct alignas(16) jk_pack {
    T v[count];
};

/* n elements: `head` single ones, then `packs` packs, then the other single ones. */
struct jk_span {
    int64_t n, head, packs;
};

static inline bool jk_aligned(const void *ptr, int64_t elems, size_t size)
{
    return ((uintptr_t)ptr + (uintptr_t)elems * size) % 16 == 0;
}

/* Split n elements of two operands into packs of `count`; all are single when no element begins at
 * a multiple of 16 bytes in both. */
static inline jk_span jk_split(int64_t n, int count, const void *x, size_t x_size, const void *y,
                               size_t y_size)
{
    for (int64_t head = 0; head < count && head < n; head++)
        if (jk_aligned(x, head, x_size) && jk_aligned(y, head, y_size))
            return jk_span{n, head, (n - head) / count};
    return jk_span{n, n, 0};
}

static inline unsigned jk_span_blocks(jk_span span, int count)
{
    int64_t single = span.n - span.packs * count;
    return jk_blocks(span.packs > single ? span.packs : single);
}

/* body.many(i) for the pack that begins with element i, body.one(i) for single elements. */
template <int count, class Body> __device__ static inline void jk_each(jk_span span, Body body)
{
    for (int64_t i = jk_first(); i < span.packs; i += jk_stride())
        body.many(span.head + i * count);
    int64_t packed = span.packs * count;
    for (int64_t i = jk_first(); i < span.n - packed; i += jk_stride())
        body.one(i < span.head ? i : i + packed);
}

#endif
