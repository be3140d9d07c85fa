/* Choosing a plan: what is asked is checked, a schedule is made, and what all schedules share is
 * added. */
#include "planner/plan.h"

#include "planner/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The least memory, but for products so large that their bytes could not be counted, does not depend
 * on shapes: it is what the reference's square pages take at the least. Any schedule here fits tiles
 * of one element and panels a few indices deep into it. */
enum { LEAST_PAGE_BYTES = 4096 };

/* Element counts are kept so far below 2^63 that extents of tiles and panels cannot overflow. */
#define MOST_ARRAY_BYTES ((jk_u128)1 << 62)

static const char *const planner_names[] = {
    [JK_PLANNER_AUTO] = "auto",
    [JK_PLANNER_BYTES] = "bytes",
    [JK_PLANNER_PAGE] = "page",
};

static const char *const schedule_names[] = {
    [JK_SCHEDULE_EMPTY] = "empty",
    [JK_SCHEDULE_PAGE] = "page",
    [JK_SCHEDULE_C_STATIONARY] = "c-stationary",
};

const char *jk_schedule_name(jk_schedule schedule)
{
    return schedule_names[schedule];
}

const char *jk_planner_name(jk_planner planner)
{
    return planner_names[planner];
}

jask_status jk_planner_parse(const char *text, jk_planner *out, jask_error *err)
{
    for (size_t i = 0; i < sizeof planner_names / sizeof *planner_names; i++) {
        if (strcmp(text, planner_names[i]) == 0) {
            *out = (jk_planner)i;
            return JASK_OK;
        }
    }
    return jk_fail(err, JASK_ERR_ARG,
                   "no planner '%s': there are auto (least predicted time), bytes (fewest bytes "
                   "moved) and page (the reference's square pages)",
                   text);
}

static jask_status check_array(const char *name, int64_t rows, int64_t cols, int element,
                               jask_error *err)
{
    if (element < 1 || element > 16 || (element & (element - 1)) != 0)
        return jk_fail(err, JASK_ERR_ARG, "elements of %s take %d bytes; 1, 2, 4, 8 or 16 can be",
                       name, element);
    if ((jk_u128)rows * (jk_u128)cols > MOST_ARRAY_BYTES / (jk_u128)element)
        return jk_fail(err, JASK_ERR_ARG,
                       "%s, %" PRId64 " x %" PRId64 " elements of %d bytes, exceeds 2^62 bytes",
                       name, rows, cols, element);
    return JASK_OK;
}

static jask_status check_problem(const jk_problem *p, jask_error *err)
{
    if (p->m < 0 || p->n < 0 || p->k < 0)
        return jk_fail(err, JASK_ERR_ARG,
                       "extents cannot be negative: %" PRId64 " x %" PRId64 " x %" PRId64
                       " (m x n x k)",
                       p->m, p->n, p->k);
    assert(p->batches >= 0);
    assert(!p->gram || (p->m == p->n && p->a_bytes == p->b_bytes));
    jask_status st = check_array("A", p->m, p->k, p->a_bytes, err);
    if (st == JASK_OK)
        st = check_array("B", p->k, p->n, p->b_bytes, err);
    if (st == JASK_OK)
        st = check_array("the product", p->m, p->n, p->c_bytes, err);
    return st;
}

static uint64_t least_room(const jk_problem *p, bool pipelined)
{
    return (uint64_t)jask_peak_blocks(2, p->phase, pipelined) * LEAST_PAGE_BYTES;
}

static bool choose(const jk_problem *p, const jk_machine *machine, jk_planner planner,
                   bool pipelined, jk_plan *out)
{
    return planner == JK_PLANNER_PAGE ? jk_plan_page(p, machine, pipelined, out)
                                      : jk_plan_c_stationary(p, machine, planner, pipelined, out);
}

/* Whether a plan for slots of `room` bytes in all can be counted in 64 bits. */
static bool countable(const jk_problem *p, jk_planner planner, bool pipelined, uint64_t room)
{
    const jk_machine machine = {.device_bytes = room};
    jk_plan plan;
    /* AUTO looks at the tiles that BYTES looks at, and more. */
    return choose(p, &machine, planner == JK_PLANNER_AUTO ? JK_PLANNER_BYTES : planner, pipelined,
                  &plan);
}

static bool is_empty(const jk_problem *p)
{
    return p->m == 0 || p->n == 0 || p->k == 0;
}

/* To within a 64th; UINT64_MAX where no room is large enough. */
static uint64_t least_countable_room(const jk_problem *p, jk_planner planner, bool pipelined)
{
    uint64_t room = least_room(p, pipelined), step = room;
    if (is_empty(p) || countable(p, planner, pipelined, room))
        return room;
    while (!countable(p, planner, pipelined, room + step)) {
        if (step > UINT64_MAX / 4)
            return UINT64_MAX;
        step *= 2;
    }
    for (uint64_t enough = room + step; step > enough / 64;) {
        step /= 2;
        if (!countable(p, planner, pipelined, room + step))
            room += step;
    }
    return room + step;
}

