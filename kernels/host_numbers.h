/* Plain-C kernels over numbers in a row: the slow twins of the kernels on a CUDA device. Pure. */
#ifndef JK_KERNELS_HOST_NUMBERS_H
#define JK_KERNELS_HOST_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a device that works writes at `index` when probed with `seed`. */
uint32_t jk_probe_word(uint32_t seed, uint32_t index);

/* z = alpha * x + beta * y, rounded as fma(alpha, x, beta * y), so that x + y with both factors 1
 * is rounded once. z may be x or y. With beta 0, z = alpha * x and y is not read: it may be NULL.
 */
void jk_axpby_f32(int64_t n, float alpha, const float *x, float beta, const float *y, float *z);
void jk_axpby_f64(int64_t n, double alpha, const double *x, double beta, const double *y,
                  double *z);

/* Conversions, rounded to nearest, ties to even; too large a value becomes infinite, subnormals are
 * kept. A NaN from 16 bits keeps its bits; one going to 16 bits keeps its sign and upper payload
 * and becomes quiet; between f32 and f64 it stays a NaN. */
void jk_f16_to_f32(int64_t n, const uint16_t *x, float *y);
void jk_bf16_to_f32(int64_t n, const uint16_t *x, float *y);
void jk_f32_to_f16(int64_t n, const float *x, uint16_t *y);
void jk_f32_to_bf16(int64_t n, const float *x, uint16_t *y);
void jk_f32_to_f64(int64_t n, const float *x, double *y);
void jk_f64_to_f32(int64_t n, const double *x, float *y);

/* Sums and ranges are made part by part, and within a part in an order that depends on n alone: 256
 * lanes take turns at 16 bytes each, and are then joined in halves, lane i with lane i + 128, 64,
 * ... */
#define JK_LANES 256
#define JK_MAX_PARTS 1024

/* The number of parts of n elements (1 for n < 1), and the elements in each but the last. */
int64_t jk_parts(int64_t n);
int64_t jk_part_elems(int64_t n);

/* The least and the greatest of the finite values (HUGE_VAL and -HUGE_VAL when there is none), and
 * how many are not finite. */
typedef struct jk_range {
    double min, max;
    int64_t nonfinite;
} jk_range;

/* out[p] for the jk_parts(n) parts of x; 0 and the range of nothing when n is below 1. */
void jk_sum_f32(int64_t n, const float *x, double *out);
void jk_sum_f64(int64_t n, const double *x, double *out);
void jk_range_f32(int64_t n, const float *x, jk_range *out);
void jk_range_f64(int64_t n, const double *x, jk_range *out);

/* Join parts, in order. */
double jk_sum_join(int64_t parts, const double *sums);
jk_range jk_range_join(int64_t parts, const jk_range *ranges);

#ifdef __cplusplus
}
#endif

#endif
