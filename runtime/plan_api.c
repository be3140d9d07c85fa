/* Plans as the API hands them out: a handle around the planner's value. */
#include "runtime/plan_api.h"

#include "runtime/context.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum kind { KIND_PRODUCT, KIND_BLOCKS, KIND_JOINT } kind;

struct jask_plan {
    kind kind;
    union {
        jk_plan product;
        jk_blocks blocks;
        jk_joint joint;
    } is;
};

static jask_status wrap(const jask_plan *plan, jask_plan **out, jask_error *err)
{
    jask_plan *handle = malloc(sizeof *handle);
    if (!handle)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a plan");
    *handle = *plan;
    *out = handle;
    return JASK_OK;
}

void jk_plan_describe(const jk_plan *plan, jask_plan_info *out)
{
    *out = (jask_plan_info){
        .struct_size = sizeof *out,
        .m = plan->problem.m,
        .n = plan->problem.n,
        .k = plan->problem.k,
        .bm = plan->bm,
        .bn = plan->bn,
        .bk = plan->bk,
        .tiles = plan->tiles,
        .steps = plan->steps,
        .h2d_bytes = plan->h2d_bytes,
        .h2d_pages = plan->h2d_pages,
        .d2h_bytes = plan->d2h_bytes,
        .d2h_pages = plan->d2h_pages,
        .file_read_bytes = plan->file_read_bytes,
        .file_write_bytes = plan->file_write_bytes,
        .peak_bytes = plan->peak_bytes,
        .budget_bytes = plan->budget_bytes,
        .lower_bound_bytes = plan->lower_bound_bytes,
        .seconds = plan->seconds,
    };
    snprintf(out->schedule, sizeof out->schedule, "%s", jk_schedule_name(plan->schedule));
    snprintf(out->planner, sizeof out->planner, "%s", jk_planner_name(plan->planner));
}

jask_status jk_plan_wrap(const jk_plan *plan, jask_plan **out, jask_error *err)
{
    return wrap(&(jask_plan){.kind = KIND_PRODUCT, .is.product = *plan}, out, err);
}

void jk_blocks_describe(const jk_blocks *plan, jask_plan_info *out)
{
    int64_t space = 1, box = plan->blocks ? jk_box_elems(plan, plan->box) : 0;
    for (int d = 0; d < plan->problem.ndim; d++)
        space *= plan->problem.shape[d];
    *out = (jask_plan_info){
        .struct_size = sizeof *out,
        .schedule = "blocks",
        .m = plan->blocks ? space : 0,
        .n = 1,
        .k = 1,
        .bm = box,
        .bn = 1,
        .bk = 1,
        .tiles = plan->stores,
        .steps = plan->blocks,
        .h2d_bytes = plan->file_read_bytes,
        .d2h_pages = plan->stores,
        .d2h_bytes = plan->file_write_bytes,
        .file_read_bytes = plan->file_read_bytes,
        .file_write_bytes = plan->file_write_bytes,
        .peak_bytes = plan->peak_bytes,
        .budget_bytes = plan->budget_bytes,
        .lower_bound_bytes = plan->file_read_bytes + plan->file_write_bytes,
    };
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        out->h2d_pages += plan->loads[i];
}

jask_status jk_blocks_wrap(const jk_blocks *plan, jask_plan **out, jask_error *err)
{
    return wrap(&(jask_plan){.kind = KIND_BLOCKS, .is.blocks = *plan}, out, err);
}

void jk_joint_describe(const jk_joint *plan, jask_plan_info *out)
{
    const jk_plan_counts *counts = &plan->counts;
    *out = (jask_plan_info){
        .struct_size = sizeof *out,
        .schedule = "joint",
        .m = plan->problem.m,
        .n = plan->problem.n,
        .k = plan->problem.k,
        .bm = plan->block[JK_ROWS],
        .bn = plan->block[JK_COLS],
        .bk = plan->problem.k,
        .tiles = plan->tiles,
        .steps = plan->steps,
        .h2d_bytes = counts->h2d_bytes,
        .h2d_pages = counts->h2d_pages,
        .d2h_bytes = counts->d2h_bytes,
        .d2h_pages = counts->d2h_pages,
        .file_read_bytes = counts->file_read_bytes,
        .file_write_bytes = counts->file_write_bytes,
        .peak_bytes = plan->peak_bytes,
        .budget_bytes = plan->budget_bytes,
        .lower_bound_bytes = jk_joint_lower_bound(plan),
        .seconds = plan->seconds,
    };
    snprintf(out->planner, sizeof out->planner, "%s", jk_planner_name(plan->planner));
}

jask_status jk_joint_wrap(const jk_joint *plan, jask_plan **out, jask_error *err)
{
    return wrap(&(jask_plan){.kind = KIND_JOINT, .is.joint = *plan}, out, err);
}

void jask_plan_get_info(const jask_plan *plan, jask_plan_info *out, size_t struct_size)
{
    jask_plan_info info;
    if (plan->kind == KIND_BLOCKS)
        jk_blocks_describe(&plan->is.blocks, &info);
    else if (plan->kind == KIND_JOINT)
        jk_joint_describe(&plan->is.joint, &info);
    else
        jk_plan_describe(&plan->is.product, &info);
    jk_struct_out(out, struct_size, &info, sizeof info);
}

size_t jask_plan_format(const jask_plan *plan, int json, char *text, size_t text_size)
{
    if (plan->kind == KIND_BLOCKS)
        return jk_blocks_format(&plan->is.blocks, json != 0, text, text_size);
    if (plan->kind == KIND_JOINT)
        return jk_joint_format(&plan->is.joint, json != 0, text, text_size);
    return jk_plan_format(&plan->is.product, json != 0, text, text_size);
}

void jask_plan_close(jask_plan *plan)
{
    free(plan);
}
