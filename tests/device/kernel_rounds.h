/* Where the kernels run that test_kernels.c compares with their twins. */
#ifndef KERNEL_ROUNDS_H
#define KERNEL_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* Prepare the device for round 0, 1, ...; false past the last one. A round differs from another in
 * what must not matter. Skips the test without a device. */
bool kernel_round(int round);

/* A number of f32 that one allocation holds: on a card more than 2^31, where it has the room. */
int64_t kernel_many(void);

/* What the device has found wrong itself; "" when nothing. */
const char *kernel_complaint(void);

#endif
