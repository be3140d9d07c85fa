/* Reductions: an operation in blocks whose output lacks some dimensions of its input. What goes into
 * one element of the output is taken in the order of the file, in lanes that depend on the shape alone:
 * the bits depend neither on the budget nor on threads. */
#ifndef JK_RUNTIME_TALLY_OP_H
#define JK_RUNTIME_TALLY_OP_H

#include "kernels/host_tally.h"
#include "runtime/block_op.h"

/* op.job.input[0] is what is reduced. With an output, `finish` makes its elements from tallies: one
 * for a real, two for a complex element. Without, `all`
 * has room for JK_TALLY_LANES, and at the end holds one, or two for complex numbers. */
typedef struct jk_tally_op {
    jk_block_op op;
    int parts;     /* jk_tally_parts */
    int complex;   /* 1, or 2 for complex numbers: real and imaginary parts by turns */
    int64_t lanes; /* tallies of one element while it is gathered */
    jk_tally *all;
    jask_status (*finish)(void *user, const jk_block *block, const jk_tally *tallies, int64_t count,
                          jask_error *err);
    void *user;
} jk_tally_op;

enum { JK_TALLY_LANES = 8 };

/* Bring op->op (problem and arrays described, not arranged) to a plan. */
jask_status jk_tally_op_plan(jk_tally_op *op, jask_error *err);

/* For op.job.compute; user is the jk_tally_op. */
jask_status jk_tally_op_compute(void *user, const jk_block *block, jask_error *err);

#endif
