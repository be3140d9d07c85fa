/* The reference's rules for sizes, against what the reference answers (tests/data). */
#include "planner/plan.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_data(const char *name)
{
    char path[4096];
    const char *dir = getenv("JASK_TEST_SHARED");
    cr_assert_not_null(dir, "JASK_TEST_SHARED must name tests/data");
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static jask_dtype dtype_of(const char *numpy_name)
{
    static const struct {
        const char *name;
        jask_dtype dtype;
    } rows[] = {
        {"bool", JASK_U8},       {"uint8", JASK_U8},        {"int8", JASK_I8},
        {"int16", JASK_I16},     {"int32", JASK_I32},       {"int64", JASK_I64},
        {"float16", JASK_F16},   {"float32", JASK_F32},     {"float64", JASK_F64},
        {"complex64", JASK_C64}, {"complex128", JASK_C128},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, numpy_name) == 0)
            return rows[i].dtype;
    }
    cr_assert_fail("unknown type %s", numpy_name);
    return JASK_DTYPE_NONE;
}

static jask_phase phase_of(const char *name)
{
    return strcmp(name, "backward") == 0 ? JASK_BACKWARD : JASK_FORWARD;
}

static int parse_shape(char *text, int64_t *shape)
{
    int ndim = 0;
    char *state = NULL;
    for (char *part = strtok_r(text, "x", &state); part; part = strtok_r(NULL, "x", &state))
        shape[ndim++] = strtoll(part, NULL, 10);
    return ndim;
}

Test(planner_page_shape, agrees_with_the_reference_on_every_row)
{
    FILE *file = open_data("page_shape.tsv");
    char line[1024];
    int rows = 0;
    while (fgets(line, sizeof line, file)) {
        uint64_t budget;
        int inputs, pipelined;
        char dtype[32], phase[16], shape_text[256], want_text[256];
        if (line[0] == '#')
            continue;
        int fields = sscanf(line, "%" SCNu64 "\t%31s\t%255s\t%d\t%15s\t%d\t%*s\t%255s", &budget,
                            dtype, shape_text, &inputs, phase, &pipelined, want_text);
        cr_assert_eq(fields, 7, "unreadable row: %s", line);

        int64_t shape[32], want[32], got[32] = {0};
        int ndim = parse_shape(shape_text, shape);
        cr_assert_eq(parse_shape(want_text, want), ndim);
        jask_status st = jask_page_shape(budget, dtype_of(dtype), ndim, shape, inputs,
                                         phase_of(phase), pipelined, got, NULL);
        cr_assert_eq(st, JASK_OK);
        cr_assert_eq(memcmp(got, want, (size_t)ndim * sizeof *got), 0, "wrong for %s", line);
        rows++;
    }
    fclose(file);
    cr_assert_eq(rows, 5584);
}

Test(planner_page_shape, counts_peak_blocks_as_the_reference_does)
{
    FILE *file = open_data("peak_blocks.tsv");
    char line[256], phase[16];
    int rows = 0, inputs, pipelined, blocks;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        cr_assert_eq(sscanf(line, "%d\t%15s\t%d\t%d", &inputs, phase, &pipelined, &blocks), 4);
        cr_assert_eq(jask_peak_blocks(inputs, phase_of(phase), pipelined), blocks, "%s", line);
        rows++;
    }
    fclose(file);
    cr_assert_eq(rows, 36);
    cr_assert_eq(jask_peak_blocks(-3, JASK_FORWARD, 0), 2);
    cr_assert_eq(jask_peak_blocks(INT32_MAX, JASK_BACKWARD, 1), 4 * (int64_t)INT32_MAX + 4);
}

