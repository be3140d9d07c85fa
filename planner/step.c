/* Step s of a plan, from s alone.
 *
 * Where a panel lives. Each operand walks along a line of places: from panel to panel one place on,
 * and on in the same direction when the block (the row of tiles of A, the column of tiles of B)
 * changes; where the block stays and its panels are met in reverse, the walk turns and meets the
 * same places. The slot of a panel is its place modulo the slots. So
 * - what a panel displaces lies `slots` places away, and has not been used for `slots` steps;
 * - after a turn, the last `slots` places are found as they were left.
 *
 * Take order IJ; JI is the same with the roles exchanged. A block of A stays for a row of tiles and
 * is met up, down, up, ...: with an odd number of tiles the walk leaves each block at its upper end
 * and drifts upwards; with an even number it leaves where it came from, so that odd rows lie one
 * block below even ones. Blocks of B are met once a row of tiles, upwards in even rows and
 * downwards in odd ones, so column j always has the same places.
 *
 * Where every tile meets its panels in ascending order (jk_ascending) a turn meets the same block, not the
 * same places the other way round. A block is then kept whole, in slots of which as many are walked over
 * as make whole blocks; with fewer slots than panels nothing is, and they are taken in turn.
 *
 * All this holds within a group of tiles, which finds nothing on the device, and so within each part of a plan with
 * super-tiles. */
#include "planner/internal.h"

/* A tile in visiting order. Every group of every batch is walked through by itself. */
typedef struct visit {
    int64_t batch, group;
    int64_t start, tile;   /* number of the group's first tile, over all batches; tiles after it */
    int64_t width;         /* columns of tiles in the group (order IJ) */
    int64_t outer, before; /* row of tiles; tiles of that row visited before */
    int64_t inner;         /* column of tiles of the group */
    int64_t row, column;   /* of D */
} visit;

static visit visit_of(const jk_plan *plan, int64_t tile)
{
    int64_t rows = jk_plan_rows(plan), width = jk_plan_width(plan), group = jk_plan_group(plan);
    int64_t of_batch = plan->mt * plan->nt, in_batch = tile % of_batch;
    visit v = {.batch = tile / of_batch, .group = in_batch / (rows * group)};
    v.tile = in_batch % (rows * group);
    v.start = tile - v.tile;
    v.width = jk_min(group, width - v.group * group);
    v.outer = v.tile / v.width;
    v.before = v.tile % v.width;
    bool back = plan->serpentine && v.outer % 2 == 1;
    bool upwards = plan->serpentine && v.group % 2 == 1;
    v.inner = back ? v.width - 1 - v.before : v.before;
    v.row = upwards ? rows - 1 - v.outer : v.outer;
    v.column = v.group * group + v.inner;
    return v;
}

/* Whether `side` keeps its block along a row of tiles (order IJ: A). */
static bool stays(const jk_plan *plan, int side)
{
    return (side == JK_ROWS) == (plan->order == JK_ORDER_IJ);
}

static jk_residence residence_of(const jk_plan *plan, const visit *v, int side)
{
    int64_t slots = jk_keeping_slots(plan, side == JK_ROWS ? plan->a_slots : plan->b_slots);
    int64_t number = v->start + v->tile;
    jk_residence found = {.since = -1};
    if (slots == 0)
        return found;
    if (stays(plan, side) && v->before > 0) {
        found.since = number - 1;
        found.panels = jk_min(slots, plan->kt);
    } else if (!stays(plan, side) && v->outer > 0) {
        int64_t passed = v->before * plan->kt; /* places met since the turn */
        found.since = number - 1 - 2 * v->before;
        found.panels = slots > passed ? jk_min(slots - passed, plan->kt) : 0;
    }
    return found;
}

jk_residence jk_plan_residence(const jk_plan *plan, int64_t tile, int side)
{
    visit v = visit_of(plan, tile);
    return residence_of(plan, &v, side);
}

/* The last tile that used the strip of `side` which tile v uses, if host memory has kept it since; -1
 * otherwise. A tile copies all of a strip that no tile of its group, in this run, has used yet. */
static int64_t kept_since(const jk_plan *plan, const visit *v, int side)
{
    int64_t strips = side == JK_ROWS ? plan->a_strips : plan->b_strips;
    int64_t number = v->start + v->tile;
    if (strips == 0)
        return -1;
    if (!stays(plan, side))
        return v->outer > 0 ? number - 1 - 2 * v->before : -1;
    if (v->before > 0)
        return number - 1;
    /* The group before ended with this row, or some rows after it. */
    if (v->group > 0 && v->outer < strips)
        return v->start - 1 - v->outer * jk_plan_group(plan);
    return -1;
}

