/* Products from operands to committed results: planning and running. */
#include "runtime/product_job.h"

#include "kernels/host_ordered.h"
#include "runtime/io_engine.h"
#include "runtime/machine.h"
#include "runtime/plan_api.h"
#include "runtime/scale.h"
#include "runtime/system.h"

#include <string.h>

/* Files are read in pieces of at most this; of less under a small budget, which such pieces are
 * held against when they are buffered. */
#define BLOCK_BYTES ((uint64_t)4 << 20)
#define BLOCK_MIN ((uint64_t)4096)
/* Pieces that are transposed on the way should fit a cache. */
#define TURN_BLOCK_MAX ((uint64_t)1 << 20)

/* ---- planning ---- */

static jask_status settle_budget(jk_job *job, jask_error *err)
{
    jk_result_place place = {.output = job->output, .resumes = job->resumes};
    if (!jk_mul_u64((uint64_t)job->m, (uint64_t)job->n, &place.bytes) ||
        !jk_mul_u64(place.bytes, (uint64_t)job->batches.count, &place.bytes) ||
        !jk_mul_u64(place.bytes, jask_dtype_size(job->types.output), &place.bytes))
        place.bytes = UINT64_MAX; /* making the result refuses it */
    return jk_budget_of(job->ctx, &place, &job->budget, err);
}

/* Read buffers are a sixteenth of the one budget; beside a device with memory of its own they are half of
 * the host's, of which strips of the inputs have the rest. */
static jask_status choose_block(jk_job *job, jask_error *err)
{
    int threads = jk_context_io_threads(job->ctx);
    uint64_t most = jk_matrix_is_turned(&job->c) ? TURN_BLOCK_MAX : BLOCK_BYTES;
    uint64_t share = job->budget.bytes / 16 / (uint64_t)threads;
    if (!jk_context_device(job->ctx)->info.host_memory) {
        uint64_t blocks = (uint64_t)jk_pipeline_host_blocks(jk_matrix_is_turned(&job->c), threads);
        char had[32], least[32];
        share = job->budget.host_bytes / 2 / blocks;
        if (job->budget.host_bytes / blocks < BLOCK_MIN)
            return jk_fail(err, JASK_ERR_BUDGET,
                           "a host budget of %s is too little for staging with %d reading threads; "
                           "the least that works is %s (JASK_HOST_BUDGET)",
                           jask_format_size(job->budget.host_bytes, had, sizeof had), threads,
                           jask_format_size(blocks * BLOCK_MIN, least, sizeof least));
    }
    share = share < BLOCK_MIN ? BLOCK_MIN : share;
    share = share > most ? most : share;
    job->block_bytes = (size_t)jask_align_to_os_page(share);
    return JASK_OK;
}

static jk_problem describe_problem(const jk_job *job)
{
    return (jk_problem){
        .m = job->m,
        .n = job->n,
        /* With alpha 0 A and B are not read, as in BLAS. */
        .k = job->alpha == 0 ? 0 : job->k,
        .a_bytes = (int)jask_dtype_size(job->types.a),
        .b_bytes = (int)jask_dtype_size(job->types.b),
        .c_bytes = (int)jask_dtype_size(job->types.compute),
        .a_file_bytes = (int)jask_dtype_size(job->a.dtype),
        .b_file_bytes = (int)jask_dtype_size(job->b.dtype),
        .c_file_bytes = (int)jask_dtype_size(job->c.dtype),
        .d_file_bytes = (int)jask_dtype_size(job->types.output),
        .a_turned = job->a.trans,
        .b_turned = job->b.trans,
        .c_turned = job->c.trans,
        .read_c = job->beta != 0,
        .gram = job->batches.count == 1 && jk_matrix_is_transpose(&job->a, &job->b),
        .slab = jk_context_deterministic(job->ctx) ? JK_SLAB : 0,
        .resumes = job->resumes,
        .batches = job->batches.count,
        .phase = job->backward ? JASK_BACKWARD : JASK_FORWARD,
    };
}

/* Elements are converted on the way between files and the device. Products in order take one type. */
static void set_memory_types(jk_job *job)
{
    if (jk_context_deterministic(job->ctx))
        job->types.a = job->types.b = job->types.compute;
    job->a.memory = job->types.a;
    job->b.memory = job->types.b;
    job->c.memory = job->types.compute;
}

