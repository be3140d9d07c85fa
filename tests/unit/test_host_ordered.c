/* Products whose sums are made in one order: the order itself, the fast path against its twins, and that
 * neither cuts nor threads change a bit. */
#include "kernels/host_ordered.h"
#include "runtime/ordered.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const jask_dtype types[] = {JASK_F32, JASK_F64, JASK_C64, JASK_C128};

static uint64_t random_state = 88172645463325252u;

static int64_t random_between(int64_t low, int64_t high)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return low + (int64_t)(random_state % (uint64_t)(high - low + 1));
}

/* `count` elements, of which about one in a thousand is no finite number where that is wanted. */
static void *numbers(jask_dtype dtype, int64_t count, bool finite)
{
    bool wide = dtype == JASK_F64 || dtype == JASK_C128;
    size_t size = wide ? sizeof(double) : sizeof(float);
    size_t reals = (size_t)count * (jask_dtype_size(dtype) / size);
    char *data = malloc(reals * size + 1);
    cr_assert_not_null(data);
    for (size_t i = 0; i < reals; i++) {
        double x = (double)random_between(-1000000007, 1000000007) * 1e-9;
        if (!finite && random_between(0, 999) == 0)
            x = random_between(0, 1) ? (double)INFINITY : (double)NAN;
        float narrow = (float)x;
        memcpy(data + i * size, wide ? (const void *)&x : (const void *)&narrow, size);
    }
    return data;
}

typedef struct product {
    jask_dtype dtype;
    jk_gemm g;
    void *a, *b, *before; /* C */
    size_t c_bytes;
} product;

static product product_open(jask_dtype dtype, int64_t m, int64_t n, int64_t k, bool finite)
{
    static const double betas[] = {0, 1, -0.7}, alphas[] = {1, 0.37};
    product p = {.dtype = dtype};
    jk_gemm *g = &p.g;
    *g = (jk_gemm){.dtype = dtype, .m = m, .n = n, .k = k, .ordered = true, .threads = 1};
    g->trans_a = random_between(0, 1);
    g->trans_b = random_between(0, 1);
    g->alpha = alphas[random_between(0, 1)];
    g->beta = betas[random_between(0, 2)];
    g->lda = (g->trans_a ? m : k) + random_between(0, 3);
    g->ldb = (g->trans_b ? k : n) + random_between(0, 3);
    g->ldc = n + random_between(0, 3);
    g->a = p.a = numbers(dtype, (g->trans_a ? k : m) * g->lda, finite);
    g->b = p.b = numbers(dtype, (g->trans_b ? n : k) * g->ldb, finite);
    p.before = numbers(dtype, m * g->ldc, finite);
    p.c_bytes = (size_t)(m * g->ldc) * jask_dtype_size(dtype);
    return p;
}

static void product_close(product *p)
{
    free(p->a);
    free(p->b);
    free(p->before);
}

static void *copy_of_c(const product *p)
{
    void *c = malloc(p->c_bytes);
    cr_assert_not_null(c);
    memcpy(c, p->before, p->c_bytes);
    return c;
}

static jk_ordered as_ordered(const jk_gemm *g, void *c)
{
    return (jk_ordered){g->trans_a, g->trans_b, g->m, g->n,   g->k,   g->alpha, g->beta,
                        g->a,       g->b,       c,    g->lda, g->ldb, g->ldc};
}

static void *by_twin(const product *p)
{
    void *c = copy_of_c(p);
    jk_ordered g = as_ordered(&p->g, c);
    if (p->dtype == JASK_F32)
        jk_ordered_f32(&g);
    else if (p->dtype == JASK_F64)
        jk_ordered_f64(&g);
    else if (p->dtype == JASK_C64)
        jk_ordered_c64(&g);
    else
        jk_ordered_c128(&g);
    return c;
}

/* The same bits, but for those of a NaN, which arithmetic may choose. */
static bool same(const product *p, const void *x, const void *y)
{
    bool wide = p->dtype == JASK_F64 || p->dtype == JASK_C128;
    size_t size = wide ? sizeof(double) : sizeof(float);
    for (size_t at = 0; at < p->c_bytes; at += size) {
        const char *one = (const char *)x + at, *other = (const char *)y + at;
        float f, g;
        double d, e;
        memcpy(&f, one, sizeof f);
        memcpy(&g, other, sizeof g);
        memcpy(&d, one, wide ? sizeof d : 0);
        memcpy(&e, other, wide ? sizeof e : 0);
        bool both_nan = wide ? isnan(d) && isnan(e) : isnan(f) && isnan(g);
        if (memcmp(one, other, size) != 0 && !both_nan)
            return false;
    }
    return true;
}

static float in_f32(int64_t k, const float *a, const float *b)
{
    float c = 99;
    jk_ordered g = {
        .m = 1, .n = 1, .k = k, .alpha = 1, .a = a, .b = b, .c = &c, .lda = k, .ldb = 1, .ldc = 1};
    jk_ordered_f32(&g);
    return c;
}

Test(host_ordered, sums_grow_slab_by_slab_and_are_added_once)
{
    static float a[258], ones[258];
    for (int i = 0; i < 258; i++)
        a[i] = ones[i] = 1;
    a[0] = 0x1p24f; /* the least number of f32 to which 1 cannot be added */
    cr_assert_eq(JK_SLAB, 256);
    cr_assert_eq(in_f32(256, a, ones), 0x1p24f);
    cr_assert_eq(in_f32(257, a, ones), 0x1p24f);
    cr_assert_eq(in_f32(258, a, ones), 0x1p24f + 2);
}

