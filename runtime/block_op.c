#include "runtime/block_op.h"

#include "runtime/dtype.h"
#include "runtime/plan_api.h"
#include "runtime/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS = 3 };

const char *jk_shape_text(int ndim, const int64_t *shape, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int d = 0; d < ndim && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, d ? ", " : "", shape[d]);
    if (used < size)
        snprintf(text + used, size - used, ndim == 1 ? ",)" : ")");
    return text;
}

jask_status jk_broadcast(const jask_array *a, const jask_array *b, int *out_ndim,
                         int64_t *out_shape, jask_error *err)
{
    const jk_layout *x = &a->layout, *y = &b->layout;
    int ndim = x->ndim > y->ndim ? x->ndim : y->ndim;
    int64_t shape[JASK_MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        int i = d - (ndim - x->ndim), j = d - (ndim - y->ndim);
        int64_t m = i < 0 ? 1 : x->shape[i], n = j < 0 ? 1 : y->shape[j];
        char left[256], right[256];
        if (m != n && m != 1 && n != 1)
            return jk_fail(err, JASK_ERR_ARG,
                           "shapes do not fit: A '%s' is %s, B '%s' is %s; from the last dimension "
                           "on, extents must be equal or 1",
                           a->path, jk_shape_text(x->ndim, x->shape, left, sizeof left), b->path,
                           jk_shape_text(y->ndim, y->shape, right, sizeof right));
        shape[d] = m == 1 ? n : m;
    }
    memcpy(out_shape, shape, (size_t)ndim * sizeof *shape);
    *out_ndim = ndim;
    return JASK_OK;
}

jask_status jk_strided_of(const jask_array *array, const char *what, int ndim, const int64_t *shape,
                          jk_strided *out, jask_error *err)
{
    const jk_layout *layout = &array->layout;
    int lead = ndim - layout->ndim;
    int64_t size = (int64_t)jask_dtype_size(layout->dtype);
    jk_strided s = {
        .file = jk_array_file(array),
        .path = array->path,
        .offset = layout->data_offset,
        .dtype = layout->dtype,
        .swap = layout->big_endian != JK_HOST_BIG_ENDIAN,
        .ndim = ndim,
    };
    for (int d = 0; d < layout->ndim; d++) {
        char mine[256], theirs[256];
        if (lead < 0 || (layout->shape[d] != 1 && layout->shape[d] != shape[lead + d]))
            return jk_fail(err, JASK_ERR_ARG, "%s '%s' is %s, which does not fit %s", what,
                           array->path,
                           jk_shape_text(layout->ndim, layout->shape, mine, sizeof mine),
                           jk_shape_text(ndim, shape, theirs, sizeof theirs));
        s.strides[lead + d] = layout->shape[d] == 1 ? 0 : layout->strides[d] / size;
    }
    *out = s;
    return JASK_OK;
}

static void take_strides(jk_strided *s, const jk_blocks_problem *p, const jk_blocks_operand *o)
{
    s->ndim = p->ndim;
    memcpy(s->strides, o->strides, sizeof s->strides);
}

void jk_block_op_arrange(jk_block_op *op)
{
    jk_blocks_problem *p = &op->problem;
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++) {
        if (!op->job.input[i].file)
            continue;
        p->input[i].bytes = (int)jask_dtype_size(op->job.input[i].dtype);
        memcpy(p->input[i].strides, op->job.input[i].strides, sizeof p->input[i].strides);
    }
    memcpy(p->output.strides, op->job.output.strides, sizeof p->output.strides);
    if (!op->empty)
        jk_blocks_simplify(p);
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        take_strides(&op->job.input[i], p, &p->input[i]);
    take_strides(&op->job.output, p, &p->output);
}

static jask_status settle_budget(jk_block_op *op, jask_error *err)
{
    const jk_blocks_problem *p = &op->problem;
    jk_result_place place = {.output = op->output};
    if (!op->in_place)
        place.bytes = (uint64_t)p->output.bytes;
    /* Along its other dimensions the output is one element. */
    for (int d = 0; d < p->ndim; d++)
        if (p->output.strides[d] != 0 &&
            !jk_mul_u64(place.bytes, (uint64_t)p->shape[d], &place.bytes))
            place.bytes = UINT64_MAX; /* making the result refuses it */
    return jk_budget_of(op->ctx, &place, &op->budget, err);
}

