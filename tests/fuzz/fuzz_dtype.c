/* Names of element types, as people and as .npy headers spell them. */
#include "fuzz.h"

#include "runtime/dtype.h"

#include <stdlib.h>
#include <string.h>

static void by_name(const char *text)
{
    jask_dtype dtype = JASK_DTYPE_NONE, again;
    jask_error err;
    jask_status st = jask_dtype_parse(text, &dtype, &err);
    if (st) {
        fuzz_refused(st, &err);
        fuzz_must(dtype == JASK_DTYPE_NONE, "a refusal leaves the output alone");
        return;
    }
    fuzz_must(jask_dtype_size(dtype) > 0, "a type has a size");
    fuzz_must(!jask_dtype_parse(jask_dtype_name(dtype), &again, NULL) && again == dtype,
              "a type's name reads back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    jask_dtype dtype, named;
    bool big;
    char mark = '!';
    by_name(text);
    if (jk_dtype_read((const char *)data, size, &dtype, &mark))
        fuzz_must(jask_dtype_size(dtype) > 0 && (mark == 0 || strchr("<>=|", mark)),
                  "a type that was read is one");
    /* NumPy's spelling means the same in a header and on a command line. */
    if (jk_dtype_read_descr((const char *)data, size, false, &dtype, &big)) {
        fuzz_must(jk_dtype_descr(dtype) != NULL, "NumPy has a spelling for it");
        fuzz_must(jk_dtype_read((const char *)data, size, &named, &mark), "it is a type's name");
        fuzz_must(mark == 0 || named == dtype, "and the same type");
    }
    free(text);
    return 0;
}
