#include "runtime/machine_text.h"

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
    {"h2d", false, AT(h2d), AT(h2d)},
    {"d2h", false, AT(d2h), AT(d2h)},
    {"disk", false, AT(disk_read), AT(disk_write)},
    {"disk_read", false, AT(disk_read), AT(disk_read)},
    {"disk_write", false, AT(disk_write), AT(disk_write)},
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
                "by commas, of gpu, host (memory, as 80G), flops, flops_f64, h2d, d2h, "
                "disk, disk_read, disk_write and memory (a second, as 55G)",
                (int)(length < 60 ? length : 60), word, text);
        if (word[length] == '\0')
            break;
        word += length + 1;
    }
    *out = said;
    return JASK_OK;
}

static void replace(double *rate, double said)
{
    if (said > 0)
        *rate = said;
}

void jk_machine_apply(const jk_machine_said *said, bool f64, jk_machine *machine)
{
    if (said->gpu_bytes > 0) {
        machine->device_bytes = said->gpu_bytes;
        machine->cache_bytes = said->host_bytes;
        machine->shared_cores = false;
    } else if (said->host_bytes > 0) {
        machine->device_bytes = said->host_bytes;
        machine->shared_cores = true;
    }
    replace(&machine->flops, f64 ? said->flops_f64 : said->flops);
    replace(&machine->h2d, said->h2d);
    replace(&machine->d2h, said->d2h > 0 ? said->d2h : said->h2d);
    replace(&machine->disk_read, said->disk_read);
    replace(&machine->disk_write, said->disk_write);
    replace(&machine->device_memory, said->device_memory);
}
