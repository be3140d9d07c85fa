/* Plans of any kind, and those that planners choose, keep to what they promise, step by step (replay.h). */
#include "planner/internal.h"
#include "random.h"
#include "replay.h"

#include <criterion/criterion.h>

#include <inttypes.h>

/* About as many numbers of each length. */
static int64_t random_extent(int64_t most)
{
    return random_between(1, jk_max(1, most >> random_between(0, 9)));
}

static int random_element(void)
{
    return 1 << random_between(0, 4);
}

/* Sums in slabs as often as not, and then short ones. */
static int64_t random_slab(void)
{
    return random_bits() % 2 ? 0 : random_between(1, 12);
}

/* As often as not the files hold what the device does. */
static int random_file_element(void)
{
    return random_bits() % 2 ? 0 : random_element();
}

static int64_t random_batches(void)
{
    return random_bits() % 2 ? 0 : random_between(1, 4);
}

static void check_memory(const jk_plan *plan, bool pipelined)
{
    const jk_problem *p = &plan->problem;
    uint64_t a = jk_plan_a_slot_bytes(plan), b = jk_plan_b_slot_bytes(plan);
    uint64_t c = jk_plan_c_slot_bytes(plan);
    uint64_t all =
        (uint64_t)plan->a_slots * a + (uint64_t)plan->b_slots * b + (uint64_t)plan->c_slots * c;
    hold(plan->peak_bytes == all + plan->reserve_bytes, "peak");
    hold(plan->peak_bytes <= plan->budget_bytes, "within the budget");
    hold(plan->slot_align >= jk_largest_element(p), "elements aligned");
    hold(a % plan->slot_align == 0 && b % plan->slot_align == 0 && c % plan->slot_align == 0,
         "slots aligned");
    hold(a >= (uint64_t)(plan->bm * plan->bk * p->a_bytes), "room for a panel of A");
    hold(b >= (uint64_t)(plan->bk * plan->bn * p->b_bytes), "room for a panel of B");
    hold(c >= (uint64_t)(plan->bm * plan->bn * p->c_bytes), "room for a tile of C");
    if (!pipelined)
        hold(plan->a_slots == 1 && plan->b_slots <= 1 && plan->c_slots == 1, "one slot each");
    hold(plan->b_slots > 0 || p->gram, "panels of B without a slot");
    if (plan->schedule == JK_SCHEDULE_C_STATIONARY) {
        bool by_rows = plan->order == JK_ORDER_IJ;
        int64_t least = pipelined ? jk_min(2, plan->kt) : 1;
        int64_t stays = jk_max(2, plan->kt);
        int64_t turns = jk_max(2, plan->kt * (by_rows ? plan->nt : plan->mt));
        hold(plan->a_slots >= least && plan->a_slots <= (by_rows ? stays : turns), "slots of A");
        bool gram = p->gram && plan->b_slots == 0;
        hold((gram || plan->b_slots >= least) && plan->b_slots <= (by_rows ? turns : stays),
             "slots of B");
    }
}

static void check_host_memory(const jk_plan *plan, const jk_machine *machine)
{
    uint64_t strips = jk_plan_a_strips_bytes(plan) + jk_plan_b_strips_bytes(plan);
    hold(plan->host_budget_bytes == machine->host_bytes, "host budget");
    strips += jk_plan_sums_bytes(plan);
    hold(plan->host_peak_bytes == plan->host_reserve_bytes + strips, "host peak");
    hold(strips == 0 || plan->host_reserve_bytes == machine->host_reserve_bytes, "staging");
    hold(plan->host_peak_bytes <= machine->host_bytes, "within the host budget");
}

/* And a run that begins at any tile. */
static void check_plan(const jk_plan *plan)
{
    replay_plan(plan, plan->layer > 0 ? 0 : random_between(0, plan->tiles));
}

/* Where panels are met in ascending order, more slots than a block has panels are those of blocks. */
static int64_t whole_blocks(const jk_plan *plan, int64_t slots)
{
    return slots < plan->kt ? slots : slots / plan->kt * plan->kt;
}

static void keep_any_strips(jk_plan *plan)
{
    int64_t rows = jk_plan_rows(plan), width = jk_plan_width(plan);
    plan->group = random_bits() % 2 ? random_between(1, width) : 0;
    int64_t outer = random_bits() % 4 ? random_between(1, rows) : 0;
    int64_t inner = random_bits() % 4 ? jk_plan_group(plan) : 0;
    plan->a_strips = plan->order == JK_ORDER_IJ ? outer : inner;
    plan->b_strips = plan->order == JK_ORDER_IJ ? inner : outer;
}

static void keep_any_sums(jk_plan *plan)
{
    bool by_rows = plan->order == JK_ORDER_IJ;
    plan->super_rows = random_between(1, plan->mt);
    plan->super_cols = random_between(1, plan->nt);
    plan->layer = random_between(1, plan->kt);
    int64_t outer = random_bits() % 4 ? random_between(1, 3) : 0;
    int64_t inner = random_bits() % 4 ? (by_rows ? plan->super_cols : plan->super_rows) : 0;
    plan->a_strips = by_rows ? outer : inner;
    plan->b_strips = by_rows ? inner : outer;
}

