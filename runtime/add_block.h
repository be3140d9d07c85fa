/* One block of a sum: from windows of its terms to a window of the result. */
#ifndef JK_RUNTIME_ADD_BLOCK_H
#define JK_RUNTIME_ADD_BLOCK_H

#include "runtime/block_run.h"

/* factor[0] * input[0] + factor[1] * input[1]; a factor of 0 leaves its input unread. */
typedef struct jk_add_terms {
    const jk_strided *input; /* JK_BLOCKS_INPUTS, as the plan's operands */
    double factor[JK_BLOCKS_INPUTS];
    jask_dtype dtype, work; /* of the result; in which is computed */
    jask_overflow overflow;
} jk_add_terms;

/* Whether elements of the operand come in the order of the sum. One that does not is spread over the
 * box before it is computed, which takes spread_bytes of the size of its elements. */
bool jk_add_in_order(const jk_blocks_problem *problem, const jk_blocks_operand *operand);

/* Returns the number, in the block, of the first element that its type cannot hold; the number of
 * elements when there is none. */
int64_t jk_add_block(const jk_add_terms *terms, const jk_blocks *plan, const jk_block *block);

#endif
