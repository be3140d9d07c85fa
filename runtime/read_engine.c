#include "runtime/read_engine.h"

#include "runtime/dtype.h"
#include "runtime/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS = 3, PRODUCTS = 2 };

/* Of one product. */
typedef struct engine {
    jk_direct direct[INPUTS]; /* of A, B and C; fd -1 where it is read through the page cache */
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
    const jk_file *files[INPUTS * PRODUCTS];
    uint64_t bytes = 0;
    int count = 0;
    for (const jk_product *p = product; p; p = p->other) {
        const jk_file *of[INPUTS] = {p->a.file, p->b.file, p->c.file};
        for (int i = 0; i < INPUTS; i++) {
            bool seen = !of[i];
            for (int j = 0; !seen && j < count; j++)
                seen = same_file(of[i], files[j]);
            if (!seen)
                bytes += of[i]->bytes;
            if (!seen)
                files[count++] = of[i];
        }
    }
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

/* Whether to try at all; `*out_always`: even where it may not pay. */
static bool goes_around(jask_context *ctx, const jk_product *product, bool *out_always)
{
    const char *word = jk_context_io(ctx);
    *out_always = strcmp(word, "direct") == 0;
    return *out_always || (strcmp(word, "pread") != 0 && outgrow_memory(ctx, product));
}

/* Point one product's matrices to what they are read with. */
static void open_engine(engine *e, jk_product *product, bool around, bool always)
{
    jk_matrix *inputs[INPUTS] = {&product->a, &product->b, &product->c};
    *e = (engine){.direct = {{.fd = -1}, {.fd = -1}, {.fd = -1}}};
    for (int i = 0; i < INPUTS; i++) {
        size_t run = inputs[i]->file ? jk_product_run_bytes(product, i) : 0;
        e->inputs += run > 0;
        if (around && run > 0 &&
            (always ||
             (run >= JK_DIRECT_MIN && jk_file_cached_share(inputs[i]->file) < CACHED_ENOUGH)))
            open_one(e, &e->direct[i], inputs[i]);
    }
}

/* Returns how many inputs were read around the page cache. */
static int close_engine(engine *e)
{
    int direct = 0;
    for (int i = 0; i < INPUTS; i++) {
        if (e->direct[i].refused)
            snprintf(e->note, sizeof e->note,
                     "'%.160s' is read through the page cache: direct reads were refused",
                     e->direct[i].file->name);
        direct += e->direct[i].used && !e->direct[i].refused;
        jk_direct_close(&e->direct[i]);
    }
    return direct;
}

jask_status jk_read_engine_run(const jk_product *product, jask_context *ctx, jk_run_stats *stats,
                               jask_error *err)
{
    jk_product reading[PRODUCTS] = {*product};
    engine engines[PRODUCTS];
    int products = product->other ? 2 : 1, inputs = 0, direct = 0;
    bool always, around = goes_around(ctx, product, &always);
    jask_status st;
    if (product->other) {
        reading[1] = *product->other;
        reading[0].other = &reading[1];
    }
    for (int i = 0; i < products; i++) {
        open_engine(&engines[i], &reading[i], around, always);
        inputs += engines[i].inputs;
    }
    st = jk_pipeline_run(&reading[0], stats, err);
    for (int i = 0; i < products; i++)
        direct += close_engine(&engines[i]);
    if (st)
        return st;
    stats->io_engine = direct == 0 ? "pread" : direct == inputs ? "direct" : "mixed";
    for (int i = 0; i < products; i++)
        if (!stats->note[0])
            memcpy(stats->note, engines[i].note, sizeof stats->note);
    return JASK_OK;
}
