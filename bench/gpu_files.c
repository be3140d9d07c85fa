/* File to file, against the slowest of what it cannot do without: reading, copying and writing
 * files, both ways over the bus, the product itself; each at a rate measured in the same run, just
 * before. */
#include "gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)4 << 20)
#define COPY_BYTES ((size_t)64 << 20)
enum { MOST_THREADS = 64 };

typedef struct files {
    char a[512], b[512], d[512], probe[512];
} files;

/* The least seconds of each stage. */
enum { DISK, COPY, WRITE, UP, DOWN, COMPUTE, STAGES };
static const char *const stage_names[STAGES] = {"disk", "copy", "write", "h2d", "d2h", "compute"};

/* Take a file out of the page cache. */
static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        bench_die(path, "cannot be taken out of the page cache");
    close(fd);
}

typedef struct reader {
    const char *path;
    int index, count;
    uint64_t bytes;
} reader;

/* Every count-th piece. */
static void *read_pieces(void *arg)
{
    reader *r = arg;
    char *buffer = malloc(PIECE);
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 1;
    if (!buffer || fd < 0)
        bench_die(r->path, strerror(errno));
    for (off_t at = (off_t)PIECE * r->index; got > 0; at += (off_t)PIECE * r->count) {
        got = pread(fd, buffer, PIECE, at);
        r->bytes += got > 0 ? (uint64_t)got : 0;
    }
    if (got < 0)
        bench_die(r->path, strerror(errno));
    close(fd);
    free(buffer);
    return NULL;
}

