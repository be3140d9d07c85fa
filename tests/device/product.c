#include "product.h"

#include "../e2e/e2e.h"
#include "planner/internal.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

const product_shape product_shapes[PRODUCT_SHAPES] = {
    {130, 70, 90, .ta = false},
    {70, 130, 90, .ta = true, .with_c = true},
    {65, 67, 33, .tb = true, .with_c = true, .c_fortran = true},
    {300, 1, 40, .with_c = true, .c_fortran = true},
    {5, 6, 900, .with_c = true},
    {700, 101, 9, .ta = true, .tb = true},
    /* The last tile has fewer bands than the one before in its slot. */
    {3100, 3, 3, .with_c = true},
};

product_setup product_varied_setup(const jk_device_ref *device, jask_context *ctx, uint64_t v)
{
    static const size_t blocks[] = {2048, 4096, 1 << 16};
    static const jk_planner planners[] = {JK_PLANNER_AUTO, JK_PLANNER_BYTES, JK_PLANNER_PAGE};
    return (product_setup){.device = *device,
                           .ctx = ctx,
                           .io_threads = (int)(v % 3 + 1),
                           .block_bytes = blocks[v / 2 % 3],
                           .budget = v % 2 ? 48 << 10 : 64 << 10,
                           .host_budget = v % 5 * (12 << 10),
                           .planner = planners[v % 3],
                           .pipelined = v % 7 != 0};
}

product_setup product_layered_setup(const jk_device_ref *device, jask_context *ctx, uint64_t v)
{
    product_setup setup = product_varied_setup(device, ctx, v);
    setup.io_threads = v % 4 == 3 ? 12 : (int)(v % 4) + 1;
    setup.budget = 200 << 10;
    setup.planner = JK_PLANNER_BYTES;
    setup.layered = (int)v + 1;
    return setup;
}

static jask_array *make(const char *name, int64_t rows, int64_t cols, bool fortran, unsigned seed)
{
    e2e_form form = {.dtype = JASK_F32, .fortran = fortran};
    const char *path = e2e_path(name);
    e2e_write(path, form, rows, cols, seed, NULL);
    return e2e_open(path);
}

size_t product_staging_bytes(const product_setup *s, const product_shape *shape)
{
    return (size_t)jk_pipeline_host_blocks(shape->with_c && shape->c_fortran, s->io_threads) *
           s->block_bytes;
}

/* Not as the planner would: so that all kinds come with small products. */
static void set_layers(const product_setup *s, const product_shape *shape, jk_plan *plan)
{
    int v = s->layered;
    bool by_rows = v % 2;
    plan->order = by_rows ? JK_ORDER_IJ : JK_ORDER_JI;
    plan->bm = jk_ceil_div(shape->m, 3);
    plan->bn = jk_ceil_div(shape->n, 2);
    plan->bk = jk_ceil_div(shape->k, 5);
    jk_plan_set_grid(plan);
    plan->a_slots = plan->b_slots = s->pipelined ? 2 : 1;
    plan->c_slots = v / 2 % 2 + 1;
    plan->group = 0;
    plan->super_rows = jk_min(v / 4 % 3 + 1, plan->mt);
    plan->super_cols = jk_min(v / 3 % 2 + 1, plan->nt);
    plan->layer = jk_min(v / 5 % 3 + 1, plan->kt);
    plan->a_strips = by_rows ? 1 : plan->super_rows;
    plan->b_strips = by_rows ? plan->super_cols : 1;
    plan->peak_bytes = plan->reserve_bytes + (uint64_t)jk_plan_slots_bytes(plan, plan->slot_align);
    plan->host_reserve_bytes = product_staging_bytes(s, shape);
    plan->host_peak_bytes = plan->host_reserve_bytes + jk_plan_a_strips_bytes(plan) +
                            jk_plan_b_strips_bytes(plan) + jk_plan_sums_bytes(plan);
    plan->host_budget_bytes = plan->host_peak_bytes;
    cr_assert(jk_plan_set_counts(plan));
}

static void make_plan(const product_setup *s, product *p)
{
    const product_shape *shape = &p->shape;
    jk_problem problem = {.m = shape->m,
                          .n = shape->n,
                          .k = shape->k,
                          .a_bytes = 4,
                          .b_bytes = 4,
                          .c_bytes = 4,
                          .read_c = shape->with_c,
                          .resumes = s->resumes};
    jk_machine machine = {.device_bytes = s->budget,
                          .flops = 1e9,
                          .h2d = 1e9,
                          .d2h = 1e9,
                          .disk_read = 1e9,
                          .disk_write = 1e9,
                          .device_memory = 1e10,
                          .step_seconds = 1e-6};
    jask_error err;
    machine.reserve_bytes =
        jk_pipeline_reserve_bytes(&s->device.info, s->budget, shape->with_c && shape->c_fortran,
                                  s->io_threads, s->block_bytes);
    if (!s->device.info.host_memory && s->host_budget > 0) {
        machine.host_reserve_bytes = product_staging_bytes(s, shape);
        machine.host_bytes = machine.host_reserve_bytes + s->host_budget;
    }
    cr_assert_eq(jk_plan_make(&problem, &machine, s->planner, s->pipelined, &p->plan, &err),
                 JASK_OK, "%s", err.msg);
    if (s->layered > 0)
        set_layers(s, shape, &p->plan);
}

