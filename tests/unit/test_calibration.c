/* The file that keeps a measured machine: its text, its place, and what becomes of one that cannot be
 * used. */
#include "runtime/calibration.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(calibration, .init = tree_enter, .fini = tree_leave);

#define IDENTITY "Some CPU, 2 cores, openblas"
#define RATES "flops=139G,h2d=8.5G"
#define HEAD "jask machine 1\nof " IDENTITY "\n"

static const jk_device_info host = {
    .name = "host", .description = IDENTITY, .host_memory = true, .cores = 2};
static const jk_device_info card = {
    .name = "cuda:0", .description = "A Card", .pci_bus_id = "0000:3b:00.0"};

/* `name` in the test's directory. */
static void set_cache(const char *name)
{
    char *cwd = getcwd(NULL, 0), *path = NULL;
    cr_assert(cwd && asprintf(&path, "%s/%s", cwd, name) > 0);
    setenv("XDG_CACHE_HOME", path, 1);
    free(path);
    free(cwd);
}

static char heard[JK_LOG_TEXT];
static int times;

static void hear(jask_log_level level, const char *message, void *user)
{
    (void)user;
    if (level > JASK_LOG_WARN)
        return;
    snprintf(heard, sizeof heard, "%s", message);
    times++;
}

/* What a context on the host takes: the machine setting, and how often something is noted. */
static jk_setting_value take(const char *given, jk_machine_said *machine)
{
    jk_settings settings = {0};
    jk_log log;
    jk_setting_value *value = &settings.value[JK_SET_MACHINE];
    *value = (jk_setting_value){.text = given ? strdup(given) : NULL, .source = "default"};
    *machine = (jk_machine_said){0};
    heard[0] = '\0';
    times = 0;
    jk_log_init(&log, hear, NULL);
    jk_log_begin(&log, "info");
    jk_calibration_take(&host, &settings, machine, &log);
    jk_log_fini(&log);
    return *value;
}

static void keep(const char *text)
{
    char *path;
    jk_output *output;
    jask_error err;
    cr_assert_eq(jk_calibration_path(&host, &path, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jk_calibration_open(path, &output, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jk_calibration_keep(output, text, &err), JASK_OK, "%s", err.msg);
    jk_output_close(output);
    free(path);
}

Test(calibration, text_is_read_as_it_is_written)
{
    char text[JK_CALIBRATION_TEXT], machine[JK_MACHINE_TEXT];
    jk_machine_said said;
    jask_error err;
    cr_assert_eq(jk_calibration_format(IDENTITY, "/scratch", RATES, text), strlen(text));
    cr_assert_eq(jk_calibration_parse(text, IDENTITY, machine, &said, &err), JASK_OK, "%s",
                 err.msg);
    cr_assert_str_eq(machine, RATES);
    cr_assert(said.flops == 139e9 && said.h2d == 8.5e9 && said.disk_read == 0);
    cr_assert_not_null(strstr(text, "/scratch"));
}

Test(calibration, text_of_another_machine_or_version_is_refused)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "begin"},
        {"\n", "begin"},
        {"jask machine", "begin"},
        {"\x7f"
         "ELF",
         "begin"},
        {"jask machine 2\nof " IDENTITY "\nrates " RATES "\n", "version '2'"},
        {"jask machine 12\nof " IDENTITY "\nrates " RATES "\n", "version '12'"},
        {"jask machine 1\n", "measured on"},
        {"jask machine 1\nrates " RATES "\n", "measured on"},
        {"jask machine 1\nof Some CPU, 4 cores, openblas\nrates " RATES "\n", "4 cores"},
        {"jask machine 1\nof " IDENTITY "2\nrates " RATES "\n", "openblas2"},
        {HEAD, "no rates"},
        {HEAD "rates \n", "not accepted"},
        {HEAD "rates flops=139X\n", "flops=139X"},
        {HEAD "rates gpu=80G,flops=1T\n", "another machine"},
        {HEAD "rates host=80G\n", "another machine"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char machine[JK_MACHINE_TEXT] = "kept";
        jk_machine_said said = {.flops = 77};
        jask_error err;
        cr_assert_eq(jk_calibration_parse(cases[i].text, IDENTITY, machine, &said, &err),
                     JASK_ERR_FORMAT, "%s", cases[i].text);
        cr_assert_not_null(strstr(err.msg, cases[i].why), "%s: %s", cases[i].text, err.msg);
        cr_assert_str_eq(machine, "kept");
        cr_assert(said.flops == 77);
    }
}

