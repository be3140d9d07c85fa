#include "cusim.h"

#include <criterion/criterion.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

static void start(size_t device_bytes)
{
    cusim_config c;
    cusim_config_default(&c);
    c.scheduler = CUSIM_PCT;
    c.device_bytes = device_bytes;
    c.blas_handle_bytes = 1024;
    c.blas_default_bytes = 4096;
    cusim_reset(&c);
}

static cublasHandle_t handle_open(void)
{
    cublasHandle_t handle = NULL;
    cr_assert_eq(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    return handle;
}

static void *upload(const void *data, size_t bytes)
{
    void *ptr = NULL;
    cr_assert_eq(cudaMalloc(&ptr, bytes), cudaSuccess);
    cr_assert_eq(cudaMemcpy(ptr, data, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    return ptr;
}

static void download(void *data, const void *ptr, size_t bytes)
{
    cr_assert_eq(cudaMemcpy(data, ptr, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
}

/* Element (row, col) of op(x), column-major. */
static double at(const double *x, int ld, cublasOperation_t op, int row, int col)
{
    return op == CUBLAS_OP_N ? x[col * ld + row] : x[row * ld + col];
}

enum { M = 5, N = 4, K = 3, LD = 7 };

static void fill(double *x, float *narrow, int seed)
{
    for (int i = 0; i < LD * LD; i++) {
        x[i] = (i * seed) % 11 - 5;
        narrow[i] = (float)x[i];
    }
}

Test(blas, products_are_column_major_and_may_be_transposed)
{
    double a[LD * LD], b[LD * LD], c[LD * LD], out64[LD * LD];
    float fa[LD * LD], fb[LD * LD], fc[LD * LD], out32[LD * LD];
    const double alpha = 2, beta = -1;
    const float alpha32 = 2, beta32 = -1;
    start(1 << 20);
    fill(a, fa, 3);
    fill(b, fb, 5);
    fill(c, fc, 7);
    for (int t = 0; t < 4; t++) {
        cublasOperation_t ta = t & 1 ? CUBLAS_OP_T : CUBLAS_OP_N;
        cublasOperation_t tb = t & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
        cublasHandle_t h = handle_open();
        void *da = upload(a, sizeof a), *db = upload(b, sizeof b), *dc = upload(c, sizeof c);
        void *sa = upload(fa, sizeof fa), *sb = upload(fb, sizeof fb), *sc = upload(fc, sizeof fc);
        cr_assert_eq(cublasDgemm(h, ta, tb, M, N, K, &alpha, da, LD, db, LD, &beta, dc, LD), 0);
        cr_assert_eq(cublasSgemm(h, ta, tb, M, N, K, &alpha32, sa, LD, sb, LD, &beta32, sc, LD), 0);
        download(out64, dc, sizeof out64);
        download(out32, sc, sizeof out32);
        for (int col = 0; col < N; col++)
            for (int row = 0; row < M; row++) {
                double sum = 0;
                for (int p = 0; p < K; p++)
                    sum += at(a, LD, ta, row, p) * at(b, LD, tb, p, col);
                sum = 2 * sum - c[col * LD + row];
                cr_assert_eq(out64[col * LD + row], sum);
                cr_assert_eq((double)out32[col * LD + row], sum);
            }
        cr_assert_eq(out64[LD - 1], c[LD - 1], "rows past m are left alone");
        cr_assert_eq(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
    }
    cr_assert_eq(cusim_report_count(NULL), 0, "%s", cusim_report(0));
}

Test(blas, beta_zero_does_not_read_the_result)
{
    const float one = 1, zero = 0, two = 2;
    float out = 0;
    void *a, *c;
    cublasHandle_t h;
    start(1 << 20);
    h = handle_open();
    a = upload(&two, sizeof two);
    cr_assert_eq(cudaMalloc(&c, sizeof out), cudaSuccess); /* NaN */
    cr_assert_eq(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, 1, a, 1, &zero, c, 1),
                 0);
    download(&out, c, sizeof out);
    cr_assert_eq(out, 4.0f);
    cr_assert_eq(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, 1, a, 1, &one, c, 1),
                 0);
    download(&out, c, sizeof out);
    cr_assert_eq(out, 8.0f);
}

/* 1 + 2^-12 has more bits than TF32 keeps. */
Test(blas, tf32_rounds_its_inputs_and_only_when_asked)
{
    const float one = 1, zero = 0, x = 1.0f + 0x1p-12f;
    const struct {
        cublasMath_t math;
        cublasComputeType_t compute;
        float result;
    } rows[] = {
        {CUBLAS_DEFAULT_MATH, CUBLAS_COMPUTE_32F, 1.0f + 0x1p-12f},
        {CUBLAS_PEDANTIC_MATH, CUBLAS_COMPUTE_32F_PEDANTIC, 1.0f + 0x1p-12f},
        {CUBLAS_TF32_TENSOR_OP_MATH, CUBLAS_COMPUTE_32F, 1.0f},
        {CUBLAS_DEFAULT_MATH, CUBLAS_COMPUTE_32F_FAST_TF32, 1.0f},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float out = 0;
        void *a, *b, *c;
        cublasHandle_t h;
        start(1 << 20);
        h = handle_open();
        a = upload(&x, sizeof x);
        b = upload(&one, sizeof one);
        c = upload(&zero, sizeof zero);
        cr_assert_eq(cublasSetMathMode(h, rows[i].math), 0);
        cr_assert_eq(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, CUDA_R_32F, 1, b,
                                  CUDA_R_32F, 1, &zero, c, CUDA_R_32F, 1, rows[i].compute,
                                  CUBLAS_GEMM_DEFAULT),
                     0);
        download(&out, c, sizeof out);
        cr_assert_eq(out, rows[i].result, "row %d", (int)i);
    }
}

/* x * x + x * x with sums in f32, and rounded once more when the result is narrow. */
Test(blas, sixteen_bit_inputs_are_summed_in_f32)
{
    const float one = 1, zero = 0;
    const struct {
        cudaDataType type;
        uint16_t x;
        float value;
        uint16_t narrow; /* 2 * value^2 in the same type */
    } rows[] = {
        {CUDA_R_16F, 0x3c01, 1.0f + 0x1p-10f, 0x4002}, /* 2 + 2^-8 + 2^-19 */
        {CUDA_R_16F, 0x0001, 0x1p-24f, 0x0000},        /* subnormal; the square is lost */
        {CUDA_R_16F, 0x7bff, 65504.0f, 0x7c00},        /* overflows */
        {CUDA_R_16BF, 0x3f81, 1.0f + 0x1p-7f, 0x4002}, /* 2 + 2^-5 + 2^-13 */
        {CUDA_R_16BF, 0x0080, 0x1p-126f, 0x0000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint16_t pair[2] = {rows[i].x, rows[i].x}, narrow = 1;
        float wide = -1, expected = 2 * rows[i].value * rows[i].value;
        cublasHandle_t h;
        void *x, *c;
        start(1 << 20);
        h = handle_open();
        x = upload(pair, sizeof pair);
        c = upload(&zero, sizeof zero);
        cr_assert_eq(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, x, rows[i].type, 1, x,
                                  rows[i].type, 2, &zero, c, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                                  CUBLAS_GEMM_DEFAULT),
                     0);
        download(&wide, c, sizeof wide);
        cr_assert_eq(wide, expected, "row %d", (int)i);
        cr_assert_eq(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, x, rows[i].type, 1, x,
                                  rows[i].type, 2, &zero, c, rows[i].type, 1, CUBLAS_COMPUTE_32F,
                                  CUBLAS_GEMM_DEFAULT),
                     0);
        download(&narrow, c, sizeof narrow);
        cr_assert_eq(narrow, rows[i].narrow, "row %d: %#x", (int)i, narrow);
    }
}

Test(blas, what_is_not_supported_is_refused)
{
    const float one = 1;
    void *x;
    cublasHandle_t h;
    start(1 << 20);
    h = handle_open();
    x = upload(&one, sizeof one);
    cr_assert_eq(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x, CUDA_R_32F, 1, x,
                              CUDA_R_64F, 1, &one, x, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT),
                 CUBLAS_STATUS_NOT_SUPPORTED);
    cr_assert_eq(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 1, &one, x, 1, x, 1, &one, x, 2),
                 CUBLAS_STATUS_INVALID_VALUE, "lda below m");
    cr_assert_eq(cublasSetWorkspace(h, (char *)x + 1, 1), CUBLAS_STATUS_INVALID_VALUE);
    cr_assert_eq(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
    cr_assert_eq(cublasDestroy(h), CUBLAS_STATUS_NOT_INITIALIZED);
}

static void multiply_once(cublasHandle_t h, void *x, void *c)
{
    const float one = 1, zero = 0;
    cr_assert_eq(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x, 1, x, 1, &zero, c, 1),
                 0);
}

