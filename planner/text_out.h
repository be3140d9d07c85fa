/* Text for people, written from integers, so that no locale can change it. */
#ifndef JK_PLANNER_TEXT_OUT_H
#define JK_PLANNER_TEXT_OUT_H

#include "planner/stages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Text that grows past the end of its buffer is counted, not kept. */
typedef struct text_out {
    char *text;
    size_t size, used;
} text_out;

/* Empty text, in a buffer that may have no room even for its end. */
static inline text_out text_into(char *text, size_t size)
{
    if (size > 0)
        *text = '\0';
    return (text_out){.text = text, .size = size};
}

JK_PRINTF(2, 3) static inline void put(text_out *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool room = out->used < out->size;
    int length =
        vsnprintf(room ? out->text + out->used : NULL, room ? out->size - out->used : 0, fmt, args);
    va_end(args);
    if (length > 0)
        out->used += (size_t)length;
}

/* part / whole with two decimals, rounded to nearest. */
static inline void put_ratio(text_out *out, jk_u128 part, jk_u128 whole)
{
    jk_u128 hundredths = (part * 100 + whole / 2) / whole;
    put(out, "%" PRIu64 ".%02u", (uint64_t)(hundredths / 100), (unsigned)(hundredths % 100));
}

static inline void put_size(text_out *out, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        put(out, "%" PRIu64 " bytes", bytes);
        return;
    }
    int unit = 0;
    while (unit < 5 && bytes >> (10 * (unit + 2)))
        unit++;
    put_ratio(out, bytes, (jk_u128)1 << (10 * (unit + 1)));
    put(out, " %s", units[unit]);
}

/* A size, and the exact number where that says more. */
static inline void put_exact(text_out *out, uint64_t bytes)
{
    put_size(out, bytes);
    if (bytes >= 1024)
        put(out, " (%" PRIu64 " bytes)", bytes);
}

static inline uint64_t whole_micros(double seconds)
{
    return seconds < 1e12 ? (uint64_t)(seconds * 1e6 + 0.5) : (uint64_t)1000000000000000000;
}

static inline void put_duration(text_out *out, double seconds)
{
    static const struct {
        const char *name;
        uint64_t micros;
    } units[] = {{"days", 86400000000}, {"h", 3600000000}, {"min", 60000000},
                 {"s", 1000000},        {"ms", 1000},      {"us", 1}};
    uint64_t micros = whole_micros(seconds);
    size_t i = 0;
    while (i < sizeof units / sizeof *units - 1 && micros < 2 * units[i].micros)
        i++;
    put_ratio(out, micros, units[i].micros);
    put(out, " %s", units[i].name);
}

static inline void put_json_seconds(text_out *out, double seconds)
{
    uint64_t micros = whole_micros(seconds);
    put(out, "%" PRIu64 ".%06u", micros / 1000000, (unsigned)(micros % 1000000));
}

static inline void put_stages(text_out *out, const double seconds[JK_STAGES])
{
    put(out, "stages   ");
    for (int i = 0; i < JK_STAGES; i++) {
        put(out, "%s%s ", i > 0 ? ", " : "", jk_stage_name((jk_stage)i));
        put_duration(out, seconds[i]);
    }
    put(out, "\n");
}

static inline void put_json_stages(text_out *out, const double seconds[JK_STAGES])
{
    put(out, "\"stage_seconds\": {");
    for (int i = 0; i < JK_STAGES; i++) {
        put(out, "%s\"%s\": ", i > 0 ? ", " : "", jk_stage_name((jk_stage)i));
        put_json_seconds(out, seconds[i]);
    }
    put(out, "}, \"bottleneck\": \"%s\"", jk_stage_name(slowest_stage(seconds)));
}

static inline void put_moved(text_out *out, const char *label, uint64_t bytes)
{
    put(out, "%s", label);
    put_exact(out, bytes);
}

static inline void put_pages(text_out *out, int64_t pages)
{
    put(out, " in %" PRId64 " page%s\n", pages, pages == 1 ? "" : "s");
}

#endif
