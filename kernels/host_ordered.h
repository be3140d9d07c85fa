/* Products whose sums are made in one order, whatever they are cut into and whatever multiplies them:
 * every element of the result has the same bits for every cut into tiles, for panels that begin at
 * multiples of JK_SLAB, and on every processor and card. Pure. */
#ifndef JK_KERNELS_HOST_ORDERED_H
#define JK_KERNELS_HOST_ORDERED_H

#include "common/base.h"

/* Indices of k that are summed up before the sum is added to the result. Of k products, each rounding
 * then touches (JK_SLAB + k / JK_SLAB) sums at the most, which is least at k = JK_SLAB^2. */
#define JK_SLAB 256

/* c[m x n] = alpha * op(a) * op(b) + beta * c, row-major, leading dimensions in elements; a transposed
 * operand is stored as its transpose. Each element of c is made so, every operation rounded once:
 *     c = beta * c                       (0 where beta is 0, without reading c)
 *     for each slab of JK_SLAB indices of k, ascending:
 *         t = 0
 *         for each index, ascending:  t = fma(a, b, t)
 *         c = fma(alpha, t, c)
 * Complex: t and u so, with the real and the imaginary part of a, for both parts of b; then
 * t.re - u.im and t.im + u.re are t's place in the last line, for each part of c. */
typedef struct jk_ordered {
    bool trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
} jk_ordered;

/* As it is written above: the twins of the fast path, which stand in for it on processors without
 * AVX2 and FMA. */
void jk_ordered_f32(const jk_ordered *g);
void jk_ordered_f64(const jk_ordered *g);
void jk_ordered_c64(const jk_ordered *g);
void jk_ordered_c128(const jk_ordered *g);

/* The same by vectors, where this processor has them, else by the twins. `dtype` is f32, f64, c64 or
 * c128; `room` is jk_ordered_room() bytes at a multiple of 64 to pack operands in. */
size_t jk_ordered_room(void);
void jk_ordered_gemm(jask_dtype dtype, const jk_ordered *g, void *room);

#endif
