#include "kernels/host_tally.h"

#include <math.h>

#define LARGE 0x1p500
#define SCALE 0x1p600

void jk_tally_clear(jk_tally *t)
{
    *t = (jk_tally){.min = HUGE_VAL,
                    .max = -HUGE_VAL,
                    .whole_min = (jk_int128)1 << 100,
                    .whole_max = -((jk_int128)1 << 100)};
}

/* What the addition rounds off is found exactly; nothing is known of it beside infinities. */
static void add_compensated(double *sum, double *rest, double x)
{
    double total = *sum + x, part = total - *sum;
    double lost = (*sum - (total - part)) + (x - part);
    if (isfinite(total))
        *rest += lost;
    *sum = total;
}

static void add_square(jk_tally *t, double x)
{
    double size = fabs(x);
    if (size > LARGE)
        t->large += (x / SCALE) * (x / SCALE);
    else if (size < 1 / LARGE)
        t->small += (x * SCALE) * (x * SCALE);
    else
        add_compensated(&t->squares, &t->squares_rest, x * x);
    if (isnan(x))
        t->squares = x;
}

static void add_range(jk_tally *t, double x)
{
    if (isnan(x)) {
        t->nans++;
        return;
    }
    t->infinities += isinf(x) != 0;
    if (x < t->min)
        t->min = x;
    if (x > t->max)
        t->max = x;
}

static jk_tally *target(const jk_tally_row *row, int64_t i)
{
    return row->tally + (row->lanes > 0 ? (row->first + i) % row->lanes : i * row->step);
}

void jk_tally_reals(const jk_tally_row *row, int parts, int64_t n, const double *x)
{
    if (parts & JK_TALLY_SUM)
        for (int64_t i = 0; i < n; i++) {
            jk_tally *t = target(row, i);
            add_compensated(&t->sum, &t->rest, x[i]);
        }
    if (parts & JK_TALLY_SQUARES)
        for (int64_t i = 0; i < n; i++)
            add_square(target(row, i), x[i]);
    if (parts & JK_TALLY_RANGE)
        for (int64_t i = 0; i < n; i++)
            add_range(target(row, i), x[i]);
}

#define DEFINE_WHOLE(name, type)                                                                   \
    void name(const jk_tally_row *row, int parts, int64_t n, const type *x)                        \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            jk_tally *t = target(row, i);                                                          \
            t->whole += x[i];                                                                      \
            if (parts & JK_TALLY_SQUARES)                                                          \
                add_square(t, (double)x[i]);                                                       \
            if (x[i] < t->whole_min)                                                               \
                t->whole_min = x[i];                                                               \
            if (x[i] > t->whole_max)                                                               \
                t->whole_max = x[i];                                                               \
        }                                                                                          \
    }

DEFINE_WHOLE(jk_tally_signed, int64_t)
DEFINE_WHOLE(jk_tally_unsigned, uint64_t)

void jk_tally_join(jk_tally *t, const jk_tally *more)
{
    add_compensated(&t->sum, &t->rest, more->sum);
    t->rest += more->rest;
    add_compensated(&t->squares, &t->squares_rest, more->squares);
    t->squares_rest += more->squares_rest;
    t->large += more->large;
    t->small += more->small;
    t->min = fmin(t->min, more->min);
    t->max = fmax(t->max, more->max);
    t->nans += more->nans;
    t->infinities += more->infinities;
    t->whole += more->whole;
    if (more->whole_min < t->whole_min)
        t->whole_min = more->whole_min;
    if (more->whole_max > t->whole_max)
        t->whole_max = more->whole_max;
}

double jk_tally_norm(const jk_tally *t)
{
    double middle = t->squares + t->squares_rest;
    if (isnan(middle))
        return middle;
    if (t->large > 0)
        return sqrt(t->large + middle / SCALE / SCALE) * SCALE;
    if (middle > 0)
        return sqrt(middle + t->small / SCALE / SCALE);
    return sqrt(t->small) / SCALE;
}
