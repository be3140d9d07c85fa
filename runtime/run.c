/* Making and unmaking a run: memory, slots, queues, threads. */
#include "runtime/run.h"

#include "runtime/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Pinned memory is asked for in ever smaller blocks down to this. */
#define RING_BLOCK_MIN ((size_t)4096)
#define RING_BLOCK_ALIGN ((size_t)64)

jask_status jk_run_fail(jk_run *run, const jask_error *err)
{
    pthread_mutex_lock(&run->lock);
    if (run->error.code == JASK_OK)
        run->error = *err;
    run->stop = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return err->code;
}

bool jk_run_wait(jk_run *run)
{
    if (!run->stop)
        pthread_cond_wait(&run->changed, &run->lock);
    return !run->stop;
}

/* Whether a pool holds tiles of D. */
static bool holds_tiles(const jk_run *run, const jk_pool *pool)
{
    for (int i = 0; i < run->product_count; i++)
        if (run->products[i].pools[JK_OPERAND_C] == pool)
            return true;
    return false;
}

static jask_status open_bands(const jk_run *run, jk_slot *slot, jask_error *err)
{
    jask_status st = JASK_OK;
    slot->computed = calloc((size_t)run->bands, sizeof *slot->computed);
    if (!slot->computed)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to keep track of %lld bands",
                       (long long)run->bands);
    for (int64_t i = 0; !st && i < run->bands; i++)
        st = run->dev->event_open(run->job->device->dev, &slot->computed[i], err);
    return st;
}

static jask_status open_slots(jk_run *run, jk_pool *pool, int64_t count, uint64_t bytes, char **mem,
                              jask_error *err)
{
    jk_device *dev = run->job->device->dev;
    bool tiles = holds_tiles(run, pool);
    jask_status st = JASK_OK;
    if (count == 0) /* B's panels are A's */
        return JASK_OK;
    pool->slots = calloc((size_t)count, sizeof *pool->slots);
    if (!pool->slots)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to keep track of %lld slots",
                       (long long)count);
    pool->count = count;
    for (int64_t i = 0; !st && i < count; i++) {
        jk_slot *slot = &pool->slots[i];
        slot->mem = *mem;
        slot->last_use = -1;
        slot->load = -1; /* zeros would say that load 0 has arrived */
        *mem += bytes;
        st = run->dev->event_open(dev, &slot->filled, err);
        if (!st)
            st = tiles ? open_bands(run, slot, err)
                       : run->dev->event_open(dev, &slot->released, err);
    }
    return st;
}

static void close_slots(const jk_run *run, jk_pool *pool)
{
    for (int64_t i = 0; i < pool->count; i++) {
        jk_slot *slot = &pool->slots[i];
        run->dev->event_close(slot->filled);
        run->dev->event_close(slot->released);
        for (int64_t band = 0; slot->computed && band < run->bands; band++)
            run->dev->event_close(slot->computed[band]);
        free(slot->computed);
    }
    free(pool->slots);
}

static jask_status open_arena(jk_run *run, jask_error *err)
{
    const jk_plan *plan = run->plan;
    uint64_t peak = run->joint ? run->joint->peak_bytes : plan->peak_bytes;
    uint64_t reserve = run->joint ? run->joint->reserve_bytes : plan->reserve_bytes;
    char *mem;
    void *arena;
    jask_status st;
    size_t slot_bytes = (size_t)(peak - reserve);
    /* With host memory the reserve is for `bounce`. */
    size_t workspace_bytes = run->staged ? (size_t)reserve : 0;
    size_t bytes = slot_bytes + workspace_bytes;
    st = run->dev->mem_alloc(run->job->device->dev, bytes, &arena, err);
    if (st)
        return st;
    run->arena = arena;
    run->arena_bytes = bytes;
    /* First: there it is aligned as the allocation is, whatever the slots' sizes. */
    run->workspace = workspace_bytes > 0 ? run->arena : NULL;
    run->workspace_bytes = workspace_bytes;
    mem = run->arena + workspace_bytes;
    for (int pool = 0; !st && pool < JK_POOLS; pool++) {
        int64_t count;
        uint64_t each = jk_run_slot_bytes(run, pool, &count);
        st = open_slots(run, &run->pools[pool], count, each, &mem, err);
    }
    return st;
}

/* Less pinned memory than was planned, or none: the run goes on and says so. */
static void note_ring(jk_run *run, size_t asked_bytes, const jask_error *why)
{
    char had[32], asked[32];
    jask_format_size(run->pinned_bytes, had, sizeof had);
    jask_format_size(asked_bytes, asked, sizeof asked);
    if (run->pageable)
        snprintf(run->note, sizeof run->note, "staging is pageable, which is slower: %.200s",
                 why->msg);
    else if (run->pinned_bytes < asked_bytes)
        snprintf(run->note, sizeof run->note,
                 "staging takes %s of pinned host memory instead of %s, which was refused", had,
                 asked);
}

/* Memory for `count` blocks: in smaller blocks where so much cannot be pinned; ordinary memory
 * where nothing can. */
static jask_status alloc_ring(jk_run *run, int count, jask_error *err)
{
    size_t asked = run->job->block_bytes, block = asked;
    size_t least = asked < RING_BLOCK_MIN ? asked : RING_BLOCK_MIN;
    void *mem = NULL;
    jask_error why;
    while (run->dev->pin_alloc(run->job->device->dev, (size_t)count * block, &mem, &why)) {
        mem = NULL;
        block = block / 2 / RING_BLOCK_ALIGN * RING_BLOCK_ALIGN;
        if (block < least)
            break;
    }
    if (!mem) {
        run->pageable = true;
        block = asked;
        mem = malloc((size_t)count * block);
    }
    if (!mem)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for %zu bytes of staging",
                       (size_t)count * block);
    run->pinned = mem;
    run->pinned_bytes = (size_t)count * block;
    run->block_bytes = block;
    note_ring(run, (size_t)count * asked, &why);
    return JASK_OK;
}

