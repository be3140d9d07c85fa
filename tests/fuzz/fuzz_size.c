/* Sizes as people write them, and what jask writes for any number. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void format_and_read(uint64_t bytes)
{
    char text[32];
    uint64_t again = 0;
    fuzz_must(jask_format_size(bytes, text, sizeof text) == text, "the text is returned");
    fuzz_must(memchr(text, '\0', sizeof text) != NULL, "the text ends");
    fuzz_must(!jask_parse_size(text, &again, NULL) && again == bytes, "it reads back exactly");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    uint64_t bytes = 77;
    jask_error err;
    jask_status st = jask_parse_size(text, &bytes, &err);
    if (st) {
        fuzz_refused(st, &err);
        fuzz_must(bytes == 77, "a refusal leaves the output alone");
    } else {
        fuzz_must(bytes > 0 && bytes <= INT64_MAX, "a size is positive and below 2^63");
        format_and_read(bytes);
    }
    free(text);
    if (size >= sizeof bytes) {
        memcpy(&bytes, data, sizeof bytes);
        bytes &= INT64_MAX;
        if (bytes > 0)
            format_and_read(bytes);
    }
    return 0;
}
