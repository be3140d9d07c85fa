/* Deterministic products: the bits of a result follow from its inputs, whatever budget, planner,
 * pipeline and threads made it, on the host and on the device that the environment names. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

TestSuite(deterministic, .init = e2e_init, .fini = e2e_cleanup);

static const char *const planners[] = {"auto", "bytes", "page"};
/* In KiB: below what a slab of the largest tiles takes, and then 1, 2, 4, ... 256 MiB. */
static const uint64_t budgets[] = {96,    256,   1024,  2048,   4096,  8192,
                                   16384, 32768, 65536, 131072, 262144};

typedef struct how {
    uint64_t budget_kib;
    const char *planner, *device;
    int pipelined, deterministic;
} how;

static const how reference = {65536, "auto", "host", 1, 1};

static jask_context *context(const how *h)
{
    jask_context *ctx = NULL;
    jask_options options;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = h->budget_kib << 10;
    options.host_budget_bytes = 1 << 20;
    options.planner = h->planner;
    options.device = h->device;
    options.pipeline = h->pipelined ? 1 : -1;
    options.deterministic = h->deterministic ? 1 : -1;
    options.sync = -1;
    options.allow_tmpfs = 1;
    options.scratch_dir = e2e_path(".");
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    return ctx;
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 0x100000001b3u;
    return hash;
}

/* Of all elements; closes the array. */
static uint64_t hash_of(jask_array *array)
{
    jask_array_info info;
    jask_error err;
    unsigned char *data;
    uint64_t hash;
    jask_array_get_info(array, &info, sizeof info);
    data = malloc((size_t)info.data_bytes + 1);
    cr_assert_not_null(data);
    cr_assert_eq(jask_array_read(array, 0, info.elements, data, &err), JASK_OK, "%s", err.msg);
    hash = hash_bytes(0xcbf29ce484222325u, data, (size_t)info.data_bytes);
    free(data);
    jask_array_close(array);
    return hash;
}

/* ---- inputs ---- */

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 11;
}

/* Finite numbers of any fraction and some exponents, one in three negative. */
static void put_random(jask_dtype dtype, unsigned char *to)
{
    uint64_t bits = random_bits(), sign = bits % 3 == 0;
    double wide = (sign ? -1 : 1) * (double)(bits % 1000003) / (double)(1 << bits % 12);
    float narrow = (float)wide;
    uint16_t half = (uint16_t)(sign << 15 | (12 + bits % 5) << 10 | (bits >> 20 & 0x3ff));
    uint16_t brain = (uint16_t)(sign << 15 | (124 + bits % 5) << 7 | (bits >> 20 & 0x7f));
    switch (dtype) {
    case JASK_F16:
        memcpy(to, &half, 2);
        return;
    case JASK_BF16:
        memcpy(to, &brain, 2);
        return;
    case JASK_F32:
    case JASK_C64:
        memcpy(to, &narrow, 4);
        return;
    case JASK_I8:
        to[0] = (unsigned char)bits;
        return;
    default:
        memcpy(to, &wide, 8);
    }
}

static jask_array *random_array(const char *name, jask_dtype dtype, int ndim, const int64_t *shape)
{
    size_t size = jask_dtype_size(dtype),
           real = dtype == JASK_C64 || dtype == JASK_C128 ? size / 2 : size;
    size_t bytes = size;
    unsigned char *data;
    jask_array *array;
    for (int d = 0; d < ndim; d++)
        bytes *= (size_t)shape[d];
    data = malloc(bytes);
    cr_assert_not_null(data);
    for (size_t at = 0; at < bytes; at += real)
        put_random(dtype, data + at);
    /* The library's default context makes it. */
    array = e2e_make(name, dtype, ndim, shape, data);
    free(data);
    return array;
}

/* ---- what is computed ---- */

enum { M = 150, N = 130, K = 1100, BATCHES = 3 };

typedef struct job {
    const char *name;
    jask_dtype dtype, out;
    int ndim_a, ndim_b;
    int64_t a[3], b[3];
    double alpha, beta;
    int transpose_a, transpose_b;
    bool gram, backward;
} job;

