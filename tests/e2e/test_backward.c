/* Both gradients of a product at once, against each of them made alone: the same values. */
#include "e2e.h"
#include "random.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

TestSuite(backward, .init = e2e_init, .fini = e2e_cleanup, .timeout = 300);

/* Bytes of one of the real numbers that elements are made of, and how many an element is. */
static size_t part_bytes(jask_dtype dtype, int64_t *out_parts)
{
    bool is_complex = dtype == JASK_C64 || dtype == JASK_C128;
    *out_parts = is_complex ? 2 : 1;
    return jask_dtype_size(dtype) / (is_complex ? 2 : 1);
}

/* -2 to 2: so small that sums of hundreds of products are exact in f32. */
static void put_part(jask_dtype dtype, size_t bytes, int64_t value, char *out)
{
    static const uint16_t f16[] = {0, 0x3c00, 0x4000}, bf16[] = {0, 0x3f80, 0x4000};
    double wide = (double)value;
    float narrow = (float)value;
    uint16_t half = (dtype == JASK_F16 ? f16 : bf16)[value < 0 ? -value : value];
    half = (uint16_t)(half | (value < 0 ? 0x8000 : 0));
    memcpy(out, bytes == 8 ? (void *)&wide : bytes == 4 ? (void *)&narrow : (void *)&half, bytes);
}

/* For comparison alone: of two bytes their bits, where both zeros are one. */
static double get_part(size_t bytes, const char *in)
{
    double wide;
    float narrow;
    uint16_t half;
    memcpy(bytes == 8 ? (void *)&wide : bytes == 4 ? (void *)&narrow : (void *)&half, in, bytes);
    return bytes == 8 ? wide : bytes == 4 ? (double)narrow : half == 0x8000 ? 0 : half;
}

static jask_array *make(const char *name, jask_dtype dtype, bool fortran, int64_t rows,
                        int64_t cols, unsigned seed)
{
    int64_t shape[] = {rows, cols}, parts;
    size_t bytes = part_bytes(dtype, &parts);
    char *data = malloc((size_t)(rows * cols * parts) * bytes);
    jask_array *array;
    cr_assert_not_null(data);
    if (fortran && (dtype == JASK_F32 || dtype == JASK_F64)) {
        e2e_write(e2e_path(name), (e2e_form){dtype, true, seed % 2 == 0}, rows, cols, seed, NULL);
        array = e2e_open(e2e_path(name));
    } else {
        for (int64_t i = 0; i < rows * cols * parts; i++)
            put_part(dtype, bytes, e2e_value(seed, i, cols) / 4, data + (size_t)i * bytes);
        array = e2e_make(name, dtype, 2, shape, data);
    }
    free(data);
    return array;
}

typedef struct problem {
    jask_dtype dtype;
    int64_t m, n, k;
    bool fortran_a, fortran_b, fortran_g;
    uint64_t budget;
    const char *planner;
    bool pipelined;
    jask_dot_backward_args args; /* without names */
} problem;

static problem random_problem(void)
{
    static const jask_dtype dtypes[] = {JASK_F32,  JASK_F64, JASK_F16,
                                        JASK_BF16, JASK_C64, JASK_C128};
    problem p = {.dtype = dtypes[random_between(0, 5)],
                 .m = random_between(0, 3) ? random_between(150, 400) : random_between(1, 100),
                 .n = random_between(0, 3) ? random_between(150, 400) : random_between(1, 100),
                 .k = random_between(1, 40),
                 .fortran_a = random_between(0, 1),
                 .fortran_b = random_between(0, 1),
                 .fortran_g = random_between(0, 1),
                 .budget = (uint64_t)random_between(60 << 10, 120 << 10),
                 .planner = random_between(0, 1) ? "auto" : "bytes",
                 .pipelined = random_between(0, 4) > 0};
    jask_dot_backward_args_init(&p.args, sizeof p.args);
    p.args.alpha = (double)random_between(1, 3) - 4;
    p.args.transpose_a = (int)random_between(0, 2);
    p.args.transpose_b = (int)random_between(0, 2);
    /* A file of bf16 does not say that it is one. */
    p.args.accumulate_a = p.args.accumulate_b = p.dtype != JASK_BF16 && random_between(0, 2) == 0;
    return p;
}

typedef struct inputs {
    jask_array *a, *b, *g;
    int64_t shapes[2][2]; /* of A and B */
} inputs;

static inputs make_inputs(const problem *p)
{
    bool ta = p->args.transpose_a, tb = p->args.transpose_b;
    inputs in = {
        .shapes = {{ta ? p->k : p->m, ta ? p->m : p->k}, {tb ? p->n : p->k, tb ? p->k : p->n}}};
    in.a = make("a.npy", p->dtype, p->fortran_a, in.shapes[0][0], in.shapes[0][1], 1);
    in.b = make("b.npy", p->dtype, p->fortran_b, in.shapes[1][0], in.shapes[1][1], 2);
    in.g = make("g.npy", p->dtype, p->fortran_g, p->m, p->n, 3);
    return in;
}

/* What the gradients are added to: of the same values every time, dB's in Fortran order. */
static void make_before(const problem *p, const inputs *in)
{
    static const char *const names[] = {"da.npy", "db.npy"};
    for (int i = 0; p->args.accumulate_a && i < 2; i++)
        jask_array_close(make(names[i], p->dtype, i == 1, in->shapes[i][0], in->shapes[i][1],
                              (unsigned)(4 + i)));
}

