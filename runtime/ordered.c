#include "runtime/ordered.h"

#include "kernels/host_ordered.h"
#include "runtime/gemm_split.h"
#include "runtime/thread.h"

#include <stdlib.h>

/* Less work than this is done before another thread has started. */
#define FLOPS_A_THREAD 4e6

/* Parts of D begin at multiples of this, which the packed blocks divide. */
#define PART_MULTIPLE ((int64_t)96)

typedef struct part {
    jk_gemm gemm;
    void *room;
    pthread_t thread;
    bool started;
} part;

static void *multiply(void *arg)
{
    const part *p = arg;
    const jk_gemm *g = &p->gemm;
    const jk_ordered ordered = {
        .trans_a = g->trans_a,
        .trans_b = g->trans_b,
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .alpha = g->alpha,
        .beta = g->beta,
        .a = g->a,
        .b = g->b,
        .c = g->c,
        .lda = g->lda,
        .ldb = g->ldb,
        .ldc = g->ldc,
    };
    jk_ordered_gemm(g->dtype, &ordered, p->room);
    return NULL;
}

/* Into how many parts the longer side of D is cut, and of which length. */
static int cut(const jk_gemm *g, int64_t *length)
{
    int64_t side = jk_max(g->m, g->n);
    double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    int64_t most = flops < FLOPS_A_THREAD * g->threads ? 1 : jk_max(g->threads, 1);
    *length = jk_ceil_div(jk_ceil_div(side, most), PART_MULTIPLE) * PART_MULTIPLE;
    return (int)jk_ceil_div(side, *length);
}

/* A part whose thread cannot be had is done by the calling one: later, and no worse. */
static void run_parts(part *parts, int count)
{
    for (int i = 1; i < count; i++)
        (void)jk_thread_start(&parts[i].thread, "jask-products", multiply, &parts[i],
                              &parts[i].started, NULL);
    for (int i = 0; i < count; i++)
        if (!parts[i].started)
            multiply(&parts[i]);
    for (int i = 0; i < count; i++)
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
}

jask_status jk_ordered_run(const jk_gemm *gemm, jask_error *err)
{
    int64_t length;
    int count = cut(gemm, &length);
    size_t room = jk_ordered_room();
    jask_status st = JASK_OK;
    part *parts = calloc((size_t)count, sizeof *parts);
    char *rooms = aligned_alloc(64, (size_t)count * room);
    if (!parts || !rooms)
        st = jk_fail(err, JASK_ERR_NOMEM, "no memory for %zu bytes to pack operands in",
                     (size_t)count * room);
    for (int i = 0; !st && i < count; i++) {
        parts[i].gemm = gemm->m >= gemm->n ? jk_gemm_rows(gemm, i * length, length)
                                           : jk_gemm_cols(gemm, i * length, length);
        parts[i].room = rooms + (size_t)i * room;
    }
    if (!st)
        run_parts(parts, count);
    free(rooms);
    free(parts);
    return st;
}
