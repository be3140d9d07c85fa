#include "runtime/blas.h"

#include "config.h"
#include "kernels/host_kernels.h"
#include "runtime/settings.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *jk_blas_name(void)
{
    return JK_BLAS_NAME;
}

/* What a function of OpenBLAS returns; "" without it. */
static const char *openblas_text(const char *function)
{
    const char *(*text)(void) = NULL;
    void *symbol = JK_HAVE_CBLAS ? dlsym(RTLD_DEFAULT, function) : NULL;
    memcpy(&text, &symbol, sizeof text);
    return text ? text() : "";
}

const char *jk_blas_core(void)
{
    return openblas_text("openblas_get_corename");
}

void jk_blas_advise_here(char text[JK_BLAS_ADVICE])
{
    jk_cpu cpu = jk_cpu_here();
    bool choosable = strstr(openblas_text("openblas_get_config"), "DYNAMIC_ARCH") != NULL;
    text[0] = '\0';
    if (!jk_settings_openblas_core())
        jk_blas_advise(jk_blas_core(), choosable, &cpu, text);
}

void jk_blas_describe(char *text, size_t text_size)
{
    const char *config = openblas_text("openblas_get_config");
    int (*threads)(void) = NULL;
    void *threads_symbol = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    memcpy(&threads, &threads_symbol, sizeof threads);
    if (*config && threads)
        snprintf(text, text_size, "%s, %s, %d threads", JK_BLAS_NAME, config, threads());
    else
        snprintf(text, text_size, "%s", JK_BLAS_NAME);
}

void jk_plain_gemm(const jk_gemm *g)
{
    float alpha = (float)g->alpha, beta = (float)g->beta;
    switch (g->dtype) {
    case JASK_F32:
        jk_gemm_f32(g->trans_a, g->trans_b, g->m, g->n, g->k, alpha, g->a, g->lda, g->b, g->ldb,
                    beta, g->c, g->ldc);
        return;
    case JASK_F64:
        jk_gemm_f64(g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->a, g->lda, g->b, g->ldb,
                    g->beta, g->c, g->ldc);
        return;
    case JASK_C64:
        jk_gemm_c64(g->trans_a, g->trans_b, g->m, g->n, g->k, alpha, g->a, g->lda, g->b, g->ldb,
                    beta, g->c, g->ldc);
        return;
    default:
        assert(g->dtype == JASK_C128);
        jk_gemm_c128(g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->a, g->lda, g->b, g->ldb,
                     g->beta, g->c, g->ldc);
    }
}

/* A single sum is made as exactly as f64 can say it. */
static void one_sum(const jk_gemm *g)
{
    double *c = g->c;
    double sum =
        g->alpha * jk_dot_f64(g->k, g->a, g->trans_a ? g->lda : 1, g->b, g->trans_b ? 1 : g->ldb);
    *c = g->beta == 0 ? sum : fma(g->beta, *c, sum);
}

#if JK_HAVE_CBLAS

#include <cblas.h>

static bool fits_int(const jk_gemm *g)
{
    return g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX && g->lda <= INT_MAX &&
           g->ldb <= INT_MAX && g->ldc <= INT_MAX;
}

static void blas_gemm(const jk_gemm *g)
{
    CBLAS_TRANSPOSE ta = g->trans_a ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = g->trans_b ? CblasTrans : CblasNoTrans;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const float alpha32[2] = {(float)g->alpha, 0}, beta32[2] = {(float)g->beta, 0};
    const double alpha64[2] = {g->alpha, 0}, beta64[2] = {g->beta, 0};
    switch (g->dtype) {
    case JASK_F32:
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, *alpha32, g->a, lda, g->b, ldb, *beta32, g->c,
                    ldc);
        return;
    case JASK_F64:
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, *alpha64, g->a, lda, g->b, ldb, *beta64, g->c,
                    ldc);
        return;
    case JASK_C64:
        cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, alpha32, g->a, lda, g->b, ldb, beta32, g->c,
                    ldc);
        return;
    default:
        assert(g->dtype == JASK_C128);
        cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, alpha64, g->a, lda, g->b, ldb, beta64, g->c,
                    ldc);
    }
}

void jk_blas_gemm(const jk_gemm *g)
{
    /* Plans keep tiles far below what BLAS counts; a caller that does not still gets the right
     * answer. */
    if (g->m == 1 && g->n == 1 && g->dtype == JASK_F64)
        one_sum(g);
    else if (fits_int(g))
        blas_gemm(g);
    else
        jk_plain_gemm(g);
}

#else

void jk_blas_gemm(const jk_gemm *g)
{
    if (g->m == 1 && g->n == 1 && g->dtype == JASK_F64)
        one_sum(g);
    else
        jk_plain_gemm(g);
}

#endif
