/* The choice of a joint plan: for either side that can stay and every width of the blocks that pass,
 * the fewest blocks that memory allows, cut evenly. */
#include "planner/joint.h"
#include "planner/stages.h"

#include <math.h>

enum { WIDEST = 8192 };

/* Each run of G in its file costs about as much as so many bytes more: plans that read short ones are
 * to be told from those that do not. */
#define RUN_BYTES 4096

/* Plans that take so much longer, as a quotient, are as good if they move fewer bytes. */
#define TIME_WORTH 1.05

/* ---- seconds ---- */

static double product_seconds(const jk_joint *plan, const jk_machine *machine)
{
    const jk_joint_problem *p = &plan->problem;
    double k = (double)p->k, g = (double)p->m * (double)p->n;
    double arithmetic = over(4 * g * k, machine->flops);
    /* Every block of G re-reads and re-writes the sums on both of its sides. */
    double rows = (double)p->m * k * (double)plan->count[JK_COLS];
    double cols = (double)p->n * k * (double)plan->count[JK_ROWS];
    double operands = (2 * g + rows + cols) * p->bytes, sums = rows + cols;
    if (machine->shared_cores) {
        operands *= PACKING;
        sums = (double)p->m * k * blas_passes(plan->count[JK_COLS], p->n) +
               (double)p->n * k * blas_passes(plan->count[JK_ROWS], p->m);
    }
    double memory = over(2 * sums * p->sum_bytes + operands, machine->device_memory);
    double issue = (double)plan->steps * machine->step_seconds;
    return issue + with_memory(arithmetic, memory, machine);
}

static double run_seconds(const jk_joint *plan, const jk_machine *machine)
{
    const jk_joint_problem *p = &plan->problem;
    double runs = (double)p->m * (double)p->n / (double)jk_joint_run(plan);
    return over(runs * RUN_BYTES, machine->disk_read);
}

/* Where a block that stays is replaced by the next, nothing else goes on. */
static double turn_seconds(const jk_joint *plan, const jk_machine *machine)
{
    int stays = plan->stays;
    double elements = (double)plan->block[stays] * (double)plan->problem.k;
    double load = elements * plan->problem.bytes, store = elements * plan->problem.sum_bytes;
    return bare_read_seconds(load, machine) +
           (over(store, machine->disk_write) + over(store, machine->d2h)) / BANDS;
}

static void set_seconds(jk_joint *plan, const jk_machine *machine, bool pipelined)
{
    double *stage = plan->stage_seconds;
    set_stages(stage, machine, product_seconds(plan, machine), &plan->counts);
    stage[JK_STAGE_READ] += run_seconds(plan, machine);
    plan->seconds = sum_of_stages(stage, machine);
    if (pipelined)
        plan->seconds = pipelined_seconds(stage, machine) +
                        (double)plan->count[plan->stays] * turn_seconds(plan, machine);
}

/* ---- the choice ---- */

typedef struct joint_choice {
    const jk_machine *machine;
    jk_planner planner;
    bool pipelined, found;
    bool by_time;   /* first pass of AUTO: the least time, whatever the bytes */
    double in_time; /* slower candidates are out */
    uint64_t room;
    jk_joint best;
} joint_choice;

static size_t largest_element(const jk_joint_problem *p)
{
    return (size_t)jk_max(p->bytes, p->sum_bytes);
}

static jk_u128 all_slots(const jk_joint *plan)
{
    jk_u128 bytes = 0;
    for (int pool = 0; pool < JK_JOINT_POOLS; pool++)
        bytes += (jk_u128)plan->slots[pool] * jk_joint_slot_bytes(plan, pool);
    return bytes;
}

static uint64_t moved(const jk_plan_counts *counts)
{
    return counts->h2d_bytes + counts->d2h_bytes;
}

static bool preferred(const joint_choice *choice, const jk_joint *x, const jk_joint *y)
{
    if (!choice->by_time && moved(&x->counts) != moved(&y->counts))
        return moved(&x->counts) < moved(&y->counts);
    return x->seconds < y->seconds;
}

static void judge(joint_choice *choice, jk_joint *plan)
{
    if (all_slots(plan) > choice->room || !jk_joint_set_counts(plan))
        return;
    set_seconds(plan, choice->machine, choice->pipelined);
    if (choice->planner == JK_PLANNER_AUTO && plan->seconds > choice->in_time)
        return;
    if (!choice->found || preferred(choice, plan, &choice->best))
        choice->best = *plan;
    choice->found = true;
}

/* Two slots let the next block come while the present one is used; what passes needs no more slots
 * than there are blocks. */
