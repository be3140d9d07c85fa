/* The check of a product: its parts, and that right results pass. */
#include "verify_problem.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

Test(verify, random_vector_has_no_small_component_and_the_right_moments)
{
    enum { COUNT = 100000 };
    double *x = malloc(COUNT * sizeof *x), piece[7];
    double sum = 0, squares = 0, neighbours = 0;
    cr_assert_not_null(x);
    jk_verify_vector(0, COUNT, x);
    for (int j = 0; j < COUNT; j++) {
        cr_assert(fabs(x[j]) >= 1 && fabs(x[j]) < 2);
        sum += x[j];
        squares += x[j] * x[j];
        neighbours += x[j] * x[j ? j - 1 : 0];
    }
    /* Six standard deviations. */
    cr_assert_lt(fabs(sum), 6 * sqrt(7. / 3 * COUNT));
    cr_assert_lt(fabs(squares - 7. / 3 * COUNT), 6 * sqrt(0.76 * COUNT));
    cr_assert_lt(fabs(neighbours), 6 * 7. / 3 * sqrt(COUNT));
    jk_verify_vector(54321, 7, piece);
    cr_assert_arr_eq(piece, x + 54321, sizeof piece);
    free(x);
}

Test(verify, inner_loops_agree_with_their_plain_twins)
{
    double a[4 * JK_VERIFY_TILE], u[JK_VERIFY_TILE], v[JK_VERIFY_TILE];
    static const int64_t lengths[] = {0, 1, 7, 8, 9, 255, 256};
    seed_values(1);
    for (int e = 0; e < 4 * JK_VERIFY_TILE; e++)
        a[e] = value(INTEGERS);
    for (int e = 0; e < JK_VERIFY_TILE; e++) {
        u[e] = value(INTEGERS);
        v[e] = value(INTEGERS);
    }
    for (size_t q = 0; q < sizeof lengths / sizeof *lengths; q++) {
        double s = 3, t = 5, want_s = 3, want_t = 5;
        double ss[JK_VERIFY_TILE] = {0}, tt[JK_VERIFY_TILE] = {0};
        int64_t n = lengths[q];
        for (int64_t c = 0; c < n; c++) {
            want_s += a[c] * u[c];
            want_t += a[c] * v[c] * a[c] * v[c];
        }
        jk_verify_row(a, u, v, n, &s, &t);
        cr_assert_eq(s, want_s);
        cr_assert_eq(t, want_t);
        jk_verify_columns(a, u, v, n, ss, tt);
        for (int64_t c = 0; c < JK_VERIFY_TILE; c++) {
            double column_s = 0, column_t = 0;
            for (int r = 0; r < 4 && c < n; r++) {
                double x = a[r * JK_VERIFY_TILE + c];
                column_s += x * u[r];
                column_t += x * v[r] * x * v[r];
            }
            cr_assert_eq(ss[c], column_s);
            cr_assert_eq(tt[c], column_t);
        }
    }
}

static double drift_of(jask_dtype dtype, data kind, int64_t k)
{
    problem p = problem_new(dtype, 20, 6, k, kind);
    jk_verify_job job = job_of(&p);
    jk_probe probe = {.chunk = k, .b = calloc((size_t)(JK_PROBE_COLS * k), sizeof(double))};
    jk_verify_view a = {p.a.at, JASK_F64, 0, 0, 20, k, k, 1};
    jk_verify_view b = {p.b.at, JASK_F64, 0, 0, k, 6, 6, 1};
    double drift;
    cr_assert_not_null(probe.b);
    jk_probe_start(&probe, &job, 0, 20);
    jk_probe_take_b(&probe, &b);
    jk_probe_take_a(&probe, &a);
    drift = jk_probe_drift(&probe);
    free(probe.b);
    problem_free(&p);
    return drift;
}

Test(verify, probe_tells_drift_from_noise)
{
    seed_values(2);
    for (int64_t k = 64; k <= 4096; k *= 8)
        for (int t = 0; t < 2; t++) {
            jask_dtype dtype = t ? JASK_F64 : JASK_F32;
            cr_assert_lt(drift_of(dtype, NOISE, k), 0.5);
            cr_assert_lt(drift_of(dtype, POSITIVE, k), 0.5);
            cr_assert_lt(drift_of(dtype, OUTLIERS, k), 0.5);
            cr_assert_eq(drift_of(dtype, INTEGERS, k), 0);
            if (k >= 512)
                cr_assert_gt(drift_of(dtype, CONSTANT, k), (double)k / 4);
        }
}

Test(verify, right_results_pass_in_every_layout)
{
    static const int64_t shapes[][3] = {{1, 1, 1},   {7, 5, 3},    {1, 300, 40},  {300, 1, 40},
                                        {40, 30, 1}, {200, 9, 10}, {33, 65, 257}, {70, 20, 1030}};
    static const double factors[][2] = {{1, 0}, {-2.7, 0}, {1, 1}, {0.3, -1.7}, {0, 2}};
    seed_values(3);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int kind = 0; kind < DATA_COUNT; kind++)
            for (int turn = 0; turn < 16; turn++) {
                int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
                jask_dtype dtype = (turn + kind) % 3 ? JASK_F32 : JASK_F64;
                problem p = problem_new(dtype, m, n, k, (data)kind);
                p.a.trans = turn & 1;
                p.b.trans = turn & 2;
                p.c.trans = turn & 4;
                p.d.trans = turn & 8;
                p.alpha = rounded(dtype, factors[turn % 5][0]);
                p.beta = rounded(dtype, factors[turn % 5][1]);
                multiply(&p, turn % 3 == 0 ? 1 : turn % 3 == 1 ? 32 : k);
                expect_pass(&p, "roomy");
                cr_assert_eq(p.a.reads, p.alpha != 0 ? m * k : 0);
                cr_assert_eq(p.b.reads, p.alpha != 0 ? k * n : 0);
                cr_assert_eq(p.c.reads, p.beta != 0 ? m * n : 0);
                cr_assert_eq(p.d.reads, m * n);
                p.memory = LEAST_MEMORY;
                p.a.largest_window = 0;
                expect_pass(&p, "tight");
                cr_assert_leq((uint64_t)p.a.largest_window * jask_dtype_size(dtype),
                              LEAST_MEMORY / 4);
                problem_free(&p);
            }
}

