#include "runtime/verify.h"

/* Any constant does; a fixed one makes a verdict repeatable. */
#define SEED UINT64_C(0x6a61736b20763031)

/* The finaliser of SplitMix64 on a Weyl sequence: every index has its own well-mixed 64 bits. */
static uint64_t mix(uint64_t index)
{
    uint64_t h = SEED + index * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

void jk_verify_vector(int64_t first, int64_t count, double *out)
{
    for (int64_t c = 0; c < count; c++) {
        uint64_t h = mix((uint64_t)(first + c));
        double fraction = (double)(h >> 12) * 0x1p-52;
        out[c] = h & 1 ? -1 - fraction : 1 + fraction;
    }
}

void jk_verify_widen(const float *restrict in, int64_t n, double *restrict out)
{
    for (int64_t c = 0; c < n; c++)
        out[c] = (double)in[c];
}

/* The sum of n values, pairwise; destroys them. */
static double fold(double *x, int64_t n)
{
    while (n > 1) {
        int64_t half = (n + 1) / 2;
        for (int64_t q = 0; q < n - half; q++)
            x[q] += x[q + half];
        n = half;
    }
    return n > 0 ? x[0] : 0;
}

/* Quarters are added to one another first: loops without a running sum vectorise in any build, and
 * chains of roundings stay short. */
void jk_verify_row(const double *restrict a, const double *restrict u, const double *restrict v,
                   int64_t n, double *s, double *t)
{
    double su[JK_VERIFY_TILE / 4], sv[JK_VERIFY_TILE / 4];
    int64_t w = n / 4;
    for (int64_t q = 0; q < w; q++) {
        double p0 = a[q] * v[q], p1 = a[q + w] * v[q + w];
        double p2 = a[q + 2 * w] * v[q + 2 * w], p3 = a[q + 3 * w] * v[q + 3 * w];
        su[q] = (a[q] * u[q] + a[q + w] * u[q + w]) +
                (a[q + 2 * w] * u[q + 2 * w] + a[q + 3 * w] * u[q + 3 * w]);
        sv[q] = (p0 * p0 + p1 * p1) + (p2 * p2 + p3 * p3);
    }
    *s += fold(su, w);
    *t += fold(sv, w);
    for (int64_t c = 4 * w; c < n; c++) {
        double p = a[c] * v[c];
        *s += a[c] * u[c];
        *t += p * p;
    }
}

void jk_verify_columns(const double *restrict a, const double *restrict u, const double *restrict v,
                       int64_t n, double *restrict s, double *restrict t)
{
    const double *a0 = a, *a1 = a + JK_VERIFY_TILE;
    const double *a2 = a1 + JK_VERIFY_TILE, *a3 = a2 + JK_VERIFY_TILE;
    double u0 = u[0], u1 = u[1], u2 = u[2], u3 = u[3];
    double v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
    for (int64_t c = 0; c < n; c++) {
        double p0 = a0[c] * v0, p1 = a1[c] * v1, p2 = a2[c] * v2, p3 = a3[c] * v3;
        s[c] += (a0[c] * u0 + a1[c] * u1) + (a2[c] * u2 + a3[c] * u3);
        t[c] += (p0 * p0 + p1 * p1) + (p2 * p2 + p3 * p3);
    }
}
