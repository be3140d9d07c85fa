/* What a plan refuses, the least budget, and extreme sizes. */
#include "planner/internal.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const jk_planner planners[] = {JK_PLANNER_AUTO, JK_PLANNER_BYTES, JK_PLANNER_PAGE};

static jk_problem problem_of(int64_t m, int64_t n, int64_t k, int element)
{
    return (jk_problem){
        .m = m, .n = n, .k = k, .a_bytes = element, .b_bytes = element, .c_bytes = element};
}

/* Every step that is asked for lies inside the product; first and last are where they should be. */
static void check_some_steps(const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    for (int i = 0; i <= 1000; i++) {
        int64_t s = (int64_t)((jk_u128)(plan->steps - 1) * (jk_u128)i / 1000);
        jk_step step = jk_plan_step(plan, s);
        bool inside = step.row >= 0 && step.rows >= 1 && step.row + step.rows <= p->m &&
                      step.col >= 0 && step.cols >= 1 && step.col + step.cols <= p->n &&
                      step.depth_start >= 0 && step.depth >= 1 &&
                      step.depth_start + step.depth <= p->k;
        cr_assert(inside, "step %" PRId64, s);
        cr_assert(step.a_slot < plan->a_slots && step.b_slot < plan->b_slots);
        cr_assert_eq(step.first, s % plan->kt == 0);
    }
}

Test(planner, the_least_budget_works_for_every_shape_and_one_byte_less_does_not)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},          {2, 2, 2},         {1, 1000000, 1},       {1000003, 1, 1},
        {1, 1, 1000000007}, {37, 4097, 65537}, {1000000, 1000000, 3}, {999983, 999979, 999961},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * 3 * 2 * 2 * 2 * 2; i++) {
        const int64_t *shape = shapes[i / 48];
        jk_planner planner = planners[i % 3];
        bool pipelined = i / 3 % 2;
        jk_problem p = problem_of(shape[0], shape[1], shape[2], i / 6 % 2 ? 16 : 4);
        /* Pages of the last one that hold whole slabs are too narrow for their bytes to be counted. */
        p.slab = i / 24 % 2 && shape[2] != 999961 ? 256 : 0;
        jk_machine machine = {.reserve_bytes = i / 12 % 2 ? 12345 : 0};
        uint64_t least = jk_plan_least_budget(&p, &machine, planner, pipelined);
        cr_assert_eq(least, (pipelined ? 32768u : 16384u) + machine.reserve_bytes);

        jk_plan plan = {.steps = 77};
        jask_error err;
        machine.device_bytes = least - 1;
        cr_assert_eq(jk_plan_make(&p, &machine, planner, pipelined, &plan, &err), JASK_ERR_BUDGET);
        cr_assert_eq(plan.steps, 77, "the output was touched");
        machine.device_bytes = least;
        cr_assert_eq(jk_plan_make(&p, &machine, planner, pipelined, &plan, &err), JASK_OK, "%s",
                     err.msg);
        cr_assert(plan.peak_bytes <= least);
        check_some_steps(&plan);
    }
}

Test(planner, a_budget_too_small_is_answered_with_both_numbers)
{
    jk_problem p = problem_of(2, 2, 2, 4);
    jk_machine machine = {.device_bytes = 100};
    jk_plan plan;
    jask_error err;
    cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_AUTO, true, &plan, &err), JASK_ERR_BUDGET);
    cr_assert_str_eq(err.msg,
                     "a budget of 100 bytes is too small: product 2 x 2 x 2 needs at least 32768 "
                     "bytes (tiles of A, B and C and both read buffers); raise the memory budget "
                     "to 32768");
    machine.reserve_bytes = 1000;
    jk_plan_make(&p, &machine, JK_PLANNER_PAGE, false, &plan, &err);
    cr_assert_str_eq(err.msg,
                     "a budget of 100 bytes is too small: product 2 x 2 x 2 needs at least 17384 "
                     "bytes (tiles of A, B and C, and 1000 bytes of workspace); raise the memory "
                     "budget to 17384");
    machine = (jk_machine){.device_bytes = UINT64_MAX, .reserve_bytes = UINT64_MAX - 5};
    cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_AUTO, true, &plan, &err), JASK_ERR_BUDGET);
}

