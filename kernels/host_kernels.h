/* Plain-C kernels: the slow twins that fast paths are compared with, and the small loops over
 * memory that the runtime needs. Pure. */
#ifndef JK_KERNELS_HOST_KERNELS_H
#define JK_KERNELS_HOST_KERNELS_H

#include "common/base.h"

/* c[m x n] = alpha * op(a) * op(b) + beta * c, row-major, in the type's own precision, k ascending:
 * one product and one addition a step. beta 0 overwrites c without reading it; k 0 scales. The twin
 * of the CBLAS product, and its stand-in without a CBLAS. */
void jk_gemm_f32(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                 int64_t ldc);
void jk_gemm_f64(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                 const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c,
                 int64_t ldc);

/* Complex numbers, real factors. */
void jk_gemm_c64(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float _Complex *a, int64_t lda, const float _Complex *b, int64_t ldb,
                 float beta, float _Complex *c, int64_t ldc);
void jk_gemm_c128(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                  const double _Complex *a, int64_t lda, const double _Complex *b, int64_t ldb,
                  double beta, double _Complex *c, int64_t ldc);

/* The sum of x[i] * y[i], as if computed in twice the precision and rounded once, in ascending order;
 * where that is not finite, the plain sum. */
double jk_dot_f64(int64_t n, const double *x, int64_t x_step, const double *y, int64_t y_step);

/* Reverse the bytes of each of `count` elements of `size` bytes (1, 2, 4, 8 or 16; of a complex
 * element each half is a number of its own: pass half the size and twice the count). */
void jk_swap_bytes(void *data, int64_t count, size_t size);

/* dst[c * dst_ld + r] = src[r * src_ld + c] for rows x cols elements of `size` bytes (1 to 16); dst
 * and src lie apart. */
void jk_transpose(void *dst, int64_t dst_ld, const void *src, int64_t src_ld, int64_t rows,
                  int64_t cols, size_t size);

#endif
