#include "cli_output.h"

#include "cli_signals.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void write_line(const char *tool, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));

static void write_line(const char *tool, const char *fmt, va_list args)
{
    char text[2048];
    vsnprintf(text, sizeof text, fmt, args);
    for (char *p = text; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
    fprintf(stderr, "%s: %s\n", tool, text);
}

void cli_error(const char *tool, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_line(tool, fmt, args);
    va_end(args);
}

void cli_note(const cli_options *options, const char *fmt, ...)
{
    va_list args;
    if (options->quiet)
        return;
    va_start(args, fmt);
    write_line(options->tool, fmt, args);
    va_end(args);
}

static int exit_code(const jask_error *err)
{
    if (err->code == JASK_ERR_CANCELED && cli_stop_signal())
        return 128 + cli_stop_signal();
    return err->code == JASK_ERR_BUDGET ? CLI_BUDGET : CLI_FAILED;
}

jask_status cli_set_error(jask_error *err, jask_status code, const char *message)
{
    *err = (jask_error){.code = code};
    snprintf(err->msg, sizeof err->msg, "%s", message);
    return code;
}

int cli_fail(const cli_options *options, const jask_error *err)
{
    int code = exit_code(err);
    if (code > 128)
        cli_error(options->tool, "stopped by SIG%s: %s", sigabbrev_np(code - 128), err->msg);
    else
        cli_error(options->tool, "%s", err->msg);
    if (options->json) {
        cli_json json = {.file = stdout};
        cli_json_begin(&json, NULL, '{');
        cli_json_begin(&json, "error", '{');
        cli_json_text(&json, "code", jask_status_name(err->code));
        cli_json_text(&json, "message", err->msg);
        cli_json_i64(&json, "exit", code);
        cli_json_end(&json, '}');
        cli_json_end(&json, '}');
        putchar('\n');
    }
    return code;
}

int cli_finish(const char *tool, int code)
{
    /* Data may be refused as late as here: a full disk, a closed pipe. */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    cli_error(tool, "write to standard output: %s", strerror(errno));
    return code == CLI_OK ? CLI_FAILED : code;
}

char *cli_size_text(uint64_t bytes, char *text, size_t text_size)
{
    static const char units[] = "KMGT";
    jask_format_size(bytes, text, text_size);
    if (strlen(text) <= 7)
        return text;
    int unit = 0;
    double value = (double)bytes / 1024;
    for (; value >= 1024 && units[unit + 1]; unit++)
        value /= 1024;
    snprintf(text, text_size, "%.2f %ciB", value, units[unit]);
    return text;
}

/* Length of the UTF-8 character at `p`, 0 when the bytes there are none. */
static size_t utf8_length(const unsigned char *p)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t form = 0; form < 4; form++) {
        if ((p[0] & forms[form].mask) != forms[form].lead)
            continue;
        uint32_t code = p[0] & (unsigned char)~forms[form].mask;
        for (size_t i = 1; i <= form; i++) {
            if ((p[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (p[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        return code >= forms[form].least && code <= 0x10ffff && !surrogate ? form + 1 : 0;
    }
    return 0;
}

/* Names of files are bytes; JSON is UTF-8. What is no character becomes U+FFFD. */
static void write_string(FILE *file, const char *text)
{
    putc('"', file);
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t len = utf8_length(p);
        if (len == 0)
            fputs("\\ufffd", file);
        else if (*p == '"' || *p == '\\')
            fprintf(file, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(file, "\\u%04x", *p);
        else
            fwrite(p, 1, len, file);
        p += len ? len : 1;
    }
    putc('"', file);
}

static void begin_member(cli_json *json, const char *key)
{
    if (json->comma)
        fputs(", ", json->file);
    json->comma = true;
    if (key) {
        write_string(json->file, key);
        fputs(": ", json->file);
    }
}

void cli_json_begin(cli_json *json, const char *key, char bracket)
{
    begin_member(json, key);
    putc(bracket, json->file);
    json->comma = false;
}

void cli_json_end(cli_json *json, char bracket)
{
    putc(bracket, json->file);
    json->comma = true;
}

void cli_json_text(cli_json *json, const char *key, const char *value)
{
    begin_member(json, key);
    if (value)
        write_string(json->file, value);
    else
        fputs("null", json->file);
}

void cli_json_i64(cli_json *json, const char *key, int64_t value)
{
    begin_member(json, key);
    fprintf(json->file, "%" PRId64, value);
}

void cli_json_u64(cli_json *json, const char *key, uint64_t value)
{
    begin_member(json, key);
    fprintf(json->file, "%" PRIu64, value);
}

static void write_real(cli_json *json, const char *key, int digits, double value)
{
    begin_member(json, key);
    if (isfinite(value))
        fprintf(json->file, "%.*g", digits, value);
    else
        fputs("null", json->file);
}

void cli_json_real(cli_json *json, const char *key, double value)
{
    write_real(json, key, 9, value);
}

void cli_json_exact(cli_json *json, const char *key, double value)
{
    write_real(json, key, 17, value);
}

void cli_json_bool(cli_json *json, const char *key, bool value)
{
    begin_member(json, key);
    fputs(value ? "true" : "false", json->file);
}

void cli_json_raw(cli_json *json, const char *key, const char *value)
{
    begin_member(json, key);
    fputs(value, json->file);
}
