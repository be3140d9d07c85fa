/* Products end to end: right on every shape, layout and budget, and exactly as planned. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(dot, .init = e2e_init, .fini = e2e_cleanup);

/* A product of integer matrices, described; checked element by element against integer arithmetic.
 */
typedef struct product_case {
    int64_t m, n, k;
    e2e_form a, b, c; /* c.dtype NONE: no C */
    bool ta, tb;
    int alpha, beta;
} product_case;

static int64_t expected(const product_case *p, int64_t i, int64_t j)
{
    int64_t sum = 0;
    for (int64_t q = 0; q < p->k; q++)
        sum += (p->ta ? e2e_value(1, q, i) : e2e_value(1, i, q)) *
               (p->tb ? e2e_value(2, j, q) : e2e_value(2, q, j));
    return p->alpha * sum + (p->beta ? p->beta * e2e_value(3, i, j) : 0);
}

static void check_elements(const product_case *p, const jask_array *d, int64_t stride)
{
    double *got = e2e_read(d);
    /* Criterion reports every assertion to its parent: one for a product is plenty. */
    for (int64_t e = 0; e < p->m * p->n; e += stride) {
        int64_t i = e / p->n, j = e % p->n;
        if (got[e] != (double)expected(p, i, j))
            cr_assert_fail("%" PRId64 "x%" PRId64 "x%" PRId64 " ta %d tb %d: element (%" PRId64
                           ",%" PRId64 ") is %g, not %" PRId64,
                           p->m, p->n, p->k, p->ta, p->tb, i, j, got[e], expected(p, i, j));
    }
    free(got);
}

/* Every `stride`-th element is checked. */
static void check_product(jask_context *ctx, const product_case *p, int64_t stride,
                          jask_report *report)
{
    const char *a_path = e2e_path("a.npy"), *b_path = e2e_path("b.npy"),
               *c_path = e2e_path("c.npy");
    jask_dot_args args;
    jask_array *a, *b, *c = NULL, *d;
    e2e_write(a_path, p->a, p->ta ? p->k : p->m, p->ta ? p->m : p->k, 1, NULL);
    e2e_write(b_path, p->b, p->tb ? p->n : p->k, p->tb ? p->k : p->n, 2, NULL);
    a = e2e_open(a_path);
    b = e2e_open(b_path);
    jask_dot_args_init(&args, sizeof args);
    args.transpose_a = p->ta;
    args.transpose_b = p->tb;
    args.alpha = p->alpha;
    args.beta = p->beta;
    if (p->c.dtype != JASK_DTYPE_NONE) {
        e2e_write(c_path, p->c, p->m, p->n, 3, NULL);
        args.c = c = e2e_open(c_path);
    }
    d = e2e_dot(ctx, a, b, &args, report);
    check_elements(p, d, stride);
    jask_array_close(d);
    jask_array_close(c);
    jask_array_close(b);
    jask_array_close(a);
}

/* Variant v of the ways to store and transpose: all of them come up as v counts. */
static product_case variant(int64_t m, int64_t n, int64_t k, unsigned v)
{
    jask_dtype dtype = v & 1 ? JASK_F64 : JASK_F32;
    product_case p = {.m = m, .n = n, .k = k, .alpha = 1};
    p.ta = v >> 1 & 1;
    p.tb = v >> 2 & 1;
    p.a = (e2e_form){dtype, v >> 3 & 1, v >> 4 & 1};
    p.b = (e2e_form){dtype, v >> 5 & 1, v >> 6 & 1};
    if (v >> 7 & 1) {
        p.c = (e2e_form){dtype, v >> 8 & 1, v >> 9 & 1};
        p.alpha = 3;
        p.beta = -2;
    }
    return p;
}

static bool on_a_card(void)
{
    const char *device = getenv("JASK_DEVICE");
    return device && strncmp(device, "cuda", 4) == 0;
}

/* The least there is: a card keeps 16 KiB for its products beside the tiles. */
static uint64_t least_budget(void)
{
    return on_a_card() ? 48 << 10 : 32 << 10;
}

/* Of the 36,000 small shapes every how many-th is taken: a device that takes milliseconds to start a
 * product is asked for fewer. */
