/* A program may have called setlocale: what jask reads and writes stays the same. */
#include "tree.h"

#include <criterion/criterion.h>
#include <jask.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(locale, .init = tree_enter, .fini = tree_leave);

static bool comma_locale(void)
{
    if (system("localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 >/dev/null 2>&1") != 0 &&
        access("de_DE.UTF-8", F_OK) != 0)
        return false;
    setenv("LOCPATH", ".", 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") && strcmp(localeconv()->decimal_point, ",") == 0;
}

typedef struct seen {
    char text[8192];
} seen;

static void hear(jask_log_level level, const char *message, void *user)
{
    seen *s = user;
    (void)level;
    /* What is free differs from call to call. */
    if (!strstr(message, "available"))
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "%s\n", message);
}

/* Everything that has a number in it. */
static void collect(seen *s)
{
    static const uint64_t sizes[] = {1, 1536, 1610612736, 123456789, 18446744073709551615u};
    jask_options options;
    jask_context *ctx;
    jask_plan *plan;
    jask_error err;
    char text[4096];
    memset(s, 0, sizeof *s);
    jask_options_init(&options, sizeof options);
    options.log = hear;
    options.log_user = s;
    options.log_level = "debug";
    options.device = "host";
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jask_dot_plan_sizes(ctx, JASK_F32, 5000, 4000, 3000, NULL, &plan, &err), JASK_OK,
                 "%s", err.msg);
    for (int json = 0; json <= 1; json++) {
        jask_plan_format(plan, json, text, sizeof text);
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "%s\n", text);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        jask_format_size(sizes[i], text, sizeof text);
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "%s\n", text);
    }
    jask_plan_close(plan);
    jask_context_close(ctx);
}

Test(locale, a_decimal_comma_changes_nothing)
{
    static const char *const refused[] = {"1,5GiB", "1,5", "1.000,5MB", ",5GB"};
    seen plain, comma;
    jask_error err;
    uint64_t bytes = 0;
    setenv("JASK_MEMORY_BUDGET", "1.5MiB", 1);
    collect(&plain);
    if (!comma_locale())
        cr_skip_test("localedef cannot make a locale with a decimal comma here");
    collect(&comma);
    cr_assert_str_eq(comma.text, plain.text);
    cr_assert_not_null(strstr(plain.text, "1.5MiB"), "%s", plain.text);
    cr_assert_eq(jask_parse_size("1.5GiB", &bytes, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(bytes, 1610612736);
    cr_assert_eq(jask_parse_size(".5gb", &bytes, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(bytes, 536870912);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cr_assert_eq(jask_parse_size(refused[i], &bytes, &err), JASK_ERR_ARG, "%s", refused[i]);
        setenv("JASK_MEMORY_BUDGET", refused[i], 1);
        cr_assert_eq(jask_set_memory_budget(refused[i], NULL, 1, &err), JASK_ERR_CONFIG);
    }
    cr_assert_str_eq(setlocale(LC_ALL, NULL), "de_DE.UTF-8");
}
