#include "runtime/blas.h"

#include "config.h"
#include "kernels/host_kernels.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const char *jk_blas_name(void)
{
    return JK_BLAS_NAME;
}

void jk_blas_describe(char *text, size_t text_size)
{
    const char *(*config)(void) = NULL;
    int (*threads)(void) = NULL;
    void *config_symbol = dlsym(RTLD_DEFAULT, "openblas_get_config");
    void *threads_symbol = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    memcpy(&config, &config_symbol, sizeof config);
    memcpy(&threads, &threads_symbol, sizeof threads);
    if (JK_HAVE_CBLAS && config && threads)
        snprintf(text, text_size, "%s, %s, %d threads", JK_BLAS_NAME, config(), threads());
    else
        snprintf(text, text_size, "%s", JK_BLAS_NAME);
}

void jk_plain_gemm(const jk_gemm *g)
{
    assert(g->dtype == JASK_F32 || g->dtype == JASK_F64);
    if (g->dtype == JASK_F32)
        jk_gemm_f32(g->trans_a, g->trans_b, g->m, g->n, g->k, (float)g->alpha, g->a, g->lda, g->b,
                    g->ldb, (float)g->beta, g->c, g->ldc);
    else
        jk_gemm_f64(g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->a, g->lda, g->b, g->ldb,
                    g->beta, g->c, g->ldc);
}

#if JK_HAVE_CBLAS

#include <cblas.h>

static bool fits_int(const jk_gemm *g)
{
    return g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX && g->lda <= INT_MAX &&
           g->ldb <= INT_MAX && g->ldc <= INT_MAX;
}

void jk_blas_gemm(const jk_gemm *g)
{
    CBLAS_TRANSPOSE ta = g->trans_a ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = g->trans_b ? CblasTrans : CblasNoTrans;
    /* Plans keep tiles far below this; a caller that does not still gets the right answer. */
    if (!fits_int(g)) {
        jk_plain_gemm(g);
        return;
    }
    assert(g->dtype == JASK_F32 || g->dtype == JASK_F64);
    if (g->dtype == JASK_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, (int)g->m, (int)g->n, (int)g->k, (float)g->alpha, g->a,
                    (int)g->lda, g->b, (int)g->ldb, (float)g->beta, g->c, (int)g->ldc);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, (int)g->m, (int)g->n, (int)g->k, g->alpha, g->a,
                    (int)g->lda, g->b, (int)g->ldb, g->beta, g->c, (int)g->ldc);
}

#else

void jk_blas_gemm(const jk_gemm *g)
{
    jk_plain_gemm(g);
}

#endif
