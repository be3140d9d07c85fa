// Names and texts of errors.
#include "sim.h"

using namespace cusim;

struct Name {
    int value;
    const char *name;
};

#define CUSIM_ENUM(tag, list) [[maybe_unused]] static const Name tag##_names[] = {list};
#define CUSIM_NAME(name, value) {value, #name},
#include "include/cusim_constants.h"
#undef CUSIM_ENUM
#undef CUSIM_NAME

const char *cudaGetErrorName(cudaError_t error)
{
    for (const Name &row : cudaError_names)
        if (row.value == error)
            return row.name;
    return "cudaErrorUnrecognized";
}

const char *cudaGetErrorString(cudaError_t error)
{
    static const Name texts[] = {
        {cudaSuccess, "no error"},
        {cudaErrorInvalidValue, "invalid argument"},
        {cudaErrorMemoryAllocation, "out of memory"},
        {cudaErrorInsufficientDriver, "the driver is missing or too old for this runtime"},
        {cudaErrorNoDevice, "no CUDA device"},
        {cudaErrorInvalidDevice, "no such device"},
        {cudaErrorNoKernelImageForDevice, "no code for this device"},
        {cudaErrorIllegalAddress, "illegal memory access"},
        {cudaErrorLaunchFailure, "a kernel failed"},
        {cudaErrorNotReady, "not ready"},
    };
    for (const Name &row : texts)
        if (row.value == error)
            return row.name;
    return cudaGetErrorName(error);
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    for (const Name &row : cublasStatus_names)
        if (row.value == status)
            return row.name;
    return "unrecognized status";
}
