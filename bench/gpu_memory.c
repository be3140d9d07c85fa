/* Pinned memory to pinned memory: jask itself, with memory in the place of its files, against one
 * cuBLAS call in device memory and against cublasXt.
 *
 * The program is linked such that the library's pread64, pwrite64 and fallocate64 are the functions
 * below. The inputs' files are empty but of the right length, and so is the result's: jask opens,
 * plans, stages, multiplies and commits as ever, but the bytes come from pinned memory and go
 * there. They are copied once each way between it and jask's staging ring, as a read would. */
#include "gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The header of a 2-D .npy file. */
#define NPY_HEADER 128

static struct {
    int on;
    size_t bytes; /* of each matrix */
    struct input {
        ino_t inode;
        const char *data;
    } input[2];
    char *image; /* of the result's file */
    _Atomic uint64_t read_bytes, write_bytes;
} memory;

ssize_t __real_pread64(int fd, void *dst, size_t bytes, off64_t offset);
ssize_t __wrap_pread64(int fd, void *dst, size_t bytes, off64_t offset);
ssize_t __real_pwrite64(int fd, const void *src, size_t bytes, off64_t offset);
ssize_t __wrap_pwrite64(int fd, const void *src, size_t bytes, off64_t offset);
int __real_fallocate64(int fd, int mode, off64_t offset, off64_t bytes);
int __wrap_fallocate64(int fd, int mode, off64_t offset, off64_t bytes);
int __real_posix_fadvise64(int fd, off64_t offset, off64_t bytes, int advice);
int __wrap_posix_fadvise64(int fd, off64_t offset, off64_t bytes, int advice);

ssize_t __wrap_pread64(int fd, void *dst, size_t bytes, off64_t offset)
{
    struct stat st;
    const struct input *input = memory.input;
    if (!memory.on)
        return __real_pread64(fd, dst, bytes, offset);
    if (fstat(fd, &st) != 0)
        return -1;
    input += st.st_ino == memory.input[1].inode;
    if (st.st_ino != input->inode || (size_t)offset + bytes > memory.bytes) {
        errno = EINVAL;
        return -1;
    }
    memcpy(dst, input->data + offset, bytes);
    memory.read_bytes += bytes;
    return (ssize_t)bytes;
}

/* Nothing is written then but the result. */
ssize_t __wrap_pwrite64(int fd, const void *src, size_t bytes, off64_t offset)
{
    if (!memory.on)
        return __real_pwrite64(fd, src, bytes, offset);
    if ((size_t)offset + bytes > memory.bytes + NPY_HEADER) {
        errno = EFBIG;
        return -1;
    }
    memcpy(memory.image + offset, src, bytes);
    if (offset >= NPY_HEADER)
        memory.write_bytes += bytes;
    return (ssize_t)bytes;
}

/* Then jask makes do with the file's length. */
int __wrap_fallocate64(int fd, int mode, off64_t offset, off64_t bytes)
{
    if (!memory.on)
        return __real_fallocate64(fd, mode, offset, bytes);
    errno = EOPNOTSUPP;
    return -1;
}

/* Of the files nothing is read. */
int __wrap_posix_fadvise64(int fd, off64_t offset, off64_t bytes, int advice)
{
    return memory.on ? 0 : __real_posix_fadvise64(fd, offset, bytes, advice);
}

typedef struct files {
    char input[2][512];
    char spec[2][600];
    char output[512];
} files;

/* A file of the matrix's length without a byte in it. */
static void make_input(const gpu_case *w, files *f, int which, const void *data)
{
    struct stat st;
    char *path = f->input[which];
    int fd;
    snprintf(path, sizeof f->input[which], "%s/bench_%c.raw", w->dir, 'a' + which);
    snprintf(f->spec[which], sizeof f->spec[which], "%s/bench_%c.raw@%s:%" PRId64 "x%" PRId64,
             w->dir, 'a' + which, jask_dtype_name(w->dtype), w->n, w->n);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)w->matrix_bytes) != 0 || fstat(fd, &st) != 0)
        bench_die(path, strerror(errno));
    close(fd);
    memory.input[which] = (struct input){st.st_ino, data};
}

static void open_memory(const gpu_case *w, files *f)
{
    make_input(w, f, 0, w->a);
    make_input(w, f, 1, w->b);
    snprintf(f->output, sizeof f->output, "%s/bench_d.npy", w->dir);
    memory.bytes = w->matrix_bytes;
    memory.image = gpu_pin(w->matrix_bytes + NPY_HEADER);
}

static void close_memory(const files *f)
{
    gpu_must(cudaFreeHost(memory.image), "free");
    remove(f->input[0]);
    remove(f->input[1]);
    remove(f->output);
}

static double run_jask(jask_context *ctx, const files *f, jask_report *report)
{
    jask_array *a = NULL, *b = NULL;
    jask_dot_args args;
    jask_error err;
    double start = bench_now(), seconds;
    memory.read_bytes = memory.write_bytes = 0;
    memory.on = 1;
    jask_dot_args_init(&args, sizeof args);
    args.output = f->output;
    if (jask_array_open(f->spec[0], &a, &err) || jask_array_open(f->spec[1], &b, &err) ||
        jask_dot(ctx, a, b, &args, NULL, report, &err))
        bench_die("product", err.msg);
    jask_array_close(a);
    jask_array_close(b);
    memory.on = 0;
    seconds = bench_now() - start;
    if (memory.read_bytes != report->io.file_read_bytes ||
        memory.write_bytes != report->io.file_write_bytes)
        bench_die("jask", "moved bytes by other calls than this benchmark stands in for");
    return seconds;
}

