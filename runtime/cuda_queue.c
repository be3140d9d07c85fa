/* Queues are CUDA streams, events are events without timing. */
#include "runtime/cuda_device.h"
#include "runtime/waits.h"

#include <stdio.h>
#include <stdlib.h>

jask_status jk_cuda_queue_open(jk_device *dev, jk_queue **out, jask_error *err)
{
    int previous;
    cudaError_t code;
    jk_queue *queue;
    jask_status st = jk_cuda_enter(dev, &previous, err);
    if (st)
        return st;
    queue = calloc(1, sizeof *queue);
    if (!queue) {
        st = jk_fail(err, JASK_ERR_NOMEM, "no memory for a queue of %s", dev->name);
        goto out;
    }
    queue->dev = dev;
    /* Must not wait for, nor hold up, what the program around us does on the default stream. */
    code = cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking);
    if (code == cudaSuccess) {
        *out = queue;
        queue = NULL;
    } else {
        st = jk_cuda_fail(dev, code, NULL, err, "cudaStreamCreateWithFlags on %s", dev->name);
    }
out:
    free(queue);
    jk_cuda_leave(dev, previous);
    return st;
}

cudaError_t jk_cuda_settle(cudaStream_t stream)
{
    cudaError_t code = cudaStreamSynchronize(stream);
    /* An error of the work itself is told once it has ended; an error of the waiting is worth
     * another try. */
    if (code != cudaSuccess)
        (void)cudaStreamSynchronize(stream);
    return code;
}

void jk_cuda_queue_close(jk_queue *queue)
{
    if (!queue)
        return;
    jk_cuda_gemm_forget(queue);
    /* Hazard: whoever closes a queue frees the memory that its work uses. What the work failed
     * with is of no interest any more, but it must have ended. */
    if (!queue->dev->lost && jk_must_wait(JK_WAIT_QUEUE_CLOSED))
        (void)jk_cuda_settle(queue->stream);
    (void)cudaStreamDestroy(queue->stream);
    (void)cudaGetLastError();
    free(queue);
}

jask_status jk_cuda_queue_drain(jk_queue *queue, jask_error *err)
{
    cudaError_t code;
    jask_status st = jk_cuda_working(queue->dev, err);
    if (st)
        return st;
    code = cudaStreamSynchronize(queue->stream);
    return code == cudaSuccess
               ? JASK_OK
               : jk_cuda_fail(queue->dev, code, NULL, err,
                              "work on %s failed, seen by cudaStreamSynchronize", queue->dev->name);
}

jask_status jk_cuda_event_open(jk_device *dev, jk_event **out, jask_error *err)
{
    int previous;
    cudaError_t code;
    jk_event *event;
    jask_status st = jk_cuda_enter(dev, &previous, err);
    if (st)
        return st;
    event = calloc(1, sizeof *event);
    if (!event) {
        st = jk_fail(err, JASK_ERR_NOMEM, "no memory for an event of %s", dev->name);
        goto out;
    }
    event->dev = dev;
    code = cudaEventCreateWithFlags(&event->event, cudaEventDisableTiming);
    if (code == cudaSuccess) {
        *out = event;
        event = NULL;
    } else {
        st = jk_cuda_fail(dev, code, NULL, err, "cudaEventCreateWithFlags on %s", dev->name);
    }
out:
    free(event);
    jk_cuda_leave(dev, previous);
    return st;
}

void jk_cuda_event_close(jk_event *event)
{
    if (!event)
        return;
    if (cudaEventDestroy(event->event) != cudaSuccess)
        (void)cudaGetLastError();
    free(event);
}

jask_status jk_cuda_event_record(jk_event *event, jk_queue *queue, jask_error *err)
{
    cudaError_t code;
    jask_status st = jk_cuda_working(event->dev, err);
    if (st)
        return st;
    code = cudaEventRecord(event->event, queue->stream);
    return code == cudaSuccess ? JASK_OK
                               : jk_cuda_fail(event->dev, code, NULL, err, "cudaEventRecord on %s",
                                              event->dev->name);
}

jask_status jk_cuda_queue_await(jk_queue *queue, jk_event *event, jask_error *err)
{
    cudaError_t code;
    jask_status st = jk_cuda_working(queue->dev, err);
    if (st)
        return st;
    code = cudaStreamWaitEvent(queue->stream, event->event, 0);
    return code == cudaSuccess ? JASK_OK
                               : jk_cuda_fail(queue->dev, code, NULL, err,
                                              "cudaStreamWaitEvent on %s", queue->dev->name);
}

jask_status jk_cuda_event_wait(jk_event *event, jask_error *err)
{
    cudaError_t code;
    jask_status st = jk_cuda_working(event->dev, err);
    if (st)
        return st;
    code = cudaEventSynchronize(event->event);
    return code == cudaSuccess
               ? JASK_OK
               : jk_cuda_fail(event->dev, code, NULL, err,
                              "work on %s failed, seen by cudaEventSynchronize", event->dev->name);
}

/* One row after another: as a whole where the rows touch, and where pitches are beyond what CUDA
 * copies in two dimensions row by row. */
static cudaError_t copy_rows(jk_queue *queue, const jk_copy *copy, enum cudaMemcpyKind kind)
{
    const jk_device *dev = queue->dev;
    cudaError_t code = cudaSuccess;
    if (copy->rows == 1 ||
        (copy->dst_pitch == copy->row_bytes && copy->src_pitch == copy->row_bytes))
        return cudaMemcpyAsync(copy->dst, copy->src, copy->rows * copy->row_bytes, kind,
                               queue->stream);
    if (copy->dst_pitch <= dev->max_pitch && copy->src_pitch <= dev->max_pitch)
        return cudaMemcpy2DAsync(copy->dst, copy->dst_pitch, copy->src, copy->src_pitch,
                                 copy->row_bytes, copy->rows, kind, queue->stream);
    for (size_t r = 0; code == cudaSuccess && r < copy->rows; r++)
        code = cudaMemcpyAsync((char *)copy->dst + r * copy->dst_pitch,
                               (const char *)copy->src + r * copy->src_pitch, copy->row_bytes, kind,
                               queue->stream);
    return code;
}

static jask_status copy(jk_queue *queue, const jk_copy *copy, enum cudaMemcpyKind kind,
                        const char *direction, jask_error *err)
{
    cudaError_t code;
    jask_status st = jk_cuda_working(queue->dev, err);
    if (st || copy->rows == 0 || copy->row_bytes == 0)
        return st;
    code = copy_rows(queue, copy, kind);
    return code == cudaSuccess
               ? JASK_OK
               : jk_cuda_fail(queue->dev, code, NULL, err,
                              "copying %zu rows of %zu bytes %s %s: cudaMemcpy2DAsync", copy->rows,
                              copy->row_bytes, direction, queue->dev->name);
}

jask_status jk_cuda_upload(jk_queue *queue, const jk_copy *what, jask_error *err)
{
    return copy(queue, what, cudaMemcpyHostToDevice, "to", err);
}

jask_status jk_cuda_download(jk_queue *queue, const jk_copy *what, jask_error *err)
{
    return copy(queue, what, cudaMemcpyDeviceToHost, "from", err);
}
