#include "runtime/settings.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void clear_environment(void)
{
    for (int i = 0; i < jask_setting_count(); i++)
        unsetenv(jask_setting_get(i)->environment);
}

TestSuite(settings, .init = clear_environment);

static jask_options empty_options(void)
{
    jask_options options;
    jask_options_init(&options, sizeof options);
    return options;
}

static void check(const jk_settings *settings, jk_setting_id id, const char *source,
                  const char *text, uint64_t number)
{
    const jk_setting_value *value = &settings->value[id];
    const char *name = jask_setting_get((int)id)->name;
    cr_assert_str_eq(value->source, source, "%s came from '%s'", name, value->source);
    cr_assert_eq(value->number, number, "%s is %llu", name, (unsigned long long)value->number);
    if (!text)
        cr_assert_null(value->text);
    else
        cr_assert_str_eq(value->text, text, "%s", name);
}

Test(settings, has_one_row_for_every_setting)
{
    static const struct {
        jk_setting_id id;
        const char *name, *environment, *type, *default_value;
    } want[] = {
        {JK_SET_MEMORY_BUDGET, "memory_budget", "JASK_MEMORY_BUDGET", "size", ""},
        {JK_SET_HOST_BUDGET, "host_budget", "JASK_HOST_BUDGET", "size", ""},
        {JK_SET_SCRATCH_DIR, "scratch_dir", "JASK_SCRATCH_DIR", "path", ".jask_scratch"},
        {JK_SET_ALLOW_TMPFS, "allow_tmpfs", "JASK_ALLOW_TMPFS", "bool", "0"},
        {JK_SET_DEVICE, "device", "JASK_DEVICE", "choice", "auto"},
        {JK_SET_PLANNER, "planner", "JASK_PLANNER", "choice", "auto"},
        {JK_SET_MACHINE, "machine", "JASK_MACHINE", "text", ""},
        {JK_SET_PIPELINE, "pipeline", "JASK_PIPELINE", "bool", "1"},
        {JK_SET_SYNC, "sync", "JASK_SYNC", "bool", "1"},
        {JK_SET_IO_THREADS, "io_threads", "JASK_IO_THREADS", "count", "4"},
        {JK_SET_IO, "io", "JASK_IO", "choice", "auto"},
        {JK_SET_PRECISION, "precision", "JASK_PRECISION", "choice", "f32"},
        {JK_SET_DETERMINISTIC, "deterministic", "JASK_DETERMINISTIC", "bool", "0"},
        {JK_SET_CUBLAS, "cublas", "JASK_CUBLAS", "path", ""},
        {JK_SET_LOG_LEVEL, "log_level", "JASK_LOG_LEVEL", "choice", "warn"},
    };
    cr_assert_eq(jask_setting_count(), JK_SET_COUNT);
    cr_assert_eq((int)(sizeof want / sizeof *want), JK_SET_COUNT);
    for (int i = 0; i < JK_SET_COUNT; i++) {
        const jask_setting *row = jask_setting_get((int)want[i].id);
        cr_assert_str_eq(row->name, want[i].name);
        cr_assert_str_eq(row->environment, want[i].environment);
        cr_assert_str_eq(row->type, want[i].type);
        cr_assert_str_eq(row->default_value, want[i].default_value);
        cr_assert_gt(strlen(row->help), 10);
        cr_assert_null(strchr(row->help, '\n'));
    }
    cr_assert_null(jask_setting_get(-1));
    cr_assert_null(jask_setting_get(JK_SET_COUNT));
}

