/* The rest of a plan, for a run that goes on where an earlier one ended. */
#include "planner/plan.h"

jk_step jk_plan_step_from(const jk_plan *plan, int64_t first_tile, int64_t s)
{
    jk_step step = jk_plan_step(plan, s);
    if (step.tile == first_tile)
        step.load_a = step.load_b = true;
    return step;
}

/* Panels that the tile finds in the slots of an operand, given whether it loads its first one, and
 * the indices of k that they cover: the tile begins with them. */
static int64_t kept_panels(const jk_plan *plan, bool loads_first, int64_t slots)
{
    return loads_first ? 0 : jk_min(slots, plan->kt);
}

static int64_t kept_depth(const jk_plan *plan, const jk_step *first, int64_t kept)
{
    int64_t k = plan->problem.k;
    if (kept == 0)
        return 0;
    return first->p == 0 ? jk_min(kept * plan->bk, k) : k - (plan->kt - kept) * plan->bk;
}

static void add_tile(const jk_plan *plan, const jk_step *first, jk_plan_counts *sum)
{
    const jk_problem *p = &plan->problem;
    int64_t kept_a = kept_panels(plan, first->load_a, plan->a_slots);
    int64_t kept_b = kept_panels(plan, first->load_b, plan->b_slots);
    int64_t depth_a = p->k - kept_depth(plan, first, kept_a);
    int64_t depth_b = p->k - kept_depth(plan, first, kept_b);
    uint64_t tile = (uint64_t)first->rows * (uint64_t)first->cols * (uint64_t)p->c_bytes;
    sum->h2d_pages += 2 * plan->kt - kept_a - kept_b + p->read_c;
    sum->h2d_bytes += (uint64_t)first->rows * (uint64_t)depth_a * (uint64_t)p->a_bytes +
                      (uint64_t)first->cols * (uint64_t)depth_b * (uint64_t)p->b_bytes +
                      (p->read_c ? tile : 0);
    sum->d2h_pages++;
    sum->d2h_bytes += tile;
}

jk_plan_counts jk_plan_rest(const jk_plan *plan, int64_t first_tile)
{
    jk_plan_counts sum = {0};
    for (int64_t tile = first_tile; tile < plan->mt * plan->nt; tile++) {
        jk_step first = jk_plan_step_from(plan, first_tile, tile * plan->kt);
        add_tile(plan, &first, &sum);
    }
    return sum;
}
