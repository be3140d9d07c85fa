/* What the planner's files share with one another. */
#ifndef JK_PLANNER_INTERNAL_H
#define JK_PLANNER_INTERNAL_H

#include "planner/plan.h"

/* Sides of tiles that are multiples of it suit vector units and BLAS. */
enum { EVEN = 16 };

/* Totals are added up in 128 bits, where no product that the planner accepts can overflow. */
__extension__ typedef unsigned __int128 jk_u128;

static inline int64_t jk_round_up(int64_t value, int64_t unit)
{
    return jk_ceil_div(value, unit) * unit;
}

static inline jk_u128 jk_round_up_bytes(jk_u128 bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static inline int64_t jk_side_length(const jk_problem *problem, int side)
{
    return side == JK_ROWS ? problem->m : problem->n;
}

static inline int jk_side_bytes(const jk_problem *problem, int side)
{
    return side == JK_ROWS ? problem->a_bytes : problem->b_bytes;
}

/* Rows of tiles as they are visited (order JI: columns), tiles in each, and how those are visited in
 * groups. */
static inline int64_t jk_plan_rows(const jk_plan *plan)
{
    return plan->order == JK_ORDER_IJ ? plan->mt : plan->nt;
}

static inline int64_t jk_plan_width(const jk_plan *plan)
{
    return plan->order == JK_ORDER_IJ ? plan->nt : plan->mt;
}

static inline int64_t jk_plan_group(const jk_plan *plan)
{
    return plan->group > 0 ? plan->group : jk_plan_width(plan);
}

static inline int64_t jk_plan_groups(const jk_plan *plan)
{
    return jk_ceil_div(jk_plan_width(plan), jk_plan_group(plan));
}

/* Every tile meets its panels in ascending order. */
static inline bool jk_ascending(const jk_plan *plan)
{
    return !plan->serpentine || (plan->problem.slab > 0 && plan->kt > 1);
}

/* Of so many slots, those that keep panels for a later tile: where tiles meet panels in ascending order,
 * whole blocks of kt are kept or nothing. */
static inline int64_t jk_keeping_slots(const jk_plan *plan, int64_t slots)
{
    if (!plan->serpentine)
        return 0;
    return jk_ascending(plan) ? slots / plan->kt * plan->kt : slots;
}

/* Depths of panels are multiples of it, or all of k: `unit`, or what sums in slabs ask for. */
static inline int64_t jk_depth_unit(const jk_problem *problem, int64_t unit)
{
    return problem->slab > 0 ? problem->slab : unit;
}

/* Bytes of an element of each array. */
typedef struct jk_element_sizes {
    uint64_t a, b, c, d;
} jk_element_sizes;

static inline jk_element_sizes jk_device_elements(const jk_problem *p)
{
    return (jk_element_sizes){(uint64_t)p->a_bytes, (uint64_t)p->b_bytes, (uint64_t)p->c_bytes,
                              (uint64_t)p->c_bytes};
}

static inline jk_element_sizes jk_file_elements(const jk_problem *p)
{
    return (jk_element_sizes){
        .a = (uint64_t)(p->a_file_bytes ? p->a_file_bytes : p->a_bytes),
        .b = (uint64_t)(p->b_file_bytes ? p->b_file_bytes : p->b_bytes),
        .c = (uint64_t)(p->c_file_bytes ? p->c_file_bytes : p->c_bytes),
        .d = (uint64_t)(p->d_file_bytes ? p->d_file_bytes : p->c_bytes),
    };
}

/* Bytes of the largest element: every slot is a multiple of it. */
size_t jk_largest_element(const jk_problem *problem);

/* ---- super_tile.c ---- */

/* Super-tiles along the side of D, and layers that each is made in; 1 where there are none. */
static inline int64_t jk_plan_super_tiles(const jk_plan *plan, int side)
{
    int64_t tiles = side == JK_ROWS ? plan->mt : plan->nt;
    int64_t each = side == JK_ROWS ? plan->super_rows : plan->super_cols;
    return each > 0 ? jk_ceil_div(tiles, each) : 1;
}

static inline int64_t jk_plan_layers(const jk_plan *plan)
{
    return plan->layer > 0 ? jk_ceil_div(plan->kt, plan->layer) : 1;
}

/* One layer of one super-tile: a plan without super-tiles, and what comes before it. */
typedef struct jk_part {
    jk_plan plan; /* counts are not set */
    int64_t batch, i, j, p;
    int64_t first_tile, first_step;
    bool from_partial, to_partial;
} jk_part;

/* That of step s. */
jk_part jk_plan_part(const jk_plan *plan, int64_t s);

/* Parts that are alike: `times` of them, in one batch. */
typedef void jk_part_visit(void *user, int64_t times, const jk_plan *part);

void jk_plan_each_part(const jk_plan *plan, jk_part_visit *visit, void *user);

/* ---- step.c ---- */

/* What a tile finds on the device: its first `panels` panels, since tile `since` or later. */
typedef struct jk_residence {
    int64_t panels;
    int64_t since; /* -1: nothing */
} jk_residence;

jk_residence jk_plan_residence(const jk_plan *plan, int64_t tile, int side);

/* ---- bytes.c: what a plan with tiles, order and slots moves ---- */

/* Bytes and pages of A and B that go to the device in one batch. */
typedef struct jk_traffic {
    jk_u128 bytes[2];
    jk_u128 pages[2];
} jk_traffic;

/* Set mt, nt and kt from the tiles. */
void jk_plan_set_grid(jk_plan *plan);

jk_traffic jk_plan_traffic(const jk_plan *plan);

/* Bytes of A and B, as on the device, that come from files in one batch, `copies` being what
 * jk_plan_traffic says. Pages have no meaning. */
jk_traffic jk_plan_reading(const jk_plan *plan, const jk_traffic *copies);

/* Set tiles, steps, pages and bytes moved. False when one of them cannot be counted in 64 bits. */
bool jk_plan_set_counts(jk_plan *plan);

/* All slots together, each rounded up to a multiple of `align`. */
jk_u128 jk_plan_slots_bytes(const jk_plan *plan, size_t align);

/* ---- host_level.c ---- */

/* Decide which strips of A and B stay in `room` bytes of host memory so that files are read least: with
 * all tiles in one group, which leaves copies to the device as they are; and, where that returns true, still
 * less in several groups. Sets no counts. */
bool jk_plan_keep_strips(jk_plan *plan, uint64_t room, jk_plan *in_groups);

/* A length no greater than block[side], so that strips of it nearly fill `room` bytes of host memory: one
 * of them, or several beside one of the other side; block[side] where none is better. */
int64_t jk_host_block(const jk_problem *problem, const int64_t block[2], int side, uint64_t room);

/* What staging leaves of host memory. */
static inline uint64_t jk_host_room(const jk_machine *machine)
{
    return machine->host_bytes > machine->host_reserve_bytes
               ? machine->host_bytes - machine->host_reserve_bytes
               : 0;
}

/* Places of panels in host memory: the runtime keeps a number for each. */
enum { JK_MOST_PLACES = 1 << 18 };

/* ---- super_choice.c ---- */

/* Put the best plan with super-tiles in the place of one without, if it is better. */
void jk_plan_keep_sums(const jk_machine *machine, bool pipelined, jk_plan *plan);

/* ---- c_stationary.c ---- */

/* Give what is left of `room` bytes to operands as further slots, where they are of use. */
void jk_plan_spend_left_over(jk_plan *plan, uint64_t room);

/* The least depth of panels that is tried with `room` bytes for slots. */
int64_t jk_least_depth(const jk_problem *problem, uint64_t room);

/* ---- seconds.c ---- */

/* Set the predicted times of a plan whose counts are set. */
void jk_plan_set_seconds(jk_plan *plan, const jk_machine *machine, bool pipelined);

/* What a part of a row of D costs, in runs that are read: its first and last page are its neighbours' as
 * well, and where they have left memory each is read, and waited for, before it is written. */
#define JK_PART_WRITTEN 20

/* What reading and writing in runs adds to them where files are not in the page cache. */
double jk_plan_run_seconds(const jk_plan *plan, const jk_machine *machine);

/* ---- tile_search.c: the tiles worth looking at ---- */

typedef struct jk_tile_space {
    const jk_problem *problem;
    uint64_t room; /* bytes for all slots */
} jk_tile_space;

/* What stays fixed while tiles are searched. */
typedef struct jk_recipe {
    int64_t bk;
    int64_t slots[2]; /* of A and of B */
    int64_t c_slots;
    int64_t quantum; /* sides of tiles are multiples of it, or the whole side */
} jk_recipe;

/* Called with a tile that fits: block[JK_ROWS] x block[JK_COLS]. */
typedef void jk_tile_visit(void *user, const jk_recipe *recipe, const int64_t block[2]);

bool jk_tile_fits(const jk_tile_space *space, const jk_recipe *recipe, const int64_t block[2]);

/* Visit tiles among which is one that moves the fewest bytes of A and B with this recipe when
 * nothing stays on the device between tiles. Returns whether any tile fits. */
bool jk_tiles_near_least(const jk_tile_space *space, const jk_recipe *recipe, jk_tile_visit *visit,
                         void *user);

/* Visit the largest tiles for small numbers of rows, or of columns, of tiles, `most` at most. */
void jk_tiles_few(const jk_tile_space *space, const jk_recipe *recipe, int64_t most,
                  jk_tile_visit *visit, void *user);

/* Visit tiles that leave room for all kt panels of `side` in slots: that operand is then copied
 * once while a whole row (or column) of tiles is made. */
void jk_tiles_resident(const jk_tile_space *space, const jk_recipe *recipe, int side,
                       jk_tile_visit *visit, void *user);

/* ---- schedules: fill *out but for what finishing adds; false when nothing countable fits ---- */

bool jk_plan_page(const jk_problem *problem, const jk_machine *machine, bool pipelined,
                  jk_plan *out);
bool jk_plan_c_stationary(const jk_problem *problem, const jk_machine *machine, jk_planner planner,
                          bool pipelined, jk_plan *out);

#endif
