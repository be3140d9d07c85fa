#include "planner/blocks.h"

#include "planner/internal.h"

#include <inttypes.h>
#include <string.h>

enum { ALIGN = 64, LEAST_BUFFER = 4096 };

/* A window no larger than this stays in a cache between reading, computing and writing. */
#define WINDOW_MOST ((uint64_t)1 << 20)
/* Operands that run along different dimensions are met in tiles, whose rows in the file are the
 * longer the larger the tile. */
#define TILE_MOST ((uint64_t)16 << 20)
/* Rows of a tile as they are written are so much longer than those that are read: a short write costs
 * more than a short read. */
#define WRITTEN_LONGER 4

/* ---- the fewest dimensions that say the same ---- */

static bool present(const jk_blocks_operand *o)
{
    return o->bytes > 0;
}

/* The operands of a problem, inputs first; there are JK_BLOCKS_INPUTS + 1. */
static jk_blocks_operand *operand_of(jk_blocks_problem *p, int which)
{
    return which < JK_BLOCKS_INPUTS ? &p->input[which] : &p->output;
}

static void move_dimension(jk_blocks_problem *p, int from, int to)
{
    p->shape[to] = p->shape[from];
    for (int i = 0; i <= JK_BLOCKS_INPUTS; i++)
        operand_of(p, i)->strides[to] = operand_of(p, i)->strides[from];
}

static void swap_dimensions(jk_blocks_problem *p, int a, int b)
{
    jk_blocks_problem old = *p;
    p->shape[a] = old.shape[b];
    p->shape[b] = old.shape[a];
    for (int i = 0; i <= JK_BLOCKS_INPUTS; i++) {
        operand_of(p, i)->strides[a] = operand_of(&old, i)->strides[b];
        operand_of(p, i)->strides[b] = operand_of(&old, i)->strides[a];
    }
}

static bool comes_before(const jk_blocks_problem *p, int a, int b)
{
    if (p->output.strides[a] != p->output.strides[b])
        return p->output.strides[a] > p->output.strides[b];
    return p->input[0].strides[a] > p->input[0].strides[b];
}

/* Whether dimension d + 1 goes on where dimension d takes its next step, in every operand. */
static bool joined(jk_blocks_problem *p, int d)
{
    for (int i = 0; i <= JK_BLOCKS_INPUTS; i++) {
        const jk_blocks_operand *o = operand_of(p, i);
        if (present(o) && o->strides[d] != o->strides[d + 1] * p->shape[d + 1])
            return false;
    }
    return true;
}

static void join_dimensions(jk_blocks_problem *p, int d)
{
    p->shape[d + 1] *= p->shape[d];
    for (int to = d; to + 1 < p->ndim; to++)
        move_dimension(p, to + 1, to);
    p->ndim--;
}

void jk_blocks_simplify(jk_blocks_problem *p)
{
    int kept = 0;
    for (int d = 0; d < p->ndim; d++)
        if (p->shape[d] > 1)
            move_dimension(p, d, kept++);
    p->ndim = kept;
    for (int d = 1; d < p->ndim; d++)
        for (int i = d; i > 0 && comes_before(p, i, i - 1); i--)
            swap_dimensions(p, i, i - 1);
    for (int d = p->ndim - 2; d >= 0; d--)
        if (joined(p, d))
            join_dimensions(p, d);
}

/* ---- windows ---- */

int64_t jk_box_elems(const jk_blocks *plan, const int64_t *len)
{
    int64_t elems = 1;
    for (int d = 0; d < plan->problem.ndim; d++)
        elems *= len[d];
    return elems;
}

int64_t jk_window_elems(const jk_blocks *plan, const jk_blocks_operand *operand, const int64_t *len)
{
    int64_t elems = 1;
    for (int d = 0; d < plan->problem.ndim; d++)
        if (operand->strides[d] != 0)
            elems *= len[d];
    return elems;
}

static size_t aligned(int64_t elems, int bytes)
{
    return ((size_t)elems * (size_t)bytes + ALIGN - 1) / ALIGN * ALIGN;
}

size_t jk_blocks_window_bytes(const jk_blocks *plan, const jk_blocks_operand *operand)
{
    return aligned(jk_window_elems(plan, operand, plan->box), operand->bytes);
}

