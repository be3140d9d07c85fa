/* A sum of two files under a budget, against a plain loop that reads and writes the same bytes: a block
 * of A, a block of B, a block of the result, one after the other. The two alternate in one process. One
 * JSON line on stdout.
 *
 * usage: bench_add [--dtype TYPE] [--sync] MEBIBYTES BUDGET PAIRS [DIR]   (of each input; in DIR) */
#include "common.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 20 };

typedef struct bench {
    jask_dtype dtype;
    int64_t bytes;
    int pairs, sync;
    char a[512], b[512], d[512];
    jask_context *ctx;
} bench;

static void make_input(const bench *w, const char *path, unsigned seed)
{
    size_t size = jask_dtype_size(w->dtype);
    int64_t shape = w->bytes / (int64_t)size, per = BLOCK / (int64_t)size;
    jask_array *array;
    jask_error err;
    static char block[BLOCK];
    /* Small numbers in every type. */
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i % size == 0 ? (i / size + seed) % 64 : 0);
    if (jask_array_create(w->ctx, path, w->dtype, 1, &shape, &array, &err))
        bench_die("create", err.msg);
    for (int64_t i = 0; i < shape; i += per)
        if (jask_array_write(array, (uint64_t)i, (uint64_t)(shape - i < per ? shape - i : per),
                             block, &err))
            bench_die("write", err.msg);
    if (jask_array_commit(array, &err))
        bench_die("commit", err.msg);
    jask_array_close(array);
}

static double run_jask(const bench *w, jask_report *report)
{
    jask_array *a, *b;
    jask_add_args args;
    jask_error err;
    double start;
    remove(w->d); /* deleting the previous result is no part of making the next */
    start = bench_now();
    jask_add_args_init(&args, sizeof args);
    args.output = w->d;
    args.overflow = JASK_OVERFLOW_WRAP;
    if (jask_array_open(w->a, &a, &err) || jask_array_open(w->b, &b, &err))
        bench_die("open", err.msg);
    if (jask_add(w->ctx, a, b, &args, NULL, report, &err))
        bench_die("add", err.msg);
    jask_array_close(a);
    jask_array_close(b);
    return bench_now() - start;
}

static double run_copy(const bench *w)
{
    static char x[BLOCK], y[BLOCK];
    double start;
    int a, b, d;
    remove(w->d);
    start = bench_now();
    a = open(w->a, O_RDONLY);
    b = open(w->b, O_RDONLY);
    d = open(w->d, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (a < 0 || b < 0 || d < 0)
        bench_die("copy", "cannot open");
    for (int64_t at = 0; at < w->bytes; at += BLOCK) {
        size_t n = (size_t)(w->bytes - at < BLOCK ? w->bytes - at : BLOCK);
        if (pread(a, x, n, at) != (ssize_t)n || pread(b, y, n, at) != (ssize_t)n ||
            pwrite(d, x, n, at) != (ssize_t)n)
            bench_die("copy", "a call came short");
    }
    if (w->sync && fsync(d) != 0)
        bench_die("copy", "fsync");
    close(a);
    close(b);
    close(d);
    return bench_now() - start;
}

static void measure(const bench *w)
{
    double *jask = malloc((size_t)w->pairs * sizeof *jask);
    double *copy = malloc((size_t)w->pairs * sizeof *copy);
    double *ratio = malloc((size_t)w->pairs * sizeof *ratio);
    jask_report r = {.struct_size = sizeof r};
    if (!jask || !copy || !ratio)
        bench_die("memory", "none");
    run_copy(w);
    run_jask(w, &r); /* both warm */
    for (int i = 0; i < w->pairs; i++) {
        copy[i] = run_copy(w);
        jask[i] = run_jask(w, &r);
        ratio[i] = copy[i] / jask[i];
        fprintf(stderr,
                "pair %d: copy %.3f s, jask %.3f s, ratio %.3f  (read %.2f compute %.2f write %.2f "
                "commit %.2f stall %.2f)\n",
                i + 1, copy[i], jask[i], ratio[i], r.read_seconds, r.compute_seconds,
                r.write_seconds, r.commit_seconds, r.stall_seconds);
    }
    printf("{\"bench\": \"add\", \"dtype\": \"%s\", \"input_bytes\": %" PRId64
           ", \"budget_bytes\": %" PRIu64 ", \"sync\": %d, \"pairs\": %d, \"copy_seconds\": %.4f, "
           "\"jask_seconds\": %.4f, \"ratio\": %.4f}\n",
           jask_dtype_name(w->dtype), w->bytes, r.budget_bytes, w->sync, w->pairs,
           bench_median(copy, w->pairs), bench_median(jask, w->pairs),
           bench_median(ratio, w->pairs));
    free(ratio);
    free(copy);
    free(jask);
}

static void usage(void)
{
    fprintf(stderr, "usage: bench_add [--dtype TYPE] [--sync] MEBIBYTES BUDGET PAIRS [DIR]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    bench w = {.dtype = JASK_F32};
    jask_options options;
    jask_error err;
    const char *dir;
    argv++, argc--;
    for (; argc > 0 && argv[0][0] == '-'; argv++, argc--) {
        if (strcmp(argv[0], "--sync") == 0) {
            w.sync = 1;
        } else if (strcmp(argv[0], "--dtype") == 0 && argc > 1) {
            if (jask_dtype_parse(argv[1], &w.dtype, &err))
                bench_die("--dtype", err.msg);
            argv++, argc--;
        } else {
            usage();
        }
    }
    if (argc < 3)
        usage();
    w.bytes = atoll(argv[0]) << 20;
    w.pairs = atoi(argv[2]);
    dir = argc > 3 ? argv[3] : ".";
    if (w.bytes < 1 || w.pairs < 1)
        usage();
    jask_options_init(&options, sizeof options);
    options.sync = w.sync ? 1 : -1;
    options.device = "host";
    if (jask_parse_size(argv[1], &options.memory_budget_bytes, &err) ||
        jask_context_open(&options, &w.ctx, &err))
        bench_die("context", err.msg);
    snprintf(w.a, sizeof w.a, "%s/bench_a.npy", dir);
    snprintf(w.b, sizeof w.b, "%s/bench_b.npy", dir);
    snprintf(w.d, sizeof w.d, "%s/bench_d.npy", dir);
    make_input(&w, w.a, 1);
    make_input(&w, w.b, 2);
    measure(&w);
    remove(w.a);
    remove(w.b);
    remove(w.d);
    jask_context_close(w.ctx);
    return 0;
}
