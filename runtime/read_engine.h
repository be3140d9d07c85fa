/* How the inputs of a product are read: through the page cache or around it. */
#ifndef JK_RUNTIME_READ_ENGINE_H
#define JK_RUNTIME_READ_ENGINE_H

#include "runtime/pipeline.h"

/* jk_pipeline_run with inputs that are read as ctx's setting `io` says; the product's matrices need
 * not say anything. What cannot be read around the page cache is read through it, with a note in
 * stats->note unless there is another. */
jask_status jk_read_engine_run(const jk_product *product, jask_context *ctx, jk_run_stats *stats,
                               jask_error *err);

#endif
