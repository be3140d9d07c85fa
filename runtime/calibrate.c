/* Measuring a machine once: each rate alone, on the device of a context. */
#include "runtime/calibrate.h"

#include "runtime/calibration.h"
#include "runtime/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET_LEAST ((uint64_t)16 << 20)
/* Of square matrices, each up to so large that a product takes long enough to be timed. */
#define SIDE_LEAST 128
#define SIDE_MOST 4096
#define COPY_BYTES_MOST ((size_t)64 << 20)
#define FILE_BLOCK_MOST ((size_t)4 << 20)
#define FILE_MEMORY_MOST ((uint64_t)64 << 20)
/* Work shorter than this is done more than once at a time. */
#define LONG_ENOUGH 0.1
#define ROUNDS 3

typedef struct bench {
    jk_calibration_run run;
    const jk_device_ref *device;
    jk_queue *queue, *second;
    int64_t side;
    void *a, *b, *c; /* on the device, side x side of 8 bytes */
    size_t matrix_bytes;
    void *workspace;
    size_t workspace_bytes;
    char *pinned; /* two halves; beside the device's memory, or as it */
    size_t pinned_bytes, copy_bytes;
    jk_gemm gemm; /* the product that is timed */
    jask_calibration found;
} bench;

jask_status jk_calibration_step(const jk_calibration_run *run, jask_error *err)
{
    jask_progress p = {.struct_size = sizeof p,
                       .steps_done = run->done,
                       .steps_total = run->total,
                       .fraction = (double)run->done / run->total,
                       .seconds = jk_clock_seconds() - run->began,
                       .seconds_left = -1};
    return jk_context_progress(run->ctx, &p, err);
}

/* ---- timing ---- */

typedef jask_status (*work_fn)(bench *b, jask_error *err);

static jask_status drain(bench *b, jask_error *err)
{
    jask_status st = b->device->table->queue_drain(b->queue, err);
    return st || !b->second ? st : b->device->table->queue_drain(b->second, err);
}

/* Seconds that `count` times `work` take, from an idle device to an idle device. */
static jask_status time_once(bench *b, work_fn work, int64_t count, double *out, jask_error *err)
{
    double began = jk_clock_seconds();
    jask_status st = JASK_OK;
    for (int64_t i = 0; i < count && !st; i++)
        st = work(b, err);
    if (!st)
        st = drain(b, err);
    if (!st)
        *out = jk_clock_seconds() - began;
    return st ? st : jk_calibration_step(&b->run, err);
}

/* Seconds of one `work`, the shortest of some rounds: what disturbs can only make it longer. */
static jask_status time_work(bench *b, work_fn work, double *out, jask_error *err)
{
    double seconds = 0, least = 0;
    int64_t count = 1;
    jask_status st;
    while (!(st = time_once(b, work, count, &seconds, err)) && seconds < LONG_ENOUGH)
        count *= 2;
    least = seconds;
    for (int round = 1; round < ROUNDS && !st; round++) {
        st = time_once(b, work, count, &seconds, err);
        least = seconds < least ? seconds : least;
    }
    if (!st)
        *out = least / (double)count;
    return st;
}

static jask_status multiply(bench *b, jask_error *err)
{
    return b->device->table->gemm(b->queue, &b->gemm, err);
}

/* Matrices grow until one product is long enough, so that slow devices are not asked for large ones. */
static jask_status time_products(bench *b, jask_dtype dtype, jask_dtype input, bool tf32,
                                 double *out, jask_error *err)
{
    double seconds = 0;
    int64_t n = SIDE_LEAST;
    jask_status st;
    for (;; n *= 2) {
        b->gemm = (jk_gemm){.dtype = dtype,
                            .input_dtype = input,
                            .tf32 = tf32,
                            .m = n,
                            .n = n,
                            .k = n,
                            .alpha = 1,
                            .a = b->a,
                            .b = b->b,
                            .c = b->c,
                            .lda = n,
                            .ldb = n,
                            .ldc = n,
                            .workspace = b->workspace,
                            .workspace_bytes = b->workspace_bytes};
        st = time_once(b, multiply, 1, &seconds, err);
        if (st || n == b->side || seconds >= LONG_ENOUGH)
            break;
    }
    if (!st)
        st = time_work(b, multiply, &seconds, err);
    if (st)
        return st;
    *out = 2 * (double)n * (double)n * (double)n / seconds;
    b->run.done++;
    return JASK_OK;
}

/* What a product re-reads and re-writes of its tile, nearly alone: k is 1. */
static jask_status time_memory(bench *b, jask_error *err)
{
    int64_t n = b->side;
    double seconds;
    jask_status st;
    b->gemm.dtype = JASK_F32;
    b->gemm.input_dtype = JASK_DTYPE_NONE;
    b->gemm.tf32 = false;
    b->gemm.m = b->gemm.n = b->gemm.ldb = b->gemm.ldc = n;
    b->gemm.k = b->gemm.lda = 1;
    b->gemm.beta = 1;
    st = time_work(b, multiply, &seconds, err);
    if (st)
        return st;
    b->found.memory = 2.0 * (double)n * (double)n * sizeof(float) / seconds;
    b->run.done++;
    return JASK_OK;
}

