/* Freivalds' check of D = alpha*op(A)op(B) + beta*C, as a measurement.
 *
 * For a random vector x with components +-(1 + U[0,1)), r = Dx - alpha A(Bx) - beta Cx is Ex, E
 * being the error of D. Whatever E is, r_i has mean 0 and variance (7/3) ||E_i||^2, so that r tells
 * how large the error is, and ||r|| / sqrt(7/3) estimates its Frobenius norm.
 *
 * Rounding in a type with unit roundoff u makes an error whose size can be told from the data. A
 * sum of k terms that errs at random in every step has, per element, the variance u^2/3 times the
 * sum of the squares of its partial sums. Those grow like a random walk (terms of both signs) or
 * like a ramp (one sign): k/2 times the sum of the squared terms and k/3 times the square of the
 * result cover both. Over a row, with K = k + 1:
 *
 *     S_i^2 = (7/3) (u^2/3) (P_i + R_i + Q_i)      z_i = r_i / S_i
 *
 *     P_i = alpha^2 (K/2) * sum over l of A_il^2 ||B_l||^2
 *     R_i = (K g/3 + 3) ||D_i||^2
 *     Q_i = beta^2 (K g + 3) ||C_i||^2
 *
 * The 3 stands for the roundings of alpha, of the scaled product and of the last addition; beta*C
 * may have been there before the first term, and then is rounded k times. This is the error of one
 * plain sum over k, the worst order: sums in slabs or blocks make z smaller. g is 1 for data that
 * round at random; for data that do not (constants, few values) it is up to k, the variance of
 * errors that are all alike: verify_probe.c measures it. It ends at DRIFT_MAX, since longer sums in
 * one piece would be of no use to anyone. Underflow adds an absolute term.
 *
 * A D that was rounded once more at the end, to a type with unit w, adds (7/3) (w^2/3) ||D_i||^2.
 *
 * Where A and B may be rounded or cut off to fewer bits, with relative error w, S_i^2 grows by
 * (7/3) w^2 ((2/3) (2/K) P_i + 4 ||D_i||^2).
 *
 * In f64 the sums of the check itself err in the same way, along chains of at most CHECK_CHAIN +
 * length/JK_VERIFY_TILE roundings; K counts those too. This widens S by 3 % at n = k = 4096 and
 * matters only where k is below 200, so that no extended precision is needed. For f32 data it is
 * 2^-29 of S and not counted.
 *
 * For right results the root mean square of z is 0.5 to 0.8 (plain loops) or far less (blocked
 * sums), and up to 1.5 where the data make rows err in common. r_i is a sum of many bounded terms
 * with independent signs, so nearly normal: MAX_Z is ten standard deviations. MAX_RMS_Z is not much
 * less because rows may share their error (a single row, all rows equal); the root mean square then
 * scatters like one z. */
#include "runtime/verify.h"

#include <float.h>
#include <math.h>

#define MAX_Z 8.0
#define MAX_RMS_Z 5.0

#define DRIFT_MAX 65536.0

#define X_VARIANCE (7.0 / 3)

/* Within a tile: the longer chain is that of jk_verify_columns, four columns at a time. */
#define CHECK_CHAIN (JK_VERIFY_TILE / 4 + 8)

/* What is the same for all rows, and what is found. */
typedef struct verdict {
    double n, k, alpha, beta, input_unit;
    double unit, tiny, largest;      /* of the type: roundoff, least denormal, largest number */
    double output_unit, output_tiny; /* of the type that D was rounded to at the end; else 0 */
    double check_chain;              /* roundings of the check itself */
    int64_t rows_before;             /* of earlier batches */
    int64_t checked, unchecked, worst_row;
    double max_z, z_squares, r_squares, d_squares;
} verdict;

/* Norms of row i of op(A)op(B) (as the root of q_i), D and C. */
typedef struct row_norms {
    double ab, d, c;
} row_norms;

static double tolerance(const verdict *v, const row_norms *norms, double drift)
{
    double steps = v->k + 1 + v->check_chain, alike = 1 + fmin(drift, DRIFT_MAX);
    double product = fabs(v->alpha) * norms->ab, addend = fabs(v->beta) * norms->c;
    /* A wrong D must not excuse itself by its size: no right one is larger than this. */
    double result = fmin(norms->d, sqrt(v->k) * product + addend);
    double rounding = hypot(hypot(sqrt(steps / 2) * product, sqrt(steps * alike / 3 + 3) * result),
                            sqrt(steps * alike + 3) * addend);
    double inputs = v->input_unit * hypot(sqrt(2.0 / 3) * product, 2 * result);
    double underflow = (v->k + 2) * v->tiny * fmax(1, fabs(v->alpha)) * sqrt(v->n);
    double output = v->output_unit / sqrt(3) * result;
    underflow += v->output_tiny * sqrt(v->n);
    return sqrt(X_VARIANCE) *
           (hypot(hypot(v->unit / sqrt(3) * rounding, inputs), output) + underflow);
}

