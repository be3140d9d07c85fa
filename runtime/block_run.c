#include "runtime/block_run.h"

#include "runtime/system.h"
#include "runtime/thread.h"
#include "runtime/waits.h"
#include "runtime/write_behind.h"

#include <stdlib.h>
#include <string.h>

#define PROGRESS_SECONDS 0.05

enum { SLOTS_MAX = 8, OUTPUT = JK_BLOCKS_INPUTS, OPERANDS };

typedef struct run {
    const jk_block_job *job;
    const jk_blocks *plan;
    char *arena;
    size_t arena_bytes;
    char *window[OPERANDS][SLOTS_MAX];
    char *work[OPERANDS];
    int64_t share[OPERANDS]; /* blocks that need one window */

    pthread_t writer;
    bool writer_started;
    struct reader *readers;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* All below is guarded by lock, except the atomic counters. */
    bool stop;
    jask_error error; /* the first; valid once stop is set for a failure */
    int64_t next_block;
    int next_input;
    int64_t loaded[JK_BLOCKS_INPUTS][SLOTS_MAX]; /* windows, from 1, that are in their slots */
    int64_t computed;                            /* blocks */
    int64_t posted, stored;                      /* windows of the output */
    double read_seconds, write_seconds;
    int64_t loads;
    _Atomic uint64_t file_read_bytes, file_write_bytes;

    /* The calling thread's. */
    double start, told, compute_seconds, stall_seconds;
} run;

typedef struct reader {
    run *run;
    pthread_t thread;
    bool started;
} reader;

static bool has(const run *r, int operand)
{
    return operand == OUTPUT ? r->job->output.file != NULL : r->job->input[operand].file != NULL;
}

static const jk_blocks_operand *planned(const run *r, int operand)
{
    return operand == OUTPUT ? &r->plan->problem.output : &r->plan->problem.input[operand];
}