Test(host_ordered, a_product_is_not_rounded_before_it_is_added)
{
    const float a[] = {-1, 1 + 0x1p-12f}, b[] = {1, 1 + 0x1p-12f};
    cr_assert_eq(in_f32(2, a, b), 0x1p-11f + 0x1p-24f);
}

Test(host_ordered, complex_numbers_have_their_parts)
{
    const double a[] = {1, 2}, b[] = {3, 4};
    double c[] = {10, 20};
    jk_ordered g = {.m = 1,
                    .n = 1,
                    .k = 1,
                    .alpha = 2,
                    .beta = 3,
                    .a = a,
                    .b = b,
                    .c = c,
                    .lda = 1,
                    .ldb = 1,
                    .ldc = 1};
    jk_ordered_c128(&g);
    cr_assert(c[0] == 3 * 10 + 2 * -5 && c[1] == 3 * 20 + 2 * 10);
}

Test(host_ordered, the_fast_path_agrees_with_its_twins_in_every_bit)
{
    void *room = aligned_alloc(64, jk_ordered_room());
    cr_assert_not_null(room);
    for (int round = 0; round < 200; round++) {
        int64_t m = random_between(1, round % 3 ? 20 : 120);
        int64_t n = random_between(1, round % 5 ? 40 : 250);
        int64_t k = random_between(0, round % 2 ? 20 : 600);
        product p = product_open(types[round % 4], m, n, k, round % 7 != 0);
        void *want = by_twin(&p), *c = copy_of_c(&p);
        jk_ordered g = as_ordered(&p.g, c);
        jk_ordered_gemm(p.dtype, &g, room);
        cr_assert(same(&p, c, want), "round %d: %d x %d x %d", round, (int)m, (int)n, (int)k);
        free(c);
        free(want);
        product_close(&p);
    }
    free(room);
}

/* More columns of B, and rows of A, than are packed at once. */
Test(host_ordered, large_operands_are_packed_in_parts)
{
    for (size_t t = 0; t < 4; t++) {
        int64_t n = 6 + 4096 / (int64_t)jask_dtype_size(types[t]);
        product p = product_open(types[t], 101, n, 260, true);
        void *room = aligned_alloc(64, jk_ordered_room());
        void *want = by_twin(&p), *c = copy_of_c(&p);
        jk_ordered g = as_ordered(&p.g, c);
        jk_ordered_gemm(p.dtype, &g, room);
        cr_assert(same(&p, c, want), "type %d", (int)types[t]);
        free(c);
        free(want);
        free(room);
        product_close(&p);
    }
}

static void *at(const product *p, const void *base, int64_t elements)
{
    return (char *)(uintptr_t)base + (size_t)elements * jask_dtype_size(p->dtype);
}

/* The product in tiles of bm x bn and panels of bk, as a plan would have it. */
static void *in_pieces(const product *p, int64_t bm, int64_t bn, int64_t bk)
{
    const jk_gemm *g = &p->g;
    void *c = copy_of_c(p);
    for (int64_t i = 0; i < g->m; i += bm)
        for (int64_t j = 0; j < g->n; j += bn)
            for (int64_t q = 0; q < g->k; q += bk) {
                jk_gemm piece = *g;
                piece.m = jk_min(bm, g->m - i);
                piece.n = jk_min(bn, g->n - j);
                piece.k = jk_min(bk, g->k - q);
                piece.beta = q == 0 ? g->beta : 1;
                piece.a = at(p, g->a, g->trans_a ? q * g->lda + i : i * g->lda + q);
                piece.b = at(p, g->b, g->trans_b ? j * g->ldb + q : q * g->ldb + j);
                piece.c = at(p, c, i * g->ldc + j);
                piece.threads = (int)random_between(1, 3);
                cr_assert_eq(jk_ordered_run(&piece, NULL), JASK_OK);
            }
    return c;
}

Test(host_ordered, no_cut_changes_a_bit)
{
    for (int round = 0; round < 60; round++) {
        int64_t m = random_between(1, 200), n = random_between(1, 200);
        product p = product_open(types[round % 4], m, n, random_between(1, 1000), true);
        int64_t bk = JK_SLAB * random_between(1, 4);
        void *want = by_twin(&p);
        void *c = in_pieces(&p, random_between(1, m), random_between(1, n), bk);
        cr_assert(same(&p, c, want), "round %d: panels of %d", round, (int)bk);
        free(c);
        free(want);
        product_close(&p);
    }
}

/* A panel that cuts a slab does: so the test above can fail. */
Test(host_ordered, panels_must_hold_whole_slabs)
{
    product p = product_open(JASK_F32, 50, 50, 700, true);
    void *want = by_twin(&p), *c = in_pieces(&p, 50, 50, 100);
    cr_assert(!same(&p, c, want));
    free(c);
    free(want);
    product_close(&p);
}

Test(host_ordered, no_number_of_threads_changes_a_bit)
{
    for (int round = 0; round < 24; round++) {
        int64_t longer = random_between(200, 500), other = random_between(100, 300);
        bool tall = round % 2;
        product p = product_open(types[round / 2 % 4], tall ? longer : other, tall ? other : longer,
                                 300, true);
        void *want = by_twin(&p);
        for (int threads = 1; threads <= 8; threads++) {
            void *c = copy_of_c(&p);
            p.g.c = c;
            p.g.threads = threads;
            cr_assert_eq(jk_ordered_run(&p.g, NULL), JASK_OK);
            cr_assert(same(&p, c, want), "round %d, %d threads", round, threads);
            free(c);
        }
        free(want);
        product_close(&p);
    }
}
