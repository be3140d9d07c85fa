#include "runtime/blas.h"
#include "runtime/gemm_split.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct seen {
    int64_t most;
    int parts;
} seen;

/* Nothing the part is asked for is too long; it does its share with the plain loops. */
static jask_status multiply(void *user, const jk_gemm *g, jask_error *err)
{
    seen *s = user;
    const int64_t numbers[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
    (void)err;
    s->parts++;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cr_assert(numbers[i] >= 1 && numbers[i] <= s->most);
    cr_assert_geq(g->lda, g->trans_a ? g->m : g->k);
    cr_assert_geq(g->ldb, g->trans_b ? g->k : g->n);
    cr_assert_geq(g->ldc, g->n);
    jk_plain_gemm(g);
    return JASK_OK;
}

static double *numbers(int64_t count, int seed)
{
    double *out = malloc((size_t)count * sizeof *out);
    cr_assert_not_null(out);
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)((i * 13 + seed) % 11 - 5);
    return out;
}

static void check(jk_gemm g, int64_t most)
{
    int64_t a_rows = g.trans_a ? g.k : g.m, b_rows = g.trans_b ? g.n : g.k;
    double *a = numbers(a_rows * g.lda, 1), *b = numbers(b_rows * g.ldb, 2);
    double *c = numbers(g.m * g.ldc, 3), *want = numbers(g.m * g.ldc, 3);
    seen s = {.most = most};
    jask_error err;
    g.a = a, g.b = b, g.c = want;
    jk_plain_gemm(&g);
    g.c = c;
    cr_assert_eq(jk_gemm_split(&g, most, multiply, &s, &err), JASK_OK);
    cr_assert_arr_eq(c, want, (size_t)(g.m * g.ldc) * sizeof *c);
    if (g.m <= most && g.n <= most && g.k <= most && g.lda <= most && g.ldb <= most &&
        g.ldc <= most)
        cr_assert_eq(s.parts, 1);
    free(a);
    free(b);
    free(c);
    free(want);
}

Test(gemm_split, does_the_whole_product_in_parts_that_fit)
{
    static const int64_t sizes[][3] = {{1, 1, 40}, {1, 40, 3}, {40, 1, 2},   {3, 40, 5},
                                       {40, 3, 5}, {3, 4, 50}, {33, 34, 35}, {8, 8, 8}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int v = 0; v < 24; v++) {
            jk_gemm g = {.dtype = JASK_F64,
                         .m = sizes[i][0],
                         .n = sizes[i][1],
                         .k = sizes[i][2],
                         .trans_a = v & 1,
                         .trans_b = v & 2,
                         .alpha = 2,
                         .beta = v & 4 ? 3 : 0};
            int64_t more = v / 8 * 2;
            g.lda = (g.trans_a ? g.m : g.k) + more;
            g.ldb = (g.trans_b ? g.k : g.n) + more;
            g.ldc = g.n + more;
            check(g, 8);
            check(g, 1000);
        }
}

/* Extents beyond 32 bits, pointers never followed: parts begin where they should. */
typedef struct reach {
    int64_t rows, parts;
    const char *last_a;
} reach;

static jask_status follow(void *user, const jk_gemm *g, jask_error *err)
{
    reach *r = user;
    (void)err;
    cr_assert_eq((const char *)g->a - r->last_a, r->rows * g->lda * 4);
    cr_assert_leq(g->m, INT32_MAX);
    r->rows += g->m;
    r->parts++;
    return JASK_OK;
}

Test(gemm_split, reaches_beyond_32_bits)
{
    reach r = {.last_a = (const char *)4096};
    jk_gemm g = {.dtype = JASK_F32,
                 .m = 5000000000,
                 .n = 1,
                 .k = 2,
                 .alpha = 1,
                 .lda = 2,
                 .ldb = 1,
                 .ldc = 1};
    g.a = r.last_a, g.b = r.last_a, g.c = (void *)8192;
    cr_assert_eq(jk_gemm_split(&g, INT32_MAX, follow, &r, NULL), JASK_OK);
    cr_assert_eq(r.rows, g.m);
    cr_assert_eq(r.parts, 3);
}

static jask_status refuse(void *user, const jk_gemm *g, jask_error *err)
{
    (void)g;
    ++*(int *)user;
    return jk_fail(err, JASK_ERR_DEVICE, "no");
}

Test(gemm_split, stops_at_the_first_failure)
{
    int calls = 0;
    jask_error err;
    jk_gemm g = {
        .dtype = JASK_F32, .m = 100, .n = 100, .k = 100, .lda = 100, .ldb = 100, .ldc = 100};
    cr_assert_eq(jk_gemm_split(&g, 10, refuse, &calls, &err), JASK_ERR_DEVICE);
    cr_assert_eq(calls, 1);
    cr_assert_str_eq(err.msg, "no");
}
