/* The budgets of one operation: the context's, less what its result takes where it lies in RAM. */
#ifndef JK_RUNTIME_BUDGET_H
#define JK_RUNTIME_BUDGET_H

#include "runtime/context.h"

typedef struct jk_budget {
    uint64_t bytes; /* on the device that computes */
    uint64_t
        host_bytes; /* for staging and kept inputs beside a device with memory of its own; else 0 */
    /* The result in RAM; 0: it lies on a disk, and the budgets are the context's. */
    uint64_t result_bytes;
    uint64_t available_bytes; /* host memory, before the result takes its part */
    char source[256];         /* what set that limit */
    bool cut;                 /* the result left less than the context grants */
} jk_budget;

/* Where the result goes. */
typedef struct jk_result_place {
    const char *output; /* NULL: into scratch */
    bool resumes;       /* what an earlier run left there counts as taken */
    uint64_t bytes;
} jk_result_place;

jask_status jk_budget_of(jask_context *ctx, const jk_result_place *place, jk_budget *out,
                         jask_error *err);

/* Where a budget turned out too small, put in front of err's message what had cut it. Returns
 * BUDGET. */
jask_status jk_budget_explain(const jk_budget *budget, const jask_context *ctx, jask_error *err);

#endif
