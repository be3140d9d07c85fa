#include "kernels/host_ordered.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- the twins ---- */

#define DEFINE_REAL(name, type, fma)                                                               \
    void name(const jk_ordered *g)                                                                 \
    {                                                                                              \
        int64_t a_row = g->trans_a ? 1 : g->lda, a_col = g->trans_a ? g->lda : 1;                  \
        int64_t b_row = g->trans_b ? 1 : g->ldb, b_col = g->trans_b ? g->ldb : 1;                  \
        type alpha = (type)g->alpha, beta = (type)g->beta;                                         \
        for (int64_t i = 0; i < g->m; i++)                                                         \
            for (int64_t j = 0; j < g->n; j++) {                                                   \
                const type *a = (const type *)g->a + i * a_row;                                    \
                const type *b = (const type *)g->b + j * b_col;                                    \
                type *c = (type *)g->c + i * g->ldc + j;                                           \
                *c = beta == 0 ? 0 : beta * *c;                                                    \
                for (int64_t slab = 0; slab < g->k; slab += JK_SLAB) {                             \
                    type t = 0;                                                                    \
                    for (int64_t p = slab; p < jk_min(slab + JK_SLAB, g->k); p++)                  \
                        t = fma(a[p * a_col], b[p * b_row], t);                                    \
                    *c = fma(alpha, t, *c);                                                        \
                }                                                                                  \
            }                                                                                      \
    }

/* Parts of a number follow one another. */
#define DEFINE_COMPLEX(name, type, fma)                                                            \
    void name(const jk_ordered *g)                                                                 \
    {                                                                                              \
        int64_t a_row = g->trans_a ? 2 : 2 * g->lda, a_col = g->trans_a ? 2 * g->lda : 2;          \
        int64_t b_row = g->trans_b ? 2 : 2 * g->ldb, b_col = g->trans_b ? 2 * g->ldb : 2;          \
        type alpha = (type)g->alpha, beta = (type)g->beta;                                         \
        for (int64_t i = 0; i < g->m; i++)                                                         \
            for (int64_t j = 0; j < g->n; j++) {                                                   \
                const type *a = (const type *)g->a + i * a_row;                                    \
                const type *b = (const type *)g->b + j * b_col;                                    \
                type *c = (type *)g->c + 2 * (i * g->ldc + j);                                     \
                c[0] = beta == 0 ? 0 : beta * c[0];                                                \
                c[1] = beta == 0 ? 0 : beta * c[1];                                                \
                for (int64_t slab = 0; slab < g->k; slab += JK_SLAB) {                             \
                    type t[2] = {0, 0}, u[2] = {0, 0};                                             \
                    for (int64_t p = slab; p < jk_min(slab + JK_SLAB, g->k); p++)                  \
                        for (int part = 0; part < 2; part++) {                                     \
                            type y = b[p * b_row + part];                                          \
                            t[part] = fma(a[p * a_col], y, t[part]);                               \
                            u[part] = fma(a[p * a_col + 1], y, u[part]);                           \
                        }                                                                          \
                    c[0] = fma(alpha, t[0] - u[1], c[0]);                                          \
                    c[1] = fma(alpha, t[1] + u[0], c[1]);                                          \
                }                                                                                  \
            }                                                                                      \
    }

DEFINE_REAL(jk_ordered_f32, float, fmaf)
DEFINE_REAL(jk_ordered_f64, double, fma)
DEFINE_COMPLEX(jk_ordered_c64, float, fmaf)
DEFINE_COMPLEX(jk_ordered_c128, double, fma)

static void twin(jask_dtype dtype, const jk_ordered *g)
{
    switch (dtype) {
    case JASK_F32:
        jk_ordered_f32(g);
        return;
    case JASK_F64:
        jk_ordered_f64(g);
        return;
    case JASK_C64:
        jk_ordered_c64(g);
        return;
    default:
        assert(dtype == JASK_C128);
        jk_ordered_c128(g);
    }
}

/* ---- by vectors ---- */

#if defined(__x86_64__)

#include <immintrin.h>

#define VECTORS __attribute__((target("avx2,fma")))

/* A block of the result in registers: so many rows, and two vectors of columns. */
enum { ROWS = 6, VECTORS_OF_COLS = 2 };

/* Packed parts of the operands: of A so many rows, which stay in the second cache, of B so many bytes
 * of a slab's columns, which stay in the third. */
enum { A_ROWS = 16 * ROWS, B_BYTES = 1 << 20 };
enum { A_BYTES = A_ROWS * JK_SLAB * 2 * (int)sizeof(double) };

#define REAL float
#define VECTOR __m256
#define OP(name) _mm256_##name##_ps
#define FMA __builtin_fmaf
#define NAME(name) name##_f32
#include "kernels/ordered_body.h"

#undef REAL
#undef VECTOR
#undef OP
#undef FMA
#undef NAME
#define REAL double
#define VECTOR __m256d
#define OP(name) _mm256_##name##_pd
#define FMA __builtin_fma
#define NAME(name) name##_f64
#include "kernels/ordered_body.h"

size_t jk_ordered_room(void)
{
    return A_BYTES + B_BYTES;
}

void jk_ordered_gemm(jask_dtype dtype, const jk_ordered *g, void *room)
{
    int parts = dtype == JASK_C64 || dtype == JASK_C128 ? 2 : 1;
    if (g->k == 0 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        twin(dtype, g);
    else if (dtype == JASK_F32 || dtype == JASK_C64)
        gemm_f32(g, parts, room);
    else
        gemm_f64(g, parts, room);
}

#else

size_t jk_ordered_room(void)
{
    return 64;
}

void jk_ordered_gemm(jask_dtype dtype, const jk_ordered *g, void *room)
{
    (void)room;
    twin(dtype, g);
}

#endif
