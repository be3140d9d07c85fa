/* From options to a context and inputs. */
#ifndef JASK_TOOLS_CLI_CONTEXT_H
#define JASK_TOOLS_CLI_CONTEXT_H

#include "cli_options.h"
#include "cli_progress.h"

/* Open a context as the options say. Given no budget by option or environment, takes half of the
 * memory there is and says so. `progress` may be NULL. `options` must outlive the context, which
 * logs to stderr. */
jask_status cli_context_open(const cli_options *options, cli_progress *progress, jask_context **out,
                             jask_error *err);

/* Set the thread count of the BLAS library that this process has loaded: what the options say,
 * else, unless a variable of the library's own says something, as many as can run at once (affinity
 * and CPU quotas count). */
void cli_blas_threads(const cli_options *options);

/* A rows x cols array in scratch, uniform in [-1, 1), a function of `seed` alone. Stops with
 * CANCELED when a signal asks for it. */
jask_status cli_random_array(jask_context *ctx, jask_dtype dtype, int64_t rows, int64_t cols,
                             uint64_t seed, jask_array **out, jask_error *err);

#endif
