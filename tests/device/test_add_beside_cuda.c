/* A context with a card multiplies on it. Sums and reductions only pass through: there they are
 * work for the CPU, within the host's budget, and the report says so. */
#include "../e2e/e2e.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(beside_cuda, .init = e2e_init, .fini = e2e_cleanup);

enum { ROWS = 700, COLS = 900 };

static jask_context *open_context(void)
{
    jask_options options;
    jask_context *ctx;
    jask_config config;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 8 << 20;
    options.scratch_dir = e2e_path("");
    options.allow_tmpfs = 1;
    options.sync = -1;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jask_get_config(ctx, &config, sizeof config, &err), JASK_OK, "%s", err.msg);
    cr_assert_str_eq(config.device, "cuda:0");
    cr_assert_eq(config.host_budget_bytes, 1 << 20); /* JASK_HOST_BUDGET */
    return ctx;
}

static jask_array *make(const char *name, unsigned seed)
{
    e2e_write(e2e_path(name), (e2e_form){.dtype = JASK_F64}, ROWS, COLS, seed, NULL);
    return e2e_open(e2e_path(name));
}

Test(beside_cuda, sums_are_the_cpu_s_within_the_host_s_budget)
{
    jask_context *ctx = open_context();
    jask_array *a = make("a.npy", 1), *b = make("b.npy", 2), *d = NULL;
    jask_report report = {.struct_size = sizeof report};
    jask_error err;
    double *got;
    cr_assert_eq(jask_add(ctx, a, b, NULL, &d, &report, &err), JASK_OK, "%s", err.msg);
    got = e2e_read(d);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++)
            cr_assert_eq(got[i * COLS + j], (double)(e2e_value(1, i, j) + e2e_value(2, i, j)));
    cr_assert_str_eq(report.device, "host");
    cr_assert_str_eq(report.device_description, "the CPU beside cuda:0");
    cr_assert_eq(report.peak_device_bytes, 0);
    cr_assert_eq(report.budget_bytes, 1 << 20);
    cr_assert_gt(report.peak_host_bytes, 0);
    cr_assert_leq(report.peak_host_bytes, 1 << 20);
    cr_assert_eq(report.io.file_read_bytes, report.planned.file_read_bytes);
    cr_assert_eq(report.io.file_read_bytes, (uint64_t)2 * ROWS * COLS * 8);
    free(got);
    jask_array_close(d);
    jask_array_close(a);
    jask_array_close(b);
    jask_context_close(ctx);
}

/* Whichever of the two gradients takes more memory. */
Test(beside_cuda, gradients_of_sums_say_what_they_held)
{
    jask_context *ctx = open_context();
    int64_t row[2] = {1, COLS};
    double zeros[COLS] = {0};
    jask_array *whole = make("g.npy", 3);
    jask_array *part = e2e_make("part.npy", JASK_F64, 2, row, zeros);
    for (int first = 0; first < 2; first++) {
        jask_report report = {.struct_size = sizeof report};
        jask_array *da = NULL, *db = NULL;
        jask_error err;
        cr_assert_eq(jask_add_backward(ctx, first ? whole : part, first ? part : whole, whole, NULL,
                                       &da, &db, &report, &err),
                     JASK_OK, "%s", err.msg);
        cr_assert_str_eq(report.device, "host");
        cr_assert_eq(report.peak_device_bytes, 0);
        cr_assert_gt(report.peak_host_bytes, 0);
        cr_assert_eq(report.peak_host_bytes, report.plan.peak_bytes);
        jask_array_close(da);
        jask_array_close(db);
    }
    jask_array_close(part);
    jask_array_close(whole);
    jask_context_close(ctx);
}
