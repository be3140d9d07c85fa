/* What a plan moves, in closed form: no loop over steps or tiles.
 *
 * Take order IJ; JI is the same with the two sides exchanged. The outer side is then the rows
 * (operand A), the inner side the columns (operand B). Between two tiles of one row, A stays the
 * same; at the turn from one row to the next, B does, because every second row is visited
 * backwards. The operand that stays is swept in the opposite direction by the new tile, so it
 * begins with the panels used last, which are still in their slots: as many as there are slots. With
 * more slots than panels, a row that begins at the turn finds those of several tiles. Where tiles meet their
 * panels in ascending order, whole blocks are found instead, and all below holds with those.
 *
 * Each group of tiles is such a walk by itself, over the group's part of the inner side; and so is each
 * part of a plan with super-tiles. */
#include "planner/internal.h"

typedef struct side_view {
    int64_t length, block, tiles, slots;
    jk_u128 element;
} side_view;

static side_view view_of(const jk_plan *plan, int side)
{
    bool rows = side == JK_ROWS;
    return (side_view){
        .length = jk_side_length(&plan->problem, side),
        .block = rows ? plan->bm : plan->bn,
        .tiles = rows ? plan->mt : plan->nt,
        .slots = rows ? plan->a_slots : plan->b_slots,
        .element = (jk_u128)jk_side_bytes(&plan->problem, side),
    };
}

size_t jk_largest_element(const jk_problem *problem)
{
    return (size_t)jk_max(problem->c_bytes, jk_max(problem->a_bytes, problem->b_bytes));
}

void jk_plan_set_grid(jk_plan *plan)
{
    plan->mt = jk_ceil_div(plan->problem.m, plan->bm);
    plan->nt = jk_ceil_div(plan->problem.n, plan->bn);
    plan->kt = jk_ceil_div(plan->problem.k, plan->bk);
}

/* Panels of the outer side that a further tile of a row finds. */
static int64_t kept_panels(const jk_plan *plan, int64_t slots)
{
    return jk_min(jk_keeping_slots(plan, slots), plan->kt);
}

/* Panels of the inner side that a row finds after the turn. */
static int64_t turned_panels(const jk_plan *plan, const side_view *inner)
{
    return jk_min(jk_keeping_slots(plan, inner->slots), inner->tiles * plan->kt);
}

/* Indices of k covered by the first `keep` panels of a tile that runs forwards (it begins with panel
 * 0) or backwards (it begins with the last panel, which may be short). */
static jk_u128 kept_depth(const jk_plan *plan, int64_t keep, bool backwards)
{
    if (keep == 0)
        return 0;
    int64_t depth = backwards ? plan->problem.k - (plan->kt - keep) * plan->bk
                              : jk_min(keep * plan->bk, plan->problem.k);
    return (jk_u128)depth;
}

/* Each row of tiles copies its part of the outer operand once, and again for each further tile of
 * the row, less what is kept. Tile t runs backwards when t is odd; with an even number of tiles in
 * a row every row begins with an even tile, and with an odd number as many of the further tiles run
 * either way, so all rows are alike. */
static jk_u128 outer_bytes(const jk_plan *plan, const side_view *outer, const side_view *inner)
{
    int64_t keep = kept_panels(plan, outer->slots);
    jk_u128 again = (jk_u128)(inner->tiles - 1) * (jk_u128)plan->problem.k;
    again -= (jk_u128)(inner->tiles / 2) * kept_depth(plan, keep, true);
    again -= (jk_u128)((inner->tiles - 1) / 2) * kept_depth(plan, keep, false);
    return (jk_u128)outer->length * ((jk_u128)plan->problem.k + again) * outer->element;
}

/* First row or column of a tile; the end for the tile after the last. */
static int64_t edge(const side_view *side, int64_t tile)
{
    return jk_min(tile * side->block, side->length);
}

/* Elements of the inner operand that one row finds after a turn at the far end (the last, maybe
 * narrow, column of tiles), into an odd row, or at the near end, into an even one: those of some
 * whole tiles, and the first panels of the next. */
