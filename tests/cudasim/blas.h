// A product as cuBLAS sees it: column-major, element types from the call.
#ifndef CUSIM_BLAS_H
#define CUSIM_BLAS_H

#include "sim.h"

namespace cusim
{

struct BlasHandle {
    int device = 0;
    Stream *stream = nullptr;
    cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    void *workspace = nullptr;
    uint64_t workspace_bytes = 0;
    uint64_t charged = 0;
    bool has_default_workspace = false;
    ~BlasHandle();
};

enum class Inner { f32, tf32, f64, complex };

struct Product {
    bool trans_a, trans_b;
    int m, n, k;
    cudaDataType type_a, type_b, type_c;
    const char *a, *b; // where the simulator reads and writes them
    char *c;
    int lda, ldb, ldc;
    double alpha, beta;
    Inner inner; // what is multiplied and summed
};

size_t element_bytes(cudaDataType type);
double load_element(const char *at, cudaDataType type, size_t index);
void store_element(char *at, cudaDataType type, size_t index, double value);
void multiply(const Product &product);

} // namespace cusim

#endif
