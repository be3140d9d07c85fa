/* Products by cuBLAS, and by a kernel of our own. */
#include "kernels/device_kernels.h"
#include "runtime/cuda_device.h"
#include "runtime/gemm_split.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

static jask_status blas_fail(jk_queue *queue, cublasStatus_t status, jask_error *err,
                             const char *call)
{
    jk_device *dev = queue->dev;
    cudaError_t code = cudaStreamQuery(queue->stream);
    const char *meaning = dev->blas.cublasGetStatusString_p(status);
    dev->blas_queue = NULL; /* what the handle is set to is not known any more */
    /* The card itself has failed, and cuBLAS only noticed. */
    if (code != cudaSuccess && code != cudaErrorNotReady)
        return jk_cuda_fail(dev, code, NULL, err, "%s on %s: status %d (%s)", call, dev->name,
                            (int)status, meaning);
    (void)cudaGetLastError();
    if (status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_INITIALIZED)
        return jk_fail(err, JASK_ERR_NOMEM,
                       "%s on %s: status %d (%s); cuBLAS needs some device memory of its own: "
                       "lower the memory budget, or end what else runs there",
                       call, dev->name, (int)status, meaning);
    return jk_fail(err, JASK_ERR_DEVICE, "%s on %s: status %d (%s)", call, dev->name, (int)status,
                   meaning);
}

/* Have the handle work on this queue, in this workspace. With blas_lock held. */
static jask_status aim_handle(jk_queue *queue, const jk_gemm *gemm, jask_error *err)
{
    jk_device *dev = queue->dev;
    jask_status st = JASK_OK;
    cublasStatus_t status;
    if (!dev->blas.library)
        st = jk_cublas_load(dev->blas_path, &dev->blas, err);
    if (st)
        return st;
    if (!dev->handle) {
        status = dev->blas.cublasCreate_v2_p(&dev->handle);
        if (status != CUBLAS_STATUS_SUCCESS) {
            dev->handle = NULL;
            return blas_fail(queue, status, err, "cublasCreate");
        }
    }
    if (dev->blas_queue == queue && dev->blas_workspace == gemm->workspace)
        return JASK_OK;
    status = dev->blas.cublasSetStream_v2_p(dev->handle, queue->stream);
    if (status != CUBLAS_STATUS_SUCCESS)
        return blas_fail(queue, status, err, "cublasSetStream");
    /* In this order: setting the stream goes back to a workspace of cuBLAS's own. */
    status = dev->blas.cublasSetWorkspace_v2_p(dev->handle, gemm->workspace, gemm->workspace_bytes);
    if (status != CUBLAS_STATUS_SUCCESS)
        return blas_fail(queue, status, err, "cublasSetWorkspace");
    dev->blas_queue = queue;
    dev->blas_workspace = gemm->workspace;
    return JASK_OK;
}

/* The pedantic modes promise IEEE arithmetic whatever the environment (NVIDIA_TF32_OVERRIDE) or a
 * new library's defaults say. Products of 16-bit numbers are exact in f32 in any mode; the plain one
 * takes the units that are made for them. */
static cublasComputeType_t compute_type(const jk_gemm *gemm)
{
    if (gemm->dtype == JASK_F64 || gemm->dtype == JASK_C128)
        return CUBLAS_COMPUTE_64F_PEDANTIC;
    if (gemm->input_dtype == JASK_F16 || gemm->input_dtype == JASK_BF16)
        return CUBLAS_COMPUTE_32F;
    return gemm->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC;
}

static cudaDataType_t data_type(jask_dtype dtype)
{
    switch (dtype) {
    case JASK_F16:
        return CUDA_R_16F;
    case JASK_BF16:
        return CUDA_R_16BF;
    case JASK_F32:
        return CUDA_R_32F;
    case JASK_F64:
        return CUDA_R_64F;
    case JASK_C64:
        return CUDA_C_32F;
    default:
        return CUDA_C_64F;
    }
}