enum { JASK, INCORE, INCORE_COPIES, XT, INCORE_RATIO, COPIES_RATIO, XT_RATIO, COLUMNS };

typedef struct table {
    double *column[COLUMNS];
    double difference[3]; /* jask, in core, cublasXt */
} table;

static void run_pair(const gpu_case *w, jask_context *ctx, const files *f, int with_xt, table *t,
                     int i, jask_report *report)
{
    gpu_incore incore = gpu_incore_run(w);
    double **c = t->column;
    t->difference[1] = gpu_difference(w, "cuBLAS", gpu_element, w->peer);
    c[XT][i] = 0;
    if (with_xt) {
        memset(w->peer, 0xff, w->matrix_bytes);
        c[XT][i] = gpu_xt_run(w);
        t->difference[2] = gpu_difference(w, "cublasXt", gpu_element, w->peer);
    }
    memset(memory.image, 0xff, memory.bytes + NPY_HEADER);
    c[JASK][i] = run_jask(ctx, f, report);
    t->difference[0] = gpu_difference(w, "jask", gpu_element, memory.image + NPY_HEADER);
    c[INCORE][i] = incore.product_seconds;
    c[INCORE_COPIES][i] = incore.seconds;
    c[INCORE_RATIO][i] = c[INCORE][i] / c[JASK][i];
    c[COPIES_RATIO][i] = c[INCORE_COPIES][i] / c[JASK][i];
    c[XT_RATIO][i] = c[XT][i] / c[JASK][i];
    fprintf(stderr,
            "pair %d: jask %.4f s, in core %.4f s (with copies %.4f), cublasXt %.4f; read %.3f "
            "compute %.3f write %.3f stall %.3f\n",
            i + 1, c[JASK][i], c[INCORE][i], c[INCORE_COPIES][i], c[XT][i], report->read_seconds,
            report->compute_seconds, report->write_seconds, report->stall_seconds);
}

static void print_case(const gpu_case *w, jask_context *ctx, const jask_report *r, int with_xt,
                       table *t)
{
    double median[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        median[i] = bench_median(t->column[i], w->pairs);
    printf("{\"bench\": \"gpu_memory\", \"device\": \"%s\", \"dtype\": \"%s\", "
           "\"precision\": \"%s\", \"n\": %" PRId64 ", \"budget_bytes\": %" PRIu64
           ", \"io_threads\": %s, \"pairs\": %d, \"bm\": %" PRId64 ", \"bn\": %" PRId64
           ", \"bk\": %" PRId64 ", \"h2d_bytes\": %" PRIu64 ", \"peak_device_bytes\": %" PRIu64
           ", \"peak_host_bytes\": %" PRIu64
           ", \"jask_seconds\": %.4f, \"incore_seconds\": %.4f, \"incore_copies_seconds\": %.4f, "
           "\"ratio_incore\": %.4f, \"ratio_incore_copies\": %.4f, ",
           r->device_description, jask_dtype_name(w->dtype), r->precision, w->n, r->budget_bytes,
           gpu_setting(ctx, "io_threads"), w->pairs, r->plan.bm, r->plan.bn, r->plan.bk,
           r->io.h2d_bytes, r->peak_device_bytes, r->peak_host_bytes, median[JASK], median[INCORE],
           median[INCORE_COPIES], median[INCORE_RATIO], median[COPIES_RATIO]);
    if (with_xt)
        printf("\"xt_seconds\": %.4f, \"ratio_xt\": %.4f, \"xt_block\": %d, "
               "\"xt_device_bytes\": %zu, \"difference_xt\": %.3g, ",
               median[XT], median[XT_RATIO], gpu_xt_block(), gpu_xt_bytes(), t->difference[2]);
    else
        printf("\"xt_seconds\": null, \"xt_note\": \"cublasXt has no %s\", ",
               w->tf32 ? "tf32" : jask_dtype_name(w->dtype));
    printf("\"difference_jask\": %.3g, \"difference_incore\": %.3g}\n", t->difference[0],
           t->difference[1]);
}

void gpu_memory(gpu_case *w)
{
    jask_report report = {.struct_size = sizeof report};
    jask_context *ctx;
    files f;
    table t = {.difference = {0}};
    int with_xt;
    w->sync = 0; /* there is nothing on the disk */
    w->io = "pread";
    gpu_case_open(w);
    ctx = gpu_context(w);
    for (int i = 0; i < COLUMNS; i++) {
        t.column[i] = malloc((size_t)w->pairs * sizeof(double));
        if (!t.column[i])
            bench_die("table", "no memory");
    }
    open_memory(w, &f);
    gpu_peers_open(w);
    gpu_incore_run(w);
    run_jask(ctx, &f, &report); /* all warm */
    with_xt = gpu_xt_open(w, report.budget_bytes);
    for (int i = 0; i < w->pairs; i++)
        run_pair(w, ctx, &f, with_xt, &t, i, &report);
    print_case(w, ctx, &report, with_xt, &t);
    if (with_xt)
        gpu_xt_close();
    gpu_peers_close();
    close_memory(&f);
    for (int i = 0; i < COLUMNS; i++)
        free(t.column[i]);
    jask_context_close(ctx);
    gpu_case_close(w);
}