/* Sums in order need no workspace beside a device's memory. */
static size_t reserve_bytes(const jk_job *job)
{
    const jk_device_info *info = &jk_context_device(job->ctx)->info;
    if (jk_context_deterministic(job->ctx) && !info->host_memory)
        return 0;
    return jk_pipeline_reserve_bytes(info, job->budget.bytes, jk_matrix_is_turned(&job->c),
                                     jk_context_io_threads(job->ctx), job->block_bytes);
}

/* What plans are made for: the device, or the machine that is described instead. */
static void describe_machine(jk_job *job)
{
    const jk_device_ref *device = jk_context_device(job->ctx);
    const jk_machine_said *said = jk_context_machine(job->ctx);
    int threads = jk_context_io_threads(job->ctx);
    uint64_t blocks = (uint64_t)jk_pipeline_host_blocks(jk_matrix_is_turned(&job->c), threads);
    jk_machine *machine = &job->machine;
    *machine = jk_machine_of(device, job->types.compute, job->budget.bytes, reserve_bytes(job));
    machine->host_bytes = job->budget.host_bytes;
    jk_machine_apply(
        said, jk_machine_flops(said, job->types.compute, job->types.a, jk_job_tf32(job)), machine);
    machine->host_reserve_bytes = machine->host_bytes > 0 ? blocks * job->block_bytes : 0;
}

jask_status jk_job_plan(jk_job *job, jask_error *err)
{
    const jk_device_ref *device = jk_context_device(job->ctx);
    jk_problem problem;
    jask_status st = settle_budget(job, err);
    set_memory_types(job);
    problem = describe_problem(job);
    job->stats.io_engine = "pread";
    job->stats.write_engine = "pwrite";
    if (!st)
        st = choose_block(job, err);
    if (st)
        return st;
    describe_machine(job);
    st = jk_plan_make(&problem, &job->machine, jk_context_planner(job->ctx),
                      jk_context_pipelined(job->ctx), &job->plan, err);
    if (st == JASK_ERR_BUDGET)
        return jk_budget_explain(&job->budget, job->ctx, err);
    if (!st && job->plan.schedule == JK_SCHEDULE_EMPTY) {
        job->plan.problem.k = job->k;
        job->plan.peak_bytes =
            problem.read_c && device->info.host_memory ? jk_scale_bytes(job->block_bytes) : 0;
    }
    return st;
}

/* A machine with memory of its own is planned for, not run on. */
static jask_status check_machine(const jask_context *ctx, jask_error *err)
{
    const jk_machine_said *said = jk_context_machine(ctx);
    if (said->gpu_bytes == 0 && said->host_bytes == 0)
        return JASK_OK;
    return jk_fail(err, JASK_ERR_ARG,
                   "the machine setting describes another machine (gpu or host): products can be "
                   "planned for it, not made on it");
}

jask_status jk_job_show_plan(jk_job *job, jask_plan **out, jask_error *err)
{
    jk_plan_find_cure(&job->plan, &job->machine, jk_context_pipelined(job->ctx), INT64_MAX);
    return jk_plan_wrap(&job->plan, out, err);
}

/* ---- running ---- */

bool jk_job_tf32(const jk_job *job)
{
    return job->types.a == JASK_F32 && jk_context_tf32(job->ctx) &&
           !jk_context_deterministic(job->ctx) && jk_context_device(job->ctx)->info.tf32;
}

static jk_product describe_product(const jk_job *job)
{
    return (jk_product){
        .plan = &job->plan,
        .device = jk_context_device(job->ctx),
        .ctx = job->ctx,
        .a = job->a,
        .b = job->b,
        .c = job->c,
        .batches = &job->batches,
        .alpha = job->alpha,
        .beta = job->beta,
        .tf32 = jk_job_tf32(job),
        .durable = job->output && jk_context_sync(job->ctx),
        .ordered = jk_context_deterministic(job->ctx),
        .io_threads = jk_context_io_threads(job->ctx),
        .block_bytes = job->block_bytes,
        .trace = job->trace,
        .compute = job->types.compute,
        .result = job->types.output,
        .ndim = job->ndim,
        .shape = job->shape,
    };
}

/* The array that takes the result: empty, or what an earlier run has left. */
static jask_status open_result(jk_job *job, jask_error *err)
{
    jk_product product = describe_product(job);
    return job->resumes
               ? jk_resume_open(job->ctx, &product, job->output, &job->result, &job->resume, err)
               : jask_array_create(job->ctx, job->output, job->types.output, job->ndim, job->shape,
                                   &job->result, err);
}

