/* Whether both gradients of a product are made by one joint plan. */
#include "runtime/product_job.h"

/* What the steps of a joint plan need: one type of factors, one of sums, and a G that is the same for
 * both. How its sums are cut depends on the budget. */
static bool can_join(const jk_job jobs[2], const jk_joint_problem *p)
{
    const jk_job *a = &jobs[0], *b = &jobs[1];
    const jk_matrix *g_of_a = p->side[JK_ROWS].turned ? &a->b : &a->a;
    const jk_matrix *g_of_b = p->side[JK_COLS].turned ? &b->a : &b->b;
    jask_dtype type = a->types.a;
    return !jk_context_deterministic(a->ctx) && a->plan.schedule == JK_SCHEDULE_C_STATIONARY &&
           b->plan.schedule == JK_SCHEDULE_C_STATIONARY && a->batches.count == 1 &&
           b->batches.count == 1 && a->m * a->n == p->m * p->k && b->m * b->n == p->k * p->n &&
           a->k == p->n && b->k == p->m && a->types.b == type && b->types.a == type &&
           b->types.b == type && a->types.compute == b->types.compute &&
           g_of_a->conj == g_of_b->conj;
}

static uint64_t lesser(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

static jk_plan_counts both(const jk_job jobs[2])
{
    jk_plan_counts sum = jk_plan_all(&jobs[0].plan), more = jk_plan_all(&jobs[1].plan);
    sum.h2d_pages += more.h2d_pages;
    sum.d2h_pages += more.d2h_pages;
    sum.h2d_bytes += more.h2d_bytes;
    sum.d2h_bytes += more.d2h_bytes;
    sum.file_read_bytes += more.file_read_bytes;
    sum.file_write_bytes += more.file_write_bytes;
    return sum;
}

static void describe_side(const jk_job *job, jask_dtype operand, jk_joint_side *out)
{
    out->bytes = (int)jask_dtype_size(operand);
    out->gradient_bytes = (int)jask_dtype_size(job->types.output);
    out->adds = job->beta != 0;
    out->before_bytes = (int)jask_dtype_size(job->c.dtype);
}

void jk_jobs_join(jk_job jobs[2], const jk_joint_problem *problem, jk_joint *out)
{
    jask_context *ctx = jobs[0].ctx;
    jk_joint_problem p = *problem;
    jk_machine machine = jobs[0].machine;
    size_t block = (size_t)lesser(jobs[0].block_bytes, jobs[1].block_bytes);
    bool turned_a = p.side[JK_ROWS].turned, turned_b = p.side[JK_COLS].turned;
    if (!can_join(jobs, &p))
        return;
    p.bytes = (int)jask_dtype_size(jobs[0].types.a);
    p.sum_bytes = (int)jask_dtype_size(jobs[0].types.compute);
    p.g_bytes = (int)jask_dtype_size((turned_a ? jobs[0].b : jobs[0].a).dtype);
    /* The factor beside G is the other side's operand. */
    describe_side(&jobs[0], (turned_b ? jobs[1].b : jobs[1].a).dtype, &p.side[JK_ROWS]);
    describe_side(&jobs[1], (turned_a ? jobs[0].a : jobs[0].b).dtype, &p.side[JK_COLS]);
    machine.device_bytes = lesser(machine.device_bytes, jobs[1].machine.device_bytes);
    machine.reserve_bytes = jk_pipeline_reserve_bytes(
        &jk_context_device(ctx)->info, machine.device_bytes,
        jk_matrix_is_turned(&jobs[0].c) || jk_matrix_is_turned(&jobs[1].c),
        jk_context_io_threads(ctx), block);
    if (!jk_joint_make(&p, &machine, jk_context_planner(ctx), jk_context_pipelined(ctx), out))
        return;
    out->apart = both(jobs);
    out->apart_seconds = jobs[0].plan.seconds + jobs[1].plan.seconds;
    if (!jk_joint_is_better(out))
        return;
    jobs[0].block_bytes = jobs[1].block_bytes = block;
    jobs[0].joint = out;
}
