#include "products.h"

#include "runtime/array.h"
#include "runtime/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned long long state = 88172645463325252ull;

static int64_t draw(int64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)(state % (unsigned long long)below);
}

void stress_must(jask_status st, const jask_error *err)
{
    if (st) {
        fprintf(stderr, "stress: %s\n", err->msg);
        exit(1);
    }
}

static int calls_left; /* of the progress callback until it cancels; negative: never */

static int on_progress(const jask_progress *progress, void *user)
{
    (void)progress, (void)user;
    return calls_left >= 0 && calls_left-- == 0;
}

static jask_array *make(jask_context *ctx, int64_t rows, int64_t cols)
{
    int64_t shape[2] = {rows, cols};
    float *data = malloc((size_t)(rows * cols) * sizeof *data);
    jask_array *array;
    jask_error err;
    if (!data)
        abort();
    for (int64_t i = 0; i < rows * cols; i++)
        data[i] = 1;
    stress_must(jask_array_create(ctx, NULL, JASK_F32, 2, shape, &array, &err), &err);
    stress_must(jask_array_write(array, 0, (uint64_t)(rows * cols), data, &err), &err);
    free(data);
    return array;
}

static void check_ones(const jask_array *d, int64_t count, int64_t k, int64_t plus)
{
    float *got = malloc((size_t)count * sizeof *got);
    jask_error err;
    if (!got)
        abort();
    stress_must(jask_array_read(d, 0, (uint64_t)count, got, &err), &err);
    for (int64_t i = 0; i < count; i++)
        if (got[i] != (float)(k + plus)) {
            fprintf(stderr, "stress: element %lld is %g, not %lld\n", (long long)i, (double)got[i],
                    (long long)(k + plus));
            exit(1);
        }
    free(got);
}

static jk_machine draw_machine(const jk_product *product)
{
    const jk_device_info *info = &product->device->info;
    uint64_t workspace = info->workspace_bytes > 0 ? 65536 : 0;
    uint64_t budget = workspace + (uint64_t)(32768 + draw(200000));
    return (jk_machine){.device_bytes = budget,
                        .reserve_bytes = jk_pipeline_reserve_bytes(
                            info, budget, false, product->io_threads, product->block_bytes),
                        .flops = 1e9,
                        .h2d = 1e9,
                        .d2h = 1e9,
                        .disk_read = 1e9,
                        .disk_write = 1e9,
                        .device_memory = 1e10,
                        .step_seconds = 1e-6};
}

static jk_product draw_product(jask_context *ctx, const jk_device_ref *device)
{
    return (jk_product){.device = device,
                        .ctx = ctx,
                        .alpha = 1,
                        .beta = draw(3) == 0,
                        .io_threads = 1 + (int)draw(4),
                        .block_bytes = (size_t)256 << draw(8)};
}

/* An array of a product, as it lies or as its transpose. */
static jk_matrix matrix_of(const jask_array *array, bool trans)
{
    jk_matrix matrix;
    jask_error err;
    stress_must(jk_matrix_of(array, trans, "array", &matrix, &err), &err);
    return matrix;
}

static jask_array *make_result(jask_context *ctx, int64_t rows, int64_t cols)
{
    int64_t shape[2] = {rows, cols};
    jask_array *d;
    jask_error err;
    stress_must(jask_array_create(ctx, NULL, JASK_F32, 2, shape, &d, &err), &err);
    return d;
}

/* Some are canceled halfway; whether this one ran to its end. */
static bool run(const jk_product *product)
{
    bool cancel = draw(5) == 0;
    jk_run_stats stats;
    jask_error err;
    jask_status st;
    calls_left = cancel ? (int)draw(3) : -1;
    st = jk_pipeline_run(product, &stats, &err);
    if (st != JASK_ERR_CANCELED || !cancel)
        stress_must(st, &err);
    return st == JASK_OK;
}

void stress_product(jask_context *ctx, const jk_device_ref *device)
{
    int64_t m = 1 + draw(700), n = 1 + draw(300), k = 1 + draw(300);
    jk_product product = draw_product(ctx, device);
    bool with_c = product.beta != 0;
    jk_problem problem = {
        .m = m, .n = n, .k = k, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4, .read_c = with_c};
    jk_machine machine = draw_machine(&product);
    jask_array *a = make(ctx, m, k), *b = make(ctx, k, n), *c = with_c ? make(ctx, m, n) : NULL;
    jask_array *d = make_result(ctx, m, n);
    jk_plan plan;
    jask_error err;
    stress_must(jk_plan_make(&problem, &machine, (jk_planner)draw(3), draw(4) != 0, &plan, &err),
                &err);
    product.plan = &plan;
    product.a = matrix_of(a, false);
    product.b = matrix_of(b, false);
    product.d = matrix_of(d, false);
    if (c)
        product.c = matrix_of(c, false);
    if (run(&product))
        check_ones(d, m * n, k, with_c);
    jask_array_close(d);
    jask_array_close(c);
    jask_array_close(b);
    jask_array_close(a);
}

/* The extents are such that every budget holds the blocks of some joint plan. */
void stress_gradients(jask_context *ctx, const jk_device_ref *device)
{
    int64_t m = 1 + draw(700), n = 1 + draw(300), k = 1 + draw(12);
    jk_product da = draw_product(ctx, device), db;
    bool adds = da.beta != 0;
    jk_joint_side side = {.bytes = 4, .gradient_bytes = 4, .adds = adds, .before_bytes = 4};
    jk_joint_problem problem = {
        .m = m, .n = n, .k = k, .bytes = 4, .sum_bytes = 4, .g_bytes = 4, .side = {side, side}};
    jk_machine machine = draw_machine(&da);
    jk_joint plan;
    jask_array *a = make(ctx, m, k), *b = make(ctx, k, n), *g = make(ctx, m, n);
    jask_array *d[2] = {make_result(ctx, m, k), make_result(ctx, k, n)};
    if (!jk_joint_make(&problem, &machine, draw(2) ? JK_PLANNER_AUTO : JK_PLANNER_BYTES,
                       draw(4) != 0, &plan)) {
        fprintf(stderr, "stress: no joint plan\n");
        exit(1);
    }
    da.joint = &plan;
    da.c = adds ? matrix_of(a, false) : da.c;
    da.d = da.partial = matrix_of(d[0], false);
    db = da;
    db.c = adds ? matrix_of(b, false) : db.c;
    db.d = db.partial = matrix_of(d[1], false);
    da.a = matrix_of(g, false);
    da.b = matrix_of(b, true);
    db.a = matrix_of(a, true);
    db.b = matrix_of(g, false);
    da.other = &db;
    if (run(&da)) {
        check_ones(d[0], m * k, n, adds);
        check_ones(d[1], k * n, m, adds);
    }
    for (int i = 0; i < 2; i++)
        jask_array_close(d[i]);
    jask_array_close(g);
    jask_array_close(b);
    jask_array_close(a);
}

jask_context *stress_context(void)
{
    jask_options options;
    jask_context *ctx;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.device = "host";
    options.memory_budget_bytes = 1 << 20;
    options.allow_tmpfs = 1;
    options.progress = on_progress;
    stress_must(jask_context_open(&options, &ctx, &err), &err);
    return ctx;
}
