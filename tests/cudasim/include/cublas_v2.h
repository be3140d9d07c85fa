/* Declarations of the part of cuBLAS that this project uses, for machines without a toolkit. */
#ifndef CUSIM_CUBLAS_V2_H
#define CUSIM_CUBLAS_V2_H

#include "cuda_runtime_api.h"

#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 1
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION (CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH)
#define CUBLASWINAPI

typedef struct cublasContext *cublasHandle_t;
typedef enum cublasStatus cublasStatus_t;
typedef enum cublasOperation cublasOperation_t;
typedef enum cublasPointerMode cublasPointerMode_t;
typedef enum cublasMath cublasMath_t;
typedef enum cublasCompute cublasComputeType_t;
typedef enum cublasGemmAlgo cublasGemmAlgo_t;

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2

#ifdef __cplusplus
extern "C" {
#endif
#include "cusim_blas_functions.h"
#ifdef __cplusplus
}
#endif

#endif
