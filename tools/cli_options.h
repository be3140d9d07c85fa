/* The options of every tool: one table of rows gives the parser and --help. */
#ifndef JASK_TOOLS_CLI_OPTIONS_H
#define JASK_TOOLS_CLI_OPTIONS_H

#include <jask.h>

#include <stdbool.h>

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_BUDGET = 3, CLI_MISMATCH = 4 };

typedef enum cli_tool { CLI_GEMM = 1, CLI_INFO = 2, CLI_ADD = 4 } cli_tool;

/* In the order of the words that --progress takes. */
enum cli_progress_mode { CLI_PROGRESS_AUTO, CLI_PROGRESS_ALWAYS, CLI_PROGRESS_NEVER };

typedef struct cli_sizes {
    int64_t m, n, k;
} cli_sizes;

/* What the command line said. What it did not say is 0, false or NULL, or the default named here.
 */
typedef struct cli_options {
    const char *tool; /* its name, for messages */
    const char *output;
    uint64_t budget_bytes;
    uint64_t host_budget_bytes;
    const char *scratch;
    bool allow_tmpfs;
    const char *device;
    jask_dtype out_dtype; /* of a product; none: as its inputs say */
    jask_dtype dtype;     /* of the inputs that --size makes, JASK_F32; of a sum, none */
    bool transpose_a, transpose_b, adjoint_a, adjoint_b;
    double alpha; /* 1 */
    double beta;  /* 0; of a sum 1 */
    const char *c;
    const char *planner;
    const char *machine;
    const char *precision;
    bool no_pipeline, no_sync, deterministic;
    int io_threads;
    const char *io;
    int threads;
    bool resume;
    int overflow; /* a jask_overflow: the words are in its order */
    bool in_place;
    const char *trace;
    bool backward, accumulate;
    const char *da, *db;
    bool stats, calibrate;
    bool plan, verify, json, quiet;
    int verbose; /* 0 to 2 */
    int progress;
    int repeat;     /* 1 */
    cli_sizes size; /* m is negative without --size */
    bool version, help;
    char **files;
    int file_count;
} cli_options;

/* Read the command line of `tool`. Returns -1 to go on, else the code to exit with: --help and
 * --version have been answered, or stderr says what is wrong. */
int cli_options_parse(cli_options *out, cli_tool tool, int argc, char **argv);

#endif
