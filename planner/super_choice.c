/* Choosing a plan with super-tiles: how D is cut into them, how each is cut into tiles of the device, and
 * as deep layers as host memory then has room for. */
#include "planner/internal.h"

#include <math.h>

/* A byte that is read from a file weighs as much as so many copied between host and device: rates are not asked
 * where the fewest bytes are wanted, and disks are about as much slower. */
#define FILE_WORTH 32

/* So much faster, as a quotient, has a plan to be that is taken for its time: its extra copies are sure, and
 * rates are rough. */
#define FASTER 1.02

enum { CUTS = 4, MOST_TRIED = 16, MOST_DEPTH = 4096, LONG = 512 };

/* Super-tiles along either side, and what that weighs, roughly. */
typedef struct cut {
    int64_t count[2];
    double weight;
} cut;

typedef struct super_choice {
    const jk_problem *problem;
    const jk_machine *machine;
    jk_planner planner;
    bool pipelined;
    uint64_t room, host_room;
    int64_t least_depth; /* of panels */
    cut cuts[CUTS];      /* the best ones first; those that are found */
    int found;
    jk_plan best; /* steps 0: none yet */
    int64_t considered;
} super_choice;

/* ---- how D is cut ---- */

static double bytes(int64_t rows, int64_t cols, uint64_t each)
{
    return (double)rows * (double)cols * (double)each;
}

/* A strip of A or B is as wide as a tile of D on the device, about. */
static double strip_width(const super_choice *choice, int64_t length)
{
    return fmin((double)length, sqrt((double)choice->room / (double)choice->problem->c_bytes));
}

static double weight_of(const super_choice *choice, const int64_t count[2])
{
    const jk_problem *p = choice->problem;
    const jk_element_sizes in_file = jk_file_elements(p);
    int64_t rows = jk_ceil_div(p->m, count[JK_ROWS]), cols = jk_ceil_div(p->n, count[JK_COLS]);
    double left = (double)choice->host_room - bytes(rows, cols, (uint64_t)p->c_bytes);
    double index = strip_width(choice, rows) * p->a_bytes + (double)cols * p->b_bytes;
    if (left < index * (double)choice->least_depth)
        return HUGE_VAL;
    double layers = ceil((double)p->k * index / left);
    double reading = bytes(p->m, p->k, in_file.a) * (double)count[JK_COLS] +
                     bytes(p->k, p->n, in_file.b) * (double)count[JK_ROWS];
    return FILE_WORTH * reading + 2 * layers * bytes(p->m, p->n, (uint64_t)p->c_bytes);
}

static void add_cut(super_choice *choice, int64_t rows, int64_t cols)
{
    cut new = {.count = {rows, cols}};
    new.weight = weight_of(choice, new.count);
    if (!(new.weight < HUGE_VAL))
        return;
    for (int i = 0; i < CUTS; i++) {
        bool vacant = i == choice->found;
        if (!vacant && choice->cuts[i].weight <= new.weight)
            continue;
        cut next = choice->cuts[i];
        choice->cuts[i] = new;
        if (vacant) {
            choice->found++;
            return;
        }
        new = next;
    }
}

/* Files are read least near the number of rows of super-tiles where both operands weigh the same. */
static void find_cuts(super_choice *choice)
{
    const jk_problem *p = choice->problem;
    const jk_element_sizes in_file = jk_file_elements(p);
    double room = (double)choice->host_room;
    double even = (double)p->m * sqrt((double)in_file.a * p->c_bytes / (room * (double)in_file.b));
    int64_t least = jk_max(1, (int64_t)fmin(even / 2, (double)p->m));
    int64_t most = jk_min(p->m, (int64_t)fmin(2 * even, (double)p->m) + 2);
    int64_t stride = jk_ceil_div(most - least + 1, MOST_TRIED);
    for (int64_t count = least; count <= most; count += stride) {
        int64_t rows = jk_ceil_div(p->m, count);
        double left = room - strip_width(choice, rows) * p->a_bytes;
        double widest = left / ((double)rows * p->c_bytes + p->b_bytes);
        if (widest < 1)
            continue;
        int64_t cols = (int64_t)ceil((double)p->n / widest);
        /* A smaller one leaves room for fewer layers. */
        for (int64_t more = 0; more < 3; more++)
            add_cut(choice, count, jk_min(p->n, cols + more * jk_ceil_div(cols, 8)));
    }
}

/* ---- the plan for a cut ---- */

static jk_u128 moved(const jk_plan *plan)
{
    return (jk_u128)plan->file_read_bytes * FILE_WORTH + plan->h2d_bytes + plan->d2h_bytes;
}

static bool better(const super_choice *choice, const jk_plan *x, const jk_plan *y)
{
    if (choice->planner == JK_PLANNER_AUTO)
        return x->seconds < y->seconds;
    jk_u128 x_moved = moved(x), y_moved = moved(y);
    return x_moved != y_moved ? x_moved < y_moved : x->bk > y->bk;
}

/* Strips, and layers as few as host memory has room for. False where none fits, or a single one would: strips as
 * deep as k do without sums. */
