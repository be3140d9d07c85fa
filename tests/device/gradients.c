#include "gradients.h"

#include "../e2e/e2e.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

const gradients_shape gradients_shapes[GRADIENTS_SHAPES] = {
    {130, 70, 9, .ta = false},
    {70, 130, 12, .ta = true, .adds = true},
    {65, 67, 3, .tb = true, .g_fortran = true},
    {300, 31, 4, .ta = true, .tb = true, .g_fortran = true, .adds = true},
    {1, 200, 5, .adds = true},
    /* Blocks of fewer bands than the largest. */
    {700, 301, 2, .tb = true},
};

static jask_array *make(const char *name, int64_t rows, int64_t cols, bool fortran, unsigned seed)
{
    e2e_form form = {.dtype = JASK_F32, .fortran = fortran};
    const char *path = e2e_path(name);
    e2e_write(path, form, rows, cols, seed, NULL);
    return e2e_open(path);
}

/* Rows and columns of an operand, and of its gradient, as they are stored. */
static void extents_of(const gradients_shape *s, int side, int64_t out[2])
{
    int64_t rows = side == JK_ROWS ? s->m : s->k, cols = side == JK_ROWS ? s->k : s->n;
    bool turned = side == JK_ROWS ? s->ta : s->tb;
    out[0] = turned ? cols : rows;
    out[1] = turned ? rows : cols;
}

static void make_plan(const product_setup *setup, gradients *g, uint64_t number)
{
    const gradients_shape *s = &g->shape;
    jk_joint_side side = {
        .bytes = 4, .gradient_bytes = 4, .adds = s->adds, .before_bytes = s->adds ? 4 : 1};
    jk_joint *plan = &g->plan;
    *plan = (jk_joint){.problem = {.m = s->m,
                                   .n = s->n,
                                   .k = s->k,
                                   .bytes = 4,
                                   .sum_bytes = 4,
                                   .g_bytes = 4,
                                   .g_turned = s->g_fortran,
                                   .side = {side, side}},
                       .stays = (int)(number % 2),
                       .slot_align = number % 3 ? 64 : 16};
    plan->problem.side[JK_ROWS].turned = s->ta;
    plan->problem.side[JK_COLS].turned = s->tb;
    /* One to five blocks either way. */
    plan->block[JK_ROWS] = jk_ceil_div(s->m, 1 + (int64_t)(number / 2 % 5));
    plan->block[JK_COLS] = jk_ceil_div(s->n, 1 + (int64_t)(number / 3 % 5));
    cr_assert(jk_joint_set_counts(plan));
    for (int pool = 0; pool < JK_JOINT_POOLS; pool++)
        plan->slots[pool] = 1 + (int64_t)(number / (2 + (uint64_t)pool) % 2);
    int64_t *passing = &plan->slots[JK_JOINT_SUMS + !plan->stays];
    *passing = jk_min(*passing, plan->count[!plan->stays]);
    plan->reserve_bytes = jk_pipeline_reserve_bytes(&setup->device.info, 64 << 10, s->adds,
                                                    setup->io_threads, setup->block_bytes);
    plan->peak_bytes = plan->reserve_bytes;
    for (int pool = 0; pool < JK_JOINT_POOLS; pool++)
        plan->peak_bytes += (uint64_t)plan->slots[pool] * jk_joint_slot_bytes(plan, pool);
}

/* As the operation makes them: dA = G B' is stored transposed as B G', dB = A' G as G' A. */
static void make_jobs(const product_setup *setup, gradients *out)
{
    const gradients_shape *s = &out->shape;
    jk_product *da = &out->jobs[JK_ROWS], *db = &out->jobs[JK_COLS];
    jask_error err;
    *da = (jk_product){.joint = &out->plan,
                       .device = &setup->device,
                       .ctx = setup->ctx,
                       .alpha = 2,
                       .beta = s->adds,
                       .io_threads = setup->io_threads,
                       .block_bytes = setup->block_bytes};
    *db = *da;
    da->other = db;
    jk_matrix_of(out->g, s->ta, "G", s->ta ? &da->b : &da->a, &err);
    jk_matrix_of(out->b, s->ta == s->tb, "B", s->ta ? &da->a : &da->b, &err);
    jk_matrix_of(out->g, s->tb, "G", s->tb ? &db->a : &db->b, &err);
    jk_matrix_of(out->a, s->ta == s->tb, "A", s->tb ? &db->b : &db->a, &err);
    for (int side = 0; side < 2; side++) {
        jk_product *job = &out->jobs[side];
        jk_matrix_of(out->d[side], false, "D", &job->d, &err);
        job->partial = job->d;
        if (s->adds)
            jk_matrix_of(out->before[side], false, "C", &job->c, &err);
    }
}

