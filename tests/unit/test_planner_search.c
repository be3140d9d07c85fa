/* How good the chosen tiles are: against exhaustive search where that is possible, and against an
 * independent model (tests/data/model_*.tsv) for sizes of every magnitude. */
#include "planner/internal.h"
#include "random.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const jk_machine host = {.flops = 1e11,
                                .h2d = 5e9,
                                .d2h = 5e9,
                                .disk_read = 2e9,
                                .disk_write = 1e9,
                                .device_memory = 1e10,
                                .step_seconds = 1e-5,
                                .shared_cores = true};

static const jk_machine gpu = {.flops = 51e12,
                               .h2d = 55e9,
                               .d2h = 55e9,
                               .disk_read = 12e9,
                               .disk_write = 6e9,
                               .device_memory = 4.3e12,
                               .step_seconds = 1e-5};

static jk_plan make(const jk_problem *p, const jk_machine *machine, uint64_t budget,
                    jk_planner planner, bool pipelined)
{
    jk_machine with_budget = *machine;
    with_budget.device_bytes = budget;
    jk_plan plan;
    jask_error err;
    cr_assert_eq(jk_plan_make(p, &with_budget, planner, pipelined, &plan, &err), JASK_OK, "%s",
                 err.msg);
    return plan;
}

/* ---- the walk over numbers of tiles ---- */

typedef struct least {
    const jk_tile_space *space;
    int64_t bytes; /* of A and B when nothing stays between tiles; INT64_MAX: no tile */
} least;

static int64_t plain_bytes(const jk_problem *p, int64_t bm, int64_t bn)
{
    return p->m * p->k * p->a_bytes * jk_ceil_div(p->n, bn) +
           p->k * p->n * p->b_bytes * jk_ceil_div(p->m, bm);
}

static int64_t tile_memory(const jk_problem *p, const jk_recipe *r, int64_t bm, int64_t bn)
{
    int64_t unit = (int64_t)jk_largest_element(p);
    return r->slots[JK_ROWS] * jk_round_up(bm * r->bk * p->a_bytes, unit) +
           r->slots[JK_COLS] * jk_round_up(bn * r->bk * p->b_bytes, unit) +
           r->c_slots * jk_round_up(bm * bn * p->c_bytes, unit);
}

static void note_least(void *user, const jk_recipe *recipe, const int64_t block[2])
{
    least *seen = user;
    const jk_problem *p = seen->space->problem;
    int64_t memory = tile_memory(p, recipe, block[JK_ROWS], block[JK_COLS]);
    cr_assert(memory <= (int64_t)seen->space->room, "a tile that does not fit");
    seen->bytes = jk_min(seen->bytes, plain_bytes(p, block[JK_ROWS], block[JK_COLS]));
}

/* Every tile whose sides are multiples of the quantum, or whole. */
static int64_t exhaustive_least(const jk_tile_space *space, const jk_recipe *r)
{
    const jk_problem *p = space->problem;
    int64_t best = INT64_MAX;
    for (int64_t i = 1; (i - 1) * r->quantum < p->m; i++) {
        int64_t bm = jk_min(i * r->quantum, p->m);
        for (int64_t j = 1; (j - 1) * r->quantum < p->n; j++) {
            int64_t bn = jk_min(j * r->quantum, p->n);
            if (tile_memory(p, r, bm, bn) <= (int64_t)space->room)
                best = jk_min(best, plain_bytes(p, bm, bn));
        }
    }
    return best;
}

