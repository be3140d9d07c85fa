/* Fast conversions between the types of 16 bits and f32. As their twins in host_numbers.h, but that a
 * signalling NaN may become a quiet one on its way to f32. Pure. */
#ifndef JK_KERNELS_HOST_HALVES_H
#define JK_KERNELS_HOST_HALVES_H

#include <stdint.h>

void jk_widen_f16(int64_t n, const uint16_t *x, float *y);
void jk_widen_bf16(int64_t n, const uint16_t *x, float *y);
void jk_narrow_f16(int64_t n, const float *x, uint16_t *y);
void jk_narrow_bf16(int64_t n, const float *x, uint16_t *y);

#endif
