/* Measuring the rates that plans are made with. */
#ifndef JK_RUNTIME_CALIBRATE_H
#define JK_RUNTIME_CALIBRATE_H

#include "runtime/context.h"

/* Where a calibration stands: measurements that are done, of all. */
typedef struct jk_calibration_run {
    jask_context *ctx;
    double began;
    int done, total;
} jk_calibration_run;

/* Tell the caller, who may cancel. */
jask_status jk_calibration_step(const jk_calibration_run *run, jask_error *err);

/* A second. */
typedef struct jk_file_rates {
    double up, down;    /* bytes, by one processor, from and to the page cache */
    double read, write; /* bytes, of the disk; 0 in a directory that has none */
    double runs;        /* runs that are not in the page cache, as of jk_machine; 0 likewise */
} jk_file_rates;

/* Write a nameless file in `dir` and read it again by `threads` threads at once, each into its part of
 * `memory` (memory_bytes, aligned to pages) in blocks of block_bytes, a power of two of 4 KiB to 4 MiB and
 * at most half a part. */
jask_status jk_calibrate_files(const jk_calibration_run *run, const char *dir, int threads,
                               void *memory, size_t memory_bytes, size_t block_bytes,
                               jk_file_rates *out, jask_error *err);

#endif
