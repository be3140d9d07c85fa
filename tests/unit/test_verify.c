/* The check of a product: right results pass, every kind of fault is found. Matrices live in memory
 * and are read through the same windows as files. */
#include "runtime/verify.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY ((uint64_t)64 << 20)
#define LEAST_MEMORY ((uint64_t)4096)

typedef struct matrix {
    int64_t rows, cols; /* as wanted */
    bool trans;         /* stored as its transpose */
    jask_dtype dtype;
    double *at; /* wanted form, values of the type */
    int64_t reads;
    int64_t largest_window;
} matrix;

typedef enum data { NOISE, POSITIVE, INTEGERS, CONSTANT, OUTLIERS, TENTHS, DATA_COUNT } data;

typedef struct problem {
    jask_dtype dtype;
    double alpha, beta;
    uint64_t memory;
    matrix a, b, c, d;
    double told, total;
} problem;

static uint64_t state;

static double uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double rounded(jask_dtype dtype, double x)
{
    return dtype == JASK_F32 ? (double)(float)x : x;
}

static double value(data kind)
{
    double noise = uniform() + uniform() + uniform() + uniform() - 2;
    switch (kind) {
    case POSITIVE:
        return uniform();
    case INTEGERS:
        return floor(uniform() * 17) - 8;
    case CONSTANT:
        return 0.1;
    case OUTLIERS:
        return uniform() < 0.01 ? 1000 * noise : noise;
    case TENTHS:
        return floor(uniform() * 11) / 10;
    default:
        return noise;
    }
}

static matrix matrix_new(int64_t rows, int64_t cols, jask_dtype dtype, bool trans)
{
    matrix m = {.rows = rows, .cols = cols, .trans = trans, .dtype = dtype};
    m.at = calloc((size_t)(rows * cols) + 1, sizeof *m.at);
    cr_assert_not_null(m.at);
    return m;
}

static void fill(matrix *m, data kind)
{
    for (int64_t e = 0; e < m->rows * m->cols; e++)
        m->at[e] = rounded(m->dtype, value(kind));
}

/* As a plain loop in the type of the data computes it, slab by slab of `slab` terms. */
static void multiply(const problem *p, int64_t slab, double *out)
{
    int64_t n = p->b.cols, k = p->a.cols;
    for (int64_t i = 0; i < p->a.rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, part = 0;
            for (int64_t l = 0; l < k; l++) {
                double term = rounded(p->dtype, p->a.at[i * k + l] * p->b.at[l * n + j]);
                part = rounded(p->dtype, part + term);
                if ((l + 1) % slab == 0 || l + 1 == k) {
                    sum = rounded(p->dtype, sum + part);
                    part = 0;
                }
            }
            sum = rounded(p->dtype, p->alpha * sum);
            if (p->beta != 0)
                sum = rounded(p->dtype, sum + rounded(p->dtype, p->beta * p->c.at[i * n + j]));
            out[i * n + j] = sum;
        }
}

static problem problem_new(jask_dtype dtype, int64_t m, int64_t n, int64_t k, data kind)
{
    problem p = {.dtype = dtype, .alpha = 1, .memory = MEMORY};
    p.a = matrix_new(m, k, dtype, false);
    p.b = matrix_new(k, n, dtype, false);
    p.c = matrix_new(m, n, dtype, false);
    p.d = matrix_new(m, n, dtype, false);
    fill(&p.a, kind);
    fill(&p.b, kind);
    fill(&p.c, kind);
    return p;
}

static void problem_free(problem *p)
{
    free(p->a.at);
    free(p->b.at);
    free(p->c.at);
    free(p->d.at);
}

static jask_status read_window(void *user, const jk_window *w, void *dst, int64_t ld,
                               jask_error *err)
{
    matrix *m = user;
    int64_t rows = m->trans ? m->cols : m->rows, cols = m->trans ? m->rows : m->cols;
    (void)err;
    cr_assert(w->row >= 0 && w->rows > 0 && w->row + w->rows <= rows);
    cr_assert(w->col >= 0 && w->cols > 0 && w->col + w->cols <= cols);
    m->reads += w->rows * w->cols;
    m->largest_window = jk_max(m->largest_window, w->rows * ld);
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t c = 0; c < w->cols; c++) {
            int64_t i = m->trans ? w->col + c : w->row + r;
            int64_t j = m->trans ? w->row + r : w->col + c;
            if (m->dtype == JASK_F32)
                ((float *)dst)[r * ld + c] = (float)m->at[i * m->cols + j];
            else
                ((double *)dst)[r * ld + c] = m->at[i * m->cols + j];
        }
    return JASK_OK;
}

static jask_status tick(void *user, double done, double total, jask_error *err)
{
    problem *p = user;
    (void)err;
    cr_assert(done > p->told && done <= total);
    p->told = done;
    p->total = total;
    return JASK_OK;
}

static jk_verify_source source_of(matrix *m)
{
    int64_t rows = m->trans ? m->cols : m->rows, cols = m->trans ? m->rows : m->cols;
    return (jk_verify_source){read_window, m, rows, cols, m->trans};
}

static jk_verify_job job_of(problem *p)
{
    return (jk_verify_job){
        .dtype = p->dtype,
        .m = p->a.rows,
        .n = p->b.cols,
        .k = p->a.cols,
        .alpha = p->alpha,
        .beta = p->beta,
        .a = source_of(&p->a),
        .b = source_of(&p->b),
        .c = source_of(&p->c),
        .d = source_of(&p->d),
        .memory_bytes = p->memory,
        .tick = tick,
        .tick_user = p,
    };
}