/* cuBLAS counts columns first: what it takes for matrices are our transposes, so it is asked for
 * D^T = op(B)^T op(A)^T. Of the factors it reads as many parts as its type has. */
static jask_status multiply_part(void *user, const jk_gemm *g, jask_error *err)
{
    jk_queue *queue = user;
    jk_device *dev = queue->dev;
    bool wide = g->dtype == JASK_F64 || g->dtype == JASK_C128;
    cudaDataType_t type = data_type(g->dtype);
    cudaDataType_t input = data_type(g->input_dtype ? g->input_dtype : g->dtype);
    const float alpha[2] = {(float)g->alpha, 0}, beta[2] = {(float)g->beta, 0};
    const double wide_alpha[2] = {g->alpha, 0}, wide_beta[2] = {g->beta, 0};
    cublasStatus_t status = dev->blas.cublasGemmEx_p(
        dev->handle, g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N,
        (int)g->n, (int)g->m, (int)g->k, wide ? (const void *)wide_alpha : alpha, g->b, input,
        (int)g->ldb, g->a, input, (int)g->lda, wide ? (const void *)wide_beta : beta, g->c, type,
        (int)g->ldc, compute_type(g), CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS)
        return JASK_OK;
    blas_fail(queue, status, err, "cublasGemmEx");
    return jk_fail_in(err, err ? err->code : JASK_ERR_DEVICE,
                      "product of %" PRId64 " x %" PRId64 ", k %" PRId64, g->m, g->n, g->k);
}

static jask_status run_ordered(jk_queue *queue, const jk_gemm *g, jask_error *err)
{
    jk_device *dev = queue->dev;
    const jk_ordered ordered = {g->trans_a, g->trans_b, g->m, g->n,   g->k,   g->alpha, g->beta,
                                g->a,       g->b,       g->c, g->lda, g->ldb, g->ldc};
    cudaError_t code = g->dtype == JASK_F32   ? jk_cuda_ordered_f32(&ordered, queue->stream)
                       : g->dtype == JASK_F64 ? jk_cuda_ordered_f64(&ordered, queue->stream)
                       : g->dtype == JASK_C64 ? jk_cuda_ordered_c64(&ordered, queue->stream)
                                              : jk_cuda_ordered_c128(&ordered, queue->stream);
    if (code == cudaSuccess)
        return JASK_OK;
    return jk_cuda_fail(dev, code, NULL, err,
                        "product of %" PRId64 " x %" PRId64 ", k %" PRId64
                        ", in order on %s: cudaLaunchKernel",
                        g->m, g->n, g->k, dev->name);
}

static jask_status run_blas(jk_queue *queue, const jk_gemm *gemm, jask_error *err)
{
    jk_device *dev = queue->dev;
    jask_status st;
    pthread_mutex_lock(&dev->blas_lock);
    st = aim_handle(queue, gemm, err);
    if (!st)
        st = jk_gemm_split(gemm, INT_MAX, multiply_part, queue, err);
    pthread_mutex_unlock(&dev->blas_lock);
    return st;
}

jask_status jk_cuda_gemm(jk_queue *queue, const jk_gemm *gemm, jask_error *err)
{
    jk_device *dev = queue->dev;
    int previous;
    jask_error mine;
    jask_status st;
    if (!err)
        err = &mine;
    st = jk_cuda_enter(dev, &previous, err);
    if (st)
        return st;
    st = gemm->ordered ? run_ordered(queue, gemm, err) : run_blas(queue, gemm, err);
    jk_cuda_leave(dev, previous);
    return st;
}

void jk_cuda_gemm_forget(jk_queue *queue)
{
    jk_device *dev = queue->dev;
    pthread_mutex_lock(&dev->blas_lock);
    if (dev->blas_queue == queue)
        dev->blas_queue = NULL;
    pthread_mutex_unlock(&dev->blas_lock);
}

void jk_cuda_gemm_close(jk_device *dev)
{
    if (dev->handle)
        (void)dev->blas.cublasDestroy_v2_p(dev->handle);
    dev->handle = NULL;
    jk_cublas_unload(&dev->blas);
}
