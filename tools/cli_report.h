/* What a product did, on stdout. */
#ifndef JASK_TOOLS_CLI_REPORT_H
#define JASK_TOOLS_CLI_REPORT_H

#include "cli_options.h"

/* One run, as it is reported. Pointers are borrowed. */
typedef struct cli_result {
    const jask_report *report;
    const char *plan_json;
    const jask_verification *verification; /* NULL: not asked for */
    const char *output;                    /* NULL: scratch */
    uint64_t input_bytes;                  /* of the distinct files that the product reads */
    int run;                               /* from 1 */
} cli_result;

void cli_report_text(const cli_options *options, const cli_result *result);
void cli_report_json(const cli_result *result);

#endif