jask_status jk_block_op_plan(jk_block_op *op, jask_error *err)
{
    const jk_device_ref *device = jk_context_device(op->ctx);
    jk_blocks_machine machine = {.slots = jk_context_pipelined(op->ctx) ? SLOTS : 1};
    jask_status st;
    st = settle_budget(op, err);
    if (st)
        return st;
    machine.bytes = device->info.host_memory ? op->budget.bytes : op->budget.host_bytes;
    st = jk_blocks_make(&op->problem, op->empty, &machine, &op->plan, err);
    op->job.plan = &op->plan;
    op->job.ctx = op->ctx;
    return st == JASK_ERR_BUDGET ? jk_budget_explain(&op->budget, op->ctx, err) : st;
}

static void log_plan(const jk_block_op *op)
{
    const jk_blocks *p = &op->plan;
    jk_log_write(jk_context_log(op->ctx), JASK_LOG_INFO,
                 "plan blocks: %" PRId64 " of at most %" PRId64 " elements; %" PRIu64
                 " bytes read from files, %" PRIu64 " written; peak %" PRIu64 " of %" PRIu64,
                 p->blocks, p->blocks ? jk_box_elems(p, p->box) : 0, p->file_read_bytes,
                 p->file_write_bytes, p->peak_bytes, p->budget_bytes);
}

static void log_end(const jk_block_op *op, const jk_run_stats *stats, jask_status st,
                    const jask_error *err)
{
    jk_log *log = jk_context_log(op->ctx);
    const char *name = op->output ? op->output : "(scratch)";
    if (st)
        jk_log_write(log, JASK_LOG_ERROR, "%s '%s': %s", op->name, name,
                     err ? err->msg : jask_status_name(st));
    else
        jk_log_write(log, JASK_LOG_DEBUG,
                     "%s '%s' is complete: %" PRIu64 " bytes read, %" PRIu64 " written", op->name,
                     name, stats->io.file_read_bytes, stats->io.file_write_bytes);
}

static jask_status tell(const jk_block_op *op, const jk_run_stats *stats, double fraction,
                        double seconds, jask_error *err)
{
    jask_progress p = {
        .struct_size = sizeof p,
        .steps_done = op->plan.blocks,
        .steps_total = op->plan.blocks,
        .fraction = fraction,
        .file_read_bytes = stats->io.file_read_bytes,
        .file_write_bytes = stats->io.file_write_bytes,
        .seconds = seconds,
    };
    return jk_context_progress(op->ctx, &p, err);
}

/* The disk can be waited for long: that may be canceled, for only the name is missing then. */
static jask_status commit(const jk_block_op *op, jask_array *d, const jk_run_stats *stats,
                          double start, jask_error *err)
{
    jask_status st = jk_array_flush(d, err);
    if (!st)
        st = tell(op, stats, 0.99, jk_clock_seconds() - start, err);
    return st ? st : jk_array_publish(d, err);
}

