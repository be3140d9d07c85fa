/* What every device promises, checked on any. */
#ifndef JASK_TESTS_CONTRACT_H
#define JASK_TESTS_CONTRACT_H

#include "runtime/device.h"

void must(jask_status st, const jask_error *err);

/* Takes the device over: it is released. */
void contract_check(jk_device_ref ref);

/* A device and one queue. */
typedef struct contract_bench {
    jk_device_ref ref;
    jk_queue *queue;
} contract_bench;

/* Device memory with a copy of data. */
void *contract_upload(contract_bench *b, const void *data, size_t bytes);
/* Waits for it. */
void contract_fetch(contract_bench *b, void *dst, const void *src, size_t bytes);

/* The product of one f32 with itself. */
jk_gemm contract_square(const void *a, void *c);

#endif
