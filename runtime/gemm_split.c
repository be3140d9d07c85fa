#include "runtime/gemm_split.h"

/* Parts begin at multiples of this, so that they are as aligned as the whole. */
#define PART_MULTIPLE ((int64_t)256)

static const void *skip(const jk_gemm *g, const void *base, int64_t elems)
{
    jask_dtype dtype = g->input_dtype ? g->input_dtype : g->dtype;
    return (const char *)base + (size_t)elems * jask_dtype_size(dtype);
}

jk_gemm jk_gemm_rows(const jk_gemm *g, int64_t from, int64_t count)
{
    jk_gemm part = *g;
    part.m = jk_min(count, g->m - from);
    part.a = skip(g, g->a, g->trans_a ? from : from * g->lda);
    part.c = (char *)g->c + (size_t)(from * g->ldc) * jask_dtype_size(g->dtype);
    return part;
}

jk_gemm jk_gemm_cols(const jk_gemm *g, int64_t from, int64_t count)
{
    jk_gemm part = *g;
    part.n = jk_min(count, g->n - from);
    part.b = skip(g, g->b, g->trans_b ? from * g->ldb : from);
    part.c = (char *)g->c + (size_t)from * jask_dtype_size(g->dtype);
    return part;
}

/* The part of k indices [from, from + count); all but the first add to D. */
static jk_gemm cut_k(const jk_gemm *g, int64_t from, int64_t count)
{
    jk_gemm part = *g;
    part.k = jk_min(count, g->k - from);
    part.a = skip(g, g->a, g->trans_a ? from * g->lda : from);
    part.b = skip(g, g->b, g->trans_b ? from : from * g->ldb);
    part.beta = from == 0 ? g->beta : 1;
    return part;
}

typedef jk_gemm (*cut_fn)(const jk_gemm *g, int64_t from, int64_t count);

/* Which extent to cut, and into how much: what is too long; else the one that counts the rows of a
 * matrix whose rows lie too far apart, into single rows. False when all is well. */
static bool choose_cut(const jk_gemm *g, int64_t most, cut_fn *cut, int64_t *extent, int64_t *count)
{
    int64_t whole = most >= PART_MULTIPLE ? most / PART_MULTIPLE * PART_MULTIPLE : most;
    int64_t a_rows = g->trans_a ? g->k : g->m, b_rows = g->trans_b ? g->n : g->k;
    *count = 1;
    if ((g->ldc > most && g->m > 1) || (g->lda > most && a_rows > 1 && !g->trans_a))
        *cut = jk_gemm_rows;
    else if (g->ldb > most && b_rows > 1 && g->trans_b)
        *cut = jk_gemm_cols;
    else if ((g->lda > most && a_rows > 1) || (g->ldb > most && b_rows > 1))
        *cut = cut_k;
    else {
        *count = whole;
        *cut = g->m > most ? jk_gemm_rows : g->n > most ? jk_gemm_cols : g->k > most ? cut_k : NULL;
    }
    *extent = *cut == jk_gemm_rows ? g->m : *cut == jk_gemm_cols ? g->n : g->k;
    return *cut != NULL;
}

/* A matrix of one row has no rows apart: any leading dimension will do that holds its row. */
static void shorten_leading(jk_gemm *g, int64_t most)
{
    if (g->lda > most)
        g->lda = g->trans_a ? g->m : g->k;
    if (g->ldb > most)
        g->ldb = g->trans_b ? g->k : g->n;
    if (g->ldc > most)
        g->ldc = g->n;
}

jask_status jk_gemm_split(const jk_gemm *gemm, int64_t most, jk_gemm_fn part, void *user,
                          jask_error *err)
{
    jk_gemm g = *gemm;
    cut_fn cut;
    int64_t extent, count;
    jask_status st = JASK_OK;
    if (!choose_cut(&g, most, &cut, &extent, &count)) {
        shorten_leading(&g, most);
        return part(user, &g, err);
    }
    for (int64_t from = 0; !st && from < extent; from += count) {
        jk_gemm piece = cut(&g, from, count);
        st = jk_gemm_split(&piece, most, part, user, err);
    }
    return st;
}
