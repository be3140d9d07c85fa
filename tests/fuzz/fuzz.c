#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_must(text != NULL, "there is memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

void fuzz_refused(jask_status status, const jask_error *err)
{
    fuzz_must(err->code == status, "the error repeats the code");
    fuzz_must(err->msg[0] != '\0', "a refusal says why");
    fuzz_must(memchr(err->msg, '\0', sizeof err->msg) != NULL, "the message ends");
}

void fuzz_layout(const jk_layout *layout)
{
    uint64_t elements = 1, bytes, end;
    fuzz_must(layout->ndim >= 0 && layout->ndim <= JASK_MAX_DIMS, "the dimensions fit");
    for (int d = 0; d < layout->ndim; d++) {
        fuzz_must(layout->shape[d] >= 0, "no extent is negative");
        if (layout->shape[d] == 0)
            elements = 0;
    }
    for (int d = 0; d < layout->ndim && elements > 0; d++)
        fuzz_must(jk_mul_u64(elements, (uint64_t)layout->shape[d], &elements), "elements fit");
    fuzz_must(layout->elements == elements, "the elements are those of the shape");
    fuzz_must(jk_mul_u64(elements, jask_dtype_size(layout->dtype), &bytes), "bytes fit");
    fuzz_must(layout->data_bytes == bytes, "the bytes are those of the elements");
    fuzz_must(jk_add_u64(layout->data_offset, bytes, &end), "the end of the data fits");
}
