/* Kernels on a CUDA device, launched from C. Each is the fast twin of the plain-C kernel of the
 * same name without "cuda_", in host_numbers.h, host_ordered.h or host_kernels.h, which tells what
 * it does: same parameters, then a stream; same result, bit for bit, but for the bits of a NaN that
 * comes from arithmetic. Pointers are device memory, of any alignment that their type allows (void: any); 16
 * bytes is fastest. Work is queued; the value returned is the launch's own error, or
 * cudaErrorInvalidValue for an element size that the twin does not take. */
#ifndef JK_KERNELS_DEVICE_KERNELS_H
#define JK_KERNELS_DEVICE_KERNELS_H

#include "kernels/host_numbers.h"
#include "kernels/host_ordered.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether this card runs our code at all: out[i] = jk_probe_word(seed, i) for 32 words. */
cudaError_t jk_cuda_probe(uint32_t seed, uint32_t *out, cudaStream_t stream);

cudaError_t jk_cuda_axpby_f32(int64_t n, float alpha, const float *x, float beta, const float *y,
                              float *z, cudaStream_t stream);
cudaError_t jk_cuda_axpby_f64(int64_t n, double alpha, const double *x, double beta,
                              const double *y, double *z, cudaStream_t stream);

cudaError_t jk_cuda_f16_to_f32(int64_t n, const uint16_t *x, float *y, cudaStream_t stream);
cudaError_t jk_cuda_bf16_to_f32(int64_t n, const uint16_t *x, float *y, cudaStream_t stream);
cudaError_t jk_cuda_f32_to_f16(int64_t n, const float *x, uint16_t *y, cudaStream_t stream);
cudaError_t jk_cuda_f32_to_bf16(int64_t n, const float *x, uint16_t *y, cudaStream_t stream);
cudaError_t jk_cuda_f32_to_f64(int64_t n, const float *x, double *y, cudaStream_t stream);
cudaError_t jk_cuda_f64_to_f32(int64_t n, const double *x, float *y, cudaStream_t stream);

cudaError_t jk_cuda_swap_bytes(void *data, int64_t count, size_t size, cudaStream_t stream);

cudaError_t jk_cuda_transpose(void *dst, int64_t dst_ld, const void *src, int64_t src_ld,
                              int64_t rows, int64_t cols, size_t size, cudaStream_t stream);

/* The twin of a product without elements is not launched: m, n and k are at least 1. */
cudaError_t jk_cuda_ordered_f32(const jk_ordered *g, cudaStream_t stream);
cudaError_t jk_cuda_ordered_f64(const jk_ordered *g, cudaStream_t stream);
cudaError_t jk_cuda_ordered_c64(const jk_ordered *g, cudaStream_t stream);
cudaError_t jk_cuda_ordered_c128(const jk_ordered *g, cudaStream_t stream);

/* `out` holds jk_parts(n) values, each the sum (the range) of one part of x. */
cudaError_t jk_cuda_sum_f32(int64_t n, const float *x, double *out, cudaStream_t stream);
cudaError_t jk_cuda_sum_f64(int64_t n, const double *x, double *out, cudaStream_t stream);
cudaError_t jk_cuda_range_f32(int64_t n, const float *x, jk_range *out, cudaStream_t stream);
cudaError_t jk_cuda_range_f64(int64_t n, const double *x, jk_range *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
