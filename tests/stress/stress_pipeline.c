/* The pipeline's threads under stress: many small products, many shapes, on host memory and on
 * staged memory, some canceled at random. Exits 0 when all is right. usage: stress_pipeline [ROUNDS] */
#include "../device/mirror.h"
#include "products.h"

#include "runtime/blas.h"

#include <stdio.h>
#include <stdlib.h>

/* The host device with products that a sanitizer sees into. */
static jk_device_table plain_host;

static jask_status plain_gemm(jk_queue *queue, const jk_gemm *gemm, jask_error *err)
{
    (void)queue, (void)err;
    jk_plain_gemm(gemm);
    return JASK_OK;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    jk_device_ref mirror = mirror_open(), host;
    jask_context *ctx = stress_context();
    jask_error err;
    stress_must(jk_device_select("host", NULL, &host, &err), &err);
    plain_host = *host.table;
    plain_host.gemm = plain_gemm;
    host.table = &plain_host;
    for (int i = 0; i < rounds; i++) {
        stress_product(ctx, i % 2 ? &mirror : &host);
        stress_gradients(ctx, i % 2 ? &mirror : &host);
    }
    if (mirror_device_bytes() != 0 || mirror_pinned_bytes() != 0) {
        fprintf(stderr, "stress: device memory leaked\n");
        return 1;
    }
    jk_device_release(&host);
    jask_context_close(ctx);
    printf("%d products, and as many pairs of gradients\n", rounds);
    return 0;
}
