/* Times of the stages of a plan, and what of them shows: what the estimates of all plans share. */
#ifndef JK_PLANNER_STAGES_H
#define JK_PLANNER_STAGES_H

#include "planner/internal.h"

#include <math.h>

/* Parts in which the runtime stores a tile of a result. */
enum { BANDS = 8 };

/* A BLAS on cores brings operands into an order of its own before it multiplies: they are read and written,
 * in caches that readers and writers use meanwhile, which doubles it. (Not for a product with a vector.) */
#define PACKING 4

/* It cuts k itself, at some 256 to 512, and passes over D each time: what it does in one call is part of its
 * rate, and panels that are no shallower cost no more passes. */
#define BLAS_DEPTH 384

/* Passes over D beyond those, where products as deep as `depth` in all are made in `count` steps. */
static inline double blas_passes(int64_t count, int64_t depth)
{
    int64_t own = jk_ceil_div(depth, BLAS_DEPTH);
    return count > own ? (double)(count - own) : 0;
}

static inline double over(double amount, double rate)
{
    return rate > 0 ? amount / rate : 0;
}

/* Arithmetic beside what products re-read and re-write in the device's own memory. A GPU overlaps the two;
 * cores do not. */
static inline double with_memory(double arithmetic, double memory, const jk_machine *machine)
{
    double more = arithmetic > memory ? arithmetic : memory;
    return machine->shared_cores ? arithmetic + memory : more;
}

/* Copies are made by the cores that multiply, where these are shared, and are then part of the products. */
static inline void set_stages(double stage[JK_STAGES], const jk_machine *machine, double products,
                              const jk_plan_counts *counts)
{
    stage[JK_STAGE_UP] = over((double)counts->h2d_bytes, machine->h2d);
    stage[JK_STAGE_DOWN] = over((double)counts->d2h_bytes, machine->d2h);
    stage[JK_STAGE_READ] = over((double)counts->file_read_bytes, machine->disk_read);
    stage[JK_STAGE_WRITE] = over((double)counts->file_write_bytes, machine->disk_write);
    stage[JK_STAGE_PRODUCTS] = products;
    if (machine->shared_cores)
        stage[JK_STAGE_PRODUCTS] += stage[JK_STAGE_UP] + stage[JK_STAGE_DOWN];
}

/* From files to the device, where nothing hides it. Where cores are shared, files are read straight into place, at
 * the pace of the slower of disk and copies. */
static inline double bare_read_seconds(double bytes, const jk_machine *machine)
{
    double read = over(bytes, machine->disk_read), copy = over(bytes, machine->h2d);
    return machine->shared_cores ? fmax(read, copy) : read + copy;
}

/* Of all stages, one after the other; copies that are part of the products count once. */
static inline double sum_of_stages(const double stage[JK_STAGES], const jk_machine *machine)
{
    double sum = stage[JK_STAGE_PRODUCTS] + stage[JK_STAGE_READ] + stage[JK_STAGE_WRITE];
    return machine->shared_cores ? sum : sum + stage[JK_STAGE_UP] + stage[JK_STAGE_DOWN];
}

static inline jk_stage slowest_stage(const double stage[JK_STAGES])
{
    jk_stage most = JK_STAGE_PRODUCTS;
    for (int i = 0; i < JK_STAGES; i++)
        if (stage[i] > stage[most])
            most = (jk_stage)i;
    return most;
}

/* Of all stages side by side: the slowest sets the pace, and of the time of the others this share shows
 * all the same. */
static inline double pipelined_seconds(const double stage[JK_STAGES], const jk_machine *machine)
{
    const double hidden_shown = 0.05;
    double pace = stage[slowest_stage(stage)];
    return pace + hidden_shown * (sum_of_stages(stage, machine) - pace);
}

#endif
