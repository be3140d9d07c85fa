/* Products through the public API on the CUDA device: what the report says, and which budget holds
 * for what. */
#include "../e2e/e2e.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void begin(void)
{
    e2e_init();
    setenv("JASK_DEVICE", "cuda", 1);
}

TestSuite(dot_cuda, .init = begin, .fini = e2e_cleanup);

static jask_array *make(const char *name, jask_dtype dtype, int64_t rows, int64_t cols,
                        unsigned seed)
{
    e2e_form form = {.dtype = dtype};
    const char *path = e2e_path(name);
    e2e_write(path, form, rows, cols, seed, NULL);
    return e2e_open(path);
}

static void check_product(const jask_array *d, int64_t m, int64_t n, int64_t k)
{
    double *got = e2e_read(d);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t want = 0;
            for (int64_t q = 0; q < k; q++)
                want += e2e_value(1, i, q) * e2e_value(2, q, j);
            if (got[i * n + j] != (double)want)
                cr_assert_fail("(%" PRId64 ",%" PRId64 "): %g, not %" PRId64, i, j, got[i * n + j],
                               want);
        }
    free(got);
}

Test(dot_cuda, reports_the_card_and_the_precision)
{
    static const struct {
        jask_dtype dtype;
        const char *precision, *reported;
    } cases[] = {{JASK_F32, "f32", "f32"}, {JASK_F32, "tf32", "tf32"}, {JASK_F64, "tf32", "f64"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cusim_config config = sim_config(i + 1);
        jask_report report;
        jask_context *ctx;
        jask_array *a, *b, *d;
        setenv("JASK_PRECISION", cases[i].precision, 1);
        cusim_reset(&config);
        ctx = e2e_context(64 << 10, "auto", true);
        a = make("a.npy", cases[i].dtype, 70, 50, 1);
        b = make("b.npy", cases[i].dtype, 50, 90, 2);
        d = e2e_dot(ctx, a, b, NULL, &report);
        check_product(d, 70, 90, 50); /* so small that TF32 is exact */
        cr_assert_str_eq(report.device, "cuda:0");
        cr_assert_not_null(strstr(report.device_description, "PCI 0000:01:00.0"));
        cr_assert_str_eq(report.precision, cases[i].reported);
        cr_assert_str_empty(report.note);
        cr_assert_str_empty(report.device_note);
        cr_assert_gt(report.peak_host_bytes, 0);
        jask_array_close(a);
        jask_array_close(b);
        jask_array_close(d);
        jask_context_close(ctx);
        sim_check_clean("case", i);
    }
}

/* A budget above 0.8 of the card's free memory is clamped; staging keeps to its own. */
Test(dot_cuda, keeps_to_a_budget_for_the_card_and_one_for_staging)
{
    cusim_config config = sim_config(1);
    jask_config in_force;
    jask_report report;
    jask_context *ctx;
    jask_array *a, *b, *d;
    cusim_stats stats;
    jask_error err;
    config.device_bytes = 1 << 20;
    cusim_reset(&config);
    setenv("JASK_HOST_BUDGET", "64KiB", 1);
    ctx = e2e_context(1ULL << 40, "auto", true);
    cr_assert_eq(jask_get_config(ctx, &in_force, sizeof in_force, &err), JASK_OK);
    cr_assert_eq(in_force.memory_budget_bytes, (1 << 20) / 5 * 4);
    cr_assert_eq(in_force.host_budget_bytes, 64 << 10);
    cr_assert_str_eq(in_force.available_source, "free memory of cuda:0");
    a = make("a.npy", JASK_F32, 400, 500, 1);
    b = make("b.npy", JASK_F32, 500, 300, 2);
    d = e2e_dot(ctx, a, b, NULL, &report);
    check_product(d, 400, 300, 500);
    cusim_get_stats(&stats);
    cr_assert_leq(stats.peak_bytes, in_force.memory_budget_bytes);
    cr_assert_leq(stats.pinned_peak_bytes, 64 << 10);
    cr_assert(report.peak_host_bytes >= stats.pinned_peak_bytes &&
              report.peak_host_bytes <= 64 << 10);
    jask_context_close(ctx);
    setenv("JASK_HOST_BUDGET", "8KiB", 1);
    ctx = e2e_context(1 << 20, "auto", true);
    jask_array_close(d);
    cr_assert_eq(jask_dot(ctx, a, b, NULL, &d, NULL, &err), JASK_ERR_BUDGET);
    cr_assert_not_null(strstr(err.msg, "4 reading threads; the least that works is 40KiB"), "%s",
                       err.msg);
    jask_context_close(ctx);
    setenv("JASK_HOST_BUDGET", "40KiB", 1);
    ctx = e2e_context(1 << 20, "auto", true);
    d = e2e_dot(ctx, a, b, NULL, &report);
    check_product(d, 400, 300, 500);
    cr_assert_leq(report.peak_host_bytes, 40 << 10);
    jask_array_close(d);
    jask_array_close(a);
    jask_array_close(b);
    jask_context_close(ctx);
    sim_check_clean("case", 0);
}

/* A host budget that holds more than staging: strips of the inputs and sums stay there, and files are read less
 * often, down to once. */
Test(dot_cuda, reads_files_less_often_the_more_host_memory_there_is)
{
    const uint64_t once = (200 * 250 + 250 * 150) * 4;
    static const char *const budgets[] = {"24KiB", "128KiB", "256KiB", "600KiB"};
    setenv("JASK_IO_THREADS", "2", 1); /* 24 KiB is what staging needs then */
    for (unsigned seed = 1; seed <= 3; seed++) {
        uint64_t before = UINT64_MAX;
        jask_array *a = make("a.npy", JASK_F32, 200, 250, 1),
                   *b = make("b.npy", JASK_F32, 250, 150, 2);
        for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
            jask_report report;
            jask_config in_force;
            sim_separate(seed);
            setenv("JASK_HOST_BUDGET", budgets[i], 1);
            jask_context *ctx = e2e_context(64 << 10, seed % 2 ? "bytes" : "auto", true);
            jask_get_config(ctx, &in_force, sizeof in_force, NULL);
            jask_array *d = e2e_dot(ctx, a, b, NULL, &report);
            check_product(d, 200, 150, 250);
            cr_assert_leq(report.peak_host_bytes, in_force.host_budget_bytes);
            cr_assert_leq(report.io.file_read_bytes, before, "%s", budgets[i]);
            cr_assert_leq(report.io.file_read_bytes, report.io.h2d_bytes);
            if (i == 0)
                cr_assert_eq(report.io.file_read_bytes, report.io.h2d_bytes);
            /* 600 KiB hold the inputs; 256 KiB the sums of all of D, for more copies than are worth it here. */
            cr_assert_eq(report.io.file_read_bytes == once, i == 3 || (i == 2 && seed % 2),
                         "%s: %" PRIu64, budgets[i], report.io.file_read_bytes);
            before = report.io.file_read_bytes;
            jask_array_close(d);
            jask_context_close(ctx);
            sim_check_clean("seed", seed);
        }
        jask_array_close(a);
        jask_array_close(b);
    }
}