size_t jk_blocks_work_bytes(const jk_blocks *plan, const jk_blocks_operand *operand)
{
    return aligned(jk_window_elems(plan, operand, plan->box), operand->work_bytes) +
           aligned(jk_box_elems(plan, plan->box), operand->spread_bytes);
}

int64_t jk_blocks_share(const jk_blocks *plan, const jk_blocks_operand *operand)
{
    int64_t share = 1;
    for (int d = plan->problem.ndim - 1; d >= 0; d--) {
        if (operand->strides[d] != 0 && plan->counts[d] > 1)
            break;
        share *= plan->counts[d];
    }
    return share;
}

jk_box jk_blocks_box(const jk_blocks *plan, int64_t block)
{
    jk_box box;
    for (int d = plan->problem.ndim - 1; d >= 0; d--) {
        box.lo[d] = block % plan->counts[d] * plan->box[d];
        box.len[d] = jk_min(plan->box[d], plan->problem.shape[d] - box.lo[d]);
        block /= plan->counts[d];
    }
    return box;
}

/* ---- choosing the box ---- */

/* All windows and work; no single product overflows, because a box holds at most `most` bytes. */
static uint64_t memory(const jk_blocks *plan)
{
    jk_blocks_problem p = plan->problem;
    uint64_t bytes = 0;
    for (int i = 0; i <= JK_BLOCKS_INPUTS; i++) {
        const jk_blocks_operand *o = operand_of(&p, i);
        if (present(o))
            bytes += (uint64_t)plan->slots * jk_blocks_window_bytes(plan, o) +
                     jk_blocks_work_bytes(plan, o);
    }
    return bytes;
}

static int buffers(const jk_blocks *plan)
{
    jk_blocks_problem p = plan->problem;
    int count = 0;
    for (int i = 0; i <= JK_BLOCKS_INPUTS; i++) {
        const jk_blocks_operand *o = operand_of(&p, i);
        if (present(o))
            count += plan->slots + (o->work_bytes > 0) + (o->spread_bytes > 0);
    }
    return count;
}

/* Whether the box may have `len` indices along d: of any operand a window holds at most `most`
 * bytes, and all of them at most `room`. */
static bool fits(const jk_blocks *plan, int d, int64_t len, uint64_t room, uint64_t most)
{
    jk_blocks try = *plan;
    jk_u128 elems = (jk_u128)len;
    for (int i = 0; i < plan->problem.ndim; i++)
        if (i != d)
            elems = elems * (uint64_t)plan->box[i];
    if (elems > most)
        return false;
    try.box[d] = len;
    for (int i = 0; i <= JK_BLOCKS_INPUTS; i++)
        if (jk_blocks_window_bytes(&try, operand_of(&try.problem, i)) > most)
            return false;
    return memory(&try) <= room;
}

