#include "runtime/io_engine.h"

#include "runtime/budget.h"
#include "runtime/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS = 3, PRODUCTS = 2 };

/* Of one product. */
typedef struct engine {
    jk_direct direct[INPUTS]; /* of A, B and C; fd -1 where it is read through the page cache */
    jk_direct result;         /* of D */
    int inputs;
    char note[256];
} engine;

/* Under `auto`, a file that the page cache holds most of is read from there. */
#define CACHED_ENOUGH 0.75

/* Under `auto`, fewer bytes than this, if memory holds them, go through the page cache: that takes little, and the
 * next run finds them there. */
#define PASSING_MIN ((uint64_t)1 << 30)

/* So much of an input may be announced at a time, if memory has room for it: enough for a disk to read in long
 * runs, and soon there. */
#define AHEAD_MAX ((uint64_t)256 << 20)

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

/* D's file is written, the others are read. */
static void open_one(engine *e, jk_direct *direct, jk_matrix *matrix)
{
    jask_error why;
    if (direct == &e->result ? jk_direct_open_write(matrix->file, direct, &why)
                             : jk_direct_open(matrix->file, direct, &why))
        matrix->direct = direct;
    else
        snprintf(e->note, sizeof e->note, "%.255s", why.msg);
}

/* Memory for page cache while the product is made; 0 where nobody knows. A joint plan has no use for it. */
static uint64_t room_beside(const jask_context *ctx, const jk_product *product)
{
    uint64_t taken, room = 0;
    if (!product->plan)
        return 0;
    taken =
        product->device->info.host_memory ? product->plan->peak_bytes : jk_context_host_budget(ctx);
    (void)jk_memory_room(ctx, taken, &room, NULL, 0, NULL);
    return room;
}

/* Whether reading (writing) is predicted to take no longer than the products, on a disk of this machine. */
static bool hides(const jk_product *product, jk_stage stage, const jk_file *file)
{
    const double *seconds = product->plan->stage_seconds;
    return jk_file_on_block_device(file) && seconds[stage] > 0 && /* 0: the rate is unknown */
           seconds[stage] <= seconds[JK_STAGE_PRODUCTS];
}

/* Whether a large file passes by once, behind products that take longer than its disk: to fill the page cache
 * with it would only take time from the cores that multiply. Where reading is what takes longest, the next run
 * shall find the file there; and what others than this machine's disks bring is dear, and their own caches are
 * worth more. An operation of several products reads again in one what another has read. */
static bool passes_once(const jk_product *product, const jk_matrix *input)
{
    const jk_file *file = input->file;
    const jk_file *files[INPUTS] = {product->a.file, product->b.file, product->c.file};
    const jk_plan *plan = product->plan;
    uint64_t reads[INPUTS], bytes = 0;
    if (!plan || product->share.steps_total > plan->steps)
        return false;
    jk_plan_file_reads(plan, reads);
    for (int i = 0; i < INPUTS; i++)
        bytes += files[i] && jk_file_same(files[i], file) ? reads[i] : 0;
    return bytes >= PASSING_MIN && bytes <= file->bytes - input->offset && /* nothing comes twice */
           hides(product, JK_STAGE_READ, file);
}

/* A result that is to be on the disk at the end goes there at once: through the page cache it would be
 * copied first, by cores that multiply, into memory that has to be found. So does one that memory cannot hold, and a
 * large one that a disk takes while products are made. A joint plan's sums come back from the file of D, and
 * find them better in the cache. */
static bool writes_around(const jask_context *ctx, const jk_product *product, uint64_t room)
{
    const char *word = jk_context_io(ctx);
    const jk_file *file = product->d.file;
    const jk_plan *plan = product->plan;
    if (!plan || file->bytes < JK_DIRECT_WRITE_MIN || file->lacks & JK_FILE_IN_RAM)
        return false;
    if (strcmp(word, "auto") != 0)
        return strcmp(word, "direct") == 0;
    return product->durable || (room > 0 && file->bytes > room) ||
           (file->bytes >= PASSING_MIN && hides(product, JK_STAGE_WRITE, file));
}

/* Under `auto`, an input goes around the page cache where that holds nothing for later, and direct reads pay. */
static bool goes_around(const char *word, const jk_product *product, const jk_matrix *input,
                        size_t run, bool outgrown)
{
    if (strcmp(word, "auto") != 0)
        return strcmp(word, "direct") == 0;
    return run >= JK_DIRECT_MIN && (outgrown || passes_once(product, input)) &&
           jk_file_cached_share(input->file) < CACHED_ENOUGH;
}