static double read_rate(const char *path, int threads)
{
    reader readers[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    double start = bench_now();
    uint64_t bytes = 0;
    for (int i = 0; i < threads; i++) {
        readers[i] = (reader){.path = path, .index = i, .count = threads};
        if (pthread_create(&thread[i], NULL, read_pieces, &readers[i]) != 0)
            bench_die("thread", "cannot be made");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        bytes += readers[i].bytes;
    }
    return (double)bytes / (bench_now() - start);
}

/* As jask's writer: one thread, and the disk at the end. */
static double write_rate(const gpu_case *w, const char *path)
{
    double start, seconds;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t done = 0;
    if (fd < 0)
        bench_die(path, strerror(errno));
    (void)posix_fallocate(fd, 0, (off_t)w->matrix_bytes);
    start = bench_now();
    while (done < w->matrix_bytes) {
        size_t size = w->matrix_bytes - done < PIECE ? w->matrix_bytes - done : PIECE;
        ssize_t put = pwrite(fd, (char *)w->peer + done, size, (off_t)done);
        if (put <= 0)
            bench_die(path, strerror(errno));
        done += (size_t)put;
    }
    if (w->sync && fsync(fd) != 0)
        bench_die(path, strerror(errno));
    seconds = bench_now() - start;
    close(fd);
    remove(path);
    return (double)w->matrix_bytes / seconds;
}

static void measure_stages(const gpu_case *w, const files *f, const jask_report *r, int threads,
                           double *stage)
{
    gpu_rates rates = gpu_copy_rates(COPY_BYTES, PIECE);
    stage[COMPUTE] = gpu_incore_run(w).product_seconds;
    stage[UP] = (double)r->io.h2d_bytes / rates.up;
    stage[DOWN] = (double)r->io.d2h_bytes / rates.down;
    stage[WRITE] = (double)r->io.file_write_bytes / write_rate(w, f->probe);
    stage[DISK] = 0;
    if (w->cold) {
        forget(f->a);
        stage[DISK] = 2 * (double)w->matrix_bytes / read_rate(f->a, threads);
    }
    stage[COPY] = (double)r->io.file_read_bytes / read_rate(f->a, threads);
}

static double run_jask(const gpu_case *w, jask_context *ctx, const files *f, jask_report *report)
{
    jask_array *a = NULL, *b = NULL;
    jask_dot_args args;
    jask_error err;
    double start;
    if (w->cold) {
        forget(f->a);
        forget(f->b);
    }
    remove(f->d); /* deleting the previous result is no part of making the next */
    start = bench_now();
    jask_dot_args_init(&args, sizeof args);
    args.output = f->d;
    if (jask_array_open(f->a, &a, &err) || jask_array_open(f->b, &b, &err) ||
        jask_dot(ctx, a, b, &args, NULL, report, &err))
        bench_die("product", err.msg);
    jask_array_close(a);
    jask_array_close(b);
    return bench_now() - start;
}

static double file_element(const void *product, int64_t i, int64_t j, const gpu_case *w)
{
    jask_error err;
    float f32;
    double f64;
    int wide = w->dtype == JASK_F64;
    if (jask_array_read(product, (uint64_t)(i * w->n + j), 1, wide ? (void *)&f64 : &f32, &err))
        bench_die("result", err.msg);
    return wide ? f64 : (double)f32;
}

static double file_difference(const gpu_case *w, const files *f)
{
    jask_array *d;
    jask_error err;
    double difference;
    if (jask_array_open(f->d, &d, &err))
        bench_die("result", err.msg);
    difference = gpu_difference(w, "jask", file_element, d);
    jask_array_close(d);
    return difference;
}

static void print_case(const gpu_case *w, const files *f, const jask_report *r, int threads,
                       const double *stage, int slowest, double seconds, double ratio)
{
    printf("{\"bench\": \"gpu_files\", \"device\": \"%s\", \"precision\": \"%s\", \"n\": %" PRId64
           ", \"budget_bytes\": %" PRIu64
           ", \"io_threads\": %d, \"io\": \"%s\", \"sync\": %d, \"cold\": %d, "
           "\"pairs\": %d, \"bm\": %" PRId64 ", \"bn\": %" PRId64 ", \"bk\": %" PRId64
           ", \"h2d_bytes\": %" PRIu64 ", \"disk_read_bytes\": %" PRIu64 ", ",
           r->device_description, r->precision, w->n, r->budget_bytes, threads, r->io_engine,
           w->sync, w->cold, w->pairs, r->plan.bm, r->plan.bn, r->plan.bk, r->io.h2d_bytes,
           r->io.disk_read_bytes);
    for (int i = 0; i < STAGES; i++)
        printf("\"%s_seconds\": %.4f, ", stage_names[i], stage[i]);
    printf("\"slowest\": \"%s\", \"jask_seconds\": %.4f, \"fraction\": %.4f, "
           "\"difference_jask\": %.3g}\n",
           stage_names[slowest], seconds, ratio, file_difference(w, f));
}

static void measure(const gpu_case *w, jask_context *ctx, const files *f)
{
    jask_report r = {.struct_size = sizeof r};
    int threads = atoi(gpu_setting(ctx, "io_threads"));
    int slowest = 0;
    double *stages[STAGES + 2], median[STAGES + 2], stage[STAGES];
    for (int i = 0; i < STAGES + 2; i++) {
        stages[i] = malloc((size_t)w->pairs * sizeof(double));
        if (!stages[i])
            bench_die("table", "no memory");
    }
    run_jask(w, ctx, f, &r);
    gpu_incore_run(w); /* all warm */
    for (int p = 0; p < w->pairs; p++) {
        double bound = 0, seconds;
        measure_stages(w, f, &r, threads, stage);
        seconds = run_jask(w, ctx, f, &r);
        for (int i = 0; i < STAGES; i++) {
            stages[i][p] = stage[i];
            bound = fmax(bound, stage[i]);
        }
        stages[STAGES][p] = seconds;
        stages[STAGES + 1][p] = bound / seconds;
        fprintf(stderr, "pair %d: jask %.4f s, bound %.4f s\n", p + 1, seconds, bound);
    }
    for (int i = 0; i < STAGES + 2; i++) {
        median[i] = bench_median(stages[i], w->pairs);
        free(stages[i]);
        if (i < STAGES && median[i] > median[slowest])
            slowest = i;
    }
    print_case(w, f, &r, threads, median, slowest, median[STAGES], median[STAGES + 1]);
}

void gpu_files(gpu_case *w)
{
    files f;
    jask_context *ctx;
    gpu_case_open(w);
    ctx = gpu_context(w);
    snprintf(f.a, sizeof f.a, "%s/bench_a.npy", w->dir);
    snprintf(f.b, sizeof f.b, "%s/bench_b.npy", w->dir);
    snprintf(f.d, sizeof f.d, "%s/bench_d.npy", w->dir);
    snprintf(f.probe, sizeof f.probe, "%s/bench_probe", w->dir);
    bench_write(ctx, f.a, w->dtype, w->n, w->n, w->a);
    bench_write(ctx, f.b, w->dtype, w->n, w->n, w->b);
    gpu_peers_open(w);
    measure(w, ctx, &f);
    gpu_peers_close();
    remove(f.a);
    remove(f.b);
    remove(f.d);
    jask_context_close(ctx);
    gpu_case_close(w);
}
