#include "cusim.h"
#include "example.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>

#define SEEDS 8

static const cusim_scheduler schedulers[] = {CUSIM_INLINE, CUSIM_THREADS, CUSIM_PCT};

static void start(cusim_scheduler scheduler, uint64_t seed)
{
    cusim_config c;
    cusim_config_default(&c);
    c.scheduler = scheduler;
    c.seed = seed;
    c.device_bytes = 1 << 20;
    c.max_delay_us = scheduler == CUSIM_THREADS ? 100 : 0;
    cusim_reset(&c);
}

Test(order, a_correct_program_is_right_and_unsuspected)
{
    for (int s = 0; s < 3; s++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            bool right;
            char leaks[256] = "";
            start(schedulers[s], seed);
            cr_assert_eq(example_run(EXAMPLE_ALL_WAITS, &right), 0);
            cr_assert(right, "scheduler %d, seed %d", s, (int)seed);
            cr_assert_eq(cusim_report_count(NULL), 0, "%s", cusim_report(0));
            cr_assert_eq(cusim_leaks(leaks, sizeof leaks), 0, "%s", leaks);
        }
}

Test(order, each_missing_wait_is_reported_under_every_schedule)
{
    for (int s = 0; s < 3; s++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            for (int wait = 1; wait < EXAMPLE_WAITS; wait++) {
                bool right;
                start(schedulers[s], seed);
                cr_assert_eq(example_run((example_wait)wait, &right), 0);
                cr_assert_gt(cusim_report_count("ORDER"), 0,
                             "scheduler %d, seed %d: not missed: %s", s, (int)seed,
                             example_wait_name((example_wait)wait));
            }
}