static void set_slots(jk_joint *plan, bool pipelined)
{
    int64_t passing = jk_ceil_div(plan->stays == JK_ROWS ? plan->problem.n : plan->problem.m,
                                  plan->block[!plan->stays]);
    int64_t slots = pipelined ? jk_min(2, passing) : 1;
    for (int pool = 0; pool < JK_JOINT_POOLS; pool++)
        plan->slots[pool] = slots;
    plan->slots[JK_JOINT_OPERAND + plan->stays] = 1;
    plan->slots[JK_JOINT_SUMS + plan->stays] = 1;
}

/* The longest blocks of a side that fit beside those of the other; 0: none fit. */
static int64_t longest_block(const joint_choice *choice, const jk_joint *plan, int side)
{
    const jk_joint_problem *p = &plan->problem;
    jk_joint none = *plan, one = *plan;
    none.block[side] = 0;
    one.block[side] = 1;
    none.slot_align = one.slot_align = 1;
    jk_u128 fixed = all_slots(&none), each = all_slots(&one) - fixed;
    /* Rounding up of slots to whole elements. */
    fixed += 8 * largest_element(p);
    if (fixed + each > choice->room)
        return 0;
    jk_u128 most = (choice->room - fixed) / each;
    int64_t length = side == JK_ROWS ? p->m : p->n;
    return most < (jk_u128)length ? (int64_t)most : length;
}

static void consider(joint_choice *choice, const jk_joint_problem *p, int stays, int64_t width)
{
    int64_t length = stays == JK_ROWS ? p->m : p->n;
    jk_joint plan = {.problem = *p,
                     .planner = choice->planner,
                     .stays = stays,
                     .slot_align = largest_element(p)};
    plan.block[!stays] = width;
    set_slots(&plan, choice->pipelined);
    int64_t longest = longest_block(choice, &plan, stays);
    if (longest == 0)
        return;
    /* As few blocks, of about equal length. */
    int64_t equal = jk_ceil_div(length, jk_ceil_div(length, longest));
    int64_t even = jk_min(jk_round_up(equal, EVEN), length);
    plan.block[stays] = even <= longest ? even : equal;
    judge(choice, &plan);
    /* What is left over makes blocks that pass wider. */
    int64_t widest = jk_min(longest_block(choice, &plan, !stays), WIDEST);
    plan.block[!stays] = widest > EVEN ? widest / EVEN * EVEN : widest;
    set_slots(&plan, choice->pipelined);
    judge(choice, &plan);
}

static void try_all(joint_choice *choice, const jk_joint_problem *problem)
{
    choice->found = false;
    for (int stays = JK_ROWS; stays <= JK_COLS; stays++) {
        int64_t length = stays == JK_ROWS ? problem->n : problem->m; /* of what passes */
        int64_t widest = jk_min(length, WIDEST);
        for (int64_t width = 1; width < widest; width += jk_max(1, width / 2))
            consider(choice, problem, stays, width);
        consider(choice, problem, stays, widest);
    }
}

/* The largest alignment that still fits. */
static void align_slots(jk_joint *plan, uint64_t room)
{
    static const size_t aligns[] = {4096, 256, 64, 16};
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        plan->slot_align = aligns[i];
        if (aligns[i] >= largest_element(&plan->problem) && all_slots(plan) <= room)
            return;
    }
    plan->slot_align = largest_element(&plan->problem);
}

bool jk_joint_make(const jk_joint_problem *problem, const jk_machine *machine, jk_planner planner,
                   bool pipelined, jk_joint *out)
{
    joint_choice choice = {.machine = machine,
                           .planner = planner,
                           .pipelined = pipelined,
                           .by_time = planner == JK_PLANNER_AUTO,
                           .in_time = HUGE_VAL};
    if (machine->device_bytes < machine->reserve_bytes)
        return false;
    choice.room = machine->device_bytes - machine->reserve_bytes;
    try_all(&choice, problem);
    if (choice.found && choice.by_time) {
        /* Bytes are robust where rates are not. */
        choice.in_time = TIME_WORTH * choice.best.seconds;
        choice.by_time = false;
        try_all(&choice, problem);
    }
    if (!choice.found)
        return false;
    *out = choice.best;
    align_slots(out, choice.room);
    out->reserve_bytes = machine->reserve_bytes;
    out->peak_bytes = machine->reserve_bytes + (uint64_t)all_slots(out);
    out->budget_bytes = machine->device_bytes;
    return true;
}

bool jk_joint_is_better(const jk_joint *plan)
{
    return moved(&plan->counts) < moved(&plan->apart) &&
           (plan->planner == JK_PLANNER_BYTES || plan->seconds <= TIME_WORTH * plan->apart_seconds);
}
