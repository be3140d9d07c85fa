/* What the tools write: messages on stderr, texts and JSON on stdout. */
#ifndef JASK_TOOLS_CLI_OUTPUT_H
#define JASK_TOOLS_CLI_OUTPUT_H

#include "cli_options.h"

#include <stdio.h>

/* One line on stderr, "tool: message"; control characters of file names and the like become '?'. */
void cli_error(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for something that is not an error; silent under --quiet. */
void cli_note(const cli_options *options, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Fill err; returns `code`. */
jask_status cli_set_error(jask_error *err, jask_status code, const char *message);

/* Say what failed: the line on stderr and, with --json, an object {"error": ...} on stdout. Returns
 * the exit code for it: that of a signal when one asked to stop. */
int cli_fail(const cli_options *options, const jask_error *err);

/* Flush stdout; what could not be written makes the run fail. Returns `code` or CLI_FAILED. */
int cli_finish(const char *tool, int code);

/* A size for people: exact when that is short ("64MiB"), else with three digits or so ("1.43 GiB").
 * jask_parse_size reads both. Returns `text`. */
#define CLI_SIZE_TEXT 32
char *cli_size_text(uint64_t bytes, char *text, size_t text_size);

/* A JSON object on `file`, written member by member. */
typedef struct cli_json {
    FILE *file;
    bool comma; /* the next member needs one in front */
} cli_json;

/* Members; `key` NULL is an element of an array. */
void cli_json_begin(cli_json *json, const char *key, char bracket);
void cli_json_end(cli_json *json, char bracket);
void cli_json_text(cli_json *json, const char *key, const char *value); /* NULL becomes null */
void cli_json_i64(cli_json *json, const char *key, int64_t value);
void cli_json_u64(cli_json *json, const char *key, uint64_t value);
void cli_json_real(cli_json *json, const char *key, double value); /* null when not finite */
/* The same with every digit that the number has. */
void cli_json_exact(cli_json *json, const char *key, double value);
void cli_json_bool(cli_json *json, const char *key, bool value);
void cli_json_raw(cli_json *json, const char *key, const char *value);

#endif
