/* What operations in blocks share: from a plan to a committed result and a report. */
#ifndef JK_RUNTIME_BLOCK_OP_H
#define JK_RUNTIME_BLOCK_OP_H

#include "runtime/block_run.h"
#include "runtime/budget.h"

/* An array as dimensions of the space see it: at the right, extents of 1 serving a whole dimension.
 * ARG naming `what` when its shape does not fit. */
jask_status jk_strided_of(const jask_array *array, const char *what, int ndim, const int64_t *shape,
                          jk_strided *out, jask_error *err);

/* Shape of two arrays together, as NumPy broadcasts. ARG with both shapes when they do not fit. */
jask_status jk_broadcast(const jask_array *a, const jask_array *b, int *out_ndim,
                         int64_t *out_shape, jask_error *err);

/* "(2, 3)" */
const char *jk_shape_text(int ndim, const int64_t *shape, char *text, size_t size);

/* An operation that is checked but not planned: everything but `plan`. The space and the arrays'
 * strides are as the caller sees them until jk_block_op_arrange. */
typedef struct jk_block_op {
    const char *name;  /* "add" */
    jask_context *ctx; /* one reference */
    jask_dtype dtype;  /* of the result */
    const char *precision;
    const char *output;        /* to be committed under; NULL when not */
    bool in_place;             /* the result has its room already */
    const char *trace;         /* a timeline to write; NULL: none */
    const jask_array *read[3]; /* checked for changes at the end; NULL: none */
    bool empty;
    jk_blocks_problem problem; /* ndim, shape, sizes of work */
    jk_block_job job;
    jk_budget budget;
    jk_blocks plan;
} jk_block_op;

/* Bring problem and arrays to the fewest dimensions; then is the time to say what work they take. */
void jk_block_op_arrange(jk_block_op *op);

/* Make op->plan, and set what the job needs of it. */
jask_status jk_block_op_plan(jk_block_op *op, jask_error *err);

/* Carry it out into `result` (may be NULL) and commit that where op->output says so. report may be
 * NULL. */
jask_status jk_block_op_run(jk_block_op *op, jask_array *result, jask_report *report,
                            jask_error *err);

/* jask_add, but for giving the result its name: *out is yet to be flushed and published. */
jask_status jk_add_uncommitted(jask_context *ctx, const jask_array *a, const jask_array *b,
                               const jask_add_args *args, jask_array **out, jask_report *report,
                               jask_error *err);

#endif