/* The most indices along d that fit. */
static int64_t most_indices(const jk_blocks *plan, int d, uint64_t room, uint64_t most)
{
    int64_t good = plan->box[d], bad = plan->problem.shape[d] + 1;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (fits(plan, d, middle, room, most))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* The dimension along which the operand's elements lie side by side; -1 for one that is so small
 * that it does not matter how it is read. */
static int fast_dimension(const jk_blocks *plan, const jk_blocks_operand *o)
{
    const jk_blocks_problem *p = &plan->problem;
    int64_t elems = jk_window_elems(plan, o, p->shape);
    int fast = -1;
    if (!present(o) || elems < jk_box_elems(plan, p->shape) / 64)
        return -1;
    for (int d = 0; d < p->ndim; d++)
        if (o->strides[d] != 0 && (fast < 0 || o->strides[d] < o->strides[fast]))
            fast = d;
    return fast;
}

/* Let the box grow: first along the dimensions in which operands lie side by side, in proportion; then,
 * where it has all of those, from the last dimension on. */
static void choose_box(jk_blocks *plan, uint64_t room)
{
    const jk_blocks_problem *p = &plan->problem;
    bool fast[JASK_MAX_DIMS] = {false}, full = true;
    int fast_count = 0, written = fast_dimension(plan, &plan->problem.output);
    for (int i = 0; i <= JK_BLOCKS_INPUTS; i++) {
        int d = fast_dimension(plan, operand_of(&plan->problem, i));
        if (d >= 0 && !fast[d]) {
            fast[d] = true;
            fast_count++;
        }
    }
    uint64_t most = fast_count > 1 ? TILE_MOST : WINDOW_MOST;
    for (int growing = fast_count; growing > 0;) {
        int64_t least_length = 0;
        int least = -1;
        for (int d = 0; d < p->ndim; d++) {
            int64_t length = plan->box[d] / (d == written ? WRITTEN_LONGER : 1);
            if (fast[d] && (least < 0 || length < least_length)) {
                least_length = length;
                least = d;
            }
        }
        int64_t twice = jk_min(2 * plan->box[least], p->shape[least]);
        if (growing > 1 && fits(plan, least, twice, room, most))
            plan->box[least] = twice;
        else
            plan->box[least] = most_indices(plan, least, room, most);
        if (plan->box[least] == p->shape[least] || growing == 1 || plan->box[least] < twice) {
            full = full && plan->box[least] == p->shape[least];
            fast[least] = false;
            growing--;
        }
    }
    for (int d = p->ndim - 1; full && d >= 0; d--) {
        plan->box[d] = most_indices(plan, d, room, most);
        full = plan->box[d] == p->shape[d];
    }
}

/* ---- what it moves ---- */

/* Bytes of all windows of the operand that are brought: its elements, as often as they are. */
static jk_u128 moved(const jk_blocks *plan, const jk_blocks_operand *o)
{
    jk_u128 bytes = (jk_u128)o->bytes;
    int last = plan->problem.ndim - 1;
    while (last >= 0 && (o->strides[last] == 0 || plan->counts[last] == 1))
        last--;
    for (int d = 0; d < plan->problem.ndim; d++) {
        if (o->strides[d] != 0)
            bytes = bytes * (uint64_t)plan->problem.shape[d];
        else if (d < last)
            bytes = bytes * (uint64_t)plan->counts[d];
    }
    return bytes;
}

static jask_status count(jk_blocks *plan, jask_error *err)
{
    jk_blocks_problem *p = &plan->problem;
    jk_u128 read = 0;
    plan->blocks = 1;
    for (int d = 0; d < p->ndim; d++) {
        plan->counts[d] = jk_ceil_div(p->shape[d], plan->box[d]);
        if (__builtin_mul_overflow(plan->blocks, plan->counts[d], &plan->blocks))
            return jk_fail(err, JASK_ERR_ARG,
                           "more blocks than can be counted in 63 bits; raise "
                           "the memory budget");
    }
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++) {
        if (!present(&p->input[i]))
            continue;
        plan->loads[i] = plan->blocks / jk_blocks_share(plan, &p->input[i]);
        read += moved(plan, &p->input[i]);
    }
    if (read > UINT64_MAX)
        return jk_fail(err, JASK_ERR_ARG,
                       "more bytes to read than can be counted in 64 bits; "
                       "raise the memory budget");
    plan->file_read_bytes = (uint64_t)read;
    if (present(&p->output)) {
        plan->stores = plan->blocks / jk_blocks_share(plan, &p->output);
        plan->file_write_bytes = (uint64_t)moved(plan, &p->output);
    }
    return JASK_OK;
}

jask_status jk_blocks_make(const jk_blocks_problem *problem, bool empty,
                           const jk_blocks_machine *machine, jk_blocks *out, jask_error *err)
{
    jk_blocks plan = {.problem = *problem, .slots = machine->slots};
    uint64_t least = (uint64_t)buffers(&plan) * LEAST_BUFFER;
    jask_status st;
    plan.budget_bytes = machine->bytes;
    if (machine->bytes < least)
        return jk_fail(err, JASK_ERR_BUDGET,
                       "a budget of %" PRIu64 " bytes is too small: %d windows of arrays need at "
                       "least %" PRIu64 " bytes; raise the memory budget to %" PRIu64,
                       machine->bytes, buffers(&plan), least, least);
    if (empty) {
        *out = plan;
        return JASK_OK;
    }
    for (int d = 0; d < problem->ndim; d++)
        plan.box[d] = 1;
    choose_box(&plan, machine->bytes);
    st = count(&plan, err);
    if (st)
        return st;
    plan.peak_bytes = memory(&plan);
    *out = plan;
    return JASK_OK;
}
