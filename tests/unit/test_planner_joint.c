/* A replay of every step of a joint plan must add up to what it predicts, find in its slots what it
 * does not copy, and bring each block of G to every element of both gradients exactly once. */
#include "planner/joint.h"

#include "planner/internal.h"
#include "random.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int random_element(void)
{
    return 1 << random_between(0, 4);
}

/* Criterion's own assertions are too slow for millions of them. */
static const jk_joint *current;

static void hold(bool true_as_promised, const char *what)
{
    char text[2048];
    if (true_as_promised)
        return;
    jk_joint_format(current, true, text, sizeof text);
    cr_assert_fail("%s: %s", what, text);
}

enum { SLOTS_MOST = 3, SIDE_MOST = 40 };

/* What a slot holds: a block, and of sums how many blocks of G they are of. */
typedef struct place {
    int64_t block, sums;
} place;

typedef struct replay {
    const jk_joint *plan;
    place slots[JK_JOINT_POOLS][SLOTS_MOST];
    int64_t stored[2][SIDE_MOST]; /* blocks of G in the sums that were stored; -1: none were */
    int64_t finished[2][SIDE_MOST];
    int64_t stored_by[2][SIDE_MOST]; /* tile */
    int64_t tile_in[2][SLOTS_MOST];
    int64_t tiles;
    jk_plan_counts counts;
} replay;

static uint64_t elements(int64_t rows, int64_t cols)
{
    return (uint64_t)rows * (uint64_t)cols;
}

static void count_up(replay *r, uint64_t elems, int on_device, int in_file)
{
    r->counts.h2d_pages++;
    r->counts.h2d_bytes += elems * (uint64_t)on_device;
    r->counts.file_read_bytes += elems * (uint64_t)in_file;
}

/* One factor of a step: `block` of the array of `pool`. */
static void use(replay *r, int pool, int64_t slot, bool load, int64_t block, uint64_t elems,
                int in_file)
{
    place *p = &r->slots[pool][slot];
    hold(slot >= 0 && slot < r->plan->slots[pool], "slot outside of its pool");
    if (load) {
        hold(p->block != block || r->plan->count[!r->plan->stays] <= r->plan->slots[pool],
             "copies what is there");
        p->block = block;
        count_up(r, elems, r->plan->problem.bytes, in_file);
    }
    hold(p->block == block, "the block is not in its slot");
}

static void use_factors(replay *r, const jk_step *s, const int64_t at[2])
{
    const jk_joint_problem *p = &r->plan->problem;
    bool k_rows = (s->product == JK_COLS) != p->side[s->product].turned;
    int pools[3];
    jk_joint_pools(r->plan, s->product, pools);
    int64_t own = k_rows ? s->cols : s->rows;
    hold((k_rows ? s->rows : s->cols) == p->k && (k_rows ? s->row : s->col) == 0, "all of k");
    hold((k_rows ? s->col : s->row) == at[s->product] * r->plan->block[s->product], "where");
    hold(s->depth_start == at[!s->product] * r->plan->block[!s->product], "depth");
    hold(own > 0 && s->depth > 0, "an empty step");
    for (int factor = 0; factor < 2; factor++) {
        bool g = pools[factor] == JK_JOINT_G;
        int64_t slot = factor == 0 ? s->a_slot : s->b_slot;
        bool load = factor == 0 ? s->load_a : s->load_b;
        hold(g || pools[factor] == JK_JOINT_OPERAND + !s->product, "pool");
        if (g)
            use(r, pools[factor], slot, load, at[0] * r->plan->count[1] + at[1],
                elements(own, s->depth), p->g_bytes);
        else
            use(r, pools[factor], slot, load, at[!s->product], elements(p->k, s->depth),
                p->side[!s->product].bytes);
    }
}

