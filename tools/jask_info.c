/* jask-info: what this machine offers and which settings are in force; what files hold; how fast it is. */
#include "cli_calibrate.h"
#include "cli_context.h"
#include "cli_output.h"
#include "cli_signals.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct setting {
    const jask_setting *row;
    const char *value; /* NULL: not set */
    const char *source;
} setting;

/* What the header of an opened file says. */
static void file_text(const jask_array_info *info)
{
    char size[CLI_SIZE_TEXT];
    printf("%s\n  format  %s, data at %" PRIu64
           "\n  dtype   %s, %s-endian\n  order   %s\n  shape  ",
           info->path, info->format, info->data_offset, jask_dtype_name(info->dtype),
           info->big_endian ? "big" : "little", info->fortran_order ? "Fortran" : "C");
    for (int d = 0; d < info->ndim; d++)
        printf("%s%" PRId64, d ? " x " : " ", info->shape[d]);
    printf("%s\n  bytes   %" PRIu64 " (%s)\n", info->ndim ? "" : " scalar", info->data_bytes,
           cli_size_text(info->data_bytes, size, sizeof size));
}

/* A place in logical order as indices, "(1, 2)". */
static void index_text(const char *name, const jask_array_info *info, int64_t place)
{
    int64_t at[JASK_MAX_DIMS];
    if (place < 0)
        return;
    for (int d = info->ndim - 1; d >= 0; d--) {
        at[d] = place % info->shape[d];
        place /= info->shape[d];
    }
    printf(", first %s at (", name);
    for (int d = 0; d < info->ndim; d++)
        printf("%s%" PRId64, d ? ", " : "", at[d]);
    printf(")");
}

static void stats_text(const jask_array_info *info, const jask_statistics *s)
{
    printf("  sum     %.17g", s->sum);
    if (info->dtype == JASK_C64 || info->dtype == JASK_C128)
        printf(" %+.17gi", s->sum_imaginary);
    printf("\n  mean    %.17g\n", s->mean);
    if (!isnan(s->min))
        printf("  least   %.17g\n  most    %.17g\n", s->min, s->max);
    printf("  norm    %.17g\n  NaN     %" PRIu64, s->norm, s->nans);
    index_text("NaN", info, s->first_nan);
    printf("\n  Inf     %" PRIu64, s->infinities);
    index_text("Inf", info, s->first_infinity);
    putchar('\n');
}

static void stats_json(cli_json *json, const jask_statistics *s)
{
    cli_json_begin(json, "stats", '{');
    cli_json_exact(json, "sum", s->sum);
    cli_json_exact(json, "sum_imaginary", s->sum_imaginary);
    cli_json_exact(json, "mean", s->mean);
    cli_json_exact(json, "min", s->min);
    cli_json_exact(json, "max", s->max);
    cli_json_exact(json, "norm", s->norm);
    cli_json_u64(json, "nans", s->nans);
    cli_json_u64(json, "infinities", s->infinities);
    cli_json_i64(json, "first_nan", s->first_nan);
    cli_json_i64(json, "first_infinity", s->first_infinity);
    cli_json_real(json, "seconds", s->seconds);
    cli_json_u64(json, "file_read_bytes", s->file_read_bytes);
    cli_json_end(json, '}');
}

/* `stats` NULL: not asked for. */
static void file_json(const jask_array_info *info, const jask_statistics *stats)
{
    cli_json json = {.file = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "path", info->path);
    cli_json_text(&json, "format", info->format);
    cli_json_u64(&json, "data_offset", info->data_offset);
    cli_json_text(&json, "dtype", jask_dtype_name(info->dtype));
    cli_json_text(&json, "byte_order", info->big_endian ? "big" : "little");
    cli_json_text(&json, "order", info->fortran_order ? "Fortran" : "C");
    cli_json_begin(&json, "shape", '[');
    for (int d = 0; d < info->ndim; d++)
        cli_json_i64(&json, NULL, info->shape[d]);
    cli_json_end(&json, ']');
    cli_json_u64(&json, "elements", info->elements);
    cli_json_u64(&json, "data_bytes", info->data_bytes);
    if (stats)
        stats_json(&json, stats);
    cli_json_end(&json, '}');
    putchar('\n');
}

static jask_status show_file(const cli_options *options, jask_context *ctx, const char *name,
                             jask_error *err)
{
    jask_array *array = NULL;
    jask_array_info info;
    jask_statistics stats = {.struct_size = sizeof stats};
    jask_status st = jask_array_open(name, &array, err);
    if (st == JASK_OK && ctx)
        st = jask_stats(ctx, array, &stats, sizeof stats, err);
    if (st == JASK_OK) {
        jask_array_get_info(array, &info, sizeof info);
        if (options->json)
            file_json(&info, ctx ? &stats : NULL);
        else
            file_text(&info);
        if (!options->json && ctx)
            stats_text(&info, &stats);
    }
    jask_array_close(array);
    return st;
}

static int show_files(const cli_options *options)
{
    int code = CLI_OK;
    jask_context *ctx = NULL;
    jask_error err;
    cli_progress progress;
    cli_progress_init(&progress, options);
    if (options->stats && cli_context_open(options, &progress, &ctx, &err) != JASK_OK)
        return cli_fail(options, &err);
    cli_progress_begin(&progress, "stats");
    for (int i = 0; i < options->file_count && !cli_stop_signal(); i++)
        if (show_file(options, ctx, options->files[i], &err) != JASK_OK)
            code = cli_fail(options, &err);
    jask_context_close(ctx);
    return code;
}

