/* The check of a product finds every kind of fault, also at the ends of the number range. */
#include "verify_problem.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* tf32 keeps 10 bits of the fraction. */
static double tf32(double x)
{
    int exponent;
    double fraction = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(fraction, 11)), exponent - 11);
}

/* Twice the error that a tolerance of 8 standard deviations of a row's rounding error, spread over
 * n elements, lets one element have. */
static void break_element(problem *p)
{
    int64_t n = p->b.cols, k = p->a.cols, i = p->d.rows / 3, j = n / 2;
    double unit = p->dtype == JASK_F32 ? 0x1p-24 : 0x1p-53, q = 0, d = p->d.at[i * n + j];
    for (int64_t l = 0; l < k; l++)
        q += pow(p->a.at[i * k + l] * p->b.at[l * n + j], 2);
    p->d.at[i * n + j] += 2 * 8 * unit * sqrt(7. / 3 * (double)(n * (k + 1)) * (q / 6 + d * d / 9));
}

static void break_slab(problem *p)
{
    int64_t k = p->a.cols;
    double *a = p->a.at;
    p->a.at = malloc((size_t)(p->a.rows * k) * sizeof *a);
    cr_assert_not_null(p->a.at);
    memcpy(p->a.at, a, (size_t)(p->a.rows * k) * sizeof *a);
    for (int64_t i = 0; i < p->a.rows; i++)
        for (int64_t l = k - k / 8; l < k; l++)
            p->a.at[i * k + l] = 0;
    multiply(p, 64);
    free(p->a.at);
    p->a.at = a;
}

static void swap(double *x, double *y)
{
    double z = *x;
    *x = *y;
    *y = z;
}

static void break_tiles(problem *p)
{
    for (int64_t i = 0; i < 16; i++)
        for (int64_t j = 0; j < 16; j++)
            swap(&p->d.at[i * p->d.cols + j], &p->d.at[(i + 32) * p->d.cols + j + 16]);
}

static void break_rows(problem *p)
{
    for (int64_t j = 0; j < p->d.cols; j++)
        swap(&p->d.at[5 * p->d.cols + j], &p->d.at[6 * p->d.cols + j]);
}

static void break_columns(problem *p)
{
    for (int64_t i = 0; i < p->d.rows; i++)
        swap(&p->d.at[i * p->d.cols], &p->d.at[i * p->d.cols + 1]);
}

static void break_order(problem *p)
{
    for (int64_t i = 0; i < p->d.rows; i++)
        for (int64_t j = 0; j < i; j++)
            swap(&p->d.at[i * p->d.cols + j], &p->d.at[j * p->d.cols + i]);
}

static void break_scale(problem *p)
{
    for (int64_t e = 0; e < p->d.rows * p->d.cols; e++)
        p->d.at[e] = rounded(p->dtype, p->d.at[e] * (1 + 1e-3));
}

static void break_precision(problem *p)
{
    problem q = *p;
    q.a = matrix_new(p->a.rows, p->a.cols, p->dtype);
    q.b = matrix_new(p->b.rows, p->b.cols, p->dtype);
    for (int64_t e = 0; e < q.a.rows * q.a.cols; e++)
        q.a.at[e] = tf32(p->a.at[e]);
    for (int64_t e = 0; e < q.b.rows * q.b.cols; e++)
        q.b.at[e] = tf32(p->b.at[e]);
    multiply(&q, 64);
    free(q.a.at);
    free(q.b.at);
}

static void break_stale_row(problem *p)
{
    for (int64_t j = 0; j < p->d.cols; j++)
        p->d.at[9 * p->d.cols + j] = p->d.at[8 * p->d.cols + j];
}

static void break_last_row(problem *p)
{
    memset(p->d.at + (p->d.rows - 1) * p->d.cols, 0, (size_t)p->d.cols * sizeof(double));
}

static void break_last_column(problem *p)
{
    for (int64_t i = 0; i < p->d.rows; i++)
        p->d.at[i * p->d.cols + p->d.cols - 1] = 0;
}

static void break_factor(problem *p)
{
    double alpha = p->alpha;
    p->alpha = 1;
    multiply(p, 64);
    p->alpha = alpha;
}