/* The sums: loaded or begun, added to, stored. */
static void use_sums(replay *r, const jk_step *s, const int64_t at[2], int64_t nth)
{
    const jk_joint_problem *p = &r->plan->problem;
    const jk_joint_side *side = &p->side[s->product];
    int64_t block = at[s->product];
    uint64_t elems = elements(s->rows, s->cols);
    place *c = &r->slots[JK_JOINT_SUMS + s->product][s->c_slot];
    hold(s->c_slot < r->plan->slots[JK_JOINT_SUMS + s->product], "slot outside of its pool");
    if (s->first) {
        hold(jk_joint_tile_before(r->plan, s->tile) == r->tile_in[s->product][s->c_slot],
             "the tile before");
        hold(s->load_c == (s->from_partial || side->adds), "reading C");
        if (s->from_partial)
            hold(jk_joint_tile_continued(r->plan, s->tile) == r->stored_by[s->product][block],
                 "the tile that it goes on from");
        r->tile_in[s->product][s->c_slot] = s->tile;
        *c = (place){block, s->from_partial ? r->stored[s->product][block] : 0};
        if (s->load_c)
            count_up(r, elems, p->sum_bytes, s->from_partial ? p->sum_bytes : side->before_bytes);
    }
    hold(c->block == block && r->tile_in[s->product][s->c_slot] == s->tile, "the tile's slot");
    hold(c->sums == nth, "each block of G once, in order");
    c->sums++;
    if (!s->last)
        return;
    hold(s->tile == r->tiles++, "tiles are finished in order");
    r->stored[s->product][block] = c->sums;
    r->stored_by[s->product][block] = s->tile;
    r->finished[s->product][block] += !s->to_partial;
    r->counts.d2h_pages++;
    r->counts.d2h_bytes += elems * (uint64_t)p->sum_bytes;
    r->counts.file_write_bytes +=
        elems * (uint64_t)(s->to_partial ? p->sum_bytes : side->gradient_bytes);
}

static void check_replay(const jk_joint *plan)
{
    replay r = {.plan = plan};
    current = plan;
    hold(plan->count[0] <= SIDE_MOST && plan->count[1] <= SIDE_MOST, "too large for this test");
    for (int pool = 0; pool < JK_JOINT_POOLS; pool++)
        for (int i = 0; i < SLOTS_MOST; i++)
            r.slots[pool][i].block = -1;
    memset(r.tile_in, -1, sizeof r.tile_in);
    for (int64_t s = 0; s < plan->steps; s++) {
        jk_step step = jk_joint_step(plan, s);
        int64_t pair = s / 2, passing = plan->count[!plan->stays], at[2];
        at[plan->stays] = pair / passing;
        at[!plan->stays] = pair % passing;
        hold(step.product == (s % 2 ? plan->stays : !plan->stays), "whose step it is");
        use_factors(&r, &step, at);
        use_sums(&r, &step, at, at[!step.product]);
        if (step.last)
            hold(jk_joint_tile_step(plan, step.tile) == s, "a tile's last step");
    }
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < plan->count[side]; i++)
            hold(r.finished[side][i] == 1 && r.stored[side][i] == plan->count[!side],
                 "a gradient is finished once, of all of G");
    hold(r.tiles == plan->tiles, "tiles");
    hold(memcmp(&r.counts, &plan->counts, sizeof r.counts) == 0, "counts");
    hold(plan->counts.h2d_bytes + plan->counts.d2h_bytes >= jk_joint_lower_bound(plan), "bound");
}

static jk_joint_problem random_problem(int64_t most)
{
    jk_joint_problem p = {.m = random_between(1, most),
                          .n = random_between(1, most),
                          .k = random_between(1, 30),
                          .bytes = random_element(),
                          .sum_bytes = random_element(),
                          .g_bytes = random_element(),
                          .g_turned = random_bits() % 2};
    for (int side = 0; side < 2; side++)
        p.side[side] = (jk_joint_side){.bytes = random_element(),
                                       .gradient_bytes = random_element(),
                                       .turned = random_bits() % 2,
                                       .adds = random_bits() % 2,
                                       .before_bytes = random_element()};
    return p;
}

/* Any blocks and slots, not only such as would be chosen. */
Test(planner_joint, closed_forms_agree_with_a_replay_for_any_blocks)
{
    for (int round = 0; round < 50000; round++) {
        jk_joint plan = {.problem = random_problem(SIDE_MOST), .slot_align = 16};
        plan.stays = random_bits() % 2;
        plan.block[0] = random_between(1, plan.problem.m);
        plan.block[1] = random_between(1, plan.problem.n);
        int stays = plan.stays;
        int64_t length = stays == JK_ROWS ? plan.problem.n : plan.problem.m;
        int64_t passing = jk_ceil_div(length, plan.block[!stays]);
        for (int pool = 0; pool < JK_JOINT_POOLS; pool++)
            plan.slots[pool] = random_between(1, SLOTS_MOST);
        /* Sums that pass are brought again only once they have been stored. */
        plan.slots[JK_JOINT_SUMS + !stays] = jk_min(plan.slots[JK_JOINT_SUMS + !stays], passing);
        cr_assert(jk_joint_set_counts(&plan));
        check_replay(&plan);
    }
}

