#include "cusim.h"

#include <criterion/criterion.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void start(int devices, int unusable)
{
    cusim_config c;
    cusim_config_default(&c);
    c.devices = devices;
    c.unusable = unusable;
    cusim_reset(&c);
}

Test(devices, a_machine_without_says_why_and_writes_nothing)
{
    const struct {
        int devices, unusable, error, driver;
    } rows[] = {
        {1, 35, cudaErrorInsufficientDriver, 0},
        {1, 34, cudaErrorStubLibrary, 0},
        {0, 0, cudaErrorNoDevice, 13000},
        {1, 100, cudaErrorNoDevice, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int count = -7, version = -1;
        void *ptr = NULL;
        cublasHandle_t handle;
        start(rows[i].devices, rows[i].unusable);
        cr_assert_eq((int)cudaGetDeviceCount(&count), rows[i].error);
        cr_assert_eq(count, -7);
        cr_assert_eq((int)cudaGetLastError(), rows[i].error);
        cr_assert_eq((int)cudaMalloc(&ptr, 1), rows[i].error);
        cr_assert_eq(cudaDriverGetVersion(&version), cudaSuccess);
        cr_assert_eq(version, rows[i].driver);
        cr_assert_eq(cudaRuntimeGetVersion(&version), cudaSuccess);
        cr_assert_eq(version, CUDART_VERSION);
        cr_assert_neq(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
        cr_assert_neq(cudaStreamDestroy(NULL), cudaSuccess);
        cr_assert_neq(cudaEventDestroy(NULL), cudaSuccess);
        cr_assert_eq(cusim_leaks(NULL, 0), 0);
    }
}

Test(devices, cuda_visible_devices_chooses_and_renumbers)
{
    const struct {
        const char *list;
        int count;
        const char *first_bus;
    } rows[] = {
        {"0,1,2", 3, "0000:01:00.0"},
        {"2,0", 2, "0000:03:00.0"},
        {"1", 1, "0000:02:00.0"},
        {"1,9,0", 1, "0000:02:00.0"},
        {"-1", 0, ""},
        {"", 0, ""},
        {"none", 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int count = 0;
        char bus[16] = "";
        setenv("CUDA_VISIBLE_DEVICES", rows[i].list, 1);
        start(3, 0);
        cr_assert_eq(cudaGetDeviceCount(&count), rows[i].count ? cudaSuccess : cudaErrorNoDevice);
        cr_assert_eq(count, rows[i].count, "'%s'", rows[i].list);
        if (count)
            cr_assert_eq(cudaDeviceGetPCIBusId(bus, sizeof bus, 0), cudaSuccess);
        cr_assert_str_eq(bus, rows[i].first_bus);
    }
}

Test(devices, tell_what_they_are)
{
    struct cudaDeviceProp prop;
    int major = 0, bus = 0;
    char small[8];
    start(2, 0);
    cr_assert_eq(cudaGetDeviceProperties(&prop, 1), cudaSuccess);
    cr_assert_str_eq(prop.name, "simulated CUDA device");
    cr_assert_eq(prop.totalGlobalMem, (size_t)256 << 20);
    cr_assert_eq(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 1), cudaSuccess);
    cr_assert_eq(major, prop.major);
    cr_assert_eq(cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, 1), cudaSuccess);
    cr_assert_eq(bus, 2);
    cr_assert_eq(cudaGetDeviceProperties(&prop, 2), cudaErrorInvalidDevice);
    cr_assert_eq(cudaDeviceGetPCIBusId(small, sizeof small, 0), cudaErrorInvalidValue);
}

static void *device_of_a_new_thread(void *arg)
{
    cudaGetDevice(arg);
    return NULL;
}

Test(devices, the_current_one_is_a_threads_own)
{
    pthread_t thread;
    int other = -1, mine = -1;
    start(2, 0);
    cr_assert_eq(cudaSetDevice(2), cudaErrorInvalidDevice);
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    pthread_create(&thread, NULL, device_of_a_new_thread, &other);
    pthread_join(thread, NULL);
    cr_assert_eq(cudaGetDevice(&mine), cudaSuccess);
    cr_assert_eq(mine, 1);
    cr_assert_eq(other, 0);
}

Test(devices, have_memory_of_their_own)
{
    void *ptr;
    size_t free_bytes, total;
    cudaStream_t stream;
    cudaEvent_t event;
    start(2, 0);
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    cr_assert_eq(cudaMalloc(&ptr, 200 << 20), cudaSuccess);
    cr_assert_eq(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    cr_assert_eq(cudaSetDevice(0), cudaSuccess);
    cr_assert_eq(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    cr_assert_eq(free_bytes, total);
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    cr_assert_eq(cudaFree(ptr), cudaSuccess);
}

Test(devices, errors_have_their_names)
{
    cr_assert_str_eq(cudaGetErrorName(cudaErrorNoKernelImageForDevice),
                     "cudaErrorNoKernelImageForDevice");
    cr_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    cr_assert_str_eq(cudaGetErrorName((cudaError_t)12345), "cudaErrorUnrecognized");
}
