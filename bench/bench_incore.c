/* File to file under a budget, against one BLAS call on the same data in memory. The two alternate
 * in one process, so both see the same machine, BLAS and threads. One JSON line on stdout.
 *
 * usage: bench_incore [--dtype f32|f64] [--no-sync] [--deterministic] N BUDGET PAIRS [DIR]
 * (N x N x N; inputs in DIR) */
#include "common.h"

#include <cblas.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    jask_dtype dtype;
    int64_t n;
    const char *budget;
    int sync, deterministic;
    char a[512], b[512], c[512];
    jask_context *ctx;
    void *x, *y, *z;
} bench;

static double run_incore(void *user)
{
    const bench *w = user;
    double start = bench_now();
    int n = (int)w->n;
    if (w->dtype == JASK_F32)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, w->x, n, w->y, n, 0,
                    w->z, n);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, w->x, n, w->y, n, 0,
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
    for (int64_t i = 0; i < w->n; i += 997) {
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
    printf("{\"bench\": \"incore\", \"dtype\": \"%s\", \"n\": %" PRId64
           ", \"budget_bytes\": %" PRIu64
           ", \"sync\": %d, \"deterministic\": %d, \"pairs\": %d, \"schedule\": \"%s\", "
           "\"bm\": %" PRId64 ", \"bn\": %" PRId64 ", \"bk\": %" PRId64 ", \"h2d_bytes\": %" PRIu64
           ", \"disk_read_bytes\": %" PRIu64
           ", \"incore_seconds\": %.4f, \"jask_seconds\": %.4f, \"ratio\": %.4f, "
           "\"max_difference\": %.3g}\n",
           jask_dtype_name(w->dtype), w->n, r->budget_bytes, w->sync, w->deterministic, pairs,
           r->plan.schedule, r->plan.bm, r->plan.bn, r->plan.bk, r->io.h2d_bytes,
           r->io.disk_read_bytes, race.other_seconds, race.jask_seconds, race.ratio, difference(w));
}

static void usage(void)
{
    fprintf(stderr,
            "usage: bench_incore [--dtype f32|f64] [--no-sync] [--deterministic] N BUDGET PAIRS "
            "[DIR]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    bench w = {.dtype = JASK_F32, .sync = 1};
    jask_options options;
    jask_error err;
    const char *dir;
    size_t bytes;
    int pairs;
    argv++, argc--;
    for (; argc > 0 && argv[0][0] == '-'; argv++, argc--) {
        if (strcmp(argv[0], "--no-sync") == 0)
            w.sync = 0;
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
    w.n = atoll(argv[0]);
    pairs = atoi(argv[2]);
    dir = argc > 3 ? argv[3] : ".";
    jask_options_init(&options, sizeof options);
    options.sync = w.sync ? 1 : -1;
    options.deterministic = w.deterministic;
    if (w.n < 1 || pairs < 1)
        usage();
    if (jask_parse_size(argv[1], &options.memory_budget_bytes, &err) ||
        jask_context_open(&options, &w.ctx, &err))
        bench_die("context", err.msg);
    snprintf(w.a, sizeof w.a, "%s/bench_a.npy", dir);
    snprintf(w.b, sizeof w.b, "%s/bench_b.npy", dir);
    snprintf(w.c, sizeof w.c, "%s/bench_c.npy", dir);
    bytes = (size_t)w.n * (size_t)w.n * jask_dtype_size(w.dtype);
    w.x = malloc(bytes);
    w.y = malloc(bytes);
    w.z = malloc(bytes);
    if (!w.x || !w.y || !w.z)
        usage();
    bench_fill(w.dtype, w.x, w.n * w.n, 1);
    bench_fill(w.dtype, w.y, w.n * w.n, 2);
    bench_write(w.ctx, w.a, w.dtype, w.n, w.x);
    bench_write(w.ctx, w.b, w.dtype, w.n, w.y);
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
