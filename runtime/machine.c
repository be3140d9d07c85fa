#include "runtime/machine.h"

#include "config.h"

/* Typical of a server core of the last ten years with AVX2 or better, and of one NVMe drive. */
#define CORE_FLOPS_F32 7e10
#define CORE_FLOPS_PLAIN 1e9
#define COPY_BYTES_PER_CORE 2e9 /* beside products, which share the caches */
#define MEMORY_BYTES 15e9
#define DISK_READ_BYTES 1e9
#define DISK_WRITE_BYTES 5e8
#define RUNS 2e5 /* bench/README.md has what they were seen to cost */
#define STEP_SECONDS 2e-5

/* A complex product is four real ones. */
static double flops_as(jask_dtype dtype, double f32, double f64)
{
    double real = dtype == JASK_F64 || dtype == JASK_C128 ? f64 : f32;
    return dtype == JASK_C64 || dtype == JASK_C128 ? real / 4 : real;
}

jk_machine jk_machine_of(const jk_device_ref *device, jask_dtype dtype, uint64_t budget_bytes,
                         uint64_t reserve_bytes)
{
    const jk_device_info *info = &device->info;
    double cores = info->cores;
    double flops = cores * (JK_HAVE_CBLAS ? CORE_FLOPS_F32 : CORE_FLOPS_PLAIN);
    if (!info->host_memory)
        return (jk_machine){
            .device_bytes = budget_bytes,
            .reserve_bytes = reserve_bytes,
            .flops = flops_as(dtype, info->flops_f32, info->flops_f64),
            .h2d = info->copy_bytes_per_second,
            .d2h = info->copy_bytes_per_second,
            .disk_read = DISK_READ_BYTES,
            .disk_write = DISK_WRITE_BYTES,
            .device_memory = info->memory_bytes_per_second,
            .step_seconds = STEP_SECONDS,
        };
    return (jk_machine){
        .device_bytes = budget_bytes,
        .reserve_bytes = reserve_bytes,
        .flops = flops_as(dtype, flops, flops / 2),
        .h2d = COPY_BYTES_PER_CORE * cores,
        .d2h = COPY_BYTES_PER_CORE * cores,
        .disk_read = DISK_READ_BYTES,
        .disk_write = DISK_WRITE_BYTES,
        .runs = RUNS,
        .device_memory = MEMORY_BYTES,
        .step_seconds = STEP_SECONDS,
        .shared_cores = info->shared_cores,
    };
}
