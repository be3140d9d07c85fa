/* Plain-C loops over elements of any type. Pure. */
#ifndef JK_KERNELS_HOST_ELEMENTS_H
#define JK_KERNELS_HOST_ELEMENTS_H

#include "common/base.h"

/* dst[i] = src[i] in another type: one that holds every value of `from`, or an integer that holds these
 * values, or, rounded to nearest, ties to even, f16 or bf16 from f32, f32 from f64, c64 from c128. dst
 * may lie in the same memory, when its end is not before that of src (a type that grows) or its
 * beginning not behind (one that shrinks). */
void jk_convert(int64_t n, jask_dtype from, const void *src, jask_dtype to, void *dst);

/* dst[i] = src[i], whole numbers in f64, in an integer type. Returns the index of the first one that
 * it cannot hold, with *out_value, else n. dst may be src. */
int64_t jk_f64_to_whole(int64_t n, const void *src, jask_dtype to, void *dst, double *out_value);

/* Conjugate complex elements; others are what they are. */
void jk_conjugate(int64_t n, jask_dtype dtype, void *data);

/* Spread elements of `size` bytes over a box of extents len: dst is dense and row-major; src has
 * `strides` in elements, 0 along dimensions that it lacks. */
void jk_spread(int ndim, const int64_t *len, size_t size, const void *src, const int64_t *strides,
               void *dst);

#endif
