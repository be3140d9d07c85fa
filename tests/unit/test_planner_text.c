/* Plans as text: exact texts for described machines (tests/golden), JSON, and short buffers. */
#include "planner/joint.h"
#include "runtime/machine_text.h"

#include <criterion/criterion.h>

#include <glob.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    jk_problem problem;
    jk_machine machine;
    jk_planner planner;
    bool pipelined;
} request;

static void set_field(request *r, const char *key, const char *value)
{
    const struct {
        const char *key;
        int64_t *target;
    } counts[] = {{"m", &r->problem.m}, {"n", &r->problem.n}, {"k", &r->problem.k}};
    const struct {
        const char *key;
        double *target;
    } rates[] = {{"flops", &r->machine.flops},
                 {"h2d", &r->machine.h2d},
                 {"d2h", &r->machine.d2h},
                 {"disk_read", &r->machine.disk_read},
                 {"disk_write", &r->machine.disk_write},
                 {"runs", &r->machine.runs},
                 {"device_memory", &r->machine.device_memory},
                 {"step_seconds", &r->machine.step_seconds}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (strcmp(key, counts[i].key) == 0) {
            *counts[i].target = strtoll(value, NULL, 10);
            return;
        }
    }
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (strcmp(key, rates[i].key) == 0) {
            *rates[i].target = strtod(value, NULL);
            return;
        }
    }
    if (strcmp(key, "element") == 0)
        r->problem.a_bytes = r->problem.b_bytes = r->problem.c_bytes = atoi(value);
    else if (strcmp(key, "read_c") == 0)
        r->problem.read_c = atoi(value);
    else if (strcmp(key, "budget") == 0)
        cr_assert_eq(jask_parse_size(value, &r->machine.device_bytes, NULL), JASK_OK);
    else if (strcmp(key, "reserve") == 0)
        cr_assert_eq(jask_parse_size(value, &r->machine.reserve_bytes, NULL), JASK_OK);
    else if (strcmp(key, "shared_cores") == 0)
        r->machine.shared_cores = atoi(value);
    else if (strcmp(key, "machine") == 0) {
        jk_machine_said said;
        jask_error err;
        cr_assert_eq(jk_machine_parse(value, &said, &err), JASK_OK, "%s", err.msg);
        jk_machine_apply(&said, said.flops, &r->machine);
    } else if (strcmp(key, "planner") == 0)
        cr_assert_eq(jk_planner_parse(value, &r->planner, NULL), JASK_OK);
    else if (strcmp(key, "pipelined") == 0)
        r->pipelined = atoi(value);
    else
        cr_assert_fail("unknown key '%s'", key);
}

/* A golden file: comment lines, lines of key=value, an empty line, the text. */
static request read_request(FILE *file)
{
    request r = {.pipelined = true};
    char line[1024];
    while (fgets(line, sizeof line, file) && line[0] != '\n') {
        if (line[0] == '#')
            continue;
        char *state = NULL;
        for (char *word = strtok_r(line, " \n", &state); word;
             word = strtok_r(NULL, " \n", &state)) {
            char *value = strchr(word, '=');
            cr_assert_not_null(value, "'%s' is not key=value", word);
            *value = '\0';
            set_field(&r, word, value + 1);
        }
    }
    return r;
}

typedef void format_fn(const request *r, const char *path, char *text, size_t text_size);

static void check_golden(const char *path, format_fn *format)
{
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "cannot open %s", path);
    request r = read_request(file);
    char want[4096], got[4096];
    size_t length = fread(want, 1, sizeof want - 1, file);
    want[length] = '\0';
    fclose(file);
    format(&r, path, got, sizeof got);
    cr_assert_str_eq(got, want, "%s: got\n%s", path, got);
}

