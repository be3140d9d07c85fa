/* Super-tiles: tiles of D whose sums stay in host memory together while they are made, layer by layer of k.
 *
 * Where strips as deep as k are too large for host memory, files are read as often as there are super-tiles in the
 * other direction instead: each reads its rows of A and its columns of B once, of every layer one strip at a time of the
 * side that stays, and those of the other side together. The price are copies of D: in each layer but the first up,
 * and in each down.
 *
 * One layer of one super-tile is a plan of its own; here is which one, and where it lies. */
#include "planner/internal.h"

/* `length` in tiles of `block` from tile `first` on, `tiles` of them. */
static int64_t extent(int64_t first, int64_t tiles, int64_t block, int64_t length)
{
    return jk_min(tiles * block, length - first * block);
}

/* The part of `rows` x `cols` tiles and `panels` panels that begins at tile (i, j) and panel p. */
static jk_plan part_plan(const jk_plan *plan, const int64_t first[3], const int64_t count[3])
{
    const jk_problem *p = &plan->problem;
    jk_plan part = *plan;
    part.problem.m = extent(first[0], count[0], plan->bm, p->m);
    part.problem.n = extent(first[1], count[1], plan->bn, p->n);
    part.problem.k = extent(first[2], count[2], plan->bk, p->k);
    part.problem.batches = 0;
    part.mt = count[0];
    part.nt = count[1];
    part.kt = count[2];
    part.super_rows = part.super_cols = part.layer = 0;
    return part;
}

/* The part of which `number` is: a step, of which a tile of D has `each`, and `in_layer` in a whole layer; or a
 * tile that is stored. */
static jk_part part_of(const jk_plan *plan, int64_t number, int64_t each, int64_t in_layer)
{
    int64_t tiles = plan->mt * plan->nt, down = plan->super_rows * plan->nt;
    jk_part part = {.batch = number / (tiles * each)};
    int64_t rest = number % (tiles * each), layers = jk_plan_layers(plan);
    part.i = rest / (down * each) * plan->super_rows;
    rest %= down * each;
    int64_t rows = jk_min(plan->super_rows, plan->mt - part.i), across = rows * plan->super_cols;
    part.j = rest / (across * each) * plan->super_cols;
    rest %= across * each;
    int64_t cols = jk_min(plan->super_cols, plan->nt - part.j);
    int64_t layer = rest / (rows * cols * in_layer);
    part.p = layer * plan->layer;
    int64_t before = part.batch * tiles + part.i * plan->nt + part.j * rows;
    part.first_tile = before * layers + layer * rows * cols;
    part.first_step = before * plan->kt + part.p * rows * cols;
    part.from_partial = layer > 0;
    part.to_partial = layer < layers - 1;
    part.plan = part_plan(plan, (int64_t[]){part.i, part.j, part.p},
                          (int64_t[]){rows, cols, jk_min(plan->layer, plan->kt - part.p)});
    return part;
}

jk_part jk_plan_part(const jk_plan *plan, int64_t s)
{
    return part_of(plan, s, plan->kt, plan->layer);
}

int64_t jk_plan_tile_step(const jk_plan *plan, int64_t tile)
{
    if (plan->layer == 0)
        return tile * plan->kt;
    jk_part part = part_of(plan, tile, jk_plan_layers(plan), 1);
    return part.first_step + (tile - part.first_tile) * part.plan.kt;
}

int64_t jk_plan_tile_continued(const jk_plan *plan, int64_t tile)
{
    jk_part part = part_of(plan, tile, jk_plan_layers(plan), 1);
    return tile - part.plan.mt * part.plan.nt;
}

void jk_plan_each_part(const jk_plan *plan, jk_part_visit *visit, void *user)
{
    const int64_t all[3] = {plan->mt, plan->nt, plan->kt};
    const int64_t each[3] = {plan->super_rows, plan->super_cols, plan->layer};
    /* In every direction some whole ones come first, and one that may be smaller is the last. */
    for (int which = 0; which < 8; which++) {
        int64_t first[3], count[3], times = 1;
        for (int d = 0; d < 3; d++) {
            int64_t before = jk_ceil_div(all[d], each[d]) - 1;
            bool last = which >> d & 1;
            first[d] = last ? before * each[d] : 0;
            count[d] = last ? all[d] - first[d] : each[d];
            times *= last ? 1 : before;
        }
        if (times == 0)
            continue;
        jk_plan part = part_plan(plan, first, count);
        visit(user, times, &part);
    }
}

static uint64_t tile_bytes(const jk_plan *plan)
{
    return (uint64_t)plan->bm * (uint64_t)plan->bn * (uint64_t)plan->problem.c_bytes;
}

uint64_t jk_plan_sums_bytes(const jk_plan *plan)
{
    return (uint64_t)plan->super_rows * (uint64_t)plan->super_cols * tile_bytes(plan);
}

uint64_t jk_plan_sums_place(const jk_plan *plan, const jk_step *step)
{
    int64_t row = step->i % plan->super_rows, col = step->j % plan->super_cols;
    return (uint64_t)(row * plan->super_cols + col) * tile_bytes(plan);
}