static int64_t shape_stride(void)
{
    const char *text = getenv("JASK_TEST_STRIDE");
    int64_t stride = text ? atoll(text) : 1;
    cr_assert_gt(stride, 0, "JASK_TEST_STRIDE is '%s'", text);
    return stride;
}

static void check_small_shapes(int64_t first_m, int64_t last_m, uint64_t budget,
                               const char *planner)
{
    jask_context *ctx = e2e_context(budget, planner, true);
    unsigned v = (unsigned)first_m;
    int64_t stride = shape_stride(), count = 0;
    for (int64_t m = first_m; m <= last_m; m++)
        for (int64_t n = 1; n <= 33; n++)
            for (int64_t k = 1; k <= 33; k++) {
                product_case p = variant(m, n, k, v);
                if (count++ % stride == 0)
                    check_product(ctx, &p, 1, NULL);
                v += 37; /* odd: runs through every variant */
            }
    jask_context_close(ctx);
}

Test(dot, is_exact_on_every_shape_up_to_11_33_33)
{
    check_small_shapes(1, 11, 64 << 10, "bytes");
}

Test(dot, is_exact_on_every_shape_from_12_to_22_33_33)
{
    check_small_shapes(12, 22, 64 << 10, "auto");
}

Test(dot, is_exact_on_every_shape_from_23_to_33_33_33)
{
    check_small_shapes(23, 33, 64 << 10, "page");
}

Test(dot, is_exact_on_ragged_shapes_in_every_form_and_planner)
{
    static const int64_t shapes[][3] = {{257, 130, 300}, {65, 511, 129}, {1, 700, 333},
                                        {640, 1, 257},   {129, 127, 1},  {3, 5, 4099}};
    static const char *const planners[] = {"auto", "bytes", "page"};
    for (unsigned v = 0; v < 1024; v += 31) {
        jask_context *ctx = e2e_context(v % 2 ? 64 << 10 : 200000, planners[v % 3], v % 5 != 0);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            product_case p = variant(shapes[s][0], shapes[s][1], shapes[s][2], v);
            check_product(ctx, &p, 7, NULL);
        }
        jask_context_close(ctx);
    }
}

Test(dot, is_exact_on_a_large_ragged_shape_in_a_small_budget)
{
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    for (unsigned v = 0; v < 8; v++) {
        product_case p = variant(1000, 1001, 999, v);
        jask_report r;
        check_product(ctx, &p, 101, &r);
        cr_assert_gt(r.plan.tiles, 4);
    }
    jask_context_close(ctx);
}

/* Pieces of whole rows are longer than what is left to the page cache, and lie at the odd offsets
 * that headers leave; rows that are cut up are shorter. */
Test(dot, is_exact_however_files_are_read)
{
    static const char *const engines[] = {"pread", "direct"};
    int long_runs = 0;
    /* They share a sixteenth of the budget for their pieces. */
    cr_assert_eq(setenv("JASK_IO_THREADS", "2", 1), 0);
    for (size_t e = 0; e < 2; e++) {
        cr_assert_eq(setenv("JASK_IO", engines[e], 1), 0);
        jask_context *ctx = e2e_context(4 << 20, "auto", true);
        for (unsigned v = 0; v < 1024; v += 93) {
            product_case p = variant(150, 170, 2011, v);
            jask_report r;
            check_product(ctx, &p, 101, &r);
            if (e == 0)
                cr_assert_str_eq(r.io_engine, "pread");
            else if (strstr(r.note, "page cache"))
                cr_skip_test("%s", r.note);
            else
                long_runs += strcmp(r.io_engine, "pread") != 0;
        }
        jask_context_close(ctx);
    }
    cr_assert_gt(long_runs, 4);
}

/* Bands of whole rows are long runs, parts of rows are not; what of a page belongs to two bands, or two
 * tiles, goes through the page cache. */
