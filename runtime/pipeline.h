/* The pipeline: carries a plan out. Reader threads bring panels to the device, the calling thread
 * queues products, a writer thread takes finished bands of D to the file; all overlap. */
#ifndef JK_RUNTIME_PIPELINE_H
#define JK_RUNTIME_PIPELINE_H

#include "planner/joint.h"
#include "runtime/array.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/operand.h"
#include "runtime/trace.h"

/* What a product is of the work of an operation that makes several. */
typedef struct jk_share {
    double from, part; /* of 1; part 0 is all */
    int64_t steps_before, steps_total;
} jk_share;

/* D = alpha * A * B + beta * C by `plan`. c.file is NULL unless the plan reads C.
 *
 * Or, of both gradients of a product, one by the steps of `joint`: the one for A runs, and has the one
 * for B as `other`, whose matrices, types and beta are its own and all else as here. */
typedef struct jk_product {
    const jk_plan *plan; /* NULL: joint */
    const jk_joint *joint;
    const struct jk_product *other;
    jk_matrix
        partial; /* where a joint plan keeps sums of D that are not finished: D itself, if it is
                          of the type of sums */
    const jk_device_ref *device;
    const jask_context *ctx;   /* progress only */
    jk_matrix a, b, c, d;      /* of the first batch */
    const jk_batches *batches; /* NULL: a single one */
    double alpha, beta;
    bool tf32;    /* allowed */
    bool durable; /* D is to be on the disk at the end */
    bool ordered; /* sums are made in one order: plan->problem.slab is that of the kernels */
    int io_threads;
    int64_t first_tile;       /* tiles before it are in d already */
    jk_trace *trace;          /* hears what each stage does; may be NULL */
    struct jk_resume *resume; /* hears of finished tiles; may be NULL */
    size_t block_bytes; /* files are read, and staged where the device has memory of its own, in
                           pieces of at most this */
    jask_dtype compute; /* the type of sums */
    jask_dtype result;  /* type, dimensions and shape of D, for a result that is resumed */
    int ndim;
    const int64_t *shape;
    jk_share share;
} jk_product;

/* What a run used and how long its stages were busy. */
typedef struct jk_run_stats {
    jask_io_cost io; /* disk_* left 0 */
    double read_seconds, compute_seconds, write_seconds;
    /* The products waited for data or a free slot, readers for free slots, the writer for bands. */
    double stall_seconds, read_stall_seconds, write_stall_seconds;
    uint64_t peak_device_bytes, peak_host_bytes;
    const char *io_engine;    /* "pread", "direct", "mixed" */
    const char *write_engine; /* "pwrite", "direct" */
    char note[256];           /* what had to be done with less than was planned; else "" */
} jk_run_stats;

/* Bytes the runtime holds of the budget beside the plan's slots (machine.reserve_bytes for
 * planning): with host memory the buffers that C is transposed in, else a workspace for products.
 */
size_t jk_pipeline_reserve_bytes(const jk_device_info *info, uint64_t budget_bytes,
                                 bool transposes_c, int io_threads, size_t block_bytes);

/* Blocks of block_bytes that the runtime holds in host memory beside a device with memory of its
 * own. */
int jk_pipeline_host_blocks(bool transposes_c, int io_threads);

/* How many bytes lie together in the file of input 0 (A), 1 (B) or 2 (C) where the plan reads it: a row of a
 * panel, or all its rows where those are whole ones; a block at the most. 0 for what the other product of a
 * joint plan brings, and for a B whose panels are A's. */
size_t jk_product_run_bytes(const jk_product *product, int input);

/* Blocks until D's bytes are all written (not yet committed). After any failure every stage has
 * stopped, and *stats is untouched. */
jask_status jk_pipeline_run(const jk_product *product, jk_run_stats *stats, jask_error *err);

#endif
