/* The budgets of one operation: the context's, less what its result takes where it lies in RAM. */
#ifndef JK_RUNTIME_BUDGET_H
#define JK_RUNTIME_BUDGET_H

#include "runtime/context.h"
#include "runtime/file.h"

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

/* jask_available_memory, with what the context keeps spare for its next operation, less what an operation will
 * take; 0 where that is more. */
jask_status jk_memory_room(const jask_context *ctx, uint64_t taken, uint64_t *out_bytes,
                           char *source, size_t source_size, jask_error *err);

/* Which of these files (NULLs allowed; the same one may be there several times) the memory beside the
 * budget cannot hold until they are read again: what the page cache takes of them pushes out something
 * else, for nothing. The smaller ones come first, for they are the ones that more passes are made over.
 * Page cache of others counts as memory that can be had: the next run shall find what fits, and
 * what goes for it is the system's choice. Returns whether there are any. */
bool jk_outgrow_memory(jask_context *ctx, const jk_file *const *files, int count, bool *out);

#endif
