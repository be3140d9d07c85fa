#include "runtime/read_engine.h"

#include "runtime/dtype.h"
#include "runtime/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct engine {
    jk_direct direct[3]; /* of A, B and C; fd -1 where it is read through the page cache */
    int inputs;
    char note[256];
} engine;

/* Under `auto`, a file that the page cache holds most of is read from there. */
#define CACHED_ENOUGH 0.75

static bool same_file(const jk_file *x, const jk_file *y)
{
    return x->dev == y->dev && x->ino == y->ino;
}

/* All inputs together, each file once. */
static uint64_t input_bytes(const jk_product *product)
{
    const jk_file *a = product->a.file, *b = product->b.file, *c = product->c.file;
    uint64_t bytes = a->bytes;
    if (!same_file(a, b))
        bytes += b->bytes;
    if (c && !same_file(a, c) && !same_file(b, c))
        bytes += c->bytes;
    return bytes;
}

/* The page cache cannot hold the inputs until they are read again: what it takes of them pushes
 * out something else, for nothing. */
static bool outgrow_memory(jask_context *ctx, const jk_product *product)
{
    uint64_t available, bytes = input_bytes(product), budget = jk_context_cpu_budget(ctx);
    char source[256], inputs[32], free_text[32];
    if (jask_available_memory(&available, source, sizeof source, NULL))
        return false;
    available -= available < budget ? available : budget;
    if (bytes <= available)
        return false;
    jk_log_write(jk_context_log(ctx), JASK_LOG_INFO,
                 "inputs of %s do not fit in the %s left beside the budget (%s): what is read in "
                 "long runs goes around the page cache",
                 jask_format_size(bytes, inputs, sizeof inputs),
                 jask_format_size(available, free_text, sizeof free_text), source);
    return true;
}

static void open_one(engine *e, jk_direct *direct, jk_matrix *matrix)
{
    jask_error why;
    if (jk_direct_open(matrix->file, direct, &why))
        matrix->direct = direct;
    else
        snprintf(e->note, sizeof e->note, "%.255s", why.msg);
}

/* Decide, and point the product's matrices to what they are read with. */
static void open_engine(engine *e, jask_context *ctx, jk_product *product)
{
    jk_matrix *inputs[3] = {&product->a, &product->b, &product->c};
    const char *word = jk_context_io(ctx);
    bool always = strcmp(word, "direct") == 0;
    *e = (engine){.direct = {{.fd = -1}, {.fd = -1}, {.fd = -1}}};
    e->inputs = product->c.file ? 3 : 2;
    if (!always && (strcmp(word, "pread") == 0 || !outgrow_memory(ctx, product)))
        return;
    for (int i = 0; i < e->inputs; i++)
        if (always || (jk_product_run_bytes(product, i) >= JK_DIRECT_MIN &&
                       jk_file_cached_share(inputs[i]->file) < CACHED_ENOUGH))
            open_one(e, &e->direct[i], inputs[i]);
}

static const char *close_engine(engine *e)
{
    int direct = 0;
    for (int i = 0; i < e->inputs; i++) {
        if (e->direct[i].refused)
            snprintf(e->note, sizeof e->note,
                     "'%.160s' is read through the page cache: direct reads were refused",
                     e->direct[i].file->name);
        direct += e->direct[i].used && !e->direct[i].refused;
        jk_direct_close(&e->direct[i]);
    }
    return direct == 0 ? "pread" : direct == e->inputs ? "direct" : "mixed";
}

jask_status jk_read_engine_run(const jk_product *product, jask_context *ctx, jk_run_stats *stats,
                               jask_error *err)
{
    jk_product reading = *product;
    const char *name;
    engine e;
    jask_status st;
    open_engine(&e, ctx, &reading);
    st = jk_pipeline_run(&reading, stats, err);
    name = close_engine(&e);
    if (st)
        return st;
    stats->io_engine = name;
    if (!stats->note[0])
        memcpy(stats->note, e.note, sizeof stats->note);
    return JASK_OK;
}
