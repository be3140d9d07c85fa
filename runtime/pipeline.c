/* The driver: the calling thread queues the products, step by step, and hands finished bands to the
 * writer. */
#include "runtime/pipeline.h"

#include "runtime/run.h"
#include "runtime/system.h"
#include "runtime/thread.h"

#include <math.h>
#include <string.h>

/* The user hears of progress at most this often, and a cancel is noticed this soon while waiting.
 */
#define PROGRESS_SECONDS 0.05

typedef struct jk_driver {
    jk_run *run;
    double start, told;
    double first_fraction, fraction; /* of the work; where the run began */
    int64_t loads;                   /* seen so far, in plan order */
    double compute_seconds, stall_seconds;
} jk_driver;

/* Tell the user where the run stands: `part` of `step` is computed. CANCELED becomes the run's
 * error. Without the lock. */
static jask_status tell_progress(jk_driver *d, int64_t step, double part, jask_error *err)
{
    jk_run *run = d->run;
    double now = jk_clock_seconds();
    double computed = ((double)step + part) / (double)run->steps;
    double taken;
    const jk_share *share = &run->job->share;
    jask_progress p = {.struct_size = sizeof p};
    if (now - d->told < PROGRESS_SECONDS)
        return JASK_OK;
    d->told = now;
    pthread_mutex_lock(&run->lock);
    taken = (double)run->bands_taken / ((double)run->tiles * (double)run->bands);
    pthread_mutex_unlock(&run->lock);
    /* 1 is said only once the result is committed. */
    d->fraction = fmax(d->fraction, fmin(0.97 * computed + 0.02 * taken, 0.99));
    p.steps_done = share->steps_before + step;
    p.steps_total = share->steps_total ? share->steps_total : run->steps;
    p.fraction = share->part > 0 ? share->from + share->part * d->fraction : d->fraction;
    p.file_read_bytes = run->file_read_bytes;
    p.file_write_bytes = run->file_write_bytes;
    p.seconds = now - d->start;
    p.seconds_left = d->fraction > d->first_fraction + 0.001
                         ? p.seconds * (1 - d->fraction) / (d->fraction - d->first_fraction)
                         : -1;
    return jk_context_progress(run->job->ctx, &p, err);
}

/* What the products wait for: that `met` holds. */
typedef struct jk_need {
    jk_wait wait;
    bool (*met)(const void *what, int64_t number);
    const void *what;
    int64_t number;
} jk_need;

static bool load_ready(const void *slot, int64_t number)
{
    const jk_slot *s = slot;
    return s->load == number && s->pieces_left == 0;
}

static bool band_taken(const void *bands_taken, int64_t number)
{
    return *(const int64_t *)bands_taken > number;
}

/* Wait, keeping the user informed. Fails with the run's error. */
static jask_status wait_until(jk_driver *d, jk_need need, int64_t step, jask_error *err)
{
    jk_run *run = d->run;
    double start = 0;
    jask_status st = JASK_OK;
    pthread_mutex_lock(&run->lock);
    while (jk_must_wait(need.wait) && !st && !run->stop && !need.met(need.what, need.number)) {
        if (start == 0)
            start = jk_clock_seconds();
        jk_cond_wait(&run->changed, &run->lock, PROGRESS_SECONDS);
        pthread_mutex_unlock(&run->lock);
        st = tell_progress(d, step, 0, err);
        pthread_mutex_lock(&run->lock);
    }
    jk_take(need.wait, need.what);
    if (!st && run->stop) {
        st = run->error.code;
        if (err)
            *err = run->error;
    }
    pthread_mutex_unlock(&run->lock);
    if (start != 0) {
        double end = jk_clock_seconds();
        d->stall_seconds += end - start;
        jk_trace_span(run->job->trace, JK_TRACK_PRODUCTS, "wait", "step", step, start, end);
    }
    return st;
}

/* Wait for what the step loads, in plan order. */
static jask_status await_loads(jk_driver *d, const jk_step *step, int64_t s, jask_error *err)
{
    jk_run *run = d->run;
    jask_status st = JASK_OK;
    for (int op = 0; !st && op < JK_OPERANDS; op++) {
        jk_slot *slot = jk_run_slot(run, step, op);
        jk_need loaded = {JK_WAIT_A_DELIVERED + (jk_wait)op, load_ready, slot, d->loads};
        if (!jk_step_loads(step, op))
            continue;
        d->loads++;
        /* Hazard: the product would read a panel that is not all there. */
        st = wait_until(d, loaded, s, err);
        if (!st && jk_must_wait(JK_WAIT_A_FILLED + (jk_wait)op))
            st = run->dev->queue_await(run->compute, slot->filled, err);
    }
    return st;
}

