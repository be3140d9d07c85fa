/* The reference's schedule: square pages, rows of tiles in order, both pages copied every step. */
#include "planner/internal.h"

static jask_dtype dtype_of_size(size_t bytes)
{
    static const jask_dtype by_size[] = {JASK_U8, JASK_U16, JASK_F32, JASK_F64, JASK_C128};
    for (size_t i = 0; i < sizeof by_size / sizeof *by_size; i++) {
        if (jask_dtype_size(by_size[i]) == bytes)
            return by_size[i];
    }
    return JASK_DTYPE_NONE;
}

/* With sums in slabs, pages of A and B are as deep as whole slabs, and no larger: as wide as is left. */
static void hold_slabs(const jk_problem *problem, jk_plan *plan)
{
    int64_t slab = problem->slab, elements = plan->bk * plan->bk;
    if (slab == 0 || plan->bk == problem->k)
        return;
    if (plan->bk >= slab) {
        plan->bk -= plan->bk % slab;
        return;
    }
    plan->bk = jk_min(slab, problem->k);
    plan->bm = jk_min(plan->bm, elements / plan->bk);
    plan->bn = jk_min(plan->bn, elements / plan->bk);
}

bool jk_plan_page(const jk_problem *problem, const jk_machine *machine, bool pipelined,
                  jk_plan *out)
{
    uint64_t room = machine->device_bytes - machine->reserve_bytes;
    jask_dtype dtype = dtype_of_size(jk_largest_element(problem));
    const int64_t shapes[3][2] = {
        {problem->m, problem->k}, {problem->k, problem->n}, {problem->m, problem->n}};
    int64_t a[2], b[2], c[2];
    int64_t *pages[3] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        if (jask_page_shape(room, dtype, 2, shapes[i], 2, problem->phase, pipelined, pages[i],
                            NULL))
            return false;
    }
    int64_t slots = pipelined ? 2 : 1;
    jk_plan plan = {
        .problem = *problem,
        .planner = JK_PLANNER_PAGE,
        .schedule = JK_SCHEDULE_PAGE,
        .order = JK_ORDER_IJ,
        .bm = jk_min(a[0], c[0]),
        .bn = jk_min(b[1], c[1]),
        .bk = jk_min(a[1], b[0]),
        .a_slots = slots,
        .b_slots = slots,
        .c_slots = slots,
        .considered = 1,
    };
    hold_slabs(problem, &plan);
    jk_plan_set_grid(&plan);
    if (!jk_plan_set_counts(&plan))
        return false;
    *out = plan;
    return true;
}