Test(dot, is_exact_however_results_are_written)
{
    static const char *const engines[] = {"pread", "direct"};
    int direct = 0;
    for (size_t e = 0; e < 2; e++) {
        cr_assert_eq(setenv("JASK_IO", engines[e], 1), 0);
        for (uint64_t budget = 3 << 20; budget <= 24 << 20; budget *= 2) {
            jask_context *ctx = e2e_context(budget, "bytes", true);
            for (int64_t n = 1552; n <= 1592; n += 8) {
                product_case p = variant(2112, n, 24, (unsigned)n);
                jask_report r;
                check_product(ctx, &p, 101, &r);
                if (e == 0)
                    cr_assert_str_eq(r.write_engine, "pwrite");
                else if (strstr(r.note, "page cache"))
                    cr_skip_test("%s", r.note);
                else
                    direct += strcmp(r.write_engine, "direct") == 0;
            }
            jask_context_close(ctx);
        }
    }
    if (!on_a_card()) /* which stores in pieces of a small ring here */
        cr_assert_gt(direct, 4);
}

static double one(unsigned seed, int64_t i, int64_t j)
{
    (void)seed, (void)i, (void)j;
    return 1;
}

/* All ones: every element is k, whatever the tiling. The tail of a sum that is left out shows at
 * once. */
Test(dot, of_ones_is_k)
{
    static const int64_t ks[] = {1,  2,   3,   15,   16,   17,   31,   33,   63,
                                 65, 127, 129, 1000, 1023, 1025, 4095, 4097, 65537};
    static const int64_t sides[][2] = {{1, 1}, {7, 65}, {64, 7}, {65, 64}, {1, 65}, {64, 1}};
    const uint64_t budgets[] = {least_budget(), 128 << 10, 1 << 20};
    static const char *const planners[] = {"auto", "bytes", "page"};
    const char *a_path = e2e_path("a.npy"), *b_path = e2e_path("b.npy");
    e2e_form f32 = {.dtype = JASK_F32};
    jask_context *contexts[3][3]; /* by budget and planner */
    for (size_t i = 0; i < 9; i++)
        contexts[i / 3][i % 3] = e2e_context(budgets[i / 3], planners[i % 3], true);
    for (size_t q = 0; q < sizeof ks / sizeof *ks; q++)
        for (size_t s = 0; s < sizeof sides / sizeof *sides; s++) {
            int64_t m = sides[s][0], n = sides[s][1], k = ks[q];
            jask_array *a, *b;
            e2e_write(a_path, f32, m, k, 0, one);
            e2e_write(b_path, f32, k, n, 0, one);
            a = e2e_open(a_path);
            b = e2e_open(b_path);
            for (size_t u = 0; u < sizeof budgets / sizeof *budgets; u++) {
                jask_array *d = e2e_dot(contexts[u][(q + s + u) % 3], a, b, NULL, NULL);
                double *got = e2e_read(d);
                for (int64_t e = 0; e < m * n; e++)
                    if (got[e] != (double)k)
                        cr_assert_fail("k %" PRId64 ": element %" PRId64 " is %g", k, e, got[e]);
                free(got);
                jask_array_close(d);
            }
            jask_array_close(b);
            jask_array_close(a);
        }
    for (size_t i = 0; i < 9; i++)
        jask_context_close(contexts[i / 3][i % 3]);
}

static double uniform(unsigned seed, int64_t i, int64_t j)
{
    uint64_t x = ((uint64_t)i << 32 | (uint64_t)j) * 0x9E3779B97F4A7C15u + seed;
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (double)(float)((double)(x >> 11) / (double)(1ull << 52) - 1);
}

/* Relative Frobenius error of an f32 product against f64. */
static double relative_error(int64_t m, int64_t n, int64_t k, uint64_t budget)
{
    e2e_form f32 = {.dtype = JASK_F32};
    const char *a_path = e2e_path("a.npy"), *b_path = e2e_path("b.npy");
    jask_context *ctx = e2e_context(budget, "auto", true);
    jask_array *a, *b, *d;
    double *x, *y, *got, *row = malloc((size_t)n * sizeof *row);
    double error = 0, norm = 0;
    e2e_write(a_path, f32, m, k, 11, uniform);
    e2e_write(b_path, f32, k, n, 12, uniform);
    a = e2e_open(a_path);
    b = e2e_open(b_path);
    d = e2e_dot(ctx, a, b, NULL, NULL);
    x = e2e_read(a);
    y = e2e_read(b);
    got = e2e_read(d);
    for (int64_t i = 0; i < m; i++) {
        memset(row, 0, (size_t)n * sizeof *row);
        for (int64_t q = 0; q < k; q++)
            for (int64_t j = 0; j < n; j++)
                row[j] += x[i * k + q] * y[q * n + j];
        for (int64_t j = 0; j < n; j++) {
            error += (got[i * n + j] - row[j]) * (got[i * n + j] - row[j]);
            norm += row[j] * row[j];
        }
    }
    free(row);
    free(got);
    free(y);
    free(x);
    jask_array_close(d);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
    return sqrt(error / norm);
}

