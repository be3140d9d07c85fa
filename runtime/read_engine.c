#include "runtime/read_engine.h"

#include "runtime/budget.h"
#include "runtime/dtype.h"

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

/* Which of A, B and C of each product memory cannot hold. */
static void look_at_memory(jask_context *ctx, const jk_product *product, bool *outgrown)
{
    const jk_file *files[INPUTS * PRODUCTS];
    int count = 0;
    for (const jk_product *p = product; p; p = p->other) {
        files[count++] = p->a.file;
        files[count++] = p->b.file;
        files[count++] = p->c.file;
    }
    (void)jk_outgrow_memory(ctx, files, count, outgrown);
}

static void open_one(engine *e, jk_direct *direct, jk_matrix *matrix)
{
    jask_error why;
    if (jk_direct_open(matrix->file, direct, &why))
        matrix->direct = direct;
    else
        snprintf(e->note, sizeof e->note, "%.255s", why.msg);
}

/* Under `auto`, an input goes around the page cache where memory cannot hold it and direct reads pay. */
static bool goes_around(const char *word, const jk_matrix *input, size_t run, bool outgrown)
{
    if (strcmp(word, "auto") != 0)
        return strcmp(word, "direct") == 0;
    return outgrown && run >= JK_DIRECT_MIN && jk_file_cached_share(input->file) < CACHED_ENOUGH;
}

/* Point one product's matrices to what they are read with. */
static void open_engine(engine *e, jk_product *product, const char *word, const bool *outgrown,
                        jk_drop_behind *behind)
{
    jk_matrix *inputs[INPUTS] = {&product->a, &product->b, &product->c};
    *e = (engine){.direct = {{.fd = -1}, {.fd = -1}, {.fd = -1}}};
    for (int i = 0; i < INPUTS; i++) {
        jk_matrix *input = inputs[i];
        size_t run = input->file ? jk_product_run_bytes(product, i) : 0;
        if (run == 0)
            continue;
        e->inputs++;
        if (goes_around(word, input, run, outgrown[i]))
            open_one(e, &e->direct[i], input);
        /* Beside direct reads only the ends of runs go through the page cache: few, and wanted again
         * in the next pass. */
        if (outgrown[i] && !input->direct)
            input->behind =
                jk_drop_behind_open(behind, INPUTS * PRODUCTS, input->file, input->offset);
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
    jk_drop_behind behind[INPUTS * PRODUCTS] = {{0}};
    int products = product->other ? 2 : 1, inputs = 0, direct = 0;
    bool outgrown[INPUTS * PRODUCTS];
    jask_status st;
    look_at_memory(ctx, product, outgrown);
    if (product->other) {
        reading[1] = *product->other;
        reading[0].other = &reading[1];
    }
    for (int i = 0; i < products; i++) {
        open_engine(&engines[i], &reading[i], jk_context_io(ctx), outgrown + i * INPUTS, behind);
        inputs += engines[i].inputs;
    }
    st = jk_pipeline_run(&reading[0], stats, err);
    for (int i = 0; i < products; i++)
        direct += close_engine(&engines[i]);
    jk_drop_behind_close(behind, INPUTS * PRODUCTS);
    if (st)
        return st;
    stats->io_engine = direct == 0 ? "pread" : direct == inputs ? "direct" : "mixed";
    for (int i = 0; i < products; i++)
        if (!stats->note[0])
            memcpy(stats->note, engines[i].note, sizeof stats->note);
    return JASK_OK;
}