static void check_all_golden(const char *suffix, size_t least, format_fn *format)
{
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/../golden/*.%s", getenv("JASK_TEST_SHARED"), suffix);
    glob_t found;
    cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "nothing matches %s", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_golden(found.gl_pathv[i], format);
    cr_assert_geq(found.gl_pathc, least);
    globfree(&found);
}

static jk_plan make_plan(const request *r, const jk_problem *problem, const char *path)
{
    jk_plan plan;
    jask_error err;
    cr_assert_eq(jk_plan_make(problem, &r->machine, r->planner, r->pipelined, &plan, &err), JASK_OK,
                 "%s: %s", path, err.msg);
    return plan;
}

static void format_plan(const request *r, const char *path, char *text, size_t text_size)
{
    jk_plan plan = make_plan(r, &r->problem, path);
    jk_plan_find_cure(&plan, &r->machine, r->pipelined, INT64_MAX);
    jk_plan_format(&plan, false, text, text_size);
}

Test(planner_text, plans_for_described_machines_are_as_they_were)
{
    check_all_golden("plan", 8, format_plan);
}

/* Of both gradients of the product, each added to one that there is where read_c says so. */
static void format_joint(const request *r, const char *path, char *text, size_t text_size)
{
    const jk_problem *p = &r->problem;
    int bytes = p->c_bytes;
    jk_joint_side side = {
        .bytes = bytes, .gradient_bytes = bytes, .adds = p->read_c, .before_bytes = bytes};
    const jk_joint_problem problem = {.m = p->m,
                                      .n = p->n,
                                      .k = p->k,
                                      .bytes = bytes,
                                      .sum_bytes = bytes,
                                      .g_bytes = bytes,
                                      .side = {side, side}};
    jk_problem da = *p, db = *p;
    da.n = db.m = p->k;
    da.k = p->n;
    db.k = p->m;
    jk_plan apart[2] = {make_plan(r, &da, path), make_plan(r, &db, path)};
    jk_joint plan;
    cr_assert(jk_joint_make(&problem, &r->machine, r->planner, r->pipelined, &plan), "%s", path);
    for (int i = 0; i < 2; i++) {
        plan.apart.h2d_bytes += apart[i].h2d_bytes;
        plan.apart.d2h_bytes += apart[i].d2h_bytes;
        plan.apart_seconds += apart[i].seconds;
    }
    cr_assert(jk_joint_is_better(&plan), "%s: two products are better", path);
    jk_joint_format(&plan, false, text, text_size);
}

Test(planner_text, joint_plans_for_described_machines_are_as_they_were)
{
    check_all_golden("joint", 4, format_joint);
}

static jk_plan sample_plan(void)
{
    return (jk_plan){
        .problem = {.m = 30, .n = 20, .k = 50, .a_bytes = 4, .b_bytes = 4, .c_bytes = 8},
        .planner = JK_PLANNER_BYTES,
        .schedule = JK_SCHEDULE_C_STATIONARY,
        .order = JK_ORDER_JI,
        .serpentine = true,
        .bm = 10,
        .bn = 20,
        .bk = 25,
        .mt = 3,
        .tiles = 3,
        .nt = 1,
        .kt = 2,
        .a_slots = 2,
        .b_slots = 2,
        .c_slots = 1,
        .slot_align = 64,
        .steps = 6,
        .h2d_pages = 8,
        .d2h_pages = 3,
        .h2d_bytes = 10000,
        .d2h_bytes = 4800,
        .file_read_bytes = 10000,
        .file_write_bytes = 4800,
        .peak_bytes = 7744,
        .budget_bytes = UINT64_MAX,
        .lower_bound_bytes = 14800,
        .seconds = 1234567.8901234,
        .stage_seconds = {1, 2, 3, 4.5, 0.25},
        .compute_bound_budget = 9663676416,
    };
}

static const char sample_json[] =
    "{\"planner\": \"bytes\", \"schedule\": \"c-stationary\", \"m\": 30, \"n\": 20, \"k\": 50, "
    "\"batches\": 1, "
    "\"bm\": 10, \"bn\": 20, \"bk\": 25, \"tiles\": 3, \"steps\": 6, \"order\": \"ji\", "
    "\"a_slots\": 2, \"b_slots\": 2, \"c_slots\": 1, \"slab\": 0, \"h2d_bytes\": 10000, "
    "\"h2d_pages\": 8, "
    "\"d2h_bytes\": 4800, \"d2h_pages\": 3, \"file_read_bytes\": 10000, "
    "\"file_write_bytes\": 4800, \"lower_bound_bytes\": 14800, \"peak_bytes\": 7744, "
    "\"budget_bytes\": 18446744073709551615, \"seconds\": 1234567.890123, "
    "\"stage_seconds\": {\"products\": 1.000000, \"up\": 2.000000, \"down\": 3.000000, "
    "\"read\": 4.500000, \"write\": 0.250000}, \"bottleneck\": \"read\", "
    "\"compute_bound_budget_bytes\": 9663676416, \"compute_bound_host_budget_bytes\": null}";

Test(planner_text, says_that_sums_are_made_in_order)
{
    jk_plan plan = sample_plan();
    char text[2048];
    jk_plan_format(&plan, false, text, sizeof text);
    cr_assert_null(strstr(text, "\nsums "), "%s", text);
    plan.problem.slab = 25;
    jk_plan_format(&plan, false, text, sizeof text);
    cr_assert_not_null(strstr(text, "\nsums     deterministic, in ascending slabs of 25\n"), "%s",
                       text);
    jk_plan_format(&plan, true, text, sizeof text);
    cr_assert_not_null(strstr(text, "\"slab\": 25, "), "%s", text);
}

/* What binds, and what helps. */
Test(planner_text, says_what_binds_and_what_would_help)
{
    jk_plan plan = sample_plan();
    char text[2048];
    jk_plan_format(&plan, false, text, sizeof text);
    cr_assert_not_null(strstr(text,
                              "\nlimit    disk-bound, reading; compute-bound from a budget of "
                              "9.00 GiB\n"),
                       "%s", text);
    plan.compute_bound_budget = 0;
    jk_plan_format(&plan, false, text, sizeof text);
    cr_assert_not_null(
        strstr(text, "\nlimit    disk-bound, reading; a larger budget does not help\n"));
    jk_plan_format(&plan, true, text, sizeof text);
    cr_assert_not_null(strstr(text, "\"compute_bound_budget_bytes\": null, "));
    plan.compute_bound_host_budget = (uint64_t)9 << 30;
    jk_plan_format(&plan, false, text, sizeof text);
    cr_assert_not_null(strstr(
        text, "\nlimit    disk-bound, reading; compute-bound from a host budget of 9.00 GiB\n"));
    jk_plan_format(&plan, true, text, sizeof text);
    cr_assert_not_null(strstr(text, "\"compute_bound_host_budget_bytes\": 9663676416}"));
    plan.compute_bound_host_budget = 0;
    plan.stage_seconds[JK_STAGE_PRODUCTS] = 5;
    jk_plan_format(&plan, false, text, sizeof text);
    cr_assert_not_null(strstr(text, "\nlimit    compute-bound\n"));
}

/* A plan with the budget that is named is bound by its products; with a quarter less it is not. */
Test(planner_text, the_budget_that_cures_does)
{
    static const double disks[] = {1e9, 12e9, 30e9};
    int cured = 0;
    for (int i = 0; i < 3 * 4; i++) {
        int64_t n = (int64_t)8192 << i / 3;
        jk_problem p = {.m = n, .n = n, .k = n, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
        jk_machine machine = {.device_bytes = 8 << 20,
                              .flops = 51e12,
                              .h2d = 55e9,
                              .d2h = 55e9,
                              .disk_read = disks[i % 3],
                              .disk_write = 30e9,
                              .device_memory = 4e12};
        jk_plan plan;
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_BYTES, true, &plan, NULL), JASK_OK);
        cr_assert_neq(jk_plan_bottleneck(&plan), JK_STAGE_PRODUCTS);
        jk_plan_find_cure(&plan, &machine, true, INT64_MAX);
        uint64_t budget = plan.compute_bound_budget;
        machine.device_bytes = budget > 0 ? budget : INT64_MAX;
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_BYTES, true, &plan, NULL), JASK_OK);
        cr_assert_eq(jk_plan_bottleneck(&plan) == JK_STAGE_PRODUCTS, budget > 0);
        if (budget == 0)
            continue;
        machine.device_bytes = budget / 4 * 3;
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_BYTES, true, &plan, NULL), JASK_OK);
        cr_assert_neq(jk_plan_bottleneck(&plan), JK_STAGE_PRODUCTS);
        cured++;
    }
    cr_assert(cured >= 3 && cured <= 10, "%d cured", cured);
}

