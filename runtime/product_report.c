/* What is told of products: to the log, to the progress callback, to the report. */
#include "runtime/plan_api.h"
#include "runtime/product_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void log_joint(const jk_job *job)
{
    const jk_joint *p = job->joint;
    jk_log_write(jk_context_log(job->ctx), JASK_LOG_INFO,
                 "plan joint (%s): gradients of %" PRId64 " x %" PRId64 " x %" PRId64
                 " by blocks of %" PRId64 " x %" PRId64 ", %" PRId64 " steps; %" PRIu64
                 " bytes to the device, %" PRIu64 " back, %" PRIu64
                 " read from files; peak %" PRIu64 " of %" PRIu64,
                 jk_planner_name(p->planner), p->problem.m, p->problem.n, p->problem.k,
                 p->block[JK_ROWS], p->block[JK_COLS], p->steps, p->counts.h2d_bytes,
                 p->counts.d2h_bytes, p->counts.file_read_bytes, p->peak_bytes, p->budget_bytes);
}

static void log_product(const jk_job *job)
{
    const jk_plan *p = &job->plan;
    jk_log_write(jk_context_log(job->ctx), JASK_LOG_INFO,
                 "plan %s (%s): %" PRId64 " x %" PRId64 " x %" PRId64 " in tiles of %" PRId64
                 " x %" PRId64 " x %" PRId64 ", %" PRId64 " steps; %" PRIu64
                 " bytes to the device, %" PRIu64 " back, %" PRIu64
                 " read from files; peak %" PRIu64 " of %" PRIu64,
                 jk_schedule_name(p->schedule), jk_planner_name(p->planner), job->m, job->n, job->k,
                 p->bm, p->bn, p->bk, p->steps, p->h2d_bytes, p->d2h_bytes, p->file_read_bytes,
                 p->peak_bytes, p->budget_bytes);
}

/* What would make these products faster. Deterministic ones are not the library's. */
static const char *advice_for(const jk_job *job)
{
    return jk_context_deterministic(job->ctx) ? "" : jk_context_device(job->ctx)->info.advice;
}

void jk_jobs_log_plan(const jk_job *job)
{
    const char *advice = advice_for(job);
    if (job->joint)
        log_joint(job);
    else
        log_product(job);
    if (*advice)
        jk_log_once(jk_context_log(job->ctx), JK_LOG_ADVICE, JASK_LOG_WARN, "%s", advice);
}

static uint64_t greater(uint64_t x, uint64_t y)
{
    return x > y ? x : y;
}

/* Of a joint plan the first job has all. */
static int runs(const jk_job *jobs, int count)
{
    return jobs[0].joint ? 1 : count;
}

/* Products are made one after the other: what they move and take adds up, memory does not. */
static jk_run_stats all_stats(const jk_job *jobs, int count)
{
    jk_run_stats all = jobs[0].stats;
    for (int i = 1; i < runs(jobs, count); i++) {
        const jk_run_stats *s = &jobs[i].stats;
        jk_io_cost_add(&all.io, &s->io);
        all.read_seconds += s->read_seconds;
        all.compute_seconds += s->compute_seconds;
        all.write_seconds += s->write_seconds;
        all.stall_seconds += s->stall_seconds;
        all.read_stall_seconds += s->read_stall_seconds;
        all.write_stall_seconds += s->write_stall_seconds;
        all.peak_device_bytes = greater(all.peak_device_bytes, s->peak_device_bytes);
        all.peak_host_bytes = greater(all.peak_host_bytes, s->peak_host_bytes);
        if (strcmp(all.io_engine, s->io_engine) != 0)
            all.io_engine = "mixed";
        if (strcmp(all.write_engine, s->write_engine) != 0)
            all.write_engine = "mixed";
        if (!all.note[0])
            memcpy(all.note, s->note, sizeof all.note);
    }
    return all;
}

/* The caller gets the error; a log that is kept has it too. */
void jk_jobs_log_end(const jk_job *jobs, int count, jask_status st, const jask_error *err)
{
    jk_log *log = jk_context_log(jobs[0].ctx);
    const char *name = jobs[0].output ? jobs[0].output : "(scratch)";
    jk_run_stats stats = all_stats(jobs, count);
    if (st)
        jk_log_write(log, JASK_LOG_ERROR, "product '%s': %s", name,
                     err ? err->msg : jask_status_name(st));
    else
        jk_log_write(log, JASK_LOG_DEBUG,
                     "product '%s' is complete: %" PRIu64 " bytes read, %" PRIu64
                     " written; the disk moved %" PRIu64 " and %" PRIu64,
                     name, stats.io.file_read_bytes, stats.io.file_write_bytes,
                     stats.io.disk_read_bytes, stats.io.disk_write_bytes);
    if (!st && stats.note[0])
        jk_log_once(log, JK_LOG_STAGING, JASK_LOG_WARN, "%s", stats.note);
}

