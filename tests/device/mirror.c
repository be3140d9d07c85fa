#include "mirror.h"

#include "runtime/blas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct jk_device {
    size_t device_bytes, pinned_bytes;
};

static struct jk_device the_mirror;

/* Handles of device memory point this far from the bytes: following one faults, or at least misses.
 */
#define SHIFT ((size_t)1 << 46)

static void *to_handle(void *bytes)
{
    return (char *)bytes + SHIFT;
}

static void *to_bytes(const void *handle)
{
    return (char *)(uintptr_t)handle - SHIFT;
}

static int count(char *note, size_t note_size)
{
    (void)note, (void)note_size;
    return 1;
}

static jask_status open_device(int index, const jk_device_options *options, jk_device **out,
                               jask_error *err)
{
    (void)index, (void)options, (void)err;
    *out = &the_mirror;
    return JASK_OK;
}

static void close_device(jk_device *dev)
{
    (void)dev;
}

static void begin_thread(jk_device *dev)
{
    (void)dev;
}

static jask_status info(jk_device *dev, jk_device_info *out, jask_error *err)
{
    (void)dev, (void)err;
    *out = (jk_device_info){.name = "mirror", .alignment = 256};
    return JASK_OK;
}

static void *poisoned(size_t bytes)
{
    void *p = malloc(bytes);
    assert(p);
    memset(p, 0xff, bytes); /* NaN in every floating point type */
    return p;
}

static jask_status mem_alloc(jk_device *dev, size_t bytes, void **out, jask_error *err)
{
    (void)err;
    dev->device_bytes += bytes;
    *out = to_handle(poisoned(bytes));
    return JASK_OK;
}

static void mem_free(jk_device *dev, void *ptr, size_t bytes)
{
    if (!ptr)
        return;
    dev->device_bytes -= bytes;
    free(to_bytes(ptr));
}

static jask_status pin_alloc(jk_device *dev, size_t bytes, void **out, jask_error *err)
{
    (void)err;
    dev->pinned_bytes += bytes;
    *out = poisoned(bytes);
    return JASK_OK;
}

static void pin_free(jk_device *dev, void *ptr, size_t bytes)
{
    if (ptr)
        dev->pinned_bytes -= bytes;
    free(ptr);
}

static jask_status queue_open(jk_device *dev, jk_queue **out, jask_error *err)
{
    (void)err;
    *out = (jk_queue *)dev;
    return JASK_OK;
}

static void queue_close(jk_queue *queue)
{
    (void)queue;
}

static jask_status queue_drain(jk_queue *queue, jask_error *err)
{
    (void)queue, (void)err;
    return JASK_OK;
}

static jask_status event_open(jk_device *dev, jk_event **out, jask_error *err)
{
    (void)err;
    *out = (jk_event *)dev;
    return JASK_OK;
}

static void event_close(jk_event *event)
{
    (void)event;
}

static jask_status event_record(jk_event *event, jk_queue *queue, jask_error *err)
{
    (void)event, (void)queue, (void)err;
    return JASK_OK;
}

static jask_status queue_await(jk_queue *queue, jk_event *event, jask_error *err)
{
    (void)queue, (void)event, (void)err;
    return JASK_OK;
}

static jask_status event_wait(jk_event *event, jask_error *err)
{
    (void)event, (void)err;
    return JASK_OK;
}

static void copy_rows(char *dst, size_t dst_pitch, const char *src, size_t src_pitch,
                      const jk_copy *copy)
{
    for (size_t r = 0; r < copy->rows; r++)
        memcpy(dst + r * dst_pitch, src + r * src_pitch, copy->row_bytes);
}

static jask_status upload(jk_queue *queue, const jk_copy *copy, jask_error *err)
{
    (void)queue, (void)err;
    copy_rows(to_bytes(copy->dst), copy->dst_pitch, copy->src, copy->src_pitch, copy);
    /* Whoever fills the staging block again must not find the old bytes useful. */
    for (size_t r = 0; r < copy->rows; r++)
        memset((char *)(uintptr_t)copy->src + r * copy->src_pitch, 0xff, copy->row_bytes);
    return JASK_OK;
}

static jask_status download(jk_queue *queue, const jk_copy *copy, jask_error *err)
{
    (void)queue, (void)err;
    copy_rows(copy->dst, copy->dst_pitch, to_bytes(copy->src), copy->src_pitch, copy);
    return JASK_OK;
}

static jask_status gemm(jk_queue *queue, const jk_gemm *g, jask_error *err)
{
    jk_gemm host = *g;
    (void)queue, (void)err;
    host.a = to_bytes(g->a);
    host.b = to_bytes(g->b);
    host.c = to_bytes(g->c);
    jk_plain_gemm(&host);
    return JASK_OK;
}

const jk_device_table mirror_device = {
    .kind = "mirror",
    .count = count,
    .open = open_device,
    .close = close_device,
    .begin_thread = begin_thread,
    .info = info,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .pin_alloc = pin_alloc,
    .pin_free = pin_free,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .queue_drain = queue_drain,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .queue_await = queue_await,
    .event_wait = event_wait,
    .upload = upload,
    .download = download,
    .gemm = gemm,
};

size_t mirror_device_bytes(void)
{
    return the_mirror.device_bytes;
}

size_t mirror_pinned_bytes(void)
{
    return the_mirror.pinned_bytes;
}

jk_device_ref mirror_open(void)
{
    jk_device_ref ref = {.table = &mirror_device};
    jask_error err;
    ref.table->open(0, NULL, &ref.dev, &err);
    ref.table->info(ref.dev, &ref.info, &err);
    return ref;
}