Test(verify, long_sums_pass_in_the_worst_order)
{
    static const int64_t lengths[] = {2, 16, 256, 4096, 65536};
    seed_values(4);
    for (size_t q = 0; q < sizeof lengths / sizeof *lengths; q++)
        for (int kind = 0; kind < DATA_COUNT; kind++)
            for (int t = 0; t < 2; t++) {
                problem p = problem_new(t ? JASK_F64 : JASK_F32, 6, 8, lengths[q], (data)kind);
                multiply(&p, p.a.cols);
                expect_pass(&p, "long");
                problem_free(&p);
            }
}

Test(verify, many_additions_to_a_large_addend_pass)
{
    seed_values(11);
    for (int t = 0; t < 4; t++) {
        problem p = problem_new(t & 1 ? JASK_F64 : JASK_F32, 20, 30, 4096, POSITIVE);
        p.beta = 8192;
        if (t & 2) { /* it all cancels */
            p.beta = 0;
            multiply(&p, 1);
            memcpy(p.c.at, p.d.at, 20 * 30 * sizeof *p.c.at);
            p.beta = -1;
        }
        multiply(&p, 1);
        expect_pass(&p, "large addend");
        problem_free(&p);
    }
}

/* Products that are exact leave the rounding of the check alone, over a long row. */
Test(verify, its_own_rounding_passes)
{
    problem p = problem_new(JASK_F64, 8, 200000, 1, INTEGERS);
    seed_values(12);
    for (int turn = 0; turn < 2; turn++) {
        p.d.trans = turn;
        multiply(&p, 1);
        expect_pass(&p, "long rows");
    }
    problem_free(&p);
}

Test(verify, integers_leave_nothing)
{
    seed_values(5);
    problem p = problem_new(JASK_F32, 40, 50, 300, INTEGERS);
    jask_verification v;
    multiply(&p, 64);
    v = verify(&p);
    cr_assert(v.passed);
    cr_assert_lt(v.max_z, 1e-5);
    cr_assert_lt(v.relative_error, 1e-13);
    memset(p.a.at, 0, sizeof(double) * 40 * 300);
    memset(p.d.at, 0, sizeof(double) * 40 * 50);
    v = verify(&p);
    cr_assert(v.passed);
    cr_assert_eq(v.max_z, 0);
    cr_assert_eq(v.relative_error, 0);
    problem_free(&p);
}

Test(verify, empty_products_pass_and_an_empty_k_gives_beta_c)
{
    static const int64_t shapes[][3] = {{0, 5, 5}, {5, 0, 5}, {5, 5, 0}};
    for (int s = 0; s < 3; s++) {
        problem p = problem_new(JASK_F32, shapes[s][0], shapes[s][1], shapes[s][2], NOISE);
        expect_pass(&p, "empty");
        p.beta = 1;
        memcpy(p.d.at, p.c.at, (size_t)(p.d.rows * p.d.cols) * sizeof(double));
        expect_pass(&p, "empty, beta 1");
        if (s == 2) {
            p.beta = 0;
            expect_fail(&p, "C where zeros belong");
        }
        problem_free(&p);
    }
}

static jask_status refuse_read(void *user, const jk_window *w, void *dst, int64_t ld,
                               jask_error *err)
{
    (void)user;
    (void)w;
    (void)dst;
    (void)ld;
    return jk_fail(err, JASK_ERR_IO, "gone");
}

static jask_status refuse_tick(void *user, double done, double total, jask_error *err)
{
    int *left = user;
    (void)done;
    (void)total;
    return --*left < 0 ? jk_fail(err, JASK_ERR_CANCELED, "enough") : JASK_OK;
}

Test(verify, failures_stop_it_and_leave_the_output_alone)
{
    seed_values(10);
    problem p = problem_new(JASK_F32, 100, 100, 100, NOISE);
    jask_verification out = {.max_z = -5}, same = out;
    jk_verify_job good, job;
    jask_error err;
    int calls;
    p.beta = 1;
    p.memory = LEAST_MEMORY;
    good = job_of(&p);
    for (int q = 0; q < 4; q++) {
        job = good;
        *(q == 0   ? &job.a
          : q == 1 ? &job.b
          : q == 2 ? &job.c
                   : &job.d) = (jk_verify_source){refuse_read, NULL, 100, 100, q % 2};
        p.told = 0;
        cr_assert_eq(jk_verify_run(&job, &out, &err), JASK_ERR_IO);
        cr_assert_str_eq(err.msg, "gone");
    }
    job = good;
    job.tick = refuse_tick;
    job.tick_user = &calls;
    for (int n = 0; n < 50; n += 7) {
        calls = n;
        cr_assert_eq(jk_verify_run(&job, &out, &err), JASK_ERR_CANCELED);
        cr_assert_eq(calls, -1, "nothing is read after the refusal");
    }
    cr_assert_arr_eq(&out, &same, sizeof out);
    problem_free(&p);
}
