/* Products drawn at random, for programs that put the pipeline's threads under stress. Not Criterion's,
 * which does not start under TSan: what goes wrong ends the program with status 1. */
#ifndef JASK_TESTS_PRODUCTS_H
#define JASK_TESTS_PRODUCTS_H

#include "runtime/device.h"

#include <jask.h>

/* Print the message and end the program when `st` is a failure. */
void stress_must(jask_status st, const jask_error *err);

/* What the products need of one: a scratch directory, and a callback that cancels some. */
jask_context *stress_context(void);

/* The next one: some shape, budget and number of threads, some canceled halfway, the others checked. */
void stress_product(jask_context *ctx, const jk_device_ref *device);

/* The same with both gradients of a product by a joint plan. */
void stress_gradients(jask_context *ctx, const jk_device_ref *device);

#endif
