/* How the inputs of a product are read and its result is written: through the page cache or around it. */
#ifndef JK_RUNTIME_IO_ENGINE_H
#define JK_RUNTIME_IO_ENGINE_H

#include "runtime/pipeline.h"

/* jk_pipeline_run with inputs that are read, and a result that is written, as ctx's setting `io` says; the
 * product's matrices need not say anything. What cannot go around the page cache goes through it, with
 * a note in stats->note unless there is another. */
jask_status jk_io_engine_run(const jk_product *product, jask_context *ctx, jk_run_stats *stats,
                             jask_error *err);

#endif
