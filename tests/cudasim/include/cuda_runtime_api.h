/* Declarations of the part of the CUDA runtime that this project uses, for machines without a
 * toolkit. Where there is one, its own headers are used and check_headers.c compares. */
#ifndef CUSIM_CUDA_RUNTIME_API_H
#define CUSIM_CUDA_RUNTIME_API_H

#include <stddef.h>

#define CUDART_VERSION 13000
#define CUDARTAPI
#define CUSIM_OWN_DECLARATIONS 1

#define CUSIM_ENUM(tag, list) enum tag { list CUSIM_LAST_##tag = 0x7fffffff };
#define CUSIM_NAME(name, value) name = value,
#include "cusim_constants.h"
#undef CUSIM_ENUM
#undef CUSIM_NAME

typedef enum cudaError cudaError_t;
typedef enum cudaDataType_ cudaDataType;
typedef enum cudaDataType_ cudaDataType_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

typedef struct uint3 {
    unsigned x, y, z;
} uint3;

#ifdef __cplusplus
typedef struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {}
} dim3;
#else
typedef struct dim3 {
    unsigned x, y, z;
} dim3;
#endif

/* Field names are the real ones, their places are not. */
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int major, minor;
    int multiProcessorCount;
    int asyncEngineCount;
    int integrated;
    int unifiedAddressing;
    int ECCEnabled;
    int l2CacheSize;
    int memoryBusWidth;
    int pciBusID, pciDeviceID, pciDomainID;
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion;
};

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01

#ifdef __cplusplus
extern "C" {
#endif
#include "cusim_functions.h"
#ifdef __cplusplus
}
#endif

#endif
