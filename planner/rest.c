/* The rest of a plan, for a run that goes on where an earlier one ended. */
#include "planner/internal.h"

#include <assert.h>

/* Panels of `side` that the tile finds in slots: it begins with them. */
static int64_t found_panels(const jk_plan *plan, int64_t first_tile, int64_t tile, int side)
{
    jk_residence found = jk_plan_residence(plan, tile, side);
    if (side == JK_COLS && plan->b_slots == 0)
        return plan->kt; /* A's */
    return found.since < first_tile ? 0 : found.panels;
}

/* The indices of k that those panels cover. */
static int64_t found_depth(const jk_plan *plan, const jk_step *first, int64_t found)
{
    int64_t k = plan->problem.k;
    if (found == 0)
        return 0;
    return first->p == 0 ? jk_min(found * plan->bk, k) : k - (plan->kt - found) * plan->bk;
}

static void add_tile(const jk_plan *plan, int64_t first_tile, int64_t tile, jk_plan_counts *sum)
{
    const jk_problem *p = &plan->problem;
    const jk_element_sizes size = jk_device_elements(p), in_file = jk_file_elements(p);
    jk_step first = jk_plan_step_from(plan, first_tile, tile * plan->kt);
    /* What a tile finds on the device it finds first. */
    jk_step last = jk_plan_step_from(plan, first_tile, tile * plan->kt + plan->kt - 1);
    int64_t found_a = found_panels(plan, first_tile, tile, JK_ROWS);
    int64_t found_b = found_panels(plan, first_tile, tile, JK_COLS);
    uint64_t a = (uint64_t)first.rows * (uint64_t)(p->k - found_depth(plan, &first, found_a));
    uint64_t b = (uint64_t)first.cols * (uint64_t)(p->k - found_depth(plan, &first, found_b));
    uint64_t d = (uint64_t)first.rows * (uint64_t)first.cols, c = p->read_c ? d : 0;
    sum->h2d_pages += 2 * plan->kt - found_a - found_b + p->read_c;
    sum->h2d_bytes += a * size.a + b * size.b + c * size.c;
    sum->file_read_bytes += (last.read_a ? a * in_file.a : 0) + (last.read_b ? b * in_file.b : 0);
    sum->file_read_bytes += c * in_file.c;
    sum->d2h_pages++;
    sum->d2h_bytes += d * size.d;
    sum->file_write_bytes += d * in_file.d;
}

jk_plan_counts jk_plan_rest(const jk_plan *plan, int64_t first_tile)
{
    jk_plan_counts sum = {0};
    if (plan->layer > 0) {
        assert(first_tile == 0);
        return jk_plan_all(plan);
    }
    for (int64_t tile = first_tile; tile < plan->tiles; tile++)
        add_tile(plan, first_tile, tile, &sum);
    return sum;
}