/* The least that every product works in. */
#define WORKSPACE ((size_t)16 << 10)

Test(blas, too_small_a_workspace_fails_a_product)
{
    const float one = 1, zero = 0;
    cublasHandle_t h;
    void *x, *workspace;
    start(1 << 20);
    h = handle_open();
    x = upload(&one, sizeof one);
    cr_assert_eq(cudaMalloc(&workspace, WORKSPACE), cudaSuccess);
    cr_assert_eq(cublasSetWorkspace(h, workspace, WORKSPACE - 256), 0);
    cr_assert_eq(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x, 1, x, 1, &zero, x, 1),
                 CUBLAS_STATUS_ALLOC_FAILED);
    cr_assert_eq(cublasSetWorkspace(h, workspace, WORKSPACE), 0);
}

Test(blas, a_workspace_is_the_callers_or_is_charged)
{
    const float one = 1;
    cublasHandle_t h;
    cudaStream_t stream;
    void *x, *c, *workspace;
    cusim_stats stats;
    start(1 << 20);
    h = handle_open();
    x = upload(&one, sizeof one);
    c = upload(&one, sizeof one);
    cr_assert_eq(cudaMalloc(&workspace, WORKSPACE), cudaSuccess);
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cublasSetStream(h, stream), 0);
    cr_assert_eq(cublasSetWorkspace(h, workspace, WORKSPACE), 0);
    multiply_once(h, x, c);
    cusim_get_stats(&stats);
    cr_assert_eq(stats.products, 1);
    cr_assert_eq(stats.default_workspaces, 0);
    cr_assert_eq(stats.used_bytes, 1024 + 2 * 512 + WORKSPACE);
    cr_assert_eq(cublasSetStream(h, stream), 0); /* brings cuBLAS' own back */
    multiply_once(h, x, c);
    cusim_get_stats(&stats);
    cr_assert_eq(stats.default_workspaces, 1);
    cr_assert_eq(stats.used_bytes, 1024 + 2 * 512 + WORKSPACE + 4096);
    cr_assert_eq(cublasDestroy(h), 0);
    cusim_get_stats(&stats);
    cr_assert_eq(stats.used_bytes, 2 * 512 + WORKSPACE);
}

