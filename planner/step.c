/* Step s of a plan, from s alone. */
#include "planner/plan.h"

/* Where tile `tile` lies. The inner coordinate runs back and forth. */
static void locate(const jk_plan *plan, int64_t tile, int64_t *i, int64_t *j, bool *turn)
{
    int64_t width = plan->order == JK_ORDER_IJ ? plan->nt : plan->mt;
    int64_t outer = tile / width, inner = tile % width;
    *turn = inner == 0;
    if (plan->serpentine && outer % 2 == 1)
        inner = width - 1 - inner;
    *i = plan->order == JK_ORDER_IJ ? outer : inner;
    *j = plan->order == JK_ORDER_IJ ? inner : outer;
}

jk_step jk_plan_step(const jk_plan *plan, int64_t s)
{
    const jk_problem *problem = &plan->problem;
    int64_t position = s % plan->kt;
    bool turn;
    jk_step step = {.tile = s / plan->kt};
    locate(plan, step.tile, &step.i, &step.j, &turn);
    bool backwards = plan->serpentine && step.tile % 2 == 1;
    step.p = backwards ? plan->kt - 1 - position : position;

    step.row = step.i * plan->bm;
    step.col = step.j * plan->bn;
    step.depth_start = step.p * plan->bk;
    step.rows = jk_min(plan->bm, problem->m - step.row);
    step.cols = jk_min(plan->bn, problem->n - step.col);
    step.depth = jk_min(plan->bk, problem->k - step.depth_start);
    step.a_slot = step.p % plan->a_slots;
    step.b_slot = step.p % plan->b_slots;
    step.c_slot = step.tile % plan->c_slots;

    /* Along a row of tiles (order IJ) the previous tile used the same panels of A; at the turn into
     * the next row, the same panels of B. The first `slots` of them are still there. */
    bool resumes = plan->serpentine && step.tile > 0;
    bool a_stays = resumes && turn == (plan->order == JK_ORDER_JI);
    bool b_stays = resumes && turn == (plan->order == JK_ORDER_IJ);
    step.load_a = !(a_stays && position < plan->a_slots);
    step.load_b = !(b_stays && position < plan->b_slots);
    step.first = position == 0;
    step.last = position == plan->kt - 1;
    step.load_c = problem->read_c && step.first;
    return step;
}