void product_open(const product_setup *s, const product_shape *shape, product *out)
{
    int64_t extents[2] = {shape->m, shape->n};
    jask_error err;
    *out = (product){.shape = *shape};
    out->a =
        make("a.npy", shape->ta ? shape->k : shape->m, shape->ta ? shape->m : shape->k, false, 1);
    out->b =
        make("b.npy", shape->tb ? shape->n : shape->k, shape->tb ? shape->k : shape->n, false, 2);
    out->c = shape->with_c ? make("c.npy", shape->m, shape->n, shape->c_fortran, 3) : NULL;
    make_plan(s, out);
    cr_assert_eq(jask_array_create(s->ctx, NULL, JASK_F32, 2, extents, &out->d, &err), JASK_OK,
                 "%s", err.msg);
    out->job = (jk_product){.plan = &out->plan,
                            .device = &s->device,
                            .ctx = s->ctx,
                            .alpha = 2,
                            .beta = -1,
                            .io_threads = s->io_threads,
                            .block_bytes = s->block_bytes};
    jk_matrix_of(out->a, shape->ta, "A", &out->job.a, &err);
    jk_matrix_of(out->b, shape->tb, "B", &out->job.b, &err);
    jk_matrix_of(out->d, false, "D", &out->job.d, &err);
    if (out->c)
        jk_matrix_of(out->c, false, "C", &out->job.c, &err);
}

static void check_elements(const product *p)
{
    const product_shape *s = &p->shape;
    double *got = e2e_read(p->d);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            int64_t sum = 0;
            for (int64_t q = 0; q < s->k; q++)
                sum += (s->ta ? e2e_value(1, q, i) : e2e_value(1, i, q)) *
                       (s->tb ? e2e_value(2, j, q) : e2e_value(2, q, j));
            sum = 2 * sum - (s->with_c ? e2e_value(3, i, j) : 0);
            if (got[i * s->n + j] != (double)sum)
                cr_assert_fail("%" PRId64 "x%" PRId64 "x%" PRId64 " (%" PRId64 ",%" PRId64
                               "): %g, not %" PRId64,
                               s->m, s->n, s->k, i, j, got[i * s->n + j], sum);
        }
    free(got);
}

void product_check(const product *p)
{
    const jask_io_cost *io = &p->stats.io;
    const jk_plan *plan = &p->plan;
    check_elements(p);
    cr_assert_eq(io->h2d_bytes, plan->h2d_bytes);
    cr_assert_eq(io->h2d_pages, plan->h2d_pages);
    cr_assert_eq(io->d2h_bytes, plan->d2h_bytes);
    cr_assert_eq(io->d2h_pages, plan->d2h_pages);
    cr_assert_eq(io->file_read_bytes, plan->file_read_bytes);
    cr_assert_eq(io->file_write_bytes, plan->file_write_bytes);
    cr_assert_eq(p->stats.peak_device_bytes, plan->peak_bytes);
    if (plan->host_budget_bytes > 0)
        cr_assert_leq(p->stats.peak_host_bytes, plan->host_budget_bytes);
    if (plan->a_strips + plan->b_strips > 0 && !p->stats.note[0])
        cr_assert_eq(p->stats.peak_host_bytes, plan->host_peak_bytes);
}

void product_close(product *p)
{
    jask_array_close(p->d);
    jask_array_close(p->c);
    jask_array_close(p->b);
    jask_array_close(p->a);
}

void product_run(const product_setup *setup, const product_shape *shape)
{
    product p;
    jask_error err;
    product_open(setup, shape, &p);
    cr_assert_eq(jk_pipeline_run(&p.job, &p.stats, &err), JASK_OK, "%s", err.msg);
    product_check(&p);
    product_close(&p);
}

void product_run_many(jk_device_ref device)
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
    uint64_t workspace = device.info.workspace_bytes > 0 ? 64 << 10 : 0;
    product_setup s = {.device = device, .ctx = e2e_context(1 << 20, "auto", true)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int v = 0; v < 24; v++) {
            s.block_bytes = blocks[v % 4];
            s.planner = planners[v % 3];
            s.io_threads = v % 5 + 1;
            s.pipelined = v % 7 != 0;
            s.host_budget = (uint64_t)(v % 5) * (30 << 10);
            /* Room for the transposing buffers of the largest blocks. */
            s.budget = workspace + (v % 2 ? 32 << 10 : 100000) +
                       (shapes[i].c_fortran ? (uint64_t)s.io_threads * s.block_bytes : 0);
            product_run(&s, &shapes[i]);
        }
    jask_context_close(s.ctx);
}