Test(settings, defaults_when_nothing_is_said)
{
    jk_settings settings;
    jask_options options = empty_options();
    jask_error err;

    for (int round = 0; round < 2; round++) {
        cr_assert_eq(jk_settings_init(&settings, round ? &options : NULL, &err), JASK_OK, "%s",
                     err.msg);
        check(&settings, JK_SET_MEMORY_BUDGET, "default", NULL, 0);
        check(&settings, JK_SET_HOST_BUDGET, "default", NULL, 0);
        check(&settings, JK_SET_SCRATCH_DIR, "default", ".jask_scratch", 0);
        check(&settings, JK_SET_ALLOW_TMPFS, "default", "0", 0);
        check(&settings, JK_SET_DEVICE, "default", "auto", 0);
        check(&settings, JK_SET_PLANNER, "default", "auto", 0);
        check(&settings, JK_SET_PIPELINE, "default", "1", 1);
        check(&settings, JK_SET_SYNC, "default", "1", 1);
        check(&settings, JK_SET_IO_THREADS, "default", "4", 4);
        check(&settings, JK_SET_IO, "default", "auto", 0);
        check(&settings, JK_SET_PRECISION, "default", "f32", 0);
        check(&settings, JK_SET_CUBLAS, "default", NULL, 0);
        check(&settings, JK_SET_LOG_LEVEL, "default", "warn", 0);
        jk_settings_fini(&settings);
    }
}

Test(settings, takes_explicit_before_environment_before_default)
{
    jk_settings settings;
    jask_options options = empty_options();
    jask_error err;

    for (int i = 0; i < JK_SET_COUNT; i++)
        cr_assert_null(jask_setting_environment(i));
    cr_assert_null(jask_setting_environment(-1));
    cr_assert_null(jask_setting_environment(JK_SET_COUNT));

    setenv("JASK_MEMORY_BUDGET", " 1.5 gb ", 1);
    setenv("JASK_HOST_BUDGET", "64MiB", 1);
    setenv("JASK_SCRATCH_DIR", "/data/x y", 1);
    setenv("JASK_ALLOW_TMPFS", "Yes", 1);
    setenv("JASK_DEVICE", "host", 1);
    setenv("JASK_PLANNER", "page", 1);
    setenv("JASK_PIPELINE", "OFF", 1);
    setenv("JASK_SYNC", "no", 1);
    setenv("JASK_IO_THREADS", "64", 1);
    cr_assert_eq(jk_settings_init(&settings, &options, &err), JASK_OK, "%s", err.msg);
    check(&settings, JK_SET_MEMORY_BUDGET, "environment", " 1.5 gb ", 1610612736);
    check(&settings, JK_SET_HOST_BUDGET, "environment", "64MiB", 67108864);
    check(&settings, JK_SET_SCRATCH_DIR, "environment", "/data/x y", 0);
    check(&settings, JK_SET_ALLOW_TMPFS, "environment", "Yes", 1);
    check(&settings, JK_SET_DEVICE, "environment", "host", 0);
    check(&settings, JK_SET_PLANNER, "environment", "page", 0);
    check(&settings, JK_SET_PIPELINE, "environment", "OFF", 0);
    check(&settings, JK_SET_SYNC, "environment", "no", 0);
    check(&settings, JK_SET_IO_THREADS, "environment", "64", 64);
    cr_assert_str_eq(jask_setting_environment(JK_SET_DEVICE), "host");
    jk_settings_fini(&settings);

    /* An option that is set is not even compared with the variable it overrides. */
    setenv("JASK_MEMORY_BUDGET", "junk", 1);
    setenv("JASK_IO_THREADS", "", 1);
    options.memory_budget_bytes = 1000;
    options.host_budget_bytes = 268435456;
    options.scratch_dir = "here";
    options.allow_tmpfs = -1;
    options.device = "cuda:1";
    options.planner = "bytes";
    options.pipeline = 1;
    options.sync = 1;
    options.io_threads = 1;
    cr_assert_eq(jk_settings_init(&settings, &options, &err), JASK_OK, "%s", err.msg);
    check(&settings, JK_SET_MEMORY_BUDGET, "option", "1000", 1000);
    check(&settings, JK_SET_HOST_BUDGET, "option", "256MiB", 268435456);
    check(&settings, JK_SET_SCRATCH_DIR, "option", "here", 0);
    check(&settings, JK_SET_ALLOW_TMPFS, "option", "0", 0);
    check(&settings, JK_SET_DEVICE, "option", "cuda:1", 0);
    check(&settings, JK_SET_PLANNER, "option", "bytes", 0);
    check(&settings, JK_SET_PIPELINE, "option", "1", 1);
    check(&settings, JK_SET_SYNC, "option", "1", 1);
    check(&settings, JK_SET_IO_THREADS, "option", "1", 1);
    jk_settings_fini(&settings);
}