Test(calibration, each_host_and_device_has_a_file_in_the_cache_directory)
{
    static const struct {
        const char *cache, *home, *begins; /* NULL: none */
    } cases[] = {{"/c", "/h", "/c/jask/machine-"},
                 {NULL, "/h", "/h/.cache/jask/machine-"},
                 {"", "/h", "/h/.cache/jask/machine-"},
                 {"relative", "/h", "/h/.cache/jask/machine-"},
                 {NULL, "relative", NULL},
                 {NULL, "", NULL},
                 {NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = NULL;
        jask_error err;
        unsetenv("XDG_CACHE_HOME");
        unsetenv("HOME");
        if (cases[i].cache)
            setenv("XDG_CACHE_HOME", cases[i].cache, 1);
        if (cases[i].home)
            setenv("HOME", cases[i].home, 1);
        jask_status st = jk_calibration_path(&card, &path, &err);
        if (!cases[i].begins) {
            cr_assert_eq(st, JASK_ERR_CONFIG);
            cr_assert_not_null(strstr(err.msg, "XDG_CACHE_HOME"), "%s", err.msg);
            continue;
        }
        cr_assert_eq(st, JASK_OK, "%s", err.msg);
        cr_assert_eq(strncmp(path, cases[i].begins, strlen(cases[i].begins)), 0, "%s", path);
        cr_assert_str_eq(path + strlen(path) - 13, "-0000_3b_00.0");
        free(path);
    }
}

Test(calibration, is_taken_where_nobody_said_a_machine)
{
    jk_machine_said machine;
    jk_setting_value value;
    char text[JK_CALIBRATION_TEXT];
    set_cache("cache/deeper");
    value = take(NULL, &machine);
    cr_assert(!value.text && times == 0, "there is none: %s", heard);
    jk_calibration_format(IDENTITY, "/scratch", RATES, text);
    keep(text);
    value = take(NULL, &machine);
    cr_assert_str_eq(value.text, RATES, "%s", heard);
    cr_assert_str_eq(value.source, "calibration");
    cr_assert(machine.flops == 139e9 && times == 0);
    free(value.text);
    value = take("disk=1G", &machine);
    cr_assert_str_eq(value.text, "disk=1G");
    cr_assert_str_eq(value.source, "default");
    cr_assert(machine.flops == 0 && times == 0);
    free(value.text);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    value = take(NULL, &machine);
    cr_assert(!value.text && times == 0, "nowhere to look is no trouble: %s", heard);
}

Test(calibration, what_cannot_be_used_is_left_with_one_note)
{
    static char longer[JK_CALIBRATION_TEXT + 1];
    const char *const texts[] = {"", "jask machine 0\n", "jask machine 1\nof another\nrates " RATES,
                                 HEAD "rates nonsense\n", longer};
    jk_machine_said machine;
    jk_setting_value value;
    memset(longer, '#', sizeof longer - 1);
    set_cache("cache");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        keep(texts[i]);
        value = take(NULL, &machine);
        cr_assert(!value.text && machine.flops == 0);
        cr_assert_str_eq(value.source, "default");
        cr_assert_eq(times, 1);
        cr_assert_not_null(strstr(heard, "cache/jask/machine-"), "%s", heard);
        cr_assert_not_null(strstr(heard, "--calibrate"), "%s", heard);
    }
}

Test(calibration, one_that_cannot_be_opened_is_left_with_one_note)
{
    jk_machine_said machine;
    char *path;
    set_cache("cache");
    keep("");
    cr_assert_eq(jk_calibration_path(&host, &path, NULL), JASK_OK);
    cr_assert_eq(remove(path), 0);
    cr_assert_eq(symlink("/", path), 0);
    cr_assert_null(take(NULL, &machine).text);
    cr_assert_eq(times, 1);
    cr_assert_not_null(strstr(heard, "directory"), "%s", heard);
    cr_assert_eq(remove(path), 0);
    free(path);
}
