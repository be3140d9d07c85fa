// The calls of cuBLAS.
#include "blas.h"

#include <algorithm>
#include <cstring>

using namespace cusim;

static constexpr uint64_t least_workspace = 16u << 10;

BlasHandle::~BlasHandle()
{
    unreserve_bytes(device, charged);
}

static cublasStatus_t status_of(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return CUBLAS_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation:
        return CUBLAS_STATUS_ALLOC_FAILED;
    case cudaErrorInvalidValue:
        return CUBLAS_STATUS_INVALID_VALUE;
    case cudaErrorNotSupported:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidResourceHandle:
        return CUBLAS_STATUS_NOT_INITIALIZED;
    case cudaErrorNoKernelImageForDevice:
        return CUBLAS_STATUS_ARCH_MISMATCH;
    default:
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

static BlasHandle *find_handle(cublasHandle_t handle)
{
    auto found = state.handles.find(reinterpret_cast<BlasHandle *>(handle));
    return found == state.handles.end() ? nullptr : found->second.get();
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *out)
{
    Call call("cublasCreate");
    if (call.failed())
        return status_of(call.finish(cudaSuccess));
    int device = this_thread().device;
    if (!reserve_bytes(device, state.config.blas_handle_bytes))
        return status_of(call.finish(cudaErrorMemoryAllocation));
    auto handle = std::make_unique<BlasHandle>();
    handle->device = device;
    handle->stream = current_device().legacy;
    handle->charged = state.config.blas_handle_bytes;
    *out = reinterpret_cast<cublasHandle_t>(handle.get());
    state.handles.emplace(handle.get(), std::move(handle));
    return status_of(call.finish(cudaSuccess));
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    Call call("cublasDestroy");
    if (!state.devices.empty())
        drain(call.lock);
    return status_of(call.finish(state.handles.erase(reinterpret_cast<BlasHandle *>(handle))
                                     ? cudaSuccess
                                     : cudaErrorInvalidResourceHandle));
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

// Brings cuBLAS' own workspace back, as the real one does: set the workspace after the stream.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream_handle)
{
    Call call("cublasSetStream");
    if (call.failed())
        return status_of(call.finish(cudaSuccess));
    BlasHandle *blas = find_handle(handle);
    Stream *stream = find_stream(stream_handle);
    if (!blas || !stream)
        return status_of(call.finish(cudaErrorInvalidResourceHandle));
    blas->stream = stream;
    blas->workspace = nullptr;
    blas->workspace_bytes = 0;
    return status_of(call.finish(cudaSuccess));
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    Call call("cublasSetWorkspace");
    if (call.failed())
        return status_of(call.finish(cudaSuccess));
    BlasHandle *blas = find_handle(handle);
    if (!blas)
        return status_of(call.finish(cudaErrorInvalidResourceHandle));
    if (address(workspace) % 256 || (workspace && !is_device(address(workspace))))
        return status_of(call.finish(cudaErrorInvalidValue));
    blas->workspace = workspace;
    blas->workspace_bytes = workspace ? bytes : 0;
    return status_of(call.finish(cudaSuccess));
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    Call call("cublasSetPointerMode");
    if (call.failed())
        return status_of(call.finish(cudaSuccess));
    BlasHandle *blas = find_handle(handle);
    if (!blas)
        return status_of(call.finish(cudaErrorInvalidResourceHandle));
    blas->pointers = mode;
    return status_of(call.finish(cudaSuccess));
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    Call call("cublasSetMathMode");
    if (call.failed())
        return status_of(call.finish(cudaSuccess));
    BlasHandle *blas = find_handle(handle);
    if (!blas)
        return status_of(call.finish(cudaErrorInvalidResourceHandle));
    blas->math = mode;
    return status_of(call.finish(cudaSuccess));
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    Lock lock;
    BlasHandle *blas = find_handle(handle);
    if (blas)
        *mode = blas->math;
    return blas ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

// The types of a call, in the call's own words.
struct Request {
    const char *name;
    cublasOperation_t op_a, op_b;
    int m, n, k;
    const void *alpha, *beta;
    cudaDataType type_scale;
    const void *a, *b;
    cudaDataType type_a, type_b, type_c;
    void *c;
    int lda, ldb, ldc;
    Inner inner;
};

static cudaError_t check_shape(const Request &r)
{
    int rows_a = r.op_a == CUBLAS_OP_N ? r.m : r.k, rows_b = r.op_b == CUBLAS_OP_N ? r.k : r.n;
    if (r.m < 0 || r.n < 0 || r.k < 0 || r.lda < std::max(1, rows_a) ||
        r.ldb < std::max(1, rows_b) || r.ldc < std::max(1, r.m))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

static Access matrix_access(const void *ptr, cudaDataType type, int rows, int cols, int ld,
                            bool write)
{
    size_t e = element_bytes(type);
    return {{address(ptr), static_cast<size_t>(rows) * e, static_cast<size_t>(ld) * e,
             static_cast<size_t>(cols)},
            write};
}

static std::vector<Access> accesses_of(const Request &r, const BlasHandle &blas)
{
    bool na = r.op_a == CUBLAS_OP_N, nb = r.op_b == CUBLAS_OP_N;
    std::vector<Access> list;
    list.push_back(matrix_access(r.c, r.type_c, r.m, r.n, r.ldc, true));
    list.push_back(matrix_access(r.a, r.type_a, na ? r.m : r.k, na ? r.k : r.m, r.lda, false));
    list.push_back(matrix_access(r.b, r.type_b, nb ? r.k : r.n, nb ? r.n : r.k, r.ldb, false));
    if (blas.workspace_bytes)
        list.push_back(
            {{address(blas.workspace), blas.workspace_bytes, blas.workspace_bytes, 1}, true});
    if (blas.pointers == CUBLAS_POINTER_MODE_DEVICE)
        for (const void *scalar : {r.alpha, r.beta}) {
            size_t e = element_bytes(r.type_scale);
            list.push_back({{address(scalar), e, e, 1}, false});
        }
    return list;
}

static Product product_of(const Request &r)
{
    Product p{};
    p.trans_a = r.op_a != CUBLAS_OP_N;
    p.trans_b = r.op_b != CUBLAS_OP_N;
    p.m = r.m;
    p.n = r.n;
    p.k = r.k;
    p.type_a = r.type_a;
    p.type_b = r.type_b;
    p.type_c = r.type_c;
    p.a = pointer(reachable(address(r.a)));
    p.b = pointer(reachable(address(r.b)));
    p.c = pointer(reachable(address(r.c)));
    p.lda = r.lda;
    p.ldb = r.ldb;
    p.ldc = r.ldc;
    p.inner = r.inner;
    return p;
}

// Without a workspace given, the handle takes its own, once.
static bool take_workspace(BlasHandle &blas)
{
    if (blas.workspace_bytes)
        return true;
    if (!blas.has_default_workspace) {
        if (!reserve_bytes(blas.device, state.config.blas_default_bytes))
            return false;
        blas.charged += state.config.blas_default_bytes;
        blas.has_default_workspace = true;
    }
    state.stats.default_workspaces++;
    return true;
}

static cudaError_t queue_product(Call &call, BlasHandle &blas, const Request &r)
{
    const char *alpha = static_cast<const char *>(r.alpha);
    const char *beta = static_cast<const char *>(r.beta);
    bool read_later = blas.pointers == CUBLAS_POINTER_MODE_DEVICE;
    char *scratch = blas.workspace_bytes ? pointer(reachable(address(blas.workspace))) : nullptr;
    uint64_t scratch_bytes = blas.workspace_bytes;
    cudaDataType type = r.type_scale;
    Product p = product_of(r);
    if (read_later) {
        alpha = pointer(reachable(address(alpha)));
        beta = pointer(reachable(address(beta)));
    } else {
        p.alpha = load_element(alpha, type, 0);
        p.beta = load_element(beta, type, 0);
    }
    state.stats.products++;
    return enqueue(call, *blas.stream, make_op(r.name, accesses_of(r, blas), [=]() mutable {
                       constexpr uint64_t touched = 4096; // of a workspace, at either end
                       uint64_t some = std::min(scratch_bytes, touched);
                       if (read_later) {
                           p.alpha = load_element(alpha, type, 0);
                           p.beta = load_element(beta, type, 0);
                       }
                       if (scratch) {
                           memset(scratch, 0xff, some);
                           memset(scratch + scratch_bytes - some, 0xff, some);
                       }
                       multiply(p);
                       return cudaSuccess;
                   }));
}

static cublasStatus_t product_call(cublasHandle_t handle, Request r)
{
    Call call(r.name);
    if (call.failed())
        return status_of(call.finish(cudaSuccess));
    BlasHandle *blas = find_handle(handle);
    if (!blas || blas->device != this_thread().device)
        return status_of(call.finish(cudaErrorInvalidResourceHandle));
    if (r.inner == Inner::f32 && r.type_a == CUDA_R_32F && blas->math == CUBLAS_TF32_TENSOR_OP_MATH)
        r.inner = Inner::tf32;
    if (check_shape(r) != cudaSuccess)
        return status_of(call.finish(cudaErrorInvalidValue));
    if (!r.m || !r.n)
        return status_of(call.finish(cudaSuccess));
    // What NVIDIA says is enough; with less, some products have no algorithm.
    if (blas->workspace_bytes && blas->workspace_bytes < least_workspace)
        return status_of(call.finish(cudaErrorMemoryAllocation));
    if (!take_workspace(*blas))
        return status_of(call.finish(cudaErrorMemoryAllocation));
    return status_of(call.finish(queue_product(call, *blas, r)));
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int m, int n, int k, const float *alpha, const float *a, int lda,
                              const float *b, int ldb, const float *beta, float *c, int ldc)
{
    return product_call(handle, {"cublasSgemm", op_a, op_b, m, n, k, alpha, beta, CUDA_R_32F, a, b,
                                 CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, c, lda, ldb, ldc, Inner::f32});
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int m, int n, int k, const double *alpha, const double *a, int lda,
                              const double *b, int ldb, const double *beta, double *c, int ldc)
{
    return product_call(handle, {"cublasDgemm", op_a, op_b, m, n, k, alpha, beta, CUDA_R_64F, a, b,
                                 CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, c, lda, ldb, ldc, Inner::f64});
}

// The combinations of types that cublasGemmEx takes, of those with sums in f32 or f64.
static bool types_fit(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute)
{
    if (a != b)
        return false;
    switch (compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
        return (a == CUDA_R_64F || a == CUDA_C_64F) && c == a;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        return a == CUDA_R_32F && c == a;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
        return ((a == CUDA_R_32F || a == CUDA_C_32F) && c == a) ||
               ((a == CUDA_R_16F || a == CUDA_R_16BF) && (c == a || c == CUDA_R_32F));
    default:
        return false;
    }
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void *alpha, const void *a,
                            cudaDataType type_a, int lda, const void *b, cudaDataType type_b,
                            int ldb, const void *beta, void *c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t)
{
    bool f64 = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    bool complex = type_c == CUDA_C_32F || type_c == CUDA_C_64F;
    // Adjoints are not simulated: nobody here asks for them.
    if (!types_fit(type_a, type_b, type_c, compute) ||
        (complex && (op_a == CUBLAS_OP_C || op_b == CUBLAS_OP_C)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Inner inner = complex                                   ? Inner::complex
                  : f64                                     ? Inner::f64
                  : compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? Inner::tf32
                                                            : Inner::f32;
    return product_call(handle, {"cublasGemmEx", op_a, op_b, m, n, k, alpha, beta,
                                 f64 ? CUDA_R_64F : CUDA_R_32F, a, b, type_a, type_b, type_c, c,
                                 lda, ldb, ldc, inner});
}
