/* Products on the host: CBLAS where it is built in, the plain loops otherwise. */
#ifndef JK_RUNTIME_BLAS_H
#define JK_RUNTIME_BLAS_H

#include "runtime/device.h"

/* gemm->dtype is f32, f64, c64 or c128, that of the inputs the same; all pointers are host memory. */
void jk_blas_gemm(const jk_gemm *gemm);

/* The same by the plain loops. */
void jk_plain_gemm(const jk_gemm *gemm);

/* "openblas", or "plain C loops". */
const char *jk_blas_name(void);

/* Its name and, as far as it says, version, kernels and threads: with another text products may
 * differ in their last bits. */
void jk_blas_describe(char *text, size_t text_size);

#endif