static void fill_report(const jk_block_op *op, const jk_run_stats *stats, double seconds,
                        double commit_seconds, jask_report *out)
{
    const jk_device_ref *device = jk_context_device(op->ctx);
    size_t size = out->struct_size;
    jask_report report = {
        .dtype = op->dtype,
        .io = stats->io,
        .seconds = seconds,
        .read_seconds = stats->read_seconds,
        .compute_seconds = stats->compute_seconds,
        .write_seconds = stats->write_seconds,
        .commit_seconds = commit_seconds,
        .stall_seconds = stats->stall_seconds,
        .budget_bytes = op->plan.budget_bytes,
    };
    snprintf(report.op, sizeof report.op, "%s", op->name);
    snprintf(report.device, sizeof report.device, "%s", jk_device_host.kind);
    if (device->info.host_memory) {
        report.peak_device_bytes = stats->peak_device_bytes;
        snprintf(report.device_description, sizeof report.device_description, "%s",
                 device->info.description);
    } else {
        report.peak_host_bytes = stats->peak_device_bytes;
        snprintf(report.device_description, sizeof report.device_description,
                 "the CPU beside %.100s", device->info.name);
    }
    snprintf(report.device_note, sizeof report.device_note, "%s", device->note);
    snprintf(report.precision, sizeof report.precision, "%s", op->precision);
    snprintf(report.note, sizeof report.note, "%s", stats->note);
    snprintf(report.io_engine, sizeof report.io_engine, "pread");
    snprintf(report.write_engine, sizeof report.write_engine, "pwrite");
    jk_blocks_describe(&op->plan, &report.plan);
    report.io.struct_size = sizeof report.io;
    report.planned = (jask_io_cost){
        .struct_size = sizeof report.planned,
        .h2d_pages = report.plan.h2d_pages,
        .h2d_bytes = report.plan.h2d_bytes,
        .d2h_pages = report.plan.d2h_pages,
        .d2h_bytes = report.plan.d2h_bytes,
        .file_read_bytes = report.plan.file_read_bytes,
        .file_write_bytes = report.plan.file_write_bytes,
    };
    jk_struct_out(out, size, &report, sizeof report);
}

/* Inputs that memory cannot hold do not stay in the page cache. */
static void open_behind(jk_block_op *op, jk_drop_behind *behind)
{
    const jk_file *files[JK_BLOCKS_INPUTS];
    bool outgrown[JK_BLOCKS_INPUTS];
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        files[i] = op->job.input[i].file;
    if (!jk_outgrow_memory(op->ctx, files, JK_BLOCKS_INPUTS, outgrown))
        return;
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        if (outgrown[i])
            op->job.input[i].behind =
                jk_drop_behind_open(behind, JK_BLOCKS_INPUTS, files[i], op->job.input[i].offset);
}

jask_status jk_block_op_run(jk_block_op *op, jask_array *result, jask_report *report,
                            jask_error *err)
{
    double start = jk_clock_seconds(), computed, done;
    uint64_t read_before, written_before, read_after, written_after;
    jk_run_stats stats = {0};
    jk_drop_behind behind[JK_BLOCKS_INPUTS] = {{0}};
    jask_status st;
    log_plan(op);
    jk_process_disk_bytes(&read_before, &written_before);
    st = op->trace
             ? jk_trace_open(op->trace, jk_context_io_threads(op->ctx), start, &op->job.trace, err)
             : JASK_OK;
    open_behind(op, behind);
    if (!st)
        st = jk_blocks_run(&op->job, &stats, err);
    jk_drop_behind_close(behind, JK_BLOCKS_INPUTS);
    for (size_t i = 0; !st && i < sizeof op->read / sizeof *op->read; i++)
        if (op->read[i])
            st = jk_array_check_unchanged(op->read[i], err);
    computed = jk_clock_seconds();
    if (!st && op->output)
        st = commit(op, result, &stats, start, err);
    log_end(op, &stats, st, err);
    done = jk_clock_seconds();
    if (!st) {
        jk_trace_span(op->job.trace, JK_TRACK_OPERATION, "compute", "blocks", op->plan.blocks,
                      start, computed);
        jk_trace_span(op->job.trace, JK_TRACK_OPERATION, "commit", "results", 1, computed, done);
    }
    jk_trace_end(&op->job.trace, op->name, start, stats.note, sizeof stats.note);
    if (st)
        return st;
    if (!stats.note[0] && strcmp(jk_context_io(op->ctx), "direct") == 0)
        snprintf(stats.note, sizeof stats.note,
                 "inputs are read through the page cache: direct reads are for products");
    jk_process_disk_bytes(&read_after, &written_after);
    stats.io.disk_read_bytes = read_after - read_before;
    stats.io.disk_write_bytes = written_after - written_before;
    jk_context_add_io(op->ctx, &stats.io);
    /* The result is committed: there is nothing left to cancel. */
    (void)tell(op, &stats, 1, done - start, NULL);
    if (report)
        fill_report(op, &stats, done - start, done - computed, report);
    return JASK_OK;
}
