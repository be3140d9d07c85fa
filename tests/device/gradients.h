/* Both gradients of a product by joint plans, for the tests of the pipeline: as product.h. */
#ifndef JASK_TESTS_GRADIENTS_H
#define JASK_TESTS_GRADIENTS_H

#include "product.h"

typedef struct gradients_shape {
    int64_t m, n, k;
    bool ta, tb;    /* A, or B, is stored as its transpose */
    bool g_fortran; /* and so is G */
    bool adds;      /* dA to one in C order, dB to one in Fortran order */
} gradients_shape;

enum { GRADIENTS_SHAPES = 6 };
extern const gradients_shape gradients_shapes[GRADIENTS_SHAPES];

/* Files, and a joint plan for them in the setup's budget. dA = 2 G B' [+ what there was]. */
typedef struct gradients {
    gradients_shape shape;
    jask_array *a, *b, *g, *before[2], *d[2];
    jk_joint plan;
    jk_product jobs[2];
    jk_run_stats stats;
} gradients;

/* `number` chooses among plans: which side stays, slots, and how much of the room is used. */
void gradients_open(const product_setup *setup, const gradients_shape *shape, uint64_t number,
                    gradients *out);
/* Every element is as it must be; and every counted number, too. */
bool gradients_are_right(const gradients *g);
void gradients_check(const gradients *g);
void gradients_close(gradients *g);

/* All of it, the run included, for shapes, blocks and readers of many kinds. */
void gradients_run_many(jk_device_ref device);

#endif
