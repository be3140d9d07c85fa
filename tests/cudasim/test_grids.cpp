// Kernels as g++ compiles them for the simulator, launched as the library launches its own.
#include "kernels/launch.h"

#include <criterion/criterion.h>

#include <vector>

static void start(int kernel_order, bool no_kernel_image = false)
{
    cusim_config config;
    cusim_config_default(&config);
    config.scheduler = CUSIM_PCT;
    config.kernel_order = kernel_order;
    config.no_kernel_image = no_kernel_image;
    cusim_reset(&config);
}

template <class T> static T *take(size_t count)
{
    void *ptr = nullptr;
    cr_assert_eq(cudaMalloc(&ptr, count * sizeof(T)), cudaSuccess);
    return static_cast<T *>(ptr);
}

template <class T> static std::vector<T> read(const T *ptr, size_t count)
{
    std::vector<T> out(count);
    cr_assert_eq(cudaMemcpy(out.data(), ptr, count * sizeof(T), cudaMemcpyDeviceToHost),
                 cudaSuccess);
    return out;
}

extern "C" __global__ void numbers(int n, int *x)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        x[i] = i;
}
JK_KERNEL(numbers)

Test(grids, every_thread_runs_once_with_its_own_numbers)
{
    for (int order = 0; order < 3; order++) {
        start(order);
        int *x = take<int>(1000);
        cr_assert_eq(JK_LAUNCH(numbers, 8, 128, 0, nullptr, JK_ACCESS(JK_WRITES(x, 4000)), 1000, x),
                     cudaSuccess);
        std::vector<int> out = read(x, 1000);
        for (int i = 0; i < 1000; i++)
            cr_assert_eq(out[static_cast<size_t>(i)], i);
        cr_assert_eq(cusim_report_count(nullptr), 0);
    }
}

extern "C" __global__ void places(int *x)
{
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    x[block * 24 + thread] += 1;
}

Test(grids, have_three_dimensions)
{
    start(0);
    int *x = take<int>(24 * 30);
    cr_assert_eq(cudaMemset(x, 0, 24 * 30 * sizeof *x), cudaSuccess);
    cr_assert_eq(JK_LAUNCH(places, dim3(2, 3, 5), dim3(4, 3, 2), 0, nullptr,
                           JK_ACCESS(JK_WRITES(x, 24 * 30 * sizeof *x)), x),
                 cudaSuccess);
    for (int value : read(x, 24 * 30))
        cr_assert_eq(value, 1);
}

// Reverses 256 numbers through shared memory; without the barrier a thread reads what is not there.
template <bool barrier> static __device__ void reverse(int *x)
{
    __shared__ int kept[256];
    kept[threadIdx.x] = x[threadIdx.x];
    if (barrier)
        __syncthreads();
    x[threadIdx.x] = kept[255 - threadIdx.x];
    __syncthreads();
}
extern "C" __global__ void reverse_well(int *x)
{
    reverse<true>(x);
    reverse<true>(x);
    reverse<true>(x);
}
extern "C" __global__ void reverse_badly(int *x)
{
    reverse<false>(x);
}

static bool reversed(void (*kernel)(int *), int order)
{
    start(order);
    int *x = take<int>(256);
    cr_assert_eq(JK_LAUNCH(numbers, 1, 256, 0, nullptr, JK_ACCESS(JK_WRITES(x, 1024)), 256, x),
                 cudaSuccess);
    cr_assert_eq(JK_LAUNCH(kernel, 1, 256, 0, nullptr, JK_ACCESS(JK_WRITES(x, 1024)), x),
                 cudaSuccess);
    std::vector<int> out = read(x, 256);
    for (int i = 0; i < 256; i++)
        if (out[static_cast<size_t>(i)] != 255 - i)
            return false;
    return true;
}

Test(grids, a_barrier_holds_a_block_together_and_a_missing_one_shows)
{
    for (int order = 0; order < 3; order++) {
        cr_assert(reversed(reverse_well, order));
        cr_assert_not(reversed(reverse_badly, order));
    }
}

