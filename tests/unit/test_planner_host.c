/* Plans that keep strips of the inputs, and sums, in host memory beside a card. */
#include "planner/internal.h"

#include <criterion/criterion.h>

#include <inttypes.h>

#define GIB ((uint64_t)1 << 30)

/* A card of 4 GiB, a disk of 2 GB/s, f32 on an H200. */
static jk_machine card(uint64_t host_bytes)
{
    return (jk_machine){.device_bytes = 4 * GIB,
                        .reserve_bytes = 32 << 20,
                        .flops = 51e12,
                        .h2d = 55e9,
                        .d2h = 55e9,
                        .disk_read = 2e9,
                        .disk_write = 2e9,
                        .device_memory = 4.3e12,
                        .step_seconds = 2e-5,
                        .host_bytes = host_bytes,
                        .host_reserve_bytes = 24 << 20};
}

static jk_plan plan_of(const jk_problem *p, const jk_machine *machine, jk_planner planner)
{
    jk_plan plan;
    jask_error err;
    cr_assert_eq(jk_plan_make(p, machine, planner, true, &plan, &err), JASK_OK, "%s", err.msg);
    cr_assert_leq(plan.host_peak_bytes, machine->host_bytes);
    return plan;
}

/* What files are read of square products in f32, GiB, is no more than the best joint plans of a model do; the last
 * four by super-tiles. */
