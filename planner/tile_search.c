/* Which tiles to look at.
 *
 * A recipe fixes the depth of panels, the slots and the quantum that sides are multiples of. What
 * is left are the two sides of the tile, block[0] x block[1], or rather how many tiles they make:
 * Mt rows and Nt columns of tiles. Bytes moved, when nothing stays on the device between tiles,
 * depend on these counts alone: u Mt + v Nt, with u the bytes of B and v those of A. For each Mt
 * the least sensible block[0] is the balanced one, and the largest block[1] beside it gives the
 * least Nt; so walking over Mt (or, as well, over Nt) meets the optimum. */
#include "planner/internal.h"

#include <math.h>

static int64_t balanced_block(int64_t length, int64_t tiles, int64_t quantum)
{
    return jk_min(length, jk_round_up(jk_ceil_div(length, tiles), quantum));
}

bool jk_tile_fits(const jk_tile_space *space, const jk_recipe *recipe, const int64_t block[2])
{
    const jk_plan plan = {
        .problem = *space->problem,
        .bm = block[JK_ROWS],
        .bn = block[JK_COLS],
        .bk = recipe->bk,
        .a_slots = recipe->slots[JK_ROWS],
        .b_slots = recipe->slots[JK_COLS],
        .c_slots = recipe->c_slots,
    };
    return jk_plan_slots_bytes(&plan, jk_largest_element(space->problem)) <= space->room;
}

static int64_t panel_bytes(const jk_tile_space *space, const jk_recipe *recipe, int side)
{
    return recipe->bk * recipe->slots[side] * jk_side_bytes(space->problem, side);
}

/* The largest block of `side` that fits beside a block of the other side; 0 when none does. */
static int64_t widest_block(const jk_tile_space *space, const jk_recipe *recipe, int side,
                            int64_t other_block)
{
    int64_t length = jk_side_length(space->problem, side);
    jk_u128 fixed = (jk_u128)panel_bytes(space, recipe, !side) * (jk_u128)other_block;
    jk_u128 each = (jk_u128)panel_bytes(space, recipe, side) +
                   (jk_u128)(recipe->c_slots * space->problem->c_bytes) * (jk_u128)other_block;
    if (fixed + each > space->room)
        return 0;
    uint64_t widest = (space->room - (uint64_t)fixed) / (uint64_t)each;
    int64_t block[2];
    block[!side] = other_block;
    block[side] =
        widest >= (uint64_t)length ? length : (int64_t)widest / recipe->quantum * recipe->quantum;
    /* With elements of unequal size, slots are rounded up to the largest: rarely one unit too much.
     */
    while (block[side] > 0 && !jk_tile_fits(space, recipe, block))
        block[side] = (block[side] - 1) / recipe->quantum * recipe->quantum;
    return block[side];
}

/* Visit the tile with `tiles` blocks along `side` and as few as fit along the other; returns how
 * many those are, 0 when no block of the other side fits. */
static int64_t visit_tiles(const jk_tile_space *space, const jk_recipe *recipe, int side,
                           int64_t tiles, jk_tile_visit *visit, void *user)
{
    int64_t other_length = jk_side_length(space->problem, !side);
    int64_t block[2];
    block[side] = balanced_block(jk_side_length(space->problem, side), tiles, recipe->quantum);
    int64_t widest = widest_block(space, recipe, !side, block[side]);
    if (widest == 0)
        return 0;
    int64_t other_tiles = jk_ceil_div(other_length, widest);
    block[!side] = balanced_block(other_length, other_tiles, recipe->quantum);
    visit(user, recipe, block);
    return other_tiles;
}

/* u x + v max(1, N(x)): what x tiles along a side move if sides need not be whole numbers. With
 * block length/x, the largest other block is (room - f/x) / (e + c/x), so N(x) = other * (c + e x)
 * / (room x - f): decreasing and convex for x > f/room. A sum with a rising line, and a maximum, of
 * convex functions is convex. Rounding blocks up, other blocks down and counts up only adds bytes,
 * so this is a lower bound for every whole number of tiles. */
typedef struct byte_curve {
    double u, v, other, c, e;
    jk_u128 f;
    uint64_t room;
    double lowest; /* where it has its minimum */
} byte_curve;

static double curve_at(const byte_curve *curve, int64_t tiles)
{
    jk_u128 all = (jk_u128)curve->room * (jk_u128)tiles;
    if (all <= curve->f)
        return HUGE_VAL;
    double left = (double)(all - curve->f); /* exact before it is rounded: the two may be close */
    double count = curve->other * (curve->c + curve->e * (double)tiles) / left;
    return curve->u * (double)tiles + curve->v * fmax(1, count);
}

static byte_curve curve_of(const jk_tile_space *space, const jk_recipe *recipe, int side)
{
    const jk_problem *p = space->problem;
    int64_t length = jk_side_length(p, side), other = jk_side_length(p, !side);
    double k = (double)p->k, room = (double)space->room;
    byte_curve curve = {
        .u = (double)other * k * jk_side_bytes(p, !side),
        .v = (double)length * k * jk_side_bytes(p, side),
        .other = (double)other,
        .c = (double)length * (double)(recipe->c_slots * p->c_bytes),
        .e = (double)panel_bytes(space, recipe, !side),
        .f = (jk_u128)length * (jk_u128)panel_bytes(space, recipe, side),
        .room = space->room,
    };
    double f = (double)curve.f;
    double slope = curve.v * curve.other * (curve.c * room + curve.e * f) / curve.u;
    curve.lowest = (f + sqrt(slope)) / room;
    double one = room - curve.other * curve.e; /* N(x) reaches 1 there: more tiles are no use */
    if (one > 0)
        curve.lowest = fmin(curve.lowest, (curve.other * curve.c + f) / one);
    curve.lowest = fmax(1, curve.lowest);
    return curve;
}