static jk_u128 turned_elements(const jk_plan *plan, const side_view *inner, bool far)
{
    int64_t found = turned_panels(plan, inner);
    int64_t whole = found / plan->kt, rest = found % plan->kt;
    int64_t first = far ? inner->tiles - whole : 0; /* of the whole tiles */
    int64_t next = far ? first - 1 : whole;
    bool next_backwards = far ? (inner->tiles + whole) % 2 == 1 : whole % 2 == 1;
    int64_t width = edge(inner, first + whole) - edge(inner, first);
    jk_u128 elements = (jk_u128)width * (jk_u128)plan->problem.k;
    if (rest == 0)
        return elements;
    int64_t next_width = edge(inner, next + 1) - edge(inner, next);
    return elements + (jk_u128)next_width * kept_depth(plan, rest, next_backwards);
}

/* Each row of tiles copies the whole inner operand, less what it finds after the turn. */
static jk_u128 inner_bytes(const jk_plan *plan, const side_view *outer, const side_view *inner)
{
    jk_u128 kept = (jk_u128)(outer->tiles / 2) * turned_elements(plan, inner, true);
    kept += (jk_u128)((outer->tiles - 1) / 2) * turned_elements(plan, inner, false);
    jk_u128 all = (jk_u128)inner->length * (jk_u128)outer->tiles * (jk_u128)plan->problem.k;
    return (all - kept) * inner->element;
}

static jk_u128 outer_pages(const jk_plan *plan, const side_view *outer, const side_view *inner)
{
    jk_u128 again = (jk_u128)(plan->kt - kept_panels(plan, outer->slots));
    return (jk_u128)outer->tiles * ((jk_u128)plan->kt + (jk_u128)(inner->tiles - 1) * again);
}

static jk_u128 inner_pages(const jk_plan *plan, const side_view *outer, const side_view *inner)
{
    return (jk_u128)outer->tiles * (jk_u128)inner->tiles * (jk_u128)plan->kt -
           (jk_u128)(outer->tiles - 1) * (jk_u128)turned_panels(plan, inner);
}

/* The side whose strips stay along a row of tiles (order IJ: A's). */
static int outer_side(const jk_plan *plan)
{
    return plan->order == JK_ORDER_IJ ? JK_ROWS : JK_COLS;
}

/* What `times` groups move that have `inner` as their part of the inner side. */
static void add_groups(const jk_plan *plan, int64_t times, const side_view *outer,
                       const side_view *inner, jk_traffic *sum)
{
    int side = outer_side(plan);
    sum->bytes[side] += (jk_u128)times * outer_bytes(plan, outer, inner);
    sum->pages[side] += (jk_u128)times * outer_pages(plan, outer, inner);
    sum->bytes[!side] += (jk_u128)times * inner_bytes(plan, outer, inner);
    sum->pages[!side] += (jk_u128)times * inner_pages(plan, outer, inner);
}

/* Without super-tiles. */
static jk_traffic walk_traffic(const jk_plan *plan)
{
    int64_t group = jk_plan_group(plan), before = jk_plan_groups(plan) - 1; /* the last one */
    side_view outer = view_of(plan, outer_side(plan)), inner = view_of(plan, !outer_side(plan));
    side_view full = inner, last = inner;
    full.tiles = group;
    full.length = group * inner.block;
    last.tiles = inner.tiles - before * group;
    last.length = inner.length - before * group * inner.block;
    jk_traffic traffic = {{0}, {0}};
    add_groups(plan, 1, &outer, &last, &traffic);
    if (before > 0)
        add_groups(plan, before, &outer, &full, &traffic);
    if (plan->b_slots == 0) /* B's panels are A's */
        traffic.bytes[JK_COLS] = traffic.pages[JK_COLS] = 0;
    return traffic;
}

static void add_part(void *user, int64_t times, const jk_plan *part)
{
    jk_traffic *sum = user, one = walk_traffic(part);
    for (int side = JK_ROWS; side <= JK_COLS; side++) {
        sum->bytes[side] += (jk_u128)times * one.bytes[side];
        sum->pages[side] += (jk_u128)times * one.pages[side];
    }
}

