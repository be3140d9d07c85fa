#include "verify_problem.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

static uint64_t state;

void seed_values(uint64_t seed)
{
    state = seed;
}

static double uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

double rounded(jask_dtype dtype, double x)
{
    return dtype == JASK_F32 ? (double)(float)x : x;
}

double value(data kind)
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

matrix matrix_new(int64_t rows, int64_t cols, jask_dtype dtype)
{
    matrix m = {.rows = rows, .cols = cols, .dtype = dtype};
    m.at = calloc((size_t)(rows * cols) + 1, sizeof *m.at);
    cr_assert_not_null(m.at);
    return m;
}

static void fill(matrix *m, data kind)
{
    for (int64_t e = 0; e < m->rows * m->cols; e++)
        m->at[e] = rounded(m->dtype, value(kind));
}

void multiply(problem *p, int64_t slab)
{
    int64_t n = p->b.cols, k = p->a.cols;
    for (int64_t i = 0; i < p->a.rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, part = 0;
            if (p->beta != 0)
                sum = rounded(p->dtype, p->beta * p->c.at[i * n + j]);
            for (int64_t l = 0; l < k; l++) {
                double term = rounded(p->dtype, p->a.at[i * k + l] * p->b.at[l * n + j]);
                part = rounded(p->dtype, part + term);
                if ((l + 1) % slab == 0 || l + 1 == k) {
                    sum = rounded(p->dtype, sum + rounded(p->dtype, p->alpha * part));
                    part = 0;
                }
            }
            p->d.at[i * n + j] = sum;
        }
}

problem problem_new(jask_dtype dtype, int64_t m, int64_t n, int64_t k, data kind)
{
    problem p = {.dtype = dtype, .alpha = 1, .memory = MEMORY};
    p.a = matrix_new(m, k, dtype);
    p.b = matrix_new(k, n, dtype);
    p.c = matrix_new(m, n, dtype);
    p.d = matrix_new(m, n, dtype);
    fill(&p.a, kind);
    fill(&p.b, kind);
    fill(&p.c, kind);
    return p;
}

void problem_free(problem *p)
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

jk_verify_job job_of(problem *p)
{
    return (jk_verify_job){
        .dtype = p->dtype,
        .m = p->a.rows,
        .n = p->b.cols,
        .k = p->a.cols,
        .alpha = p->alpha,
        .beta = p->beta,
        .input_unit = p->input_unit,
        .a = source_of(&p->a),
        .b = source_of(&p->b),
        .c = source_of(&p->c),
        .d = source_of(&p->d),
        .memory_bytes = p->memory,
        .tick = tick,
        .tick_user = p,
    };
}

jask_verification verify(problem *p)
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

void expect_pass(problem *p, const char *what)
{
    jask_verification v = verify(p);
    cr_assert(v.passed, "%s: %s %dx%dx%d alpha %g beta %g: z max %g rms %g in row %d", what,
              jask_dtype_name(p->dtype), (int)p->a.rows, (int)p->b.cols, (int)p->a.cols, p->alpha,
              p->beta, v.max_z, v.rms_z, (int)v.worst_row);
    cr_assert_eq(v.unchecked_rows, 0, "%s", what);
}

jask_verification expect_fail(problem *p, const char *what)
{
    jask_verification v = verify(p);
    cr_assert_not(v.passed, "%s: %s: z max %g rms %g", what, jask_dtype_name(p->dtype), v.max_z,
                  v.rms_z);
    return v;
}