/* Counts of tiles that a balanced block really makes, so that each block is met once: `tiles`
 * itself or the next lower such count. */
static int64_t real_tiles(int64_t length, int64_t tiles, int64_t quantum)
{
    return jk_ceil_div(length, balanced_block(length, tiles, quantum));
}

/* The next higher such count, 0 at the end. */
static int64_t more_tiles(int64_t length, int64_t tiles, int64_t quantum)
{
    if (tiles >= jk_ceil_div(length, quantum))
        return 0;
    int64_t more = real_tiles(length, tiles + 1, quantum);
    if (more > tiles)
        return more;
    int64_t block = balanced_block(length, tiles, quantum);
    int64_t smaller = (block - 1) / quantum * quantum;
    return smaller > 0 ? jk_ceil_div(length, smaller) : 0;
}

/* From the curve's minimum outwards on both sides, until the curve lies above the best tile found:
 * being convex, it stays above it. How far that is: rounding costs a share of about 1/Mt + 1/Nt +
 * 1/blocks, a parabola exceeds its minimum by that share after the square root of it, so some
 * sqrt(L) of the L = min(Mt, blocks) candidates are met. */
static void walk(const jk_tile_space *space, const jk_recipe *recipe, int side,
                 const byte_curve *curve, jk_tile_visit *visit, void *user)
{
    const double slack = 1 + 1e-12; /* for rounding errors of both */
    int64_t length = jk_side_length(space->problem, side), quantum = recipe->quantum;
    double most = (double)jk_ceil_div(length, quantum);
    int64_t start = real_tiles(length, (int64_t)fmin(ceil(curve->lowest), most), quantum);
    double best = HUGE_VAL;
    for (int64_t t = start; t > 0; t = more_tiles(length, t, quantum)) {
        if ((double)t > curve->lowest && curve_at(curve, t) > best * slack)
            break;
        int64_t other_tiles = visit_tiles(space, recipe, side, t, visit, user);
        if (other_tiles > 0)
            best = fmin(best, curve->u * (double)t + curve->v * (double)other_tiles);
        if (other_tiles == 1)
            break;
    }
    for (int64_t t = start - 1; t > 0; t--) {
        t = real_tiles(length, t, quantum);
        if ((double)t < curve->lowest && curve_at(curve, t) > best * slack)
            break;
        int64_t other_tiles = visit_tiles(space, recipe, side, t, visit, user);
        if (other_tiles == 0) /* larger blocks leave still less room */
            break;
        best = fmin(best, curve->u * (double)t + curve->v * (double)other_tiles);
    }
}

bool jk_tiles_near_least(const jk_tile_space *space, const jk_recipe *recipe, jk_tile_visit *visit,
                         void *user)
{
    double candidates[2];
    byte_curve curves[2];
    for (int side = JK_ROWS; side <= JK_COLS; side++) {
        int64_t length = jk_side_length(space->problem, side);
        int64_t least = jk_min(length, recipe->quantum);
        if (widest_block(space, recipe, !side, least) == 0)
            return false;
        curves[side] = curve_of(space, recipe, side);
        double tiles = curves[side].lowest;
        candidates[side] = fmin(tiles, (double)length / tiles / (double)recipe->quantum);
    }
    int side = candidates[JK_COLS] < candidates[JK_ROWS] ? JK_COLS : JK_ROWS;
    walk(space, recipe, side, &curves[side], visit, user);
    return true;
}

void jk_tiles_few(const jk_tile_space *space, const jk_recipe *recipe, int64_t most,
                  jk_tile_visit *visit, void *user)
{
    const int64_t every = 12; /* beyond, only twice as many each time */
    for (int side = JK_ROWS; side <= JK_COLS; side++) {
        int64_t length = jk_side_length(space->problem, side);
        for (int64_t t = 1; t <= jk_min(most, length); t += t < every ? 1 : t) {
            if (real_tiles(length, t, recipe->quantum) == t)
                visit_tiles(space, recipe, side, t, visit, user);
        }
    }
}

void jk_tiles_resident(const jk_tile_space *space, const jk_recipe *recipe, int side,
                       jk_tile_visit *visit, void *user)
{
    static const int64_t narrow[] = {4, 16, 128, 1024};
    jk_recipe whole = *recipe;
    int64_t k = space->problem->k, panels = jk_ceil_div(k, recipe->bk);
    whole.slots[side] = jk_max(panels, recipe->slots[side]);
    whole.bk = jk_round_up(jk_ceil_div(k, panels),
                           jk_depth_unit(space->problem, jk_min(recipe->quantum, 16)));
    whole.bk = jk_min(whole.bk, k);
    if (jk_ceil_div(k, whole.bk) != panels)
        return;
    int64_t length = jk_side_length(space->problem, side);
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        int64_t other = jk_min(narrow[i], jk_side_length(space->problem, !side));
        int64_t block = widest_block(space, &whole, side, other);
        if (block > 0)
            visit_tiles(space, &whole, side, jk_ceil_div(length, block), visit, user);
    }
}