/* Some partial sum of the row may be too large for the type: sums of k absolute values are at most
 * sqrt(k) times their norm. */
static bool may_overflow(const verdict *v, const row_norms *norms)
{
    double reach = sqrt(v->k) * norms->ab * fmax(1, fabs(v->alpha)) + fabs(v->beta) * norms->c;
    return !(reach < v->largest / 4);
}

/* z of a row; NaN when the row cannot be checked, infinity when it is wrong beyond measure. Inf and
 * NaN are expected where they are in the operands, and where a sum overflows; finite sums of
 * squares tell an overflow of the check itself. */
static double row_z(const verdict *v, const row_norms *norms, double expected, double got,
                    double drift)
{
    double r = got - expected, s;
    if (!isfinite(expected))
        return isfinite(got) && !isfinite(norms->ab + norms->c) ? INFINITY : NAN;
    if (!isfinite(got))
        return !isfinite(norms->d) && !may_overflow(v, norms) ? INFINITY : NAN;
    if (r == 0)
        return 0;
    s = tolerance(v, norms, drift);
    return isfinite(s) ? fabs(r) / s : NAN;
}

static void judge(void *user, int64_t row, const jk_verify_row_sums *sums,
                  const jk_verify_exponents *exponents, double drift)
{
    verdict *v = user;
    row_norms norms = {
        .ab = ldexp(sqrt(sums->ab_squares), -exponents->ab),
        .d = ldexp(sqrt(sums->d_squares), -exponents->d),
        .c = ldexp(sqrt(sums->c_squares), -exponents->c),
    };
    double expected = 0, z, r;
    if (v->alpha != 0)
        expected += v->alpha * sums->ab;
    if (v->beta != 0)
        expected += v->beta * sums->c;
    z = row_z(v, &norms, expected, sums->d, drift);
    if (isnan(z)) {
        v->unchecked++;
        return;
    }
    r = isinf(z) ? INFINITY : ldexp(sums->d - expected, exponents->d);
    v->checked++;
    v->z_squares += z * z;
    v->r_squares += r * r;
    v->d_squares += isinf(z) ? 0 : sums->d_squares;
    if (v->worst_row < 0 || z > v->max_z) {
        v->max_z = z;
        v->worst_row = v->rows_before + row;
    }
}

static void write_verdict(const verdict *v, jask_verification *out)
{
    double error = sqrt(v->r_squares / X_VARIANCE);
    out->max_z = v->max_z;
    out->rms_z = v->checked > 0 ? sqrt(v->z_squares / (double)v->checked) : 0;
    out->passed = out->max_z <= MAX_Z && out->rms_z <= MAX_RMS_Z;
    out->worst_row = v->worst_row;
    out->relative_error = error > 0 ? error / sqrt(v->d_squares) : 0;
    out->unchecked_rows = v->unchecked;
}

/* Unit roundoff, half the least number and the greatest one. */
static void set_output(verdict *v, jask_dtype output)
{
    switch (output) {
    case JASK_F16:
        v->output_unit = 0x1p-11;
        v->output_tiny = 0x1p-25;
        v->largest = 65504;
        return;
    case JASK_BF16:
        v->output_unit = 0x1p-8;
        v->output_tiny = 0x1p-134;
        return;
    case JASK_F32:
        v->output_unit = FLT_EPSILON / 2;
        v->output_tiny = 0x1p-150;
        v->largest = (double)FLT_MAX;
        return;
    default:
        return;
    }
}

jask_status jk_verify_run(const jk_verify_job *job, jask_verification *out, jask_error *err)
{
    bool f32 = job->dtype == JASK_F32;
    double length = (double)job->n + (double)job->k;
    jk_verify_job used = *job;
    /* A product in f32 takes its factors in f32. */
    if (f32) {
        used.alpha = (double)(float)job->alpha;
        used.beta = (double)(float)job->beta;
    }
    verdict v = {
        .n = (double)job->n,
        .k = (double)job->k,
        .alpha = used.alpha,
        .beta = used.beta,
        .input_unit = used.input_unit,
        .unit = f32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2,
        .tiny = f32 ? 0x1p-149 : 0x1p-1074,
        .largest = f32 ? (double)FLT_MAX : DBL_MAX,
        .check_chain = f32 ? 0 : 2 * (CHECK_CHAIN + length / JK_VERIFY_TILE),
        .worst_row = -1,
    };
    set_output(&v, job->output);
    jask_status st = JASK_OK;
    for (int64_t i = 0; !st && i < jk_max(1, job->batches); i++) {
        if (job->turn)
            job->turn(job->tick_user, i);
        st = jk_verify_stream(&used, judge, &v, err);
        v.rows_before += job->m;
    }
    if (!st)
        write_verdict(&v, out);
    return st;
}
