/* z = alpha * x + beta * y by the widest instructions that the processor has. With beta 0, y is not
 * read: it may be NULL. z lies apart from x and y. Pure. */
#ifndef JK_KERNELS_HOST_AXPBY_H
#define JK_KERNELS_HOST_AXPBY_H

#include "common/base.h"

/* As their twins in host_numbers.h, but for which NaN comes of two. */
void jk_axpby_wide_f32(int64_t n, float alpha, const float *x, float beta, const float *y,
                       float *z);
void jk_axpby_wide_f64(int64_t n, double alpha, const double *x, double beta, const double *y,
                       double *z);

/* In an integer type: the exact value where it fits, else by the rule. Returns the index of the first
 * value that does not fit, n when all do. |alpha| and |beta| are at most 2^53. */
int64_t jk_axpby_integer(jask_dtype dtype, int64_t n, int64_t alpha, const void *x, int64_t beta,
                         const void *y, jask_overflow rule, void *z);

#endif
