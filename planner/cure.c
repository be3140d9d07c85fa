/* What a larger budget would do for a plan whose products wait. */
#include "planner/internal.h"

static bool compute_bound(const jk_plan *plan, const jk_machine *machine, bool pipelined,
                          uint64_t budget)
{
    jk_machine larger = *machine;
    jk_plan other;
    larger.device_bytes = budget;
    /* Few bytes are what a larger budget buys; and this planner is the quickest. */
    return jk_plan_make(&plan->problem, &larger, JK_PLANNER_BYTES, pipelined, &other, NULL) ==
               JASK_OK &&
           jk_plan_bottleneck(&other) == JK_STAGE_PRODUCTS;
}

void jk_plan_find_cure(jk_plan *plan, const jk_machine *machine, bool pipelined,
                       uint64_t most_bytes)
{
    uint64_t low = plan->budget_bytes, high = low;
    plan->compute_bound_budget = 0;
    if (plan->schedule == JK_SCHEDULE_EMPTY || jk_plan_bottleneck(plan) == JK_STAGE_PRODUCTS ||
        !compute_bound(plan, machine, pipelined, most_bytes))
        return;
    while (high < most_bytes && !compute_bound(plan, machine, pipelined, high)) {
        low = high;
        high = high > most_bytes / 2 ? most_bytes : 2 * high;
    }
    while (high - low > high / 8) {
        uint64_t middle = low + (high - low) / 2;
        if (compute_bound(plan, machine, pipelined, middle))
            high = middle;
        else
            low = middle;
    }
    plan->compute_bound_budget = high;
}
