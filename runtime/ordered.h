/* Products on the host whose sums are made in one order: kernels/host_ordered.h says in which. */
#ifndef JK_RUNTIME_ORDERED_H
#define JK_RUNTIME_ORDERED_H

#include "runtime/device.h"

/* The gemm, of f32, f64, c64 or c128, by gemm->threads threads at the most: the bits do not depend on
 * how many. NOMEM without room to pack operands in, some MiB a thread. */
jask_status jk_ordered_run(const jk_gemm *gemm, jask_error *err);

#endif
