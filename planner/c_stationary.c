/* The C-stationary schedule: a tile of D stays on the device while panels of A and B stream through
 * it. Tiles are visited back and forth, panels too, and what memory is left over holds more panels,
 * first of the operand that the tiles of a row share, then of the one that stays at a turn.
 *
 * The choice: for every recipe (depth of panels, slots, quantum) look at the tiles that
 * tile_search.c proposes, in both orders, count exactly what each moves, and keep the best. */
#include "planner/internal.h"

#include <math.h>
#include <string.h>

enum {
    DEEPEST = 8192, /* deeper panels buy products nothing on any machine known */
    /* But rows of a panel of A are runs in its file: where these cost time, ones of up to 128 KiB in f32 were
     * seen to be read faster than shorter ones. */
    DEEPEST_FOR_RUNS = 32768,
    THIN = 64, /* with so few rows or columns of D, reading one operand is all of the work */
    LONG_RUN = 1 << 18, /* of its elements in the file, over the few: more make no difference */
    SHALLOW = 256,      /* shallower ones are tried only where the budget is too small for these */
    DEEP_ENOUGH = 1024, /* the device re-reads its tile of D rarely enough */
    LONG_ROWS = 512,    /* rows of A in the file are long enough to read well */
    WIDE_ENOUGH = 8192, /* and so are rows of B and D */
    MOST_SLOTS = 4096   /* of one operand: the runtime keeps a record for each */
};

/* Bytes are robust where rates are not, so only that many more, as a quotient, may be moved to write
 * whole rows of D. */
#define WHOLE_ROWS_WORTH 1.1

/* So much slower than the fastest plan for files that are in the page cache may be one that is faster
 * for those that are not. */
#define CACHED_WORTH 1.08

/* With AUTO, plans that write whole rows of D are kept apart from others. */
enum { ANY_ROWS, WHOLE_ROWS };

/* A tile that was looked at: recipes propose many of them more than once. */
typedef struct seen_tile {
    int64_t bk, c_slots, slots[2], block[2];
} seen_tile;
enum { SEEN = 512 };

typedef struct plan_choice {
    jk_tile_space space;
    const jk_machine *machine;
    jk_planner planner;
    bool pipelined;
    uint64_t host_room; /* for strips of A and B */
    bool first_pass;    /* the least time (AUTO), or copies (BYTES), whatever the rest */
    double in_time;     /* slower candidates are out; infinite without an objective in time */
    uint64_t in_bytes;  /* those that copy more to the device are out */
    int64_t considered;
    seen_tile seen[SEEN]; /* of this pass: the last one of each hash */
    bool found[2];
    jk_plan best[2]; /* [WHOLE_ROWS]: of those that write whole rows of D */
} plan_choice;

static bool even_tiles(const jk_plan *plan)
{
    return (plan->bm % EVEN == 0 || plan->bm == plan->problem.m) &&
           (plan->bn % EVEN == 0 || plan->bn == plan->problem.n);
}

/* The next panels can be copied while the present ones are multiplied. */
static bool look_ahead(const jk_plan *plan)
{
    return (plan->a_slots > 1 || (plan->mt == 1 && plan->kt == 1)) &&
           (plan->b_slots != 1 || (plan->nt == 1 && plan->kt == 1));
}

static bool fewer_bytes(const jk_plan *x, const jk_plan *y)
{
    if (x->h2d_bytes != y->h2d_bytes)
        return x->h2d_bytes < y->h2d_bytes;
    int64_t x_depth = jk_min(x->bk, DEEP_ENOUGH), y_depth = jk_min(y->bk, DEEP_ENOUGH);
    if (x_depth != y_depth)
        return x_depth > y_depth;
    if (look_ahead(x) != look_ahead(y))
        return look_ahead(x);
    if (even_tiles(x) != even_tiles(y))
        return even_tiles(x);
    int64_t x_width = jk_min(x->bn, WIDE_ENOUGH), y_width = jk_min(y->bn, WIDE_ENOUGH);
    if (x_width != y_width)
        return x_width > y_width;
    return x->peak_bytes < y->peak_bytes;
}

