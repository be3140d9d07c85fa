/* What a product's inputs are read with, for plans that are only described. */
#include "runtime/io_engine.h"
#include "runtime/operand.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static jk_product run;
static uint64_t available;

jask_status __wrap_jk_pipeline_run(const jk_product *product, jk_run_stats *stats, jask_error *err);
jask_status __wrap_jk_pipeline_run(const jk_product *product, jk_run_stats *stats, jask_error *err)
{
    (void)err;
    run = *product;
    memset(stats, 0, sizeof *stats);
    return JASK_OK;
}

jask_status __wrap_jask_available_memory(uint64_t *out_bytes, char *source, size_t source_size,
                                         jask_error *err);
jask_status __wrap_jask_available_memory(uint64_t *out_bytes, char *source, size_t source_size,
                                         jask_error *err)
{
    if (available == 0)
        return jk_fail(err, JASK_ERR_IO, "nobody knows");
    *out_bytes = available;
    if (source && source_size > 0)
        *source = '\0';
    return JASK_OK;
}

TestSuite(io_engine, .init = tree_enter, .fini = tree_leave);

/* f32, stored as rows x cols. */
static jk_matrix matrix_of(const jk_file *file, int64_t rows, int64_t cols, bool trans)
{
    return (jk_matrix){
        .file = file,
        .offset = 128,
        .rows = rows,
        .cols = cols,
        .row_bytes = (uint64_t)cols * 4,
        .dtype = JASK_F32,
        .trans = trans,
    };
}

static const struct shape {
    const char *name;
    bool a_trans, b_trans;
    int64_t k, bm, bn, bk, layer;
    uint64_t room_mib; /* beside the plan's 480 MiB; 0: unknown */
    uint64_t a_ahead, b_ahead;
} shapes[] = {
    {"whole rows of A", 0, 0, 16384, 4096, 16384, 1024, 0, 256, 64 * KIB, 0},
    {"no room for them", 0, 0, 16384, 4096, 16384, 1024, 0, 255, 0, 0},
    {"nobody knows", 0, 0, 16384, 4096, 16384, 1024, 0, 0, 0, 0},
    {"parts of longer rows", 0, 0, 32768, 2048, 16384, 1024, 0, 191, 64 * KIB, 0},
    {"not more than helps", 0, 0, 1 << 20, 512, 512, 8192, 0, 4096, 512 * KIB, 0},
    {"short rows", 0, 0, 2048, 4096, 16384, 256, 0, 64, 8 * KIB, 0},
    {"long runs", 0, 0, 32768, 512, 512, 16384, 0, 4096, 0, 0},
    {"whole rows as they are", 0, 0, 1024, 512, 512, 1024, 0, 4096, 0, 0},
    {"columns of a transpose", 1, 0, 16384, 4096, 16384, 1024, 0, 256, 0, 0},
    {"rows of a transposed B", 1, 1, 16384, 4096, 2048, 1024, 0, 256, 0, 64 * KIB},
    {"both", 0, 1, 16384, 2048, 1024, 1024, 0, 192, 64 * KIB, 64 * KIB},
    {"both, with room for one", 0, 1, 16384, 2048, 1024, 1024, 0, 191, 64 * KIB, 0},
    {"other tiles come in between", 0, 0, 16384, 4096, 16384, 1024, 4, 256, 0, 0},
};

static jask_context *open_context(const char *io)
{
    jask_options options;
    jask_context *ctx;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 512 * MIB;
    options.device = "host";
    options.io = io;
    available = 4096 * MIB;
    cr_assert_eq(jask_context_open(&options, &ctx, NULL), JASK_OK);
    return ctx;
}

