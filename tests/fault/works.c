#include "works.h"

#include <criterion/criterion.h>
#include <string.h>

static jask_status open_context(const scene *s, jask_context **out, jask_error *err)
{
    jask_options options;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = s->direct ? LONG_BUDGET : BUDGET;
    options.io = s->direct ? "direct" : NULL;
    options.planner = s->planner;
    options.sync = s->sync ? 1 : -1;
    options.scratch_dir = "scratch";
    options.device = "host";
    options.io_threads = 2;
    return jask_context_open(&options, out, err);
}

static jask_status keep_result(const jask_array *d, outcome *out)
{
    jask_array_info info;
    jask_array_get_info(d, &info, sizeof info);
    out->bytes = (size_t)info.data_bytes;
    return jask_array_read(d, 0, info.elements, out->result, &out->err);
}

static jask_status verify(jask_context *ctx, const jask_array *a, const jask_array *b,
                          const jask_array *d, const jask_dot_args *args, outcome *out)
{
    jask_verification found = {.struct_size = sizeof found};
    jask_status st = jask_dot_verify(ctx, a, b, d, args, &found, sizeof found, &out->err);
    if (!st && !found.passed)
        cr_assert_fail("a wrong result was given out");
    return st;
}

static jask_status differentiate(jask_context *ctx, const jask_array *a, const jask_array *b,
                                 const jask_array *g, jask_error *err)
{
    jask_dot_backward_args args;
    jask_report report = {.struct_size = sizeof report};
    jask_status st;
    jask_dot_backward_args_init(&args, sizeof args);
    args.transpose_b = 1;
    args.da_output = "d.npy";
    args.db_output = "e.npy";
    st = jask_dot_backward(ctx, a, b, g, &args, NULL, NULL, &report, err);
    if (!st && (strcmp(report.plan.schedule, "joint") != 0 ||
                report.io.file_write_bytes <= 2 * WIDE * FLAT_K * sizeof(double)))
        cr_assert_fail("the plan is not one whose sums are stored in parts");
    return st;
}

static const char *target(const scene *s)
{
    return !s->named ? NULL : s->links ? "link.npy" : "d.npy";
}

static jask_status multiply(const scene *s, jask_context *ctx, jask_array *const *x,
                            jask_array **out_d, outcome *out)
{
    jask_dot_args args;
    jask_status st;
    jask_dot_args_init(&args, sizeof args);
    args.alpha = s->skips ? 0 : 1;
    args.resume = s->resumes;
    args.beta = s->adds ? 0.5 : 0;
    args.transpose_b = 1;
    args.output = target(s);
    args.c = s->gradients ? NULL : x[2];
    if (s->gradients)
        return differentiate(ctx, x[0], x[1], x[2], &out->err);
    st = jask_dot(ctx, x[0], x[1], &args, out_d, NULL, &out->err);
    return !st && s->verifies ? verify(ctx, x[0], x[1], *out_d, &args, out) : st;
}

/* C, in Fortran order and big-endian, plus B, a row. */
static jask_status add(const scene *s, jask_context *ctx, jask_array *const *x, jask_array **out_d,
                       outcome *out)
{
    jask_add_args args;
    jask_add_args_init(&args, sizeof args);
    args.in_place = s->work == SUM_IN_PLACE;
    args.output = args.in_place ? NULL : target(s);
    return jask_add(ctx, x[2], x[1], &args, args.in_place ? NULL : out_d, NULL, &out->err);
}

/* C is the gradient of A + B: dA is twice that, dB a sum over rows, in scratch. */
static jask_status differentiate_sum(const scene *s, jask_context *ctx, jask_array *const *x,
                                     jask_array **out_d, outcome *out)
{
    jask_add_backward_args args;
    jask_array *db = NULL;
    jask_status st;
    jask_add_backward_args_init(&args, sizeof args);
    args.da = target(s);
    args.alpha = 2;
    st = jask_add_backward(ctx, x[0], x[1], x[2], &args, out_d, &db, NULL, &out->err);
    jask_array_close(db);
    return st;
}

static jask_status reduce(const scene *s, jask_context *ctx, jask_array *const *x,
                          jask_array **out_d, outcome *out)
{
    jask_reduce_args args;
    jask_reduce_args_init(&args, sizeof args);
    args.axis = 0;
    args.output = target(s);
    return jask_reduce(ctx, x[2], &args, out_d, NULL, &out->err);
}

void work_perform(const scene *s, outcome *out)
{
    static jask_status (*const works[])(const scene *, jask_context *, jask_array *const *,
                                        jask_array **, outcome *) = {
        [PRODUCT] = multiply, [SUM] = add,
        [SUM_IN_PLACE] = add, [SUM_GRADIENTS] = differentiate_sum,
        [REDUCTION] = reduce,
    };
    const char *names[] = {"a.npy", "b.npy", "c.npy"};
    jask_context *ctx = NULL;
    jask_array *x[3] = {NULL}, *d = NULL;
    jask_status st = open_context(s, &ctx, &out->err);
    if (s->work == SUM_IN_PLACE)
        names[2] = "d.npy";
    if (s->work == PRODUCT && !s->adds && !s->gradients)
        names[2] = NULL;
    for (int i = 0; !st && i < 3; i++)
        if (names[i])
            st = jask_array_open(names[i], &x[i], &out->err);
    if (!st)
        st = works[s->work](s, ctx, x, &d, out);
    if (!st && !s->named)
        st = keep_result(d, out);
    jask_array_close(d);
    for (int i = 2; i >= 0; i--)
        jask_array_close(x[i]);
    jask_context_close(ctx);
    out->status = st;
}
