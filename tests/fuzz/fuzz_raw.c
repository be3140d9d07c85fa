/* Raw files by specification. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void parse(const char *spec, size_t path_size)
{
    char *path = malloc(path_size);
    bool is_raw = false;
    jask_dtype said = JASK_DTYPE_NONE;
    jk_layout layout;
    jask_error err;
    jask_status st = jk_raw_parse(spec, &is_raw, &said, path, path_size, &layout, &err);
    if (st) {
        fuzz_refused(st, &err);
        fuzz_must(!is_raw, "a refusal leaves the output alone");
    } else if (is_raw || said) {
        size_t len = strlen(path);
        fuzz_must(len > 0 && len < path_size, "the path fits");
        fuzz_must(strncmp(spec, path, len) == 0 && spec[len] == '@',
                  "the path is what stands first");
    }
    if (!st && is_raw) {
        fuzz_must(layout.ndim > 0 && strcmp(layout.format, "raw") == 0, "it is a raw array");
        fuzz_layout(&layout);
    }
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *spec = fuzz_text(data, size);
    parse(spec, 4096);
    parse(spec, 8);
    free(spec);
    return 0;
}
