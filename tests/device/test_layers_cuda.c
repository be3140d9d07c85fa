/* Products whose sums stay in the host memory of a (simulated) card while super-tiles are made, from files to files:
 * each as the CPU makes it, for it is of integers, and what was counted as planned (e2e_dot). */
#include "../e2e/e2e.h"
#include "kernels/host_elements.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

TestSuite(layers_cuda, .init = e2e_init, .fini = e2e_cleanup);

enum { M = 181, N = 163, K = 307 };

static jask_context *context(const char *device, uint64_t budget, uint64_t host_budget,
                             bool deterministic)
{
    jask_context *ctx;
    jask_options options;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = budget;
    options.host_budget_bytes = host_budget;
    options.device = device;
    options.planner = "bytes";
    options.io_threads = 2;
    options.deterministic = deterministic ? 1 : -1;
    options.sync = -1;
    options.allow_tmpfs = 1;
    options.scratch_dir = e2e_path("");
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    return ctx;
}

static jask_context *card(uint64_t seed)
{
    cusim_config config = sim_config(seed);
    cusim_reset(&config);
    return context("cuda", 64 << 10, 160 << 10, false);
}

static jask_array *make(const char *name, jask_dtype dtype, int64_t batches, int64_t rows,
                        int64_t cols, unsigned seed)
{
    const int64_t shape[] = {batches, rows, cols};
    int64_t count = batches * rows * cols;
    double *data = malloc((size_t)count * sizeof *data);
    cr_assert_not_null(data);
    for (int64_t i = 0; i < count; i++)
        data[i] = (double)e2e_value(seed, i / cols, i % cols);
    if (dtype != JASK_F64)
        jk_convert(count, JASK_F64, data, JASK_F32, data);
    if (dtype == JASK_F16 || dtype == JASK_BF16)
        jk_convert(count, JASK_F32, data, dtype, data);
    jask_array *array =
        e2e_make(name, dtype, batches > 1 ? 3 : 2, batches > 1 ? shape : shape + 1, data);
    free(data);
    return array;
}

/* In how many layers the plan is made; 0: in none. */
static int layers_of(jask_plan *plan)
{
    char text[4096];
    cr_assert_lt(jask_plan_format(plan, 1, text, sizeof text), sizeof text);
    jask_plan_close(plan);
    const char *layer = strstr(text, "\"layer\": ");
    cr_assert_not_null(layer, "%s", text);
    return atoi(layer + strlen("\"layer\": "));
}