/* Setting `index` as it is in force; without a context, as it would come from the environment. */
static setting get_setting(jask_context *ctx, const cli_options *options, int index)
{
    setting s = {.row = jask_setting_get(index)};
    const char *environment = jask_setting_environment(index);
    bool budget = strcmp(s.row->name, "memory_budget") == 0;
    s.value = environment ? environment : s.row->default_value;
    s.source = environment ? "environment" : "default";
    /* The context had to be given a budget; when nobody else did, it is none that is in force. */
    if (ctx && !(budget && !environment && options->budget_bytes == 0))
        jask_context_setting(ctx, index, &s.value, &s.source, NULL);
    if (s.value && !*s.value)
        s.value = NULL;
    return s;
}

static void settings_json(cli_json *json, jask_context *ctx, const cli_options *options)
{
    cli_json_begin(json, "settings", '[');
    for (int i = 0; i < jask_setting_count(); i++) {
        setting s = get_setting(ctx, options, i);
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "name", s.row->name);
        cli_json_text(json, "environment", s.row->environment);
        cli_json_text(json, "value", s.value);
        cli_json_text(json, "source", s.source);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void settings_text(jask_context *ctx, const cli_options *options)
{
    for (int i = 0; i < jask_setting_count(); i++) {
        setting s = get_setting(ctx, options, i);
        printf("%-14s %s (%s; %s)\n", s.row->name, s.value ? s.value : "not set", s.source,
               s.row->environment);
    }
}

static void devices_json(cli_json *json)
{
    jask_device_info d;
    cli_json_begin(json, "devices", '[');
    for (int i = 0; jask_device_get(i, &d, sizeof d, NULL) == JASK_OK; i++) {
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "name", d.name);
        cli_json_text(json, "description", d.description);
        cli_json_u64(json, "total_bytes", d.total_bytes);
        cli_json_u64(json, "free_bytes", d.free_bytes);
        cli_json_bool(json, "usable", d.usable != 0);
        cli_json_text(json, "note", d.note);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void devices_text(void)
{
    jask_device_info d;
    for (int i = 0; jask_device_get(i, &d, sizeof d, NULL) == JASK_OK; i++) {
        char free_text[CLI_SIZE_TEXT];
        char total[CLI_SIZE_TEXT];
        if (!d.usable) {
            printf("%-14s %s: cannot be used: %s\n", "device", d.name, d.note);
            continue;
        }
        printf("%-14s %s: %s, %s of %s free\n", "device", d.name, d.description,
               cli_size_text(d.free_bytes, free_text, sizeof free_text),
               cli_size_text(d.total_bytes, total, sizeof total));
        if (d.note[0])
            printf("%-14s %s\n", "", d.note);
    }
}

static void cpus_json(cli_json *json)
{
    jask_cpus cpus = {.struct_size = sizeof cpus};
    jask_get_cpus(&cpus, sizeof cpus, NULL);
    cli_json_begin(json, "cpus", '{');
    cli_json_i64(json, "machine", cpus.machine);
    cli_json_i64(json, "allowed", cpus.allowed);
    cli_json_i64(json, "threads", cpus.threads);
    cli_json_real(json, "quota", cpus.quota > 0 ? cpus.quota : (double)NAN);
    cli_json_text(json, "quota_source", cpus.quota > 0 ? cpus.quota_source : NULL);
    cli_json_end(json, '}');
}

static void cpus_text(void)
{
    jask_cpus cpus = {.struct_size = sizeof cpus};
    if (jask_get_cpus(&cpus, sizeof cpus, NULL) != JASK_OK)
        return;
    printf("%-14s %d of %d cores allowed, ", "cpu", cpus.allowed, cpus.machine);
    if (cpus.quota > 0)
        printf("quota %.2f (%s), ", cpus.quota, cpus.quota_source);
    else
        printf("no quota, ");
    printf("%d threads\n", cpus.threads);
}

static void machine_json(jask_context *ctx, const cli_options *options, uint64_t available,
                         const char *source)
{
    cli_json json = {.file = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "version", jask_version());
    devices_json(&json);
    cpus_json(&json);
    cli_json_u64(&json, "available_bytes", available);
    cli_json_text(&json, "available_source", source);
    settings_json(&json, ctx, options);
    cli_json_end(&json, '}');
    putchar('\n');
}

static void machine_text(jask_context *ctx, const cli_options *options, uint64_t available,
                         const char *source)
{
    char size[CLI_SIZE_TEXT];
    printf("%-14s %s\n", "jask", jask_version());
    devices_text();
    cpus_text();
    printf("%-14s %s available (%s)\n", "memory", cli_size_text(available, size, sizeof size),
           source);
    settings_text(ctx, options);
}

/* Settings that cannot be honoured are shown all the same, and then the reason. */
static int show_machine(const cli_options *options)
{
    cli_options silent = *options;
    jask_context *ctx = NULL;
    jask_error err;
    char source[256] = "unknown";
    uint64_t available = 0;
    silent.quiet = true;
    jask_status st = cli_context_open(&silent, NULL, &ctx, &err);
    jask_available_memory(&available, source, sizeof source, NULL);
    if (options->json)
        machine_json(ctx, options, available, source);
    else
        machine_text(ctx, options, available, source);
    jask_context_close(ctx);
    return st == JASK_OK ? CLI_OK : cli_fail(options, &err);
}

int main(int argc, char **argv)
{
    cli_options options;
    cli_signals_init();
    int code = cli_options_parse(&options, CLI_INFO, argc, argv);
    if (code >= 0)
        return code;
    code = options.calibrate        ? cli_calibrate(&options)
           : options.file_count > 0 ? show_files(&options)
                                    : show_machine(&options);
    return cli_finish(options.tool, code);
}
