#include "kernel_rounds.h"

#include "gpu.h"

#include <cuda_runtime_api.h>

bool kernel_round(int round)
{
    int devices = 0;
    cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices < 1)
        gpu_absent(cudaGetErrorString(code));
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