Test(settings, reads_booleans_in_any_case)
{
    static const struct {
        const char *text;
        int value; /* -1: refused */
    } cases[] = {
        {"1", 1},          {"0", 0},      {"yes", 1},     {"YES", 1}, {"no", 0},
        {"No", 0},         {"true", 1},   {"True", 1},    {"on", 1},  {"oN", 1},
        {"false", 0},      {"FALSE", 0},  {"off", 0},     {"Off", 0}, {"", -1},
        {" ", -1},         {"2", -1},     {"-1", -1},     {"y", -1},  {"tru", -1},
        {"truee", -1},     {"1 yes", -1}, {"yes no", -1}, {"01", -1}, {"enabled", -1},
        {"disabled!", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_settings settings = {0};
        jask_error err = {0};
        setenv("JASK_ALLOW_TMPFS", cases[i].text, 1);
        jask_status status = jk_settings_init(&settings, NULL, &err);
        cr_assert_eq(status, cases[i].value < 0 ? JASK_ERR_CONFIG : JASK_OK, "'%s': %s",
                     cases[i].text, err.msg);
        if (!status)
            cr_assert_eq(settings.value[JK_SET_ALLOW_TMPFS].number, (uint64_t)cases[i].value);
        jk_settings_fini(&settings);
    }
}

/* The name, the value in quotes, and something of what would do. */
static void check_refusal(jask_status status, const jask_error *err, const char *name,
                          const char *value, const char *accepted)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "'%s'", value);
    cr_assert_eq(status, JASK_ERR_CONFIG, "%s='%s'", name, value);
    cr_assert_eq(err->code, JASK_ERR_CONFIG);
    cr_assert_eq(strncmp(err->msg, name, strlen(name)), 0, "%s", err->msg);
    cr_assert_not_null(strstr(err->msg, quoted), "%s", err->msg);
    cr_assert_not_null(strstr(err->msg, accepted), "%s", err->msg);
}