/* ---- copies of a device with memory of its own ---- */

static jk_copy copy_of(void *dst, const void *src, size_t bytes)
{
    return (jk_copy){.dst = dst,
                     .src = src,
                     .dst_pitch = bytes,
                     .src_pitch = bytes,
                     .row_bytes = bytes,
                     .rows = 1};
}

static jask_status copy_up(bench *b, jask_error *err)
{
    jk_copy copy = copy_of(b->a, b->pinned, b->copy_bytes);
    return b->device->table->upload(b->queue, &copy, err);
}

static jask_status copy_down(bench *b, jask_error *err)
{
    jk_copy copy = copy_of(b->pinned + b->copy_bytes, b->b, b->copy_bytes);
    return b->device->table->download(b->second, &copy, err);
}

static jask_status copy_both(bench *b, jask_error *err)
{
    jask_status st = copy_up(b, err);
    return st ? st : copy_down(b, err);
}

static jask_status time_copies(bench *b, jask_error *err)
{
    const struct {
        work_fn work;
        double *rate;
    } copies[] = {
        {copy_up, &b->found.h2d}, {copy_down, &b->found.d2h}, {copy_both, &b->found.duplex}};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        double seconds;
        jask_status st = time_work(b, copies[i].work, &seconds, err);
        if (st)
            return st;
        *copies[i].rate = (double)b->copy_bytes / seconds;
        b->run.done++;
    }
    return JASK_OK;
}

/* ---- all of it ---- */

static jask_status time_all_products(bench *b, jask_error *err)
{
    const jk_device_info *info = &b->device->info;
    jask_calibration *f = &b->found;
    jask_status st = time_products(b, JASK_F32, JASK_DTYPE_NONE, false, &f->flops_f32, err);
    if (!st)
        st = time_products(b, JASK_F64, JASK_DTYPE_NONE, false, &f->flops_f64, err);
    if (!st && info->tf32)
        st = time_products(b, JASK_F32, JASK_DTYPE_NONE, true, &f->flops_tf32, err);
    if (!st && info->f16)
        st = time_products(b, JASK_F32, JASK_F16, false, &f->flops_f16, err);
    if (!st && info->bf16)
        st = time_products(b, JASK_F32, JASK_BF16, false, &f->flops_bf16, err);
    return st ? st : time_memory(b, err);
}

/* Where the device's memory is the host's, files are copied straight to it, by processors: all of them
 * together are as fast as that. */
static jask_status time_files(bench *b, const char *dir, jask_error *err)
{
    const jk_device_info *info = &b->device->info;
    int threads = jk_context_io_threads(b->run.ctx);
    size_t block = FILE_BLOCK_MOST;
    jk_file_rates rates;
    jask_status st;
    while (2 * block * (size_t)threads > b->pinned_bytes)
        block /= 2;
    st = jk_calibrate_files(&b->run, dir, threads, b->pinned, b->pinned_bytes, block, &rates, err);
    if (st)
        return st;
    if (info->host_memory) {
        b->found.h2d = rates.up * info->cores;
        b->found.d2h = rates.down * info->cores;
        b->found.runs = rates.runs;
    }
    b->found.disk_read = rates.read;
    b->found.disk_write = rates.write;
    b->run.done++;
    return JASK_OK;
}

static int64_t choose_side(uint64_t bytes)
{
    int64_t side = SIDE_LEAST;
    while (side < SIDE_MOST && 3 * 8 * 4 * (uint64_t)side * (uint64_t)side <= bytes)
        side *= 2;
    return side;
}

static jask_status alloc(bench *b, jask_error *err)
{
    const jk_device_table *table = b->device->table;
    jk_device *dev = b->device->dev;
    uint64_t budget = jk_context_budget(b->run.ctx), host = jk_context_cpu_budget(b->run.ctx) / 2;
    jask_status st;
    if (budget < BUDGET_LEAST || host < BUDGET_LEAST / 4)
        return jk_fail(err, JASK_ERR_BUDGET,
                       "measuring takes a budget of 16MiB, and beside a GPU 8MiB of host memory");
    b->side = choose_side(budget / 2);
    b->matrix_bytes = (size_t)b->side * (size_t)b->side * 8;
    b->workspace_bytes = jk_device_workspace(&b->device->info, budget);
    b->pinned_bytes =
        (size_t)jask_align_to_os_page(host < FILE_MEMORY_MOST ? host : FILE_MEMORY_MOST);
    b->copy_bytes = b->pinned_bytes / 2 < b->matrix_bytes ? b->pinned_bytes / 2 : b->matrix_bytes;
    if (b->copy_bytes > COPY_BYTES_MOST)
        b->copy_bytes = COPY_BYTES_MOST;
    st = table->queue_open(dev, &b->queue, err);
    if (!st)
        st = table->queue_open(dev, &b->second, err);
    if (!st)
        st = table->mem_alloc(dev, b->matrix_bytes, &b->a, err);
    if (!st)
        st = table->mem_alloc(dev, b->matrix_bytes, &b->b, err);
    if (!st)
        st = table->mem_alloc(dev, b->matrix_bytes, &b->c, err);
    if (!st && b->workspace_bytes > 0)
        st = table->mem_alloc(dev, b->workspace_bytes, &b->workspace, err);
    return st ? st : table->pin_alloc(dev, b->pinned_bytes, (void **)&b->pinned, err);
}

