/* The benchmarks of a CUDA device. Peers of jask are cuBLAS in device memory, and cublasXt. */
#ifndef JASK_BENCH_GPU_H
#define JASK_BENCH_GPU_H

#include "common.h"

#include <cuda_runtime_api.h>

/* What to multiply: A * B, n x n, and how often. */
typedef struct gpu_case {
    jask_dtype dtype;
    int tf32;
    int sync;       /* files: make results durable */
    int cold;       /* files: inputs are read from the disk */
    const char *io; /* the setting; NULL: jask's choice */
    int64_t n;
    const char *budget;
    int pairs;
    const char *dir;
    size_t matrix_bytes;
    void *a, *b; /* pinned */
    void *peer;  /* pinned: the product by a peer */
} gpu_case;

void gpu_case_open(gpu_case *w);
void gpu_case_close(gpu_case *w);

/* A context on cuda:0, with the whole of the budget. */
jask_context *gpu_context(const gpu_case *w);

/* The setting in force. */
const char *gpu_setting(jask_context *ctx, const char *name);

/* End the program unless a CUDA call went well. */
void gpu_must(cudaError_t code, const char *what);
void *gpu_pin(size_t bytes);

/* Element (i, j) of a product. */
typedef double (*gpu_element_fn)(const void *product, int64_t i, int64_t j, const gpu_case *w);
double gpu_element(const void *product, int64_t i, int64_t j, const gpu_case *w);

/* The largest difference of some elements of a product to what f64 makes of the inputs. Ends the
 * program for one that rounding does not explain. */
double gpu_difference(const gpu_case *w, const char *whose, gpu_element_fn element,
                      const void *product);

/* gpu_peers.c. One call of cuBLAS with all three matrices in device memory. Call after a context
 * was opened: the library is the one that jask has found. */
typedef struct gpu_incore {
    double product_seconds; /* the call */
    double seconds;         /* with the copies of A, B and the product */
} gpu_incore;
void gpu_peers_open(const gpu_case *w);
gpu_incore gpu_incore_run(const gpu_case *w);
void gpu_peers_close(void);

/* cublasXt with blocks such that it takes at most budget_bytes of device memory; 0 when it cannot
 * do this product (it has neither TF32 nor 16-bit types). */
int gpu_xt_open(const gpu_case *w, uint64_t budget_bytes);
double gpu_xt_run(const gpu_case *w);
int gpu_xt_block(void);
size_t gpu_xt_bytes(void);
void gpu_xt_close(void);

/* gpu_copies.c. Bytes a second of pinned memory, in pieces. */
typedef struct gpu_rates {
    double up, down, both; /* both: up and down at once, added */
} gpu_rates;
gpu_rates gpu_copy_rates(size_t bytes, size_t piece_bytes);

/* The programs: one JSON line a case. */
void gpu_copies(size_t bytes);
void gpu_memory(gpu_case *w);
void gpu_files(gpu_case *w);

#endif