static const job jobs[] = {
    {.name = "f32", .dtype = JASK_F32, .ndim_a = 2, .ndim_b = 2, .a = {M, K}, .b = {K, N}},
    {.name = "f64",
     .dtype = JASK_F64,
     .ndim_a = 2,
     .ndim_b = 2,
     .a = {K, M},
     .b = {K, N},
     .transpose_a = 1,
     .alpha = 0.7,
     .beta = -0.3},
    {.name = "c64",
     .dtype = JASK_C64,
     .ndim_a = 2,
     .ndim_b = 2,
     .a = {M, K},
     .b = {N, K},
     .transpose_b = JASK_CONJUGATE_TRANSPOSE,
     .beta = 1},
    {.name = "c128",
     .dtype = JASK_C128,
     .ndim_a = 2,
     .ndim_b = 2,
     .a = {K, M},
     .b = {N, K},
     .transpose_a = 1,
     .transpose_b = 1,
     .beta = 0.3},
    {.name = "f16", .dtype = JASK_F16, .ndim_a = 2, .ndim_b = 2, .a = {M, K}, .b = {K, N}},
    {.name = "bf16, into f32",
     .dtype = JASK_BF16,
     .out = JASK_F32,
     .ndim_a = 2,
     .ndim_b = 2,
     .a = {M, K},
     .b = {K, N}},
    {.name = "i8", .dtype = JASK_I8, .ndim_a = 2, .ndim_b = 2, .a = {M, K}, .b = {K, N}},
    {.name = "batches",
     .dtype = JASK_F32,
     .ndim_a = 3,
     .ndim_b = 3,
     .a = {BATCHES, 70, K},
     .b = {BATCHES, K, 60}},
    {.name = "X'X",
     .dtype = JASK_F32,
     .ndim_a = 2,
     .ndim_b = 2,
     .a = {K, M},
     .b = {K, M},
     .transpose_a = 1,
     .gram = true},
    {.name = "matrix and vector",
     .dtype = JASK_F32,
     .ndim_a = 2,
     .ndim_b = 1,
     .a = {400, 3000},
     .b = {3000}},
    {.name = "vector and matrix",
     .dtype = JASK_F64,
     .ndim_a = 1,
     .ndim_b = 2,
     .a = {3000},
     .b = {3000, 300}},
    {.name = "vectors of f32",
     .dtype = JASK_F32,
     .ndim_a = 1,
     .ndim_b = 1,
     .a = {200003},
     .b = {200003}},
    {.name = "vectors of f64",
     .dtype = JASK_F64,
     .ndim_a = 1,
     .ndim_b = 1,
     .a = {200003},
     .b = {200003}},
    {.name = "thin", .dtype = JASK_F32, .ndim_a = 2, .ndim_b = 2, .a = {700, 2000}, .b = {2000, 3}},
    {.name = "gradients of a flat product",
     .dtype = JASK_F32,
     .ndim_a = 2,
     .ndim_b = 2,
     .a = {600, 20},
     .b = {20, 700},
     .backward = true},
    {.name = "gradients",
     .dtype = JASK_F32,
     .ndim_a = 2,
     .ndim_b = 2,
     .a = {M, 300},
     .b = {300, 600},
     .backward = true},
};

#define JOBS (sizeof jobs / sizeof *jobs)

typedef struct inputs {
    const job *job;
    jask_array *a, *b, *c; /* c: C, or dD */
} inputs;

/* The shape of the product, by asking for it. */
static jask_array *addend(const job *j, const jask_array *a, const jask_array *b)
{
    const how h = reference;
    jask_context *ctx = context(&h);
    jask_dot_args args;
    jask_array *d = NULL, *c;
    jask_array_info info;
    jask_error err;
    jask_dot_args_init(&args, sizeof args);
    args.transpose_a = j->transpose_a;
    args.transpose_b = j->transpose_b;
    args.dtype = j->out;
    cr_assert_eq(jask_matmul(ctx, a, b, &args, &d, NULL, &err), JASK_OK, "%s", err.msg);
    jask_array_get_info(d, &info, sizeof info);
    c = random_array("c.npy", info.dtype, info.ndim, info.shape);
    jask_array_close(d);
    jask_context_close(ctx);
    return c;
}

static inputs inputs_open(const job *j)
{
    inputs in = {.job = j};
    in.a = random_array("a.npy", j->dtype, j->ndim_a, j->a);
    in.b = j->gram ? in.a : random_array("b.npy", j->dtype, j->ndim_b, j->b);
    in.c = j->beta != 0 || j->backward ? addend(j, in.a, in.b) : NULL;
    return in;
}

static void inputs_close(inputs *in)
{
    jask_array_close(in->c);
    if (!in->job->gram)
        jask_array_close(in->b);
    jask_array_close(in->a);
}

