/* What the files of the CUDA device share. CUDA's headers are included here and in kernels/ only.
 */
#ifndef JK_RUNTIME_CUDA_DEVICE_H
#define JK_RUNTIME_CUDA_DEVICE_H

#include "runtime/cublas_table.h"
#include "runtime/device.h"
#include "runtime/placement.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

struct jk_device {
    int index;
    char name[24]; /* "cuda:0", for messages */
    int capability_major, capability_minor;
    size_t max_pitch; /* of 2-D copies */
    jk_device_info info;
    jk_placement *near; /* the processors and memory next to the card; NULL: no matter */

    /* After some errors nothing works any more on a card, in this process. Then every call fails
     * with the first of them. */
    _Atomic bool lost;
    pthread_mutex_t lost_lock;
    jask_error lost_error;

    pthread_mutex_t blas_lock; /* guards what follows: one handle serves all queues */
    char *blas_path;           /* the cuBLAS to use; NULL: search */
    jk_cublas blas;
    cublasHandle_t handle;
    jk_queue *blas_queue; /* that the handle works on, with ... */
    void *blas_workspace;
};

struct jk_queue {
    jk_device *dev;
    cudaStream_t stream;
};

struct jk_event {
    jk_device *dev;
    cudaEvent_t event;
};

/* cuda_error.c. */

/* Make `code`, which CUDA answered to the call that the text names, an error: the text, the code's
 * name and meaning, and `advice` (may be NULL). Clears CUDA's last error, which would be blamed on
 * the next launch. Remembers when the device is lost; dev may be NULL. */
jask_status jk_cuda_fail(jk_device *dev, cudaError_t code, const char *advice, jask_error *err,
                         const char *fmt, ...) JK_PRINTF(5, 6);

/* The error that the device was lost by; OK while it works. */
jask_status jk_cuda_working(jk_device *dev, jask_error *err);

/* Why there is no device to use, in words; `code` is what cudaGetDeviceCount answered. */
void jk_cuda_absence(cudaError_t code, char *note, size_t note_size);

/* Make the device current in this thread, and the caller's own again afterwards: the program around
 * us may use CUDA too. */
jask_status jk_cuda_enter(jk_device *dev, int *out_previous, jask_error *err);
void jk_cuda_leave(const jk_device *dev, int previous);

/* cuda_info.c. */

/* Fill dev->info, capability and max_pitch. With the device current. */
jask_status jk_cuda_describe(jk_device *dev, jask_error *err);

/* Run a kernel: an old driver, or a card that this build has no code for, shows now and not in the
 * middle of a run. With the device current. */
jask_status jk_cuda_try(jk_device *dev, jask_error *err);

/* cuda_queue.c. */

/* Wait until the stream's work has ended, well or badly; returns how the waiting went. */
cudaError_t jk_cuda_settle(cudaStream_t stream);

/* The table's entries for queues, events and copies. */
jask_status jk_cuda_queue_open(jk_device *dev, jk_queue **out, jask_error *err);
void jk_cuda_queue_close(jk_queue *queue);
jask_status jk_cuda_queue_drain(jk_queue *queue, jask_error *err);
jask_status jk_cuda_event_open(jk_device *dev, jk_event **out, jask_error *err);
void jk_cuda_event_close(jk_event *event);
jask_status jk_cuda_event_record(jk_event *event, jk_queue *queue, jask_error *err);
jask_status jk_cuda_queue_await(jk_queue *queue, jk_event *event, jask_error *err);
jask_status jk_cuda_event_wait(jk_event *event, jask_error *err);
jask_status jk_cuda_upload(jk_queue *queue, const jk_copy *copy, jask_error *err);
jask_status jk_cuda_download(jk_queue *queue, const jk_copy *copy, jask_error *err);

/* cuda_gemm.c. */
jask_status jk_cuda_gemm(jk_queue *queue, const jk_gemm *gemm, jask_error *err);
/* The handle forgets a queue that is about to go. */
void jk_cuda_gemm_forget(jk_queue *queue);
void jk_cuda_gemm_close(jk_device *dev);

#endif
