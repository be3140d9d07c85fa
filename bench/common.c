#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

_Noreturn void bench_die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void bench_fill(jask_dtype dtype, void *data, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        double value;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        value = (double)(int64_t)(seed >> 11) / (double)(1ll << 52) - 1;
        if (dtype == JASK_F32)
            ((float *)data)[i] = (float)value;
        else
            ((double *)data)[i] = value;
    }
}

void bench_write(jask_context *ctx, const char *path, jask_dtype dtype, int64_t rows, int64_t cols,
                 const void *data)
{
    int64_t shape[2] = {rows, cols};
    jask_array *array;
    jask_error err;
    if (jask_array_create(ctx, path, dtype, 2, shape, &array, &err))
        bench_die("create", err.msg);
    /* At one stroke, as NumPy does: row by row the page cache would be of small pieces, slower to read. */
    if (jask_array_write(array, 0, (uint64_t)(rows * cols), data, &err))
        bench_die("write", err.msg);
    if (jask_array_commit(array, &err))
        bench_die("commit", err.msg);
    jask_array_close(array);
}

void bench_run_race(bench_race *race)
{
    size_t bytes = (size_t)race->pairs * sizeof(double);
    double *other = malloc(bytes), *jask = malloc(bytes), *ratio = malloc(bytes);
    jask_report *r = &race->report;
    if (!other || !jask || !ratio)
        bench_die("memory", "none");
    r->struct_size = sizeof *r;
    race->other(race->user);
    race->jask(race->user, r); /* both warm */
    for (int i = 0; i < race->pairs; i++) {
        other[i] = race->other(race->user);
        jask[i] = race->jask(race->user, r);
        ratio[i] = other[i] / jask[i];
        fprintf(stderr,
                "pair %d: %s %.3f s, jask %.3f s, ratio %.3f  (read %.2f compute %.2f write %.2f "
                "commit %.2f stall %.2f)\n",
                i + 1, race->other_name, other[i], jask[i], ratio[i], r->read_seconds,
                r->compute_seconds, r->write_seconds, r->commit_seconds, r->stall_seconds);
    }
    race->other_seconds = bench_median(other, race->pairs);
    race->jask_seconds = bench_median(jask, race->pairs);
    race->ratio = bench_median(ratio, race->pairs);
    race->least_ratio = ratio[0]; /* bench_median has sorted them */
    race->most_ratio = ratio[race->pairs - 1];
    free(ratio);
    free(jask);
    free(other);
}

void bench_drop(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        bench_die("open", path);
    /* Only what is clean can be dropped. */
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}
