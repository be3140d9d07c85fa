/* The .npy header. */
#ifndef JK_RUNTIME_NPY_H
#define JK_RUNTIME_NPY_H

#include "runtime/array.h"

/* Parse a header from the first `available` bytes of a file that is `file_bytes` long. Pure. Sets
 * *need to the bytes of the whole header; when that is more than `available`, the caller reads that
 * many and calls again (JASK_OK, *done false). `name` is for messages. `said` is the type that the
 * user names, or NONE: bytes without a type are bfloat16 only on such a word, and another type than
 * the header's is refused. FORMAT or UNSUPPORTED in words; the data must be all there. */
jask_status jk_npy_parse(const unsigned char *bytes, size_t available, uint64_t file_bytes,
                         const char *name, jask_dtype said, size_t *need, bool *done,
                         jk_layout *out, jask_error *err);

/* Write the header of format 1.0, padded so that the data begins at a multiple of 64, where there
 * are 32 MiB or more of 4096, which suits requests around the page cache. Sets layout->data_offset.
 * `bytes` holds at least JK_NPY_HEADER_MAX. Returns the header's length. */
#define JK_NPY_HEADER_MAX 4096
size_t jk_npy_write(unsigned char *bytes, jk_layout *layout);

#endif