/* B and D are thin: the work is to read A, in rows. */
static bool reads_a(const jk_problem *p)
{
    return p->n <= jk_min(p->m, THIN);
}

/* Elements of the operand that matters which lie together in its file. */
static int64_t run_length(const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    if (reads_a(p))
        return jk_min(plan->bk, LONG_RUN / p->n);
    return p->m <= THIN ? jk_min(plan->bn, LONG_RUN / p->m) : jk_min(plan->bk, LONG_ROWS);
}

/* Among plans that take about the same time. */
static bool handier(const jk_plan *x, const jk_plan *y)
{
    int64_t x_run = run_length(x), y_run = run_length(y);
    if (x_run != y_run)
        return x_run > y_run;
    if (even_tiles(x) != even_tiles(y))
        return even_tiles(x);
    return fewer_bytes(x, y);
}

/* Whether a plan of the second pass of AUTO is to be the fastest where files are not in the page cache,
 * which then decides on whole rows of D as well. */
static bool by_runs(const plan_choice *choice)
{
    return !choice->first_pass && choice->planner == JK_PLANNER_AUTO && choice->machine->runs > 0;
}

static bool faster_when_cold(const plan_choice *choice, const jk_plan *x, const jk_plan *y)
{
    if (even_tiles(x) != even_tiles(y))
        return even_tiles(x);
    return x->seconds + jk_plan_run_seconds(x, choice->machine) <
           y->seconds + jk_plan_run_seconds(y, choice->machine);
}

/* Of compulsory reading, so much more or less is no matter beside how files are read. */
enum { READING_PARTS = 16 };

/* Bytes of A and B in their files. */
static jk_u128 inputs_once(const jk_problem *p)
{
    const jk_element_sizes size = jk_file_elements(p);
    jk_u128 once = (jk_u128)p->m * (jk_u128)p->k * size.a + (jk_u128)p->k * (jk_u128)p->n * size.b;
    return once * (uint64_t)jk_problem_batches(p);
}

static uint64_t reading(const jk_plan *plan)
{
    return (uint64_t)((jk_u128)plan->file_read_bytes * READING_PARTS / inputs_once(&plan->problem));
}

static bool better(const plan_choice *choice, const jk_plan *x, const jk_plan *y)
{
    bool by_time = choice->planner == JK_PLANNER_AUTO;
    if (choice->first_pass && by_time)
        return x->seconds < y->seconds;
    if (!choice->first_pass && choice->host_room > 0 && reading(x) != reading(y))
        return reading(x) < reading(y);
    if (by_runs(choice))
        return faster_when_cold(choice, x, y);
    return by_time ? handier(x, y) : fewer_bytes(x, y);
}

static void judge(plan_choice *choice, jk_plan *candidate)
{
    choice->considered++;
    if (!jk_plan_set_counts(candidate) || candidate->h2d_bytes > choice->in_bytes)
        return;
    if (choice->planner == JK_PLANNER_AUTO) {
        jk_plan_set_seconds(candidate, choice->machine, choice->pipelined);
        if (candidate->seconds > choice->in_time)
            return;
    }
    int rows =
        !choice->first_pass && !by_runs(choice) && candidate->nt == 1 ? WHOLE_ROWS : ANY_ROWS;
    if (!choice->found[rows] || better(choice, candidate, &choice->best[rows]))
        choice->best[rows] = *candidate;
    choice->found[rows] = true;
}

/* The best candidate of a pass; NULL when there was none. Whole rows of D are long, contiguous
 * writes: the disk is faster then, and the sync at the end has less to do. */
static jk_plan *best_of_pass(plan_choice *choice)
{
    jk_plan *any = &choice->best[ANY_ROWS], *whole = &choice->best[WHOLE_ROWS];
    if (!choice->found[ANY_ROWS] || !choice->found[WHOLE_ROWS])
        return choice->found[ANY_ROWS] ? any : choice->found[WHOLE_ROWS] ? whole : NULL;
    if (choice->planner != JK_PLANNER_AUTO)
        return better(choice, whole, any) ? whole : any;
    if (choice->host_room > 0 && reading(whole) > reading(any))
        return any;
    return (double)whole->h2d_bytes <= WHOLE_ROWS_WORTH * (double)any->h2d_bytes ? whole : any;
}

