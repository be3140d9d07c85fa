/* Plans for operations that visit every element of an index space: sums of arrays, reductions. The
 * space is cut into boxes of one shape, visited in row-major order. Of each operand a box needs a
 * window, which is brought once for as long as it stays the same. Pure. */
#ifndef JK_PLANNER_BLOCKS_H
#define JK_PLANNER_BLOCKS_H

#include "common/base.h"

enum { JK_BLOCKS_INPUTS = 2 };

/* How an operand lies along the dimensions of the space. */
typedef struct jk_blocks_operand {
    int bytes;      /* of an element of the file; 0: there is no such operand */
    int work_bytes; /* for each element of a window, held beside it while a box is computed */
    /* The same, for each element of a box instead: a copy of the window spread over the box. */
    int spread_bytes;
    int64_t strides[JASK_MAX_DIMS]; /* elements; 0: the same elements serve the whole dimension */
} jk_blocks_operand;

/* Extents are 2 or more: see jk_blocks_simplify. Along trailing dimensions the output's strides may
 * be 0: boxes that differ in those alone give one window of it. */
typedef struct jk_blocks_problem {
    int ndim;
    int64_t shape[JASK_MAX_DIMS];
    jk_blocks_operand input[JK_BLOCKS_INPUTS];
    jk_blocks_operand output; /* its strides fall from dimension to dimension */
} jk_blocks_problem;

typedef struct jk_blocks_machine {
    uint64_t bytes; /* the budget of all windows and work */
    int slots;      /* windows of an operand at once */
} jk_blocks_machine;

typedef struct jk_blocks {
    jk_blocks_problem problem;
    int slots;
    int64_t box[JASK_MAX_DIMS];
    int64_t counts[JASK_MAX_DIMS];           /* of boxes along a dimension */
    int64_t blocks;                          /* their product; 0: the space is empty */
    int64_t loads[JK_BLOCKS_INPUTS], stores; /* windows brought and taken */
    uint64_t file_read_bytes, file_write_bytes;
    uint64_t peak_bytes, budget_bytes;
} jk_blocks;

/* One box: indices [lo, lo + len) of each dimension. */
typedef struct jk_box {
    int64_t lo[JASK_MAX_DIMS], len[JASK_MAX_DIMS];
} jk_box;

/* Bring the dimensions into the order of the output (those that it lacks last, in the order of the
 * first input), leave out those of extent 1, and join those that lie one behind the other in every
 * operand. The space has no extent of 0. */
void jk_blocks_simplify(jk_blocks_problem *problem);

/* BUDGET with the least that works. The problem is simplified; `empty`: the space has no elements. */
jask_status jk_blocks_make(const jk_blocks_problem *problem, bool empty,
                           const jk_blocks_machine *machine, jk_blocks *out, jask_error *err);

jk_box jk_blocks_box(const jk_blocks *plan, int64_t block);

/* Successive blocks, beginning with a multiple of it, that need the same window of the operand. */
int64_t jk_blocks_share(const jk_blocks *plan, const jk_blocks_operand *operand);

/* Elements of a window of a box of extents `len`, and of the box. */
int64_t jk_window_elems(const jk_blocks *plan, const jk_blocks_operand *operand,
                        const int64_t *len);
int64_t jk_box_elems(const jk_blocks *plan, const int64_t *len);

/* Memory for a window, and for the work of one operand: largest box, alignment included. */
size_t jk_blocks_window_bytes(const jk_blocks *plan, const jk_blocks_operand *operand);
size_t jk_blocks_work_bytes(const jk_blocks *plan, const jk_blocks_operand *operand);

/* As jk_plan_format. */
size_t jk_blocks_format(const jk_blocks *plan, bool json, char *text, size_t text_size);

#endif
