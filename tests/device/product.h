/* Products for the tests of the pipeline: small integers in files, run on any device, checked
 * element by element, and what was counted against what was planned. */
#ifndef JASK_TESTS_PRODUCT_H
#define JASK_TESTS_PRODUCT_H

#include "runtime/pipeline.h"

typedef struct product_setup {
    jk_device_ref device;
    jask_context *ctx;
    int io_threads;
    size_t block_bytes;
    uint64_t budget;
    uint64_t host_budget; /* beside a device with memory of its own, for strips and sums */
    jk_planner planner;
    bool pipelined;
    bool resumes;
    int layered; /* > 0: in super-tiles of few tiles each, and layers, of many kinds by number */
} product_setup;

typedef struct product_shape {
    int64_t m, n, k;
    bool ta, tb, with_c, c_fortran;
} product_shape;

/* For a card with a few tiles at a time. */
enum { PRODUCT_SHAPES = 7 };
extern const product_shape product_shapes[PRODUCT_SHAPES];

/* Readers, blocks, planners and budgets of many kinds, by `number`. */
product_setup product_varied_setup(const jk_device_ref *device, jask_context *ctx, uint64_t number);

/* The same, of products in layers. */
product_setup product_layered_setup(const jk_device_ref *device, jask_context *ctx,
                                    uint64_t number);

/* Blocks and buffers that a run takes of host memory. */
size_t product_staging_bytes(const product_setup *setup, const product_shape *shape);

/* Files in the test's directory, opened, and a plan for them. D = 2 op(A) op(B) [- C]. */
typedef struct product {
    product_shape shape;
    jask_array *a, *b, *c, *d;
    jk_plan plan;
    jk_product job;
    jk_run_stats stats;
} product;

void product_open(const product_setup *setup, const product_shape *shape, product *out);
/* Every element, and every counted number, is as it must be. */
void product_check(const product *p);
void product_close(product *p);

/* All of it, the run included. */
void product_run(const product_setup *setup, const product_shape *shape);

/* Products of many shapes, with blocks smaller than a row, of one row, of several rows and of the
 * whole panel; with one reader and many. */
void product_run_many(jk_device_ref device);

#endif