static uint64_t memory_of(const jk_joint *plan)
{
    uint64_t bytes = plan->reserve_bytes;
    for (int pool = 0; pool < JK_JOINT_POOLS; pool++)
        bytes += (uint64_t)plan->slots[pool] * jk_joint_slot_bytes(plan, pool);
    return bytes;
}

static jk_machine machine_of(uint64_t bytes, uint64_t reserve)
{
    return (jk_machine){.device_bytes = bytes,
                        .reserve_bytes = reserve,
                        .flops = 1e11,
                        .h2d = 5e9,
                        .d2h = 5e9,
                        .disk_read = 2e9,
                        .disk_write = 1e9,
                        .device_memory = 1e10,
                        .step_seconds = 1e-6};
}

Test(planner_joint, chosen_plans_hold_what_they_promise)
{
    int made = 0;
    for (int round = 0; round < 5000; round++) {
        jk_joint_problem p = random_problem(SIDE_MOST);
        uint64_t reserve = random_bits() % 2 ? (uint64_t)random_between(1, 1000) : 0;
        jk_machine machine = machine_of((uint64_t)random_between(0, 40000), reserve);
        jk_planner planner = random_bits() % 2 ? JK_PLANNER_AUTO : JK_PLANNER_BYTES;
        bool pipelined = random_bits() % 4 != 0;
        jk_joint plan;
        machine.shared_cores = random_bits() % 2;
        if (!jk_joint_make(&p, &machine, planner, pipelined, &plan))
            continue;
        made++;
        check_replay(&plan);
        hold(plan.peak_bytes == memory_of(&plan), "peak");
        hold(plan.peak_bytes <= machine.device_bytes, "within the budget");
        hold(plan.slot_align >= (size_t)p.bytes && plan.slot_align >= (size_t)p.sum_bytes,
             "alignment");
        for (int pool = 0; !pipelined && pool < JK_JOINT_POOLS; pool++)
            hold(plan.slots[pool] == 1, "one slot each");
        int pass = JK_JOINT_SUMS + !plan.stays;
        hold(plan.slots[pass] <= plan.count[!plan.stays], "sums are stored before they come again");
    }
    cr_assert_geq(made, 3000);
}

/* f32, no files of other types. */
static jk_joint_problem plain(int64_t m, int64_t n, int64_t k)
{
    jk_joint_side side = {.bytes = 4, .gradient_bytes = 4};
    return (jk_joint_problem){
        .m = m, .n = n, .k = k, .bytes = 4, .sum_bytes = 4, .g_bytes = 4, .side = {side, side}};
}

/* What the two products of the same problem move. */
static jk_plan_counts two_products(const jk_joint_problem *j, const jk_machine *machine)
{
    jk_problem of_a = {.m = j->m,
                       .n = j->k,
                       .k = j->n,
                       .a_bytes = 4,
                       .b_bytes = 4,
                       .c_bytes = 4,
                       .phase = JASK_BACKWARD};
    jk_problem of_b = of_a;
    jk_plan a, b;
    of_b.m = j->k;
    of_b.n = j->n;
    of_b.k = j->m;
    cr_assert_eq(jk_plan_make(&of_a, machine, JK_PLANNER_BYTES, true, &a, NULL), JASK_OK);
    cr_assert_eq(jk_plan_make(&of_b, machine, JK_PLANNER_BYTES, true, &b, NULL), JASK_OK);
    return (jk_plan_counts){.h2d_bytes = a.h2d_bytes + b.h2d_bytes,
                            .d2h_bytes = a.d2h_bytes + b.d2h_bytes};
}

Test(planner_joint, moves_six_tenths_of_two_products_where_k_is_small)
{
    jk_joint_problem p = plain(131072, 131072, 2048);
    jk_machine machine = machine_of(256 << 20, 0);
    for (int planner = JK_PLANNER_AUTO; planner <= JK_PLANNER_BYTES; planner++) {
        jk_joint plan;
        jk_plan_counts apart = two_products(&p, &machine);
        cr_assert(jk_joint_make(&p, &machine, (jk_planner)planner, true, &plan));
        cr_assert_leq((double)plan.counts.h2d_bytes, 0.6 * (double)apart.h2d_bytes,
                      "%" PRIu64 " and %" PRIu64, plan.counts.h2d_bytes, apart.h2d_bytes);
        plan.apart = apart;
        plan.apart_seconds = INFINITY;
        cr_assert(jk_joint_is_better(&plan));
    }
}

