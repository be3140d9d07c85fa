#include "cli_report.h"

#include "cli_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double gflops(const jask_report *r)
{
    double flops = 2.0 * (double)r->plan.m * (double)r->plan.n * (double)r->plan.k;
    return flops / r->seconds / 1e9;
}

char *cli_plan_text(const jask_plan *plan, int json)
{
    size_t size = jask_plan_format(plan, json, NULL, 0) + 1;
    char *text = malloc(size);
    if (text)
        jask_plan_format(plan, json, text, size);
    return text;
}

jask_status cli_print_plan(const cli_options *options, const jask_plan *plan, jask_error *err)
{
    char *text = cli_plan_text(plan, options->json);
    if (!text)
        return cli_set_error(err, JASK_ERR_NOMEM, "no memory for the plan's text");
    printf("%s%s", text, options->json ? "\n" : "");
    free(text);
    return JASK_OK;
}

/* A second; bytes asked of files. */
static double gigabytes(const jask_report *r)
{
    double moved = (double)r->io.file_read_bytes + (double)r->io.file_write_bytes;
    return moved / r->seconds / 1e9;
}

/* Whether the inputs came from the disk. A plan may read a file several times, but from the disk it
 * need come but once; that much, or all that was asked when it was less, is cold. */
static const char *cache_state(const cli_result *result)
{
    const jask_io_cost *io = &result->report->io;
    double once = fmin((double)io->file_read_bytes, (double)result->input_bytes);
    double disk = (double)io->disk_read_bytes;
    if (once == 0.0)
        return "nothing read";
    if (disk < 0.01 * once)
        return "warm";
    return disk >= 0.9 * once ? "cold" : "partly cached";
}

static void write_io(cli_json *json, const jask_io_cost *io)
{
    cli_json_i64(json, "h2d_pages", io->h2d_pages);
    cli_json_u64(json, "h2d_bytes", io->h2d_bytes);
    cli_json_i64(json, "d2h_pages", io->d2h_pages);
    cli_json_u64(json, "d2h_bytes", io->d2h_bytes);
    cli_json_u64(json, "file_read_bytes", io->file_read_bytes);
    cli_json_u64(json, "file_write_bytes", io->file_write_bytes);
    cli_json_u64(json, "disk_read_bytes", io->disk_read_bytes);
    cli_json_u64(json, "disk_write_bytes", io->disk_write_bytes);
}

static void write_verification(cli_json *json, const jask_verification *v)
{
    if (!v) {
        cli_json_raw(json, "verified", "null");
        cli_json_raw(json, "verification", "null");
        return;
    }
    cli_json_bool(json, "verified", v->passed != 0);
    cli_json_begin(json, "verification", '{');
    cli_json_real(json, "max_z", v->max_z);
    cli_json_real(json, "rms_z", v->rms_z);
    cli_json_i64(json, "worst_row", v->worst_row);
    cli_json_i64(json, "unchecked_rows", v->unchecked_rows);
    cli_json_real(json, "relative_error", v->relative_error);
    cli_json_real(json, "seconds", v->seconds);
    cli_json_u64(json, "file_read_bytes", v->file_read_bytes);
    cli_json_end(json, '}');
}

static void write_shape(cli_json *json, const jask_array_info *info)
{
    cli_json_begin(json, "shape", '[');
    for (int d = 0; d < info->ndim; d++)
        cli_json_i64(json, NULL, info->shape[d]);
    cli_json_end(json, ']');
}

static void write_sides(cli_json *json, const jask_plan_info *plan)
{
    cli_json_i64(json, "m", plan->m);
    cli_json_i64(json, "n", plan->n);
    cli_json_i64(json, "k", plan->k);
}

void cli_report_json(const cli_result *result)
{
    const jask_report *r = result->report;
    cli_json json = {.file = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "op", r->op);
    cli_json_i64(&json, "run", result->run);
    if (result->sum)
        write_shape(&json, result->sum);
    else
        write_sides(&json, &r->plan);
    cli_json_text(&json, "dtype", jask_dtype_name(r->dtype));
    cli_json_text(&json, "device", r->device);
    cli_json_text(&json, "device_description", r->device_description);
    cli_json_text(&json, "device_note", r->device_note);
    cli_json_text(&json, "precision", r->precision);
    if (!result->sum)
        cli_json_bool(&json, "deterministic", r->deterministic != 0);
    cli_json_text(&json, "io_engine", r->io_engine);
    cli_json_text(&json, "write_engine", r->write_engine);
    cli_json_text(&json, "planner", r->plan.planner);
    cli_json_real(&json, "seconds", r->seconds);
    if (result->sum)
        cli_json_real(&json, "gb_per_second", gigabytes(r));
    else
        cli_json_real(&json, "gflops", gflops(r));
    cli_json_real(&json, "read_seconds", r->read_seconds);
    cli_json_real(&json, "compute_seconds", r->compute_seconds);
    cli_json_real(&json, "write_seconds", r->write_seconds);
    cli_json_real(&json, "commit_seconds", r->commit_seconds);
    cli_json_real(&json, "stall_seconds", r->stall_seconds);
    cli_json_real(&json, "read_stall_seconds", r->read_stall_seconds);
    cli_json_real(&json, "write_stall_seconds", r->write_stall_seconds);
    cli_json_u64(&json, "budget_bytes", r->budget_bytes);
    cli_json_u64(&json, "peak_device_bytes", r->peak_device_bytes);
    cli_json_u64(&json, "peak_host_bytes", r->peak_host_bytes);
    write_io(&json, &r->io);
    if (!result->sum)
        cli_json_i64(&json, "resumed_tiles", r->resumed_tiles);
    cli_json_text(&json, "cache", cache_state(result));
    cli_json_text(&json, "note", r->note);
    cli_json_raw(&json, "plan", result->plan_json);
    if (result->second_plan_json)
        cli_json_raw(&json, "second_plan", result->second_plan_json);
    cli_json_text(&json, "output", result->output);
    if (result->second_output)
        cli_json_text(&json, "second_output", result->second_output);
    if (!result->sum)
        write_verification(&json, result->verification);
    cli_json_end(&json, '}');
    putchar('\n');
}

