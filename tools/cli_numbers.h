/* Reading numbers and words strictly: the whole text or nothing, and never by the locale's rules.
 */
#ifndef JASK_TOOLS_CLI_NUMBERS_H
#define JASK_TOOLS_CLI_NUMBERS_H

#include "cli_options.h"

/* A finite decimal number. Hexadecimal, nan, inf, blanks, and numbers that a double can only call
 * infinite or zero are refused. */
bool cli_read_real(const char *text, double *out);

/* A whole number of digits alone, min <= *out <= max. */
bool cli_read_count(const char *text, int64_t min, int64_t max, int64_t *out);

/* "N" (three times the same) or "MxNxK"; 0 is an extent. */
bool cli_read_sizes(const char *text, cli_sizes *out);

/* `text` as one of `words`, "one|two|three"; *out is which. */
bool cli_read_choice(const char *text, const char *words, int *out);

#endif
