/* Freivalds' check of D = alpha*op(A)op(B) + beta*C, as a measurement.
 *
 * For a random vector x with components +-(1 + U[0,1)), r = Dx - alpha A(Bx) - beta Cx is Ex, E
 * being the error of D. Whatever E is, r_i has mean 0 and variance (7/3) ||E_i||^2, so that r tells
 * how large the error is, and ||r|| / sqrt(7/3) estimates its Frobenius norm.
 *
 * Rounding in type with unit roundoff u makes an error whose size can be told from the data. A sum
 * of k terms that errs at random in every step has, per element, the variance u^2/3 times the sum
 * of the squares of its partial sums; those grow like sqrt (terms of both signs) or like a ramp
 * (one sign), and one or the other is covered by k/2 times the sum of the squared terms plus k/3
 * times the square of the result. Over a row, with K = k + 1:
 *
 *     S_i^2 = (7/3) (u^2/3) [ alpha^2 (K/2) q_i + (K g/3 + 3) ||D_i||^2 + beta^2 (K g + 3)
 * ||C_i||^2 ]
 *
 *     q_i = sum over l of A_il^2 ||B_l||^2
 *
 * and z_i = r_i / S_i. The 3 stands for the roundings of alpha, of the scaled product and of the
 * last addition; beta*C may have been there before the first term and then is rounded k times. This
 * is the error of one plain sum over k, the worst order: sums in slabs or blocks only make z
 * smaller. g is 1 for data that round at random; for data that do not (constants, few values:
 * verify_probe.c) it is up to 1 + k, the variance of errors that are all alike. Underflow adds an
 * absolute term.
 *
 * Where the sums of the check are made in the type of the data (f64), their own error is of the
 * same kind, from chains of at most CHECK_CHAIN + length/JK_VERIFY_TILE roundings; K counts those
 * too. For f32 it is 2^-29 of S and not counted. So no extended precision is needed: with f64 and k
 * = n = 4096 the tolerance grows by 4 %.
 *
 * Right results give a root mean square of z of 0.5 to 0.8 (plain loops) or far less (blocked
 * sums), and never more than |z| = 3 or so: r_i is a sum of many bounded terms with independent
 * signs, nearly normal. MAX_Z and MAX_RMS_Z are more than ten and five of its standard deviations.
 * The second is no smaller because rows may share their error (a single row, all rows equal): then
 * the root mean square over many rows scatters like one z. */
#include "runtime/verify.h"

#include <float.h>
#include <math.h>

#define MAX_Z 8.0
#define MAX_RMS_Z 5.0

#define X_VARIANCE (7.0 / 3)

/* Of the inner loops: a tile in 8 lanes, or 4 columns at a time, and the joining of those. */
#define CHECK_CHAIN (JK_VERIFY_TILE / 4 + 8)

/* What is the same for all rows, and what is found. */
typedef struct verdict {
    double n, k, alpha, beta;
    double unit, tiny, largest; /* of the type: roundoff, least denormal, largest number */
    double check_chain;         /* roundings of the check itself */
    int64_t checked, unchecked, worst_row;
    double max_z, z_squares, r_squares, d_squares;
} verdict;

/* Norms of row i of op(A)op(B) (as the root of q_i), D and C. */
typedef struct row_norms {
    double ab, d, c;
} row_norms;

static double tolerance(const verdict *v, const row_norms *norms, double drift)
{
    double steps = v->k + 1 + v->check_chain, alike = 1 + drift;
    double terms = fabs(v->alpha) * sqrt(steps / 2) * norms->ab;
    double result = sqrt(steps * alike / 3 + 3) * norms->d;
    double added = fabs(v->beta) * sqrt(steps * alike + 3) * norms->c;
    double underflow = (v->k + 2) * v->tiny * fmax(1, fabs(v->alpha)) * sqrt(v->n);
    return sqrt(X_VARIANCE) * (v->unit / sqrt(3) * hypot(hypot(terms, result), added) + underflow);
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
        v->worst_row = row;
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
        .unit = f32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2,
        .tiny = f32 ? 0x1p-149 : 0x1p-1074,
        .largest = f32 ? (double)FLT_MAX : DBL_MAX,
        .check_chain = f32 ? 0 : 2 * (CHECK_CHAIN + length / JK_VERIFY_TILE),
        .worst_row = -1,
    };
    jask_status st = jk_verify_stream(&used, judge, &v, err);
    if (!st)
        write_verdict(&v, out);
    return st;
}