static int64_t strip_of(const jk_plan *plan, const visit *v, int side)
{
    int64_t strips = side == JK_ROWS ? plan->a_strips : plan->b_strips;
    if (strips == 0)
        return 0;
    return stays(plan, side) ? v->row % strips : v->inner;
}

static int64_t slot_of(const jk_plan *plan, const visit *v, int side, int64_t position)
{
    int64_t all = side == JK_ROWS ? plan->a_slots : plan->b_slots;
    int64_t slots = jk_keeping_slots(plan, all);
    int64_t block;
    bool up = true;
    if (slots == 0)
        return ((v->start + v->tile) * plan->kt + position) % all;
    if (!stays(plan, side)) {
        block = v->inner;
        up = jk_ascending(plan) || v->outer % 2 == 0;
    } else if (jk_ascending(plan)) {
        block = v->outer;
    } else {
        block = v->width % 2 == 1 ? v->outer : 1 - v->outer % 2;
        up = (v->tile + v->outer) % 2 == 0;
    }
    /* The next group or batch begins a block further on: where each is a single tile, the walk goes
     * on. */
    block += v->batch * jk_plan_groups(plan) + v->group;
    return (block * plan->kt + (up ? position : plan->kt - 1 - position)) % slots;
}

/* Without super-tiles. */
static jk_step walk_step(const jk_plan *plan, int64_t first_tile, int64_t s)
{
    const jk_problem *problem = &plan->problem;
    visit v = visit_of(plan, s / plan->kt);
    int64_t position = s % plan->kt;
    bool backwards = !jk_ascending(plan) && v.tile % 2 == 1;
    jk_step step = {.tile = s / plan->kt, .batch = v.batch};
    step.i = plan->order == JK_ORDER_IJ ? v.row : v.column;
    step.j = plan->order == JK_ORDER_IJ ? v.column : v.row;
    step.p = backwards ? plan->kt - 1 - position : position;

    step.row = step.i * plan->bm;
    step.col = step.j * plan->bn;
    step.depth_start = step.p * plan->bk;
    step.rows = jk_min(plan->bm, problem->m - step.row);
    step.cols = jk_min(plan->bn, problem->n - step.col);
    step.depth = jk_min(plan->bk, problem->k - step.depth_start);
    step.a_slot = slot_of(plan, &v, JK_ROWS, position);
    step.b_slot = plan->b_slots > 0 ? slot_of(plan, &v, JK_COLS, position) : step.a_slot;
    step.c_slot = step.tile % plan->c_slots;

    jk_residence a = residence_of(plan, &v, JK_ROWS), b = residence_of(plan, &v, JK_COLS);
    step.load_a = a.since < first_tile || position >= a.panels;
    step.load_b = plan->b_slots > 0 && (b.since < first_tile || position >= b.panels);
    step.read_a = step.load_a && kept_since(plan, &v, JK_ROWS) < first_tile;
    step.read_b = step.load_b && kept_since(plan, &v, JK_COLS) < first_tile;
    step.a_strip = strip_of(plan, &v, JK_ROWS);
    step.b_strip = strip_of(plan, &v, JK_COLS);
    step.first = position == 0;
    step.last = position == plan->kt - 1;
    step.load_c = problem->read_c && step.first;
    return step;
}

jk_step jk_plan_step_from(const jk_plan *plan, int64_t first_tile, int64_t s)
{
    if (plan->layer == 0)
        return walk_step(plan, first_tile, s);
    jk_part part = jk_plan_part(plan, s);
    jk_step step = walk_step(&part.plan, 0, s - part.first_step);
    step.tile += part.first_tile;
    step.batch = part.batch;
    step.i += part.i;
    step.j += part.j;
    step.p += part.p;
    step.row += part.i * plan->bm;
    step.col += part.j * plan->bn;
    step.depth_start += part.p * plan->bk;
    step.c_slot = step.tile % plan->c_slots;
    step.from_partial = part.from_partial;
    step.to_partial = part.to_partial;
    step.load_c = step.first && (step.from_partial || plan->problem.read_c);
    return step;
}

jk_step jk_plan_step(const jk_plan *plan, int64_t s)
{
    return jk_plan_step_from(plan, 0, s);
}