uint64_t jk_plan_least_budget(const jk_problem *problem, const jk_machine *machine,
                              jk_planner planner, bool pipelined)
{
    uint64_t room = least_countable_room(problem, planner, pipelined), least;
    return jk_add_u64(room, machine->reserve_bytes, &least) ? least : UINT64_MAX;
}

static jask_status refuse_uncountable(const jk_problem *p, const jk_machine *machine,
                                      jk_planner planner, bool pipelined, jask_error *err)
{
    uint64_t least = jk_plan_least_budget(p, machine, planner, pipelined);
    char cure[96];
    if (least == UINT64_MAX)
        snprintf(cure, sizeof cure, "no memory budget is large enough for planner '%s'",
                 jk_planner_name(planner));
    else
        snprintf(cure, sizeof cure, "raise the memory budget to %" PRIu64, least);
    return jk_fail(err, JASK_ERR_BUDGET,
                   "product %" PRId64 " x %" PRId64 " x %" PRId64 " in %" PRIu64
                   " bytes takes more steps or moves more bytes than can be counted in 64 bits; %s",
                   p->m, p->n, p->k, machine->device_bytes, cure);
}

static jask_status check_budget(const jk_problem *p, const jk_machine *machine, jk_planner planner,
                                bool pipelined, jask_error *err)
{
    if (machine->device_bytes >= machine->reserve_bytes &&
        machine->device_bytes - machine->reserve_bytes >= least_room(p, pipelined))
        return JASK_OK;
    uint64_t least = jk_plan_least_budget(p, machine, planner, pipelined);
    char reserve[64] = "";
    if (machine->reserve_bytes > 0)
        snprintf(reserve, sizeof reserve, ", and %" PRIu64 " bytes of workspace",
                 machine->reserve_bytes);
    return jk_fail(err, JASK_ERR_BUDGET,
                   "a budget of %" PRIu64 " bytes is too small: product %" PRId64 " x %" PRId64
                   " x %" PRId64 " needs at least %" PRIu64 " bytes (tiles of A, B and C%s%s); "
                   "raise the memory budget to %" PRIu64,
                   machine->device_bytes, p->m, p->n, p->k, least,
                   pipelined ? " and both read buffers" : "", reserve, least);
}

/* The largest alignment that still fits; tiles have been chosen without it, so it never costs
 * bytes. */
static size_t slot_align(const jk_plan *plan, uint64_t room)
{
    static const size_t aligns[] = {4096, 256, 64, 16, 8, 4, 2};
    size_t least = jk_largest_element(&plan->problem);
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns && aligns[i] > least; i++) {
        if (jk_plan_slots_bytes(plan, aligns[i]) <= room)
            return aligns[i];
    }
    return least;
}

/* Nothing is multiplied and nothing visits the device: D is written from C, or left as a new array
 * is, zero. */
static jk_plan plan_empty(const jk_problem *p, const jk_machine *machine, jk_planner planner)
{
    const jk_element_sizes in_file = jk_file_elements(p);
    uint64_t elements = p->read_c ? (uint64_t)p->m * (uint64_t)p->n : 0;
    elements *= (uint64_t)jk_problem_batches(p);
    return (jk_plan){
        .problem = *p,
        .planner = planner,
        .schedule = JK_SCHEDULE_EMPTY,
        .slot_align = 1,
        .file_read_bytes = elements * in_file.c,
        .file_write_bytes = elements * in_file.d,
        .budget_bytes = machine->device_bytes,
    };
}

static void finish(jk_plan *plan, const jk_machine *machine, bool pipelined)
{
    uint64_t room = machine->device_bytes - machine->reserve_bytes;
    plan->slot_align = slot_align(plan, room);
    plan->peak_bytes =
        machine->reserve_bytes + (uint64_t)jk_plan_slots_bytes(plan, plan->slot_align);
    plan->reserve_bytes = machine->reserve_bytes;
    plan->budget_bytes = machine->device_bytes;
    plan->host_budget_bytes = machine->host_bytes;
    plan->host_reserve_bytes = jk_host_room(machine) > 0 ? machine->host_reserve_bytes : 0;
    plan->host_peak_bytes =
        plan->host_reserve_bytes + jk_plan_a_strips_bytes(plan) + jk_plan_b_strips_bytes(plan);
    plan->host_peak_bytes += jk_plan_sums_bytes(plan);
    plan->lower_bound_bytes = jk_lower_bound(&plan->problem, machine->device_bytes);
    jk_plan_set_seconds(plan, machine, pipelined);
}

jask_status jk_plan_make(const jk_problem *problem, const jk_machine *machine, jk_planner planner,
                         bool pipelined, jk_plan *out, jask_error *err)
{
    jask_status st = check_problem(problem, err);
    if (st != JASK_OK)
        return st;
    st = check_budget(problem, machine, planner, pipelined, err);
    if (st != JASK_OK)
        return st;

    if (is_empty(problem)) {
        *out = plan_empty(problem, machine, planner);
        return JASK_OK;
    }
    jk_plan plan;
    if (!choose(problem, machine, planner, pipelined, &plan))
        return refuse_uncountable(problem, machine, planner, pipelined, err);
    finish(&plan, machine, pipelined);
    *out = plan;
    return JASK_OK;
}
