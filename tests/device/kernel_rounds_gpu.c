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

const char *kernel_complaint(void)
{
    cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
}
