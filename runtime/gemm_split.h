/* Products too long for an interface that counts in 32 bits, as parts that are not. Pure. */
#ifndef JK_RUNTIME_GEMM_SPLIT_H
#define JK_RUNTIME_GEMM_SPLIT_H

#include "runtime/device.h"

typedef jask_status (*jk_gemm_fn)(void *user, const jk_gemm *gemm, jask_error *err);

/* Call `part` with products whose extents and leading dimensions are at most `most`, and which do,
 * one after the other, what *gemm says. Usually that is *gemm itself. */
jask_status jk_gemm_split(const jk_gemm *gemm, int64_t most, jk_gemm_fn part, void *user,
                          jask_error *err);

#endif