/* Slots that are of use, of those that an operand could have instead of `had`. Where whole blocks are kept
 * or nothing, fewer than one needs hide uneven copies, and of that three are enough. */
static int64_t worth_having(const jk_plan *plan, int64_t had, int64_t slots)
{
    if (!jk_ascending(plan))
        return slots;
    int64_t keeping = jk_keeping_slots(plan, slots);
    return jk_max(had, keeping > 0 ? keeping : jk_min(slots, 3));
}

/* Give left-over memory to an operand, until it has `most` slots. */
static void spend_on(jk_plan *plan, uint64_t room, int side, int64_t most)
{
    const jk_problem *p = &plan->problem;
    int64_t *slots = side == JK_ROWS ? &plan->a_slots : &plan->b_slots;
    int64_t useful = jk_min(most, MOST_SLOTS) - *slots;
    if (useful <= 0)
        return;
    int64_t elements = plan->bk * (side == JK_ROWS ? plan->bm : plan->bn);
    jk_u128 panel = jk_round_up_bytes((jk_u128)elements * (jk_u128)jk_side_bytes(p, side),
                                      jk_largest_element(p));
    uint64_t left = room - plan->peak_bytes;
    if (left < panel)
        return;
    uint64_t more = left / (uint64_t)panel;
    more = more < (uint64_t)useful ? more : (uint64_t)useful;
    more = (uint64_t)(worth_having(plan, *slots, *slots + (int64_t)more) - *slots);
    *slots += (int64_t)more;
    plan->peak_bytes += more * (uint64_t)panel;
}

/* What is left over saves most in the operand that the tiles of a row share, which is met again at
 * every tile, then in the one that is met again at a turn; and where panels are as deep as k, a
 * second slot lets the next one come early. */
void jk_plan_spend_left_over(jk_plan *plan, uint64_t room)
{
    bool by_rows = plan->order == JK_ORDER_IJ;
    int shared = by_rows ? JK_ROWS : JK_COLS;
    int64_t rows = by_rows ? plan->mt : plan->nt, width = by_rows ? plan->nt : plan->mt;
    if (width > 1)
        spend_on(plan, room, shared, plan->kt);
    if (rows > 1)
        spend_on(plan, room, !shared, width * plan->kt);
    if (rows > 1)
        spend_on(plan, room, shared, 2);
    if (width > 1)
        spend_on(plan, room, !shared, 2);
}

/* Whether `plan` could be chosen if it read each input only once. */
static bool promising(const plan_choice *choice, const jk_plan *plan)
{
    jk_plan best_case = *plan;
    jk_u128 once = inputs_once(&plan->problem);
    if (!jk_plan_set_counts(&best_case) || best_case.h2d_bytes > choice->in_bytes)
        return false;
    if (choice->planner != JK_PLANNER_AUTO)
        return true;
    if (once < best_case.file_read_bytes)
        best_case.file_read_bytes = (uint64_t)once;
    jk_plan_set_seconds(&best_case, choice->machine, choice->pipelined);
    if (choice->first_pass && choice->found[ANY_ROWS])
        return best_case.seconds < choice->best[ANY_ROWS].seconds;
    return best_case.seconds <= choice->in_time;
}

/* `plan` but for what stays in host memory. */
static void consider_host_levels(plan_choice *choice, jk_plan *plan)
{
    jk_plan in_groups;
    if (choice->host_room > 0 && !promising(choice, plan))
        return;
    bool several = jk_plan_keep_strips(plan, choice->host_room, &in_groups);
    judge(choice, plan);
    if (several)
        judge(choice, &in_groups);
}

