/* Compiled where a toolkit is installed: the own declarations must agree with the real ones. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#ifdef CUSIM_OWN_DECLARATIONS
#error "this compares real headers with the own ones; it found only the own"
#endif

#define CUSIM_ENUM(tag, list) list
#define CUSIM_NAME(name, value) _Static_assert((int)(name) == (value), #name);
#include "include/cusim_constants.h"
#undef CUSIM_ENUM
#undef CUSIM_NAME

#include "include/cusim_blas_functions.h"
#include "include/cusim_functions.h"

_Static_assert(cudaStreamNonBlocking == 1 && cudaEventBlockingSync == 1 &&
                   cudaEventDisableTiming == 2 && cudaHostAllocPortable == 1,
               "flags");
_Static_assert(sizeof(dim3) == 3 * sizeof(unsigned), "dim3");

int main(void)
{
    return 0;
}
