#include "kernels/host_kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* One text for all types: a row of c is built from rows of b (or strided columns), so that the
 * inner loop runs over neighbours whenever the layout allows. */
#define DEFINE_GEMM(name, type, real)                                                              \
    static void name##_scale(int64_t n, real beta, type *row)                                      \
    {                                                                                              \
        if (beta == 0)                                                                             \
            memset(row, 0, (size_t)n * sizeof *row);                                               \
        else if (beta != 1)                                                                        \
            for (int64_t j = 0; j < n; j++)                                                        \
                row[j] *= beta;                                                                    \
    }                                                                                              \
    void name(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, real alpha,             \
              const type *a, int64_t lda, const type *b, int64_t ldb, real beta, type *c,          \
              int64_t ldc)                                                                         \
    {                                                                                              \
        int64_t a_row = trans_a ? 1 : lda, a_col = trans_a ? lda : 1;                              \
        int64_t b_row = trans_b ? 1 : ldb, b_col = trans_b ? ldb : 1;                              \
        for (int64_t i = 0; i < m; i++) {                                                          \
            type *row = c + i * ldc;                                                               \
            name##_scale(n, beta, row);                                                            \
            for (int64_t p = 0; p < k; p++) {                                                      \
                type x = alpha * a[i * a_row + p * a_col];                                         \
                const type *y = b + p * b_row;                                                     \
                for (int64_t j = 0; j < n; j++)                                                    \
                    row[j] += x * y[j * b_col];                                                    \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_GEMM(jk_gemm_f32, float, float)
DEFINE_GEMM(jk_gemm_f64, double, double)
DEFINE_GEMM(jk_gemm_c64, float _Complex, float)
DEFINE_GEMM(jk_gemm_c128, double _Complex, double)

/* Of each product and each addition the rounding error is computed exactly, and summed apart. */
double jk_dot_f64(int64_t n, const double *x, int64_t x_step, const double *y, int64_t y_step)
{
    double sum = 0, low = 0, plain = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = x[i * x_step], b = y[i * y_step], product = a * b;
        double error = fma(a, b, -product), next = sum + product, part = next - sum;
        low += ((sum - (next - part)) + (product - part)) + error;
        plain += product;
        sum = next;
    }
    return isfinite(sum + low) ? sum + low : plain;
}

void jk_swap_bytes(void *data, int64_t count, size_t size)
{
    unsigned char *bytes = data;
    switch (size) {
    case 2:
        for (int64_t i = 0; i < count; i++) {
            uint16_t x;
            memcpy(&x, bytes + 2 * i, 2);
            x = __builtin_bswap16(x);
            memcpy(bytes + 2 * i, &x, 2);
        }
        return;
    case 4:
        for (int64_t i = 0; i < count; i++) {
            uint32_t x;
            memcpy(&x, bytes + 4 * i, 4);
            x = __builtin_bswap32(x);
            memcpy(bytes + 4 * i, &x, 4);
        }
        return;
    case 8:
        for (int64_t i = 0; i < count; i++) {
            uint64_t x;
            memcpy(&x, bytes + 8 * i, 8);
            x = __builtin_bswap64(x);
            memcpy(bytes + 8 * i, &x, 8);
        }
        return;
    case 16:
        for (int64_t i = 0; i < count; i++) {
            uint64_t x[2], y[2];
            memcpy(x, bytes + 16 * i, 16);
            y[0] = __builtin_bswap64(x[1]);
            y[1] = __builtin_bswap64(x[0]);
            memcpy(bytes + 16 * i, y, 16);
        }
        return;
    default:
        assert(size == 1);
    }
}