/* AUTO may read more than there is time for, a little, where rows are then long: a plan of the same budget
 * that does not is no reason to name it. */
Test(planner_text, a_cure_is_more_than_there_is)
{
    jk_problem p = {.m = 16384, .n = 16384, .k = 16384, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    int read_bound = 0;
    for (double disk = 50e6; disk < 1e9; disk *= 1.02) {
        jk_machine machine = {.device_bytes = 256 << 20,
                              .flops = 180e9,
                              .h2d = 8e9,
                              .d2h = 8e9,
                              .disk_read = disk,
                              .disk_write = 1e9,
                              .runs = 2e5,
                              .device_memory = 20e9};
        jk_plan plan, other;
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_AUTO, true, &plan, NULL), JASK_OK);
        jk_plan_find_cure(&plan, &machine, true, INT64_MAX);
        uint64_t cure = plan.compute_bound_budget;
        cr_assert(cure == 0 || cure > machine.device_bytes, "%g bytes a second", disk);
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_BYTES, true, &other, NULL), JASK_OK);
        read_bound += jk_plan_bottleneck(&plan) == JK_STAGE_READ &&
                      jk_plan_bottleneck(&other) == JK_STAGE_PRODUCTS;
    }
    cr_assert_gt(read_bound, 0, "no such case is among these");
}

