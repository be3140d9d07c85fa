#ifndef CUSIM_CUDA_RUNTIME_H
#define CUSIM_CUDA_RUNTIME_H
#include "cuda_runtime_api.h"
#endif