Test(planner_search, the_walk_meets_the_least_bytes_of_all_tiles)
{
    static const int64_t quanta[] = {1, 3, 16, 128};
    int64_t fitting = 0;
    for (int round = 0; round < 4000; round++) {
        jk_problem p = {.m = random_between(1, 160),
                        .n = random_between(1, 160),
                        .k = random_between(1, 300),
                        .a_bytes = 1 << random_between(0, 4),
                        .b_bytes = 1 << random_between(0, 4),
                        .c_bytes = 1 << random_between(0, 4)};
        jk_tile_space space = {&p, (uint64_t)random_between(1, 1 << random_between(8, 18))};
        int64_t slots = random_between(1, 3);
        jk_recipe recipe = {.bk = random_between(1, jk_min(p.k, 40)),
                            .slots = {slots, slots},
                            .c_slots = random_between(1, 2),
                            .quantum = quanta[random_between(0, 3)]};
        least seen = {.space = &space, .bytes = INT64_MAX};
        bool any = jk_tiles_near_least(&space, &recipe, note_least, &seen);
        int64_t want = exhaustive_least(&space, &recipe);
        cr_assert_eq(any, want != INT64_MAX);
        cr_assert_eq(seen.bytes, want, "round %d: %" PRId64 ", not %" PRId64, round, seen.bytes,
                     want);
        fitting += any;
    }
    cr_assert_gt(fitting, 1500);
}

static void count_visit(void *user, const jk_recipe *recipe, const int64_t block[2])
{
    (void)recipe;
    (void)block;
    ++*(int64_t *)user;
}

/* Ten million rows of tiles must not mean ten million looks. */
Test(planner_search, the_walk_stays_short_for_huge_problems)
{
    static const int64_t extents[] = {
        1, 7, 1000, 30000, 1000000, 100000000, 1000000007, 1000000000000, (int64_t)1 << 50};
    static const uint64_t rooms[] = {1 << 15,           1 << 20,           1 << 28,
                                     (uint64_t)1 << 34, (uint64_t)1 << 40, UINT64_MAX};
    enum { EXTENTS = sizeof extents / sizeof *extents, ROOMS = sizeof rooms / sizeof *rooms };
    for (int which = 0; which < EXTENTS * EXTENTS * ROOMS; which++) {
        jk_problem p = {.m = extents[which % EXTENTS],
                        .n = extents[which / EXTENTS % EXTENTS],
                        .k = 1000,
                        .a_bytes = 4,
                        .b_bytes = 4,
                        .c_bytes = 4};
        jk_u128 largest = (jk_u128)jk_max(p.m, p.k) * (jk_u128)jk_max(p.n, p.k);
        if (largest > (jk_u128)1 << 60) /* no planner accepts that */
            continue;
        jk_tile_space space = {&p, rooms[which / (EXTENTS * EXTENTS)]};
        for (int64_t bk = 1; bk <= 8192; bk *= 8192 / 16) {
            for (int64_t quantum = 1; quantum <= 128; quantum *= 128) {
                jk_recipe recipe = {.bk = bk, .slots = {2, 2}, .c_slots = 1, .quantum = quantum};
                int64_t visits = 0;
                jk_tiles_near_least(&space, &recipe, count_visit, &visits);
                cr_assert_lt(visits, 1000, "%" PRId64 " x %" PRId64 " in %" PRIu64, p.m, p.n,
                             space.room);
            }
        }
    }
}

/* ---- whole plans ---- */

/* The fewest bytes that any tile, depth of the planner's list and order moves, left-over memory
 * going to the shared operand. */
static uint64_t exhaustive_plan(const jk_problem *p, uint64_t room, int64_t bk)
{
    uint64_t best = UINT64_MAX;
    for (int64_t cell = 0; cell < 2 * p->m * p->n; cell++) {
        jk_plan plan = {.problem = *p,
                        .serpentine = true,
                        .order = cell % 2 ? JK_ORDER_IJ : JK_ORDER_JI,
                        .bm = 1 + cell / 2 % p->m,
                        .bn = 1 + cell / 2 / p->m,
                        .bk = bk,
                        .c_slots = 1};
        jk_plan_set_grid(&plan);
        plan.a_slots = plan.b_slots = jk_min(2, plan.kt);
        jk_u128 memory = jk_plan_slots_bytes(&plan, jk_largest_element(p));
        if (memory > room)
            continue;
        bool by_rows = plan.order == JK_ORDER_IJ;
        int64_t panel = bk * (by_rows ? plan.bm * p->a_bytes : plan.bn * p->b_bytes);
        int64_t *slots = by_rows ? &plan.a_slots : &plan.b_slots;
        *slots = jk_min(plan.kt, *slots + (int64_t)(room - (uint64_t)memory) / panel);
        jk_plan_set_counts(&plan);
        best = plan.h2d_bytes < best ? plan.h2d_bytes : best;
    }
    return best;
}

