#ifndef JK_RUNTIME_SCALE_H
#define JK_RUNTIME_SCALE_H

#include "runtime/pipeline.h"

/* Memory that scaling holds. */
size_t jk_scale_bytes(size_t block_bytes);

/* D = beta * C, block by block, for products without anything to multiply. Bytes are
 * added to those in *stats. */
jask_status jk_scale_matrix(const jk_matrix *c, double beta, const jk_matrix *d, size_t block_bytes,
                            jk_run_stats *stats, jask_error *err);

#endif
