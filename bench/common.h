/* What the benchmarks share. */
#ifndef JASK_BENCH_COMMON_H
#define JASK_BENCH_COMMON_H

#include <jask.h>

/* End the program, saying on what. */
_Noreturn void bench_die(const char *what, const char *why);

/* A monotonic clock, in seconds. */
double bench_now(void);

/* Sorts the values. */
double bench_median(double *values, int count);

/* Two ways to do the same. What the one to be measured did is in `report`. */
typedef struct bench_race {
    const char *other_name;
    double (*other)(void *user); /* seconds */
    double (*jask)(void *user, jask_report *report);
    void *user;
    int pairs;
    jask_report report;
    /* Medians; the ratio is that of each pair's seconds, other / jask. */
    double other_seconds, jask_seconds, ratio;
    double least_ratio, most_ratio;
} bench_race;

/* Run both once, and then pair after pair, with a line on stderr for each. */
void bench_run_race(bench_race *race);

/* `count` values of an f32 or f64 type, uniform in [-1, 1); other seeds, other values. */
void bench_fill(jask_dtype dtype, void *data, int64_t count, uint64_t seed);

/* Make a .npy file of rows x cols elements. ctx NULL is the default context. */
void bench_write(jask_context *ctx, const char *path, jask_dtype dtype, int64_t rows, int64_t cols,
                 const void *data);

/* Take a file out of the page cache, as far as nobody else holds it there. */
void bench_drop(const char *path);

#endif