Test(planner, refuses_what_is_no_product_or_cannot_be_counted)
{
    const int64_t huge = (int64_t)1 << 61;
    jk_problem bad_element = problem_of(4, 4, 4, 4), no_element = bad_element;
    bad_element.b_bytes = 3;
    no_element.c_bytes = 0;
    const struct {
        jk_problem problem;
        uint64_t budget;
        const char *says;
    } rows[] = {
        {problem_of(-3, 4, 4, 4), 1 << 20, "-3 x 4 x 4"},
        {problem_of(4, -1, 4, 4), 1 << 20, "4 x -1 x 4"},
        {problem_of(4, 4, -1, 4), 1 << 20, "4 x 4 x -1"},
        {bad_element, 1 << 20, "elements of B take 3 bytes"},
        {no_element, 1 << 20, "elements of the product take 0 bytes"},
        {problem_of(huge, 1, 1, 4), 1 << 20, "A, 2305843009213693952 x 1"},
        {problem_of(1, huge, 1, 4), 1 << 20, "B, 1 x 2305843009213693952"},
        {problem_of(huge / 2, 4, 1, 2), 1 << 20, "the product, 1152921504606846976 x 4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < 3; j++) {
            jk_machine machine = {.device_bytes = rows[i].budget};
            jk_plan plan = {.steps = 77};
            jask_error err = {.code = JASK_OK};
            cr_assert_eq(jk_plan_make(&rows[i].problem, &machine, planners[j], true, &plan, &err),
                         JASK_ERR_ARG, "row %zu", i);
            cr_assert_not_null(strstr(err.msg, rows[i].says), "row %zu: %s", i, err.msg);
            cr_assert_eq(plan.steps, 77, "the output was touched");
        }
    }
}

/* Few bytes of memory mean many bytes moved: the budget that is named lets them be counted. */
Test(planner, what_cannot_be_counted_names_a_budget_with_which_it_can)
{
    static const int64_t shapes[][3] = {{10000000, 10000000, 10000000},
                                        {100000000, 300000000, 7000000},
                                        {1000000000, 1000000000, 300000000},
                                        {1000000000, 1000000000, 1000000000}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * 3 * 2; i++) {
        const int64_t *shape = shapes[i / 6];
        jk_planner planner = planners[i % 3];
        bool pipelined = i / 3 % 2;
        jk_problem p = problem_of(shape[0], shape[1], shape[2], 4);
        jk_machine machine = {.reserve_bytes = 1000};
        uint64_t least = jk_plan_least_budget(&p, &machine, planner, pipelined);
        jk_plan plan = {.steps = 77};
        jask_error err;
        char text[64];
        if (i >= 12 && planner == JK_PLANNER_PAGE)
            continue; /* below */
        cr_assert_gt(least, (pipelined ? 32768u : 16384u) + 1000u);
        machine.device_bytes = (least - 1000) / 65 * 64 + 1000;
        cr_assert_eq(jk_plan_make(&p, &machine, planner, pipelined, &plan, &err), JASK_ERR_BUDGET);
        snprintf(text, sizeof text, "raise the memory budget to %" PRIu64, least);
        cr_assert_not_null(strstr(err.msg, text), "%s does not say: %s", err.msg, text);
        cr_assert_eq(plan.steps, 77, "the output was touched");
        machine.device_bytes = least;
        cr_assert_eq(jk_plan_make(&p, &machine, planner, pipelined, &plan, &err), JASK_OK, "%s",
                     err.msg);
        check_some_steps(&plan);
    }
}

Test(planner, what_no_budget_makes_countable_is_refused_plainly)
{
    jk_problem p = problem_of(1000000000, 1000000000, 1000000000, 4);
    jk_machine machine = {.device_bytes = (uint64_t)1 << 62};
    jk_plan plan;
    jask_error err;
    cr_assert_eq(jk_plan_least_budget(&p, &machine, JK_PLANNER_PAGE, true), UINT64_MAX);
    cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_PAGE, true, &plan, &err), JASK_ERR_BUDGET);
    cr_assert_not_null(strstr(err.msg, "no memory budget is large enough for planner 'page'"), "%s",
                       err.msg);
    machine.device_bytes = UINT64_MAX;
    cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_PAGE, true, &plan, &err), JASK_ERR_BUDGET);
    cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_BYTES, true, &plan, &err), JASK_OK, "%s",
                 err.msg);
}