Test(planner_text, json_has_every_number_exactly)
{
    jk_plan plan = sample_plan();
    char text[2048];
    cr_assert_eq(jk_plan_format(&plan, true, text, sizeof text), sizeof sample_json - 1);
    cr_assert_str_eq(text, sample_json);
}

Test(planner_text, is_cut_off_as_snprintf_cuts)
{
    jk_plan plan = sample_plan();
    for (int json = 0; json <= 1; json++) {
        char whole[2048];
        size_t length = jk_plan_format(&plan, json, whole, sizeof whole);
        cr_assert_eq(strlen(whole), length);
        cr_assert_eq(jk_plan_format(&plan, json, NULL, 0), length);
        for (size_t size = 1; size <= length + 1; size++) {
            char *text = malloc(size);
            cr_assert_eq(jk_plan_format(&plan, json, text, size), length);
            cr_assert_eq(strlen(text), size - 1);
            cr_assert_eq(memcmp(text, whole, size - 1), 0);
            free(text);
        }
    }
}

/* Durations and sizes pick their unit; the locale has no say in the decimal point. */
Test(planner_text, units_fit_the_numbers_in_any_locale)
{
    static const struct {
        double seconds;
        const char *text;
    } times[] = {
        {0, "0.00 us"},       {1e-6, "1.00 us"},     {0.0019994, "1999.00 us"},
        {0.002, "2.00 ms"},   {1.999, "1999.00 ms"}, {2.345678, "2.35 s"},
        {119.99, "119.99 s"}, {120, "2.00 min"},     {7199, "119.98 min"},
        {9000, "2.50 h"},     {172800, "2.00 days"}, {1e30, "11574074.07 days"},
    };
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {1023, "memory   1023 bytes of"},
        {1024, "memory   1.00 KiB (1024 bytes) of"},
        {1048575, "memory   1024.00 KiB (1048575 bytes) of"},
        {1048576, "memory   1.00 MiB (1048576 bytes) of"},
        {(uint64_t)3 << 29, "memory   1.50 GiB (1610612736 bytes) of"},
        {UINT64_MAX, "memory   16.00 EiB (18446744073709551615 bytes) of"},
    };
    const char *comma = setlocale(LC_NUMERIC, "de_DE.UTF-8");
    cr_log_info("decimal comma: %s", comma ? "yes" : "no such locale here");
    jk_plan plan = sample_plan();
    char text[2048], want[128];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        plan.seconds = times[i].seconds;
        jk_plan_format(&plan, false, text, sizeof text);
        snprintf(want, sizeof want, "time     %s predicted\n", times[i].text);
        cr_assert_not_null(strstr(text, want), "%s is not in\n%s", want, text);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        plan.peak_bytes = sizes[i].bytes;
        jk_plan_format(&plan, false, text, sizeof text);
        cr_assert_not_null(strstr(text, sizes[i].text), "%s is not in\n%s", sizes[i].text, text);
    }
}