/* What a tile depends on does not include the recipe's quantum. */
static bool is_seen(plan_choice *choice, const jk_recipe *recipe, const int64_t block[2])
{
    const seen_tile tile = {recipe->bk,
                            recipe->c_slots,
                            {recipe->slots[JK_ROWS], recipe->slots[JK_COLS]},
                            {block[JK_ROWS], block[JK_COLS]}};
    const uint64_t mix = 0x9e3779b97f4a7c15u;
    uint64_t hash = (uint64_t)tile.block[JK_ROWS] * mix ^ (uint64_t)tile.block[JK_COLS];
    seen_tile *place = &choice->seen[hash * mix >> 32 & (SEEN - 1)];
    if (memcmp(place, &tile, sizeof tile) == 0)
        return true;
    *place = tile;
    return false;
}

static void consider_tile(plan_choice *choice, const jk_recipe *recipe, const int64_t block[2])
{
    const jk_problem *p = choice->space.problem;
    if (is_seen(choice, recipe, block))
        return;
    jk_plan plan = {
        .problem = *p,
        .planner = choice->planner,
        .schedule = JK_SCHEDULE_C_STATIONARY,
        .serpentine = true,
        .bm = block[JK_ROWS],
        .bn = block[JK_COLS],
        .bk = recipe->bk,
    };
    jk_plan_set_grid(&plan);
    plan.a_slots = worth_having(&plan, 0, recipe->slots[JK_ROWS]);
    plan.b_slots = worth_having(&plan, 0, recipe->slots[JK_COLS]);
    bool lone = plan.mt == 1 && plan.nt == 1 && jk_problem_batches(p) == 1;
    plan.c_slots = lone ? 1 : recipe->c_slots;
    plan.peak_bytes = (uint64_t)jk_plan_slots_bytes(&plan, jk_largest_element(p));
    for (int order = JK_ORDER_IJ; order <= JK_ORDER_JI; order++) {
        jk_plan candidate = plan;
        candidate.order = (jk_order)order;
        if (choice->pipelined)
            jk_plan_spend_left_over(&candidate, choice->space.room);
        consider_host_levels(choice, &candidate);
    }
}

/* A tile, and what is left of it where strips of either side fill host memory. */
static void consider(void *user, const jk_recipe *recipe, const int64_t block[2])
{
    plan_choice *choice = user;
    consider_tile(choice, recipe, block);
    if (choice->host_room == 0 || recipe->quantum != EVEN)
        return;
    for (int side = JK_ROWS; side <= JK_COLS; side++) {
        int64_t cut[2] = {block[JK_ROWS], block[JK_COLS]};
        cut[side] = jk_host_block(choice->space.problem, block, side, choice->host_room);
        if (cut[side] < block[side])
            consider_tile(choice, recipe, cut);
    }
}

static void try_recipe(plan_choice *choice, const jk_recipe *recipe)
{
    if (!jk_tiles_near_least(&choice->space, recipe, consider, choice))
        return;
    /* Splitting further than memory asks for costs bytes, but the last tile is stored sooner. */
    int64_t most = choice->planner == JK_PLANNER_AUTO ? 800 : 12;
    jk_tiles_few(&choice->space, recipe, most, consider, choice);
    int64_t panels = jk_ceil_div(choice->space.problem->k, recipe->bk);
    if (!choice->pipelined || panels > MOST_SLOTS)
        return;
    jk_tiles_resident(&choice->space, recipe, JK_ROWS, consider, choice);
    jk_tiles_resident(&choice->space, recipe, JK_COLS, consider, choice);
}

/* X'X in one tile: one copy of a panel serves both operands. */
static void try_gram(plan_choice *choice, int64_t bk, int64_t slots)
{
    const jk_problem *p = choice->space.problem;
    const int64_t whole[] = {p->m, p->n};
    const jk_recipe recipe = {bk, {slots, 0}, 1, 1};
    if (p->gram && jk_tile_fits(&choice->space, &recipe, whole))
        consider(choice, &recipe, whole);
}