static jask_verification verify(problem *p)
{
    jask_verification out = {0};
    jask_error err;
    jk_verify_job job = job_of(p);
    p->told = p->total = 0;
    p->a.reads = p->b.reads = p->c.reads = p->d.reads = 0;
    cr_assert_eq(jk_verify_run(&job, &out, &err), JASK_OK);
    cr_assert_eq(p->told, p->total, "the last call reports all");
    return out;
}

static void expect_pass(problem *p, const char *what)
{
    jask_verification v = verify(p);
    cr_assert(v.passed, "%s: %s %dx%dx%d alpha %g beta %g: z max %g rms %g in row %d", what,
              jask_dtype_name(p->dtype), (int)p->a.rows, (int)p->b.cols, (int)p->a.cols, p->alpha,
              p->beta, v.max_z, v.rms_z, (int)v.worst_row);
    cr_assert_eq(v.unchecked_rows, 0, "%s", what);
}

static jask_verification expect_fail(problem *p, const char *what)
{
    jask_verification v = verify(p);
    cr_assert_not(v.passed, "%s: %s: z max %g rms %g", what, jask_dtype_name(p->dtype), v.max_z,
                  v.rms_z);
    return v;
}

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
    state = 1;
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
    state = 2;
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
    static const int64_t shapes[][3] = {{1, 1, 1},   {7, 5, 3},     {1, 300, 40},  {300, 1, 40},
                                        {40, 30, 1}, {33, 65, 257}, {70, 20, 1030}};
    static const double factors[][2] = {{1, 0}, {-2.7, 0}, {1, 1}, {0.3, -1.7}, {0, 2}};
    state = 3;
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
                multiply(&p, turn % 2 ? k : 32, p.d.at);
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
    state = 4;
    for (size_t q = 0; q < sizeof lengths / sizeof *lengths; q++)
        for (int kind = 0; kind < DATA_COUNT; kind++)
            for (int t = 0; t < 2; t++) {
                problem p = problem_new(t ? JASK_F64 : JASK_F32, 6, 8, lengths[q], (data)kind);
                multiply(&p, p.a.cols, p.d.at);
                expect_pass(&p, "long");
                problem_free(&p);
            }
}

Test(verify, integers_leave_nothing)
{
    state = 5;
    problem p = problem_new(JASK_F32, 40, 50, 300, INTEGERS);
    jask_verification v;
    multiply(&p, 64, p.d.at);
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
    multiply(p, 64, p->d.at);
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
    q.a = matrix_new(p->a.rows, p->a.cols, p->dtype, false);
    q.b = matrix_new(p->b.rows, p->b.cols, p->dtype, false);
    for (int64_t e = 0; e < q.a.rows * q.a.cols; e++)
        q.a.at[e] = tf32(p->a.at[e]);
    for (int64_t e = 0; e < q.b.rows * q.b.cols; e++)
        q.b.at[e] = tf32(p->b.at[e]);
    multiply(&q, 64, p->d.at);
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
    multiply(p, 64, p->d.at);
    p->alpha = alpha;
}

static void break_addend(problem *p)
{
    double beta = p->beta;
    p->beta = 0;
    multiply(p, 64, p->d.at);
    p->beta = beta;
}

Test(verify, every_kind_of_fault_is_found)
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
    state = 6;
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
            multiply(&p, 64, p.d.at);
            expect_pass(&p, "before");
            faults[f].damage(&p);
            v = expect_fail(&p, faults[f].name);
            cr_assert(v.worst_row >= faults[f].first_row && v.worst_row <= faults[f].last_row,
                      "%s: row %d", faults[f].name, (int)v.worst_row);
            problem_free(&p);
        }
}

Test(verify, relative_error_is_a_measurement)
{
    state = 7;
    problem p = problem_new(JASK_F64, 200, 300, 50, NOISE);
    jask_verification v;
    double error = 0, norm = 0;
    multiply(&p, 50, p.d.at);
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

Test(verify, rows_that_must_not_be_finite_pass_unchecked_and_others_fail)
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
    state = 8;
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
                multiply(&p, 11, p.d.at);
            m->at[2 * m->cols + 3] = cases[q].value;
            if (cases[q].propagated)
                multiply(&p, 11, p.d.at);
            v = verify(&p);
            cr_assert_eq(v.passed, cases[q].passed, "%s: z %g", cases[q].name, v.max_z);
            cr_assert_eq(v.unchecked_rows, cases[q].unchecked, "%s", cases[q].name);
            cr_assert_eq(v.worst_row == -1, v.unchecked_rows == 9);
            if (!v.passed)
                cr_assert(isinf(v.max_z) && isinf(v.rms_z) && isinf(v.relative_error));
            problem_free(&p);
        }
}

Test(verify, overflow_of_the_type_is_right_and_underflow_passes)
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
    state = 9;
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        problem p = problem_new(cases[q].dtype, 30, 40, 200, NOISE);
        jask_verification v;
        for (int64_t e = 0; e < 30 * 200; e++)
            p.a.at[e] = rounded(p.dtype, p.a.at[e] * cases[q].scale_a);
        for (int64_t e = 0; e < 200 * 40; e++)
            p.b.at[e] = rounded(p.dtype, p.b.at[e] * cases[q].scale_b);
        multiply(&p, 50, p.d.at);
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
    state = 10;
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