Test(blas, handles_do_not_fit_where_memory_is_short)
{
    cublasHandle_t h = NULL;
    start(512);
    cr_assert_eq(cublasCreate(&h), CUBLAS_STATUS_ALLOC_FAILED);
    cr_assert_null(h);
}

Test(blas, two_streams_may_not_share_a_workspace)
{
    const float one = 1;
    void *x, *workspace, *c[2];
    start(1 << 20);
    x = upload(&one, sizeof one);
    cr_assert_eq(cudaMalloc(&workspace, WORKSPACE), cudaSuccess);
    c[0] = upload(&one, sizeof one);
    c[1] = upload(&one, sizeof one);
    for (int i = 0; i < 2; i++) {
        cublasHandle_t h = handle_open();
        cudaStream_t stream;
        cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
        cr_assert_eq(cublasSetStream(h, stream), 0);
        cr_assert_eq(cublasSetWorkspace(h, workspace, WORKSPACE), 0);
        multiply_once(h, x, c[i]);
        cr_assert_eq(cusim_report_count("ORDER"), (size_t)i);
        cr_assert_eq(cusim_report_count(NULL), (size_t)i);
    }
}

Test(blas, scalars_on_the_device_are_read_when_the_product_runs)
{
    float two = 2, three = 3, zero = 0, out = 0;
    float *scalar;
    void *x, *c;
    cublasHandle_t h;
    cudaStream_t stream;
    start(1 << 20);
    h = handle_open();
    x = upload(&two, sizeof two);
    c = upload(&zero, sizeof zero);
    scalar = upload(&zero, sizeof zero);
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cublasSetStream(h, stream), 0);
    cr_assert_eq(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE), 0);
    cr_assert_eq(cudaMemcpyAsync(scalar, &three, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
    cr_assert_eq(
        cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, scalar, x, 1, x, 1, scalar, c, 1), 0);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
    download(&out, c, sizeof out);
    cr_assert_eq(out, 12.0f);
}
