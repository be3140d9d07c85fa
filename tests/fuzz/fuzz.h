/* What the fuzz targets share. Each target is one file with the function that libFuzzer calls;
 * without libFuzzer replay.c calls it for every file of a corpus. */
#ifndef JASK_TESTS_FUZZ_H
#define JASK_TESTS_FUZZ_H

#include "common/base.h"
#include "runtime/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What holds for every input; says what does not, and aborts. */
void fuzz_must(bool holds, const char *what);

/* The input as text, in memory of exactly that size; to be freed. A NUL ends it earlier. */
char *fuzz_text(const uint8_t *data, size_t size);

/* A refusal has its code and one text. */
void fuzz_refused(jask_status status, const jask_error *err);

/* Shape, strides and bytes of a layout belong together and fit into a file. */
void fuzz_layout(const jk_layout *layout);

#endif
