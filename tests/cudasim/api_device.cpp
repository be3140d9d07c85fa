// Devices and errors.
#include "sim.h"

#include <cstdio>
#include <cstring>

using namespace cusim;

static bool visible(int device)
{
    return device >= 0 && static_cast<size_t>(device) < state.devices.size();
}

static int pci_bus(int device)
{
    return state.devices[static_cast<size_t>(device)].physical + 1;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    Call call("cudaGetDeviceCount");
    if (!call.failed())
        *count = static_cast<int>(state.devices.size());
    return call.finish(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    Call call("cudaSetDevice");
    if (call.failed() || !visible(device))
        return call.finish(cudaErrorInvalidDevice);
    this_thread().device = device;
    return call.finish(cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    Call call("cudaGetDevice");
    if (!call.failed())
        *device = this_thread().device;
    return call.finish(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    Call call("cudaGetDeviceProperties");
    if (call.failed() || !visible(device))
        return call.finish(cudaErrorInvalidDevice);
    memset(static_cast<void *>(prop), 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "simulated CUDA device");
    prop->totalGlobalMem = state.config.device_bytes;
    prop->sharedMemPerBlock = 48u << 10;
    prop->warpSize = 32;
    prop->maxThreadsPerBlock = 1024;
    prop->major = 9;
    prop->minor = 0;
    prop->multiProcessorCount = 4;
    prop->asyncEngineCount = 2;
    prop->unifiedAddressing = 1;
    prop->pciBusID = pci_bus(device);
    return call.finish(cudaSuccess);
}

static bool attribute(enum cudaDeviceAttr attr, int device, int *value)
{
    switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        return true;
    case cudaDevAttrMaxPitch:
        *value = static_cast<int>(max_pitch);
        return true;
    case cudaDevAttrClockRate: // kHz
    case cudaDevAttrMemoryClockRate:
        *value = 1000000;
        return true;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = 256;
        return true;
    case cudaDevAttrWarpSize:
        *value = 32;
        return true;
    case cudaDevAttrMultiProcessorCount:
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
        *value = 4;
        return true;
    case cudaDevAttrAsyncEngineCount:
        *value = 2;
        return true;
    case cudaDevAttrUnifiedAddressing:
        *value = 1;
        return true;
    case cudaDevAttrPciBusId:
        *value = pci_bus(device);
        return true;
    case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return true;
    case cudaDevAttrIntegrated:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return true;
    default:
        return false;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    Call call("cudaDeviceGetAttribute");
    if (call.failed() || !visible(device))
        return call.finish(cudaErrorInvalidDevice);
    return call.finish(attribute(attr, device, value) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int device)
{
    Call call("cudaDeviceGetPCIBusId");
    if (call.failed() || !visible(device))
        return call.finish(cudaErrorInvalidDevice);
    if (!out || size < 13)
        return call.finish(cudaErrorInvalidValue);
    snprintf(out, static_cast<size_t>(size), "0000:%02X:00.0", pci_bus(device));
    return call.finish(cudaSuccess);
}

// These two answer without a driver.
cudaError_t cudaDriverGetVersion(int *version)
{
    Lock lock;
    boot();
    *version = state.config.unusable ? 0 : state.config.driver_version;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    Call call("cudaDeviceSynchronize");
    if (call.failed())
        return call.finish(cudaSuccess);
    int device = this_thread().device;
    std::vector<std::pair<OpPtr, Clock>> last;
    for (const auto &entry : state.streams)
        if (entry.second->device == device)
            last.emplace_back(entry.second->last, entry.second->clock);
    for (const auto &item : last) {
        await_op(call.lock, item.first);
        host_learns(item.second);
    }
    return call.finish(current_device().sticky);
}

static cudaError_t last_error(bool clear)
{
    Lock lock;
    boot();
    ThreadState &thread = this_thread();
    cudaError_t error = thread.last_error;
    if (!state.devices.empty() && current_device().sticky != cudaSuccess)
        error = current_device().sticky;
    if (clear)
        thread.last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetLastError(void)
{
    return last_error(true);
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error(false);
}
