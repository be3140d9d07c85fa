/* Host memory beside a device: which strips of A and B stay there.
 *
 * It is the device's schedule once more, one level up, with panels as deep as k. Let order be IJ; JI is
 * the same with the roles exchanged. Host memory holds the strips of B of a group of columns, and
 * some of A, so that a group reads each strip of both once: B is read once in all, A once a group,
 * less what a group finds at its beginning. Everything is read once where B fits beside a strip of A.
 * One strip of A alone spares its reading for each column; B alone, that of B for each row. */
#include "planner/internal.h"

typedef struct level {
    jk_traffic copies; /* to the device, in one group */
    jk_u128 room;
    int outer;            /* the side that stays along a row of tiles (order IJ: A) */
    jk_u128 strip[2];     /* bytes of a strip of each side */
    jk_u128 whole[2];     /* of the operand */
    int64_t strips[2];    /* that it has */
    bool outer_on_device; /* its strip stays there along the row */
} level;

static level level_of(const jk_plan *plan, uint64_t room)
{
    const jk_problem *p = &plan->problem;
    const int64_t blocks[2] = {plan->bm, plan->bn}, slots[2] = {plan->a_slots, plan->b_slots};
    level l = {.room = room, .outer = plan->order == JK_ORDER_IJ ? JK_ROWS : JK_COLS};
    for (int side = JK_ROWS; side <= JK_COLS; side++) {
        jk_u128 each = (jk_u128)p->k * (jk_u128)jk_side_bytes(p, side);
        l.strip[side] = each * (uint64_t)blocks[side];
        l.whole[side] = each * (uint64_t)jk_side_length(p, side);
    }
    l.strips[JK_ROWS] = plan->mt;
    l.strips[JK_COLS] = plan->nt;
    l.copies = jk_plan_traffic(plan);
    l.outer_on_device = slots[l.outer] >= plan->kt;
    return l;
}

static int64_t strips_in(const level *l, int side, jk_u128 room)
{
    if (room >= l->whole[side])
        return l->strips[side];
    return (int64_t)(room / l->strip[side]);
}

/* Strips to keep, and what files are then asked for. */
typedef struct choice {
    int64_t group, strips[2];
    jk_u128 reading;
} choice;

/* In sixteenths of a byte, which is whole numbers for every size of elements. */
static jk_u128 reading_of(const jk_plan *plan, const jk_traffic *copies)
{
    const jk_element_sizes size = jk_device_elements(&plan->problem);
    const jk_element_sizes in_file = jk_file_elements(&plan->problem);
    jk_traffic reading = jk_plan_reading(plan, copies);
    return reading.bytes[JK_ROWS] * (16 / size.a * in_file.a) +
           reading.bytes[JK_COLS] * (16 / size.b * in_file.b);
}

static void put_choice(jk_plan *plan, const choice *c)
{
    plan->group = c->group;
    plan->a_strips = c->strips[JK_ROWS];
    plan->b_strips = c->strips[JK_COLS];
}

/* So many strips of the outer side, and of the inner side those of a group (0: none). */
static void keep(const jk_plan *plan, const level *l, int64_t outer, int64_t inner, choice *best)
{
    jk_plan kept = *plan;
    jk_traffic copies = l->copies;
    if (outer + inner > JK_MOST_PLACES / plan->kt)
        return;
    choice c = {.group = inner < l->strips[!l->outer] ? inner : 0};
    c.strips[l->outer] = outer;
    c.strips[!l->outer] = inner;
    put_choice(&kept, &c);
    if (c.group > 0)
        copies = jk_plan_traffic(&kept);
    c.reading = reading_of(&kept, &copies);
    if (c.reading < best->reading)
        *best = c;
}

/* Groups as few as there is room for, at most so many, all of about one size, and strips of the outer side
 * in what is left over. */
static void keep_both(const jk_plan *plan, const level *l, int64_t groups, choice *best)
{
    int64_t least = l->outer_on_device ? 0 : 1, all = l->strips[!l->outer];
    jk_u128 outer = (jk_u128)least * l->strip[l->outer];
    int64_t most = outer > l->room ? 0 : strips_in(l, !l->outer, l->room - outer);
    if (most == 0 || jk_ceil_div(all, most) > groups)
        return;
    int64_t group = jk_ceil_div(all, jk_ceil_div(all, most));
    if (group == all) {
        keep(plan, l, least, all, best);
        return;
    }
    jk_u128 left = l->room - (jk_u128)group * l->strip[!l->outer];
    keep(plan, l, strips_in(l, l->outer, left), group, best);
}

bool jk_plan_keep_strips(jk_plan *plan, uint64_t room, jk_plan *in_groups)
{
    if (room == 0 || plan->b_slots == 0) /* there each panel is met once */
        return false;
    level l = level_of(plan, room);
    choice one = {.reading = reading_of(plan, &l.copies)}, several;
    keep_both(plan, &l, 1, &one);
    if (l.strip[l.outer] <= l.room)
        keep(plan, &l, 1, 0, &one);
    if (l.whole[!l.outer] <= l.room)
        keep(plan, &l, 0, l.strips[!l.outer], &one);
    several = one;
    keep_both(plan, &l, INT64_MAX, &several);
    *in_groups = *plan;
    put_choice(plan, &one);
    put_choice(in_groups, &several);
    return several.reading < one.reading;
}

int64_t jk_host_block(const jk_problem *p, const int64_t block[2], int side, uint64_t room)
{
    jk_u128 left = room, row = (jk_u128)p->k * (jk_u128)jk_side_bytes(p, side);
    jk_u128 strip = row * (uint64_t)block[side];
    jk_u128 other = (jk_u128)p->k * (jk_u128)jk_side_bytes(p, !side) * (uint64_t)block[!side];
    int64_t length = jk_side_length(p, side);
    if (strip < room) {
        if (other >= room)
            return block[side];
        left = room - other;
    }
    if (left >= row * (uint64_t)length || left < row)
        return block[side];
    int64_t strips = (int64_t)((left + strip - 1) / strip), fits = (int64_t)(left / row) / strips;
    if (fits == 0)
        return block[side];
    int64_t groups = jk_ceil_div(length, fits * strips);
    int64_t even = jk_round_up(jk_ceil_div(length, groups * strips), 16);
    return jk_min(jk_min(even, fits), block[side]);
}
