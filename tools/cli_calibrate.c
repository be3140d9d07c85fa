#include "cli_calibrate.h"

#include "cli_context.h"
#include "cli_output.h"

#include <math.h>
#include <stdio.h>

/* A rate of this name; 0: there is none. */
typedef struct rate {
    const char *name;
    double value;
} rate;

static void row_text(const char *what, const char *unit, const rate *rates, int count)
{
    const char *between = "";
    printf("%-14s", what);
    for (int i = 0; i < count; i++) {
        if (rates[i].value <= 0)
            continue;
        printf("%s %s %.3g", between, rates[i].name, rates[i].value / 1e9);
        between = ",";
    }
    printf(*between ? " %s\n" : " not measured\n", unit);
}

static void show_text(const jask_calibration *c, const jask_config *config)
{
    const rate products[] = {{"f32", c->flops_f32},
                             {"f64", c->flops_f64},
                             {"tf32", c->flops_tf32},
                             {"f16", c->flops_f16},
                             {"bf16", c->flops_bf16}};
    const rate copies[] = {{"up", c->h2d}, {"down", c->d2h}, {"each way at once", c->duplex}};
    const rate memory[] = {{"read and written", c->memory}};
    const rate disk[] = {{"read", c->disk_read}, {"written", c->disk_write}};
    row_text("products", "GFLOP/s", products, 5);
    row_text("copies", "GB/s", copies, 3);
    row_text("memory", "GB/s", memory, 1);
    row_text("disk", "GB/s", disk, 2);
    if (c->runs > 0)
        printf("%-14s %.3g thousand a second\n", "short runs", c->runs / 1e3);
    printf("%-14s %s\n%-14s %s\n%-14s %.1f\n%-14s %s\n", "device", config->device, "files in",
           config->scratch_dir, "seconds", c->seconds, "machine", c->machine);
    printf("%-14s %s\n", "kept in", c->path);
}

/* null where there is none. */
static void member(cli_json *json, const char *key, double value)
{
    cli_json_real(json, key, value > 0 ? value : (double)NAN);
}

static void show_json(const jask_calibration *c, const jask_config *config)
{
    cli_json json = {.file = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "device", config->device);
    cli_json_text(&json, "scratch_dir", config->scratch_dir);
    member(&json, "flops_f32", c->flops_f32);
    member(&json, "flops_f64", c->flops_f64);
    member(&json, "flops_tf32", c->flops_tf32);
    member(&json, "flops_f16", c->flops_f16);
    member(&json, "flops_bf16", c->flops_bf16);
    member(&json, "h2d", c->h2d);
    member(&json, "d2h", c->d2h);
    member(&json, "duplex", c->duplex);
    member(&json, "memory", c->memory);
    member(&json, "disk_read", c->disk_read);
    member(&json, "disk_write", c->disk_write);
    member(&json, "runs", c->runs);
    cli_json_real(&json, "seconds", c->seconds);
    cli_json_text(&json, "machine", c->machine);
    cli_json_text(&json, "path", c->path);
    cli_json_end(&json, '}');
    putchar('\n');
}

int cli_calibrate(const cli_options *options)
{
    jask_context *ctx = NULL;
    jask_config config = {.struct_size = sizeof config};
    jask_calibration found = {.struct_size = sizeof found};
    cli_progress progress;
    jask_error err;
    cli_progress_init(&progress, options);
    cli_blas_threads(options);
    jask_status st = cli_context_open(options, &progress, &ctx, &err);
    if (st == JASK_OK)
        st = jask_get_config(ctx, &config, sizeof config, &err);
    if (st == JASK_OK) {
        cli_note(options, "measuring %s, and the disk of '%s' with a file of 512MiB", config.device,
                 config.scratch_dir);
        cli_progress_begin(&progress, "calibration");
        st = jask_calibrate(ctx, &found, sizeof found, &err);
        cli_progress_end(&progress, st == JASK_OK);
    }
    int code = CLI_OK;
    if (st != JASK_OK)
        code = cli_fail(options, &err);
    else if (options->json)
        show_json(&found, &config);
    else
        show_text(&found, &config);
    jask_context_close(ctx);
    return code;
}
