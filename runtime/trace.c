#include "runtime/trace.h"

#include "runtime/file.h"
#include "runtime/system.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER = 1 << 16, EVENT_MAX = 256 };

struct jk_trace {
    pthread_mutex_t lock;
    jk_output *output;
    double start;
    uint64_t written;
    size_t used;
    jask_error error; /* of the first write that failed: nothing is written after it */
    char text[BUFFER];
};

static void flush(jk_trace *trace)
{
    if (trace->error.code == JASK_OK)
        (void)jk_file_write(&trace->output->file, trace->written, trace->text, trace->used,
                            &trace->error);
    trace->written += trace->used;
    trace->used = 0;
}

static void append(jk_trace *trace, const char *fmt, ...) JK_PRINTF(2, 3);
static void append(jk_trace *trace, const char *fmt, ...)
{
    va_list args;
    int len;
    if (trace->used > BUFFER - EVENT_MAX)
        flush(trace);
    va_start(args, fmt);
    len = vsnprintf(trace->text + trace->used, EVENT_MAX, fmt, args);
    va_end(args);
    trace->used += len > 0 ? (size_t)len : 0;
}

/* 12.345: digits by hand, because printf's decimal point follows the locale. */
static char *micros(double seconds, char text[32])
{
    int64_t nanos = seconds > 0 ? (int64_t)(seconds * 1e9) : 0;
    snprintf(text, 32, "%" PRId64 ".%03" PRId64, nanos / 1000, nanos % 1000);
    return text;
}

/* Perfetto and Chrome show tracks by number, so that they stay in this order. */
static void name_tracks(jk_trace *trace, int readers)
{
    static const char *const names[] = {"operation", "products", "writer"};
    append(trace, "{\"traceEvents\":[\n"
                  "{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\","
                  "\"args\":{\"name\":\"jask\"}}");
    for (int i = 0; i < JK_TRACK_READERS + readers; i++) {
        append(trace,
               ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":", i);
        if (i < JK_TRACK_READERS)
            append(trace, "{\"name\":\"%s\"}}", names[i]);
        else
            append(trace, "{\"name\":\"reader %d\"}}", i - JK_TRACK_READERS + 1);
    }
}

jask_status jk_trace_open(const char *path, int readers, double start, jk_trace **out,
                          jask_error *err)
{
    jk_trace *trace = calloc(1, sizeof *trace);
    jask_status st;
    if (!trace)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for the trace '%s'", path);
    st = jk_output_open(path, 0, &trace->output, err);
    if (st) {
        free(trace);
        return st;
    }
    pthread_mutex_init(&trace->lock, NULL);
    trace->start = start;
    name_tracks(trace, readers);
    *out = trace;
    return JASK_OK;
}

void jk_trace_span(jk_trace *trace, int track, const char *name, const char *key, int64_t number,
                   double start, double end)
{
    char at[32], took[32];
    if (!trace)
        return;
    micros(start - trace->start, at);
    micros(end - start, took);
    pthread_mutex_lock(&trace->lock);
    append(trace,
           ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"%s\",\"ts\":%s,\"dur\":%s,"
           "\"args\":{\"%s\":%" PRId64 "}}",
           track, name, at, took, key, number);
    pthread_mutex_unlock(&trace->lock);
}

void jk_trace_end(jk_trace **trace, const char *op, double start, char *note, size_t note_size)
{
    jk_trace *t = *trace;
    if (!t)
        return;
    *trace = NULL;
    jk_trace_span(t, JK_TRACK_OPERATION, op, "id", 1, start, jk_clock_seconds());
    append(t, "\n],\"displayTimeUnit\":\"ms\"}\n");
    flush(t);
    if (!t->error.code)
        (void)jk_output_commit(t->output, false, &t->error);
    if (t->error.code && note_size > 0 && !note[0])
        snprintf(note, note_size, "no trace was written: %.200s", t->error.msg);
    jk_output_close(t->output);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