/* D as m x n matrices, one for each batch. */
static jk_matrix matrix_of_result(const jk_job *job)
{
    const jask_array *d = job->result;
    return (jk_matrix){
        .file = jk_array_file(d),
        .path = d->path,
        .offset = d->layout.data_offset,
        .rows = job->m,
        .cols = job->n,
        .row_bytes = (uint64_t)job->n * jask_dtype_size(job->types.output),
        .dtype = job->types.output,
        .memory = job->types.compute,
    };
}

/* Without anything to multiply D is beta * C, or zero, as a new array is. */
static jask_status scale_batches(jk_job *job, const jk_product *product, jask_error *err)
{
    jk_run_stats *stats = &job->stats;
    jask_status st = JASK_OK;
    for (int64_t i = 0; !st && job->c.file && i < job->batches.count; i++) {
        jk_matrix c = jk_batch_matrix(&job->batches, JK_ARRAY_C, &job->c, i);
        jk_matrix d = jk_batch_matrix(&job->batches, JK_ARRAY_D, &product->d, i);
        st = jk_scale_matrix(&c, job->beta, &d, job->block_bytes, stats, err);
    }
    if (!st && !jk_context_device(job->ctx)->info.host_memory) {
        stats->peak_host_bytes = stats->peak_device_bytes;
        stats->peak_device_bytes = 0;
    }
    return st;
}

static jask_status check_inputs(const jk_job *job, jask_error *err)
{
    const jask_array *inputs[] = {job->input_a, job->input_b, job->input_c};
    jask_status st = JASK_OK;
    for (int i = 0; !st && i < 3; i++)
        if (inputs[i])
            st = jk_array_check_unchanged(inputs[i], err);
    return st;
}

/* Fill the result: by the pipeline, or without one where there is nothing to multiply. */
static jask_status compute(jk_job *job, const jk_share *share, jask_error *err)
{
    jk_product product;
    jask_status st;
    if (job->adds_to)
        job->c = matrix_of_result(job->adds_to);
    product = describe_product(job);
    product.d = matrix_of_result(job);
    product.resume = job->resume;
    product.first_tile = job->resume ? jk_resume_tiles(job->resume) : 0;
    product.share = *share;
    st = job->plan.schedule == JK_SCHEDULE_EMPTY
             ? scale_batches(job, &product, err)
             : jk_io_engine_run(&product, job->ctx, &job->stats, err);
    if (!st)
        st = check_inputs(job, err);
    if (!st && job->resume)
        st = jk_resume_settle(job->resume, err);
    return st;
}

/* Where the sums of the gradient that passes by are kept until they are finished. */
static jask_status open_partial(jk_job *job, jk_product *product, jask_error *err)
{
    int64_t shape[] = {job->m, job->n};
    jask_status st;
    product->partial = product->d;
    if (job->types.compute == job->types.output)
        return JASK_OK;
    st = jask_array_create(job->ctx, NULL, job->types.compute, 2, shape, &job->partial, err);
    return st ? st : jk_matrix_of(job->partial, false, "partial sums", &product->partial, err);
}

static jask_status compute_joint(jk_job *jobs, jask_error *err)
{
    const jk_joint *joint = jobs[0].joint;
    int passes = !joint->stays;
    jk_product products[2];
    jask_status st = JASK_OK;
    for (int i = 0; i < 2; i++) {
        products[i] = describe_product(&jobs[i]);
        products[i].d = matrix_of_result(&jobs[i]);
        products[i].plan = NULL;
        products[i].joint = joint;
    }
    products[0].other = &products[1];
    if (joint->count[joint->stays] > 1)
        st = open_partial(&jobs[passes], &products[passes], err);
    if (!st)
        st = jk_io_engine_run(&products[0], jobs[0].ctx, &jobs[0].stats, err);
    for (int i = 0; !st && i < 2; i++)
        st = check_inputs(&jobs[i], err);
    return st;
}

/* What of the whole work each product is, by its multiplications. */
static jk_share share_of(const jk_job *jobs, int count, int which)
{
    jk_share share = {.from = 0};
    double work = 0, all = 0;
    for (int i = 0; i < count; i++) {
        double mine = (double)jobs[i].m * (double)jobs[i].n * (double)jobs[i].k + 1;
        share.from += i < which ? mine : 0;
        share.steps_before += i < which ? jobs[i].plan.steps : 0;
        share.steps_total += jobs[i].plan.steps;
        work = i == which ? mine : work;
        all += mine;
    }
    share.from /= all;
    share.part = work / all;
    return share;
}

