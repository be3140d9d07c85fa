#include "kernel_rounds.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

bool kernel_round(int round)
{
    int devices = 0;
    const char *required = getenv("JASK_TEST_REQUIRE_GPU");
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1) {
        if (required && strcmp(required, "1") == 0)
            cr_assert_fail("no CUDA device: %s", cudaGetErrorString(cudaGetLastError()));
        cr_skip_test("no CUDA device");
    }
    return round < 1;
}

int64_t kernel_many(void)
{
    size_t free_bytes = 0, total_bytes = 0;
    int64_t many = ((int64_t)1 << 31) + 17;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    return free_bytes / 5 < (size_t)many ? (int64_t)(free_bytes / 5) : many;
}

const char *kernel_complaint(void)
{
    cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
}