jk_traffic jk_plan_traffic(const jk_plan *plan)
{
    jk_traffic sum = {{0}, {0}};
    if (plan->layer == 0)
        return walk_traffic(plan);
    jk_plan_each_part(plan, add_part, &sum);
    return sum;
}

/* Rows of A (order IJ) that groups find in host memory: the next one, at the far or near end, those of the strips
 * that were used last. */
static jk_u128 kept_length(const jk_plan *plan, const side_view *outer, int64_t strips)
{
    int64_t turns = jk_plan_groups(plan) - 1;
    int64_t near = edge(outer, strips), far = outer->length - edge(outer, outer->tiles - strips);
    return (jk_u128)(turns - turns / 2) * (jk_u128)far + (jk_u128)(turns / 2) * (jk_u128)near;
}

jk_traffic jk_plan_reading(const jk_plan *plan, const jk_traffic *copies)
{
    const int64_t strips[2] = {plan->a_strips, plan->b_strips};
    jk_traffic reading = *copies;
    for (int side = JK_ROWS; side <= JK_COLS; side++) {
        side_view view = view_of(plan, side);
        jk_u128 length = (jk_u128)view.length;
        if (strips[side] == 0)
            continue;
        if (side == outer_side(plan))
            length =
                length * (uint64_t)jk_plan_groups(plan) - kept_length(plan, &view, strips[side]);
        length *= (uint64_t)jk_plan_super_tiles(plan, !side);
        reading.bytes[side] = length * (uint64_t)plan->problem.k * view.element;
    }
    return reading;
}

/* batches * counts[i] in out[i]; false when one of them exceeds `most`. */
static bool times_batches(const jk_problem *p, const jk_u128 *counts, int n, uint64_t most,
                          jk_u128 *out)
{
    uint64_t batches = (uint64_t)jk_problem_batches(p);
    for (int i = 0; i < n; i++) {
        if (counts[i] > most / batches)
            return false;
        out[i] = counts[i] * batches;
    }
    return true;
}

/* Elements take a power of two of bytes; a division in 128 bits would take long. */
static jk_u128 elements_in(jk_u128 bytes, uint64_t element)
{
    return bytes >> __builtin_ctzll(element);
}

/* Bytes of the files of A, B and C that are read in one batch. */
static void batch_reads(const jk_plan *plan, const jk_traffic *copies, jk_u128 out[3])
{
    const jk_problem *p = &plan->problem;
    const jk_element_sizes size = jk_device_elements(p), in_file = jk_file_elements(p);
    jk_traffic reading = jk_plan_reading(plan, copies);
    out[0] = elements_in(reading.bytes[JK_ROWS], size.a) * in_file.a;
    out[1] = elements_in(reading.bytes[JK_COLS], size.b) * in_file.b;
    out[2] = p->read_c ? (jk_u128)p->m * (jk_u128)p->n * in_file.c : 0;
}

void jk_plan_file_reads(const jk_plan *plan, uint64_t out[3])
{
    jk_traffic copies = jk_plan_traffic(plan);
    jk_u128 reads[3];
    batch_reads(plan, &copies, reads);
    for (int i = 0; i < 3; i++)
        out[i] = (uint64_t)reads[i] * (uint64_t)jk_problem_batches(&plan->problem);
}

