/* The pipeline on every kind of device: with host memory, where files are read into place, and with
 * memory of its own, where everything is staged. */
#include "../e2e/e2e.h"
#include "gradients.h"
#include "mirror.h"
#include "product.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(pipeline, .init = e2e_init, .fini = e2e_cleanup);

/* Of a result that was whole: tiles before the first are left alone, the others are as they were.
 */
static void check_tiles(const product *p, const double *whole, int64_t first_tile)
{
    const jk_plan *plan = &p->plan;
    double *got = e2e_read(p->d);
    for (int64_t tile = 0; tile < plan->mt * plan->nt; tile++) {
        jk_step step = jk_plan_step(plan, tile * plan->kt);
        for (int64_t i = step.row; i < step.row + step.rows; i++)
            for (int64_t j = step.col; j < step.col + step.cols; j++) {
                int64_t e = i * p->shape.n + j;
                if (got[e] != (tile < first_tile ? 0 : whole[e]))
                    cr_assert_fail("from tile %lld: wrong in tile %lld", (long long)first_tile,
                                   (long long)tile);
            }
    }
    free(got);
}

static void go_on(product *p, const double *whole, int64_t first_tile)
{
    uint64_t elements = (uint64_t)p->shape.m * (uint64_t)p->shape.n;
    float *zeros = calloc((size_t)elements, sizeof *zeros);
    jk_plan_counts rest = jk_plan_rest(&p->plan, first_tile);
    jask_error err;
    cr_assert_eq(jask_array_write(p->d, 0, elements, zeros, &err), JASK_OK, "%s", err.msg);
    free(zeros);
    p->job.first_tile = first_tile;
    cr_assert_eq(jk_pipeline_run(&p->job, &p->stats, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(p->stats.io.h2d_bytes, rest.h2d_bytes);
    cr_assert_eq(p->stats.io.file_read_bytes, rest.file_read_bytes);
    cr_assert_eq(p->stats.io.h2d_pages, rest.h2d_pages);
    cr_assert_eq(p->stats.io.d2h_bytes, rest.d2h_bytes);
    cr_assert_eq(p->stats.io.file_write_bytes, rest.file_write_bytes);
    cr_assert_eq(p->stats.io.d2h_pages, rest.d2h_pages);
    check_tiles(p, whole, first_tile);
}

static void check_going_on(jk_device_ref device)
{
    static const product_shape shapes[] = {
        {130, 170, 190, .ta = true, .with_c = true},
        {265, 67, 133, .tb = true, .with_c = true, .c_fortran = true},
        {90, 200, 20, .ta = false},
    };
    static const jk_planner planners[] = {JK_PLANNER_AUTO, JK_PLANNER_BYTES, JK_PLANNER_PAGE};
    product_setup s = {
        .device = device, .io_threads = 2, .block_bytes = 2048, .budget = 50000, .resumes = true};
    s.ctx = e2e_context(1 << 20, "auto", true);
    for (int v = 0; v < 18; v++) {
        product p;
        double *whole;
        jask_error err;
        s.planner = planners[v % 3];
        s.pipelined = v % 2;
        s.host_budget = (uint64_t)(v % 4) * (24 << 10);
        product_open(&s, &shapes[v / 6], &p);
        cr_assert_eq(jk_pipeline_run(&p.job, &p.stats, &err), JASK_OK, "%s", err.msg);
        product_check(&p);
        whole = e2e_read(p.d);
        for (int64_t tiles = p.plan.mt * p.plan.nt, first = 0; first <= tiles;
             first += jk_max(1, tiles / 5))
            go_on(&p, whole, first);
        free(whole);
        product_close(&p);
    }
    jask_context_close(s.ctx);
}

Test(pipeline, goes_on_from_any_tile)
{
    jk_device_ref host;
    cr_assert_eq(jk_device_select("host", NULL, &host, NULL), JASK_OK);
    check_going_on(host);
    check_going_on(mirror_open());
    jk_device_release(&host);
}

/* How files are read depends on it. A is 64 x 1000 in its file, or the transpose of 1000 x 64; B 1000 x 32. */
Test(pipeline, runs_are_as_long_as_what_lies_together)
{
    static const struct {
        bool trans;
        int64_t bm, bn, bk, b_slots;
        size_t block, run_a, run_b;
    } cases[] = {
        {false, 64, 16, 100, 2, 4096, 400, 64},     /* parts of rows, */
        {false, 64, 16, 100, 2, 256, 256, 64},      /* cut into blocks */
        {false, 16, 32, 10, 2, 4096, 40, 1280},     /* whole rows of B, all of a panel's */
        {false, 16, 32, 1000, 2, 4096, 4096, 4096}, /* a block of them */
        {true, 64, 16, 10, 2, 4096, 2560, 64},      /* and of A, where columns are stored */
        {true, 32, 16, 10, 2, 4096, 128, 64},
        {false, 64, 64, 100, 0, 4096, 400, 0}, /* B's panels are A's */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_plan plan = {.bm = cases[i].bm, .bn = cases[i].bn, .bk = cases[i].bk};
        bool trans = cases[i].trans;
        jk_product job = {
            .plan = &plan,
            .a = {.rows = trans ? 1000 : 64, .cols = trans ? 64 : 1000, .dtype = JASK_F32},
            .b = {.rows = 1000, .cols = 32, .dtype = JASK_F32},
            .block_bytes = cases[i].block,
        };
        job.a.trans = trans;
        plan.b_slots = cases[i].b_slots;
        cr_assert_eq(jk_product_run_bytes(&job, 0), cases[i].run_a, "A of case %zu", i);
        cr_assert_eq(jk_product_run_bytes(&job, 1), cases[i].run_b, "B of case %zu", i);
    }
}

Test(pipeline, is_exact_with_host_memory)
{
    jk_device_ref host;
    jask_error err;
    cr_assert_eq(jk_device_select("host", NULL, &host, &err), JASK_OK, "%s", err.msg);
    product_run_many(host);
    jk_device_release(&host);
}

Test(pipeline, gradients_are_exact_with_host_memory)
{
    jk_device_ref host;
    jask_error err;
    cr_assert_eq(jk_device_select("host", NULL, &host, &err), JASK_OK, "%s", err.msg);
    gradients_run_many(host);
    jk_device_release(&host);
}

Test(pipeline, is_exact_with_device_memory)
{
    product_run_many(mirror_open());
    gradients_run_many(mirror_open());
    cr_assert_eq(mirror_device_bytes(), 0);
    cr_assert_eq(mirror_pinned_bytes(), 0);
}
