/* A double-buffered program as the library's pipeline is one, small enough to know every wait of
 * it: tiles go up, are multiplied by a fixed matrix, and come down, on a stream each. */
#ifndef CUSIM_EXAMPLE_H
#define CUSIM_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>

/* The waits that a run can leave out, one at a time. */
typedef enum example_wait {
    EXAMPLE_ALL_WAITS = 0,
    SKIP_HOST_BEFORE_REFILL, /* staging still being copied from */
    SKIP_UP_BEFORE_SLOT,     /* slot still read by a product */
    SKIP_PRODUCT_BEFORE_IN,  /* slot not filled yet */
    SKIP_PRODUCT_BEFORE_OUT, /* result still being copied down */
    SKIP_DOWN,               /* result not computed yet */
    SKIP_HOST_BEFORE_RESULT, /* staging not filled yet */
    SKIP_LAST_RESULTS,
    RECORD_TOO_EARLY, /* the event stands before the copy that it is for */
    EXAMPLE_WAITS
} example_wait;

const char *example_wait_name(example_wait wait);

/* Returns the first error (a cudaError_t, or 1000 + a cublasStatus_t), 0; frees what it took in any
 * case. `right`: whether the results are. */
int example_run(example_wait skipped, bool *right);

#endif
