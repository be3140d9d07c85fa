/* File to file under a budget, against one BLAS call on the same data in memory. The two alternate
 * in one process, so both see the same machine, BLAS and threads. One JSON line on stdout.
 *
 * usage: bench_incore [--dtype f32|f64] [--no-sync] [--cold] [--deterministic] N|MxNxK BUDGET PAIRS [DIR]
 * (N: N x N x N; inputs in DIR; --cold: they are not in the page cache) */
#include "common.h"

#include <cblas.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    jask_dtype dtype;
    int64_t m, n, k;
    int sync, cold, deterministic;
    char a[512], b[512], c[512];
    jask_context *ctx;
    void *x, *y, *z;
} bench;

static double run_incore(void *user)
{
    const bench *w = user;
    double start = bench_now();
    int m = (int)w->m, n = (int)w->n, k = (int)w->k;
    if (w->dtype == JASK_F32)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, w->x, k, w->y, n, 0,
                    w->z, n);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, w->x, k, w->y, n, 0,
                    w->z, n);
    return bench_now() - start;
}

static double run_jask(void *user, jask_report *report)
{
    const bench *w = user;
    double start;
    jask_array *a = NULL, *b = NULL;
    jask_dot_args args;
    jask_error err;
    remove(w->c); /* deleting the previous result is no part of making the next */
    if (w->cold) {
        bench_drop(w->a);
        bench_drop(w->b);
    }
    start = bench_now();
    jask_dot_args_init(&args, sizeof args);
    args.output = w->c;
    if (jask_array_open(w->a, &a, &err) || jask_array_open(w->b, &b, &err))
        bench_die("open", err.msg);
    if (jask_dot(w->ctx, a, b, &args, NULL, report, &err))
        bench_die("dot", err.msg);
    jask_array_close(a);
    jask_array_close(b);
    return bench_now() - start;
}

/* The BLAS of a bench and of the library are one, so the products must agree as well. */
static double difference(const bench *w)
{
    size_t size = jask_dtype_size(w->dtype);
    char *row = malloc((size_t)w->n * size);
    double worst = 0;
    jask_array *c;
    jask_error err;
    if (!row || jask_array_open(w->c, &c, &err))
        bench_die("open result", err.msg);
    for (int64_t i = 0; i < w->m; i += 97) {
        if (jask_array_read(c, (uint64_t)(i * w->n), (uint64_t)w->n, row, &err))
            bench_die("read result", err.msg);
        for (int64_t j = 0; j < w->n; j++) {
            double d = w->dtype == JASK_F32
                           ? (double)(((float *)row)[j] - ((float *)w->z)[i * w->n + j])
                           : ((double *)row)[j] - ((double *)w->z)[i * w->n + j];
            worst = fmax(worst, fabs(d));
        }
    }
    jask_array_close(c);
    free(row);
    return worst;
}

static void measure(bench *w, int pairs)
{
    bench_race race = {
        .other_name = "in core", .other = run_incore, .jask = run_jask, .user = w, .pairs = pairs};
    const jask_report *r = &race.report;
    bench_run_race(&race);
    if (r->note[0])
        fprintf(stderr, "bench_incore: %s\n", r->note);
    printf(
        "{\"bench\": \"incore\", \"device\": \"%s\", \"dtype\": \"%s\", \"m\": %" PRId64
        ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", \"budget_bytes\": %" PRIu64
        ", \"sync\": %d, \"cold\": %d, \"deterministic\": %d, \"pairs\": %d, \"schedule\": \"%s\", "
        "\"bm\": %" PRId64 ", \"bn\": %" PRId64 ", \"bk\": %" PRId64 ", \"h2d_bytes\": %" PRIu64
        ", \"disk_read_bytes\": %" PRIu64
        ", \"incore_seconds\": %.4f, \"jask_seconds\": %.4f, \"ratio\": %.4f, "
        "\"max_difference\": %.3g}\n",
        r->device_description, jask_dtype_name(w->dtype), w->m, w->n, w->k, r->budget_bytes,
        w->sync, w->cold, w->deterministic, pairs, r->plan.schedule, r->plan.bm, r->plan.bn,
        r->plan.bk, r->io.h2d_bytes, r->io.disk_read_bytes, race.other_seconds, race.jask_seconds,
        race.ratio, difference(w));
}

static void *elements(const bench *w, int64_t rows, int64_t cols)
{
    void *data = malloc((size_t)rows * (size_t)cols * jask_dtype_size(w->dtype));
    if (!data)
        bench_die("matrices", "no memory for them");
    return data;
}

static void usage(void)
{
    fprintf(stderr, "usage: bench_incore [--dtype f32|f64] [--no-sync] [--cold] [--deterministic] "
                    "N|MxNxK BUDGET PAIRS [DIR]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    bench w = {.dtype = JASK_F32, .sync = 1};
    jask_options options;
    jask_error err;
    const char *dir;
    int pairs;
    argv++, argc--;
    for (; argc > 0 && argv[0][0] == '-'; argv++, argc--) {
        if (strcmp(argv[0], "--no-sync") == 0)
            w.sync = 0;
        else if (strcmp(argv[0], "--cold") == 0)
            w.cold = 1;
        else if (strcmp(argv[0], "--deterministic") == 0)
            w.deterministic = 1;
        else if (strcmp(argv[0], "--dtype") == 0 && argc > 1) {
            if (jask_dtype_parse(argv[1], &w.dtype, &err))
                bench_die("--dtype", err.msg);
            argv++, argc--;
        } else {
            usage();
        }
    }
    if (argc < 3)
        usage();
    if (sscanf(argv[0], "%" SCNd64 "x%" SCNd64 "x%" SCNd64, &w.m, &w.n, &w.k) != 3)
        w.m = w.n = w.k = atoll(argv[0]);
    pairs = atoi(argv[2]);
    dir = argc > 3 ? argv[3] : ".";
    jask_options_init(&options, sizeof options);
    options.sync = w.sync ? 1 : -1;
    options.deterministic = w.deterministic;
    if (w.m < 1 || w.n < 1 || w.k < 1 || w.m > INT_MAX || w.n > INT_MAX || w.k > INT_MAX ||
        pairs < 1)
        usage();
    if (jask_parse_size(argv[1], &options.memory_budget_bytes, &err) ||
        jask_context_open(&options, &w.ctx, &err))
        bench_die("context", err.msg);
    snprintf(w.a, sizeof w.a, "%s/bench_a.npy", dir);
    snprintf(w.b, sizeof w.b, "%s/bench_b.npy", dir);
    snprintf(w.c, sizeof w.c, "%s/bench_c.npy", dir);
    w.x = elements(&w, w.m, w.k);
    w.y = elements(&w, w.k, w.n);
    w.z = elements(&w, w.m, w.n);
    bench_fill(w.dtype, w.x, w.m * w.k, 1);
    bench_fill(w.dtype, w.y, w.k * w.n, 2);
    bench_write(w.ctx, w.a, w.dtype, w.m, w.k, w.x);
    bench_write(w.ctx, w.b, w.dtype, w.k, w.n, w.y);
    measure(&w, pairs);
    remove(w.a);
    remove(w.b);
    remove(w.c);
    free(w.x);
    free(w.y);
    free(w.z);
    jask_context_close(w.ctx);
    return 0;
}
