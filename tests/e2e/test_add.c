/* Sums through the public API: small exact tables, and what must hold of every report. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(add, .init = e2e_init, .fini = e2e_cleanup, .timeout = 300);

static void check_report(const jask_report *r)
{
    cr_assert_str_eq(r->op, "add");
    cr_assert_eq(r->io.file_read_bytes, r->plan.file_read_bytes);
    cr_assert_eq(r->io.file_write_bytes, r->plan.file_write_bytes);
    cr_assert_eq(r->io.h2d_bytes, r->planned.h2d_bytes);
    cr_assert_eq(r->io.h2d_pages, r->planned.h2d_pages);
    cr_assert_eq(r->io.d2h_bytes, r->planned.d2h_bytes);
    cr_assert_eq(r->io.d2h_pages, r->planned.d2h_pages);
    cr_assert_eq(r->peak_device_bytes, r->plan.peak_bytes);
    cr_assert_leq(r->peak_device_bytes, r->budget_bytes);
}

static jask_array *sum(jask_context *ctx, const jask_array *a, const jask_array *b,
                       const jask_add_args *args)
{
    jask_array *d = NULL;
    jask_report report = {.struct_size = sizeof report};
    jask_error err;
    cr_assert_eq(jask_add(ctx, a, b, args, &d, &report, &err), JASK_OK, "%s", err.msg);
    check_report(&report);
    return d;
}

typedef struct scalar_case {
    jask_dtype a, b;
    unsigned char x[16], y[16]; /* one element each, little-endian */
    double alpha, beta;
    jask_overflow rule;
    jask_dtype dtype; /* of the sum */
    unsigned char z[16];
} scalar_case;

