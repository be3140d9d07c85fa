#include "runtime/machine_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct key {
    const char *name;
    bool size;
    size_t field, second; /* offsets; of two fields where one word sets both, else equal */
} key;

#define AT(name) offsetof(jk_machine_said, name)

static const key keys[] = {
    {"gpu", true, AT(gpu_bytes), AT(gpu_bytes)},
    {"host", true, AT(host_bytes), AT(host_bytes)},
    {"flops", false, AT(flops), AT(flops)},
    {"flops_f64", false, AT(flops_f64), AT(flops_f64)},
    {"flops_tf32", false, AT(flops_tf32), AT(flops_tf32)},
    {"flops_f16", false, AT(flops_f16), AT(flops_f16)},
    {"h2d", false, AT(h2d), AT(h2d)},
    {"d2h", false, AT(d2h), AT(d2h)},
    {"disk", false, AT(disk_read), AT(disk_write)},
    {"disk_read", false, AT(disk_read), AT(disk_read)},
    {"disk_write", false, AT(disk_write), AT(disk_write)},
    {"runs", false, AT(runs), AT(runs)},
    {"memory", false, AT(device_memory), AT(device_memory)},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* By hand: strtod would follow the locale. At most 18 digits, so that they are exact enough. */
static bool read_rate(const char *text, size_t length, double *out)
{
    static const char units[] = "KMGTP";
    double value = 0, scale = 1;
    size_t i = 0, digits = 0;
    bool fraction = false;
    for (; i < length && (is_digit(text[i]) || (text[i] == '.' && !fraction)); i++) {
        if (text[i] == '.') {
            fraction = true;
            continue;
        }
        value = value * 10 + (text[i] - '0');
        scale = fraction ? scale * 10 : scale;
        if (++digits > 18)
            return false;
    }
    if (digits == 0 || text[i - 1] == '.')
        return false;
    value /= scale;
    const char *unit = i < length ? strchr(units, text[i]) : NULL;
    if (i < length && (!unit || text[i] == '\0'))
        return false;
    for (int k = 0; unit && k <= unit - units; k++)
        value *= 1000;
    *out = value;
    return i + (unit ? 1 : 0) == length && value >= 1;
}

static bool read_size(const char *text, size_t length, uint64_t *out)
{
    char copy[32];
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return jask_parse_size(copy, out, NULL) == JASK_OK;
}

/* One KEY=NUMBER of `length` characters. */
static bool read_word(const char *word, size_t length, jk_machine_said *said)
{
    const char *equals = memchr(word, '=', length);
    if (!equals)
        return false;
    size_t name_length = (size_t)(equals - word), number_length = length - name_length - 1;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const key *k = &keys[i];
        double rate;
        if (strlen(k->name) != name_length || memcmp(k->name, word, name_length) != 0)
            continue;
        if (k->size)
            return read_size(equals + 1, number_length,
                             (uint64_t *)(void *)((char *)said + k->field));
        if (!read_rate(equals + 1, number_length, &rate))
            return false;
        memcpy((char *)said + k->field, &rate, sizeof rate);
        memcpy((char *)said + k->second, &rate, sizeof rate);
        return true;
    }
    return false;
}

jask_status jk_machine_parse(const char *text, jk_machine_said *out, jask_error *err)
{
    jk_machine_said said = {0};
    for (const char *word = text;;) {
        size_t length = strcspn(word, ",");
        if (!read_word(word, length, &said))
            return jk_fail(
                err, JASK_ERR_ARG,
                "'%.*s' in machine '%.200s' is not accepted: it takes KEY=NUMBER, parted "
                "by commas, of gpu, host (memory, as 80G), flops, flops_f64, flops_tf32, "
                "flops_f16, h2d, d2h, disk, disk_read, disk_write, runs and memory (a second, as "
                "55G)",
                (int)(length < 60 ? length : 60), word, text);
        if (word[length] == '\0')
            break;
        word += length + 1;
    }
    *out = said;
    return JASK_OK;
}

/* As many as are read. */
#define DIGITS_MAX 999999999999999900.0

/* In whole numbers: a fraction would be printed as the locale has it. */
static void rate_text(double rate, char text[32])
{
    static const char units[] = "\0KMGTP";
    int unit = 0, decimals = 0;
    for (; rate >= 1000 && units[unit + 1]; unit++)
        rate /= 1000;
    for (double digits = rate; digits < 100 && decimals < 2; decimals++)
        digits *= 10;
    long long scale = decimals == 0 ? 1 : decimals == 1 ? 10 : 100;
    long long value = (long long)fmin(rint(rate * (double)scale), DIGITS_MAX);
    for (; decimals > 0 && value % 10 == 0; decimals--, scale /= 10)
        value /= 10;
    if (decimals > 0)
        snprintf(text, 32, "%lld.%0*lld%.1s", value / scale, decimals, value % scale, units + unit);
    else
        snprintf(text, 32, "%lld%.1s", value, units + unit);
}

size_t jk_machine_format(const jk_machine_said *said, char *text, size_t text_size)
{
    size_t length = 0;
    if (text_size > 0)
        text[0] = '\0';
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const key *k = &keys[i];
        char number[32];
        double rate;
        memcpy(&rate, (const char *)said + k->field, sizeof rate);
        if (k->size || k->field != k->second || rate < 1)
            continue;
        rate_text(rate, number);
        length += (size_t)snprintf(length < text_size ? text + length : NULL,
                                   length < text_size ? text_size - length : 0, "%s%s=%s",
                                   length > 0 ? "," : "", k->name, number);
    }
    return length;
}

double jk_machine_flops(const jk_machine_said *said, jask_dtype compute, jask_dtype input,
                        bool tf32)
{
    double real = said->flops;
    if (compute == JASK_F64 || compute == JASK_C128)
        real = said->flops_f64;
    else if (input == JASK_F16 || input == JASK_BF16)
        real = said->flops_f16;
    else if (tf32)
        real = said->flops_tf32;
    /* A complex product is four real ones. */
    return compute == JASK_C64 || compute == JASK_C128 ? real / 4 : real;
}

static void replace(double *rate, double said)
{
    if (said > 0)
        *rate = said;
}

void jk_machine_apply(const jk_machine_said *said, double flops, jk_machine *machine)
{
    if (said->gpu_bytes > 0) {
        machine->device_bytes = said->gpu_bytes;
        machine->host_bytes = said->host_bytes;
        machine->runs = 0;
        machine->shared_cores = false;
    } else if (said->host_bytes > 0) {
        machine->device_bytes = said->host_bytes;
        machine->host_bytes = 0;
        machine->shared_cores = true;
    }
    replace(&machine->flops, flops);
    replace(&machine->h2d, said->h2d);
    replace(&machine->d2h, said->d2h > 0 ? said->d2h : said->h2d);
    replace(&machine->disk_read, said->disk_read);
    replace(&machine->disk_write, said->disk_write);
    replace(&machine->runs, said->runs);
    replace(&machine->device_memory, said->device_memory);
}