static void release(bench *b)
{
    const jk_device_table *table = b->device->table;
    jk_device *dev = b->device->dev;
    table->queue_close(b->queue);
    table->queue_close(b->second);
    table->mem_free(dev, b->a, b->matrix_bytes);
    table->mem_free(dev, b->b, b->matrix_bytes);
    table->mem_free(dev, b->c, b->matrix_bytes);
    table->mem_free(dev, b->workspace, b->workspace_bytes);
    table->pin_free(dev, b->pinned, b->pinned_bytes);
}

/* Numbers, and none of the zeros that untouched memory reads as from a single page: each matrix from
 * the same block. As f32 and as f64 they lie between 1 and 2, as 16-bit numbers some are NaN, which
 * costs nothing. */
static jask_status fill(bench *b, jask_error *err)
{
    void *const matrices[] = {b->a, b->b, b->c};
    uint32_t *words = (uint32_t *)(void *)b->pinned, x = 1;
    jask_status st = JASK_OK;
    for (size_t i = 0; i < b->copy_bytes / sizeof *words; i++) {
        x = x * 1664525 + 1013904223;
        words[i] = 0x3f800000 | x >> 9;
    }
    for (int m = 0; m < 3; m++)
        for (size_t at = 0; at < b->matrix_bytes && !st; at += b->copy_bytes) {
            size_t left = b->matrix_bytes - at;
            jk_copy copy = copy_of((char *)matrices[m] + at, b->pinned,
                                   left < b->copy_bytes ? left : b->copy_bytes);
            st = b->device->table->upload(b->queue, &copy, err);
        }
    return st ? st : drain(b, err);
}

static void describe(const jask_calibration *found, char text[JK_MACHINE_TEXT])
{
    const jk_machine_said said = {.flops = found->flops_f32,
                                  .flops_f64 = found->flops_f64,
                                  .flops_tf32 = found->flops_tf32,
                                  .flops_f16 = found->flops_f16,
                                  .h2d = found->h2d,
                                  .d2h = found->d2h,
                                  .disk_read = found->disk_read,
                                  .disk_write = found->disk_write,
                                  .runs = found->runs,
                                  .device_memory = found->memory};
    jk_machine_format(&said, text, JK_MACHINE_TEXT);
}

/* Products, copies, memory, files. */
static jask_status measure(bench *b, const char *dir, jask_error *err)
{
    const jk_device_info *info = &b->device->info;
    jask_status st;
    b->run.began = jk_clock_seconds();
    b->run.total = 4 + info->tf32 + info->f16 + info->bf16 + (info->host_memory ? 0 : 3);
    st = alloc(b, err);
    if (!st)
        st = fill(b, err);
    if (!st)
        st = time_files(b, dir, err);
    if (!st && !info->host_memory)
        st = time_copies(b, err);
    if (!st)
        st = time_all_products(b, err);
    release(b);
    b->found.seconds = jk_clock_seconds() - b->run.began;
    return st;
}

static jask_status keep(bench *b, const char *dir, jk_output *output, jask_error *err)
{
    char identity[JK_CALIBRATION_IDENTITY], text[JK_CALIBRATION_TEXT];
    jask_status st = jk_calibration_identity(&b->device->info, identity, err);
    if (st)
        return st;
    describe(&b->found, b->found.machine);
    jk_calibration_format(identity, dir, b->found.machine, text);
    st = jk_calibration_keep(output, text, err);
    return st ? jk_fail_in(err, st, "measured %s, but it cannot be kept", b->found.machine) : st;
}

/* What may be refused is looked at first. */
static jask_status calibrate(bench *b, const char *path, jask_error *err)
{
    jk_output *output = NULL;
    const char *dir;
    jask_status st = jk_context_scratch(b->run.ctx, &dir, err);
    if (!st)
        st = jk_calibration_open(path, &output, err);
    if (!st)
        st = measure(b, dir, err);
    if (!st)
        st = keep(b, dir, output, err);
    jk_output_close(output);
    snprintf(b->found.path, sizeof b->found.path, "%s", path);
    return st;
}

jask_status jask_calibrate(jask_context *ctx, jask_calibration *out, size_t struct_size,
                           jask_error *err)
{
    bench b = {0};
    char *path = NULL;
    jask_status st = jk_context_get(ctx, &b.run.ctx, err);
    if (st)
        return st;
    b.device = jk_context_device(b.run.ctx);
    st = jk_calibration_path(&b.device->info, &path, err);
    if (!st)
        st = calibrate(&b, path, err);
    if (!st)
        jk_struct_out(out, struct_size, &b.found, sizeof b.found);
    free(path);
    jk_context_put(b.run.ctx);
    return st;
}
