/* The bytes of an .npy file: its header parsed as the whole file, as the beginning of a far longer
 * one, and piece by piece as jask_array_open reads it. */
#include "fuzz.h"

#include "runtime/npy.h"

#include <stdlib.h>
#include <string.h>

/* What is read can be written, and then reads the same. */
static void write_again(const jk_layout *layout)
{
    unsigned char bytes[JK_NPY_HEADER_MAX];
    jk_layout copy = *layout, again;
    bool done;
    size_t need, len;
    len = jk_npy_write(bytes, &copy);
    fuzz_must(len <= sizeof bytes && len % 64 == 0 && copy.data_offset == len, "header's length");
    jask_status st = jk_npy_parse(bytes, len, len + copy.data_bytes, "x", copy.dtype, &need, &done,
                                  &again, NULL);
    fuzz_must(!st && done && need == len, "a header that was written can be read");
    fuzz_must(again.dtype == copy.dtype && again.ndim == copy.ndim &&
                  memcmp(again.shape, copy.shape, sizeof *copy.shape * (size_t)copy.ndim) == 0,
              "and says the same");
}

static void parse(const uint8_t *data, size_t size, uint64_t file_bytes)
{
    jk_layout layout;
    jask_error err;
    size_t need;
    bool done = false;

    for (size_t available = size < 16 ? size : 16; !done; available = need) {
        unsigned char *piece = malloc(available); /* the sanitizer sees what is read beyond it */
        if (available > 0)
            memcpy(piece, data, available);
        jask_status st = jk_npy_parse(piece, available, file_bytes, "x", JASK_DTYPE_NONE, &need,
                                      &done, &layout, &err);
        free(piece);
        if (st) {
            fuzz_refused(st, &err);
            return;
        }
        fuzz_must(need <= file_bytes, "the header lies in the file");
        fuzz_must(done == (need <= available), "more is asked for when it is needed");
        if (need > size)
            return;
    }
    fuzz_layout(&layout);
    fuzz_must(layout.data_offset == need, "the data begins behind the header");
    fuzz_must(need + layout.data_bytes <= file_bytes, "the data is all there");
    write_again(&layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size, size);
    parse(data, size, (uint64_t)1 << 61);
    return 0;
}
