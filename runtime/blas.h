/* Products on the host: CBLAS where it is built in, the plain loops otherwise. */
#ifndef JK_RUNTIME_BLAS_H
#define JK_RUNTIME_BLAS_H

#include "runtime/blas_advice.h"
#include "runtime/device.h"

/* gemm->dtype is f32, f64, c64 or c128, that of the inputs the same; all pointers are host memory. */
void jk_blas_gemm(const jk_gemm *gemm);

/* The same by the plain loops. */
void jk_plain_gemm(const jk_gemm *gemm);

/* "openblas", or "plain C loops". */
const char *jk_blas_name(void);

/* The processor that its kernels are for, as OpenBLAS names it; "" of a library that does not say. */
const char *jk_blas_core(void);

/* jk_blas_advise for the library in use and this processor; "" where the user has told OpenBLAS what to take. */
void jk_blas_advise_here(char text[JK_BLAS_ADVICE]);

/* Its name and, as far as it says, version, kernels and threads: with another text products may
 * differ in their last bits. */
void jk_blas_describe(char *text, size_t text_size);

#endif