static void text_row(const char *key, const char *value)
{
    printf("%-9s %s\n", key, value);
}

/* "key  <size>, <second> <size>" */
static void size_row(const char *key, const char *first, uint64_t first_bytes, const char *second,
                     uint64_t second_bytes)
{
    char a[CLI_SIZE_TEXT];
    char b[CLI_SIZE_TEXT];
    printf("%-9s %s %s, %s %s\n", key, first, cli_size_text(first_bytes, a, sizeof a), second,
           cli_size_text(second_bytes, b, sizeof b));
}

static void verified_row(const jask_verification *v)
{
    if (!v) {
        text_row("verified", "not asked (--verify)");
        return;
    }
    printf("%-9s %s: largest z %.3g (row %" PRId64 "), rms z %.3g, relative error %.2g", "verified",
           v->passed ? "yes" : "NO", v->max_z, v->worst_row, v->rms_z, v->relative_error);
    if (v->unchecked_rows > 0)
        printf("; %" PRId64 " rows of Inf or NaN not checked", v->unchecked_rows);
    putchar('\n');
}

static void memory_rows(const jask_report *r)
{
    char a[CLI_SIZE_TEXT];
    printf("%-9s %s\n", "budget", cli_size_text(r->budget_bytes, a, sizeof a));
    size_row("peak", "device", r->peak_device_bytes, "host", r->peak_host_bytes);
    printf("%-9s %s in %" PRId64 " pages\n", "h2d", cli_size_text(r->io.h2d_bytes, a, sizeof a),
           r->io.h2d_pages);
    printf("%-9s %s in %" PRId64 " pages\n", "d2h", cli_size_text(r->io.d2h_bytes, a, sizeof a),
           r->io.d2h_pages);
}

static void shape_row(const jask_array_info *info)
{
    printf("%-9s", "shape");
    for (int d = 0; d < info->ndim; d++)
        printf("%s %" PRId64, d ? " x" : "", info->shape[d]);
    printf("%s\n", info->ndim ? "" : " scalar");
}

void cli_report_text(const cli_options *options, const cli_result *result)
{
    const jask_report *r = result->report;
    const jask_plan_info *p = &r->plan;
    if (options->repeat > 1)
        printf("%s%-9s %d of %d\n", result->run > 1 ? "\n" : "", "run", result->run,
               options->repeat);
    text_row("op", r->op);
    if (result->sum)
        shape_row(result->sum);
    else
        printf("%-9s %" PRId64 " x %" PRId64 ", k %" PRId64 "\n", "shape", p->m, p->n, p->k);
    if (strcmp(r->precision, jask_dtype_name(r->dtype)) == 0)
        text_row("dtype", r->precision);
    else
        printf("%-9s %s, computed in %s\n", "dtype", jask_dtype_name(r->dtype), r->precision);
    if (r->deterministic)
        text_row("sums", "deterministic");
    printf("%-9s %s, %s\n", "device", r->device,
           r->device_note[0] ? r->device_note : r->device_description);
    if (result->sum)
        printf("%-9s %" PRId64 " blocks of at most %" PRId64 " elements\n", "plan", p->steps,
               p->bm);
    else
        printf("%-9s %s (planner %s), tile %" PRId64 " x %" PRId64 ", k %" PRId64 "\n", "plan",
               p->schedule, p->planner, p->bm, p->bn, p->bk);
    printf("%-9s %.3f\n", "seconds", r->seconds);
    if (result->sum)
        printf("%-9s %.2f\n", "GB/s", gigabytes(r));
    else
        printf("%-9s %.2f\n", "gflops", isfinite(gflops(r)) ? gflops(r) : 0.0);
    if (options->verbose)
        printf(
            "%-9s read %.3f (waited %.3f), compute %.3f (%.3f), write %.3f (%.3f), commit %.3f\n",
            "stages", r->read_seconds, r->read_stall_seconds, r->compute_seconds, r->stall_seconds,
            r->write_seconds, r->write_stall_seconds, r->commit_seconds);
    memory_rows(r);
    size_row("file", "read", r->io.file_read_bytes, "written", r->io.file_write_bytes);
    size_row("disk", "read", r->io.disk_read_bytes, "written", r->io.disk_write_bytes);
    if (r->resumed_tiles > 0)
        printf("%-9s %" PRId64 " of %" PRId64 " tiles were finished before\n", "resumed",
               r->resumed_tiles, p->tiles);
    printf("%-9s %s, read by %s, written by %s\n", "cache", cache_state(result), r->io_engine,
           r->write_engine);
    if (!result->sum)
        verified_row(result->verification);
    text_row("output", result->output ? result->output : "(scratch)");
    if (result->second_output)
        text_row("", result->second_output);
}