/* What to announce of A or B where it is read through the page cache in runs of `run` bytes
 * (jk_matrix.ahead_bytes), for panels of `rows` rows in its file. Where k goes along rows, the panels of a tile
 * read them from end to end before those of another tile do: when that is done the page cache holds all of
 * them, whether they came panel by panel or at once, but at once they come in longer runs. Takes its part
 * of *room. */
static uint64_t ahead_of(const jk_matrix *m, bool k_along_rows, int64_t rows, size_t run,
                         uint64_t *room)
{
    uint64_t ahead = (*room < AHEAD_MAX ? *room : AHEAD_MAX) / (uint64_t)rows;
    if (!k_along_rows || run >= JK_DIRECT_MIN || run >= m->row_bytes)
        return 0;
    ahead = ahead < m->row_bytes ? ahead - ahead % JK_DIRECT_MIN : m->row_bytes;
    *room -= ahead * (uint64_t)rows;
    return ahead;
}

/* Point one product's matrices to what they are read with. */
static void open_engine(engine *e, jk_product *product, const char *word, const bool *outgrown,
                        uint64_t room, jk_drop_behind *behind)
{
    jk_matrix *inputs[INPUTS] = {&product->a, &product->b, &product->c};
    *e = (engine){.direct = {{.fd = -1}, {.fd = -1}, {.fd = -1}}, .result = {.fd = -1}};
    for (int i = 0; i < INPUTS; i++) {
        jk_matrix *input = inputs[i];
        size_t run = input->file ? jk_product_run_bytes(product, i) : 0;
        if (run == 0)
            continue;
        e->inputs++;
        if (goes_around(word, product, input, run, outgrown[i]))
            open_one(e, &e->direct[i], input);
        if (product->plan && product->plan->layer == 0 && i != JK_ARRAY_C)
            input->ahead_bytes = i == JK_ARRAY_A
                                     ? ahead_of(input, !input->trans, product->plan->bm, run, &room)
                                     : ahead_of(input, input->trans, product->plan->bn, run, &room);
        /* Beside direct reads only the ends of runs go through the page cache: few, and wanted again
         * in the next pass. */
        if (outgrown[i] && !input->direct)
            input->behind =
                jk_drop_behind_open(behind, INPUTS * PRODUCTS, input->file, input->offset);
    }
}

/* Whether its file was read, or written, around the page cache all the time. */
static bool close_one(engine *e, jk_direct *direct)
{
    bool around = direct->used && !direct->refused;
    if (direct->refused)
        snprintf(e->note, sizeof e->note,
                 "'%.160s' is %s through the page cache: direct %s were refused",
                 direct->file->name, direct->writes ? "written" : "read",
                 direct->writes ? "writes" : "reads");
    jk_direct_close(direct);
    return around;
}

/* Returns how many inputs were read around the page cache. */
static int close_inputs(engine *e)
{
    int direct = 0;
    for (int i = 0; i < INPUTS; i++)
        direct += close_one(e, &e->direct[i]);
    return direct;
}

jask_status jk_io_engine_run(const jk_product *product, jask_context *ctx, jk_run_stats *stats,
                             jask_error *err)
{
    jk_product reading[PRODUCTS] = {*product};
    engine engines[PRODUCTS];
    jk_drop_behind behind[INPUTS * PRODUCTS] = {{0}};
    int products = product->other ? 2 : 1, inputs = 0, direct = 0;
    bool outgrown[INPUTS * PRODUCTS], written;
    jask_status st;
    uint64_t room = room_beside(ctx, product);
    look_at_memory(ctx, product, outgrown);
    if (product->other) {
        reading[1] = *product->other;
        reading[0].other = &reading[1];
    }
    for (int i = 0; i < products; i++) {
        open_engine(&engines[i], &reading[i], jk_context_io(ctx), outgrown + i * INPUTS, room,
                    behind);
        inputs += engines[i].inputs;
    }
    if (writes_around(ctx, product, room))
        open_one(&engines[0], &engines[0].result, &reading[0].d);
    st = jk_pipeline_run(&reading[0], stats, err);
    for (int i = 0; i < products; i++)
        direct += close_inputs(&engines[i]);
    written = close_one(&engines[0], &engines[0].result);
    jk_drop_behind_close(behind, INPUTS * PRODUCTS);
    if (st)
        return st;
    stats->io_engine = direct == 0 ? "pread" : direct == inputs ? "direct" : "mixed";
    stats->write_engine = written ? "direct" : "pwrite";
    for (int i = 0; i < products; i++)
        if (!stats->note[0])
            memcpy(stats->note, engines[i].note, sizeof stats->note);
    return JASK_OK;
}