Test(planner_page_shape, aligns_down_to_whole_pages)
{
    static const uint64_t rows[][2] = {{0, 0},       {1, 0},       {4095, 0},
                                       {4096, 4096}, {4097, 4096}, {UINT64_MAX, UINT64_MAX - 4095}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_assert_eq(jask_align_to_os_page(rows[i][0]), rows[i][1]);
}

Test(planner_page_shape, holds_its_share_for_extreme_budgets_and_ranks)
{
    int64_t shape[32], got[32];
    for (int ndim = 1; ndim <= 32; ndim++) {
        for (int bit = 12; bit < 64; bit++) {
            uint64_t budget = ((uint64_t)1 << bit) + 12345;
            for (int d = 0; d < ndim; d++)
                shape[d] = INT64_MAX;
            cr_assert_eq(
                jask_page_shape(budget, JASK_F32, ndim, shape, 2, JASK_FORWARD, 0, got, NULL),
                JASK_OK);
            long double page = 4;
            for (int d = 0; d < ndim; d++)
                page *= (long double)got[d];
            long double share = (long double)(budget / 4 > 4096 ? budget / 4 : 4096);
            cr_assert(page <= share, "ndim %d, budget %" PRIu64, ndim, budget);
        }
    }
}

Test(planner_page_shape, refuses_nonsense_and_leaves_the_output_alone)
{
    int64_t good[2] = {8, 8}, bad[2] = {8, -1}, got[2] = {77, 77};
    jask_error err;
    cr_assert_eq(jask_page_shape(1 << 20, JASK_DTYPE_NONE, 2, good, 2, JASK_FORWARD, 0, got, &err),
                 JASK_ERR_ARG);
    cr_assert_eq(jask_page_shape(1 << 20, JASK_F32, 0, good, 2, JASK_FORWARD, 0, got, &err),
                 JASK_ERR_ARG);
    cr_assert_eq(jask_page_shape(1 << 20, JASK_F32, 33, good, 2, JASK_FORWARD, 0, got, &err),
                 JASK_ERR_ARG);
    cr_assert_eq(jask_page_shape(1 << 20, JASK_F32, 2, bad, 2, JASK_FORWARD, 0, got, &err),
                 JASK_ERR_ARG);
    cr_assert_not_null(strstr(err.msg, "-1"), "%s", err.msg);
    cr_assert(got[0] == 77 && got[1] == 77);
}

Test(planner_page_shape, clips_to_empty_extents)
{
    int64_t shape[2] = {0, 5}, got[2];
    cr_assert_eq(jask_page_shape(1 << 20, JASK_F32, 2, shape, 2, JASK_FORWARD, 0, got, NULL),
                 JASK_OK);
    cr_assert(got[0] == 0 && got[1] == 5);
}

/* The slot counts of the page schedule, and that it copies both pages for every step. */
Test(planner_page_shape, the_page_schedule_is_the_references)
{
    jk_problem p = {.m = 500, .n = 300, .k = 400, .a_bytes = 4, .b_bytes = 4, .c_bytes = 4};
    for (int pipelined = 0; pipelined <= 1; pipelined++) {
        jk_machine machine = {.device_bytes = 262144};
        jk_plan plan;
        cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_PAGE, pipelined, &plan, NULL), JASK_OK);
        int64_t shape[2] = {p.m, p.n}, page[2];
        jask_page_shape(262144, JASK_F32, 2, shape, 2, JASK_FORWARD, pipelined, page, NULL);
        cr_assert(plan.bm == page[0] && plan.bn == page[1] && plan.bk == page[0]);
        cr_assert(plan.order == JK_ORDER_IJ && !plan.serpentine);
        int64_t slots = pipelined ? 2 : 1;
        cr_assert(plan.a_slots == slots && plan.b_slots == slots && plan.c_slots == slots);
        for (int64_t s = 0; s < plan.steps; s++) {
            jk_step step = jk_plan_step(&plan, s);
            cr_assert(step.load_a && step.load_b);
        }
        cr_assert_eq(plan.h2d_pages, 2 * plan.steps);
    }
}

/* Each operand's page has its own rule for rounding; the tiles keep to all three shares. */
Test(planner_page_shape, square_pages_keep_to_their_share)
{
    static const int64_t extents[] = {1, 3, 50, 700};
    for (uint64_t budget = 32768; budget < 400000; budget += 1000) {
        for (int which = 0; which < 64; which++) {
            jk_problem p = {.m = extents[which % 4],
                            .n = extents[which / 4 % 4],
                            .k = extents[which / 16],
                            .a_bytes = 4,
                            .b_bytes = 4,
                            .c_bytes = 4};
            jk_machine machine = {.device_bytes = budget};
            jk_plan plan;
            cr_assert_eq(jk_plan_make(&p, &machine, JK_PLANNER_PAGE, true, &plan, NULL), JASK_OK);
            int64_t share = (int64_t)jask_align_to_os_page(budget / 8);
            cr_assert(4 * plan.bm * plan.bk <= share, "page of A");
            cr_assert(4 * plan.bk * plan.bn <= share, "page of B");
            cr_assert(4 * plan.bm * plan.bn <= share, "page of C");
        }
    }
}