/* All is computed. */
jask_status jk_jobs_tell(const jk_job *jobs, int count, double fraction, double seconds,
                         jask_error *err)
{
    jk_run_stats stats = all_stats(jobs, count);
    jask_progress p = {
        .struct_size = sizeof p,
        .fraction = fraction,
        .file_read_bytes = stats.io.file_read_bytes,
        .file_write_bytes = stats.io.file_write_bytes,
        .seconds = seconds,
    };
    for (int i = 0; i < runs(jobs, count); i++)
        p.steps_total += jobs[i].joint ? jobs[i].joint->steps : jobs[i].plan.steps;
    p.steps_done = p.steps_total;
    return jk_context_progress(jobs[0].ctx, &p, err);
}

/* What this run was to move. */
static jask_io_cost planned_cost(const jk_job *job)
{
    int64_t first_tile = job->resume ? jk_resume_tiles(job->resume) : 0;
    jk_plan_counts counts;
    if (job->joint)
        counts = job->joint->counts;
    else if (first_tile > 0)
        counts = jk_plan_rest(&job->plan, first_tile);
    else
        counts = jk_plan_all(&job->plan);
    return (jask_io_cost){.struct_size = sizeof(jask_io_cost),
                          .h2d_pages = counts.h2d_pages,
                          .h2d_bytes = counts.h2d_bytes,
                          .d2h_pages = counts.d2h_pages,
                          .d2h_bytes = counts.d2h_bytes,
                          .file_read_bytes = counts.file_read_bytes,
                          .file_write_bytes = counts.file_write_bytes};
}

/* The first product's plan, with what all move; memory is that of the one that takes most. */
void jk_jobs_describe(const jk_job *jobs, int count, jask_plan_info *out)
{
    if (jobs[0].joint)
        jk_joint_describe(jobs[0].joint, out);
    else
        jk_plan_describe(&jobs[0].plan, out);
    for (int i = 1; i < runs(jobs, count); i++) {
        const jk_plan *plan = &jobs[i].plan;
        out->tiles += plan->tiles;
        out->steps += plan->steps;
        out->h2d_bytes += plan->h2d_bytes;
        out->h2d_pages += plan->h2d_pages;
        out->d2h_bytes += plan->d2h_bytes;
        out->d2h_pages += plan->d2h_pages;
        out->file_read_bytes += plan->file_read_bytes;
        out->file_write_bytes += plan->file_write_bytes;
        out->lower_bound_bytes += plan->lower_bound_bytes;
        out->seconds += plan->seconds;
        out->peak_bytes = greater(out->peak_bytes, plan->peak_bytes);
    }
}

void jk_jobs_report(const jk_job *jobs, int count, const char *op, const jk_job_times *times,
                    jask_report *out)
{
    const jk_job *first = &jobs[0];
    const jk_device_ref *device = jk_context_device(first->ctx);
    jk_run_stats stats = all_stats(jobs, count);
    size_t size = out->struct_size;
    const char *note;
    jask_report report = {
        .dtype = first->types.output,
        .io = stats.io,
        .seconds = times->seconds,
        .read_seconds = stats.read_seconds,
        .compute_seconds = stats.compute_seconds,
        .write_seconds = stats.write_seconds,
        .commit_seconds = times->commit_seconds,
        .stall_seconds = stats.stall_seconds,
        .read_stall_seconds = stats.read_stall_seconds,
        .write_stall_seconds = stats.write_stall_seconds,
        .budget_bytes = first->budget.bytes,
        .peak_device_bytes = stats.peak_device_bytes,
        .peak_host_bytes = stats.peak_host_bytes,
        .planned = planned_cost(first),
    };
    snprintf(report.op, sizeof report.op, "%s", op);
    snprintf(report.device, sizeof report.device, "%s", device->info.name);
    snprintf(report.device_description, sizeof report.device_description, "%s",
             device->info.description);
    snprintf(report.precision, sizeof report.precision, "%s",
             jk_job_tf32(first) ? "tf32" : jask_dtype_name(first->types.compute));
    snprintf(report.io_engine, sizeof report.io_engine, "%s", stats.io_engine);
    snprintf(report.write_engine, sizeof report.write_engine, "%s", stats.write_engine);
    snprintf(report.device_note, sizeof report.device_note, "%s", device->note);
    note = stats.note;
    if (!note[0] && first->resume)
        note = jk_resume_note(first->resume);
    snprintf(report.note, sizeof report.note, "%s", note[0] ? note : advice_for(first));
    report.deterministic = jk_context_deterministic(first->ctx);
    report.resumed_tiles = first->resume ? jk_resume_tiles(first->resume) : 0;
    for (int i = 1; i < runs(jobs, count); i++) {
        jask_io_cost more = planned_cost(&jobs[i]);
        jk_io_cost_add(&report.planned, &more);
    }
    jk_jobs_describe(jobs, count, &report.plan);
    report.io.struct_size = sizeof report.io;
    jk_struct_out(out, size, &report, sizeof report);
}
