/* The pipeline on every kind of device: with host memory, where files are read into place, and with
 * memory of its own, where everything is staged. */
#include "../e2e/e2e.h"
#include "mirror.h"

#include "runtime/array.h"
#include "runtime/pipeline.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(pipeline, .init = e2e_init, .fini = e2e_cleanup);

typedef struct setup {
    jk_device_ref device;
    jask_context *ctx;
    int io_threads;
    size_t block_bytes;
    uint64_t budget;
    jk_planner planner;
    bool pipelined;
} setup;

typedef struct product_shape {
    int64_t m, n, k;
    bool ta, tb, with_c, c_fortran;
} product_shape;

static jask_array *make(const char *name, int64_t rows, int64_t cols, bool fortran, unsigned seed)
{
    e2e_form form = {.dtype = JASK_F32, .fortran = fortran};
    const char *path = e2e_path(name);
    e2e_write(path, form, rows, cols, seed, NULL);
    return e2e_open(path);
}

static void check_result(const product_shape *p, const jask_array *d)
{
    double *got = e2e_read(d);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            int64_t sum = 0;
            for (int64_t q = 0; q < p->k; q++)
                sum += (p->ta ? e2e_value(1, q, i) : e2e_value(1, i, q)) *
                       (p->tb ? e2e_value(2, j, q) : e2e_value(2, q, j));
            sum = 2 * sum - (p->with_c ? e2e_value(3, i, j) : 0);
            if (got[i * p->n + j] != (double)sum)
                cr_assert_fail("%" PRId64 "x%" PRId64 "x%" PRId64 " (%" PRId64 ",%" PRId64
                               "): %g, not %" PRId64,
                               p->m, p->n, p->k, i, j, got[i * p->n + j], sum);
        }
    free(got);
}

static void check(const setup *s, const product_shape *p)
{
    jask_array *a = make("a.npy", p->ta ? p->k : p->m, p->ta ? p->m : p->k, false, 1);
    jask_array *b = make("b.npy", p->tb ? p->n : p->k, p->tb ? p->k : p->n, false, 2);
    jask_array *c = p->with_c ? make("c.npy", p->m, p->n, p->c_fortran, 3) : NULL;
    jask_array *d;
    jk_problem problem = {p->m, p->n, p->k, 4, 4, 4, p->with_c};
    jk_machine machine = {.device_bytes = s->budget,
                          .flops = 1e9,
                          .h2d = 1e9,
                          .d2h = 1e9,
                          .disk_read = 1e9,
                          .disk_write = 1e9,
                          .device_memory = 1e10,
                          .step_seconds = 1e-6};
    jk_product product = {.device = &s->device,
                          .ctx = s->ctx,
                          .alpha = 2,
                          .beta = -1,
                          .io_threads = s->io_threads,
                          .block_bytes = s->block_bytes};
    jk_run_stats stats;
    jk_plan plan;
    jask_error err;
    int64_t shape[2] = {p->m, p->n};
    machine.reserve_bytes = jk_pipeline_reserve_bytes(
        &s->device.info, s->budget, p->with_c && p->c_fortran, s->io_threads, s->block_bytes);
    cr_assert_eq(jk_plan_make(&problem, &machine, s->planner, s->pipelined, &plan, &err), JASK_OK,
                 "%s", err.msg);
    cr_assert_eq(jask_array_create(s->ctx, NULL, JASK_F32, 2, shape, &d, &err), JASK_OK, "%s",
                 err.msg);
    product.plan = &plan;
    jk_matrix_of(a, p->ta, "A", &product.a, &err);
    jk_matrix_of(b, p->tb, "B", &product.b, &err);
    jk_matrix_of(d, false, "D", &product.d, &err);
    if (c)
        jk_matrix_of(c, false, "C", &product.c, &err);
    cr_assert_eq(jk_pipeline_run(&product, &stats, &err), JASK_OK, "%s", err.msg);
    check_result(p, d);
    cr_assert_eq(stats.io.h2d_bytes, plan.h2d_bytes);
    cr_assert_eq(stats.io.h2d_pages, plan.h2d_pages);
    cr_assert_eq(stats.io.d2h_bytes, plan.d2h_bytes);
    cr_assert_eq(stats.io.d2h_pages, plan.d2h_pages);
    cr_assert_eq(stats.io.file_read_bytes, plan.file_read_bytes);
    cr_assert_eq(stats.io.file_write_bytes, plan.file_write_bytes);
    cr_assert_eq(stats.peak_device_bytes, plan.peak_bytes);
    jask_array_close(d);
    jask_array_close(c);
    jask_array_close(b);
    jask_array_close(a);
}

/* Blocks smaller than a row, one row, several rows and the whole panel; one reader and many. */
static void check_everything(jk_device_ref device)
{
    static const product_shape shapes[] = {
        {130, 70, 190, .ta = false},
        {70, 130, 190, .ta = true, .with_c = true},
        {65, 67, 33, .tb = true, .with_c = true, .c_fortran = true},
        {1, 300, 40, .ta = true, .tb = true},
        {300, 1, 40, .with_c = true, .c_fortran = true},
        {5, 6, 2000, .with_c = true},
        {700, 3, 3, .with_c = true},
        {700, 301, 9, .ta = false}, /* bands of tiles of different widths share a slot */
    };
    static const size_t blocks[] = {64, 512, 4096, 1 << 20};
    static const jk_planner planners[] = {JK_PLANNER_AUTO, JK_PLANNER_BYTES, JK_PLANNER_PAGE};
    setup s = {.device = device, .ctx = e2e_context(1 << 20, "auto", true)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int v = 0; v < 24; v++) {
            s.block_bytes = blocks[v % 4];
            s.planner = planners[v % 3];
            s.io_threads = v % 5 + 1;
            s.pipelined = v % 7 != 0;
            /* Room for the transposing buffers of the largest blocks. */
            s.budget = (v % 2 ? 32 << 10 : 100000) +
                       (shapes[i].c_fortran ? (uint64_t)s.io_threads * s.block_bytes : 0);
            check(&s, &shapes[i]);
        }
    jask_context_close(s.ctx);
}

Test(pipeline, is_exact_with_host_memory)
{
    jk_device_ref host;
    jask_error err;
    cr_assert_eq(jk_device_select("host", NULL, &host, &err), JASK_OK, "%s", err.msg);
    check_everything(host);
    jk_device_release(&host);
}

Test(pipeline, is_exact_with_device_memory)
{
    check_everything(mirror_open());
    cr_assert_eq(mirror_device_bytes(), 0);
    cr_assert_eq(mirror_pinned_bytes(), 0);
}
