/* Machines described in text. Pure. */
#ifndef JK_RUNTIME_MACHINE_TEXT_H
#define JK_RUNTIME_MACHINE_TEXT_H

#include "planner/plan.h"

/* What a text says; 0: nothing. Rates as in jk_machine. */
typedef struct jk_machine_said {
    uint64_t gpu_bytes;  /* memory of a card, for tiles */
    uint64_t host_bytes; /* of the CPU: for tiles too, or, beside a card, for staging and strips of
                            inputs */
    /* Of products in f32 and in f64; in f32 with inputs rounded to tf32, and of f16 and bf16, by
     * devices that do so. */
    double flops, flops_f64, flops_tf32, flops_f16;
    double h2d, d2h;
    double disk_read, disk_write;
    double runs;
    double device_memory;
} jk_machine_said;

/* Read `gpu=80G,flops=51T,h2d=55G,disk=2G`: KEY=NUMBER with an optional K, M, G, T or P, parted by
 * commas. In rates these are powers of 1000, in sizes (gpu, host) of 1024, as everywhere. `disk` is
 * disk_read and disk_write. ARG says which word cannot be read and what the keys are. */
jask_status jk_machine_parse(const char *text, jk_machine_said *out, jask_error *err);

/* Write what is said of rates as jk_machine_parse reads it, to three digits or so. Returns the length
 * that it has or would have; no more than text_size characters are written, the last a 0. */
#define JK_MACHINE_TEXT sizeof(((jask_calibration *)0)->machine)
size_t jk_machine_format(const jk_machine_said *said, char *text, size_t text_size);

/* What is said of products whose sums are of type `compute` and whose factors are of type `input` on
 * the device; 0: nothing. */
double jk_machine_flops(const jk_machine_said *said, jask_dtype compute, jask_dtype input,
                        bool tf32);

/* Put what is said in the place of what was known; `flops` as above. */
void jk_machine_apply(const jk_machine_said *said, double flops, jk_machine *machine);

#endif
