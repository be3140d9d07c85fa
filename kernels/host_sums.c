#include "kernels/host_numbers.h"

#include <math.h>

/* Parts are whole rounds of all lanes in either type. */
#define ROUND (JK_LANES * 4)

int64_t jk_part_elems(int64_t n)
{
    int64_t rounds = n / (JK_MAX_PARTS * ROUND) + (n % (JK_MAX_PARTS * ROUND) != 0);
    return (rounds > 0 ? rounds : 1) * ROUND;
}

int64_t jk_parts(int64_t n)
{
    int64_t elems = jk_part_elems(n);
    return n < 1 ? 1 : n / elems + (n % elems != 0);
}

static jk_range range_of_nothing(void)
{
    return (jk_range){.min = HUGE_VAL, .max = -HUGE_VAL};
}

static void sum_take(double *sum, double x)
{
    *sum += x;
}

static void range_take(jk_range *range, double x)
{
    if (!isfinite(x)) {
        range->nonfinite++;
        return;
    }
    if (x < range->min)
        range->min = x;
    if (x > range->max)
        range->max = x;
}

static void sum_add(double *sum, const double *other)
{
    *sum += *other;
}

static void range_add(jk_range *range, const jk_range *other)
{
    if (other->min < range->min)
        range->min = other->min;
    if (other->max > range->max)
        range->max = other->max;
    range->nonfinite += other->nonfinite;
}

static double sum_of_nothing(void)
{
    return 0;
}

#define DEFINE_REDUCTION(name, kind, value, real)                                                  \
    static value name##_part(int64_t n, const real *x)                                             \
    {                                                                                              \
        value lanes[JK_LANES];                                                                     \
        for (int lane = 0; lane < JK_LANES; lane++)                                                \
            lanes[lane] = kind##_of_nothing();                                                     \
        int64_t turn = 16 / sizeof(real);                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            kind##_take(&lanes[i / turn % JK_LANES], x[i]);                                        \
        for (int half = JK_LANES / 2; half > 0; half /= 2)                                         \
            for (int lane = 0; lane < half; lane++)                                                \
                kind##_add(&lanes[lane], &lanes[lane + half]);                                     \
        return lanes[0];                                                                           \
    }                                                                                              \
    void jk_##name(int64_t n, const real *x, value *out)                                           \
    {                                                                                              \
        int64_t elems = jk_part_elems(n), parts = jk_parts(n);                                     \
        for (int64_t p = 0; p < parts; p++)                                                        \
            out[p] = name##_part(n - p * elems < elems ? n - p * elems : elems, x + p * elems);    \
    }

DEFINE_REDUCTION(sum_f32, sum, double, float)
DEFINE_REDUCTION(sum_f64, sum, double, double)
DEFINE_REDUCTION(range_f32, range, jk_range, float)
DEFINE_REDUCTION(range_f64, range, jk_range, double)

double jk_sum_join(int64_t parts, const double *sums)
{
    double sum = 0;
    for (int64_t p = 0; p < parts; p++)
        sum_add(&sum, &sums[p]);
    return sum;
}

jk_range jk_range_join(int64_t parts, const jk_range *ranges)
{
    jk_range range = range_of_nothing();
    for (int64_t p = 0; p < parts; p++)
        range_add(&range, &ranges[p]);
    return range;
}
