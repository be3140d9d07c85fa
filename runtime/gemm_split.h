/* Products as parts: of one side, or none too long for an interface that counts in 32 bits. Pure. */
#ifndef JK_RUNTIME_GEMM_SPLIT_H
#define JK_RUNTIME_GEMM_SPLIT_H

#include "runtime/device.h"

typedef jask_status (*jk_gemm_fn)(void *user, const jk_gemm *gemm, jask_error *err);

/* Call `part` with products whose extents and leading dimensions are at most `most`, and which do,
 * one after the other, what *gemm says. Usually that is *gemm itself. */
jask_status jk_gemm_split(const jk_gemm *gemm, int64_t most, jk_gemm_fn part, void *user,
                          jask_error *err);

/* The part of rows (columns) [from, from + count) of D, or as many as are left. */
jk_gemm jk_gemm_rows(const jk_gemm *gemm, int64_t from, int64_t count);
jk_gemm jk_gemm_cols(const jk_gemm *gemm, int64_t from, int64_t count);

#endif