Test(planner_search, bytes_comes_within_a_hundredth_of_exhaustive_search)
{
    int optimal = 0;
    for (int round = 0; round < 60; round++) {
        int element = 1 << random_between(2, 3);
        jk_problem p = {.m = random_between(1, 160),
                        .n = random_between(1, 160),
                        .k = random_between(1, 300),
                        .a_bytes = element,
                        .b_bytes = element,
                        .c_bytes = element};
        uint64_t room = (uint64_t)random_between(32768, 80000);
        jk_plan plan = make(&p, &host, room, JK_PLANNER_BYTES, true);
        uint64_t best = UINT64_MAX;
        for (int64_t bk = 4; bk < 2 * p.k; bk *= 2) {
            uint64_t bytes = exhaustive_plan(&p, room, jk_min(bk, p.k));
            best = bytes < best ? bytes : best;
        }
        cr_assert((double)plan.h2d_bytes <= 1.01 * (double)best,
                  "round %d: %" PRIu64 ", not %" PRIu64, round, plan.h2d_bytes, best);
        optimal += plan.h2d_bytes <= best;
    }
    cr_assert_geq(optimal, 57);
}

/* Neither another depth that makes as many panels, nor the other order, nor one more slot, with the
 * same tiles, would do better. */
static void check_neighbours(const jk_plan *plan)
{
    for (int64_t bk = 1; bk < 4 * plan->problem.k; bk *= 2) {
        for (int change = 0; change < 4; change++) {
            jk_plan other = *plan;
            other.bk = change > 0 ? plan->bk : jk_min(bk, plan->problem.k);
            jk_plan_set_grid(&other);
            other.a_slots = jk_min(plan->a_slots + (change == 1), plan->kt);
            other.b_slots = jk_min(plan->b_slots + (change == 2), plan->kt);
            if (change == 3)
                other.order = plan->order == JK_ORDER_IJ ? JK_ORDER_JI : JK_ORDER_IJ;
            bool allowed =
                other.kt == plan->kt && jk_plan_slots_bytes(&other, 4) <= plan->budget_bytes;
            jk_plan_set_counts(&other);
            cr_assert(!allowed || other.h2d_bytes >= plan->h2d_bytes,
                      "depth %" PRId64 ", change %d: %" PRIu64 " < %" PRIu64, other.bk, change,
                      other.h2d_bytes, plan->h2d_bytes);
        }
    }
}

Test(planner_search, no_neighbour_of_a_plan_moves_fewer_bytes)
{
    for (int round = 0; round < 2000; round++) {
        jk_problem p = {.m = random_between(1, 1 << random_between(1, 12)),
                        .n = random_between(1, 1 << random_between(1, 12)),
                        .k = random_between(1, 1 << random_between(1, 12)),
                        .a_bytes = 4,
                        .b_bytes = 4,
                        .c_bytes = 4};
        uint64_t budget = 32768 + (uint64_t)random_between(0, (int64_t)1 << random_between(1, 24));
        jk_plan plan = make(&p, &host, budget, JK_PLANNER_BYTES, true);
        check_neighbours(&plan);
    }
}

/* Panels of 112 instead of 128 would be more even, and would move more: fewer indices of k would be
 * kept. */