static jask_array *make_batches(const char *name, int64_t rows, int64_t cols, unsigned seed)
{
    static float data[3 * 120 * 120];
    const int64_t shape[] = {3, rows, cols};
    for (int64_t i = 0; i < 3 * rows; i++)
        for (int64_t j = 0; j < cols; j++)
            data[i * cols + j] = (float)e2e_value(seed, i, j);
    return e2e_make(name, JASK_F32, 3, shape, data);
}

/* Batches one after the other: what host memory holds of one is nothing to the next. */
Test(dot_cuda, reads_each_batch_once)
{
    jask_report report = {.struct_size = sizeof report};
    jask_array *d = NULL;
    jask_error err;
    sim_separate(3);
    setenv("JASK_HOST_BUDGET", "256KiB", 1);
    jask_context *ctx = e2e_context(48 << 10, "auto", true);
    jask_array *a = make_batches("a.npy", 110, 120, 1), *b = make_batches("b.npy", 120, 100, 2);
    cr_assert_eq(jask_matmul(ctx, a, b, NULL, &d, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(report.io.file_read_bytes, 3 * (110 * 120 + 120 * 100) * 4);
    cr_assert_eq(report.io.file_read_bytes, report.planned.file_read_bytes);
    cr_assert_gt(report.io.h2d_bytes, report.io.file_read_bytes);
    double *got = e2e_read(d);
    for (int64_t e = 0; e < 3 * 110 * 100; e++) {
        int64_t batch = e / 11000, i = e / 100, j = e % 100, want = 0;
        for (int64_t q = 0; q < 120; q++)
            want += e2e_value(1, i, q) * e2e_value(2, batch * 120 + q, j);
        if (got[e] != (double)want)
            cr_assert_fail("element %" PRId64 ": %g, not %" PRId64, e, got[e], want);
    }
    free(got);
    jask_array_close(d);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
    sim_check_clean("case", 0);
}

/* X'X: a panel is copied once and multiplied with itself. */
Test(dot_cuda, copies_a_panel_of_a_gram_product_once)
{
    for (unsigned seed = 1; seed <= 3; seed++) {
        cusim_config config = sim_config(seed);
        jask_report report = {.struct_size = sizeof report};
        jask_dot_args args;
        cusim_reset(&config);
        jask_context *ctx = e2e_context(128 << 10, "auto", true);
        jask_array *x = make("x.npy", JASK_F32, 900, 50, 1),
                   *y = make("y.npy", JASK_F32, 900, 50, 1);
        jask_dot_args_init(&args, sizeof args);
        args.transpose_a = 1;
        jask_array *d = e2e_dot(ctx, x, x, &args, &report), *e = e2e_dot(ctx, x, y, &args, NULL);
        cr_assert_eq(report.io.h2d_bytes, 900 * 50 * 4);
        double *got = e2e_read(d), *want = e2e_read(e);
        for (int i = 0; i < 50 * 50; i++)
            cr_assert_eq(got[i], want[i]);
        free(got);
        free(want);
        jask_array_close(e);
        jask_array_close(d);
        jask_array_close(y);
        jask_array_close(x);
        jask_context_close(ctx);
        sim_check_clean("seed", seed);
    }
}

/* Nothing to multiply: the card has nothing to do, and the host's budget is the one that counts. */
Test(dot_cuda, scales_c_on_the_host)
{
    cusim_config config = sim_config(1);
    jask_dot_args args;
    jask_report report;
    jask_context *ctx;
    jask_array *a, *b, *c, *d;
    double *got;
    cusim_reset(&config);
    ctx = e2e_context(64 << 10, "auto", true);
    a = make("a.npy", JASK_F32, 30, 0, 1);
    b = make("b.npy", JASK_F32, 0, 40, 2);
    c = make("c.npy", JASK_F32, 30, 40, 3);
    jask_dot_args_init(&args, sizeof args);
    args.beta = 2;
    args.c = c;
    d = e2e_dot(ctx, a, b, &args, &report);
    got = e2e_read(d);
    cr_assert_eq(got[45], 2 * (double)e2e_value(3, 1, 5));
    cr_assert_eq(report.peak_device_bytes, 0);
    cr_assert_gt(report.peak_host_bytes, 0);
    free(got);
    jask_array_close(a);
    jask_array_close(b);
    jask_array_close(c);
    jask_array_close(d);
    jask_context_close(ctx);
    sim_check_clean("case", 0);
}

/* Two operations at once share a context, its card and its one cuBLAS handle. */
typedef struct task {
    jask_context *ctx;
    const jask_array *a, *b;
    jask_array *d;
    jask_status st;
    jask_error err;
} task;

static void *run_task(void *arg)
{
    task *t = arg;
    t->st = jask_dot(t->ctx, t->a, t->b, NULL, &t->d, NULL, &t->err);
    return NULL;
}

Test(dot_cuda, several_operations_share_a_context)
{
    cusim_config config = sim_config(4);
    jask_context *ctx;
    jask_array *a, *b;
    pthread_t threads[3];
    task tasks[3];
    cusim_reset(&config);
    ctx = e2e_context(64 << 10, "auto", true);
    a = make("a.npy", JASK_F32, 120, 60, 1);
    b = make("b.npy", JASK_F32, 60, 80, 2);
    for (int i = 0; i < 3; i++) {
        tasks[i] = (task){.ctx = ctx, .a = a, .b = b};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_task, &tasks[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(tasks[i].st, JASK_OK, "%s", tasks[i].err.msg);
        check_product(tasks[i].d, 120, 80, 60);
        jask_array_close(tasks[i].d);
    }
    jask_array_close(a);
    jask_array_close(b);
    jask_context_close(ctx);
    sim_check_clean("case", 0);
}

static double thirds(unsigned seed, int64_t i, int64_t j)
{
    return (double)e2e_value(seed, i, j) / 3;
}

/* The order in which the card gets to its work changes no bit. */
Test(dot_cuda, gives_the_same_bits_under_any_schedule)
{
    e2e_form f32 = {.dtype = JASK_F32};
    size_t bytes = (size_t)110 * 130 * sizeof(double);
    double *first = NULL;
    jask_array *a, *b;
    e2e_write(e2e_path("a.npy"), f32, 110, 90, 1, thirds);
    e2e_write(e2e_path("b.npy"), f32, 90, 130, 2, thirds);
    a = e2e_open(e2e_path("a.npy"));
    b = e2e_open(e2e_path("b.npy"));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        cusim_config config = sim_config(seed);
        jask_context *ctx;
        jask_array *d;
        double *got;
        cusim_reset(&config);
        ctx = e2e_context(64 << 10, "auto", true);
        d = e2e_dot(ctx, a, b, NULL, NULL);
        got = e2e_read(d);
        if (!first)
            first = got;
        cr_assert_eq(memcmp(first, got, bytes), 0, "seed %" PRIu64, seed);
        if (got != first)
            free(got);
        jask_array_close(d);
        jask_context_close(ctx);
        sim_check_clean("seed", seed);
    }
    free(first);
    jask_array_close(a);
    jask_array_close(b);
}

Test(dot_cuda, with_no_card_to_be_seen_auto_is_the_host_and_says_so)
{
    static const char *const lists[] = {"", "-1", "99", "abc"};
    setenv("JASK_DEVICE", "auto", 1);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        jask_report report;
        cusim_stats stats;
        jask_context *ctx;
        jask_array *a, *b, *d;
        setenv("CUDA_VISIBLE_DEVICES", lists[i], 1);
        cusim_reset(NULL);
        ctx = e2e_context(64 << 10, "auto", true);
        a = make("a.npy", JASK_F32, 70, 50, 1);
        b = make("b.npy", JASK_F32, 50, 90, 2);
        d = e2e_dot(ctx, a, b, NULL, &report);
        check_product(d, 70, 90, 50);
        cusim_get_stats(&stats);
        cr_assert_str_eq(report.device, "host");
        cr_assert_not_null(strstr(report.device_note, "CUDA_VISIBLE_DEVICES"), "%s",
                           report.device_note);
        cr_assert_eq(stats.h2d_bytes + stats.products + stats.peak_bytes, 0);
        jask_array_close(a);
        jask_array_close(b);
        jask_array_close(d);
        jask_context_close(ctx);
        sim_check_clean("list", i);
    }
}

static bool card_is_the_clock;

double __real_jk_clock_seconds(void);
double __wrap_jk_clock_seconds(void);

/* A second for each copy and product that the card has done. */
double __wrap_jk_clock_seconds(void)
{
    cusim_stats stats;
    if (!card_is_the_clock)
        return __real_jk_clock_seconds();
    cusim_get_stats(&stats);
    return (double)stats.operations;
}

/* A card that does nothing before it is waited for: the reported time does not end before its work does. */
Test(dot_cuda, reports_the_time_until_the_card_is_done)
{
    cusim_config config = sim_config(4);
    cusim_stats before, after;
    jask_report report;
    jask_context *ctx;
    jask_array *a, *b, *d;
    config.scheduler = CUSIM_PCT;
    cusim_reset(&config);
    ctx = e2e_context(64 << 10, "auto", true);
    a = make("a.npy", JASK_F32, 200, 150, 1);
    b = make("b.npy", JASK_F32, 150, 190, 2);
    card_is_the_clock = true;
    cusim_get_stats(&before);
    d = e2e_dot(ctx, a, b, NULL, &report);
    cusim_get_stats(&after);
    card_is_the_clock = false;
    check_product(d, 200, 190, 150);
    cr_assert_gt(after.operations - before.operations,
                 (uint64_t)(report.io.h2d_pages + report.io.d2h_pages));
    cr_assert_eq(report.seconds, (double)(after.operations - before.operations));
    jask_array_close(a);
    jask_array_close(b);
    jask_array_close(d);
    jask_context_close(ctx);
    sim_check_clean("case", 0);
}