static jask_status open_ring(jk_run *run, jask_error *err)
{
    int count;
    jask_status st;
    run->ring_up = 2 * run->job->io_threads;
    run->ring_down = 2;
    count = run->ring_up + run->ring_down;
    run->ring = calloc((size_t)count, sizeof *run->ring);
    if (!run->ring)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to keep track of %d staging blocks", count);
    st = alloc_ring(run, count, err);
    for (int i = 0; !st && i < count; i++) {
        run->ring[i].mem = run->pinned + (size_t)i * run->block_bytes;
        run->ring[i].piece = -1;
        st = run->dev->event_open(run->job->device->dev, &run->ring[i].free, err);
    }
    return st;
}

static void close_ring(jk_run *run)
{
    for (int i = 0; run->ring && i < run->ring_up + run->ring_down; i++)
        run->dev->event_close(run->ring[i].free);
    free(run->ring);
    if (run->pageable)
        free(run->pinned);
    else
        run->dev->pin_free(run->job->device->dev, run->pinned, run->pinned_bytes);
}

static jask_status open_queues(jk_run *run, jask_error *err)
{
    jk_device *dev = run->job->device->dev;
    jask_status st = run->dev->queue_open(dev, &run->up, err);
    if (!st)
        st = run->dev->queue_open(dev, &run->compute, err);
    if (!st)
        st = run->dev->queue_open(dev, &run->down, err);
    return st;
}

size_t jk_pipeline_reserve_bytes(const jk_device_info *info, uint64_t budget_bytes,
                                 bool transposes_c, int io_threads, size_t block_bytes)
{
    if (!info->host_memory)
        return jk_device_workspace(info, budget_bytes);
    return transposes_c ? (size_t)io_threads * block_bytes : 0;
}

/* The upload ring, two blocks for downloads, and buffers to transpose in. */
int jk_pipeline_host_blocks(bool transposes_c, int io_threads)
{
    return 2 * io_threads + 2 + (transposes_c ? io_threads : 0);
}

static jask_status start_threads(jk_run *run, jask_error *err)
{
    jask_status st = JASK_OK;
    run->readers = calloc((size_t)run->job->io_threads, sizeof *run->readers);
    if (!run->readers)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for %d readers", run->job->io_threads);
    for (int i = 0; i < run->job->io_threads; i++) {
        run->readers[i].run = run;
        run->readers[i].index = i;
        run->readers[i].serial = INT64_MAX;
    }
    for (int i = 0; !st && i < run->job->io_threads; i++) {
        jk_reader *reader = &run->readers[i];
        st = jk_thread_start(&reader->thread, "jask-reader", jk_reader_main, reader,
                             &reader->started, err);
    }
    if (!st)
        st = jk_thread_start(&run->writer, "jask-writer", jk_writer_main, run, &run->writer_started,
                             err);
    return st;
}

static bool turns_c(const jk_run *run)
{
    for (int i = 0; i < run->product_count; i++)
        if (jk_matrix_is_turned(&run->products[i].job->c))
            return true;
    return false;
}

jask_status jk_run_open(const jk_product *job, jk_run **out, jask_error *err)
{
    jk_run *run = calloc(1, sizeof *run);
    jask_status st;
    if (!run)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a run");
    run->job = job;
    run->plan = job->plan;
    run->joint = job->joint;
    run->dev = job->device->table;
    run->staged = !job->device->info.host_memory;
    run->block_bytes = job->block_bytes;
    jk_run_lay_out(run);
    run->next.step = run->steps_issued =
        run->plan ? jk_plan_tile_step(run->plan, job->first_tile) : 0;
    run->bands_posted = run->bands_taken = jk_run_band_number(run, job->first_tile, 0);
    pthread_mutex_init(&run->lock, NULL);
    jk_cond_init(&run->changed);
    st = open_queues(run, err);
    if (!st)
        st = open_arena(run, err);
    if (!st && run->staged)
        st = open_ring(run, err);
    if (!st && run->plan)
        st = jk_kept_open(run, err);
    if (!st && turns_c(run)) {
        run->bounce_bytes = (size_t)job->io_threads * run->block_bytes;
        run->bounce = malloc(run->bounce_bytes);
        if (!run->bounce)
            st = jk_fail(err, JASK_ERR_NOMEM, "no memory for %zu bytes to transpose C in",
                         run->bounce_bytes);
    }
    if (!st)
        st = start_threads(run, err);
    if (st)
        jk_run_close(run);
    else
        *out = run;
    return st;
}

void jk_run_join(jk_run *run)
{
    for (int i = 0; run->readers && i < run->job->io_threads; i++)
        if (run->readers[i].started)
            pthread_join(run->readers[i].thread, NULL);
    if (run->writer_started)
        pthread_join(run->writer, NULL);
    free(run->readers);
    run->readers = NULL;
    run->writer_started = false;
}

void jk_run_close(jk_run *run)
{
    jk_device *dev;
    if (!run)
        return;
    dev = run->job->device->dev;
    pthread_mutex_lock(&run->lock);
    run->stop = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    jk_run_join(run);
    /* Hazard: work still queued uses the memory freed below; closing a queue waits for it. */
    run->dev->queue_close(run->up);
    run->dev->queue_close(run->compute);
    run->dev->queue_close(run->down);
    for (int pool = 0; pool < JK_POOLS; pool++)
        close_slots(run, &run->pools[pool]);
    close_ring(run);
    jk_kept_close(run);
    free(run->bounce);
    run->dev->mem_free(dev, run->arena, run->arena_bytes);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    free(run);
}
