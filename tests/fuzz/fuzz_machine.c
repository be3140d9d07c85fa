/* Machines described in text. */
#include "fuzz.h"
#include "runtime/machine_text.h"

#include <math.h>
#include <stdlib.h>

static bool sensible(double rate)
{
    return rate == 0 || (isfinite(rate) && rate >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char written[JK_MACHINE_TEXT];
    jk_machine_said said = {.flops = 77}, back;
    jask_error err;
    jask_status st = jk_machine_parse(text, &said, &err);
    if (st) {
        fuzz_refused(st, &err);
        fuzz_must(said.flops == 77, "a refusal leaves the output alone");
    } else {
        fuzz_must(sensible(said.flops) && sensible(said.flops_f64) && sensible(said.h2d) &&
                      sensible(said.d2h) && sensible(said.disk_read) && sensible(said.disk_write) &&
                      sensible(said.runs) && sensible(said.device_memory),
                  "rates are finite and at least one");
        said.gpu_bytes = said.host_bytes = 0;
        fuzz_must(jk_machine_format(&said, written, sizeof written) < sizeof written,
                  "every text fits");
        fuzz_must(written[0] == '\0' || jk_machine_parse(written, &back, NULL) == JASK_OK,
                  "what is written can be read");
    }
    free(text);
    return 0;
}
