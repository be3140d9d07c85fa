/* Measuring a card: what is measured, kept and planned with. The numbers are the simulator's and mean
 * nothing. */
#include "../e2e/e2e.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void begin(void)
{
    char *path;
    e2e_init();
    path = realpath(e2e_path(""), NULL);
    cr_assert_not_null(path);
    setenv("JASK_DEVICE", "cuda", 1);
    setenv("XDG_CACHE_HOME", path, 1);
    free(path);
}

TestSuite(calibrate_cuda, .init = begin, .fini = e2e_cleanup);

typedef struct seen {
    double fraction;
    double cancel_from; /* that is done */
} seen;

static int watch(const jask_progress *progress, void *user)
{
    seen *s = user;
    cr_assert(progress->fraction >= s->fraction && progress->fraction < 1);
    s->fraction = progress->fraction;
    return s->fraction >= s->cancel_from;
}

static jask_status calibrate(seen *s, jask_calibration *out, jask_error *err)
{
    jask_options options;
    jask_context *ctx;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 16 << 20;
    options.host_budget_bytes = 8 << 20;
    options.scratch_dir = e2e_path("scratch");
    options.progress = watch;
    options.progress_user = s;
    cr_assert_eq(jask_context_open(&options, &ctx, err), JASK_OK, "%s", err->msg);
    jask_status st = jask_calibrate(ctx, out, sizeof *out, err);
    jask_context_close(ctx);
    return st;
}

static void machine_in_force(jask_context *ctx, const char **value, const char **source)
{
    for (int i = 0; i < jask_setting_count(); i++)
        if (strcmp(jask_setting_get(i)->name, "machine") == 0)
            jask_context_setting(ctx, i, value, source, NULL);
}

Test(calibrate_cuda, every_rate_is_measured_and_planned_with, .timeout = 300)
{
    cusim_config config = sim_config(1);
    jask_calibration found = {.path = ""};
    seen s = {.cancel_from = 2};
    const char *value, *source;
    jask_error err;
    cusim_reset(&config);
    cr_assert_eq(calibrate(&s, &found, &err), JASK_OK, "%s", err.msg);
    sim_check_clean("calibration", 1);
    const double rates[] = {found.flops_f32,  found.flops_f64, found.flops_tf32, found.flops_f16,
                            found.flops_bf16, found.h2d,       found.d2h,        found.duplex,
                            found.memory,     found.seconds};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        cr_assert(rates[i] > 0, "rate %zu", i);
    cr_assert(s.fraction > 0.8, "%g", s.fraction);
    cr_assert_eq(access(found.path, R_OK), 0, "%s", found.path);

    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    machine_in_force(ctx, &value, &source);
    cr_assert_str_eq(value, found.machine);
    cr_assert_str_eq(source, "calibration");
    cr_assert_not_null(strstr(value, "flops_f16="), "%s", value);
    cr_assert(found.runs == 0 && !strstr(value, "runs="), "%s", value);
    jask_context_close(ctx);
    setenv("JASK_DEVICE", "host", 1);
    ctx = e2e_context(1 << 20, "auto", true);
    machine_in_force(ctx, &value, &source);
    cr_assert_str_eq(source, "default", "the host is another device");
    jask_context_close(ctx);
}

Test(calibrate_cuda, canceled_nothing_is_kept, .timeout = 300)
{
    static const double moments[] = {0, 0.1, 0.5};
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        cusim_config config = sim_config(i);
        jask_calibration found = {.path = "untouched"};
        seen s = {.cancel_from = moments[i]};
        const char *value, *source;
        jask_error err;
        cusim_reset(&config);
        cr_assert_eq(calibrate(&s, &found, &err), JASK_ERR_CANCELED, "%s", err.msg);
        cr_assert_str_eq(found.path, "untouched");
        sim_check_clean("canceled", i);
        jask_context *ctx = e2e_context(1 << 20, "auto", true);
        machine_in_force(ctx, &value, &source);
        cr_assert_str_eq(source, "default");
        jask_context_close(ctx);
    }
}

/* Predicted seconds of a product that only products bind. */
static double predicted(jask_dtype dtype)
{
    const int64_t shape[] = {128, 128};
    jask_array *x;
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_plan *plan;
    jask_plan_info info = {.struct_size = sizeof info};
    jask_dot_args args;
    jask_error err;
    cr_assert_eq(jask_array_create(ctx, NULL, dtype, 2, shape, &x, &err), JASK_OK, "%s", err.msg);
    jask_dot_args_init(&args, sizeof args);
    cr_assert_eq(jask_dot_plan(ctx, x, x, &args, &plan, &err), JASK_OK, "%s", err.msg);
    jask_plan_get_info(plan, &info, sizeof info);
    jask_plan_close(plan);
    jask_array_close(x);
    jask_context_close(ctx);
    return info.seconds;
}

Test(calibrate_cuda, products_are_planned_with_the_rate_of_their_types)
{
    cusim_config config = sim_config(1);
    cusim_reset(&config);
    setenv("JASK_MACHINE", "flops=1M,flops_f64=2M,flops_tf32=4M,flops_f16=8M", 1);
    double f32 = predicted(JASK_F32), f64 = predicted(JASK_F64), f16 = predicted(JASK_F16);
    setenv("JASK_PRECISION", "tf32", 1);
    double tf32 = predicted(JASK_F32);
    cr_assert(f32 / f64 > 1.9 && f32 / f64 < 2.1, "f64 %g", f32 / f64);
    cr_assert(f32 / tf32 > 3.8 && f32 / tf32 < 4.2, "tf32 %g", f32 / tf32);
    cr_assert(f32 / f16 > 7.5 && f32 / f16 < 8.5, "f16 %g", f32 / f16);
}