static void try_depth(plan_choice *choice, int64_t bk)
{
    static const int64_t quanta[] = {128, 16, 1};
    int64_t panels = jk_ceil_div(choice->space.problem->k, bk);
    /* A second tile of D hides its store, and never saves a byte. */
    int64_t most_c = choice->pipelined && choice->planner == JK_PLANNER_AUTO ? 2 : 1;
    /* Two slots hide copies, a third hides uneven ones; a single one, which panels as deep as k can
     * do with, leaves more room for tiles. */
    int64_t least_slots = choice->pipelined ? jk_min(2, panels) : 1;
    int64_t most_slots = choice->pipelined ? jk_max(2, jk_min(3, panels)) : 1;
    for (int64_t c = 1; c <= most_c; c++) {
        for (int64_t slots = least_slots; slots <= most_slots; slots++) {
            try_gram(choice, bk, slots);
            for (size_t q = 0; q < sizeof quanta / sizeof *quanta; q++) {
                jk_recipe recipe = {bk, {slots, slots}, c, quanta[q]};
                try_recipe(choice, &recipe);
            }
        }
    }
}

/* Depths are powers of two. The least one costs a tile of side sqrt(room) no more than an eighth of
 * its reuse, and leaves a few panels in k. */
int64_t jk_least_depth(const jk_problem *p, uint64_t room)
{
    double side = sqrt((double)room / (double)jk_largest_element(p));
    int64_t depth = SHALLOW;
    while (depth > 1 && (double)depth > side / 16)
        depth /= 2;
    while (depth > EVEN && depth > p->k / 4)
        depth /= 2;
    return jk_round_up(depth, jk_depth_unit(p, 1));
}

static void try_all(plan_choice *choice)
{
    const jk_problem *p = choice->space.problem;
    int64_t most = choice->machine->runs > 0 ? DEEPEST_FOR_RUNS : DEEPEST;
    if (reads_a(p))
        most = jk_max(most, LONG_RUN / p->n);
    int64_t deepest = jk_min(p->k, jk_round_up(most, jk_depth_unit(p, 1)));
    for (int64_t bk = jk_least_depth(p, choice->space.room); bk < deepest; bk *= 2)
        try_depth(choice, bk);
    try_depth(choice, deepest);
}

/* Panels of about equal depth, where that moves no more. */
static void balance_depth(jk_plan *plan)
{
    jk_plan balanced = *plan;
    balanced.bk =
        jk_round_up(jk_ceil_div(plan->problem.k, plan->kt), jk_depth_unit(&plan->problem, EVEN));
    if (balanced.bk >= plan->bk)
        return;
    jk_plan_set_grid(&balanced);
    if (jk_plan_set_counts(&balanced) && balanced.h2d_bytes <= plan->h2d_bytes)
        *plan = balanced;
}

bool jk_plan_c_stationary(const jk_problem *problem, const jk_machine *machine, jk_planner planner,
                          bool pipelined, jk_plan *out)
{
    plan_choice choice = {
        .space = {problem, machine->device_bytes - machine->reserve_bytes},
        .machine = machine,
        .planner = planner,
        .pipelined = pipelined,
        .host_room = jk_host_room(machine),
        .in_time = HUGE_VAL,
        .in_bytes = UINT64_MAX,
    };
    choice.first_pass = planner == JK_PLANNER_AUTO || choice.host_room > 0;
    try_all(&choice);
    jk_plan *best = best_of_pass(&choice);
    if (best && choice.first_pass) {
        if (planner == JK_PLANNER_AUTO)
            choice.in_time = (machine->runs > 0 ? CACHED_WORTH : 1.02) * best->seconds;
        else if (!jk_add_u64(best->h2d_bytes, best->h2d_bytes / 50, &choice.in_bytes))
            choice.in_bytes = UINT64_MAX;
        choice.first_pass = choice.found[ANY_ROWS] = choice.found[WHOLE_ROWS] = false;
        memset(choice.seen, 0, sizeof choice.seen);
        try_all(&choice);
        best = best_of_pass(&choice);
    }
    if (!best)
        return false;
    *out = *best;
    out->considered = choice.considered;
    jk_plan_keep_sums(machine, pipelined, out);
    balance_depth(out);
    return true;
}
