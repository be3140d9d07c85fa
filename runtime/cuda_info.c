/* What a CUDA device is, and whether it runs our code. */
#include "kernels/device_kernels.h"
#include "runtime/cuda_device.h"
#include "runtime/waits.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CORES_PER_PROCESSOR 128
/* A quarter of what PCIe 5.0 x16 carries: most cards sit in older or narrower slots. */
#define COPY_BYTES 16e9
/* Assumed where the card does not tell. */
#define FLOPS_UNKNOWN 10e12
#define MEMORY_BYTES_UNKNOWN 400e9
#define F64_RATIO_UNKNOWN 2
/* What NVIDIA recommends for cuBLAS. */
#define WORKSPACE_BYTES ((size_t)4 << 20)
#define WORKSPACE_BYTES_HOPPER ((size_t)32 << 20)

/* 0 when the driver does not tell. */
static int attribute(const jk_device *dev, enum cudaDeviceAttr which)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, dev->index) == cudaSuccess)
        return value;
    (void)cudaGetLastError();
    return 0;
}

/* Rates that are good enough to rank plans. */
static void estimate_rates(jk_device *dev)
{
    jk_device_info *info = &dev->info;
    double processors = attribute(dev, cudaDevAttrMultiProcessorCount);
    double clock = 1e3 * attribute(dev, cudaDevAttrClockRate);
    double memory_clock = 1e3 * attribute(dev, cudaDevAttrMemoryClockRate);
    double bus_bytes = attribute(dev, cudaDevAttrGlobalMemoryBusWidth) / 8.0;
    double f64_ratio = attribute(dev, cudaDevAttrSingleToDoublePrecisionPerfRatio);
    info->flops_f32 = 2 * CORES_PER_PROCESSOR * processors * clock;
    if (info->flops_f32 <= 0)
        info->flops_f32 = FLOPS_UNKNOWN;
    info->flops_f64 = info->flops_f32 / (f64_ratio > 0 ? f64_ratio : F64_RATIO_UNKNOWN);
    info->memory_bytes_per_second = 2 * memory_clock * bus_bytes;
    if (info->memory_bytes_per_second <= 0)
        info->memory_bytes_per_second = MEMORY_BYTES_UNKNOWN;
    info->copy_bytes_per_second = COPY_BYTES;
}

static jask_status read_capability(jk_device *dev, jask_error *err)
{
    cudaError_t code = cudaDeviceGetAttribute(&dev->capability_major,
                                              cudaDevAttrComputeCapabilityMajor, dev->index);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&dev->capability_minor, cudaDevAttrComputeCapabilityMinor,
                                      dev->index);
    return code == cudaSuccess
               ? JASK_OK
               : jk_cuda_fail(dev, code, NULL, err, "cudaDeviceGetAttribute of %s", dev->name);
}

jask_status jk_cuda_describe(jk_device *dev, jask_error *err)
{
    jk_device_info *info = &dev->info;
    struct cudaDeviceProp properties;
    char bus[20] = "?";
    int pitch;
    cudaError_t code;
    jask_status st = read_capability(dev, err);
    if (st)
        return st;
    code = cudaGetDeviceProperties(&properties, dev->index);
    if (code != cudaSuccess)
        return jk_cuda_fail(dev, code, NULL, err, "cudaGetDeviceProperties of %s", dev->name);
    code = cudaDeviceGetPCIBusId(bus, sizeof bus, dev->index);
    if (code != cudaSuccess)
        return jk_cuda_fail(dev, code, NULL, err, "cudaDeviceGetPCIBusId of %s", dev->name);
    pitch = attribute(dev, cudaDevAttrMaxPitch);
    dev->max_pitch = pitch > 0 ? (size_t)pitch : INT_MAX;
    snprintf(info->name, sizeof info->name, "%s", dev->name);
    snprintf(info->description, sizeof info->description, "%.80s, compute capability %d.%d, PCI %s",
             properties.name, dev->capability_major, dev->capability_minor, bus);
    snprintf(info->pci_bus_id, sizeof info->pci_bus_id, "%s", bus);
    info->alignment = 256;
    info->f16 = true;
    info->bf16 = info->tf32 = dev->capability_major >= 8;
    info->workspace_bytes = dev->capability_major >= 9 ? WORKSPACE_BYTES_HOPPER : WORKSPACE_BYTES;
    estimate_rates(dev);
    return JASK_OK;
}

enum { PROBE_WORDS = 32, PROBE_SEED = 0x6a61736b };

static jask_status probe_fail(jk_device *dev, cudaError_t code, const char *call, jask_error *err)
{
    const char *advice = NULL;
    if (code == cudaErrorNoKernelImageForDevice)
        advice = "this build has no code for this card: build jask with its architecture in "
                 "gpu_arch";
    return jk_cuda_fail(dev, code, advice, err,
                        "%s (compute capability %d.%d) does not run a first kernel: %s", dev->name,
                        dev->capability_major, dev->capability_minor, call);
}

static jask_status run_probe(jk_device *dev, uint32_t *words, jask_error *err)
{
    uint32_t got[PROBE_WORDS];
    cudaStream_t stream;
    const char *call = "cudaStreamCreateWithFlags";
    cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaError_t done;
    if (code != cudaSuccess)
        return probe_fail(dev, code, call, err);
    memset(got, 0, sizeof got);
    call = "cudaLaunchKernel";
    code = jk_cuda_probe(PROBE_SEED, words, stream);
    /* Hazard: the words are read, and freed, before the kernel has written them. */
    done = jk_must_wait(JK_WAIT_PROBE) ? jk_cuda_settle(stream) : cudaSuccess;
    if (code == cudaSuccess && done != cudaSuccess) {
        call = "cudaStreamSynchronize";
        code = done;
    }
    if (code == cudaSuccess) {
        call = "cudaMemcpy";
        code = cudaMemcpy(got, words, sizeof got, cudaMemcpyDeviceToHost);
    }
    (void)cudaStreamDestroy(stream);
    if (code != cudaSuccess)
        return probe_fail(dev, code, call, err);
    for (uint32_t i = 0; i < PROBE_WORDS; i++)
        if (got[i] != jk_probe_word(PROBE_SEED, i))
            return jk_fail(err, JASK_ERR_DEVICE,
                           "%s computes wrong values in a first kernel: driver and card do not "
                           "go together with this build, or the card is broken",
                           dev->name);
    return JASK_OK;
}

jask_status jk_cuda_try(jk_device *dev, jask_error *err)
{
    void *words = NULL;
    jask_status st;
    cudaError_t code = cudaMalloc(&words, PROBE_WORDS * sizeof(uint32_t));
    if (code != cudaSuccess)
        return probe_fail(dev, code, "cudaMalloc of 128 bytes", err);
    st = run_probe(dev, words, err);
    if (cudaFree(words) != cudaSuccess)
        (void)cudaGetLastError();
    return st;
}