Test(dot, of_random_f32_is_as_exact_as_f32_can_be)
{
    double square = relative_error(512, 512, 512, 1 << 20);
    double deep = relative_error(64, 48, 16384, 1 << 20);
    cr_assert_leq(square, 1e-6, "512^3: %g", square);
    cr_assert_leq(deep, 1e-6, "k = 16384: %g", deep);
}

static double not_a_number(unsigned seed, int64_t i, int64_t j)
{
    (void)seed, (void)i, (void)j;
    return NAN;
}

Test(dot, never_reads_c_when_beta_is_0)
{
    e2e_form f32 = {.dtype = JASK_F32};
    const char *a_path = e2e_path("a.npy"), *b_path = e2e_path("b.npy"),
               *c_path = e2e_path("c.npy");
    jask_context *ctx = e2e_context(least_budget(), "bytes", true);
    product_case p = {.m = 65, .n = 67, .k = 33, .alpha = 1};
    jask_array *a, *b, *c, *d;
    jask_dot_args args;
    jask_report report;
    e2e_write(a_path, f32, p.m, p.k, 1, NULL);
    e2e_write(b_path, f32, p.k, p.n, 2, NULL);
    e2e_write(c_path, f32, p.m, p.n, 0, not_a_number);
    a = e2e_open(a_path);
    b = e2e_open(b_path);
    c = e2e_open(c_path);
    jask_dot_args_init(&args, sizeof args);
    args.c = c;
    d = e2e_dot(ctx, a, b, &args, &report);
    check_elements(&p, d, 1);
    cr_assert_eq(report.io.d2h_bytes, 65 * 67 * 4);
    jask_array_close(d);
    jask_array_close(c);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

/* No element of an earlier, larger product may survive in a reused slot or file. */
Test(dot, of_nothing_is_zero_or_scaled_c)
{
    static const int64_t extents[] = {0, 3};
    e2e_form forms[] = {{.dtype = JASK_F32}, {.dtype = JASK_F64, .fortran = true}};
    for (unsigned bits = 0; bits < 32; bits++) {
        product_case p = {.m = extents[bits & 1],
                          .n = extents[bits >> 1 & 1],
                          .k = extents[bits >> 2 & 1],
                          .a = forms[bits >> 3 & 1],
                          .b = forms[bits >> 3 & 1],
                          .alpha = 1};
        jask_context *ctx = e2e_context(64 << 10, "auto", true);
        if (bits >> 4 & 1) {
            p.c = forms[bits >> 3 & 1];
            p.beta = 5;
        }
        check_product(ctx, &p, 1, NULL);
        p.alpha = 0;
        check_product(ctx, &p, 1, NULL);
        jask_context_close(ctx);
    }
}

Test(dot, gives_the_same_bits_twice)
{
    e2e_form f32 = {.dtype = JASK_F32};
    const char *a_path = e2e_path("a.npy"), *b_path = e2e_path("b.npy");
    jask_context *ctx = e2e_context(1 << 20, "auto", true);
    jask_array *a, *b;
    double *first = NULL;
    size_t bytes = (size_t)300 * 500 * sizeof *first;
    e2e_write(a_path, f32, 300, 700, 11, uniform);
    e2e_write(b_path, f32, 700, 500, 12, uniform);
    a = e2e_open(a_path);
    b = e2e_open(b_path);
    for (int round = 0; round < 5; round++) {
        jask_array *d = e2e_dot(ctx, a, b, NULL, NULL);
        double *got = e2e_read(d);
        if (first)
            cr_assert_eq(memcmp(first, got, bytes), 0);
        else
            first = got;
        if (first != got)
            free(got);
        jask_array_close(d);
    }
    free(first);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

/* What is finite in f64 may not be in the type that computes. */
Test(dot, refuses_scalars_that_its_type_cannot_hold)
{
    e2e_form f32 = {.dtype = JASK_F32};
    const char *path = e2e_path("x.npy");
    jask_context *ctx = e2e_context(64 << 10, "auto", true);
    jask_dot_args args;
    jask_array *x, *d = NULL;
    jask_error err;
    e2e_write(path, f32, 2, 2, 1, NULL);
    x = e2e_open(path);
    for (int i = 0; i < 4; i++) {
        static const double bad[] = {1e300, -1e39, NAN, INFINITY};
        jask_dot_args_init(&args, sizeof args);
        *(i % 2 ? &args.alpha : &args.beta) = bad[i];
        args.c = x;
        cr_assert_eq(jask_dot(ctx, x, x, &args, &d, NULL, &err), JASK_ERR_ARG);
        cr_assert_null(d);
    }
    jask_array_close(x);
    jask_context_close(ctx);
}

/* X'X and XX' read X once where a tile holds D, in pieces, whichever way X is stored; and give what two
 * files give. */
Test(dot, of_a_file_with_its_transpose_reads_it_once)
{
    static const int64_t shapes[][2] = {{4096, 64}, {64, 700}, {1, 900}, {37, 1}};
    for (unsigned v = 0; v < 4 * 2 * 2; v++) {
        int64_t rows = shapes[v / 4][0], cols = shapes[v / 4][1];
        e2e_form form = {.dtype = v % 2 ? JASK_F64 : JASK_F32, .fortran = v / 2 % 2};
        const char *path = e2e_path("x.npy"), *copy = e2e_path("y.npy");
        jask_context *ctx = e2e_context(128 << 10, v % 2 ? "bytes" : "auto", true);
        jask_report report = {.struct_size = sizeof report};
        jask_dot_args args;
        e2e_write(path, form, rows, cols, 5, NULL);
        e2e_write(copy, form, rows, cols, 5, NULL);
        jask_array *x = e2e_open(path), *y = e2e_open(copy);
        jask_dot_args_init(&args, sizeof args);
        *(rows > cols ? &args.transpose_a : &args.transpose_b) = 1;
        jask_array *d = e2e_dot(ctx, x, x, &args, &report), *e = e2e_dot(ctx, x, y, &args, NULL);
        uint64_t once = (uint64_t)(rows * cols) * jask_dtype_size(form.dtype);
        cr_assert_eq(report.io.file_read_bytes, once, "%" PRIu64 " bytes",
                     report.io.file_read_bytes);
        double *got = e2e_read(d), *want = e2e_read(e);
        int64_t n = rows > cols ? cols : rows;
        for (int64_t i = 0; i < n * n; i++)
            cr_assert_eq(got[i], want[i]);
        free(got);
        free(want);
        jask_array_close(e);
        jask_array_close(d);
        jask_array_close(y);
        jask_array_close(x);
        jask_context_close(ctx);
    }
}

/* Counters of a context add up over its operations. */
Test(dot, adds_to_the_context_s_io_cost)
{
    e2e_form f64 = {.dtype = JASK_F64};
    const char *a_path = e2e_path("a.npy"), *b_path = e2e_path("b.npy");
    jask_context *ctx = e2e_context(64 << 10, "bytes", true);
    jask_io_cost total = {0};
    jask_report first, second;
    jask_array *a, *b;
    jask_error err;
    e2e_write(a_path, f64, 100, 90, 1, NULL);
    e2e_write(b_path, f64, 90, 80, 2, NULL);
    a = e2e_open(a_path);
    b = e2e_open(b_path);
    jask_array_close(e2e_dot(ctx, a, b, NULL, &first));
    jask_array_close(e2e_dot(ctx, a, b, NULL, &second));
    cr_assert_eq(jask_context_io_cost(ctx, &total, sizeof total, &err), JASK_OK);
    cr_assert_eq(total.h2d_bytes, first.io.h2d_bytes + second.io.h2d_bytes);
    cr_assert_eq(total.d2h_pages, first.io.d2h_pages + second.io.d2h_pages);
    cr_assert_gt(total.h2d_bytes, 0);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}