static void check_same(const jask_array *got, const jask_array *want, const char *what)
{
    jask_array_info info, other;
    jask_error err;
    jask_array_get_info(got, &info, sizeof info);
    jask_array_get_info(want, &other, sizeof other);
    cr_assert(info.dtype == other.dtype && info.data_bytes == other.data_bytes);
    unsigned char *x = malloc(2 * (size_t)info.data_bytes), *y = x + info.data_bytes;
    cr_assert_not_null(x);
    cr_assert_eq(jask_array_read(got, 0, info.elements, x, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jask_array_read(want, 0, info.elements, y, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(memcmp(x, y, (size_t)info.data_bytes), 0, "%s", what);
    free(x);
}

/* The card's result and the host's, and all that is left to close. */
static void check_and_close(jask_context *ctx, jask_array *got, jask_context *host,
                            jask_array *want, const char *what)
{
    check_same(got, want, what);
    jask_array_close(got);
    jask_array_close(want);
    jask_context_close(ctx);
    jask_context_close(host);
}

/* On the card in layers, and on the CPU at once. */
static void check_dot(const jask_array *a, const jask_array *b, const jask_dot_args *args,
                      uint64_t seed, const char *what)
{
    jask_context *ctx = card(seed), *host = context("host", 16 << 20, 0, false);
    jask_report report;
    jask_plan *plan;
    jask_error err;
    cr_assert_eq(jask_dot_plan(ctx, a, b, args, &plan, &err), JASK_OK, "%s: %s", what, err.msg);
    cr_assert_gt(layers_of(plan), 0, "%s: no layers", what);
    jask_array *got = e2e_dot(ctx, a, b, args, &report), *want = e2e_dot(host, a, b, args, NULL);
    cr_assert_leq(report.peak_host_bytes, 160 << 10, "%s", what);
    cr_assert_lt(report.io.file_read_bytes, report.io.h2d_bytes, "%s", what);
    check_and_close(ctx, got, host, want, what);
    sim_check_clean("seed", seed);
}

/* Sums are of the type that computes, whatever files hold; C is added once. */
Test(layers_cuda, every_type_is_summed_as_on_the_cpu)
{
    static const struct {
        const char *name;
        jask_dtype a, b, c, d;
        double alpha, beta;
        int ta, tb;
    } cases[] = {
        {"f32", JASK_F32, JASK_F32, 0, 0, 1, 0, 0, 0},
        {"f32 transposed", JASK_F32, JASK_F32, JASK_F32, 0, -2, 3, 1, 1},
        {"f64", JASK_F64, JASK_F64, JASK_F64, 0, 2, -1, 0, 1},
        {"f16", JASK_F16, JASK_F16, JASK_F16, 0, 0.5, 2, 1, 0},
        {"bf16", JASK_BF16, JASK_BF16, 0, JASK_F32, 1, 0, 0, 1},
        {"f16 and f32", JASK_F16, JASK_F32, JASK_F32, JASK_F16, 1, 1, 0, 0},
        {"f32 and f64", JASK_F32, JASK_F64, JASK_F32, JASK_F32, 3, -1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ta = cases[i].ta, tb = cases[i].tb;
        /* Of small elements so many that they do not all fit. */
        int64_t k = jask_dtype_size(cases[i].b) < 4 ? 2 * K : K;
        jask_dot_args args;
        jask_dot_args_init(&args, sizeof args);
        jask_array *a = make("a.npy", cases[i].a, 1, ta ? k : M, ta ? M : k, 1);
        jask_array *b = make("b.npy", cases[i].b, 1, tb ? N : k, tb ? k : N, 2);
        jask_array *c = cases[i].beta != 0 ? make("c.npy", cases[i].c, 1, M, N, 3) : NULL;
        args.alpha = cases[i].alpha;
        args.beta = cases[i].beta;
        args.transpose_a = ta ? JASK_TRANSPOSE : JASK_NO_TRANSPOSE;
        args.transpose_b = tb ? JASK_TRANSPOSE : JASK_NO_TRANSPOSE;
        args.c = c;
        args.dtype = cases[i].d;
        check_dot(a, b, &args, i + 1, cases[i].name);
        jask_array_close(a);
        jask_array_close(b);
        jask_array_close(c);
    }
}

/* A C in Fortran order is turned on its way to the first layer, the sums that come after it are not. */
Test(layers_cuda, a_c_in_fortran_order_is_turned_once)
{
    jask_dot_args args;
    jask_dot_args_init(&args, sizeof args);
    e2e_write(e2e_path("c.npy"), (e2e_form){.dtype = JASK_F32, .fortran = true}, M, N, 3, NULL);
    jask_array *a = make("a.npy", JASK_F32, 1, M, K, 1), *b = make("b.npy", JASK_F32, 1, K, N, 2),
               *c = e2e_open(e2e_path("c.npy"));
    args.beta = -1;
    args.c = c;
    for (uint64_t seed = 1; seed <= 5; seed++)
        check_dot(a, b, &args, seed, "C in Fortran order");
    jask_array_close(a);
    jask_array_close(b);
    jask_array_close(c);
}

/* X X', of one file as A and B. */
Test(layers_cuda, one_file_is_both_operands)
{
    jask_dot_args args;
    jask_dot_args_init(&args, sizeof args);
    args.transpose_b = JASK_TRANSPOSE;
    jask_array *x = make("x.npy", JASK_F32, 1, M, K, 1);
    check_dot(x, x, &args, 1, "gram");
    jask_array_close(x);
}

/* Sums of one batch make way for those of the next. */
Test(layers_cuda, batches_come_one_after_the_other)
{
    jask_context *ctx = card(7), *host = context("host", 16 << 20, 0, false);
    jask_array *a = make("a.npy", JASK_F32, 3, M, K, 1), *b = make("b.npy", JASK_F32, 3, K, N, 2);
    jask_array *got = NULL, *want = NULL;
    jask_report report = {.struct_size = sizeof report};
    jask_plan *plan;
    jask_error err;
    cr_assert_eq(jask_matmul_plan(ctx, a, b, NULL, &plan, &err), JASK_OK, "%s", err.msg);
    cr_assert_gt(layers_of(plan), 0);
    cr_assert_eq(jask_matmul(ctx, a, b, NULL, &got, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(report.io.file_read_bytes, report.planned.file_read_bytes);
    cr_assert_eq(report.io.d2h_bytes, report.planned.d2h_bytes);
    cr_assert_eq(jask_matmul(host, a, b, NULL, &want, NULL, &err), JASK_OK, "%s", err.msg);
    check_and_close(ctx, got, host, want, "batches");
    jask_array_close(a);
    jask_array_close(b);
    sim_check_clean("case", 0);
}

static double fraction(unsigned seed, int64_t i, int64_t j)
{
    return (double)e2e_value(seed, i, j) / 3 + (double)e2e_value(seed + 9, j, i) / 700;
}

/* A tile that comes back is added to in the order in which it would have been without. */
Test(layers_cuda, deterministic_products_have_the_same_bits)
{
    cusim_config config = sim_config(3);
    jask_plan *plan;
    jask_error err;
    cusim_reset(&config);
    e2e_write(e2e_path("a.npy"), (e2e_form){.dtype = JASK_F32}, M, 2300, 1, fraction);
    e2e_write(e2e_path("b.npy"), (e2e_form){.dtype = JASK_F32}, 2300, N, 2, fraction);
    jask_array *a = e2e_open(e2e_path("a.npy")), *b = e2e_open(e2e_path("b.npy"));
    jask_context *ctx = context("cuda", 256 << 10, 512 << 10, true),
                 *host = context("host", 16 << 20, 0, true);
    cr_assert_eq(jask_dot_plan(ctx, a, b, NULL, &plan, &err), JASK_OK, "%s", err.msg);
    cr_assert_gt(layers_of(plan), 0);
    jask_array *got = e2e_dot(ctx, a, b, NULL, NULL), *want = e2e_dot(host, a, b, NULL, NULL);
    check_and_close(ctx, got, host, want, "deterministic");
    jask_array_close(a);
    jask_array_close(b);
    sim_check_clean("case", 0);
}

/* A run that may go on later finishes one tile after the other. */
Test(layers_cuda, a_resumable_product_has_none)
{
    jask_context *ctx = card(1);
    jask_array *a = make("a.npy", JASK_F32, 1, M, K, 1), *b = make("b.npy", JASK_F32, 1, K, N, 2);
    jask_dot_args args;
    jask_plan *plan;
    jask_error err;
    jask_dot_args_init(&args, sizeof args);
    args.output = e2e_path("d.npy");
    args.resume = 1;
    cr_assert_eq(jask_dot_plan(ctx, a, b, &args, &plan, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(layers_of(plan), 0);
    jask_array_close(e2e_dot(ctx, a, b, &args, NULL));
    jask_array_close(a);
    jask_array_close(b);
    jask_context_close(ctx);
    sim_check_clean("case", 0);
}

/* ---- failing malloc ---- */

/* The call that fails, counted from 1 while a product is made; 0: none. */
static _Atomic int fail_at, calls;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    return fail_at > 0 && ++calls == fail_at ? NULL : __real_malloc(bytes);
}

static jask_status dot_without(int nth, jask_context *ctx, const jask_array *a, const jask_array *b,
                               jask_error *err)
{
    jask_dot_args args;
    jask_dot_args_init(&args, sizeof args);
    args.output = e2e_path("d.npy");
    calls = 0;
    fail_at = nth;
    jask_status st = jask_dot(ctx, a, b, &args, NULL, NULL, err);
    fail_at = 0;
    return st;
}

static void check_is_old(void)
{
    jask_array *d = e2e_open(e2e_path("d.npy"));
    double *got = e2e_read(d);
    for (int64_t i = 0; i < M * N; i++)
        cr_assert_eq(got[i], (double)e2e_value(9, i / N, i % N));
    free(got);
    jask_array_close(d);
}

/* Each call of malloc fails in turn, until one product gets through. */
static void check_failing(uint64_t host_budget, const char *const *words, size_t count)
{
    bool said[8] = {false};
    jask_array *a = make("a.npy", JASK_F32, 1, M, K, 1), *b = make("b.npy", JASK_F32, 1, K, N, 2);
    jask_status st = JASK_OK;
    e2e_write(e2e_path("d.npy"), (e2e_form){.dtype = JASK_F32}, M, N, 9, NULL);
    for (int nth = 1;; nth++) {
        cusim_config config = sim_config((uint64_t)nth);
        jask_error err;
        cusim_reset(&config);
        jask_context *ctx = context("cuda", 64 << 10, host_budget, false);
        st = dot_without(nth, ctx, a, b, &err);
        jask_context_close(ctx);
        sim_check_clean("call", (uint64_t)nth);
        if (calls < nth)
            break;
        cr_assert_eq(st, JASK_ERR_NOMEM, "call %d", nth);
        for (size_t i = 0; i < count; i++)
            said[i] |= strstr(err.msg, words[i]) != NULL;
        check_is_old();
    }
    cr_assert_eq(st, JASK_OK);
    for (size_t i = 0; i < count; i++)
        cr_assert(said[i], "nobody said: %s", words[i]);
    jask_array_close(a);
    jask_array_close(b);
}

Test(layers_cuda, where_host_memory_is_refused_the_older_result_stays)
{
    static const char *const layers[] = {"of A in host memory", "of B in host memory",
                                         "of sums of the result in host memory", "keep track of"};
    static const char *const strips[] = {"of B in host memory", "keep track of"};
    check_failing(160 << 10, layers, sizeof layers / sizeof *layers);
    check_failing(200 << 10, strips, sizeof strips / sizeof *strips);
}
