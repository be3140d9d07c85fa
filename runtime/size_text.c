/* Memory sizes as text. Everything is done on digits in integers: exact, and the same in every
 * locale. */
#include "common/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MAX_BYTES ((uint64_t)INT64_MAX)

/* A decimal number as written: `count` digits of which `before` precede the point, and how many
 * precede it once the exponent has moved it, which may be negative or more than there are. */
typedef struct decimal {
    const char *digits;
    int64_t before, count;
    int64_t point;
} decimal;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static const char *skip_blanks(const char *text)
{
    while (is_blank(*text))
        text++;
    return text;
}

static const char *skip_digits(const char *text)
{
    while (is_digit(*text))
        text++;
    return text;
}

static int digit_at(const decimal *number, int64_t index)
{
    return number->digits[index < number->before ? index : index + 1] - '0';
}

/* Read "[+]DIGITS[.DIGITS][e[+-]DIGITS]"; returns where it ends, NULL when there is no number. */
static const char *read_decimal(const char *text, decimal *out)
{
    /* More than any text is long, and far from overflow. */
    const int64_t exponent_max = (int64_t)1 << 60;
    const char *end;
    int64_t exponent = 0;

    text += *text == '+';
    end = skip_digits(text);
    out->digits = text;
    out->before = end - text;
    out->count = out->before;
    if (*end == '.') {
        const char *fraction = end + 1;
        end = skip_digits(fraction);
        out->count += end - fraction;
    }
    if (out->count == 0)
        return NULL;
    if (lower(*end) == 'e') {
        bool negative = end[1] == '-';
        const char *digits = end + 1 + (negative || end[1] == '+');
        end = skip_digits(digits);
        if (end == digits)
            return NULL;
        for (; digits < end && exponent < exponent_max / 16; digits++)
            exponent = exponent * 10 + (*digits - '0');
        exponent = negative ? -exponent : exponent;
    }
    out->point = out->before + exponent;
    return end;
}

/* Read a unit and the blanks around it: a letter of KMGT with "iB", "i" or "B" after it or not,
 * "B", or nothing. False when something else stands there. */
static bool read_unit(const char *text, unsigned *out_shift, bool *out_present)
{
    static const char letters[] = "kmgt";
    unsigned shift = 0;
    const char *unit = skip_blanks(text);
    const char *end = unit;
    const char *letter = *end ? strchr(letters, lower(*end)) : NULL;

    if (letter) {
        shift = 10 * (unsigned)(letter - letters + 1);
        end++;
        end += lower(*end) == 'i';
    }
    end += lower(*end) == 'b';
    *out_shift = shift;
    *out_present = end > unit;
    return *skip_blanks(end) == '\0';
}

/* *out = the digits before the point; false when that exceeds `max`. */
static bool whole_part(const decimal *number, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    for (int64_t i = 0; i < number->point; i++) {
        uint64_t digit = i < number->count ? (uint64_t)digit_at(number, i) : 0;
        if (!jk_mul_u64(value, 10, &value) || !jk_add_u64(value, digit, &value) || value > max)
            return false;
        if (value == 0 && i >= number->count)
            break;
    }
    *out = value;
    return true;
}

/* floor(fraction * 2^shift), exact for any number of digits: taken from the last digit to the
 * first, floor((d + x) / 10) = floor((d + floor(x)) / 10) for a whole d. */
static uint64_t fraction_part(const decimal *number, unsigned shift, bool *out_nonzero)
{
    uint64_t value = 0;
    *out_nonzero = false;
    for (int64_t i = number->count - 1; i >= jk_max(number->point, 0); i--) {
        uint64_t digit = (uint64_t)digit_at(number, i);
        *out_nonzero |= digit != 0;
        value = ((digit << shift) + value) / 10;
    }
    for (int64_t zeros = -number->point; zeros > 0 && value > 0; zeros--)
        value /= 10;
    return value;
}

/* Returns NULL and sets *out, or why `text` is no size. */
static const char *read_size(const char *text, uint64_t *out)
{
    decimal number;
    unsigned shift;
    bool has_unit, has_fraction;
    uint64_t whole, part;
    const char *start = skip_blanks(text);

    if (*start == '\0')
        return "it is empty";
    bool negative = *start == '-';
    const char *end = read_decimal(start + negative, &number);
    if (!end || !read_unit(end, &shift, &has_unit))
        return "expected a number and perhaps a unit, as in 1000, 256MiB or 1.5GB (B, K, M, G, T)";
    if (negative)
        return "it is negative, and no number means automatic or unlimited";
    if (!whole_part(&number, SIZE_MAX_BYTES >> shift, &whole))
        return "it is not below 2^63 bytes";
    part = fraction_part(&number, shift, &has_fraction);
    if (has_fraction && !has_unit)
        return "it has a fraction of a byte; a unit is missing";
    if (whole == 0 && part == 0)
        return "it is less than one byte";
    *out = (whole << shift) + part;
    return NULL;
}

jask_status jask_parse_size(const char *text, uint64_t *out_bytes, jask_error *err)
{
    const char *reason = read_size(text ? text : "", out_bytes);
    if (reason)
        return jk_fail(err, JASK_ERR_ARG, "'%s' is not a size: %s", text ? text : "", reason);
    return JASK_OK;
}

char *jask_format_size(uint64_t bytes, char *text, size_t text_size)
{
    static const char letters[] = "KMGT";

    for (unsigned unit = 4; unit > 0; unit--) {
        uint64_t one = (uint64_t)1 << 10 * unit;
        uint64_t thousandths = bytes % one * 1000;
        if (bytes < one || thousandths % one != 0)
            continue;
        int decimals = 3;
        thousandths /= one;
        for (; decimals > 0 && thousandths % 10 == 0; decimals--)
            thousandths /= 10;
        if (decimals == 0)
            snprintf(text, text_size, "%" PRIu64 "%ciB", bytes / one, letters[unit - 1]);
        else
            snprintf(text, text_size, "%" PRIu64 ".%0*" PRIu64 "%ciB", bytes / one, decimals,
                     thousandths, letters[unit - 1]);
        return text;
    }
    snprintf(text, text_size, "%" PRIu64, bytes);
    return text;
}