Test(planner, extreme_sizes_can_be_planned)
{
    static const int64_t shapes[][3] = {
        {10000000, 10000000, 10000000}, {1000000000, 1, 1000000000}, {1, 1000000000, 1000000000},
        {1000000000, 1000000000, 1},    {1, 1, 1000000000000},       {(int64_t)1 << 58, 1, 1},
        {1, (int64_t)1 << 58, 1},       {1, 1, (int64_t)1 << 58},    {1000000007, 3, 99999989},
        {131072, 131072, 8192},
    };
    static const uint64_t budgets[] = {(uint64_t)16 << 20, (uint64_t)1 << 40, UINT64_MAX};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * 3 * 3; i++) {
        jk_problem p = problem_of(shapes[i / 9][0], shapes[i / 9][1], shapes[i / 9][2], 4);
        p.read_c = true;
        jk_machine machine = {.device_bytes = budgets[i % 3],
                              .flops = 1e11,
                              .h2d = 5e9,
                              .d2h = 5e9,
                              .disk_read = 2e9,
                              .disk_write = 1e9,
                              .device_memory = 1e10,
                              .step_seconds = 1e-6,
                              .shared_cores = true};
        jk_plan plan;
        jask_error err;
        cr_assert_eq(jk_plan_make(&p, &machine, planners[i / 3 % 3], true, &plan, &err), JASK_OK,
                     "%s", err.msg);
        cr_assert(plan.peak_bytes <= plan.budget_bytes);
        cr_assert(plan.h2d_bytes + plan.d2h_bytes >= plan.lower_bound_bytes);
        /* Some 0.3 us each: whatever the sizes, planning takes a few ms. */
        cr_assert_lt(plan.considered, 16000, "%" PRId64 " plans were compared", plan.considered);
        check_some_steps(&plan);
    }
}

/* One byte an element is the only way to count 10^7 cubed in the least budget. */
Test(planner, ten_million_cubed_fits_the_least_budget)
{
    jk_problem p = problem_of(10000000, 10000000, 10000000, 1);
    jk_machine machine = {.device_bytes = 32768};
    jk_plan plan;
    jask_error err;
    cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_BYTES, true, &plan, &err), JASK_OK, "%s",
                 err.msg);
    check_some_steps(&plan);
}

/* Alignment is as large as it can be with the tiles as they are. */
Test(planner, slots_are_aligned_as_far_as_memory_allows)
{
    static const size_t aligns[] = {1, 2, 4, 8, 16, 64, 256, 4096};
    enum { ALIGNS = sizeof aligns / sizeof *aligns };
    int met[ALIGNS] = {0}, kinds = 0;
    for (uint64_t budget = 32768; budget < 60000; budget += 37) {
        jk_problem p = problem_of(333, 217, 1001, budget % 2 ? 1 : 4);
        jk_machine machine = {.device_bytes = budget};
        jk_plan plan;
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_BYTES, true, &plan, NULL), JASK_OK);
        size_t at = 0;
        while (at < ALIGNS && aligns[at] != plan.slot_align)
            at++;
        cr_assert_lt(at, ALIGNS, "alignment of %zu", plan.slot_align);
        cr_assert(at == ALIGNS - 1 || jk_plan_slots_bytes(&plan, aligns[at + 1]) > budget);
        met[at]++;
    }
    for (int i = 0; i < ALIGNS; i++)
        kinds += met[i] > 0;
    cr_assert_geq(kinds, 4, "only %d alignments occur", kinds);
}

Test(planner, an_empty_product_needs_no_steps)
{
    for (int i = 0; i < 6; i++) {
        jk_problem p = problem_of(i % 3 == 0 ? 0 : 5, i % 3 == 1 ? 0 : 6, i % 3 == 2 ? 0 : 7, 8);
        p.read_c = i >= 3;
        jk_machine machine = {.device_bytes = 1 << 20};
        jk_plan plan;
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_AUTO, true, &plan, NULL), JASK_OK);
        cr_assert_eq(plan.schedule, JK_SCHEDULE_EMPTY);
        cr_assert(plan.steps == 0 && plan.h2d_bytes == 0 && plan.peak_bytes == 0);
        cr_assert_eq(plan.file_read_bytes, p.read_c ? (uint64_t)(p.m * p.n * 8) : 0);
    }
}