/* Of 32768 cubed memory holds far too little of k. */
Test(planner_joint, is_no_better_where_k_is_large)
{
    jk_joint_problem p = plain(32768, 32768, 32768);
    jk_machine machine = machine_of(256 << 20, 0);
    jk_joint plan;
    cr_assert(jk_joint_make(&p, &machine, JK_PLANNER_BYTES, true, &plan));
    plan.apart = two_products(&p, &machine);
    cr_assert_not(jk_joint_is_better(&plan));
}

/* B and dB fit: all is moved once. */
Test(planner_joint, moves_everything_once_where_a_side_fits)
{
    jk_joint_problem p = plain(1 << 20, 2048, 1024);
    jk_machine machine = machine_of(64 << 20, 0);
    jk_joint plan;
    cr_assert(jk_joint_make(&p, &machine, JK_PLANNER_BYTES, true, &plan));
    cr_assert_eq(plan.stays, JK_COLS);
    cr_assert_eq(plan.count[JK_COLS], 1);
    cr_assert_eq(plan.counts.h2d_bytes + plan.counts.d2h_bytes, jk_joint_lower_bound(&plan));
    cr_assert_eq(plan.counts.h2d_bytes, 4 * ((UINT64_C(1) << 20) * (2048 + 1024) + 2048 * 1024));
}

/* Rows of G are long in the file where columns stay; of a transposed G where rows do. */
Test(planner_joint, reads_long_runs)
{
    for (int turned = 0; turned <= 1; turned++) {
        jk_joint_problem p = plain(131072, 131072, 1024);
        jk_machine machine = machine_of(256 << 20, 0);
        jk_joint plan;
        p.g_turned = turned;
        cr_assert(jk_joint_make(&p, &machine, JK_PLANNER_AUTO, true, &plan));
        cr_assert_eq(plan.stays, turned ? JK_ROWS : JK_COLS);
        cr_assert_geq(jk_joint_run(&plan), 8192);
    }
}

Test(planner_joint, refuses_what_does_not_fit)
{
    jk_joint_problem p = plain(100, 100, 1000000);
    jk_machine machine = machine_of(1 << 20, 0);
    jk_joint plan;
    cr_assert_not(jk_joint_make(&p, &machine, JK_PLANNER_AUTO, true, &plan));
    machine.reserve_bytes = machine.device_bytes + 1;
    cr_assert_not(jk_joint_make(&p, &machine, JK_PLANNER_AUTO, true, &plan));
}

static jk_joint sample(void)
{
    jk_joint_problem p = plain(131072, 131072, 2048);
    jk_machine machine = machine_of(256 << 20, 0);
    jk_joint plan;
    cr_assert(jk_joint_make(&p, &machine, JK_PLANNER_BYTES, true, &plan));
    plan.apart = two_products(&p, &machine);
    plan.apart_seconds = 2400;
    return plan;
}

Test(planner_joint, text_is_cut_off_as_snprintf_cuts)
{
    jk_joint plan = sample();
    for (int json = 0; json <= 1; json++) {
        char whole[4096], text[4096];
        size_t length = jk_joint_format(&plan, json, whole, sizeof whole);
        cr_assert_eq(strlen(whole), length);
        cr_assert_eq(jk_joint_format(&plan, json, NULL, 0), length);
        for (size_t size = 1; size <= length + 1; size += 7) {
            cr_assert_eq(jk_joint_format(&plan, json, text, size), length);
            cr_assert_eq((int64_t)strlen(text), jk_min((int64_t)size - 1, (int64_t)length));
            cr_assert_eq(memcmp(text, whole, strlen(text)), 0);
        }
    }
}

Test(planner_joint, text_says_what_is_saved)
{
    jk_joint plan = sample();
    char text[4096];
    jk_joint_format(&plan, false, text, sizeof text);
    printf("# %s", text);
    cr_assert_not_null(strstr(text, "\nplan     joint, planner bytes: dD is read once"));
    cr_assert_not_null(strstr(text, "\napart    two products: up 13"), "%s", text);
    cr_assert_not_null(strstr(text, " predicted, 40.00 min as two products\n"), "%s", text);
}
