/* What an operation did, on stdout. */
#ifndef JASK_TOOLS_CLI_REPORT_H
#define JASK_TOOLS_CLI_REPORT_H

#include "cli_options.h"

/* One run, as it is reported. Pointers are borrowed. */
typedef struct cli_result {
    const jask_report *report;
    const char *plan_json;
    const char *second_plan_json;          /* of two gradients; NULL: there is none */
    const jask_verification *verification; /* NULL: not asked for */
    const char *output;                    /* NULL: scratch */
    const char *second_output;
    uint64_t input_bytes;       /* of the distinct files that are read */
    const jask_array_info *sum; /* the result of a sum; NULL for a product */
    int run;                    /* from 1 */
} cli_result;

/* A plan as text or JSON, to be freed; NULL without memory. */
char *cli_plan_text(const jask_plan *plan, int json);

/* The plan on stdout, as the options want it. */
jask_status cli_print_plan(const cli_options *options, const jask_plan *plan, jask_error *err);

void cli_report_text(const cli_options *options, const cli_result *result);
void cli_report_json(const cli_result *result);

#endif
