/* The peers: cuBLAS on matrices in device memory, and cublasXt on matrices in pinned memory. */
#include "gpu.h"

#include <cublasXt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define SONAME "libcublas.so." TEXT(CUBLAS_VER_MAJOR)

#define FUNCTIONS(X)                                                                               \
    X(cublasCreate_v2)                                                                             \
    X(cublasDestroy_v2)                                                                            \
    X(cublasGemmEx)                                                                                \
    X(cublasXtCreate)                                                                              \
    X(cublasXtDestroy)                                                                             \
    X(cublasXtDeviceSelect)                                                                        \
    X(cublasXtSetBlockDim)                                                                         \
    X(cublasXtSgemm)                                                                               \
    X(cublasXtDgemm)

static struct {
    void *library;
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
    cublasHandle_t handle;
    cudaStream_t stream; /* the default one */
    void *a, *b, *c;     /* device */
    cudaEvent_t before, after;
} in;

static struct {
    cublasXtHandle_t handle;
    int block;
    size_t bytes;
} xt;

static void must(cublasStatus_t status, const char *what)
{
    char text[32];
    snprintf(text, sizeof text, "cuBLAS status %d", (int)status);
    if (status != CUBLAS_STATUS_SUCCESS)
        bench_die(what, text);
}

/* By its soname the dynamic linker knows the one that jask has loaded, from wherever. */
static void load(void)
{
    const char *named = getenv("JASK_CUBLAS");
    void *symbol;
    in.library = dlopen(named && *named ? named : SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!in.library)
        bench_die("cuBLAS", dlerror());
#define FILL(name)                                                                                 \
    symbol = dlsym(in.library, #name);                                                             \
    if (!symbol)                                                                                   \
        bench_die("cuBLAS has no", #name);                                                         \
    memcpy(&in.name, &symbol, sizeof symbol);
    FUNCTIONS(FILL)
}

void gpu_peers_open(const gpu_case *w)
{
    load();
    must(in.cublasCreate_v2(&in.handle), "cublasCreate");
    gpu_must(cudaMalloc(&in.a, w->matrix_bytes), "device memory for A");
    gpu_must(cudaMalloc(&in.b, w->matrix_bytes), "device memory for B");
    gpu_must(cudaMalloc(&in.c, w->matrix_bytes), "device memory for the product");
    gpu_must(cudaEventCreate(&in.before), "event");
    gpu_must(cudaEventCreate(&in.after), "event");
}

void gpu_peers_close(void)
{
    gpu_must(cudaEventDestroy(in.before), "event");
    gpu_must(cudaEventDestroy(in.after), "event");
    gpu_must(cudaFree(in.a), "free");
    gpu_must(cudaFree(in.b), "free");
    gpu_must(cudaFree(in.c), "free");
    must(in.cublasDestroy_v2(in.handle), "cublasDestroy");
}

static cudaDataType_t data_type(jask_dtype dtype)
{
    return dtype == JASK_F64    ? CUDA_R_64F
           : dtype == JASK_F16  ? CUDA_R_16F
           : dtype == JASK_BF16 ? CUDA_R_16BF
                                : CUDA_R_32F;
}

/* As a user would call it: the library's default arithmetic for the type, 16-bit results of sums in f32.
 * Columns come first in cuBLAS, so it is asked for the transpose. */
static void multiply(const gpu_case *w)
{
    int n = (int)w->n, f64 = w->dtype == JASK_F64;
    float one = 1, zero = 0;
    double one64 = 1, zero64 = 0;
    cudaDataType_t type = data_type(w->dtype);
    must(in.cublasGemmEx(in.handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, f64 ? (void *)&one64 : &one,
                         in.b, type, n, in.a, type, n, f64 ? (void *)&zero64 : &zero, in.c, type, n,
                         f64       ? CUBLAS_COMPUTE_64F
                         : w->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                   : CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT),
         "cublasGemmEx");
}

gpu_incore gpu_incore_run(const gpu_case *w)
{
    float milliseconds;
    double start = bench_now();
    size_t bytes = w->matrix_bytes;
    gpu_incore out;
    gpu_must(cudaMemcpyAsync(in.a, w->a, bytes, cudaMemcpyHostToDevice, in.stream), "copy A");
    gpu_must(cudaMemcpyAsync(in.b, w->b, bytes, cudaMemcpyHostToDevice, in.stream), "copy B");
    gpu_must(cudaEventRecord(in.before, in.stream), "event");
    multiply(w);
    gpu_must(cudaEventRecord(in.after, in.stream), "event");
    gpu_must(cudaMemcpyAsync(w->peer, in.c, bytes, cudaMemcpyDeviceToHost, in.stream), "copy back");
    gpu_must(cudaStreamSynchronize(in.stream), "in-core product");
    out.seconds = bench_now() - start;
    gpu_must(cudaEventElapsedTime(&milliseconds, in.before, in.after), "event");
    out.product_seconds = 1e-3 * (double)milliseconds;
    return out;
}

static size_t free_bytes(void)
{
    size_t available, total;
    gpu_must(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return available;
}

static void open_xt(int block)
{
    int device = 0;
    must(in.cublasXtCreate(&xt.handle), "cublasXtCreate");
    must(in.cublasXtDeviceSelect(xt.handle, 1, &device), "cublasXtDeviceSelect");
    must(in.cublasXtSetBlockDim(xt.handle, block), "cublasXtSetBlockDim");
    xt.block = block;
}

static void multiply_xt(const gpu_case *w, size_t n)
{
    float one = 1, zero = 0;
    double one64 = 1, zero64 = 0;
    if (w->dtype == JASK_F64)
        must(in.cublasXtDgemm(xt.handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one64, w->b, n, w->a,
                              n, &zero64, w->peer, n),
             "cublasXtDgemm");
    else
        must(in.cublasXtSgemm(xt.handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, w->b, n, w->a, n,
                              &zero, w->peer, n),
             "cublasXtSgemm");
    gpu_must(cudaDeviceSynchronize(), "cublasXt");
}

double gpu_xt_run(const gpu_case *w)
{
    double start = bench_now();
    multiply_xt(w, (size_t)w->n);
    return bench_now() - start;
}

/* The least free memory, looked at again and again while `running`. */
typedef struct watch {
    _Atomic int running;
    size_t least;
} watch;

static void *watch_memory(void *arg)
{
    watch *w = arg;
    while (w->running) {
        size_t now = free_bytes();
        w->least = now < w->least ? now : w->least;
        usleep(500);
    }
    return NULL;
}

/* Device memory that a product takes. */
static size_t bytes_taken(const gpu_case *w)
{
    size_t before = free_bytes();
    watch look = {.running = 1, .least = before};
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch_memory, &look) != 0)
        bench_die("thread", "cannot be made");
    multiply_xt(w, (size_t)w->n);
    look.running = 0;
    pthread_join(thread, NULL);
    return before - look.least;
}

/* It does not say what memory it takes, so that is looked up, and blocks are made smaller until it
 * fits. What it takes for itself at the start, as cuBLAS does for jask, is not counted. */
int gpu_xt_open(const gpu_case *w, uint64_t budget_bytes)
{
    double fit = sqrt((double)budget_bytes / (4.0 * (double)jask_dtype_size(w->dtype)));
    if (w->tf32 || (w->dtype != JASK_F32 && w->dtype != JASK_F64))
        return 0;
    open_xt(64);
    multiply_xt(w, (size_t)(w->n < 256 ? w->n : 256)); /* its code is loaded now */
    gpu_xt_close();
    for (;;) {
        int block = (int)fmin(fit, (double)w->n);
        block = block > 64 ? block / 64 * 64 : block;
        if (block < 8)
            bench_die("cublasXt", "does not fit into the budget");
        open_xt(block);
        xt.bytes = bytes_taken(w);
        if (xt.bytes <= budget_bytes)
            return 1;
        gpu_xt_close();
        fit = fmin(0.9 * block, block * sqrt((double)budget_bytes / (double)xt.bytes));
    }
}

int gpu_xt_block(void)
{
    return xt.block;
}

size_t gpu_xt_bytes(void)
{
    return xt.bytes;
}

void gpu_xt_close(void)
{
    must(in.cublasXtDestroy(xt.handle), "cublasXtDestroy");
}
