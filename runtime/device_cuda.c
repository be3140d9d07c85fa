/* NVIDIA GPUs as devices: memory of their own, work in streams. */
#include "runtime/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int cuda_count(char *note, size_t note_size)
{
    int count = 0; /* CUDA leaves it alone when it fails */
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count > 0) {
        snprintf(note, note_size, "%s", "");
        return count;
    }
    (void)cudaGetLastError();
    jk_cuda_absence(code, note, note_size);
    return 0;
}

static void cuda_close(jk_device *dev)
{
    int previous;
    if (!dev)
        return;
    /* Also on a device that is lost: what the library holds in this process is freed. */
    previous = dev->index;
    if (cudaGetDevice(&previous) == cudaSuccess && previous != dev->index)
        (void)cudaSetDevice(dev->index);
    jk_cuda_gemm_close(dev);
    jk_cuda_leave(dev, previous);
    (void)cudaGetLastError();
    jk_placement_close(dev->near);
    pthread_mutex_destroy(&dev->lost_lock);
    pthread_mutex_destroy(&dev->blas_lock);
    free(dev->blas_path);
    free(dev);
}

/* Look at the device and run something on it. */
static jask_status start_device(jk_device *dev, bool complete, jask_error *err)
{
    int previous;
    jask_status st = jk_cuda_enter(dev, &previous, err);
    if (st)
        return st;
    st = jk_cuda_describe(dev, err);
    if (!st)
        st = jk_cuda_try(dev, err);
    if (!st && complete)
        st = jk_cublas_load(dev->blas_path, &dev->blas, err);
    jk_cuda_leave(dev, previous);
    return st;
}

static jask_status cuda_open(int index, const jk_device_options *options, jk_device **out,
                             jask_error *err)
{
    char note[256];
    jk_device *dev;
    jask_status st;
    int count = cuda_count(note, sizeof note);
    if (count == 0)
        return jk_fail(err, JASK_ERR_DEVICE, "there is no device cuda:%d: %s", index, note);
    if (index >= count)
        return jk_fail(err, JASK_ERR_DEVICE,
                       "there is no device cuda:%d; there are %d, from "
                       "cuda:0 on",
                       index, count);
    dev = calloc(1, sizeof *dev);
    if (!dev)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for device cuda:%d", index);
    dev->index = index;
    snprintf(dev->name, sizeof dev->name, "cuda:%d", index);
    pthread_mutex_init(&dev->lost_lock, NULL);
    pthread_mutex_init(&dev->blas_lock, NULL);
    if (options && options->cublas) {
        dev->blas_path = strdup(options->cublas);
        if (!dev->blas_path) {
            st = jk_fail(err, JASK_ERR_NOMEM, "no memory for the name of cuBLAS");
            goto out;
        }
    }
    st = start_device(dev, options && options->complete, err);
    if (st)
        goto out;
    dev->near = jk_placement_open(dev->info.pci_bus_id);
    dev->info.near = dev->near;
    *out = dev;
    dev = NULL;
out:
    cuda_close(dev);
    return st;
}

/* Else CUDA would take cuda:0 for its current device, and bring that up beside this one, or fail because it is
 * full. What cannot be had here shows in the calls that need it. */
static void cuda_begin_thread(jk_device *dev)
{
    if (cudaSetDevice(dev->index) != cudaSuccess)
        (void)cudaGetLastError();
}

static jask_status cuda_info(jk_device *dev, jk_device_info *out, jask_error *err)
{
    size_t free_bytes, total_bytes;
    int previous;
    cudaError_t code;
    jask_status st = jk_cuda_enter(dev, &previous, err);
    if (st)
        return st;
    code = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (code != cudaSuccess) {
        st = jk_cuda_fail(dev, code, NULL, err, "cudaMemGetInfo of %s", dev->name);
    } else {
        *out = dev->info;
        out->free_bytes = free_bytes;
        out->total_bytes = total_bytes;
    }
    jk_cuda_leave(dev, previous);
    return st;
}

static jask_status cuda_mem_alloc(jk_device *dev, size_t bytes, void **out, jask_error *err)
{
    void *ptr = NULL;
    int previous;
    cudaError_t code;
    jask_status st = jk_cuda_enter(dev, &previous, err);
    if (st)
        return st;
    code = cudaMalloc(&ptr, bytes);
    if (code == cudaSuccess) {
        *out = ptr;
    } else {
        char text[32];
        st = jk_cuda_fail(dev, code,
                          code == cudaErrorMemoryAllocation
                              ? "lower the memory budget, or end what else uses the device"
                              : NULL,
                          err, "cudaMalloc of %s (%zu bytes) on %s",
                          jask_format_size(bytes, text, sizeof text), bytes, dev->name);
    }
    jk_cuda_leave(dev, previous);
    return st;
}

static void cuda_mem_free(jk_device *dev, void *ptr, size_t bytes)
{
    (void)dev, (void)bytes;
    if (ptr && cudaFree(ptr) != cudaSuccess)
        (void)cudaGetLastError();
}

static jask_status cuda_pin_alloc(jk_device *dev, size_t bytes, void **out, jask_error *err)
{
    void *ptr = NULL;
    int previous;
    cudaError_t code;
    jk_placement_memory before;
    jask_status st = jk_cuda_enter(dev, &previous, err);
    if (st)
        return st;
    /* The thread that pins pages decides where they lie. */
    jk_placement_prefer(dev->near, &before);
    code = cudaHostAlloc(&ptr, bytes, cudaHostAllocPortable);
    jk_placement_restore(dev->near, &before);
    if (code == cudaSuccess) {
        *out = ptr;
    } else {
        char text[32];
        st = jk_cuda_fail(dev, code,
                          code == cudaErrorMemoryAllocation
                              ? "this is host memory, not the card's: lower the host budget "
                                "(JASK_HOST_BUDGET), or raise the system's limits on locked memory"
                              : NULL,
                          err, "cudaHostAlloc of %s (%zu bytes) of pinned host memory for staging",
                          jask_format_size(bytes, text, sizeof text), bytes);
    }
    jk_cuda_leave(dev, previous);
    return st;
}

static void cuda_pin_free(jk_device *dev, void *ptr, size_t bytes)
{
    (void)dev, (void)bytes;
    if (ptr && cudaFreeHost(ptr) != cudaSuccess)
        (void)cudaGetLastError();
}

const jk_device_table jk_device_cuda = {
    .kind = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .begin_thread = cuda_begin_thread,
    .info = cuda_info,
    .mem_alloc = cuda_mem_alloc,
    .mem_free = cuda_mem_free,
    .pin_alloc = cuda_pin_alloc,
    .pin_free = cuda_pin_free,
    .queue_open = jk_cuda_queue_open,
    .queue_close = jk_cuda_queue_close,
    .queue_drain = jk_cuda_queue_drain,
    .event_open = jk_cuda_event_open,
    .event_close = jk_cuda_event_close,
    .event_record = jk_cuda_event_record,
    .queue_await = jk_cuda_queue_await,
    .event_wait = jk_cuda_event_wait,
    .upload = jk_cuda_upload,
    .download = jk_cuda_download,
    .gemm = jk_cuda_gemm,
};
