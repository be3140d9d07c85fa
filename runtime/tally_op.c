#include "runtime/tally_op.h"

#include "kernels/host_elements.h"
#include "runtime/dtype.h"

#include <string.h>

enum { CHUNK = 512 };

static jask_dtype input_type(const jk_tally_op *op)
{
    return op->op.job.input[0].dtype;
}

/* The dimension along which the input lies side by side; -1: it is one element. */
static int row_dimension(const jk_blocks_problem *p)
{
    int row = -1;
    for (int d = 0; d < p->ndim; d++)
        if (row < 0 || p->input[0].strides[d] < p->input[0].strides[row])
            row = d;
    return row;
}

jask_status jk_tally_op_plan(jk_tally_op *op, jask_error *err)
{
    jk_blocks_problem *p = &op->op.problem;
    int row;
    op->complex = jk_dtype_kind(input_type(op)) == JK_COMPLEX ? 2 : 1;
    jk_block_op_arrange(&op->op);
    row = row_dimension(p);
    /* Where that dimension is kept, neighbours go to different elements anyway. */
    op->lanes = row >= 0 && p->output.strides[row] == 0 ? JK_TALLY_LANES : op->complex;
    if (p->output.bytes > 0)
        p->output.work_bytes = (int)((size_t)op->lanes * sizeof(jk_tally));
    op->op.job.compute = jk_tally_op_compute;
    op->op.job.user = op;
    return jk_block_op_plan(&op->op, err);
}

/* n elements that lie side by side. With lanes, `first` is the index of the first along its
 * dimension; else each has tallies of its own, `step` elements apart. */
static void tally_row(const jk_tally_op *op, jk_tally *tally, bool reduced, int64_t first,
                      int64_t step, int64_t n, const char *x)
{
    jask_dtype dtype = input_type(op);
    size_t size = jask_dtype_size(dtype);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t part = jk_min(CHUNK, n - i), c = op->complex;
        double wide[2 * CHUNK];
        jk_tally_row row = {.tally = tally, .step = step * op->lanes};
        if (reduced) {
            row.lanes = op->lanes;
            row.first = (first + i) * c;
        } else {
            row.tally += i * row.step;
        }
        if (dtype == JASK_I64)
            jk_tally_signed(&row, op->parts, part, (const int64_t *)(const void *)x + i);
        else if (dtype == JASK_U64)
            jk_tally_unsigned(&row, op->parts, part, (const uint64_t *)(const void *)x + i);
        else {
            jk_convert(part, dtype, x + (size_t)i * size, c == 2 ? JASK_C128 : JASK_F64, wide);
            if (reduced || c == 1)
                jk_tally_reals(&row, op->parts, part * c, wide);
            else
                for (int64_t e = 0; e < part; e++) {
                    jk_tally_row two = {.tally = row.tally + e * row.step, .step = 1};
                    jk_tally_reals(&two, op->parts, 2, wide + 2 * e);
                }
        }
    }
}

static void tally_block(const jk_tally_op *op, const jk_block *block, jk_tally *tally)
{
    const jk_blocks_problem *p = &op->op.plan.problem;
    const int64_t *len = block->box.len;
    int64_t from[JASK_MAX_DIMS], to[JASK_MAX_DIMS], at[JASK_MAX_DIMS] = {0}, stride = 1;
    size_t size = jask_dtype_size(input_type(op));
    const char *x = block->input[0];
    int row = row_dimension(p), d;
    jk_strided_memory(&op->op.job.input[0], &block->box, from);
    for (d = p->ndim - 1; d >= 0; d--) {
        to[d] = p->output.strides[d] ? stride : 0;
        stride *= p->output.strides[d] ? len[d] : 1;
    }
    do {
        if (row < 0)
            tally_row(op, tally, false, 0, 0, 1, x);
        else
            tally_row(op, tally, to[row] == 0, block->box.lo[row], to[row], len[row], x);
        for (d = p->ndim - 1; d >= 0; d--) {
            if (d == row)
                continue;
            x += (size_t)from[d] * size;
            tally += to[d] * op->lanes;
            if (++at[d] < len[d])
                break;
            x -= (size_t)(from[d] * at[d]) * size;
            tally -= to[d] * at[d] * op->lanes;
            at[d] = 0;
        }
    } while (d >= 0);
}

/* Bring the lanes of an element together: into one tally, or two for a complex number. */
static void join_lanes(const jk_tally_op *op, jk_tally *tally)
{
    for (int64_t lane = op->complex; lane < op->lanes; lane++)
        jk_tally_join(&tally[lane % op->complex], &tally[lane]);
}

jask_status jk_tally_op_compute(void *user, const jk_block *block, jask_error *err)
{
    const jk_tally_op *op = user;
    const jk_blocks *plan = &op->op.plan;
    bool output = op->op.job.output.file != NULL;
    jk_tally *tallies = output ? block->output_work : op->all;
    int64_t count = output ? jk_window_elems(plan, &plan->problem.output, block->box.len) : 1;
    for (int64_t t = 0; block->first && t < count * op->lanes; t++)
        jk_tally_clear(&tallies[t]);
    tally_block(op, block, tallies);
    if (!block->last)
        return JASK_OK;
    for (int64_t e = 0; e < count; e++)
        join_lanes(op, tallies + e * op->lanes);
    return output ? op->finish(op->user, block, tallies, count, err) : JASK_OK;
}