static double *values_of(jask_array *array, int64_t *out_count)
{
    jask_array_info info;
    jask_error err;
    int64_t parts;
    jask_array_get_info(array, &info, sizeof info);
    char *data = malloc((size_t)info.data_bytes);
    cr_assert_eq(jask_array_read(array, 0, info.elements, data, &err), JASK_OK, "%s", err.msg);
    size_t bytes = part_bytes(info.dtype, &parts);
    *out_count = (int64_t)info.elements * parts;
    double *values = malloc((size_t)*out_count * sizeof *values);
    for (int64_t i = 0; i < *out_count; i++)
        values[i] = get_part(bytes, data + (size_t)i * bytes);
    free(data);
    jask_array_close(array);
    return values;
}

/* The gradients that are wanted, in one call. */
static jask_report run(jask_context *ctx, const problem *p, const inputs *in, bool want_a,
                       bool want_b, double *out[2], int64_t counts[2])
{
    jask_dot_backward_args args = p->args;
    jask_array *d[2] = {NULL, NULL};
    jask_report r = {.struct_size = sizeof r};
    jask_error err;
    if (p->args.accumulate_a) {
        args.da_output = want_a ? e2e_path("da.npy") : NULL;
        args.db_output = want_b ? e2e_path("db.npy") : NULL;
    }
    cr_assert_eq(jask_dot_backward(ctx, in->a, in->b, in->g, &args, want_a ? &d[0] : NULL,
                                   want_b ? &d[1] : NULL, &r, &err),
                 JASK_OK, "%s", err.msg);
    for (int i = 0; i < 2; i++)
        if (d[i])
            out[i] = values_of(d[i], &counts[i]);
    r.planned.disk_read_bytes = r.io.disk_read_bytes;
    r.planned.disk_write_bytes = r.io.disk_write_bytes;
    cr_assert_eq(memcmp(&r.planned, &r.io, sizeof r.io), 0, "counted and planned differ");
    cr_assert_eq(r.peak_device_bytes, r.plan.peak_bytes);
    cr_assert_leq(r.peak_device_bytes, r.budget_bytes);
    return r;
}

/* The plan that is shown is the one that was followed. */
static void check_plan(jask_context *ctx, const problem *p, const inputs *in, const jask_report *r)
{
    jask_plan *da, *db;
    jask_plan_info info;
    jask_dot_backward_args args = p->args;
    jask_error err;
    make_before(p, in);
    if (p->args.accumulate_a) {
        args.da_output = e2e_path("da.npy");
        args.db_output = e2e_path("db.npy");
    }
    cr_assert_eq(jask_dot_backward_plan(ctx, in->a, in->b, in->g, &args, &da, &db, &err), JASK_OK);
    jask_plan_get_info(da, &info, sizeof info);
    cr_assert_str_eq(info.schedule, r->plan.schedule);
    if (strcmp(info.schedule, "joint") == 0) {
        cr_assert_null(db);
        cr_assert_eq(memcmp(&info, &r->plan, sizeof info), 0);
    } else {
        cr_assert_not_null(db);
    }
    jask_plan_close(da);
    jask_plan_close(db);
}

/* How often gradients were made jointly, and with sums that were stored before they were finished. */
typedef struct tally {
    int joint, in_parts;
} tally;

static void compare(const problem *p, int round, tally *seen)
{
    jask_context *ctx = e2e_context(p->budget, p->planner, p->pipelined);
    inputs in = make_inputs(p);
    double *joint[2], *alone[2];
    int64_t counts[2], counts_alone[2];
    make_before(p, &in);
    jask_report r = run(ctx, p, &in, true, true, joint, counts);
    bool joined = strcmp(r.plan.schedule, "joint") == 0;
    make_before(p, &in);
    jask_report a = run(ctx, p, &in, true, false, alone, counts_alone);
    jask_report b = run(ctx, p, &in, false, true, alone, counts_alone);
    uint64_t apart = a.io.h2d_bytes + a.io.d2h_bytes + b.io.h2d_bytes + b.io.d2h_bytes;
    if (joined)
        cr_assert_lt(r.io.h2d_bytes + r.io.d2h_bytes, apart);
    else
        cr_assert_eq(r.io.h2d_bytes + r.io.d2h_bytes, apart);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(counts[i], counts_alone[i]);
        for (int64_t e = 0; e < counts[i]; e++)
            if (joint[i][e] != alone[i][e])
                cr_assert_fail("round %d: d%c (%" PRId64 ") is %g, not %g, %s %" PRId64
                               " x %" PRId64 " x %" PRId64,
                               round, "AB"[i], e, joint[i][e], alone[i][e],
                               jask_dtype_name(p->dtype), p -> m, p -> n, p -> k);
        free(joint[i]);
        free(alone[i]);
    }
    check_plan(ctx, p, &in, &r);
    jask_array_close(in.a);
    jask_array_close(in.b);
    jask_array_close(in.g);
    jask_context_close(ctx);
    int64_t results = p->k * (p->m + p->n) * (int64_t)jask_dtype_size(p->dtype);
    seen->joint += joined;
    seen->in_parts += joined && r.io.file_write_bytes > (uint64_t)results;
}

/* Sums of f16 and bf16 that are stored before they are finished go to a file of f32. */
Test(backward, joint_gradients_are_those_of_two_products)
{
    tally seen = {0, 0};
    random_state = 20261201; /* from which enough come that are made in parts */
    for (int round = 0; round < 150; round++) {
        problem p = random_problem();
        compare(&p, round, &seen);
    }
    cr_assert_geq(seen.joint, 60);
    cr_assert_geq(seen.in_parts, 20, "%d of %d", seen.in_parts, seen.joint);
}
