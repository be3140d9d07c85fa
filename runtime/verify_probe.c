/* The tolerance rests on rounding errors that add up like noise. They do when the low bits of the
 * terms are mixed. Where few different values occur (a constant that is no short binary fraction,
 * zeros and 0.1) or most terms are far smaller than the sum, the steps within a power of two err
 * alike, and a plain sum of k terms drifts by up to k u instead of sqrt(k) u. So some elements of
 * the product are summed as a plain loop would do it, and the error of each step is looked at: the
 * squares of the errors of whole windows add up to those of the single steps if they are noise, and
 * to as many times more as a window has steps if they are alike. */
#include "runtime/verify.h"

#include <math.h>
#include <string.h>

/* Enough to tell the powers of two apart that a growing sum passes; errors in different ones may
 * well cancel, but do so in one order of summation and not in another. */
#define WINDOWS 16
#define WINDOW_TERMS_MIN 4

void jk_probe_start(jk_probe *probe, const jk_verify_job *job, int64_t row, int64_t rows)
{
    probe->dtype = job->dtype;
    probe->window_terms = jk_max(WINDOW_TERMS_MIN, jk_ceil_div(job->k, WINDOWS));
    probe->row_count = (int)jk_min(rows, JK_PROBE_ROWS);
    probe->col_count = (int)jk_min(job->n, JK_PROBE_COLS);
    /* In the middle of equal parts: the ends of a matrix are often special. */
    for (int r = 0; r < probe->row_count; r++)
        probe->rows[r] = row + rows / probe->row_count * r + rows / probe->row_count / 2;
    for (int c = 0; c < probe->col_count; c++)
        probe->cols[c] = job->n / probe->col_count * c + job->n / probe->col_count / 2;
    memset(probe->chain, 0, sizeof probe->chain);
}

static double element(const jk_verify_view *view, int64_t row, int64_t col)
{
    int64_t at = (row - view->row) * view->row_step + (col - view->col) * view->col_step;
    return view->dtype == JASK_F32 ? (double)((const float *)view->data)[at]
                                   : ((const double *)view->data)[at];
}

void jk_probe_take_b(jk_probe *probe, const jk_verify_view *b)
{
    for (int c = 0; c < probe->col_count; c++) {
        int64_t col = probe->cols[c];
        double *out = probe->b + c * probe->chunk + (b->row - probe->first);
        if (col < b->col || col >= b->col + b->cols)
            continue;
        for (int64_t p = 0; p < b->rows; p++)
            out[p] = element(b, b->row + p, col);
    }
}

static void close_window(jk_probe_chain *chain)
{
    chain->window_squares += chain->window * chain->window;
    chain->windows += chain->terms > 0;
    chain->window = 0;
    chain->terms = 0;
}

/* One step of the plain loop. The product of two f32 is exact in f64, and so, but for a part in
 * 2^29, is the error of the addition; of f64 the error of the addition is computed exactly and that
 * of the product left out. */
static void add_term(jk_probe_chain *chain, jask_dtype dtype, double term)
{
    double sum = chain->sum + term, error;
    if (dtype == JASK_F32) {
        double rounded = (double)(float)sum;
        error = sum - rounded;
        sum = rounded;
    } else {
        double part = sum - chain->sum;
        error = (chain->sum - (sum - part)) + (term - part);
    }
    chain->sum = sum;
    chain->step_squares += error * error;
    chain->window += error;
    chain->terms++;
}

void jk_probe_take_a(jk_probe *probe, const jk_verify_view *a)
{
    for (int r = 0; r < probe->row_count; r++) {
        int64_t row = probe->rows[r];
        if (row < a->row || row >= a->row + a->rows)
            continue;
        for (int64_t p = a->col; p < a->col + a->cols; p++) {
            double x = element(a, row, p);
            for (int c = 0; c < probe->col_count; c++) {
                jk_probe_chain *chain = &probe->chain[r][c];
                add_term(chain, probe->dtype, x * probe->b[c * probe->chunk + (p - probe->first)]);
                if (chain->terms == probe->window_terms)
                    close_window(chain);
            }
        }
    }
}

double jk_probe_drift(const jk_probe *probe)
{
    double ratios = 0, windows = 0;
    int chains = 0;
    for (int r = 0; r < probe->row_count; r++)
        for (int c = 0; c < probe->col_count; c++) {
            jk_probe_chain chain = probe->chain[r][c];
            close_window(&chain);
            /* No errors, or Inf and NaN among the terms: nothing to learn. */
            if (!(chain.step_squares > 0) || !isfinite(chain.step_squares))
                continue;
            ratios += chain.window_squares / chain.step_squares;
            windows += (double)chain.windows;
            chains++;
        }
    if (chains == 0)
        return 0;
    /* For noise each ratio is 1 with variance 2 / windows, or some three times that, as errors grow
     * along the sum. Three standard deviations may be chance. */
    double excess = ratios / chains - 1 - 3 * sqrt(6 / windows);
    return excess > 0 ? excess * windows / chains : 0;
}
