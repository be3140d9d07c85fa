/* cuBLAS as a table of functions. It is never linked: that would cost every start 0.1 s and 150 MB,
 * also where no product is made on a GPU. */
#ifndef JK_RUNTIME_CUBLAS_TABLE_H
#define JK_RUNTIME_CUBLAS_TABLE_H

#include "common/base.h"

#include <cublas_v2.h>

/* The exported names of what we call. */
#define JK_CUBLAS_FUNCTIONS(X)                                                                     \
    X(cublasCreate_v2)                                                                             \
    X(cublasDestroy_v2)                                                                            \
    X(cublasSetStream_v2)                                                                          \
    X(cublasSetWorkspace_v2)                                                                       \
    X(cublasGemmEx)                                                                                \
    X(cublasGetStatusString)

typedef struct jk_cublas {
    void *library; /* NULL: not loaded */
#define JK_CUBLAS_MEMBER(name) __typeof__(&name) name##_p;
    JK_CUBLAS_FUNCTIONS(JK_CUBLAS_MEMBER)
#undef JK_CUBLAS_MEMBER
} jk_cublas;

/* Load cuBLAS: `path` alone when it is given, else by its soname, from where Python wheels and the
 * toolkit put it, and by its plain name. DEVICE naming all that was tried, and why each was not
 * it. */
jask_status jk_cublas_load(const char *path, jk_cublas *out, jask_error *err);

/* A table that was never loaded is allowed. */
void jk_cublas_unload(jk_cublas *blas);

#endif
