#ifndef JK_RUNTIME_PLAN_API_H
#define JK_RUNTIME_PLAN_API_H

#include "planner/blocks.h"
#include "planner/joint.h"

/* A plan as the API's numbers. */
void jk_plan_describe(const jk_plan *plan, jask_plan_info *out);
void jk_blocks_describe(const jk_blocks *plan, jask_plan_info *out);
void jk_joint_describe(const jk_joint *plan, jask_plan_info *out);

/* A handle of the API that holds a copy of `plan`. */
jask_status jk_plan_wrap(const jk_plan *plan, jask_plan **out, jask_error *err);
jask_status jk_blocks_wrap(const jk_blocks *plan, jask_plan **out, jask_error *err);
jask_status jk_joint_wrap(const jk_joint *plan, jask_plan **out, jask_error *err);

#endif