Test(planner, names_can_be_read_back)
{
    jk_planner got;
    jask_error err;
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(jk_planner_parse(jk_planner_name(planners[i]), &got, &err), JASK_OK);
        cr_assert_eq(got, planners[i]);
    }
    got = JK_PLANNER_PAGE;
    cr_assert_eq(jk_planner_parse("fastest", &got, &err), JASK_ERR_ARG);
    cr_assert_eq(got, JK_PLANNER_PAGE);
    cr_assert(strstr(err.msg, "'fastest'") && strstr(err.msg, "auto") && strstr(err.msg, "bytes") &&
              strstr(err.msg, "page"));
    cr_assert_str_eq(jk_schedule_name(JK_SCHEDULE_PAGE), "page");
    cr_assert_str_eq(jk_schedule_name(JK_SCHEDULE_C_STATIONARY), "c-stationary");
}

/* ---- the lower bound ---- */

Test(planner, the_lower_bound_has_its_known_values)
{
    const uint64_t gib = (uint64_t)1 << 30;
    jk_problem square = problem_of(32768, 32768, 32768, 4);
    jk_problem thin = problem_of(131072, 131072, 512, 4);
    const struct {
        const jk_problem *problem;
        uint64_t memory;
        double gib;
    } rows[] = {
        {&square, gib / 4, 31.5}, /* 2V/sqrt(S) - 2S */
        {&square, gib, 14.0},     /* the same */
        {&square, 4 * gib, 12.0}, /* everything once */
        {&thin, gib / 4, 64.5},   /* everything once, D being most of it */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double got = (double)jk_lower_bound(rows[i].problem, rows[i].memory) / (double)gib;
        cr_assert(got <= rows[i].gib && got > rows[i].gib * (1 - 1e-6), "row %zu: %f", i, got);
    }
    /* Thin: k = 64, D does not fit; V(1/k + k/S) - (S/k)^2 - S elements for S = 2^16. */
    jk_problem narrow = problem_of(4096, 4096, 64, 4);
    double got = (double)jk_lower_bound(&narrow, 4 << 16);
    double want = 4 * (1073741824.0 * (1 / 64.0 + 64 / 65536.0) - 1048576.0 - 65536.0);
    double compulsory = 4 * (2 * 4096.0 * 64 + 4096.0 * 4096);
    cr_assert(want < compulsory && got == compulsory);
    jk_problem wide = problem_of(64, 65536, 65536, 4);
    got = (double)jk_lower_bound(&wide, 4 << 14);
    double v = 64.0 * 65536 * 65536;
    want = 4 * (v * (1 / 64.0 + 64 / 16384.0) - 65536.0 - 16384.0);
    cr_assert(got <= want && got > want * (1 - 1e-4), "%.0f, not %.0f", got, want);
}

Test(planner, the_lower_bound_falls_with_memory_and_counts_reading_c)
{
    jk_problem p = problem_of(3000, 5000, 2000, 2);
    p.c_bytes = 8;
    jk_problem with_c = p;
    with_c.read_c = true;
    uint64_t result = (uint64_t)(p.m * p.n * p.c_bytes);
    uint64_t compulsory = (uint64_t)((p.m + p.n) * p.k * 2) + result;
    for (uint64_t memory = 1000; memory < 1000000000; memory = memory * 3 + 1) {
        uint64_t bound = jk_lower_bound(&p, memory);
        cr_assert(bound >= jk_lower_bound(&p, memory * 3 + 1));
        cr_assert(bound >= compulsory);
        cr_assert_eq(jk_lower_bound(&with_c, memory), bound + result);
    }
    cr_assert_eq(jk_lower_bound(&p, 1000000000), compulsory);
    jk_problem most = problem_of((int64_t)1 << 30, (int64_t)1 << 30, (int64_t)1 << 30, 4);
    cr_assert_eq(jk_lower_bound(&most, 64), UINT64_MAX,
                 "what cannot be counted is the most there is");
}