static jk_gemm describe_product(const jk_run *run, const jk_step *step, int64_t row, int64_t rows)
{
    const jk_run_product *product = jk_run_product_of(run, step);
    const jk_product *job = product->job;
    const size_t *size = product->elem_bytes;
    int64_t a_rows, a_cols, b_rows, b_cols;
    jk_run_slot_shape(run, JK_OPERAND_A, step, &a_rows, &a_cols);
    jk_run_slot_shape(run, JK_OPERAND_B, step, &b_rows, &b_cols);
    return (jk_gemm){
        .dtype = jk_memory_type(&job->d),
        .input_dtype = jk_memory_type(&job->a),
        .trans_a = job->a.trans,
        .trans_b = job->b.trans,
        .m = rows,
        .n = step->cols,
        .k = step->depth,
        .alpha = run->job->alpha,
        .beta = !step->first || step->from_partial ? 1
                : step->load_c                     ? job->beta
                                                   : 0,
        .a = jk_run_slot(run, step, JK_OPERAND_A)->mem +
             (size_t)(job->a.trans ? row : row * a_cols) * size[JK_OPERAND_A],
        .b = jk_run_slot(run, step, JK_OPERAND_B)->mem,
        .c = jk_run_slot(run, step, JK_OPERAND_C)->mem +
             (size_t)(row * product->cols) * size[JK_OPERAND_C],
        .lda = a_cols,
        .ldb = b_cols,
        .ldc = product->cols,
        .tf32 = run->job->tf32,
        .ordered = run->job->ordered,
        .threads = run->job->device->info.cores,
        .workspace = run->workspace,
        .workspace_bytes = run->workspace_bytes,
    };
}

/* The tile is finished down to `row`: let the writer have its bands to there. */
static jask_status post_bands(jk_run *run, const jk_step *step, int64_t row, jask_error *err)
{
    bool all = row == step->rows;
    int64_t band_rows = jk_run_product_of(run, step)->band_rows;
    int64_t bands = all ? jk_ceil_div(step->rows, band_rows) : row / band_rows;
    int64_t posted = run->bands_posted - jk_run_band_number(run, step->tile, 0);
    jask_status st = JASK_OK;
    for (int64_t i = posted; !st && i < bands; i++)
        st = run->dev->event_record(jk_run_slot(run, step, JK_OPERAND_C)->computed[i], run->compute,
                                    err);
    if (st)
        return st;
    /* Bands that a short tile lacks are posted with its last one. */
    if (all)
        bands = run->bands;
    pthread_mutex_lock(&run->lock);
    run->bands_posted = jk_run_band_number(run, step->tile, bands);
    jk_give(&run->bands_posted);
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return JASK_OK;
}

static jask_status compute_rows(jk_driver *d, const jk_step *step, int64_t s, int64_t row,
                                int64_t rows, jask_error *err)
{
    jk_run *run = d->run;
    jk_gemm gemm = describe_product(run, step, row, rows);
    int64_t before = jk_run_tile_before(run, step->tile);
    int64_t band = (row + rows - 1) / jk_run_product_of(run, step)->band_rows;
    jk_need stored = {JK_WAIT_BAND_STORED, band_taken, &run->bands_taken,
                      jk_run_band_number(run, before, band)};
    jask_status st = JASK_OK;
    double start, end;
    /* Hazard: overwriting bands of an earlier tile that are still to be stored. */
    if (step->first && !step->load_c && before >= 0)
        st = wait_until(d, stored, s, err);
    if (st)
        return st;
    start = jk_clock_seconds();
    st = run->dev->gemm(run->compute, &gemm, err);
    end = jk_clock_seconds();
    d->compute_seconds += end - start;
    jk_trace_span(run->job->trace, JK_TRACK_PRODUCTS, "product", "rows", rows, start, end);
    return st;
}

/* Rows to compute at once: a function of the plan and the tile's number alone, whatever is going
 * on, because products of other sizes may round otherwise. Whole tiles are most efficient; bands
 * where their slot is still being emptied, and at the very end, where only the storing of the last
 * band is left to wait for. */
static int64_t rows_at_once(const jk_run *run, const jk_step *step)
{
    double most = run->job->device->info.gemm_flops_max;
    double row_flops = 2.0 * (double)step->cols * (double)step->depth;
    bool slot_busy = step->first && !step->load_c && jk_run_tile_before(run, step->tile) >= 0;
    bool at_end = step->last && step->tile == run->tiles - 1;
    int64_t rows = slot_busy || at_end ? jk_run_product_of(run, step)->band_rows : step->rows;
    if (most > 0 && (double)rows * row_flops > most) {
        int64_t parts = (int64_t)((double)rows * row_flops / most) + 1;
        rows = jk_max(jk_ceil_div(rows, parts), 1);
    }
    return rows;
}

