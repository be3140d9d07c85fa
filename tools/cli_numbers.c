#include "cli_numbers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

/* The end of [sign] digits [. digits] [e [sign] digits] at the beginning of `text`. */
static const char *skip_decimal(const char *text)
{
    const char *p = text + strspn(text, "+-");
    if (p - text > 1)
        return text;
    size_t whole = strspn(p, digits);
    p += whole;
    size_t part = 0;
    if (*p == '.') {
        part = strspn(p + 1, digits);
        p += 1 + part;
    }
    if (whole + part == 0)
        return text;
    if (*p == 'e' || *p == 'E') {
        const char *exponent = p + 1 + (p[1] == '+' || p[1] == '-');
        p = exponent + strspn(exponent, digits);
        if (p == exponent)
            return text;
    }
    return p;
}

bool cli_read_real(const char *text, double *out)
{
    if (!*text || *skip_decimal(text))
        return false;
    errno = 0;
    double value = strtod(text, NULL);
    if (!isfinite(value) || (errno == ERANGE && fpclassify(value) == FP_ZERO))
        return false;
    *out = value;
    return true;
}

/* Digits up to `end` as a number from 0 to 2^63 - 1. */
static bool read_digits(const char *text, const char *end, int64_t *out)
{
    int64_t value = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *text - '0', &value))
            return false;
    }
    *out = value;
    return true;
}

bool cli_read_count(const char *text, int64_t min, int64_t max, int64_t *out)
{
    int64_t value = 0;
    if (!read_digits(text, text + strlen(text), &value) || value < min || value > max)
        return false;
    *out = value;
    return true;
}

bool cli_read_sizes(const char *text, cli_sizes *out)
{
    int64_t side[3];
    int sides = 0;
    for (const char *p = text;; p++) {
        const char *end = p + strcspn(p, "xX");
        if (sides == 3 || !read_digits(p, end, &side[sides++]))
            return false;
        p = end;
        if (!*p)
            break;
    }
    if (sides == 2)
        return false;
    if (sides == 1)
        side[1] = side[2] = side[0];
    *out = (cli_sizes){.m = side[0], .n = side[1], .k = side[2]};
    return true;
}

bool cli_read_choice(const char *text, const char *words, int *out)
{
    size_t len = strlen(text);
    for (int i = 0;; i++) {
        size_t word = strcspn(words, "|");
        if (word == len && memcmp(words, text, len) == 0) {
            *out = i;
            return true;
        }
        if (!words[word])
            return false;
        words += word + 1;
    }
}