void gradients_open(const product_setup *setup, const gradients_shape *shape, uint64_t number,
                    gradients *out)
{
    int64_t extents[2];
    jask_error err;
    *out = (gradients){.shape = *shape};
    extents_of(shape, JK_ROWS, extents);
    out->a = make("a.npy", extents[0], extents[1], false, 1);
    extents_of(shape, JK_COLS, extents);
    out->b = make("b.npy", extents[0], extents[1], false, 2);
    out->g = make("g.npy", shape->m, shape->n, shape->g_fortran, 3);
    for (int side = 0; side < 2; side++) {
        extents_of(shape, side, extents);
        cr_assert_eq(jask_array_create(setup->ctx, NULL, JASK_F32, 2, extents, &out->d[side], &err),
                     JASK_OK, "%s", err.msg);
        if (shape->adds)
            out->before[side] = make(side == JK_ROWS ? "da.npy" : "db.npy", extents[0], extents[1],
                                     side == JK_COLS, (unsigned)(4 + side));
    }
    make_plan(setup, out, number);
    make_jobs(setup, out);
}

/* Element (row, p) of A, m x k, or (p, row) of B, k x n; of either's gradient too. */
static int64_t value(const gradients_shape *s, int side, unsigned seed, int64_t row, int64_t p)
{
    bool k_first = (side == JK_COLS) != (side == JK_ROWS ? s->ta : s->tb);
    return k_first ? e2e_value(seed, p, row) : e2e_value(seed, row, p);
}

/* The elements that are not right; the first is told of. */
static int64_t wrong_elements(const gradients *g, int side)
{
    const gradients_shape *s = &g->shape;
    int64_t length = side == JK_ROWS ? s->m : s->n, depth = side == JK_ROWS ? s->n : s->m;
    bool k_first = (side == JK_COLS) != (side == JK_ROWS ? s->ta : s->tb);
    double *got = e2e_read(g->d[side]);
    int64_t wrong = 0;
    for (int64_t row = 0; row < length; row++)
        for (int64_t p = 0; p < s->k; p++) {
            int64_t sum = 0;
            for (int64_t q = 0; q < depth; q++)
                sum += value(s, !side, side == JK_ROWS ? 2 : 1, q, p) *
                       (side == JK_ROWS ? e2e_value(3, row, q) : e2e_value(3, q, row));
            sum = 2 * sum + (s->adds ? value(s, side, (unsigned)(4 + side), row, p) : 0);
            double found = got[k_first ? p * length + row : row * s->k + p];
            if (found != (double)sum && wrong++ == 0)
                cr_log_info("d%c of %" PRId64 "x%" PRId64 "x%" PRId64 " (%" PRId64 ",%" PRId64
                            "): %g, not %" PRId64,
                            "AB"[side], s -> m, s -> n, s -> k, row, p, found, sum);
        }
    free(got);
    return wrong;
}

bool gradients_are_right(const gradients *g)
{
    return wrong_elements(g, JK_ROWS) == 0 && wrong_elements(g, JK_COLS) == 0;
}

void gradients_check(const gradients *g)
{
    const jask_io_cost *io = &g->stats.io;
    const jk_plan_counts *counts = &g->plan.counts;
    cr_assert_eq(wrong_elements(g, JK_ROWS), 0);
    cr_assert_eq(wrong_elements(g, JK_COLS), 0);
    cr_assert_eq(io->h2d_bytes, counts->h2d_bytes);
    cr_assert_eq(io->h2d_pages, counts->h2d_pages);
    cr_assert_eq(io->d2h_bytes, counts->d2h_bytes);
    cr_assert_eq(io->d2h_pages, counts->d2h_pages);
    cr_assert_eq(io->file_read_bytes, counts->file_read_bytes);
    cr_assert_eq(io->file_write_bytes, counts->file_write_bytes);
    cr_assert_eq(g->stats.peak_device_bytes, g->plan.peak_bytes);
}

void gradients_close(gradients *g)
{
    for (int side = 0; side < 2; side++) {
        jask_array_close(g->d[side]);
        jask_array_close(g->before[side]);
    }
    jask_array_close(g->g);
    jask_array_close(g->b);
    jask_array_close(g->a);
}

void gradients_run_many(jk_device_ref device)
{
    static const size_t blocks[] = {64, 512, 4096, 1 << 20};
    product_setup setup = {.device = device, .ctx = e2e_context(1 << 20, "auto", true)};
    for (uint64_t i = 0; i < 40 * GRADIENTS_SHAPES; i++) {
        gradients g;
        jask_error err;
        setup.block_bytes = blocks[i % 4];
        setup.io_threads = (int)(i % 5) + 1;
        gradients_open(&setup, &gradients_shapes[i % GRADIENTS_SHAPES], i / 3, &g);
        cr_assert_eq(jk_pipeline_run(&g.jobs[0], &g.stats, &err), JASK_OK, "%s", err.msg);
        gradients_check(&g);
        gradients_close(&g);
    }
    jask_context_close(setup.ctx);
}
