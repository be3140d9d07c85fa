#include "planner/blocks.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 20261130;

static int64_t rnd(int64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

/* Dense strides for the extents that the operand has, in an order of the dimensions. */
static void random_operand(jk_blocks_problem *p, jk_blocks_operand *o, bool whole)
{
    static const int sizes[] = {1, 2, 4, 8, 16};
    int64_t stride = 1;
    bool fortran = rnd(2);
    o->bytes = sizes[rnd(5)];
    for (int i = 0; i < p->ndim; i++) {
        int d = fortran ? i : p->ndim - 1 - i;
        bool has = p->shape[d] > 1 && (whole || rnd(3) > 0);
        o->strides[d] = has ? stride : 0;
        stride *= has ? p->shape[d] : 1;
    }
    if (rnd(2))
        o->spread_bytes = sizes[rnd(5)];
}

static jk_blocks_problem random_problem(void)
{
    jk_blocks_problem p = {.ndim = (int)rnd(6)};
    for (int d = 0; d < p.ndim; d++)
        p.shape[d] = 1 + rnd(p.ndim > 3 ? 9 : 40);
    random_operand(&p, &p.output, true);
    p.output.spread_bytes = 0;
    random_operand(&p, &p.input[0], rnd(2));
    if (rnd(3) > 0)
        random_operand(&p, &p.input[1], rnd(2));
    return p;
}

static int64_t elements(const jk_blocks_problem *p)
{
    int64_t count = 1;
    for (int d = 0; d < p->ndim; d++)
        count *= p->shape[d];
    return count;
}

/* For each element of the output, which ones of the inputs it is made from. */
static void fill_map(const jk_blocks_problem *p, int64_t (*map)[2])
{
    for (int64_t e = 0; e < elements(p); e++) {
        int64_t rest = e, at[3] = {0};
        for (int d = p->ndim - 1; d >= 0; d--) {
            int64_t i = rest % p->shape[d];
            rest /= p->shape[d];
            at[0] += i * p->input[0].strides[d];
            at[1] += i * p->input[1].strides[d];
            at[2] += i * p->output.strides[d];
        }
        map[at[2]][0] = at[0];
        map[at[2]][1] = at[1];
    }
}

Test(planner_blocks, fewer_dimensions_say_the_same)
{
    for (int round = 0; round < 500; round++) {
        jk_blocks_problem p = random_problem(), q = p;
        size_t bytes = (size_t)elements(&p) * sizeof(int64_t[2]);
        int64_t(*before)[2] = malloc(bytes), (*after)[2] = malloc(bytes);
        jk_blocks_simplify(&q);
        cr_assert_eq(elements(&p), elements(&q));
        for (int d = 0; d < q.ndim; d++) {
            cr_assert_gt(q.shape[d], 1);
            cr_assert(d == 0 || q.output.strides[d] < q.output.strides[d - 1]);
        }
        fill_map(&p, before);
        fill_map(&q, after);
        cr_assert_arr_eq(before, after, bytes, "round %d", round);
        free(before);
        free(after);
    }
}

Test(planner_blocks, dense_arrays_of_one_order_are_one_dimension)
{
    jk_blocks_problem p = {.ndim = 4, .shape = {3, 1, 4, 5}};
    static const int64_t c[] = {20, 0, 5, 1}, f[] = {1, 0, 3, 12};
    p.output.bytes = p.input[0].bytes = 4;
    memcpy(p.output.strides, f, sizeof f);
    memcpy(p.input[0].strides, f, sizeof f);
    jk_blocks_simplify(&p);
    cr_assert_eq(p.ndim, 1);
    cr_assert_eq(p.shape[0], 60);
    p = (jk_blocks_problem){.ndim = 4, .shape = {3, 1, 4, 5}};
    p.output.bytes = p.input[0].bytes = 4;
    memcpy(p.output.strides, c, sizeof c);
    memcpy(p.input[0].strides, f, sizeof f);
    jk_blocks_simplify(&p);
    cr_assert_eq(p.ndim, 3);
}

/* Windows that are brought, block by block, and the elements of the output, each once. */
static void replay(const jk_blocks *plan)
{
    uint64_t read = 0, written = 0;
    int64_t loads[JK_BLOCKS_INPUTS] = {0};
    char *seen = calloc((size_t)elements(&plan->problem), 1);
    for (int64_t b = 0; b < plan->blocks; b++) {
        jk_box box = jk_blocks_box(plan, b);
        int64_t n = jk_box_elems(plan, box.len);
        for (int i = 0; i < JK_BLOCKS_INPUTS; i++) {
            const jk_blocks_operand *o = &plan->problem.input[i];
            if (o->bytes == 0 || b % jk_blocks_share(plan, o) != 0)
                continue;
            loads[i]++;
            read += (uint64_t)(jk_window_elems(plan, o, box.len) * o->bytes);
            cr_assert_leq((size_t)(jk_window_elems(plan, o, box.len) * o->bytes),
                          jk_blocks_window_bytes(plan, o));
        }
        written += (uint64_t)(n * plan->problem.output.bytes);
        for (int64_t e = 0; e < n; e++) {
            int64_t rest = e, at = 0;
            for (int d = plan->problem.ndim - 1; d >= 0; d--) {
                at += (box.lo[d] + rest % box.len[d]) * plan->problem.output.strides[d];
                rest /= box.len[d];
            }
            seen[at]++;
        }
    }
    for (int64_t e = 0; e < elements(&plan->problem); e++)
        cr_assert_eq(seen[e], 1);
    free(seen);
    cr_assert_eq(read, plan->file_read_bytes);
    cr_assert_eq(written, plan->file_write_bytes);
    cr_assert_eq(plan->stores, plan->blocks);
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        cr_assert_eq(loads[i], plan->loads[i]);
}

Test(planner_blocks, what_is_predicted_is_what_blocks_add_up_to)
{
    int many = 0;
    for (int round = 0; round < 400; round++) {
        jk_blocks_problem p = random_problem();
        jk_blocks_machine machine = {.bytes = 20 << 12, .slots = 1 + (int)rnd(3)};
        jk_blocks plan;
        jask_error err;
        jk_blocks_simplify(&p);
        cr_assert_eq(jk_blocks_make(&p, false, &machine, &plan, &err), JASK_OK, "%s", err.msg);
        cr_assert_leq(plan.peak_bytes, machine.bytes);
        many += plan.blocks > 1;
        replay(&plan);
    }
    cr_assert_gt(many, 20);
}

/* A row that is added to every row of a matrix is read once, also when rows come one by one. */
Test(planner_blocks, a_window_that_stays_is_brought_once)
{
    jk_blocks_problem p = {.ndim = 2, .shape = {1000, 2000}};
    jk_blocks_machine machine = {.bytes = 1 << 20, .slots = 3};
    jk_blocks plan;
    p.output = (jk_blocks_operand){.bytes = 4, .strides = {2000, 1}};
    p.input[0] = (jk_blocks_operand){.bytes = 4, .strides = {2000, 1}};
    p.input[1] = (jk_blocks_operand){.bytes = 4, .spread_bytes = 4, .strides = {0, 1}};
    cr_assert_eq(jk_blocks_make(&p, false, &machine, &plan, NULL), JASK_OK);
    cr_assert_gt(plan.blocks, 10);
    cr_assert_eq(plan.box[1], 2000);
    cr_assert_eq(plan.loads[1], 1);
    cr_assert_eq(plan.file_read_bytes, 4 * (1000 * 2000 + 2000));
}

Test(planner_blocks, the_least_budget_works_and_one_byte_less_is_answered_with_it)
{
    jk_blocks_problem p = {.ndim = 1, .shape = {1000000}};
    jk_blocks_machine machine = {.slots = 3};
    jk_blocks plan;
    jask_error err;
    p.output = p.input[0] = p.input[1] = (jk_blocks_operand){.bytes = 8, .strides = {1}};
    machine.bytes = 9 * 4096 - 1;
    cr_assert_eq(jk_blocks_make(&p, false, &machine, &plan, &err), JASK_ERR_BUDGET);
    cr_assert_not_null(strstr(err.msg, "raise the memory budget to 36864"), "%s", err.msg);
    machine.bytes++;
    cr_assert_eq(jk_blocks_make(&p, false, &machine, &plan, &err), JASK_OK);
    cr_assert_eq(plan.file_read_bytes, 16000000);
}

Test(planner_blocks, huge_spaces_are_planned_and_none_is_counted_wrongly)
{
    jk_blocks_problem p = {.ndim = 1, .shape = {INT64_C(1) << 58}};
    jk_blocks_machine machine = {.bytes = 1 << 30, .slots = 3};
    jk_blocks plan;
    p.output = p.input[0] = p.input[1] = (jk_blocks_operand){.bytes = 16, .strides = {1}};
    cr_assert_eq(jk_blocks_make(&p, false, &machine, &plan, NULL), JASK_OK);
    cr_assert_eq(plan.file_read_bytes, UINT64_C(1) << 63);
    cr_assert_eq(jk_blocks_box(&plan, plan.blocks - 1).lo[0] +
                     jk_blocks_box(&plan, plan.blocks - 1).len[0],
                 INT64_C(1) << 58);
    cr_assert_eq(jk_blocks_make(&p, true, &machine, &plan, NULL), JASK_OK);
    cr_assert_eq(plan.blocks + plan.stores, 0);
}

Test(planner_blocks, a_plan_is_text_and_json)
{
    jk_blocks_problem p = {.ndim = 2, .shape = {1000, 2000}};
    jk_blocks_machine machine = {.bytes = 1 << 20, .slots = 3};
    jk_blocks plan;
    char text[600], part[10];
    p.output = (jk_blocks_operand){.bytes = 4, .strides = {2000, 1}};
    p.input[0] = (jk_blocks_operand){.bytes = 4, .spread_bytes = 4, .strides = {1, 1000}};
    cr_assert_eq(jk_blocks_make(&p, false, &machine, &plan, NULL), JASK_OK);
    jk_blocks_format(&plan, false, text, sizeof text);
    cr_assert_str_eq(text, "plan     blocks\n"
                           "space    1000 x 2000, in blocks of 128 x 292; 56 of them\n"
                           "files    read 7.63 MiB (8000000 bytes) in 56 windows, write 7.63 MiB "
                           "(8000000 bytes) in 56\n"
                           "memory   1022.00 KiB (1046528 bytes) of 1.00 MiB (1048576 bytes)\n");
    jk_blocks_format(&plan, true, text, sizeof text);
    cr_assert_eq(jk_blocks_format(&plan, true, part, sizeof part), strlen(text));
    cr_assert_str_eq(part, "{\"schedul");
}