static jask_status compute_all(jk_job *jobs, int count, jask_error *err)
{
    jask_status st = JASK_OK;
    for (int i = 0; !st && i < count; i++)
        st = open_result(&jobs[i], err);
    if (jobs[0].joint)
        return st ? st : compute_joint(jobs, err);
    for (int i = 0; !st && i < count; i++) {
        jk_share share = share_of(jobs, count, i);
        st = compute(&jobs[i], &share, err);
    }
    return st;
}

/* The disk can be waited for long: that may be canceled, for only names are missing then. */
static jask_status commit_all(jk_job *jobs, int count, double start, jask_error *err)
{
    jask_status st = JASK_OK;
    bool named = false;
    for (int i = 0; !st && i < count; i++) {
        if (!jobs[i].output)
            continue;
        named = true;
        st = jk_array_flush(jobs[i].result, err);
    }
    if (!st && named)
        st = jk_jobs_tell(jobs, count, 0.99, jk_clock_seconds() - start, err);
    for (int i = 0; !st && i < count; i++)
        if (jobs[i].output)
            st = jk_array_publish(jobs[i].result, err);
    return st;
}

/* What the kernel moved meanwhile is all put down to the first. */
static void count_disk(jk_job *jobs, const uint64_t before[2])
{
    uint64_t after[2];
    jk_process_disk_bytes(&after[0], &after[1]);
    jobs[0].stats.io.disk_read_bytes = after[0] - before[0];
    jobs[0].stats.io.disk_write_bytes = after[1] - before[1];
}

static void hand_over(jk_job *jobs, int count, jask_array ***out_arrays)
{
    for (int i = 0; i < count; i++) {
        if (!out_arrays || !out_arrays[i])
            continue;
        *out_arrays[i] = jobs[i].result;
        jobs[i].result = NULL;
    }
}

static jask_status open_trace(jk_job *jobs, int count, const char *path, double start,
                              jk_trace **out, jask_error *err)
{
    jask_status st =
        path ? jk_trace_open(path, jk_context_io_threads(jobs[0].ctx), start, out, err) : JASK_OK;
    for (int i = 0; i < count; i++)
        jobs[i].trace = *out;
    return st;
}

jask_status jk_jobs_run(jk_job *jobs, int count, const jk_job_report *how, jask_array ***out_arrays,
                        jask_error *err)
{
    double start = jk_clock_seconds(), computed;
    jk_job_times times;
    uint64_t before[2];
    jask_status st;
    jk_trace *trace = NULL;
    for (int i = 0; i < (jobs[0].joint ? 1 : count); i++)
        jk_jobs_log_plan(&jobs[i]);
    jk_process_disk_bytes(&before[0], &before[1]);
    st = check_machine(jobs[0].ctx, err);
    if (!st)
        st = open_trace(jobs, count, how->trace, start, &trace, err);
    if (!st)
        st = compute_all(jobs, count, err);
    computed = jk_clock_seconds();
    if (!st)
        st = commit_all(jobs, count, start, err);
    if (!st) {
        if (jobs[0].resume)
            jk_resume_finish(jobs[0].resume);
        times.seconds = jk_clock_seconds() - start;
        times.commit_seconds = start + times.seconds - computed;
        count_disk(jobs, before);
        for (int i = 0; i < count; i++)
            jk_context_add_io(jobs[i].ctx, &jobs[i].stats.io);
        /* The results are committed: there is nothing left to cancel. */
        (void)jk_jobs_tell(jobs, count, 1, times.seconds, NULL);
        jk_trace_span(trace, JK_TRACK_OPERATION, "compute", "products", count, start, computed);
        jk_trace_span(trace, JK_TRACK_OPERATION, "commit", "results", count, computed,
                      start + times.seconds);
        jk_trace_end(&trace, how->op, start, jobs[0].stats.note, sizeof jobs[0].stats.note);
        if (how->report)
            jk_jobs_report(jobs, count, how->op, &times, how->report);
        hand_over(jobs, count, out_arrays);
    }
    jk_trace_end(&trace, how->op, start, NULL, 0);
    for (int i = 0; i < count; i++) {
        jk_resume_close(jobs[i].resume, st ? err : NULL);
        jobs[i].resume = NULL;
    }
    jk_jobs_log_end(jobs, count, st, err);
    for (int i = 0; i < count; i++) {
        jask_array_close(jobs[i].partial);
        jask_array_close(jobs[i].result);
    }
    return st;
}
