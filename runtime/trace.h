/* The timeline of an operation in a file, as chrome://tracing and Perfetto read it: what each stage
 * did when. */
#ifndef JK_RUNTIME_TRACE_H
#define JK_RUNTIME_TRACE_H

#include "common/base.h"

typedef struct jk_trace jk_trace;

/* One row of the picture each; readers follow the last one. */
typedef enum jk_track {
    JK_TRACK_OPERATION,
    JK_TRACK_PRODUCTS,
    JK_TRACK_WRITER,
    JK_TRACK_READERS
} jk_track;

/* `path` is written as a result is: it appears, whole, at jk_trace_end. Times are counted from
 * `start`. */
jask_status jk_trace_open(const char *path, int readers, double start, jk_trace **out,
                          jask_error *err);

/* Something took from `start` to `end` (jk_clock_seconds) on a track, a jk_track or JK_TRACK_READERS
 * + i. `name` and `key`, of what `number` counts, are plain words. Any thread may tell; takes no
 * memory, and nothing at all when trace is NULL. */
void jk_trace_span(jk_trace *trace, int track, const char *name, const char *key, int64_t number,
                   double start, double end);

/* The operation `op` ends, well or not: give the file its name and set *trace, which may be NULL, to
 * NULL. Results do not depend on it: a write that failed is told in `note`, if that is empty. */
void jk_trace_end(jk_trace **trace, const char *op, double start, char *note, size_t note_size);

#endif
