/* Every call of CUDA and cuBLAS fails once, at every place of a whole jask_dot: at once, when its
 * work runs, and for good. Each time: an error in words or a right result, nothing left, no hang,
 * and the target as it was before. */
#include "../e2e/e2e.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For each whole test: nothing may hang. */
#define PATIENCE_SECONDS 300

static void begin(void)
{
    alarm(PATIENCE_SECONDS);
    e2e_init();
}

TestSuite(cuda_faults, .init = begin, .fini = e2e_cleanup);

enum { M = 90, N = 40, K = 70 };

/* A context on the card, a product to d.npy, all closed again. */
static jask_status multiply(const jask_array *a, const jask_array *b, bool deterministic,
                            jask_error *err)
{
    jask_context *ctx;
    jask_options options;
    jask_dot_args args;
    jask_status st;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 64 << 10;
    options.host_budget_bytes = 64 << 10;
    options.device = "cuda";
    options.deterministic = deterministic;
    options.sync = -1;
    options.allow_tmpfs = 1;
    options.scratch_dir = e2e_path("scratch");
    jask_dot_args_init(&args, sizeof args);
    args.output = e2e_path("d.npy");
    st = jask_context_open(&options, &ctx, err);
    if (st)
        return st;
    st = jask_dot(ctx, a, b, &args, NULL, NULL, err);
    jask_context_close(ctx);
    return st;
}

/* d.npy begins as the integer matrix 9, and has the product when it was replaced. */
static void check_target(bool replaced, const char *what)
{
    jask_array *d = e2e_open(e2e_path("d.npy"));
    double *got = e2e_read(d);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            int64_t want = replaced ? 0 : e2e_value(9, i, j);
            for (int64_t q = 0; replaced && q < K; q++)
                want += e2e_value(1, i, q) * e2e_value(2, q, j);
            if (got[i * N + j] != (double)want)
                cr_assert_fail("%s: D(%" PRId64 ",%" PRId64 ") is %g, not %" PRId64, what, i, j,
                               got[i * N + j], want);
        }
    free(got);
    jask_array_close(d);
}

static void write_target(void)
{
    e2e_form form = {.dtype = JASK_F32};
    e2e_write(e2e_path("d.npy"), form, M, N, 9, NULL);
}

/* One fault. True when it was met and the product failed. */
static bool check_fault(const jask_array *a, const jask_array *b, bool deterministic,
                        const char *call, uint64_t nth, cusim_fault_kind how)
{
    cusim_config config = sim_config(2 * nth + 1); /* no delays */
    char what[96], leaks[256] = "";
    jask_error err = {.msg = ""};
    jask_status st;
    size_t reports;
    snprintf(what, sizeof what, "%.39s %" PRIu64 " kind %d", call, nth, (int)how);
    cusim_reset(&config);
    cusim_fault(call, nth, how, how == CUSIM_FAIL_NOW ? cudaErrorInvalidValue : cudaErrorUnknown);
    st = multiply(a, b, deterministic, &err);
    check_target(st == JASK_OK, what);
    if (st) {
        cr_assert_eq(err.code, st);
        cr_assert_gt(strlen(err.msg), 20, "%s: '%s'", what, err.msg);
    }
    write_target();
    /* A lost card cannot be waited for: what is queued there is freed as it is. */
    reports = cusim_report_count(NULL) - (how == CUSIM_FAIL_NOW ? 0 : cusim_report_count("FREE"));
    cr_assert_eq(reports, 0, "%s: %s", what, cusim_report(0));
    cr_assert_eq(cusim_leaks(leaks, sizeof leaks), 0, "%s: left: %s", what, leaks);
    return st != JASK_OK;
}

static void check_kind(cusim_fault_kind how, bool deterministic)
{
    e2e_form form = {.dtype = JASK_F32};
    cusim_config config = sim_config(1);
    char calls[64][40];
    uint64_t times[64];
    size_t count = 0;
    uint64_t failed = 0, faults = 0;
    jask_array *a, *b;
    jask_error err;
    e2e_write(e2e_path("a.npy"), form, M, K, 1, NULL);
    e2e_write(e2e_path("b.npy"), form, K, N, 2, NULL);
    write_target();
    a = e2e_open(e2e_path("a.npy"));
    b = e2e_open(e2e_path("b.npy"));
    cusim_reset(&config);
    cr_assert_eq(multiply(a, b, deterministic, &err), JASK_OK, "%s", err.msg);
    check_target(true, "without a fault");
    write_target();
    for (const char *name; (name = cusim_call_name(count)) && count < 64; count++) {
        snprintf(calls[count], sizeof calls[0], "%s", name);
        times[count] = cusim_calls(name);
    }
    cr_assert_gt(count, 15);
    for (size_t c = 0; c < count; c++)
        for (uint64_t nth = 1; nth <= times[c]; nth++, faults++)
            failed += check_fault(a, b, deterministic, calls[c], nth, how);
    cr_assert_gt(faults, 100);
    /* Only calls that free, and pinned memory, can do without. */
    cr_assert_gt(failed, faults / 2);
    printf("# %" PRIu64 " faults, %" PRIu64 " ended a run\n", faults, failed);
    jask_array_close(a);
    jask_array_close(b);
}

Test(cuda_faults, every_call_may_fail_at_once)
{
    check_kind(CUSIM_FAIL_NOW, false);
}

Test(cuda_faults, every_call_may_fail_when_its_work_runs)
{
    check_kind(CUSIM_FAIL_LATER, false);
}

Test(cuda_faults, every_call_may_lose_the_card)
{
    check_kind(CUSIM_FAIL_STICKY, false);
}

/* Which are kernels of our own, and no calls of cuBLAS. */
Test(cuda_faults, every_call_of_a_deterministic_product_may_fail)
{
    check_kind(CUSIM_FAIL_NOW, true);
    check_kind(CUSIM_FAIL_LATER, true);
}
