/* The pipeline on the CUDA device, on a simulated card that does what is queued in any order that
 * its streams and events allow. */
#include "../e2e/e2e.h"
#include "gradients.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The contexts here only lend their scratch directory. */
static void begin(void)
{
    e2e_init();
    setenv("JASK_DEVICE", "host", 1);
}

TestSuite(pipeline_cuda, .init = begin, .fini = e2e_cleanup);

/* What the card counted, and what it held at most. */
static void run_counted(const product_setup *setup, const product_shape *shape)
{
    cusim_stats before, after;
    uint64_t allocations;
    product p;
    jask_error err;
    product_open(setup, shape, &p);
    cusim_get_stats(&before);
    allocations = cusim_calls("cudaMalloc") + cusim_calls("cudaHostAlloc");
    cr_assert_eq(jk_pipeline_run(&p.job, &p.stats, &err), JASK_OK, "%s", err.msg);
    cusim_get_stats(&after);
    product_check(&p);
    cr_assert_str_empty(p.stats.note);
    allocations = cusim_calls("cudaMalloc") + cusim_calls("cudaHostAlloc") - allocations;
    cr_assert_eq(allocations, 2, "memory is taken once a run, not once a tile");
    cr_assert_eq(after.h2d_bytes - before.h2d_bytes, p.plan.h2d_bytes);
    cr_assert_eq(after.d2h_bytes - before.d2h_bytes, p.plan.d2h_bytes);
    cr_assert_eq(after.default_workspaces, 0);
    cr_assert_eq(after.pageable_copies, 0);
    cr_assert_eq(after.used_bytes, before.used_bytes);
    cr_assert_leq(after.peak_bytes, setup->budget);
    cr_assert_leq(after.pinned_peak_bytes,
                  (size_t)jk_pipeline_host_blocks(false, setup->io_threads) * setup->block_bytes);
    product_close(&p);
}

/* Sums that stay in host memory while super-tiles are made. */
Test(pipeline_cuda, layers_are_exact_and_ordered_under_60_schedules)
{
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        product_setup setup;
        jk_device_ref device;
        sim_separate(seed);
        device = sim_open();
        setup = product_layered_setup(&device, ctx, seed);
        run_counted(&setup, &product_shapes[seed % PRODUCT_SHAPES]);
        jk_device_release(&device);
        sim_check_clean("seed", seed);
    }
    jask_context_close(ctx);
}

Test(pipeline_cuda, is_exact_and_ordered_under_100_schedules)
{
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        /* Three shapes a seed, in turn. */
        for (uint64_t i = 3 * seed; i < 3 * seed + 3; i++) {
            product_setup setup;
            jk_device_ref device;
            sim_separate(seed);
            device = sim_open();
            setup = product_varied_setup(&device, ctx, seed + i);
            run_counted(&setup, &product_shapes[i % PRODUCT_SHAPES]);
            jk_device_release(&device);
            sim_check_clean("seed", seed);
        }
    }
    jask_context_close(ctx);
}

Test(pipeline_cuda, gradients_are_exact_and_ordered_under_100_schedules)
{
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        product_setup setup;
        jk_device_ref device;
        gradients g;
        jask_error err;
        sim_separate(seed);
        device = sim_open();
        setup = product_varied_setup(&device, ctx, seed);
        gradients_open(&setup, &gradients_shapes[seed % GRADIENTS_SHAPES], seed, &g);
        cr_assert_eq(jk_pipeline_run(&g.jobs[0], &g.stats, &err), JASK_OK, "%s", err.msg);
        gradients_check(&g);
        gradients_close(&g);
        jk_device_release(&device);
        sim_check_clean("seed", seed);
    }
    jask_context_close(ctx);
}

/* Whose files are read and written by threads that know of no other card. */
Test(pipeline_cuda, leaves_other_cards_alone)
{
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jk_device_options options = {.cublas = sim_cublas()};
    cusim_config config = sim_config(1);
    product_setup setup;
    cusim_stats stats;
    jk_device_ref device;
    jask_error err;
    config.devices = 2;
    cusim_reset(&config);
    cr_assert_eq(jk_device_select("cuda:1", &options, &device, &err), JASK_OK, "%s", err.msg);
    setup = product_varied_setup(&device, ctx, 1);
    run_counted(&setup, &product_shapes[1]);
    jk_device_release(&device);
    cusim_get_stats(&stats);
    cr_assert_gt(stats.h2d_bytes, 0);
    cr_assert_eq(stats.foreign_copies, 0);
    sim_check_clean("two cards", 1);
    jask_context_close(ctx);
}

/* The limit on pinned memory, and what the note says of it. */
Test(pipeline_cuda, goes_on_with_less_pinned_memory_than_was_planned)
{
    static const struct {
        size_t limit;
        const char *note;
    } cases[] = {{300 << 10, "instead of"}, {16, "pageable"}};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            cusim_config config = sim_config(seed);
            product_setup setup;
            cusim_stats stats;
            jk_device_ref device;
            product p;
            jask_error err;
            config.pinned_bytes = cases[i].limit;
            cusim_reset(&config);
            device = sim_open();
            setup = product_varied_setup(&device, ctx, seed);
            setup.block_bytes = 256 << 10;
            product_open(&setup, &product_shapes[1 + seed % 2], &p);
            cr_assert_eq(jk_pipeline_run(&p.job, &p.stats, &err), JASK_OK, "%s", err.msg);
            product_check(&p);
            product_close(&p);
            cr_assert_not_null(strstr(p.stats.note, cases[i].note), "%s", p.stats.note);
            cusim_get_stats(&stats);
            cr_assert_eq(stats.pageable_copies > 0, strcmp(cases[i].note, "pageable") == 0);
            cr_assert_leq(stats.pinned_peak_bytes, cases[i].limit);
            jk_device_release(&device);
            sim_check_clean("seed", seed);
        }
    }
    jask_context_close(ctx);
}
