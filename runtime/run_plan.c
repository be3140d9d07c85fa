/* What a run does, step by step and slot by slot: from the plan of one product, or from a joint one. */
#include "runtime/run.h"

/* A tile is stored in this many bands, so that a slot can be filled again from the top while its
 * lower bands are still on their way to the file. */
#define BANDS 8
/* Bands of fewer rows would make products inefficient. */
#define BAND_ROWS_MIN 256

jk_step jk_run_step(const jk_run *run, int64_t s)
{
    return run->joint ? jk_joint_step(run->joint, s)
                      : jk_plan_step_from(run->plan, run->job->first_tile, s);
}

jk_step jk_run_tile(const jk_run *run, int64_t tile)
{
    return run->joint ? jk_joint_step(run->joint, jk_joint_tile_step(run->joint, tile))
                      : jk_plan_step(run->plan, jk_plan_tile_step(run->plan, tile));
}

int64_t jk_run_tile_before(const jk_run *run, int64_t tile)
{
    return run->joint ? jk_joint_tile_before(run->joint, tile)
                      : jk_max(tile - run->plan->c_slots, -1);
}

int64_t jk_run_tile_continued(const jk_run *run, int64_t tile)
{
    return run->joint ? jk_joint_tile_continued(run->joint, tile)
                      : jk_plan_tile_continued(run->plan, tile);
}

uint64_t jk_run_slot_bytes(const jk_run *run, int pool, int64_t *out_count)
{
    const jk_plan *plan = run->plan;
    if (run->joint) {
        *out_count = run->joint->slots[pool];
        return jk_joint_slot_bytes(run->joint, pool);
    }
    *out_count = pool == JK_OPERAND_A   ? plan->a_slots
                 : pool == JK_OPERAND_B ? plan->b_slots
                 : pool == JK_OPERAND_C ? plan->c_slots
                                        : 0;
    return pool == JK_OPERAND_A   ? jk_plan_a_slot_bytes(plan)
           : pool == JK_OPERAND_B ? jk_plan_b_slot_bytes(plan)
                                  : jk_plan_c_slot_bytes(plan);
}

static void lay_out_product(jk_run *run, const jk_product *job, int64_t rows, int64_t cols,
                            const int pools[JK_OPERANDS])
{
    jk_run_product *p = &run->products[run->product_count++];
    *p = (jk_run_product){.job = job, .rows = rows, .cols = cols};
    p->elem_bytes[JK_OPERAND_A] = jask_dtype_size(jk_memory_type(&job->a));
    p->elem_bytes[JK_OPERAND_B] = jask_dtype_size(jk_memory_type(&job->b));
    p->elem_bytes[JK_OPERAND_C] = jask_dtype_size(jk_memory_type(&job->d));
    for (int op = 0; op < JK_OPERANDS; op++)
        p->pools[op] = &run->pools[pools[op]];
    p->band_rows = jk_min(rows, jk_max(jk_ceil_div(rows, BANDS), BAND_ROWS_MIN));
    run->bands = jk_max(run->bands, jk_ceil_div(rows, p->band_rows));
}

static void lay_out_joint(jk_run *run)
{
    const jk_joint *plan = run->joint;
    for (int which = 0; which < JK_RUN_PRODUCTS; which++) {
        /* The first tile of either gradient is as large as any. */
        jk_step step = jk_joint_step(plan, which == plan->stays);
        int pools[JK_OPERANDS];
        jk_joint_pools(plan, which, pools);
        lay_out_product(run, which == 0 ? run->job : run->job->other, step.rows, step.cols, pools);
    }
    run->steps = plan->steps;
    run->tiles = plan->tiles;
}

void jk_run_lay_out(jk_run *run)
{
    const jk_plan *plan = run->plan;
    int pools[JK_OPERANDS] = {JK_OPERAND_A, JK_OPERAND_B, JK_OPERAND_C};
    if (run->joint) {
        lay_out_joint(run);
        return;
    }
    if (plan->b_slots == 0)
        pools[JK_OPERAND_B] = JK_OPERAND_A;
    lay_out_product(run, run->job, plan->bm, plan->bn, pools);
    run->steps = plan->steps;
    run->tiles = plan->tiles;
}

bool jk_step_loads(const jk_step *step, int op)
{
    return op == JK_OPERAND_A ? step->load_a : op == JK_OPERAND_B ? step->load_b : step->load_c;
}

jk_slot *jk_run_slot(const jk_run *run, const jk_step *step, int op)
{
    int64_t slot = op == JK_OPERAND_A   ? step->a_slot
                   : op == JK_OPERAND_B ? step->b_slot
                                        : step->c_slot;
    return &jk_run_product_of(run, step)->pools[op]->slots[slot];
}

/* In the first batch. */
static const jk_matrix *first_matrix(const jk_run *run, const jk_step *step, int array)
{
    const jk_product *job = jk_run_product_of(run, step)->job;
    switch (array) {
    case JK_ARRAY_A:
        return &job->a;
    case JK_ARRAY_B:
        return &job->b;
    case JK_ARRAY_C:
        return step->from_partial ? &job->partial : &job->c;
    default:
        return step->to_partial ? &job->partial : &job->d;
    }
}

jk_matrix jk_run_matrix(const jk_run *run, const jk_step *step, int array)
{
    const jk_product *job = run->job;
    const jk_matrix *first = first_matrix(run, step, array);
    return job->batches ? jk_batch_matrix(job->batches, array, first, step->batch) : *first;
}