Test(add, is_exact_in_every_type)
{
    static const scalar_case cases[] = {
        /* 1.5 + 2 */
        {JASK_F32,
         JASK_F32,
         {0, 0, 0xc0, 0x3f},
         {0, 0, 0, 0x40},
         1,
         1,
         0,
         JASK_F32,
         {0, 0, 0x60, 0x40}},
        /* 16777217 = 2^24 + 1 is no f32, but an i32, and so a sum of f64 */
        {JASK_F32,
         JASK_I32,
         {0, 0, 0x80, 0x4b},
         {1, 0, 0, 0},
         1,
         1,
         0,
         JASK_F64,
         {0, 0, 0, 0x10, 0, 0, 0x70, 0x41}},
        /* 2048 + 1 is halfway between two f16: to even; 2048 + 3 as well */
        {JASK_F16, JASK_F16, {0, 0x68}, {0, 0x3c}, 1, 1, 0, JASK_F16, {0, 0x68}},
        {JASK_F16, JASK_F16, {0, 0x68}, {0, 0x42}, 1, 1, 0, JASK_F16, {2, 0x68}},
        /* 65504 + 65504 is no f16: infinity */
        {JASK_F16, JASK_F16, {0xff, 0x7b}, {0xff, 0x7b}, 1, 1, 0, JASK_F16, {0, 0x7c}},
        /* 65504 * 3 - 65504 * 2 is 65504: nothing is rounded on the way */
        {JASK_F16, JASK_F16, {0xff, 0x7b}, {0xff, 0x7b}, 3, -2, 0, JASK_F16, {0xff, 0x7b}},
        /* bf16: 1 + 2 */
        {JASK_BF16, JASK_BF16, {0x80, 0x3f}, {0, 0x40}, 1, 1, 0, JASK_BF16, {0x40, 0x40}},
        /* bf16 256 + 1: to even */
        {JASK_BF16, JASK_U8, {0x80, 0x43}, {1}, 1, 1, 0, JASK_BF16, {0x80, 0x43}},
        {JASK_BF16, JASK_F16, {0x80, 0x3f}, {0, 0x40}, 1, 1, 0, JASK_F32, {0, 0, 0x40, 0x40}},
        /* (1 + 2i) + (1 + 2i) and + 1 */
        {JASK_C64,
         JASK_C64,
         {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40},
         {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40},
         1,
         1,
         0,
         JASK_C64,
         {0, 0, 0, 0x40, 0, 0, 0x80, 0x40}},
        {JASK_C64,
         JASK_F32,
         {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40},
         {0, 0, 0x80, 0x3f},
         1,
         1,
         0,
         JASK_C64,
         {0, 0, 0, 0x40, 0, 0, 0, 0x40}},
        {JASK_I8, JASK_U8, {0x80}, {0xff}, 1, 1, 0, JASK_I16, {0x7f, 0}},
        {JASK_I32,
         JASK_I32,
         {0xff, 0xff, 0xff, 0x7f},
         {1},
         1,
         1,
         JASK_OVERFLOW_WRAP,
         JASK_I32,
         {0, 0, 0, 0x80}},
        {JASK_I32,
         JASK_I32,
         {0xff, 0xff, 0xff, 0x7f},
         {1},
         1,
         1,
         JASK_OVERFLOW_SATURATE,
         JASK_I32,
         {0xff, 0xff, 0xff, 0x7f}},
        {JASK_U64,
         JASK_U8,
         {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         {1},
         1,
         1,
         0,
         JASK_U64,
         {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    };
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_array *a = e2e_make("a.npy", cases[i].a, 0, NULL, cases[i].x);
        jask_array *b = e2e_make("b.npy", cases[i].b, 0, NULL, cases[i].y), *d;
        jask_array_info info;
        unsigned char got[16] = {0};
        jask_add_args args;
        jask_add_args_init(&args, sizeof args);
        args.alpha = cases[i].alpha;
        args.beta = cases[i].beta;
        args.overflow = cases[i].rule;
        d = sum(ctx, a, b, &args);
        jask_array_get_info(d, &info, sizeof info);
        cr_assert_eq(info.dtype, cases[i].dtype, "case %zu: %s", i, jask_dtype_name(info.dtype));
        cr_assert_eq(info.ndim, 0);
        cr_assert_eq(jask_array_read(d, 0, 1, got, NULL), JASK_OK);
        cr_assert_arr_eq(got, cases[i].z, 16, "case %zu", i);
        jask_array_close(d);
        jask_array_close(b);
        jask_array_close(a);
    }
    jask_context_close(ctx);
}

/* Every pair of orders, of byte orders and of extents that broadcast, in blocks of all sizes. */
Test(add, broadcasts_matrices_of_every_form)
{
    static const int64_t m = 129, n = 257;
    for (unsigned v = 0; v < 256; v += 7) {
        e2e_form fa = {JASK_F32, v & 1, v & 2}, fb = {v & 4 ? JASK_F64 : JASK_F32, v & 8, v & 16};
        int64_t am = v & 32 && !(v & 64) ? 1 : m, bn = v & 64 ? 1 : n, bm = v & 128 ? 1 : m;
        jask_context *ctx = e2e_context(v % 4 ? 60000 : 1 << 20, "auto", v % 2);
        jask_add_args args;
        jask_array *a, *b, *d;
        double *got;
        e2e_write(e2e_path("a.npy"), fa, am, n, 1, NULL);
        e2e_write(e2e_path("b.npy"), fb, bm, bn, 2, NULL);
        a = e2e_open(e2e_path("a.npy"));
        b = e2e_open(e2e_path("b.npy"));
        jask_add_args_init(&args, sizeof args);
        args.alpha = v % 3 ? 2 : 1;
        args.beta = -3;
        d = sum(ctx, a, b, &args);
        got = e2e_read(d);
        for (int64_t i = 0; i < (am > bm ? am : bm); i++)
            for (int64_t j = 0; j < n; j++) {
                double expected = args.alpha * (double)e2e_value(1, am == 1 ? 0 : i, j) -
                                  3 * (double)e2e_value(2, bm == 1 ? 0 : i, bn == 1 ? 0 : j);
                if (got[i * n + j] != expected)
                    cr_assert_fail("variant %u: (%" PRId64 ", %" PRId64 ") is %g, not %g", v, i, j,
                                   got[i * n + j], expected);
            }
        free(got);
        jask_array_close(d);
        jask_array_close(b);
        jask_array_close(a);
        jask_context_close(ctx);
    }
}

Test(add, of_nothing_keeps_the_shape)
{
    static const int64_t empty[] = {0, 4}, row[] = {4}, column[] = {0, 1}, deep[] = {3, 0, 1};
    static const float four[] = {1, 2, 3, 4};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F32, 2, empty, four);
    jask_array *b[] = {
        e2e_make("b.npy", JASK_F32, 2, empty, four), e2e_make("c.npy", JASK_F32, 1, row, four),
        e2e_make("d.npy", JASK_F32, 2, column, four), e2e_make("e.npy", JASK_F32, 3, deep, four)};
    for (size_t i = 0; i < 4; i++) {
        jask_array *d = sum(ctx, a, b[i], NULL);
        jask_array_info info;
        jask_array_get_info(d, &info, sizeof info);
        cr_assert_eq(info.elements, 0);
        cr_assert_eq(info.ndim, i == 3 ? 3 : 2);
        cr_assert_eq(info.shape[info.ndim - 1], 4);
        cr_assert_eq(info.shape[info.ndim - 2], 0);
        jask_array_close(d);
        jask_array_close(b[i]);
    }
    jask_array_close(a);
    jask_context_close(ctx);
}

/* NaN and Inf follow IEEE 754; what a factor of 0 leaves out is not even read. */
Test(add, follows_ieee_and_reads_nothing_for_a_factor_of_0)
{
    static const int64_t shape[] = {4};
    const float x[] = {INFINITY, INFINITY, NAN, 1}, y[] = {-INFINITY, 1, 2, NAN};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F32, 1, shape, x),
               *b = e2e_make("b.npy", JASK_F32, 1, shape, y);
    jask_array *d = sum(ctx, a, b, NULL);
    double *got = e2e_read(d);
    jask_add_args args;
    cr_assert(isnan(got[0]) && got[1] == INFINITY && isnan(got[2]) && isnan(got[3]));
    free(got);
    jask_array_close(d);
    for (int zeros = 1; zeros < 4; zeros++) {
        static const double b_alone[] = {-INFINITY, 2, 4}, a_alone[] = {INFINITY, INFINITY};
        jask_report report = {.struct_size = sizeof report};
        jask_add_args_init(&args, sizeof args);
        args.alpha = zeros & 1 ? 0 : 3;
        args.beta = zeros & 2 ? 0 : 2;
        cr_assert_eq(jask_add(ctx, a, b, &args, &d, &report, NULL), JASK_OK);
        check_report(&report);
        cr_assert_eq(report.io.file_read_bytes, zeros == 3 ? 0 : 16);
        got = e2e_read(d);
        if (zeros == 1)
            cr_assert(memcmp(got, b_alone, sizeof b_alone) == 0 && isnan(got[3]));
        if (zeros == 2)
            cr_assert(memcmp(got, a_alone, sizeof a_alone) == 0 && isnan(got[2]) && got[3] == 3);
        if (zeros == 3)
            cr_assert(got[0] == 0 && got[1] == 0 && got[2] == 0 && got[3] == 0);
        free(got);
        jask_array_close(d);
    }
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

/* The call fails with `code` and a message that holds `said`; nothing appears under the name. */
static void refused(jask_context *ctx, const jask_array *a, const jask_array *b,
                    const jask_add_args *args, jask_status code, const char *said)
{
    jask_array *d = NULL;
    jask_error err;
    cr_assert_eq(jask_add(ctx, a, b, args, &d, NULL, &err), code, "%s", err.msg);
    cr_assert_not_null(strstr(err.msg, said), "%s", err.msg);
    cr_assert_null(d);
}

Test(add, refuses_in_words_what_it_cannot_do)
{
    static const int64_t square[] = {2, 3}, other[] = {2, 2};
    static const int32_t x[] = {1, 2, 3, 4, 5, 2147483647}, y[] = {0, 0, 0, 0, 0, 1};
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_I32, 2, square, x),
               *b = e2e_make("b.npy", JASK_I32, 2, square, y);
    jask_array *c = e2e_make("c.npy", JASK_I32, 2, other, y),
               *wide = e2e_make("w.npy", JASK_I64, 2, other, (int64_t[4]){0});
    jask_array *real = e2e_make("f.npy", JASK_F32, 2, other, x), *d = NULL;
    jask_add_args args;
    refused(ctx, a, b, NULL, JASK_ERR_ARG, "element (1, 2) of the sum does not fit i32");
    refused(ctx, a, c, NULL, JASK_ERR_ARG, "(2, 3)");
    refused(ctx, wide, real, NULL, JASK_ERR_UNSUPPORTED, "no row i64 + f32");
    refused(ctx, NULL, real, NULL, JASK_ERR_ARG, "A is NULL");
    jask_add_args_init(&args, sizeof args);
    args.alpha = 0.5;
    refused(ctx, a, b, &args, JASK_ERR_ARG, "alpha is 0.5");
    args.alpha = NAN;
    refused(ctx, real, real, &args, JASK_ERR_ARG, "alpha is nan");
    args.alpha = 1e300;
    refused(ctx, real, real, &args, JASK_ERR_ARG, "finite number in f32");
    jask_add_args_init(&args, sizeof args);
    args.dtype = JASK_I16;
    refused(ctx, a, b, &args, JASK_ERR_UNSUPPORTED, "a result in i16");
    args.dtype = JASK_I64;
    cr_assert_eq(jask_add(ctx, a, b, &args, &d, NULL, NULL), JASK_OK);
    int64_t last = 0;
    cr_assert_eq(jask_array_read(d, 5, 1, &last, NULL), JASK_OK);
    cr_assert_eq(last, INT64_C(2147483648));
    cr_assert_eq(jask_add(ctx, a, b, NULL, NULL, NULL, NULL), JASK_ERR_ARG);
    jask_array_close(d);
    jask_array_close(real);
    jask_array_close(wide);
    jask_array_close(c);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

/* Two arrays that lie across each other in one raw file: only the same one can be both. */
Test(add, in_place_refuses_what_overlaps)
{
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[4];
    static const float twice[] = {2, 4, 6, 8};
    char spec[4][256];
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    FILE *f = fopen(e2e_path("a.bin"), "wb");
    jask_array *all, *other;
    jask_add_args args;
    fwrite(x, sizeof *x, 4, f);
    fclose(f);
    snprintf(spec[0], sizeof spec[0], "%s@f32:4", e2e_path("a.bin"));
    snprintf(spec[1], sizeof spec[1], "%s@f32:3+4", e2e_path("a.bin"));
    snprintf(spec[2], sizeof spec[2], "%s@>f32:4", e2e_path("a.bin"));
    snprintf(spec[3], sizeof spec[3], "%s@f32:1+12", e2e_path("a.bin"));
    all = e2e_open(spec[0]);
    jask_add_args_init(&args, sizeof args);
    args.in_place = 1;
    for (int i = 1; i < 4; i++) {
        jask_error err;
        other = e2e_open(spec[i]);
        if (i != 1) { /* 4 and 3 elements do not fit anyway */
            cr_assert_eq(jask_add(ctx, all, other, &args, NULL, NULL, &err), JASK_ERR_ARG);
            cr_assert_not_null(strstr(err.msg, "overlap"), "%s", err.msg);
        }
        jask_array_close(other);
    }
    other = e2e_open(spec[0]);
    cr_assert_eq(jask_add(ctx, all, other, &args, NULL, NULL, NULL), JASK_OK);
    cr_assert_eq(jask_array_read(all, 0, 4, got, NULL), JASK_OK);
    cr_assert_arr_eq(got, twice, sizeof twice);
    args.output = e2e_path("d.npy");
    cr_assert_eq(jask_add(ctx, all, other, &args, NULL, NULL, NULL), JASK_ERR_ARG);
    jask_array_close(other);
    jask_array_close(all);
    jask_context_close(ctx);
}

typedef struct watch {
    double last;
    int calls, stop_after;
} watch;

static int on_progress(const jask_progress *p, void *user)
{
    watch *w = user;
    cr_assert_geq(p->fraction, w->last);
    w->last = p->fraction;
    return w->calls++ == w->stop_after;
}

Test(add, tells_progress_and_cancels_without_a_trace)
{
    static const int64_t shape[] = {3000000};
    jask_array *a, *b;
    jask_array_create(NULL, e2e_path("a.npy"), JASK_F64, 1, shape, &a, NULL);
    jask_array_commit(a, NULL);
    jask_array_close(a);
    a = e2e_open(e2e_path("a.npy"));
    b = e2e_open(e2e_path("a.npy"));
    for (int stop = 0; stop < 2; stop++) {
        watch w = {.stop_after = stop ? 0 : 1 << 30};
        jask_context *ctx;
        jask_options options;
        jask_add_args args;
        jask_error err;
        jask_options_init(&options, sizeof options);
        options.memory_budget_bytes = 40000;
        options.sync = -1;
        options.progress = on_progress;
        options.progress_user = &w;
        cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
        jask_add_args_init(&args, sizeof args);
        args.output = e2e_path(stop ? "canceled.npy" : "d.npy");
        cr_assert_eq(jask_add(ctx, a, b, &args, NULL, NULL, &err),
                     stop ? JASK_ERR_CANCELED : JASK_OK, "%s", err.msg);
        if (!stop)
            cr_assert_eq(w.last, 1);
        jask_context_close(ctx);
    }
    cr_assert_neq(jask_array_open(e2e_path("canceled.npy"), &b, NULL), JASK_OK);
    jask_array_close(b);
    jask_array_close(a);
}

Test(add, a_plan_says_what_will_be_read)
{
    static const int64_t shape[] = {100, 200}, row[] = {200};
    static float zeros[20000];
    jask_context *ctx = e2e_context(50000, "auto", true);
    jask_array *a = e2e_make("a.npy", JASK_F32, 2, shape, zeros),
               *b = e2e_make("b.npy", JASK_F32, 1, row, zeros);
    jask_plan *plan = NULL;
    jask_plan_info info;
    jask_error err;
    char text[1000];
    cr_assert_eq(jask_add_plan(ctx, a, b, NULL, &plan, &err), JASK_OK, "%s", err.msg);
    jask_plan_get_info(plan, &info, sizeof info);
    cr_assert_str_eq(info.schedule, "blocks");
    cr_assert_eq(info.file_read_bytes, 80800);
    cr_assert_eq(info.file_write_bytes, 80000);
    cr_assert_eq(info.m, 20000);
    jask_plan_format(plan, 1, text, sizeof text);
    cr_assert_not_null(strstr(text, "\"space\": [100, 200]"), "%s", text);
    jask_plan_close(plan);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
    ctx = e2e_context(36863, "auto", true); /* 9 windows; a row is spread piece by piece */
    a = e2e_open(e2e_path("a.npy"));
    b = e2e_open(e2e_path("b.npy"));
    cr_assert_eq(jask_add_plan(ctx, a, b, NULL, &plan, &err), JASK_ERR_BUDGET);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

Test(add, says_that_direct_reads_are_for_products)
{
    static const char *const words[] = {"auto", "pread", "direct"};
    static const int64_t shape[] = {2};
    static float ones[] = {1, 1};
    jask_array *a = e2e_make("a.npy", JASK_F32, 1, shape, ones), *d;
    for (int w = 0; w < 3; w++) {
        jask_report report = {.struct_size = sizeof report};
        jask_options options;
        jask_context *ctx;
        jask_options_init(&options, sizeof options);
        options.memory_budget_bytes = 50000;
        options.io = words[w];
        cr_assert_eq(jask_context_open(&options, &ctx, NULL), JASK_OK);
        cr_assert_eq(jask_add(ctx, a, a, NULL, &d, &report, NULL), JASK_OK);
        cr_assert_str_eq(report.io_engine, "pread");
        cr_assert_eq(strstr(report.note, "direct reads are for products") != NULL, w == 2, "%s: %s",
                     words[w], report.note);
        jask_array_close(d);
        jask_context_close(ctx);
    }
    jask_array_close(a);
}