static uint64_t gradients(jask_context *ctx, const inputs *in, jask_report *report)
{
    jask_dot_backward_args args;
    jask_array *da = NULL, *db = NULL;
    jask_error err;
    jask_dot_backward_args_init(&args, sizeof args);
    cr_assert_eq(jask_dot_backward(ctx, in->a, in->b, in->c, &args, &da, &db, report, &err),
                 JASK_OK, "%s", err.msg);
    return hash_of(da) ^ 3 * hash_of(db);
}

static uint64_t product(jask_context *ctx, const inputs *in, jask_report *report)
{
    const job *j = in->job;
    jask_dot_args args;
    jask_array *d = NULL;
    jask_error err;
    jask_dot_args_init(&args, sizeof args);
    args.alpha = j->alpha != 0 ? j->alpha : 1;
    args.beta = j->beta;
    args.c = in->c;
    args.transpose_a = j->transpose_a;
    args.transpose_b = j->transpose_b;
    args.dtype = j->out;
    cr_assert_eq(jask_matmul(ctx, in->a, in->b, &args, &d, report, &err), JASK_OK, "%s: %s",
                 j->name, err.msg);
    return hash_of(d);
}

static uint64_t run(const inputs *in, const how *h)
{
    jask_context *ctx = context(h);
    jask_report r = {.struct_size = sizeof r};
    uint64_t hash = in->job->backward ? gradients(ctx, in, &r) : product(ctx, in, &r);
    bool exact = r.io.h2d_bytes == r.plan.h2d_bytes && r.io.h2d_pages == r.plan.h2d_pages &&
                 r.io.d2h_bytes == r.plan.d2h_bytes &&
                 r.io.file_read_bytes == r.plan.file_read_bytes &&
                 r.io.file_write_bytes == r.plan.file_write_bytes &&
                 r.peak_device_bytes == r.plan.peak_bytes && r.peak_device_bytes <= r.budget_bytes;
    cr_assert(exact, "%s: counted and planned differ", in->job->name);
    cr_assert_eq(r.deterministic, h->deterministic);
    jask_context_close(ctx);
    return hash;
}

/* On the simulated device, which is slow, one in so many. */
static size_t stride(void)
{
    const char *text = getenv("JASK_TEST_STRIDE");
    return text ? (size_t)atoi(text) : 1;
}

Test(deterministic, one_hash_for_every_budget_planner_and_pipeline)
{
    size_t number = 0;
    for (size_t i = 0; i < JOBS; i++) {
        inputs in = inputs_open(&jobs[i]);
        uint64_t want = run(&in, &reference);
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets * 3; b++) {
            const how h = {.budget_kib = budgets[b / 3],
                           .planner = planners[b % 3],
                           .pipelined = (b + b / 3) % 2 == 0,
                           .deterministic = 1};
            if (number++ % stride() != 0)
                continue;
            cr_assert_eq(run(&in, &h), want, "%s differs with %d KiB, planner %s, pipelined %d",
                         jobs[i].name, (int)h.budget_kib, h.planner, h.pipelined);
        }
        inputs_close(&in);
    }
}

/* So that the test above can fail: by default sums are cut as the plan says. */
Test(deterministic, without_it_budgets_and_planners_show_in_the_bits)
{
    for (size_t i = 0; i < 4; i++) {
        inputs in = inputs_open(&jobs[i]);
        how h = {.budget_kib = 65536, .planner = "auto", .pipelined = 1};
        uint64_t first = run(&in, &h);
        bool differs = false;
        for (size_t b = 0; b < 4 && !differs; b++) {
            h.budget_kib = budgets[b / 2];
            h.planner = planners[b % 2 + 1];
            differs = run(&in, &h) != first;
        }
        cr_assert(differs, "%s", jobs[i].name);
        inputs_close(&in);
    }
}

/* This process may use fewer processors: products are made by fewer threads. */
Test(deterministic, one_hash_for_every_number_of_threads)
{
    const job j = {.name = "f32",
                   .dtype = JASK_F32,
                   .ndim_a = 2,
                   .ndim_b = 2,
                   .a = {300, 300},
                   .b = {300, 400}};
    inputs in = inputs_open(&j);
    uint64_t want = run(&in, &reference);
    cpu_set_t all, one;
    CPU_ZERO(&one);
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_assert_eq(run(&in, &reference), want);
    inputs_close(&in);
}