/* Any tiles, slots, strips, super-tiles and order, not only such as a planner would choose. */
Test(planner_steps, closed_forms_agree_with_a_replay_for_any_tiles)
{
    for (int round = 0; round < 100000; round++) {
        jk_plan plan = {
            .problem = {.m = random_between(1, 30),
                        .n = random_between(1, 30),
                        .k = random_between(1, 30),
                        .a_bytes = random_element(),
                        .b_bytes = random_element(),
                        .c_bytes = random_element(),
                        .read_c = random_bits() % 2,
                        .a_file_bytes = random_file_element(),
                        .b_file_bytes = random_file_element(),
                        .c_file_bytes = random_file_element(),
                        .d_file_bytes = random_file_element(),
                        .batches = random_batches(),
                        .slab = random_slab()},
            .schedule = JK_SCHEDULE_C_STATIONARY,
            .order = random_bits() % 2 ? JK_ORDER_IJ : JK_ORDER_JI,
            .serpentine = true,
            .slot_align = 16,
            .c_slots = random_between(1, 3),
        };
        plan.bm = random_between(1, plan.problem.m);
        plan.bn = random_between(1, plan.problem.n);
        plan.bk = random_between(1, plan.problem.k);
        bool by_rows = plan.order == JK_ORDER_IJ, gram = random_bits() % 8 == 0;
        if (gram) {
            plan.problem.gram = true;
            plan.problem.n = plan.bm = plan.bn = plan.problem.m;
            plan.problem.b_bytes = plan.problem.a_bytes;
        }
        jk_plan_set_grid(&plan);
        int64_t stays = 2 * plan.kt, turns = plan.kt * ((by_rows ? plan.nt : plan.mt) + 1);
        plan.a_slots = random_between(1, by_rows ? stays : turns);
        plan.b_slots = gram ? 0 : random_between(1, by_rows ? turns : stays);
        if (plan.problem.slab > 0) {
            plan.a_slots = whole_blocks(&plan, plan.a_slots);
            plan.b_slots = whole_blocks(&plan, plan.b_slots);
        }
        if (!gram && random_bits() % 2)
            keep_any_strips(&plan);
        else if (!gram && random_bits() % 2)
            keep_any_sums(&plan);
        cr_assert(jk_plan_set_counts(&plan));
        check_plan(&plan);
        uint64_t memory = (uint64_t)jk_plan_slots_bytes(&plan, jk_largest_element(&plan.problem));
        hold(plan.h2d_bytes + plan.d2h_bytes >= jk_lower_bound(&plan.problem, memory),
             "fewer bytes than the lower bound");
    }
}

static jk_machine random_machine(const jk_problem *p, jk_planner planner, bool pipelined)
{
    jk_machine machine = {.reserve_bytes =
                              random_bits() % 2 ? (uint64_t)random_between(1, 100000) : 0,
                          .flops = 1e11,
                          .h2d = 5e9,
                          .d2h = 5e9,
                          .disk_read = 2e9,
                          .disk_write = 1e9,
                          .device_memory = 1e10,
                          .step_seconds = 1e-5,
                          .shared_cores = random_bits() % 2};
    machine.device_bytes = jk_plan_least_budget(p, &machine, planner, pipelined);
    machine.device_bytes += random_bits() % 3 ? (uint64_t)random_extent(1000000) : 0;
    if (random_bits() % 2) {
        int64_t inputs = p->m * p->k * p->a_bytes + p->k * p->n * p->b_bytes;
        machine.host_reserve_bytes = (uint64_t)random_between(0, 10000);
        machine.host_bytes = machine.host_reserve_bytes + (uint64_t)random_between(0, inputs);
    }
    return machine;
}

static void hold_slabs(const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    hold(p->slab == 0 || plan->bk == p->k || plan->bk % p->slab == 0, "a panel that cuts a slab");
}

Test(planner_steps, plans_of_every_planner_hold_what_they_promise)
{
    int keep = 0, in_groups = 0, in_layers = 0;
    for (int round = 0; round < 1500; round++) {
        bool large = round % 4 == 3; /* of which little fits */
        jk_problem p = {.m = large ? random_between(200, 700) : random_extent(700),
                        .n = large ? random_between(200, 700) : random_extent(700),
                        .k = large ? random_between(200, 700) : random_extent(700),
                        .a_bytes = random_element(),
                        .read_c = random_bits() % 2,
                        .a_file_bytes = random_file_element(),
                        .d_file_bytes = random_file_element(),
                        .batches = random_batches(),
                        .slab = random_slab()};
        p.b_bytes = random_bits() % 4 ? p.a_bytes : random_element();
        p.c_bytes = random_bits() % 4 ? p.a_bytes : random_element();
        p.gram = random_bits() % 8 == 0;
        if (p.gram) {
            p.n = p.m;
            p.b_bytes = p.a_bytes;
        }
        jk_planner planner = (jk_planner)(round % 3);
        bool pipelined = random_bits() % 4;
        jk_machine machine = random_machine(&p, planner, pipelined);
        jk_plan plan;
        jask_error err;
        cr_assert_eq(jk_plan_make(&p, &machine, planner, pipelined, &plan, &err), JASK_OK, "%s",
                     err.msg);
        cr_assert_eq(plan.planner, planner);
        cr_assert_eq(plan.schedule,
                     planner == JK_PLANNER_PAGE ? JK_SCHEDULE_PAGE : JK_SCHEDULE_C_STATIONARY);
        cr_assert_eq(plan.budget_bytes, machine.device_bytes);
        cr_assert(plan.seconds > 0);
        cr_assert(plan.h2d_bytes + plan.d2h_bytes >= plan.lower_bound_bytes);
        check_plan(&plan);
        hold_slabs(&plan);
        check_memory(&plan, pipelined);
        check_host_memory(&plan, &machine);
        keep += plan.a_strips + plan.b_strips > 0;
        in_groups += plan.group > 0;
        in_layers += plan.layer > 0;
    }
    cr_assert(keep > 60 && in_groups > 15 && in_layers > 10,
              "%d keep strips, %d in groups, %d in layers", keep, in_groups, in_layers);
}