static void break_addend(problem *p)
{
    double beta = p->beta;
    p->beta = 0;
    multiply(p, 64);
    p->beta = beta;
}

Test(verify_faults, every_kind_of_fault_is_found)
{
    static const struct {
        const char *name;
        void (*damage)(problem *p);
        int64_t first_row, last_row; /* of those that are wrong */
    } faults[] = {
        {"one element", break_element, 16, 16},
        {"a slab of k is missing", break_slab, 0, 47},
        {"two tiles are swapped", break_tiles, 0, 47},
        {"two rows are swapped", break_rows, 5, 6},
        {"two columns are swapped", break_columns, 0, 47},
        {"the transpose", break_order, 0, 47},
        {"scaled by 1.001", break_scale, 0, 47},
        {"inputs rounded to tf32", break_precision, 0, 47},
        {"a stale row", break_stale_row, 9, 9},
        {"the last row is missing", break_last_row, 47, 47},
        {"the last column is missing", break_last_column, 0, 47},
        {"alpha is forgotten", break_factor, 0, 47},
        {"beta is forgotten", break_addend, 0, 47},
    };
    seed_values(6);
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
        for (int t = 0; t < 8; t++) {
            problem p =
                problem_new(t & 1 ? JASK_F64 : JASK_F32, 48, 48, 512, t & 2 ? POSITIVE : NOISE);
            jask_verification v;
            p.alpha = 0.5;
            p.beta = t & 4 ? 0.25 : 0;
            if (p.beta == 0 && faults[f].damage == break_addend)
                p.beta = 1;
            if (faults[f].damage == break_element)
                p.alpha = 1;
            p.a.trans = p.d.trans = t & 4;
            p.memory = t & 4 ? 16384 : MEMORY;
            multiply(&p, 64);
            expect_pass(&p, "before");
            faults[f].damage(&p);
            v = expect_fail(&p, faults[f].name);
            cr_assert(v.worst_row >= faults[f].first_row && v.worst_row <= faults[f].last_row,
                      "%s: row %d", faults[f].name, (int)v.worst_row);
            problem_free(&p);
        }
}

Test(verify_faults, rounded_inputs_pass_where_they_are_allowed_and_hide_no_more)
{
    static const data kinds[] = {NOISE, POSITIVE, OUTLIERS};
    seed_values(13);
    for (int t = 0; t < 3; t++) {
        problem p = problem_new(JASK_F32, 48, 48, 512, kinds[t]);
        break_precision(&p);
        expect_fail(&p, "not allowed");
        p.input_unit = 0x1p-11;
        expect_pass(&p, "tf32");
        break_rows(&p);
        expect_fail(&p, "two rows are swapped");
        break_slab(&p);
        expect_fail(&p, "a slab of k is missing");
        problem_free(&p);
    }
}

Test(verify_faults, relative_error_is_a_measurement)
{
    seed_values(7);
    problem p = problem_new(JASK_F64, 200, 300, 50, NOISE);
    jask_verification v;
    double error = 0, norm = 0;
    multiply(&p, 50);
    for (int64_t e = 0; e < 200 * 300; e++) {
        double off = 1e-3 * value(NOISE);
        error += off * off;
        p.d.at[e] += off;
        norm += p.d.at[e] * p.d.at[e];
    }
    v = expect_fail(&p, "noise");
    cr_assert_float_eq(v.relative_error / sqrt(error / norm), 1, 0.2);
    problem_free(&p);
}