Test(settings, names_a_variable_that_cannot_be_read)
{
    static const struct {
        const char *name, *value, *accepted;
    } cases[] = {
        {"JASK_MEMORY_BUDGET", "", "empty"},
        {"JASK_MEMORY_BUDGET", " ", "empty"},
        {"JASK_MEMORY_BUDGET", "0", "less than one byte"},
        {"JASK_MEMORY_BUDGET", "-4GB", "negative"},
        {"JASK_MEMORY_BUDGET", "5foos", "256MiB"},
        {"JASK_MEMORY_BUDGET", "1e400", "2^63"},
        {"JASK_MEMORY_BUDGET", "nan", "256MiB"},
        {"JASK_HOST_BUDGET", "4G4", "256MiB"},
        {"JASK_SCRATCH_DIR", "", "directory"},
        {"JASK_SCRATCH_DIR", "\t ", "directory"},
        {"JASK_ALLOW_TMPFS", "maybe", "yes, true, on"},
        {"JASK_DEVICE", "", "jask-info"},
        {"JASK_PLANNER", "", "auto, bytes or page"},
        {"JASK_PLANNER", "fast", "auto, bytes or page"},
        {"JASK_PLANNER", "auto bytes", "auto, bytes or page"},
        {"JASK_PLANNER", "byte", "auto, bytes or page"},
        {"JASK_IO", "mmap", "auto, pread or direct"},
        {"JASK_PRECISION", "bf16", "f32 or tf32"},
        {"JASK_CUBLAS", " ", "shared library"},
        {"JASK_PIPELINE", "", "no, false, off"},
        {"JASK_SYNC", "3", "no, false, off"},
        {"JASK_IO_THREADS", "", "from 1 to 64"},
        {"JASK_IO_THREADS", "0", "from 1 to 64"},
        {"JASK_IO_THREADS", "65", "from 1 to 64"},
        {"JASK_IO_THREADS", "-1", "from 1 to 64"},
        {"JASK_IO_THREADS", "2x", "from 1 to 64"},
        {"JASK_IO_THREADS", "2.0", "from 1 to 64"},
        {"JASK_IO_THREADS", "18446744073709551617", "from 1 to 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_settings settings = {.value[JK_SET_SYNC].number = 7};
        jask_error err;
        clear_environment();
        setenv(cases[i].name, cases[i].value, 1);
        check_refusal(jk_settings_init(&settings, NULL, &err), &err, cases[i].name, cases[i].value,
                      cases[i].accepted);
        cr_assert_eq(settings.value[JK_SET_SYNC].number, 7, "an output changed on failure");
        cr_assert_null(settings.value[JK_SET_DEVICE].text);
        cr_assert_eq(jk_settings_init(&settings, NULL, NULL), JASK_ERR_CONFIG);
    }
}

Test(settings, names_an_option_that_cannot_be_read)
{
    jk_settings settings;
    jask_error err;
    jask_options options = empty_options();

    options.memory_budget_bytes = (uint64_t)1 << 63;
    check_refusal(jk_settings_init(&settings, &options, &err), &err, "option memory_budget",
                  "8388608TiB", "2^63");
    options = empty_options();
    options.scratch_dir = "";
    check_refusal(jk_settings_init(&settings, &options, &err), &err, "option scratch_dir", "",
                  "directory");
    options = empty_options();
    options.planner = "best";
    check_refusal(jk_settings_init(&settings, &options, &err), &err, "option planner", "best",
                  "auto, bytes or page");
    options = empty_options();
    options.sync = 2;
    check_refusal(jk_settings_init(&settings, &options, &err), &err, "option sync", "2", "1 or -1");
    options = empty_options();
    options.sync = -2;
    check_refusal(jk_settings_init(&settings, &options, &err), &err, "option sync", "-2",
                  "1 or -1");
    options = empty_options();
    options.io_threads = -3;
    check_refusal(jk_settings_init(&settings, &options, &err), &err, "option io_threads", "-3",
                  "from 1 to 64");
    options = empty_options();
    options.struct_size = 0;
    cr_assert_eq(jk_settings_init(&settings, &options, &err), JASK_ERR_ARG);
}

Test(settings, ignores_fields_beyond_an_older_callers_struct)
{
    jk_settings settings;
    jask_error err;
    /* On the heap and no longer than that caller knew, so that a read beyond shows under ASan;
     * volatile because the compiler would warn of just that. */
    volatile size_t size = offsetof(jask_options, device);
    jask_options *options = malloc(size);

    cr_assert_not_null(options);
    memset(options, 0xff, size);
    jask_options_init(options, size);
    options->scratch_dir = "old";
    cr_assert_eq(jk_settings_init(&settings, options, &err), JASK_OK, "%s", err.msg);
    check(&settings, JK_SET_SCRATCH_DIR, "option", "old", 0);
    check(&settings, JK_SET_DEVICE, "default", "auto", 0);
    check(&settings, JK_SET_IO_THREADS, "default", "4", 4);
    jk_settings_fini(&settings);
    free(options);
}

Test(settings, lets_a_newer_caller_say_more_than_is_known)
{
    struct {
        jask_options known;
        uint64_t more[4];
    } newer;
    jk_settings settings;

    memset(&newer, 0xff, sizeof newer);
    jask_options_init(&newer.known, sizeof newer);
    cr_assert_eq(newer.more[3], 0);
    newer.more[0] = 9;
    cr_assert_eq(jk_settings_init(&settings, &newer.known, NULL), JASK_OK);
    jk_settings_fini(&settings);
    jk_settings_fini(&settings);
    jk_settings_fini(NULL);
}
