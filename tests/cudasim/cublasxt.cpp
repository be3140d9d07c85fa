// As much of cublasXt as a benchmark calls: products of host memory, done at once. Device memory is
// charged as if two blocks of each operand were there. Built where a toolkit has the header.
#include "blas.h"

#pragma GCC visibility push(default)
#include <cublasXt.h>
#pragma GCC visibility pop

using namespace cusim;

struct cublasXtContext {
    int device = 0;
    size_t block = 1024;
    size_t charged = 0;
};

cublasStatus_t cublasXtCreate(cublasXtHandle_t *handle)
{
    *handle = new cublasXtContext;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasXtDestroy(cublasXtHandle_t handle)
{
    Lock lock;
    unreserve_bytes(handle->device, handle->charged);
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasXtDeviceSelect(cublasXtHandle_t handle, int count, int *devices)
{
    if (count != 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    handle->device = devices[0];
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t handle, int block)
{
    if (block < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->block = static_cast<size_t>(block);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t take_blocks(cublasXtHandle_t handle, size_t element)
{
    size_t bytes = 6 * handle->block * handle->block * element;
    Lock lock;
    if (bytes <= handle->charged)
        return CUBLAS_STATUS_SUCCESS;
    if (!reserve_bytes(handle->device, bytes - handle->charged))
        return CUBLAS_STATUS_ALLOC_FAILED;
    handle->charged = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t multiply_now(cublasXtHandle_t handle, Product p)
{
    cublasStatus_t status = take_blocks(handle, element_bytes(p.type_c));
    if (status == CUBLAS_STATUS_SUCCESS)
        multiply(p);
    return status;
}

static Product product_of(cublasOperation_t op_a, cublasOperation_t op_b, size_t m, size_t n,
                          size_t k, cudaDataType type, const void *a, size_t lda, const void *b,
                          size_t ldb, void *c, size_t ldc)
{
    Product p{};
    p.trans_a = op_a != CUBLAS_OP_N;
    p.trans_b = op_b != CUBLAS_OP_N;
    p.m = static_cast<int>(m);
    p.n = static_cast<int>(n);
    p.k = static_cast<int>(k);
    p.type_a = p.type_b = p.type_c = type;
    p.a = static_cast<const char *>(a);
    p.b = static_cast<const char *>(b);
    p.c = static_cast<char *>(c);
    p.lda = static_cast<int>(lda);
    p.ldb = static_cast<int>(ldb);
    p.ldc = static_cast<int>(ldc);
    p.inner = type == CUDA_R_64F ? Inner::f64 : Inner::f32;
    return p;
}

cublasStatus_t cublasXtSgemm(cublasXtHandle_t handle, cublasOperation_t op_a,
                             cublasOperation_t op_b, size_t m, size_t n, size_t k,
                             const float *alpha, const float *a, size_t lda, const float *b,
                             size_t ldb, const float *beta, float *c, size_t ldc)
{
    Product p = product_of(op_a, op_b, m, n, k, CUDA_R_32F, a, lda, b, ldb, c, ldc);
    p.alpha = static_cast<double>(*alpha);
    p.beta = static_cast<double>(*beta);
    return multiply_now(handle, p);
}

cublasStatus_t cublasXtDgemm(cublasXtHandle_t handle, cublasOperation_t op_a,
                             cublasOperation_t op_b, size_t m, size_t n, size_t k,
                             const double *alpha, const double *a, size_t lda, const double *b,
                             size_t ldb, const double *beta, double *c, size_t ldc)
{
    Product p = product_of(op_a, op_b, m, n, k, CUDA_R_64F, a, lda, b, ldb, c, ldc);
    p.alpha = *alpha;
    p.beta = *beta;
    return multiply_now(handle, p);
}