static jask_status compute_step(jk_driver *d, const jk_step *step, int64_t s, jask_error *err)
{
    int64_t at_once = rows_at_once(d->run, step);
    jask_status st = JASK_OK;
    for (int64_t row = 0; !st && row < step->rows; row += at_once) {
        int64_t rows = jk_min(at_once, step->rows - row);
        st = compute_rows(d, step, s, row, rows, err);
        if (!st && step->last)
            st = post_bands(d->run, step, row + rows, err);
        if (!st)
            st = tell_progress(d, s, (double)(row + rows) / (double)step->rows, err);
    }
    return st;
}

static jask_status run_step(jk_driver *d, int64_t s, jask_error *err)
{
    jk_run *run = d->run;
    jk_step step = jk_run_step(run, s);
    double start = jk_clock_seconds();
    jask_status st = await_loads(d, &step, s, err);
    if (!st)
        st = compute_step(d, &step, s, err);
    if (!st)
        st = run->dev->event_record(jk_run_slot(run, &step, JK_OPERAND_A)->released, run->compute,
                                    err);
    if (!st)
        st = run->dev->event_record(jk_run_slot(run, &step, JK_OPERAND_B)->released, run->compute,
                                    err);
    if (st)
        return st;
    pthread_mutex_lock(&run->lock);
    run->steps_issued = s + 1;
    jk_give(&run->steps_issued);
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    jk_trace_span(run->job->trace, JK_TRACK_PRODUCTS, "step", "step", s, start, jk_clock_seconds());
    return JASK_OK;
}

static void fill_stats(const jk_driver *d, jk_run_stats *stats)
{
    const jk_run *run = d->run;
    memset(stats, 0, sizeof *stats);
    stats->io.h2d_pages = run->h2d_pages;
    stats->io.h2d_bytes = run->h2d_bytes;
    stats->io.d2h_pages = run->d2h_pages;
    stats->io.d2h_bytes = run->d2h_bytes;
    stats->io.file_read_bytes = run->file_read_bytes;
    stats->io.file_write_bytes = run->file_write_bytes;
    stats->read_seconds = run->read_seconds;
    stats->read_stall_seconds = run->read_stall_seconds;
    stats->write_seconds = run->write_seconds;
    stats->write_stall_seconds = run->write_stall_seconds;
    stats->compute_seconds = d->compute_seconds;
    stats->stall_seconds = d->stall_seconds;
    stats->peak_device_bytes = run->arena_bytes + (run->staged ? 0 : run->bounce_bytes);
    stats->peak_host_bytes =
        run->staged ? run->pinned_bytes + run->bounce_bytes + jk_kept_bytes(run) : 0;
    memcpy(stats->note, run->note, sizeof stats->note);
}

jask_status jk_pipeline_run(const jk_product *product, jk_run_stats *stats, jask_error *err)
{
    int64_t first_step;
    jk_driver d = {.start = jk_clock_seconds()};
    jask_error mine;
    jask_status st;
    jk_need stored = {.wait = JK_WAIT_ALL_STORED, .met = band_taken};
    if (!err)
        err = &mine; /* threads pass their error through it */
    st = jk_run_open(product, &d.run, err);
    if (st)
        return st;
    first_step = d.run->steps_issued;
    d.first_fraction = d.fraction = 0.99 * (double)first_step / (double)d.run->steps;
    for (int64_t s = first_step; !st && s < d.run->steps; s++)
        st = run_step(&d, s, err);
    stored.what = &d.run->bands_taken;
    stored.number = d.run->tiles * d.run->bands - 1;
    /* Hazard: what is still to be stored may fail. */
    if (!st)
        st = wait_until(&d, stored, d.run->steps, err);
    /* Hazard: what was queued behind the last product may fail without anybody needing it. (All
     * uploads were waited for by products, these by downloads, and those by the writer.) */
    if (!st && jk_must_wait(JK_WAIT_COMPUTE_DRAINED))
        st = d.run->dev->queue_drain(d.run->compute, err);
    if (!st) {
        /* All pieces are delivered and all bands stored: the threads end by themselves. */
        jk_run_join(d.run);
        fill_stats(&d, stats);
    }
    jk_run_close(d.run);
    return st;
}