extern "C" __global__ void warp_sums(double *x)
{
    double sum = threadIdx.x + 1.0;
    for (unsigned delta = 16; delta; delta /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, delta);
    int other = __shfl_xor_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1);
    if (threadIdx.x % 32 == 0)
        x[threadIdx.x / 32] = sum;
    x[2 + threadIdx.x] = other;
}

Test(grids, the_threads_of_a_warp_exchange_values)
{
    for (int order = 0; order < 3; order++) {
        start(order);
        double *x = take<double>(66);
        cr_assert_eq(
            JK_LAUNCH(warp_sums, 1, 64, 0, nullptr, JK_ACCESS(JK_WRITES(x, 66 * sizeof *x)), x),
            cudaSuccess);
        std::vector<double> out = read(x, 66);
        cr_assert_eq(out[0], 32 * 33 / 2.0);
        cr_assert_eq(out[1], 64 * 65 / 2.0 - 32 * 33 / 2.0);
        for (unsigned i = 0; i < 64; i++)
            cr_assert_eq(out[2 + i], i ^ 1);
    }
}

extern "C" __global__ void diverge(int *)
{
    if (threadIdx.x == 0)
        __syncwarp();
    else
        __syncthreads();
}

extern "C" __global__ void reach_out(int *x)
{
    x[threadIdx.x ? 1 << 20 : 0] = 1;
}

extern "C" __global__ void reach_out_late(int *x)
{
    __syncthreads();
    x[1 << 20] = static_cast<int>(threadIdx.x);
}

Test(grids, that_fail_take_the_device_with_them)
{
    const struct {
        void (*kernel)(int *);
        cudaError_t error;
    } rows[] = {{diverge, cudaErrorLaunchFailure},
                {reach_out, cudaErrorIllegalAddress},
                {reach_out_late, cudaErrorIllegalAddress}};
    for (const auto &row : rows) {
        start(0);
        int *x = take<int>(1);
        cr_assert_eq(
            JK_LAUNCH(row.kernel, 1, 64, 0, nullptr, JK_ACCESS(JK_WRITES(x, sizeof *x)), x),
            cudaSuccess);
        cr_assert_eq(cudaDeviceSynchronize(), row.error);
        cr_assert_eq(cusim_report_count("FAULT"), 1);
        cr_assert_eq(JK_LAUNCH(diverge, 1, 64, 0, nullptr, JK_ACCESS(), x), row.error);
        // The next device knows nothing of it.
        cr_assert(reversed(reverse_well, 0));
    }
}

Test(grids, of_a_wrong_shape_or_without_code_are_refused)
{
    start(0);
    int *x = take<int>(1);
    cr_assert_eq(JK_LAUNCH(diverge, 0, 64, 0, nullptr, JK_ACCESS(), x),
                 cudaErrorInvalidConfiguration);
    cr_assert_eq(JK_LAUNCH(diverge, 1, 1025, 0, nullptr, JK_ACCESS(), x),
                 cudaErrorInvalidConfiguration);
    cr_assert_eq(JK_LAUNCH(diverge, 1, 1, 1 << 20, nullptr, JK_ACCESS(), x),
                 cudaErrorInvalidConfiguration);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidConfiguration);
    start(0, true);
    cr_assert_eq(JK_LAUNCH(diverge, 1, 1, 0, nullptr, JK_ACCESS(), x),
                 cudaErrorNoKernelImageForDevice);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "and the device lives on");
}

Test(grids, are_ordered_by_what_they_declare)
{
    start(0);
    cudaStream_t streams[2];
    for (cudaStream_t &stream : streams)
        cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    int *x = take<int>(256);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(JK_LAUNCH(numbers, 1, 256, 0, streams[i], JK_ACCESS(JK_READS(x, 1024)), 0, x),
                     cudaSuccess);
    cr_assert_eq(cusim_report_count(nullptr), 0);
    cr_assert_eq(
        JK_LAUNCH(numbers, 1, 256, 0, streams[1], JK_ACCESS(JK_WRITES_2D(x, 4, 16, 64)), 0, x),
        cudaSuccess);
    cr_assert_eq(cusim_report_count("ORDER"), 1);
}
