#include "common/base.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct size_case {
    const char *text;
    uint64_t bytes; /* 0: refused */
} size_case;

static void check(const char *text, uint64_t bytes)
{
    jask_error err = {.code = JASK_ERR_INTERNAL};
    uint64_t got = 42;
    jask_status status = jask_parse_size(text, &got, &err);

    if (bytes != 0) {
        cr_assert_eq(status, JASK_OK, "'%s': %s", text, err.msg);
        cr_assert_eq(got, bytes, "'%s' gave %" PRIu64 ", not %" PRIu64, text, got, bytes);
        return;
    }
    cr_assert_eq(status, JASK_ERR_ARG, "'%s' was read as %" PRIu64, text, got);
    cr_assert_eq(err.code, JASK_ERR_ARG);
    cr_assert_eq(got, 42, "'%s' was refused, yet the output changed", text);
    char quoted[1024];
    snprintf(quoted, sizeof quoted, "'%s'", text);
    cr_assert_not_null(strstr(err.msg, quoted), "'%s' is not quoted in: %s", text, err.msg);
}

Test(size_text, agrees_with_the_oracle_row_by_row)
{
    char path[4096];
    char line[256];
    int rows = 0;
    const char *dir = getenv("JASK_TEST_SHARED");

    cr_assert_not_null(dir, "JASK_TEST_SHARED names the directory of test data");
    snprintf(path, sizeof path, "%s/parse_memory.tsv", dir);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    cr_assert_not_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        char *tab = strchr(line, '\t');
        cr_assert_not_null(tab, "%s", line);
        *tab = '\0';
        bool refused = strncmp(tab + 1, "ERR\t", 4) == 0;
        check(line, refused ? 0 : strtoull(tab + 1, NULL, 10));
        rows++;
    }
    fclose(file);
    cr_assert_eq(rows, 56);
}

Test(size_text, reads_what_people_write)
{
    static const size_case cases[] = {
        {"8GB", 8589934592},
        {"1.5GiB", 1610612736},
        {"500 MB", 524288000},
        {".5GB", 536870912},
        {"8G", 8589934592},
        {"512M", 536870912},
        {"512m", 536870912},
        {"1gb", 1073741824},
        {"1048576", 1048576},
        {" 64MiB ", 67108864},
        {"\t64\tMiB\n", 67108864},
        {"100 MB", 104857600},
        {"5kB", 5120},
        {"5.5 kB", 5632},
        {"1kiB", 1024},
        {"1Mi", 1048576},
        {"64MIB", 67108864},
        {"+1GiB", 1073741824},
        {"1e6", 1000000},
        {"1E+6", 1000000},
        {"1.5e1", 15},
        {"4.0", 4},
        {"4.9B", 4},
        {"007", 7},
        {"", 0},
        {" ", 0},
        {"-4GB", 0},
        {"5foos", 0},
        {"1e400", 0},
        {"NaN", 0},
        {"-inf", 0},
        {"infinity", 0},
        {"1e", 0},
        {"1e+", 0},
        {"1eGB", 0},
        {"e3", 0},
        {".", 0},
        {".GB", 0},
        {"+", 0},
        {"-", 0},
        {"--1", 0},
        {"+-1", 0},
        {"1 2", 0},
        {"1 K B", 0},
        {"1iB", 0},
        {"1i", 0},
        {"1PB", 0},
        {"1,5GiB", 0},
        {"4GB\xc2\xa0", 0},
        {"0.0001KB", 0},
        {"0.5B", 0},
        {"auto", 0},
        {"unlimited", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].text, cases[i].bytes);
}

