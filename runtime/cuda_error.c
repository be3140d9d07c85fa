/* CUDA's errors in words. */
#include "runtime/cuda_device.h"

#include <stdarg.h>
#include <stdio.h>

/* After these the device's state is gone: every later call in this process gives the same. */
static bool is_fatal(cudaError_t code)
{
    switch ((int)code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown: /* a card that has fallen off the bus */
        return true;
    default:
        return false;
    }
}

static void remember_loss(jk_device *dev, const jask_error *err)
{
    pthread_mutex_lock(&dev->lost_lock);
    if (!dev->lost)
        dev->lost_error = *err;
    dev->lost = true;
    pthread_mutex_unlock(&dev->lost_lock);
}

jask_status jk_cuda_fail(jk_device *dev, cudaError_t code, const char *advice, jask_error *err,
                         const char *fmt, ...)
{
    jask_status st = code == cudaErrorMemoryAllocation ? JASK_ERR_NOMEM : JASK_ERR_DEVICE;
    bool lost;
    char what[384];
    jask_error mine;
    va_list args;
    if (!err)
        err = &mine;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    (void)cudaGetLastError();
    /* What cannot be cleared will not pass. */
    lost = is_fatal(code) || cudaPeekAtLastError() != cudaSuccess;
    if (lost && !advice)
        advice = "the device is lost to this process: end it, look at the system's log for the "
                 "reason (\"Xid\"), and start again";
    jk_fail(err, st, "%s: %s (%s)%s%s", what, cudaGetErrorName(code), cudaGetErrorString(code),
            advice ? "; " : "", advice ? advice : "");
    if (lost && dev)
        remember_loss(dev, err);
    return st;
}

jask_status jk_cuda_working(jk_device *dev, jask_error *err)
{
    jask_status st;
    if (!dev->lost)
        return JASK_OK;
    pthread_mutex_lock(&dev->lost_lock);
    st = dev->lost_error.code;
    if (err)
        *err = dev->lost_error;
    pthread_mutex_unlock(&dev->lost_lock);
    return st;
}

void jk_cuda_absence(cudaError_t code, char *note, size_t note_size)
{
    switch ((int)code) {
    case cudaSuccess:
    case cudaErrorNoDevice:
        snprintf(note, note_size,
                 "the driver shows no CUDA device (CUDA_VISIBLE_DEVICES can hide them)");
        break;
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
        snprintf(note, note_size, "there is no NVIDIA driver, or it is too old for CUDA %d.%d: %s",
                 CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, cudaGetErrorName(code));
        break;
    default:
        snprintf(note, note_size, "CUDA cannot start: %s (%s)", cudaGetErrorName(code),
                 cudaGetErrorString(code));
    }
}

jask_status jk_cuda_enter(jk_device *dev, int *out_previous, jask_error *err)
{
    int previous = dev->index;
    cudaError_t code;
    jask_status st = jk_cuda_working(dev, err);
    if (st)
        return st;
    code = cudaGetDevice(&previous);
    if (code == cudaSuccess && previous != dev->index)
        code = cudaSetDevice(dev->index);
    if (code != cudaSuccess)
        return jk_cuda_fail(dev, code, NULL, err, "cannot work on %s: cudaSetDevice", dev->name);
    *out_previous = previous;
    return JASK_OK;
}

void jk_cuda_leave(const jk_device *dev, int previous)
{
    if (previous != dev->index && cudaSetDevice(previous) != cudaSuccess)
        (void)cudaGetLastError();
}
