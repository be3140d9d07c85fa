/* An array as the dimensions of an index space see it, and windows of it. */
#ifndef JK_RUNTIME_STRIDED_H
#define JK_RUNTIME_STRIDED_H

#include "planner/blocks.h"
#include "runtime/array.h"

#include <stdatomic.h>

/* Element (i0, i1, ...) of the space lies at offset + sum of i * stride * size. */
typedef struct jk_strided {
    const jk_file *file;    /* NULL: there is no such array */
    jk_drop_behind *behind; /* hears of what is read; may be NULL */
    const char *path;
    uint64_t offset;
    jask_dtype dtype;
    bool swap; /* not this machine's byte order */
    int ndim;
    int64_t strides[JASK_MAX_DIMS]; /* elements; 0: the same elements serve the whole dimension */
} jk_strided;

/* A window is dense in memory, in the order of the file: strides in elements, 0 where the array's
 * are. */
void jk_strided_memory(const jk_strided *array, const jk_box *box, int64_t *out_strides);

/* Read the elements that the box needs into dst, in this machine's byte order; adds what is asked
 * of the file to *bytes. */
jask_status jk_strided_read(const jk_strided *array, const jk_box *box, void *dst,
                            _Atomic uint64_t *bytes, jask_error *err);

/* Write them from src, which is turned into the file's byte order in place. */
jask_status jk_strided_write(const jk_strided *array, const jk_box *box, void *src,
                             _Atomic uint64_t *bytes, jask_error *err);

#endif