Test(planner_host, files_are_read_as_rarely_as_host_memory_allows)
{
    static const struct {
        int64_t n;
        uint64_t host, read; /* GiB */
    } cases[] = {
        {65536, 16, 48},    {131072, 64, 192},  {262144, 256, 768}, {131072, 16, 320},
        {262144, 64, 1280}, {262144, 16, 2304}, {524288, 64, 9216},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n = cases[i].n;
        jk_problem p = {.m = n, .n = n, .k = n, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
        jk_machine machine = card(cases[i].host * GIB);
        for (int planner = JK_PLANNER_AUTO; planner <= JK_PLANNER_BYTES; planner++) {
            jk_plan plan = plan_of(&p, &machine, (jk_planner)planner);
            cr_expect_leq(plan.file_read_bytes, cases[i].read * GIB,
                          "%" PRId64 " in %" PRIu64 " GiB, planner %d: %" PRIu64 " bytes", n,
                          cases[i].host, planner, plan.file_read_bytes);
        }
    }
}

/* With all inputs, or one of them and a strip of the other, in host memory, everything is read once. */
Test(planner_host, reads_once_what_fits)
{
    jk_problem p = {.m = 100000, .n = 50000, .k = 40000, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    uint64_t a = (uint64_t)p.m * (uint64_t)p.k * 4, b = (uint64_t)p.k * (uint64_t)p.n * 4;
    for (int planner = JK_PLANNER_AUTO; planner <= JK_PLANNER_BYTES; planner++) {
        jk_machine machine = card(a + b + (24 << 20));
        cr_assert_eq(plan_of(&p, &machine, (jk_planner)planner).file_read_bytes, a + b);
        machine.host_bytes = b + a / 2 + (24 << 20);
        cr_assert_eq(plan_of(&p, &machine, (jk_planner)planner).file_read_bytes, a + b);
    }
}

/* More host memory is never worse, and none beside staging changes nothing. */
Test(planner_host, reads_less_the_more_there_is)
{
    jk_problem p = {.m = 90000, .n = 110000, .k = 70000, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    jk_machine machine = card(0);
    jk_plan none = plan_of(&p, &machine, JK_PLANNER_BYTES), before = none;
    machine.host_bytes = machine.host_reserve_bytes;
    jk_plan staging = plan_of(&p, &machine, JK_PLANNER_BYTES);
    cr_assert(staging.bm == none.bm && staging.bn == none.bn && staging.order == none.order &&
              staging.h2d_bytes == none.h2d_bytes && staging.file_read_bytes == none.h2d_bytes);
    for (uint64_t host = 2; host <= 64; host *= 2) {
        machine.host_bytes = host * GIB;
        jk_plan plan = plan_of(&p, &machine, JK_PLANNER_BYTES);
        /* To within the size of strips, and of what is about as good. */
        cr_assert_leq((double)plan.file_read_bytes, 1.07 * (double)before.file_read_bytes);
        cr_assert_leq(plan.h2d_bytes, none.h2d_bytes + none.h2d_bytes / 50);
        before = plan;
    }
    cr_assert_eq(before.file_read_bytes, ((uint64_t)p.m + (uint64_t)p.n) * (uint64_t)p.k * 4);
}

/* The budget that is named makes products what takes longest; three quarters of it do not. */
Test(planner_host, the_host_budget_that_cures_does)
{
    jk_problem p = {
        .m = 131072, .n = 131072, .k = 131072, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    jk_machine machine = card(4 * GIB);
    jk_plan plan = plan_of(&p, &machine, JK_PLANNER_BYTES);
    cr_assert_eq(jk_plan_bottleneck(&plan), JK_STAGE_READ);
    jk_plan_find_cure(&plan, &machine, true, INT64_MAX);
    cr_assert_gt(plan.compute_bound_host_budget, 0);
    cr_assert_eq(plan.compute_bound_budget, 0);
    machine.host_bytes = plan.compute_bound_host_budget;
    jk_plan cured = plan_of(&p, &machine, JK_PLANNER_BYTES);
    cr_assert_eq(jk_plan_bottleneck(&cured), JK_STAGE_PRODUCTS);
    machine.host_bytes = plan.compute_bound_host_budget / 4 * 3;
    cured = plan_of(&p, &machine, JK_PLANNER_BYTES);
    cr_assert_neq(jk_plan_bottleneck(&cured), JK_STAGE_PRODUCTS);
}

/* A tiny card beside much host memory: not so many panels are kept that to keep track of them takes memory. */
Test(planner_host, keeps_no_more_panels_than_can_be_kept_track_of)
{
    jk_problem p = {.m = 3000, .n = 3000, .k = 4000000, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    jk_machine machine = card(1000 * GIB);
    machine.reserve_bytes = 0;
    for (machine.device_bytes = 32 << 10; machine.device_bytes < 64 << 20;
         machine.device_bytes *= 4) {
        jk_plan plan = plan_of(&p, &machine, JK_PLANNER_BYTES);
        cr_assert_leq((plan.a_strips + plan.b_strips) * jk_plan_strip_panels(&plan), 1 << 18);
    }
}

/* Sums come and go in every layer: not where copies are no faster than files, nor where a run may be one that
 * goes on. */
Test(planner_host, keeps_sums_only_where_that_is_worth_its_copies)
{
    jk_problem p = {
        .m = 131072, .n = 131072, .k = 131072, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    jk_machine machine = card(16 * GIB);
    cr_assert_gt(plan_of(&p, &machine, JK_PLANNER_AUTO).layer, 0);
    cr_assert_gt(plan_of(&p, &machine, JK_PLANNER_BYTES).layer, 0);
    machine.h2d = machine.d2h = 2e9;
    cr_assert_eq(plan_of(&p, &machine, JK_PLANNER_AUTO).layer, 0);
    machine = card(16 * GIB);
    p.resumes = true;
    for (int planner = JK_PLANNER_AUTO; planner <= JK_PLANNER_BYTES; planner++) {
        jk_plan plan = plan_of(&p, &machine, (jk_planner)planner);
        cr_assert(plan.layer == 0 && plan.tiles == plan.mt * plan.nt && plan.host_peak_bytes > GIB);
    }
}

/* However many steps there are: some 0.5 us for each plan that is looked at, and steps from their numbers alone. */
Test(planner_host, ten_million_cubed_are_planned_in_layers)
{
    jk_problem p = {
        .m = 10000000, .n = 10000000, .k = 10000000, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    jk_machine machine = card(64 * GIB);
    for (int planner = JK_PLANNER_AUTO; planner <= JK_PLANNER_BYTES; planner++) {
        jk_plan plan = plan_of(&p, &machine, (jk_planner)planner);
        cr_assert_gt(plan.layer, 0);
        cr_assert_lt(plan.considered, 20000, "%" PRId64 " plans were compared", plan.considered);
        for (int64_t tile = 0; tile < plan.tiles; tile += jk_max(1, plan.tiles / 997)) {
            int64_t s = jk_plan_tile_step(&plan, tile);
            jk_step step = jk_plan_step(&plan, s);
            cr_assert(step.first && step.tile == tile && step.from_partial == (step.p > 0));
            cr_assert(s == 0 || jk_plan_step(&plan, s - 1).tile == tile - 1);
        }
        jk_step last = jk_plan_step(&plan, plan.steps - 1);
        cr_assert(last.last && !last.to_partial && last.tile == plan.tiles - 1);
    }
}