Test(planner_search, panels_are_made_even_only_where_that_costs_nothing)
{
    jk_problem p = {.m = 89, .n = 46, .k = 324, .a_bytes = 2, .b_bytes = 2, .c_bytes = 4};
    jk_plan plan = make(&p, &host, 44695, JK_PLANNER_AUTO, true);
    cr_assert_eq(plan.bk, 128);
    jk_plan even = plan;
    even.bk = 112;
    jk_plan_set_grid(&even);
    cr_assert(jk_plan_set_counts(&even) && even.kt == plan.kt && even.h2d_bytes > plan.h2d_bytes);
    p = (jk_problem){.m = 128, .n = 128, .k = 1100, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    plan = make(&p, &host, 1 << 20, JK_PLANNER_AUTO, true);
    cr_assert_eq(plan.bk, 224);
}

static FILE *open_data(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("JASK_TEST_SHARED"), name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

typedef struct vector {
    jk_problem problem;
    uint64_t memory, c_stationary, resident, pages, pages_pipelined, lower_bound;
} vector;

static bool next_vector(FILE *file, vector *out)
{
    char line[512];
    do {
        if (!fgets(line, sizeof line, file))
            return false;
    } while (line[0] == '#');
    *out = (vector){.memory = 0};
    jk_problem *p = &out->problem;
    int fields = sscanf(line,
                        "%" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNu64 "%d%d%d%" SCNu64 "%" SCNu64
                        "%" SCNu64 "%" SCNu64 "%" SCNu64,
                        &p->m, &p->n, &p->k, &out->memory, &p->a_bytes, &p->b_bytes, &p->c_bytes,
                        &out->c_stationary, &out->resident, &out->pages, &out->pages_pipelined,
                        &out->lower_bound);
    cr_assert_eq(fields, 12, "unreadable row: %s", line);
    return true;
}

static uint64_t moved(const jk_plan *plan)
{
    return plan->h2d_bytes + plan->d2h_bytes;
}

/* Model columns are 0 where the model has no plan (too little memory for its tiles) or no formula
 * (elements of unequal size). */
static void check_vector(const vector *v)
{
    const jk_problem *p = &v->problem;
    jk_plan bytes = make(p, &host, v->memory, JK_PLANNER_BYTES, true);
    jk_plan page = make(p, &host, v->memory, JK_PLANNER_PAGE, true);
    jk_plan plain = make(p, &host, v->memory, JK_PLANNER_BYTES, false);
    jk_plan plain_page = make(p, &host, v->memory, JK_PLANNER_PAGE, false);
    bool fewest = moved(&bytes) <= moved(&page) && moved(&plain) <= moved(&plain_page);
    if (v->c_stationary > 0)
        fewest = fewest && moved(&bytes) <= v->c_stationary;
    if (v->resident > 0)
        fewest = fewest && moved(&bytes) <= v->resident;
    if (v->pages > 0)
        fewest = fewest && moved(&plain) <= v->pages && moved(&bytes) <= v->pages_pipelined;
    cr_assert(fewest, "%" PRId64 " x %" PRId64 " x %" PRId64 " in %" PRIu64, p->m, p->n, p->k,
              v->memory);
    cr_assert(moved(&bytes) >= bytes.lower_bound_bytes);
    if (v->lower_bound > 0) {
        double want = (double)v->lower_bound, got = (double)jk_lower_bound(p, v->memory);
        cr_assert(got <= want * (1 + 1e-9) + 1 && got >= want * (1 - 1e-3), "%" PRIu64 ", not %.0f",
                  v->lower_bound, got);
    }
}

Test(planner_search, bytes_never_moves_more_than_the_model_or_pages)
{
    FILE *file = open_data("model_vectors.tsv");
    vector v;
    int rows = 0;
    for (; next_vector(file, &v); rows++)
        check_vector(&v);
    fclose(file);
    cr_assert_eq(rows, 2027);
}

/* X'X whose result fits is made from one reading of X, whatever the shape of X. */
Test(planner_search, a_gram_product_reads_its_input_once)
{
    static const int64_t shapes[][2] = {{1, 1000000}, {64, 100000}, {1024, 10000000}, {2048, 5}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * 3; i++) {
        int64_t n = shapes[i / 3][0], k = shapes[i / 3][1];
        jk_problem p = {
            .m = n, .n = n, .k = k, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4, .gram = true};
        const jk_machine *machine = i % 3 == 2 ? &gpu : &host;
        /* With so short a k, time goes into storing D, which several tiles let begin early. */
        bool fewest = i % 3 == 0 || k < n;
        jk_plan plan = make(&p, machine, (uint64_t)64 << 20,
                            fewest ? JK_PLANNER_BYTES : JK_PLANNER_AUTO, true);
        cr_assert_eq(plan.b_slots, 0);
        cr_assert_eq(plan.file_read_bytes, (uint64_t)(4 * n * k));
        cr_assert_eq(moved(&plan), plan.lower_bound_bytes);
    }
}

/* The best that the model has for ten thousand problems of all shapes and sizes. */
Test(planner_search, bytes_never_moves_more_than_the_best_of_the_model)
{
    FILE *file = open_data("model_best.tsv");
    char line[512];
    int rows = 0;
    while (fgets(line, sizeof line, file)) {
        jk_problem p = {.read_c = rows % 4 == 0};
        uint64_t memory, fewest;
        if (line[0] == '#')
            continue;
        int fields = sscanf(line, "%" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNu64 "%d%d%d%" SCNu64,
                            &p.m, &p.n, &p.k, &memory, &p.a_bytes, &p.b_bytes, &p.c_bytes, &fewest);
        cr_assert_eq(fields, 8, "unreadable row: %s", line);
        uint64_t c_up = p.read_c ? (uint64_t)(p.m * p.n * p.c_bytes) : 0;
        jk_plan bytes = make(&p, &host, memory, JK_PLANNER_BYTES, true);
        jk_plan page = make(&p, &host, memory, JK_PLANNER_PAGE, true);
        jk_plan plain_page = make(&p, &host, memory, JK_PLANNER_PAGE, false);
        bool fewer = moved(&bytes) <= moved(&page) && moved(&bytes) <= moved(&plain_page);
        cr_assert(fewer && (fewest == 0 || moved(&bytes) <= fewest + c_up), "%" PRIu64 " for %s",
                  moved(&bytes), line);
        cr_assert(moved(&bytes) >= bytes.lower_bound_bytes);
        rows++;
    }
    fclose(file);
    cr_assert_eq(rows, 10027);
}

/* AUTO may trade 2% of time for handier tiles. Balancing depths afterwards moves it by little. */
Test(planner_search, auto_is_about_as_fast_as_any_other_plan)
{
    for (int round = 0; round < 300; round++) {
        jk_problem p = {.m = random_between(1, 1 << random_between(1, 16)),
                        .n = random_between(1, 1 << random_between(1, 16)),
                        .k = random_between(1, 1 << random_between(1, 16)),
                        .a_bytes = 4,
                        .b_bytes = 4,
                        .c_bytes = 4};
        uint64_t budget = 32768 + (uint64_t)random_between(0, (int64_t)1 << random_between(1, 33));
        const jk_machine *machine = round % 2 ? &host : &gpu;
        jk_plan best = make(&p, machine, budget, JK_PLANNER_AUTO, true);
        jk_plan bytes = make(&p, machine, budget, JK_PLANNER_BYTES, true);
        jk_plan page = make(&p, machine, budget, JK_PLANNER_PAGE, true);
        cr_assert(best.seconds <= 1.03 * bytes.seconds && best.seconds <= 1.03 * page.seconds,
                  "round %d: %g s, bytes %g s, page %g s", round, best.seconds, bytes.seconds,
                  page.seconds);
        cr_assert(moved(&bytes) <= moved(&best));
    }
}