Test(verify_faults, rows_that_must_not_be_finite_pass_unchecked_and_others_fail)
{
    static const struct {
        const char *name;
        char matrix;     /* where the value goes: element (2, 3) */
        double value;    /* NaN or Inf */
        bool propagated; /* to the result */
        bool passed;
        int64_t unchecked;
    } cases[] = {
        {"NaN in A", 'a', NAN, true, true, 1},
        {"Inf in A", 'a', INFINITY, true, true, 1},
        {"NaN in B", 'b', NAN, true, true, 9},
        {"Inf in B", 'b', -INFINITY, true, true, 9},
        {"NaN in C", 'c', NAN, true, true, 1},
        {"NaN in A, lost", 'a', NAN, false, false, 0},
        {"Inf in B, lost", 'b', INFINITY, false, false, 0},
        {"NaN in C, lost", 'c', NAN, false, false, 0},
        {"NaN in D", 'd', NAN, false, false, 0},
        {"Inf in D", 'd', INFINITY, false, false, 0},
    };
    seed_values(8);
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++)
        for (int t = 0; t < 4; t++) {
            problem p = problem_new(t & 1 ? JASK_F64 : JASK_F32, 9, 10, 11, NOISE);
            matrix *m = cases[q].matrix == 'a'   ? &p.a
                        : cases[q].matrix == 'b' ? &p.b
                        : cases[q].matrix == 'c' ? &p.c
                                                 : &p.d;
            jask_verification v;
            p.beta = 1;
            p.a.trans = p.b.trans = t & 2;
            if (!cases[q].propagated)
                multiply(&p, 11);
            m->at[2 * m->cols + 3] = cases[q].value;
            if (cases[q].propagated)
                multiply(&p, 11);
            v = verify(&p);
            cr_assert_eq(v.passed, cases[q].passed, "%s: z %g", cases[q].name, v.max_z);
            cr_assert_eq(v.unchecked_rows, cases[q].unchecked, "%s", cases[q].name);
            cr_assert_eq(v.worst_row == -1, v.unchecked_rows == 9);
            if (!v.passed)
                cr_assert(isinf(v.max_z) && isinf(v.rms_z) && isinf(v.relative_error));
            problem_free(&p);
        }
}

Test(verify_faults, overflow_of_the_type_is_right_and_underflow_passes)
{
    static const struct {
        jask_dtype dtype;
        double scale_a, scale_b;
        bool overflows;
    } cases[] = {
        {JASK_F32, 1e25, 1e25, true},      {JASK_F32, 1e-30, 1e-30, false},
        {JASK_F32, 1e-22, 1e-21, false},   {JASK_F32, 1e-38, 1e37, false},
        {JASK_F32, 1e-42, 1e3, false},     {JASK_F64, 1e200, 1e200, true},
        {JASK_F64, 1e-200, 1e-200, false}, {JASK_F64, 1e200, 1e-100, false},
        {JASK_F64, 1e-300, 1e100, false},  {JASK_F64, 1e-160, 1e-160, false},
    };
    seed_values(9);
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        problem p = problem_new(cases[q].dtype, 30, 40, 200, NOISE);
        jask_verification v;
        for (int64_t e = 0; e < 30 * 200; e++)
            p.a.at[e] = rounded(p.dtype, p.a.at[e] * cases[q].scale_a);
        for (int64_t e = 0; e < 200 * 40; e++)
            p.b.at[e] = rounded(p.dtype, p.b.at[e] * cases[q].scale_b);
        multiply(&p, 50);
        v = verify(&p);
        cr_assert(v.passed, "%g x %g: z max %g rms %g", cases[q].scale_a, cases[q].scale_b, v.max_z,
                  v.rms_z);
        cr_assert_eq(v.unchecked_rows, cases[q].overflows ? 30 : 0, "%g x %g: %d unchecked",
                     cases[q].scale_a, cases[q].scale_b, (int)v.unchecked_rows);
        p.d.at[41] = 1;
        if (!cases[q].overflows && cases[q].scale_a * cases[q].scale_b < 1e-6)
            expect_fail(&p, "1 where next to nothing belongs");
        problem_free(&p);
    }
}

Test(verify_faults, a_long_drifting_sum_does_not_excuse_everything)
{
    problem p = problem_new(JASK_F32, 1, 1, 1 << 21, CONSTANT);
    multiply(&p, 512);
    expect_pass(&p, "in slabs");
    p.d.at[0] *= 1.2;
    expect_fail(&p, "a fifth too much");
    problem_free(&p);
}

Test(verify_faults, a_wrong_element_does_not_excuse_itself_by_its_size)
{
    problem p = problem_new(JASK_F32, 4, 4, 65536, CONSTANT);
    multiply(&p, 512);
    p.d.at[5] = 1e30;
    cr_assert_gt(expect_fail(&p, "1e30").max_z, 1e20);
    problem_free(&p);
}