bool jk_plan_set_counts(jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    jk_traffic traffic = jk_plan_traffic(plan);
    const jk_element_sizes size = jk_device_elements(p), in_file = jk_file_elements(p);
    jk_u128 reads[3];
    batch_reads(plan, &traffic, reads);
    jk_u128 up = traffic.bytes[JK_ROWS] + traffic.bytes[JK_COLS];
    jk_u128 d = (jk_u128)p->m * (jk_u128)p->n, c = p->read_c ? d : 0;
    jk_u128 tiles = (jk_u128)plan->mt * (jk_u128)plan->nt, layers = (jk_u128)jk_plan_layers(plan);
    jk_u128 pages = traffic.pages[JK_ROWS] + traffic.pages[JK_COLS];
    pages += tiles * (layers - 1 + p->read_c);
    jk_u128 bytes[] = {up + (c + d * (layers - 1)) * size.c, d * layers * size.c,
                       reads[0] + reads[1] + reads[2], d * in_file.d};
    jk_u128 counts[] = {tiles * layers, pages, tiles};
    if (!times_batches(p, bytes, 4, UINT64_MAX, bytes) ||
        !times_batches(p, counts, 3, INT64_MAX, counts) || bytes[0] + bytes[1] > UINT64_MAX ||
        counts[2] > (uint64_t)(INT64_MAX / plan->kt))
        return false;
    plan->tiles = plan->d2h_pages = (int64_t)counts[0];
    plan->steps = (int64_t)counts[2] * plan->kt;
    plan->h2d_pages = (int64_t)counts[1];
    plan->h2d_bytes = (uint64_t)bytes[0];
    plan->d2h_bytes = (uint64_t)bytes[1];
    plan->file_read_bytes = (uint64_t)bytes[2];
    plan->file_write_bytes = (uint64_t)bytes[3];
    return true;
}

static jk_u128 slot_bytes(int64_t rows, int64_t cols, int element, size_t align)
{
    return jk_round_up_bytes((jk_u128)rows * (jk_u128)cols * (jk_u128)element, align);
}

jk_u128 jk_plan_slots_bytes(const jk_plan *plan, size_t align)
{
    const jk_problem *p = &plan->problem;
    return (jk_u128)plan->a_slots * slot_bytes(plan->bm, plan->bk, p->a_bytes, align) +
           (jk_u128)plan->b_slots * slot_bytes(plan->bk, plan->bn, p->b_bytes, align) +
           (jk_u128)plan->c_slots * slot_bytes(plan->bm, plan->bn, p->c_bytes, align);
}

uint64_t jk_plan_a_slot_bytes(const jk_plan *plan)
{
    return (uint64_t)slot_bytes(plan->bm, plan->bk, plan->problem.a_bytes, plan->slot_align);
}

uint64_t jk_plan_b_slot_bytes(const jk_plan *plan)
{
    return (uint64_t)slot_bytes(plan->bk, plan->bn, plan->problem.b_bytes, plan->slot_align);
}

uint64_t jk_plan_c_slot_bytes(const jk_plan *plan)
{
    return (uint64_t)slot_bytes(plan->bm, plan->bn, plan->problem.c_bytes, plan->slot_align);
}

/* All of k, or of the deepest layer. */
static int64_t strip_depth(const jk_plan *plan)
{
    return jk_min(jk_plan_strip_panels(plan) * plan->bk, plan->problem.k);
}

/* Strips are of one depth, so places lie side by side without gaps; the last strip may be narrow. */
static uint64_t strips_bytes(const jk_plan *plan, int side, int64_t strips)
{
    side_view view = view_of(plan, side);
    return (uint64_t)edge(&view, strips) * (uint64_t)strip_depth(plan) * (uint64_t)view.element;
}

uint64_t jk_plan_a_strips_bytes(const jk_plan *plan)
{
    return strips_bytes(plan, JK_ROWS, plan->a_strips);
}

uint64_t jk_plan_b_strips_bytes(const jk_plan *plan)
{
    return strips_bytes(plan, JK_COLS, plan->b_strips);
}

/* Panels of a strip lie one behind the other, each where the same panel of any other strip lies that has this place:
 * as far apart as in the widest one, for the runtime waits for a panel's place alone. */
static uint64_t place(const jk_plan *plan, const jk_step *step, int side, int64_t strip)
{
    side_view view = view_of(plan, side);
    int64_t width = edge(&view, strip + 1) - edge(&view, strip);
    int64_t depth_start = jk_plan_strip_panel(plan, step) * plan->bk;
    int64_t elements = strip * view.block * strip_depth(plan) + depth_start * width;
    return (uint64_t)elements * (uint64_t)view.element;
}

uint64_t jk_plan_a_place(const jk_plan *plan, const jk_step *step)
{
    return place(plan, step, JK_ROWS, step->a_strip);
}

uint64_t jk_plan_b_place(const jk_plan *plan, const jk_step *step)
{
    return place(plan, step, JK_COLS, step->b_strip);
}