static int cancel_late(const jask_progress *progress, void *user)
{
    (void)user;
    return progress->fraction > 0.5;
}

/* A run that was stopped goes on, and ends with the bits of one that was not. */
Test(deterministic, one_hash_for_a_run_that_was_resumed)
{
    const job j = {.name = "f32",
                   .dtype = JASK_F32,
                   .ndim_a = 2,
                   .ndim_b = 2,
                   .a = {400, 300},
                   .b = {300, 500}};
    inputs in = inputs_open(&j);
    uint64_t want = run(&in, &reference);
    jask_options options;
    jask_context *ctx = NULL;
    jask_array *d = NULL;
    jask_dot_args args;
    jask_report report = {.struct_size = sizeof report};
    jask_error err;
    jask_dot_args_init(&args, sizeof args);
    args.output = e2e_path("resumed.npy");
    args.resume = 1;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 192 << 10;
    options.host_budget_bytes = 1 << 20;
    options.deterministic = 1;
    options.sync = -1;
    options.progress = cancel_late;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jask_dot(ctx, in.a, in.b, &args, NULL, NULL, &err), JASK_ERR_CANCELED);
    jask_context_close(ctx);
    options.progress = NULL;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jask_dot(ctx, in.a, in.b, &args, &d, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_gt(report.resumed_tiles, 0);
    cr_assert_eq(hash_of(d), want);
    jask_context_close(ctx);
    inputs_close(&in);
}

/* f32 means f32: rounded inputs would be another device's. */
Test(deterministic, inputs_are_not_rounded)
{
    inputs in = inputs_open(&jobs[0]);
    uint64_t want = run(&in, &reference);
    const how h = {.budget_kib = 2048, .planner = "auto", .pipelined = 1, .deterministic = 1};
    setenv("JASK_PRECISION", "tf32", 1);
    cr_assert_eq(run(&in, &h), want);
    inputs_close(&in);
}

/* ---- sums: in a fixed order without being asked ---- */

static uint64_t sums(const jask_array *a, const jask_array *dd, uint64_t budget_kib)
{
    static const jask_reduction reductions[] = {JASK_SUM, JASK_MEAN, JASK_NORM};
    const how h = {
        .budget_kib = budget_kib, .planner = "auto", .pipelined = budget_kib % 1024 != 0};
    jask_context *ctx = context(&h);
    jask_add_backward_args back;
    jask_statistics stats = {.struct_size = sizeof stats};
    jask_array *d = NULL;
    jask_error err;
    uint64_t hash = 0;
    for (int i = 0; i < 9; i++) {
        jask_reduce_args args;
        jask_reduce_args_init(&args, sizeof args);
        args.reduction = reductions[i / 3];
        args.axis = i % 3 == 2 ? JASK_ALL_AXES : i % 3;
        cr_assert_eq(jask_reduce(ctx, a, &args, &d, NULL, &err), JASK_OK, "%s", err.msg);
        hash = 31 * hash + hash_of(d);
    }
    jask_add_backward_args_init(&back, sizeof back);
    back.alpha = 0.7;
    cr_assert_eq(jask_add_backward(ctx, a, dd, dd, &back, &d, NULL, NULL, &err), JASK_OK, "%s",
                 err.msg);
    hash = 31 * hash + hash_of(d);
    cr_assert_eq(jask_stats(ctx, a, &stats, sizeof stats, &err), JASK_OK, "%s", err.msg);
    hash = hash_bytes(hash, (const unsigned char *)&stats.sum, sizeof stats.sum);
    hash = hash_bytes(hash, (const unsigned char *)&stats.norm, sizeof stats.norm);
    jask_context_close(ctx);
    return hash;
}

Test(deterministic, sums_have_one_hash_for_every_budget)
{
    static const jask_dtype types[] = {JASK_F32, JASK_F64, JASK_C64};
    const int64_t shape[] = {700, 900}, large[] = {5, 700, 900};
    for (size_t t = 0; t < 3; t++) {
        jask_array *a = random_array("a.npy", types[t], 2, shape);
        jask_array *dd = random_array("dd.npy", types[t], 3, large);
        uint64_t want = sums(a, dd, 65536);
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++)
            cr_assert_eq(sums(a, dd, budgets[b]), want, "%s with %d KiB", jask_dtype_name(types[t]),
                         (int)budgets[b]);
        jask_array_close(dd);
        jask_array_close(a);
    }
}
