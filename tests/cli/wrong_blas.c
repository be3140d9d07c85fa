/* Preloaded into a tool: the BLAS library's f32 product with its first element off by one, and OpenBLAS's
 * kernels by the name that WRONG_BLAS_CORE says, or by none. */
#include <cblas.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) char *openblas_get_corename(void);

char *openblas_get_corename(void)
{
    static char none[] = "";
    char *core = getenv("WRONG_BLAS_CORE");
    return core ? core : none;
}

typedef void sgemm_fn(const CBLAS_LAYOUT, const CBLAS_TRANSPOSE, const CBLAS_TRANSPOSE, const int,
                      const int, const int, const float, const float *, const int, const float *,
                      const int, const float, float *, const int);

__attribute__((visibility("default"))) sgemm_fn cblas_sgemm;

void cblas_sgemm(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE ta, const CBLAS_TRANSPOSE tb,
                 const int m, const int n, const int k, const float alpha, const float *a,
                 const int lda, const float *b, const int ldb, const float beta, float *c,
                 const int ldc)
{
    sgemm_fn *right = NULL;
    void *symbol = dlsym(RTLD_NEXT, "cblas_sgemm");
    if (!symbol)
        abort();
    memcpy(&right, &symbol, sizeof right);
    right(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    c[0] += 1.0F;
}
