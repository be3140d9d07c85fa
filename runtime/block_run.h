/* Carries a plan of blocks out: reader threads bring windows of the inputs, the calling thread
 * computes block by block, a writer thread takes windows of the output to the file; all overlap. */
#ifndef JK_RUNTIME_BLOCK_RUN_H
#define JK_RUNTIME_BLOCK_RUN_H

#include "planner/blocks.h"
#include "runtime/context.h"
#include "runtime/pipeline.h"
#include "runtime/strided.h"
#include "runtime/trace.h"

/* What a block is computed from and into. */
typedef struct jk_block {
    jk_box box;
    bool first, last; /* of those that give one window of the output */
    void *input[JK_BLOCKS_INPUTS];
    void *output;
    /* As the plan's work_bytes and spread_bytes say; the same memory for every block. */
    void *input_work[JK_BLOCKS_INPUTS], *output_work;
} jk_block;

typedef struct jk_block_job {
    const jk_blocks *plan;
    const jask_context *ctx;
    jk_strided input[JK_BLOCKS_INPUTS]; /* as the plan's operands */
    jk_strided output;                  /* file NULL: what is computed goes nowhere */
    /* Called on the calling thread, block after block. */
    jask_status (*compute)(void *user, const jk_block *block, jask_error *err);
    void *user;
    jk_trace *trace; /* hears what each thread does; may be NULL */
} jk_block_job;

/* Blocks until the output's bytes are written (not yet committed). After a failure all threads have
 * ended and *stats is untouched. */
jask_status jk_blocks_run(const jk_block_job *job, jk_run_stats *stats, jask_error *err);

#endif
