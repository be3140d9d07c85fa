/* An OpenBLAS that does not know the processor: what is said of it, to whom, and when it is silent. */
#include "runtime/blas.h"
#include "runtime/context.h"

#include "tree.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const jk_cpu old = {0}, avx2 = {.avx2 = true}, amd = {.avx2 = true, .amd = true},
                    avx512 = {.avx2 = true, .avx512 = true},
                    amd512 = {.avx2 = true, .avx512 = true, .amd = true};

Test(blas_advice, names_the_kernels_and_the_best_that_the_processor_takes)
{
    static const struct {
        const char *core;
        const jk_cpu *cpu;
        const char *best; /* NULL: nothing to say */
    } cases[] = {
        {"Prescott", &avx512, "SkylakeX"},
        {"Prescott", &amd512, "SkylakeX"},
        {"Prescott", &avx2, "Haswell"},
        {"Prescott", &amd, "Zen"},
        {"Core2", &avx2, "Haswell"},
        {"Nehalem", &avx512, "SkylakeX"},
        {"Sandybridge", &avx2, "Haswell"},
        {"Barcelona", &amd, "Zen"},
        {"Opteron_SSE3", &amd, "Zen"},
        {"PRESCOTT", &avx2, "Haswell"},
        {"prescott", &amd, "Zen"},
        /* all that the processor has */
        {"Prescott", &old, NULL},
        {"Sandybridge", &old, NULL},
        {"Haswell", &avx2, NULL},
        {"Zen", &amd, NULL},
        {"SkylakeX", &avx512, NULL},
        {"Cooperlake", &avx512, NULL},
        /* Vectors of 128 bits are all that the last of this line compute. */
        {"Excavator", &amd, NULL},
        {"Piledriver", &amd, NULL},
        /* Twice as wide is not twice as fast everywhere. */
        {"Haswell", &avx512, NULL},
        {"Zen", &amd512, NULL},
        /* Nothing is known of these. */
        {"", &avx512, NULL},
        {"Unknown", &avx512, NULL},
        {"SapphireRapids", &avx512, NULL},
        {"Prescott2", &avx512, NULL},
        {"Presc", &avx512, NULL},
        {"ARMV8", &old, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[JK_BLAS_ADVICE] = "?", expected[80] = "";
        jk_blas_advise(cases[i].core, true, cases[i].cpu, text);
        if (!cases[i].best) {
            cr_assert_str_empty(text, "%s: %s", cases[i].core, text);
            continue;
        }
        snprintf(expected, sizeof expected, "its %s kernels make no use of AVX2", cases[i].core);
        cr_assert_not_null(strstr(text, expected), "%s: '%s'", cases[i].core, text);
        snprintf(expected, sizeof expected, "set OPENBLAS_CORETYPE=%s in the environment, or",
                 cases[i].best);
        cr_assert_not_null(strstr(text, expected), "%s: '%s'", cases[i].core, text);
        cr_assert(strlen(text) < JK_BLAS_ADVICE - 1, "cut: %s", text);
    }
}

Test(blas_advice, of_a_library_without_other_kernels_is_another_library)
{
    char text[JK_BLAS_ADVICE];
    jk_blas_advise("Opteron_SSE3", false, &avx512, text);
    cr_assert_not_null(strstr(text, "its Opteron_SSE3 kernels make no use of AVX2"), "%s", text);
    cr_assert_not_null(strstr(text, "built with DYNAMIC_ARCH"), "%s", text);
    cr_assert_null(strstr(text, "OPENBLAS_CORETYPE"), "%s", text);
    jk_blas_advise("Haswell", false, &avx512, text);
    cr_assert_str_empty(text);
}

/* ---- the same in a context, in which these stand for OpenBLAS and the processor ---- */

__attribute__((visibility("default"))) const char *openblas_get_corename(void);
__attribute__((visibility("default"))) const char *openblas_get_config(void);
jk_cpu __wrap_jk_cpu_here(void);

static const char *core_name;
static jk_cpu processor;

const char *openblas_get_corename(void)
{
    return core_name;
}

const char *openblas_get_config(void)
{
    return "OpenBLAS 0.0.1 DYNAMIC_ARCH";
}

jk_cpu __wrap_jk_cpu_here(void)
{
    return processor;
}

typedef struct heard {
    char last[JK_BLAS_ADVICE];
    int lines;
} heard;

static void hear(jask_log_level level, const char *message, void *user)
{
    heard *h = user;
    cr_assert_eq(level, JASK_LOG_WARN, "%s", message);
    snprintf(h->last, sizeof h->last, "%s", message);
    h->lines++;
}

static void setup(void)
{
    for (int i = 0; i < jask_setting_count(); i++)
        unsetenv(jask_setting_get(i)->environment);
    unsetenv("OPENBLAS_CORETYPE");
    tree_enter();
    if (strcmp(jk_blas_name(), "plain C loops") == 0)
        cr_skip_test("built without a BLAS library");
    core_name = "Prescott";
    processor = avx512;
}

TestSuite(blas_advice_told, .init = setup, .fini = tree_leave);

static jask_context *open_context(heard *h, int deterministic)
{
    jask_options options;
    jask_context *ctx;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 1 << 20;
    options.device = "host";
    options.deterministic = deterministic;
    options.log = hear;
    options.log_user = h;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    return ctx;
}

static jask_report multiply(jask_context *ctx)
{
    const int64_t shape[2] = {3, 3};
    jask_report report = {.struct_size = sizeof report};
    jask_array *a, *d;
    jask_error err;
    cr_assert_eq(jask_array_create(ctx, NULL, JASK_F32, 2, shape, &a, &err), JASK_OK);
    cr_assert_eq(jask_dot(ctx, a, a, NULL, &d, &report, &err), JASK_OK, "%s", err.msg);
    jask_array_close(d);
    jask_array_close(a);
    return report;
}

static jask_report add(jask_context *ctx)
{
    const int64_t shape[2] = {3, 3};
    jask_report report = {.struct_size = sizeof report};
    jask_array *a, *d;
    jask_error err;
    cr_assert_eq(jask_array_create(ctx, NULL, JASK_F32, 2, shape, &a, &err), JASK_OK);
    cr_assert_eq(jask_add(ctx, a, a, NULL, &d, &report, &err), JASK_OK, "%s", err.msg);
    jask_array_close(d);
    jask_array_close(a);
    return report;
}

static jask_device_info host_row(void)
{
    jask_device_info row;
    for (int i = 0; jask_device_get(i, &row, sizeof row, NULL) == JASK_OK; i++)
        if (strcmp(row.name, "host") == 0)
            return row;
    cr_assert_fail("no host");
    return row;
}

Test(blas_advice_told, once_a_context_and_in_every_report_of_a_product)
{
    heard h = {0};
    jask_context *ctx = open_context(&h, 0);
    jask_report report;
    cr_assert_eq(h.lines, 0, "before there is a product: %s", h.last);
    report = add(ctx);
    cr_assert_str_empty(report.note);
    cr_assert_eq(h.lines, 0, "a sum takes no BLAS: %s", h.last);
    for (int round = 0; round < 2; round++) {
        report = multiply(ctx);
        cr_assert_eq(h.lines, 1);
        cr_assert_not_null(strstr(h.last, "OPENBLAS_CORETYPE=SkylakeX"), "%s", h.last);
        cr_assert_str_eq(report.note, h.last);
        cr_assert_not_null(strstr(report.device_description, "(Prescott kernels)"), "%s",
                           report.device_description);
    }
    jask_context_close(ctx);
    ctx = open_context(&h, 0);
    multiply(ctx);
    cr_assert_eq(h.lines, 2);
    jask_context_close(ctx);
}

Test(blas_advice_told, in_the_row_of_the_device)
{
    jask_device_info row = host_row();
    cr_assert_not_null(strstr(row.note, "OPENBLAS_CORETYPE=SkylakeX"), "%s", row.note);
    cr_assert_not_null(strstr(row.description, "(Prescott kernels)"), "%s", row.description);
    core_name = "SkylakeX";
    row = host_row();
    cr_assert_str_empty(row.note);
    cr_assert_not_null(strstr(row.description, "(SkylakeX kernels)"), "%s", row.description);
}

static void is_silent(int deterministic)
{
    heard h = {0};
    jask_context *ctx = open_context(&h, deterministic);
    jask_report report = multiply(ctx);
    cr_assert_str_empty(report.note);
    cr_assert_eq(h.lines, 0, "%s", h.last);
    jask_context_close(ctx);
}

Test(blas_advice_told, not_of_what_the_processor_can)
{
    core_name = "SkylakeX";
    is_silent(0);
}

Test(blas_advice_told, not_on_a_processor_that_has_no_more)
{
    processor = old;
    is_silent(0);
}

Test(blas_advice_told, not_of_deterministic_products_which_take_no_blas)
{
    is_silent(1);
}

Test(blas_advice_told, not_where_the_user_has_chosen)
{
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    is_silent(0);
    cr_assert_str_empty(host_row().note);
    /* An empty value is none. */
    setenv("OPENBLAS_CORETYPE", "", 1);
    cr_assert_str_not_empty(host_row().note);
}