Test(io_engine, rows_that_a_tile_uses_up_are_announced_whole_where_there_is_room)
{
    jask_context *ctx = open_context(NULL);
    jk_file files[3];
    for (int i = 0; i < 3; i++)
        cr_assert_eq(jk_file_scratch(".", MIB, &files[i], NULL), JASK_OK);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        const jk_plan plan = {
            .bm = s->bm,
            .bn = s->bn,
            .bk = s->bk,
            .layer = s->layer,
            .a_slots = 2,
            .b_slots = 2,
            .peak_bytes = 480 * MIB,
        };
        const int64_t m = 16384, n = 16384;
        const jk_product product = {
            .plan = &plan,
            .device = jk_context_device(ctx),
            .ctx = ctx,
            .block_bytes = 4 * MIB,
            .share = {.steps_total = 1}, /* of several products: none passes by once */
            .a = matrix_of(&files[0], s->a_trans ? s->k : m, s->a_trans ? m : s->k, s->a_trans),
            .b = matrix_of(&files[1], s->b_trans ? n : s->k, s->b_trans ? s->k : n, s->b_trans),
            .d = matrix_of(&files[2], m, n, false),
        };
        jk_run_stats stats;
        available = s->room_mib > 0 ? (480 + s->room_mib) * MIB : 0;
        cr_assert_eq(jk_io_engine_run(&product, ctx, &stats, NULL), JASK_OK);
        cr_assert_eq(run.a.ahead_bytes, s->a_ahead, "%s: %llu", s->name,
                     (unsigned long long)run.a.ahead_bytes);
        cr_assert_eq(run.b.ahead_bytes, s->b_ahead, "%s: %llu", s->name,
                     (unsigned long long)run.b.ahead_bytes);
        cr_assert_eq(run.d.ahead_bytes, 0);
    }
    for (int i = 0; i < 3; i++)
        jk_file_close(&files[i]);
    jask_context_close(ctx);
}

static const struct result {
    const char *name, *io;
    bool durable;
    uint64_t mib, room_mib; /* beside the plan's 480 MiB; 0: unknown */
    double write, products; /* predicted seconds */
    bool direct;
} results[] = {
    {"durable", NULL, true, 16, 4096, 1, 2, true},
    {"through the page cache, asked for", "pread", true, 16, 4096, 1, 2, false},
    {"around it, asked for", "direct", false, 16, 4096, 1, 2, true},
    {"for the system to write some time", NULL, false, 16, 4096, 1, 2, false},
    {"more than memory holds", NULL, false, 256, 255, 1, 2, true},
    {"as much as memory holds", NULL, false, 256, 256, 1, 2, false},
    {"nobody knows", NULL, false, 256, 0, 1, 2, false},
    {"large, behind products", NULL, false, 1024, 4096, 2, 2, true},
    {"not quite large", NULL, false, 1023, 4096, 2, 2, false},
    {"large, and the disk is slower", NULL, false, 1024, 4096, 2.1, 2, false},
    {"large, of a disk that nobody knows", NULL, false, 1024, 4096, 0, 2, false},
    {"little", "direct", true, 0, 4096, 1, 2, false},
};

Test(io_engine, results_go_around_the_page_cache_where_that_would_not_keep_them_or_only_cost_time)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        const struct result *r = &results[i];
        jask_context *ctx = open_context(r->io);
        jk_plan plan = {.bm = 1, .bn = 1, .bk = 1, .peak_bytes = 480 * MIB};
        jk_file file;
        jk_run_stats stats;
        cr_assert_eq(jk_file_scratch(".", MIB, &file, NULL), JASK_OK);
        file.bytes = r->mib > 0 ? r->mib * MIB : MIB - 1;
        plan.stage_seconds[JK_STAGE_WRITE] = r->write;
        plan.stage_seconds[JK_STAGE_PRODUCTS] = r->products;
        const jk_product product = {
            .plan = &plan,
            .device = jk_context_device(ctx),
            .ctx = ctx,
            .block_bytes = 4 * MIB,
            .durable = r->durable,
            .d = matrix_of(&file, 1, 1, false),
        };
        available = r->room_mib > 0 ? (480 + r->room_mib) * MIB : 0;
        cr_assert_eq(jk_io_engine_run(&product, ctx, &stats, NULL), JASK_OK);
        cr_assert_eq(run.d.direct != NULL, r->direct, "%s", r->name);
        jk_file_close(&file);
        jask_context_close(ctx);
    }
}