static bool set_layers(const super_choice *choice, jk_plan *plan)
{
    const jk_element_sizes size = jk_device_elements(&plan->problem);
    bool by_rows = plan->order == JK_ORDER_IJ;
    uint64_t rows = (uint64_t)(plan->super_rows * plan->bm);
    uint64_t cols = (uint64_t)(plan->super_cols * plan->bn);
    jk_u128 sums = (jk_u128)rows * cols * size.c;
    jk_u128 panel = (jk_u128)(by_rows ? (uint64_t)plan->bm : rows) * size.a;
    panel += (jk_u128)(by_rows ? cols : (uint64_t)plan->bn) * size.b;
    panel *= (uint64_t)plan->bk;
    if (sums + panel > choice->host_room)
        return false;
    plan->a_strips = by_rows ? 1 : plan->super_rows;
    plan->b_strips = by_rows ? plan->super_cols : 1;
    int64_t places = JK_MOST_PLACES / (plan->a_strips + plan->b_strips);
    uint64_t fit = (choice->host_room - (uint64_t)sums) / (uint64_t)panel;
    if (places == 0 || fit >= (uint64_t)plan->kt)
        return false;
    int64_t layers = jk_ceil_div(plan->kt, jk_min((int64_t)fit, places));
    plan->layer = jk_ceil_div(plan->kt, layers);
    return true;
}

static void consider(super_choice *choice, jk_plan plan)
{
    if (!set_layers(choice, &plan))
        return;
    if (choice->pipelined) {
        jk_plan part = jk_plan_part(&plan, 0).plan;
        part.peak_bytes = (uint64_t)jk_plan_slots_bytes(&part, jk_largest_element(&plan.problem));
        jk_plan_spend_left_over(&part, choice->room);
        plan.a_slots = part.a_slots;
        plan.b_slots = part.b_slots;
    }
    choice->considered++;
    if (!jk_plan_set_counts(&plan))
        return;
    if (choice->planner == JK_PLANNER_AUTO)
        jk_plan_set_seconds(&plan, choice->machine, choice->pipelined);
    if (choice->best.steps == 0 || better(choice, &plan, &choice->best))
        choice->best = plan;
}

/* A super-tile of `length` in `parts`: vector units and BLAS like even tiles. */
static int64_t block_of(int64_t length, int64_t parts)
{
    int64_t block = jk_ceil_div(length, parts);
    return block > LONG ? jk_round_up(block, EVEN) : block;
}

/* Each super-tile is `rows` tiles high, and as few wide as fit. */
static void try_tile(super_choice *choice, const cut *c, jk_plan plan, int64_t rows)
{
    const jk_problem *p = choice->problem;
    int64_t width = jk_ceil_div(p->n, c->count[JK_COLS]);
    plan.bm = jk_min(p->m, block_of(jk_ceil_div(p->m, c->count[JK_ROWS]), rows));
    double room = (double)choice->room;
    double left = room - (double)plan.a_slots * bytes(plan.bm, plan.bk, (uint64_t)p->a_bytes);
    if (left < room / 2) /* panels so deep leave thin tiles */
        return;
    double each = (double)plan.c_slots * (double)plan.bm * p->c_bytes +
                  (double)plan.b_slots * (double)plan.bk * p->b_bytes;
    double widest = floor(left / each);
    if (widest < 1)
        return;
    int64_t cols = (int64_t)ceil((double)width / widest);
    plan.bn = jk_min(p->n, block_of(width, cols));
    if ((double)plan.bn > widest)
        plan.bn = jk_min(p->n, block_of(width, ++cols));
    jk_plan_set_grid(&plan);
    if (jk_plan_slots_bytes(&plan, jk_largest_element(p)) > choice->room)
        return;
    plan.super_rows = jk_min(rows, plan.mt);
    plan.super_cols = jk_min(cols, plan.nt);
    for (int order = JK_ORDER_IJ; order <= JK_ORDER_JI; order++) {
        plan.order = (jk_order)order;
        consider(choice, plan);
    }
}

static void try_cut(super_choice *choice, const cut *c, int64_t bk, int64_t c_slots)
{
    const jk_problem *p = choice->problem;
    int64_t slots = choice->pipelined ? 2 : 1;
    const jk_plan plan = {
        .problem = *p,
        .planner = choice->planner,
        .schedule = JK_SCHEDULE_C_STATIONARY,
        .serpentine = true,
        .bk = bk,
        .a_slots = slots,
        .b_slots = slots,
        .c_slots = c_slots,
    };
    double height = (double)jk_ceil_div(p->m, c->count[JK_ROWS]);
    double square = height / sqrt((double)choice->room / (double)(c_slots * p->c_bytes));
    int64_t least = jk_max(1, (int64_t)(square * 2 / 3)), most = (int64_t)(square * 2) + 2;
    for (int64_t rows = least; rows <= most; rows += jk_ceil_div(most - least, 6))
        try_tile(choice, c, plan, rows);
}

void jk_plan_keep_sums(const jk_machine *machine, bool pipelined, jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    super_choice choice = {
        .problem = p,
        .machine = machine,
        .planner = plan->planner,
        .pipelined = pipelined,
        .room = machine->device_bytes - machine->reserve_bytes,
        .host_room = jk_host_room(machine),
    };
    bool by_time = plan->planner == JK_PLANNER_AUTO;
    if (choice.host_room == 0 || p->resumes)
        return;
    if (by_time && jk_plan_bottleneck(plan) != JK_STAGE_READ) /* which is all that gets less */
        return;
    choice.least_depth = jk_least_depth(p, choice.room);
    find_cuts(&choice);
    int64_t most_c = pipelined && by_time ? 2 : 1;
    int64_t least = choice.least_depth, most = jk_min(p->k, jk_max(least, MOST_DEPTH));
    for (int64_t bk = least; bk <= most; bk *= 4)
        for (int i = 0; i < choice.found; i++)
            for (int64_t c_slots = 1; c_slots <= most_c; c_slots++)
                try_cut(&choice, &choice.cuts[i], bk, c_slots);
    plan->considered += choice.considered;
    if (choice.best.steps == 0)
        return;
    choice.best.considered = plan->considered;
    if (by_time ? choice.best.seconds * FASTER < plan->seconds : moved(&choice.best) < moved(plan))
        *plan = choice.best;
}
