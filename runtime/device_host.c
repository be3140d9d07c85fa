/* The CPU as a device: its memory is host memory, its queues are immediate. What it was given back last is
 * spare for the next operation. */
#include "config.h"
#include "runtime/blas.h"
#include "runtime/device.h"
#include "runtime/ordered.h"
#include "runtime/spare.h"
#include "runtime/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct jk_device {
    jk_spare spare;
};

static int host_count(char *note, size_t note_size)
{
    snprintf(note, note_size, "%s", "");
    return 1;
}

static jask_status host_open(int index, const jk_device_options *options, jk_device **out,
                             jask_error *err)
{
    jk_device *dev;
    (void)options;
    if (index != 0)
        return jk_fail(err, JASK_ERR_DEVICE, "there is no device host:%d; there is host", index);
    dev = calloc(1, sizeof *dev);
    if (!dev)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a device");
    jk_spare_open(&dev->spare);
    *out = dev;
    return JASK_OK;
}

static void host_close(jk_device *dev)
{
    if (!dev)
        return;
    jk_spare_close(&dev->spare);
    free(dev);
}

static void host_begin_thread(jk_device *dev)
{
    (void)dev;
}

static jask_status host_info(jk_device *dev, jk_device_info *out, jask_error *err)
{
    jk_topology topology;
    const char *core;
    jask_status st = jk_topology_read(&topology, err);
    (void)dev;
    if (st)
        return st;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "host");
    core = jk_blas_core();
    snprintf(out->description, sizeof out->description, "%s, %d core%s, %s%s%s%s",
             topology.cpu_model, topology.threads, topology.threads == 1 ? "" : "s", jk_blas_name(),
             *core ? " (" : "", core, *core ? " kernels)" : "");
    jk_blas_advise_here(out->advice);
    out->cores = topology.threads;
    /* About a second of work. Every part packs B again, so that a product in three parts takes up to 5% more
     * time. */
    out->gemm_flops_max = topology.threads * (JK_HAVE_CBLAS ? 1e11 : 1e9);
    out->total_bytes = topology.memory_bytes;
    out->alignment = (size_t)sysconf(_SC_PAGESIZE);
    out->host_memory = true;
    out->shared_cores = true;
    return JASK_OK;
}

static jask_status host_mem_alloc(jk_device *dev, size_t bytes, void **out, jask_error *err)
{
    void *ptr = dev ? jk_spare_take(&dev->spare, bytes) : NULL;
    if (!ptr) {
        ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (ptr == MAP_FAILED)
            return jk_fail_errno(err, "cannot have %zu bytes of memory; lower the memory budget",
                                 bytes);
        /* Fewer page faults and TLB misses; a kernel without huge pages refuses, which costs
         * nothing. */
        (void)madvise(ptr, bytes, MADV_HUGEPAGE);
    }
    *out = ptr;
    return JASK_OK;
}

static void host_mem_free(jk_device *dev, void *ptr, size_t bytes)
{
    if (ptr && dev)
        jk_spare_give(&dev->spare, ptr, bytes);
    else if (ptr)
        munmap(ptr, bytes);
}

uint64_t jk_device_host_spare(jk_device *host)
{
    return host ? jk_spare_bytes(&host->spare) : 0;
}

static jask_status host_queue_open(jk_device *dev, jk_queue **out, jask_error *err)
{
    (void)err;
    *out = (jk_queue *)dev;
    return JASK_OK;
}

static void host_queue_close(jk_queue *queue)
{
    (void)queue;
}

static jask_status host_queue_drain(jk_queue *queue, jask_error *err)
{
    (void)queue, (void)err;
    return JASK_OK;
}

static jask_status host_event_open(jk_device *dev, jk_event **out, jask_error *err)
{
    (void)err;
    *out = (jk_event *)dev;
    return JASK_OK;
}

static void host_event_close(jk_event *event)
{
    (void)event;
}

static jask_status host_event_record(jk_event *event, jk_queue *queue, jask_error *err)
{
    (void)event, (void)queue, (void)err;
    return JASK_OK;
}

static jask_status host_queue_await(jk_queue *queue, jk_event *event, jask_error *err)
{
    (void)queue, (void)event, (void)err;
    return JASK_OK;
}

static jask_status host_event_wait(jk_event *event, jask_error *err)
{
    (void)event, (void)err;
    return JASK_OK;
}

static jask_status host_copy(jk_queue *queue, const jk_copy *copy, jask_error *err)
{
    (void)queue, (void)err;
    /* The usual case: the file was read straight into place. */
    if (copy->dst == copy->src)
        return JASK_OK;
    for (size_t r = 0; r < copy->rows; r++)
        memcpy((char *)copy->dst + r * copy->dst_pitch,
               (const char *)copy->src + r * copy->src_pitch, copy->row_bytes);
    return JASK_OK;
}

static jask_status host_gemm(jk_queue *queue, const jk_gemm *gemm, jask_error *err)
{
    (void)queue;
    if (gemm->ordered)
        return jk_ordered_run(gemm, err);
    jk_blas_gemm(gemm);
    return JASK_OK;
}

const jk_device_table jk_device_host = {
    .kind = "host",
    .count = host_count,
    .open = host_open,
    .close = host_close,
    .begin_thread = host_begin_thread,
    .info = host_info,
    .mem_alloc = host_mem_alloc,
    .mem_free = host_mem_free,
    .pin_alloc = host_mem_alloc,
    .pin_free = host_mem_free,
    .queue_open = host_queue_open,
    .queue_close = host_queue_close,
    .queue_drain = host_queue_drain,
    .event_open = host_event_open,
    .event_close = host_event_close,
    .event_record = host_event_record,
    .queue_await = host_queue_await,
    .event_wait = host_event_wait,
    .upload = host_copy,
    .download = host_copy,
    .gemm = host_gemm,
};
