/* What a larger budget would do for a plan whose products wait. */
#include "planner/internal.h"

/* Which budget is raised. */
typedef enum budget { DEVICE_BUDGET, HOST_BUDGET } budget;

typedef struct patient {
    const jk_plan *plan;
    const jk_machine *machine;
    bool pipelined;
    budget raised;
} patient;

static bool compute_bound(const patient *p, uint64_t bytes)
{
    jk_machine larger = *p->machine;
    jk_plan other;
    if (p->raised == HOST_BUDGET)
        larger.host_bytes = bytes;
    else
        larger.device_bytes = bytes;
    /* Few bytes are what a larger budget buys; and this planner is the quickest. */
    return jk_plan_make(&p->plan->problem, &larger, JK_PLANNER_BYTES, p->pipelined, &other, NULL) ==
               JASK_OK &&
           jk_plan_bottleneck(&other) == JK_STAGE_PRODUCTS;
}

/* The least budget above `low` that cures, but for an eighth; 0: none up to `most` does, or another plan
 * in the budget that there is. */
static uint64_t least_cure(const patient *p, uint64_t low, uint64_t most)
{
    uint64_t high = low;
    if (!compute_bound(p, most) || compute_bound(p, low))
        return 0;
    while (high < most && !compute_bound(p, high)) {
        low = high;
        high = high > most / 2 ? most : 2 * high;
    }
    while (high - low > high / 8) {
        uint64_t middle = low + (high - low) / 2;
        if (compute_bound(p, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

void jk_plan_find_cure(jk_plan *plan, const jk_machine *machine, bool pipelined,
                       uint64_t most_bytes)
{
    patient p = {plan, machine, pipelined, HOST_BUDGET};
    plan->compute_bound_budget = plan->compute_bound_host_budget = 0;
    if (plan->schedule == JK_SCHEDULE_EMPTY || jk_plan_bottleneck(plan) == JK_STAGE_PRODUCTS)
        return;
    if (plan->host_budget_bytes > 0 && jk_plan_bottleneck(plan) == JK_STAGE_READ)
        plan->compute_bound_host_budget = least_cure(&p, plan->host_budget_bytes, most_bytes);
    p.raised = DEVICE_BUDGET;
    if (plan->compute_bound_host_budget == 0)
        plan->compute_bound_budget = least_cure(&p, plan->budget_bytes, most_bytes);
}