/* Values that a double cannot hold, and lengths that no accumulator can. */
Test(size_text, rounds_down_exactly)
{
    static const size_case cases[] = {
        {"0.1TB", 109951162777},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", 0},
        {"18446744073709551615", 0},
        {"18446744073709551617", 0}, /* 2^64 + 1 */
        {"9007199254740993B", 9007199254740993},
        {"8589934591.999999999999999999GB", INT64_MAX},
        {"8388607.9999999999999999TB", INT64_MAX},
        {"8388608TB", 0},
        {"8388607TB", 9223370937343148032},
        {"0.000000000931322574615478515625GB", 1}, /* 2^-30 */
        {"0.000000000931322574615478515624GB", 0},
        {"9.31322574615478515625e-10GB", 1},
        {"0.99999999999999999999999999999999999999999999KB", 1023},
        {"1.00000000000000000000000000000000000000000001", 0},
        {"1.000000000000000000000000000000000000000000000", 1},
        {"12345678901234567890123456789e-20", 0},
        {"12345678901234567890123456789e-20B", 123456789},
        {"12300000000000000000000000000e-26", 123},
        {"0.00000000000000000000000000000000000000015e40", 0},
        {"0.00000000000000000000000000000000000000015e40B", 1},
        {"0.000000000000000000000000000000000000015e39", 15},
        {"1e18", 1000000000000000000},
        {"1e19", 0},
        {"1e99999999999999999999999999", 0},
        {"1e-99999999999999999999999999TB", 0},
        {"0e99999999999999999999999999", 0},
        {"1e-00000000000000000000000000012TB", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].text, cases[i].bytes);

    char text[2048];
    memset(text, '0', sizeof text);
    text[1000] = '1';
    strcpy(text + 2001, "e-1000B");
    check(text, 1);
}

Test(size_text, says_why_a_text_is_refused)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "empty"},        {"-1", "negative"},   {"1e30", "2^63"},      {"4.5", "fraction"},
        {"0GB", "less than"}, {"5 foos", "256MiB"}, {"1_000MB", "256MiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_error err;
        uint64_t bytes;
        cr_assert_eq(jask_parse_size(cases[i].text, &bytes, &err), JASK_ERR_ARG);
        cr_assert_not_null(strstr(err.msg, cases[i].word), "'%s': %s", cases[i].text, err.msg);
    }
    uint64_t bytes;
    cr_assert_eq(jask_parse_size(NULL, &bytes, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_parse_size("x", &bytes, NULL), JASK_ERR_ARG);
}

Test(size_text, does_not_depend_on_the_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "tr_TR.UTF-8"};
    const char *set = NULL;
    char text[32];

    for (size_t i = 0; i < sizeof names / sizeof *names && !set; i++)
        set = setlocale(LC_ALL, names[i]);
    if (!set || strcmp(localeconv()->decimal_point, ",") != 0)
        cr_skip_test("no locale with a decimal comma is installed");
    check("1.5GiB", 1610612736);
    check("1,5GiB", 0);
    check("4GIB", 4294967296);
    cr_assert_str_eq(jask_format_size(1610612736, text, sizeof text), "1.5GiB");
}

Test(size_text, formats_shortly)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "1"},
        {1000, "1000"},
        {1023, "1023"},
        {1024, "1KiB"},
        {1025, "1025"},
        {1536, "1.5KiB"},
        {1152, "1.125KiB"},
        {1088, "1088"}, /* 1.0625 */
        {268435456, "256MiB"},
        {1610612736, "1.5GiB"},
        {4831838208, "4.5GiB"},
        {1074790400, "1025MiB"},
        {1073741825, "1073741825"},
        {(uint64_t)1 << 40, "1TiB"},
        {((uint64_t)1 << 40) * 1023, "1023TiB"},
        {INT64_MAX, "9223372036854775807"},
        {UINT64_MAX, "18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        cr_assert_eq(jask_format_size(cases[i].bytes, text, sizeof text), text);
        cr_assert_str_eq(text, cases[i].text);
    }
}

Test(size_text, reads_back_what_it_formats)
{
    uint64_t state = 1;
    for (int i = 0; i < 200000; i++) {
        char text[32];
        uint64_t back;
        state = state * 6364136223846793005u + 1442695040888963407u;
        /* Any magnitude, and all numbers of zero bits at the end. */
        uint64_t bytes = state >> (1 + (state & 63) % 63);
        bytes = bytes >> (i % 48) << (i % 48);
        if (bytes == 0)
            continue;
        jask_format_size(bytes, text, sizeof text);
        cr_assert_eq(jask_parse_size(text, &back, NULL), JASK_OK, "%s", text);
        cr_assert_eq(back, bytes, "%" PRIu64 " became '%s'", bytes, text);
    }
}