/* Keep the first error and make every thread stop. Without the lock. */
static void fail(run *r, const jask_error *err)
{
    pthread_mutex_lock(&r->lock);
    if (!r->stop) {
        r->stop = true;
        r->error = *err;
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* ---- readers ---- */

typedef struct task {
    int input;
    int64_t block, window;
} task;

/* With the lock held: the next window to bring. False when there is none, or the run stops. */
static bool take_task(run *r, task *out)
{
    while (!r->stop && r->next_block < r->plan->blocks) {
        int64_t block = r->next_block;
        int input = r->next_input++;
        if (input == JK_BLOCKS_INPUTS) {
            r->next_input = 0;
            r->next_block++;
        } else if (has(r, input) && block % r->share[input] == 0) {
            *out = (task){input, block, block / r->share[input]};
            return true;
        }
    }
    return false;
}

/* With the lock held. Hazard: overwriting a window that blocks still to be computed need. */
static bool await_slot(run *r, const task *t)
{
    int64_t before = t->window - r->plan->slots;
    while (jk_must_wait(JK_WAIT_WINDOW_USED) && !r->stop && before >= 0 &&
           r->computed < (before + 1) * r->share[t->input])
        pthread_cond_wait(&r->changed, &r->lock);
    jk_take(JK_WAIT_WINDOW_USED, &r->computed);
    return !r->stop;
}

static void *reader_main(void *arg)
{
    static const char *const names[JK_BLOCKS_INPUTS] = {"A", "B"};
    reader *me = arg;
    run *r = me->run;
    double busy = 0;
    task t;
    pthread_mutex_lock(&r->lock);
    while (take_task(r, &t) && await_slot(r, &t)) {
        int slot = (int)(t.window % r->plan->slots);
        jk_box box = jk_blocks_box(r->plan, t.block);
        double start = jk_clock_seconds(), end;
        jask_error err;
        jask_status st;
        pthread_mutex_unlock(&r->lock);
        st = jk_strided_read(&r->job->input[t.input], &box, r->window[t.input][slot],
                             &r->file_read_bytes, &err);
        if (st)
            fail(r, &err);
        end = jk_clock_seconds();
        jk_trace_span(r->job->trace, JK_TRACK_READERS + (int)(me - r->readers), names[t.input],
                      "window", t.window, start, end);
        busy += end - start;
        pthread_mutex_lock(&r->lock);
        if (!st) {
            jk_give(&r->loaded[t.input][slot]);
            r->loaded[t.input][slot] = t.window + 1;
            r->loads++;
        }
        pthread_cond_broadcast(&r->changed);
    }
    r->read_seconds += busy;
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the writer ---- */

static jask_status store(run *r, int64_t window, jk_write_behind *behind, jask_error *err)
{
    jk_box box = jk_blocks_box(r->plan, window * r->share[OUTPUT]);
    jask_status st =
        jk_strided_write(&r->job->output, &box, r->window[OUTPUT][window % r->plan->slots],
                         &r->file_write_bytes, err);
    if (!st)
        st = jk_write_behind_add(behind, jk_blocks_window_bytes(r->plan, planned(r, OUTPUT)), err);
    return st;
}

static void *writer_main(void *arg)
{
    run *r = arg;
    jk_write_behind behind = jk_write_behind_of(r->job->output.file, r->job->ctx, false);
    pthread_mutex_lock(&r->lock);
    while (!r->stop && r->stored < r->plan->stores) {
        int64_t window = r->stored;
        double start, end;
        jask_error err;
        jask_status st;
        if (jk_must_wait(JK_WAIT_WINDOW_COMPUTED) && window == r->posted) {
            /* Hazard: writing a window before it is computed. */
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        jk_take(JK_WAIT_WINDOW_COMPUTED, &r->computed);
        pthread_mutex_unlock(&r->lock);
        start = jk_clock_seconds();
        st = store(r, window, &behind, &err);
        end = jk_clock_seconds();
        jk_trace_span(r->job->trace, JK_TRACK_WRITER, "write", "window", window, start, end);
        if (st)
            fail(r, &err);
        pthread_mutex_lock(&r->lock);
        r->write_seconds += end - start;
        jk_give(&r->stored);
        r->stored += st == JASK_OK;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the calling thread ---- */

static jask_status tell_progress(run *r, int64_t block, jask_error *err)
{
    double now = jk_clock_seconds();
    jask_progress p = {.struct_size = sizeof p};
    if (now - r->told < PROGRESS_SECONDS)
        return JASK_OK;
    r->told = now;
    p.steps_done = block;
    p.steps_total = r->plan->blocks;
    /* 1 is said only once the result is committed. */
    p.fraction = 0.99 * (double)block / (double)r->plan->blocks;
    p.file_read_bytes = r->file_read_bytes;
    p.file_write_bytes = r->file_write_bytes;
    p.seconds = now - r->start;
    p.seconds_left = p.fraction > 0.001 ? p.seconds * (1 - p.fraction) / p.fraction : -1;
    return jk_context_progress(r->job->ctx, &p, err);
}

/* Inputs are there, and the output's slot is free. */
static bool ready(const run *r, int64_t block)
{
    int64_t window = block / r->share[OUTPUT];
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++) {
        int64_t load = block / r->share[i];
        if (jk_must_wait(JK_WAIT_WINDOW_LOADED) && has(r, i) &&
            r->loaded[i][load % r->plan->slots] != load + 1)
            return false;
    }
    return !jk_must_wait(JK_WAIT_WINDOW_STORED) || !has(r, OUTPUT) ||
           r->stored > window - r->plan->slots;
}

static void take_windows(run *r, int64_t block)
{
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        jk_take(JK_WAIT_WINDOW_LOADED, &r->loaded[i][block / r->share[i] % r->plan->slots]);
    jk_take(JK_WAIT_WINDOW_STORED, &r->stored);
}

static bool all_stored(const run *r, int64_t block)
{
    (void)block;
    return !jk_must_wait(JK_WAIT_ALL_WINDOWS_STORED) || r->stored == r->plan->stores;
}

/* Wait until `done` holds for `block`, keeping the user informed. Fails with the run's error. */
static jask_status wait_until(run *r, bool (*done)(const run *, int64_t), int64_t block,
                              jask_error *err)
{
    double start = jk_clock_seconds(), end;
    jask_status st = JASK_OK;
    pthread_mutex_lock(&r->lock);
    while (!st && !r->stop && !done(r, block)) {
        jk_cond_wait(&r->changed, &r->lock, PROGRESS_SECONDS);
        pthread_mutex_unlock(&r->lock);
        st = tell_progress(r, block, err);
        pthread_mutex_lock(&r->lock);
    }
    if (!st && r->stop) {
        st = r->error.code;
        *err = r->error;
    }
    pthread_mutex_unlock(&r->lock);
    end = jk_clock_seconds();
    jk_trace_span(r->job->trace, JK_TRACK_PRODUCTS, "wait", "block", block, start, end);
    r->stall_seconds += end - start;
    return st;
}

static jk_block describe(const run *r, int64_t number)
{
    jk_block b = {.box = jk_blocks_box(r->plan, number)};
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++) {
        b.input[i] = r->window[i][number / r->share[i] % r->plan->slots];
        b.input_work[i] = r->work[i];
    }
    b.output = r->window[OUTPUT][number / r->share[OUTPUT] % r->plan->slots];
    b.output_work = r->work[OUTPUT];
    b.first = number % r->share[OUTPUT] == 0;
    b.last = (number + 1) % r->share[OUTPUT] == 0;
    return b;
}

static jask_status run_block(run *r, int64_t number, jask_error *err)
{
    jk_block block = describe(r, number);
    double start, end;
    /* Hazards: computing from a window that is not all there, and into one that is still being
     * written. */
    jask_status st = wait_until(r, ready, number, err);
    if (st)
        return st;
    take_windows(r, number);
    start = jk_clock_seconds();
    st = r->job->compute(r->job->user, &block, err);
    end = jk_clock_seconds();
    jk_trace_span(r->job->trace, JK_TRACK_PRODUCTS, "block", "block", number, start, end);
    r->compute_seconds += end - start;
    if (st)
        return st;
    pthread_mutex_lock(&r->lock);
    jk_give(&r->computed);
    r->computed = number + 1;
    r->posted += block.last && has(r, OUTPUT);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return tell_progress(r, number + 1, err);
}

/* ---- beginning and end ---- */

static jask_status open_arena(run *r, jask_error *err)
{
    void *arena;
    char *mem;
    jask_status st =
        jk_device_host.mem_alloc(jk_context_host(r->job->ctx), r->plan->peak_bytes, &arena, err);
    if (st)
        return st;
    r->arena_bytes = r->plan->peak_bytes;
    mem = r->arena = arena;
    for (int o = 0; o < OPERANDS; o++) {
        if (planned(r, o)->bytes == 0)
            continue;
        for (int s = 0; s < r->plan->slots; s++) {
            r->window[o][s] = mem;
            mem += jk_blocks_window_bytes(r->plan, planned(r, o));
        }
        r->work[o] = mem;
        mem += jk_blocks_work_bytes(r->plan, planned(r, o));
    }
    return JASK_OK;
}

static jask_status start_threads(run *r, jask_error *err)
{
    int threads = jk_context_io_threads(r->job->ctx);
    jask_status st = JASK_OK;
    r->readers = calloc((size_t)threads, sizeof *r->readers);
    if (!r->readers)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for %d readers", threads);
    for (int i = 0; !st && i < threads; i++) {
        r->readers[i].run = r;
        st = jk_thread_start(&r->readers[i].thread, "jask-reader", reader_main, &r->readers[i],
                             &r->readers[i].started, err);
    }
    if (!st && has(r, OUTPUT))
        st = jk_thread_start(&r->writer, "jask-writer", writer_main, r, &r->writer_started, err);
    return st;
}

static void join(run *r)
{
    int threads = jk_context_io_threads(r->job->ctx);
    for (int i = 0; r->readers && i < threads; i++)
        if (r->readers[i].started)
            pthread_join(r->readers[i].thread, NULL);
    if (r->writer_started)
        pthread_join(r->writer, NULL);
    free(r->readers);
    r->readers = NULL;
    r->writer_started = false;
}

static void close_run(run *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    join(r);
    jk_device_host.mem_free(jk_context_host(r->job->ctx), r->arena, r->arena_bytes);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void fill_stats(const run *r, jk_run_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->io.file_read_bytes = r->file_read_bytes;
    stats->io.file_write_bytes = r->file_write_bytes;
    stats->io.h2d_bytes = r->file_read_bytes;
    stats->io.h2d_pages = r->loads;
    stats->io.d2h_bytes = r->file_write_bytes;
    stats->io.d2h_pages = r->stored;
    stats->read_seconds = r->read_seconds;
    stats->write_seconds = r->write_seconds;
    stats->compute_seconds = r->compute_seconds;
    stats->stall_seconds = r->stall_seconds;
    stats->peak_device_bytes = r->arena_bytes;
}

jask_status jk_blocks_run(const jk_block_job *job, jk_run_stats *stats, jask_error *err)
{
    jask_error mine;
    jask_status st = JASK_OK;
    run *r = calloc(1, sizeof *r);
    if (!err)
        err = &mine; /* threads pass their error through it */
    if (!r)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a run");
    r->job = job;
    r->plan = job->plan;
    r->start = jk_clock_seconds();
    pthread_mutex_init(&r->lock, NULL);
    jk_cond_init(&r->changed);
    if (r->plan->blocks > 0) {
        for (int o = 0; o < OPERANDS; o++)
            r->share[o] = jk_blocks_share(r->plan, planned(r, o));
        st = open_arena(r, err);
        if (!st)
            st = start_threads(r, err);
        for (int64_t b = 0; !st && b < r->plan->blocks; b++)
            st = run_block(r, b, err);
        if (!st && has(r, OUTPUT))
            st = wait_until(r, all_stored, r->plan->blocks, err);
    }
    if (!st) {
        /* Every window is brought and every one stored: the threads end by themselves. */
        join(r);
        fill_stats(r, stats);
    }
    close_run(r);
    return st;
}
