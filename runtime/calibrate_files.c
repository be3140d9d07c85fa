/* How fast files are, through the page cache and on the disk. */
#include "runtime/calibrate.h"

#include "runtime/file.h"
#include "runtime/system.h"
#include "runtime/thread.h"

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#define FILE_BYTES ((uint64_t)512 << 20)
/* Made durable at a time: enough that the disk is busy, not so much that a slow one is not heard of
 * for long. */
#define PART_BYTES ((uint64_t)64 << 20)
#define COPY_ROUNDS 3
/* What a slow disk has not done by then is left. */
#define SECONDS_MAX 3
/* Runs as short as the page cache knows them, so far apart that the system does not read on from one to the
 * next; announced in such numbers that a disk may order them. */
#define RUN_BYTES ((size_t)4 << 10)
#define RUN_PITCH ((size_t)32 << 10)
#define RUNS_AT_ONCE ((size_t)256)

typedef struct reading {
    const jk_calibration_run *run;
    const jk_file *file;
    jk_direct *direct; /* NULL: through the page cache */
    bool runs;         /* of a page, as panels have them; else all */
    uint64_t bytes;
    size_t block, part; /* of a thread */
    double until;
    _Atomic uint64_t next;
    _Atomic bool stop;
} reading;

typedef struct reader {
    reading *r;
    char *memory; /* its part */
    bool caller;  /* the thread that calls, which tells of progress */
    pthread_t thread;
    bool started;
    jask_status st;
    jask_error err;
} reader;

static size_t runs_of_block(const reading *r)
{
    size_t most = r->block / RUN_BYTES;
    return most < RUNS_AT_ONCE ? most : RUNS_AT_ONCE;
}

/* As the pipeline reads pieces of panels. */
static jask_status read_runs(const reading *r, uint64_t offset, char *to, jask_error *err)
{
    size_t count = runs_of_block(r);
    jask_status st = JASK_OK;
    jk_file_announce(r->file, offset, RUN_BYTES, RUN_PITCH, (int64_t)count);
    for (size_t i = 0; i < count && !st; i++)
        st = jk_file_read(r->file, offset + i * RUN_PITCH, to + i * RUN_BYTES, RUN_BYTES, err);
    return st;
}

static jask_status read_block(const reading *r, uint64_t offset, char *to, jask_error *err)
{
    if (r->runs)
        return read_runs(r, offset, to, err);
    return r->direct ? jk_direct_read(r->direct, offset, to, r->block, err)
                     : jk_file_read(r->file, offset, to, r->block, err);
}

/* Block after block, each to where no cache holds what was there. */
static jask_status read_blocks(reader *me)
{
    reading *r = me->r;
    size_t span = r->runs ? runs_of_block(r) * RUN_PITCH : r->block; /* of the file */
    jask_status st = JASK_OK;
    for (size_t at = 0; !st && !r->stop && jk_clock_seconds() < r->until;
         at = at + 2 * r->block <= r->part ? at + r->block : 0) {
        uint64_t offset = atomic_fetch_add(&r->next, span);
        if (offset >= r->bytes)
            break;
        st = read_block(r, offset, me->memory + at, &me->err);
        if (!st && me->caller)
            st = jk_calibration_step(r->run, &me->err);
    }
    r->stop = r->stop || st;
    return st;
}

static void *reader_main(void *arg)
{
    reader *me = arg;
    me->st = read_blocks(me);
    return NULL;
}

/* Bytes of the file a second, by all readers together. */
static jask_status read_file(reading *r, char *memory, int threads, double *out, jask_error *err)
{
    reader *readers = calloc((size_t)threads, sizeof *readers);
    double began = jk_clock_seconds();
    jask_status st = JASK_OK;
    if (!readers)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for %d readers", threads);
    r->next = 0;
    r->stop = false;
    r->until = began + SECONDS_MAX;
    for (int i = 0; i < threads; i++)
        readers[i] = (reader){.r = r, .memory = memory + (size_t)i * r->part, .caller = i == 0};
    for (int i = 1; i < threads && !st; i++)
        st = jk_thread_start(&readers[i].thread, "jask-reader", reader_main, &readers[i],
                             &readers[i].started, err);
    if (st)
        r->stop = true;
    reader_main(&readers[0]);
    for (int i = 0; i < threads; i++) {
        if (readers[i].started)
            pthread_join(readers[i].thread, NULL);
        if (!st && readers[i].st) {
            st = readers[i].st;
            if (err)
                *err = readers[i].err;
        }
    }
    if (!st) {
        uint64_t done = r->next < r->bytes ? r->next : r->bytes;
        *out = (double)done / (jk_clock_seconds() - began);
    }
    free(readers);
    return st;
}

