/* What lies together in files: counted in closed form as by the steps of a plan, and avoided by plans. What
 * it costs that nothing is multiplied before the first panels are there, which are the larger then. */
#include "planner/internal.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdlib.h>

/* Lines of a panel or tile that lie apart in a file; 0 where they are whole. */
static int64_t lines(bool turned, int64_t rows, int64_t cols, bool whole_rows, bool whole_cols)
{
    if (turned)
        return whole_cols ? 0 : cols;
    return whole_rows ? 0 : rows;
}

static int64_t step_runs(const jk_plan *plan, const jk_step *step)
{
    const jk_problem *p = &plan->problem;
    bool all_m = plan->bm == p->m, all_n = plan->bn == p->n, all_k = plan->bk == p->k;
    int64_t runs = 0;
    if (step->load_a)
        runs += lines(p->a_turned, step->rows, step->depth, all_k, all_m);
    if (step->load_b)
        runs += lines(p->b_turned, step->depth, step->cols, all_n, all_k);
    if (step->load_c)
        runs += lines(p->c_turned, step->rows, step->cols, all_n, all_m);
    if (step->last)
        runs += JK_PART_WRITTEN * lines(false, step->rows, step->cols, all_n, all_m);
    return runs;
}

static int64_t between(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

static jk_plan random_plan(void)
{
    jk_plan plan = {
        .problem = {.m = between(1, 24),
                    .n = between(1, 24),
                    .k = between(1, 24),
                    .a_bytes = 4,
                    .b_bytes = 8,
                    .c_bytes = 2,
                    .read_c = rand() % 2,
                    .a_turned = rand() % 2,
                    .b_turned = rand() % 2,
                    .c_turned = rand() % 2,
                    .batches = between(0, 3)},
        .schedule = JK_SCHEDULE_C_STATIONARY,
        .order = rand() % 2 ? JK_ORDER_IJ : JK_ORDER_JI,
        .serpentine = true,
        .c_slots = 1,
    };
    plan.bm = between(1, plan.problem.m);
    plan.bn = between(1, plan.problem.n);
    plan.bk = between(1, plan.problem.k);
    jk_plan_set_grid(&plan);
    plan.a_slots = between(1, 2 * plan.kt);
    plan.b_slots = between(1, 2 * plan.kt);
    cr_assert(jk_plan_set_counts(&plan));
    return plan;
}

Test(planner_runs, the_closed_form_agrees_with_the_steps)
{
    const jk_machine machine = {.runs = 0.5}, silent = {.runs = 0};
    int even = 0;
    for (int round = 0; round < 20000; round++) {
        const jk_plan plan = random_plan();
        const jk_problem *p = &plan.problem;
        double counted = jk_plan_run_seconds(&plan, &machine) / 2;
        int64_t all = 0;
        for (int64_t s = 0; s < plan.steps; s++) {
            const jk_step step = jk_plan_step(&plan, s);
            all += step_runs(&plan, &step);
        }
        /* Those cut short at an edge count as parts. */
        cr_assert(counted <= (double)all + 0.001);
        cr_assert(jk_plan_run_seconds(&plan, &silent) == 0);
        if (p->m % plan.bm == 0 && p->n % plan.bn == 0 && p->k % plan.bk == 0) {
            cr_assert(counted >= (double)all - 0.001);
            even++;
        }
    }
    cr_assert_geq(even, 500);
}

/* Two cores that copy so many bytes a second; runs cost nothing. */
static jk_machine two_cores(uint64_t mib, double copy)
{
    return (jk_machine){.device_bytes = mib << 20,
                        .flops = 1.4e11,
                        .h2d = copy,
                        .d2h = copy,
                        .disk_read = 1e9,
                        .disk_write = 5e8,
                        .device_memory = 1.5e10,
                        .step_seconds = 2e-5,
                        .shared_cores = true};
}

/* Where runs are dear rows of D are written whole, and what that costs where they are not is bounded. */
Test(planner_runs, plans_that_avoid_runs_are_nearly_as_fast)
{
    const jk_problem problem = {
        .m = 4096, .n = 4096, .k = 4096, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    for (uint64_t mib = 4; mib <= 128; mib *= 2) {
        jk_machine machine = two_cores(mib, 8e9);
        jk_plan cached, cold;
        cr_assert_eq(jk_plan_make(&problem, &machine, JK_PLANNER_AUTO, true, &cached, NULL),
                     JASK_OK);
        machine.runs = 2e5;
        cr_assert_eq(jk_plan_make(&problem, &machine, JK_PLANNER_AUTO, true, &cold, NULL), JASK_OK);
        cr_assert(cold.seconds <= 1.1 * cached.seconds);
        cr_assert(jk_plan_run_seconds(&cold, &machine) < jk_plan_run_seconds(&cached, &machine) ||
                  (cold.bm == cached.bm && cold.bn == cached.bn && cold.bk == cached.bk));
        cr_assert(mib < 32 || cold.nt == 1);
    }
}

/* Panels of 8192 indices of k would be runs of 32 KiB in rows of 4 MiB: where runs cost time they are longer, where
 * they do not panels are as deep as products need. */
Test(planner_runs, panels_are_deeper_where_runs_cost_time)
{
    const jk_problem problem = {
        .m = 512, .n = 512, .k = 1 << 20, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    jk_machine machine = two_cores(512, 4e9);
    jk_plan plan;
    machine.runs = 2e5;
    cr_assert_eq(jk_plan_make(&problem, &machine, JK_PLANNER_AUTO, true, &plan, NULL), JASK_OK);
    cr_assert_eq(plan.bk, 32768, "%" PRId64, plan.bk);
    machine.runs = 0;
    cr_assert_eq(jk_plan_make(&problem, &machine, JK_PLANNER_AUTO, true, &plan, NULL), JASK_OK);
    cr_assert_eq(plan.bk, 1024, "%" PRId64, plan.bk);
}

/* Two panels of each operand, 512 bytes a step. Cores read them straight into place, at the pace of the slower of
 * disk and copy; a card's are copied once they have been read. */
Test(planner_runs, the_first_panels_are_waited_for)
{
    static const struct {
        double read, copy; /* seconds a step */
        bool shared_cores;
        double fill;
    } cases[] = {{1, 0.5, true, 1}, {0.5, 1, true, 1}, {1, 0.5, false, 1.5}, {0.5, 1, false, 1.5}};
    jk_plan plan = {
        .problem = {.m = 8, .n = 8, .k = 16, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4},
        .schedule = JK_SCHEDULE_C_STATIONARY,
        .bm = 8,
        .bn = 8,
        .bk = 8,
        .a_slots = 2,
        .b_slots = 2,
        .c_slots = 1,
    };
    jk_plan_set_grid(&plan);
    cr_assert(jk_plan_set_counts(&plan));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const jk_machine machine = {.disk_read = 512 / cases[i].read,
                                    .h2d = 512 / cases[i].copy,
                                    .shared_cores = cases[i].shared_cores};
        jk_plan_set_seconds(&plan, &machine, true);
        /* Both steps take 2 s, of the rest 1 s is hidden, of which a twentieth shows. */
        cr_assert_float_eq(plan.seconds, cases[i].fill + 2.05, 1e-12, "case %zu: %g s", i,
                           plan.seconds);
    }
}