/* PART_BYTES at `at`, into the page cache. */
static jask_status write_part(const jk_file *file, uint64_t at, const char *block,
                              size_t block_bytes, double *out_seconds, jask_error *err)
{
    double began = jk_clock_seconds();
    jask_status st = JASK_OK;
    for (uint64_t done = 0; done < PART_BYTES && !st; done += block_bytes)
        st = jk_file_write(file, at + done, block, block_bytes, err);
    *out_seconds = jk_clock_seconds() - began;
    return st;
}

/* *out_bytes: how much of the file there is then. Copying and writing take turns, so that the disk shows
 * its own time. */
static jask_status write_file(const jk_calibration_run *run, const jk_file *file, const char *block,
                              size_t block_bytes, uint64_t *out_bytes, double *out_rate,
                              jask_error *err)
{
    double began = jk_clock_seconds(), syncing = 0, copying;
    uint64_t done = 0;
    while (done < FILE_BYTES && jk_clock_seconds() < began + SECONDS_MAX) {
        jask_status st = write_part(file, done, block, block_bytes, &copying, err);
        syncing -= jk_clock_seconds();
        if (!st)
            st = jk_file_sync(file, err);
        syncing += jk_clock_seconds();
        if (!st)
            st = jk_calibration_step(run, err);
        if (st)
            return st;
        done += PART_BYTES;
    }
    *out_bytes = done;
    *out_rate = (double)done / syncing;
    return JASK_OK;
}

/* Into new files, the fastest of some: memory that nobody has used for long is slow at first. */
static jask_status time_copying(const jk_calibration_run *run, const char *dir, const char *block,
                                size_t block_bytes, double *out_rate, jask_error *err)
{
    *out_rate = 0;
    for (int round = 0; round < COPY_ROUNDS; round++) {
        jk_file file = JK_FILE_NONE;
        double seconds = 0;
        jask_status st = jk_file_scratch(dir, PART_BYTES, &file, err);
        if (!st)
            st = write_part(&file, 0, block, block_bytes, &seconds, err);
        jk_file_close(&file);
        if (!st)
            st = jk_calibration_step(run, err);
        if (st)
            return st;
        *out_rate = fmax(*out_rate, (double)PART_BYTES / seconds);
    }
    return JASK_OK;
}

/* From the page cache, then from the disk: around the cache as long as the file system lets it. */
static jask_status read_twice(reading *r, char *memory, int threads, jk_file_rates *out,
                              jask_error *err)
{
    jk_direct direct;
    double all;
    jask_status st = read_file(r, memory, threads, &all, err);
    if (st)
        return st;
    out->up = all / threads;
    if (jk_direct_open(r->file, &direct, NULL))
        r->direct = &direct;
    (void)posix_fadvise(r->file->fd, 0, 0, POSIX_FADV_DONTNEED);
    st = read_file(r, memory, threads, &out->read, err);
    if (r->direct)
        jk_direct_close(&direct);
    return st;
}

/* What each costs beside its bytes; at least half of its time, for both times are measured. */
static jask_status time_runs(reading *r, char *memory, int threads, jk_file_rates *out,
                             jask_error *err)
{
    double rate, run, bytes = (double)RUN_BYTES / out->read;
    jask_status st;
    r->runs = true;
    (void)posix_fadvise(r->file->fd, 0, 0, POSIX_FADV_DONTNEED);
    st = read_file(r, memory, threads, &rate, err);
    if (st)
        return st;
    run = (double)RUN_PITCH / rate;
    out->runs = 1 / fmax(run - bytes, run / 2);
    return JASK_OK;
}

/* What a disk, or a file system that compresses, cannot make less of. */
static void fill_random(uint64_t *words, size_t count)
{
    uint64_t x = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < count; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = x;
    }
}

jask_status jk_calibrate_files(const jk_calibration_run *run, const char *dir, int threads,
                               void *memory, size_t memory_bytes, size_t block_bytes,
                               jk_file_rates *out, jask_error *err)
{
    jk_file file = JK_FILE_NONE;
    jk_file_rates rates = {0};
    bool in_ram;
    char type[64];
    reading r = {.run = run, .file = &file, .block = block_bytes};
    jask_status st = jk_dir_in_ram(dir, &in_ram, type, sizeof type, err);
    if (!st)
        st = jk_file_scratch(dir, FILE_BYTES, &file, err);
    if (st)
        return st;
    r.part = memory_bytes / (size_t)threads / block_bytes * block_bytes;
    fill_random(memory, block_bytes / sizeof(uint64_t));
    st = write_file(run, &file, memory, block_bytes, &r.bytes, &rates.write, err);
    if (!st)
        st = read_twice(&r, memory, threads, &rates, err);
    if (!st)
        st = time_runs(&r, memory, threads, &rates, err);
    jk_file_close(&file);
    if (!st)
        st = time_copying(run, dir, memory, block_bytes, &rates.down, err);
    if (st)
        return st;
    if (in_ram)
        rates.read = rates.write = rates.runs = 0;
    *out = rates;
    return JASK_OK;
}
