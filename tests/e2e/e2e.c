#include "e2e.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char base[64];

void e2e_init(void)
{
    snprintf(base, sizeof base, "./e2e.XXXXXX");
    cr_assert_not_null(mkdtemp(base), "cannot make a directory here");
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void e2e_cleanup(void)
{
    nftw(base, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *e2e_path(const char *name)
{
    static char texts[8][128];
    static int next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], "%s/%s", base, name);
    return text;
}

int64_t e2e_value(unsigned seed, int64_t i, int64_t j)
{
    uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)j * 0xC2B2AE3D27D4EB4Fu + seed;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
    return (int64_t)(x % 17) - 8;
}

static double integer_value(unsigned seed, int64_t i, int64_t j)
{
    return (double)e2e_value(seed, i, j);
}

static void put_element(FILE *f, e2e_form form, double value)
{
    unsigned char bytes[8];
    size_t size = form.dtype == JASK_F32 ? 4 : 8;
    if (form.dtype == JASK_F32) {
        float x = (float)value;
        memcpy(bytes, &x, 4);
    } else {
        memcpy(bytes, &value, 8);
    }
    for (size_t i = 0; i < size; i++)
        fputc(bytes[form.big_endian ? size - 1 - i : i], f);
}

void e2e_write(const char *path, e2e_form form, int64_t rows, int64_t cols, unsigned seed,
               e2e_value_fn value)
{
    char header[118];
    FILE *f;
    int64_t outer = form.fortran ? cols : rows, inner = form.fortran ? rows : cols;
    remove(path); /* truncating a file makes ext4 write it out at once */
    f = fopen(path, "wb");
    cr_assert_not_null(f, "cannot write %s", path);
    if (!value)
        value = integer_value;
    memset(header, ' ', sizeof header);
    header[snprintf(header, sizeof header,
                    "{'descr': '%cf%d', 'fortran_order': %s, 'shape': (%" PRId64 ", %" PRId64
                    "), }",
                    form.big_endian ? '>' : '<', form.dtype == JASK_F32 ? 4 : 8,
                    form.fortran ? "True" : "False", rows, cols)] = ' ';
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(header, 1, sizeof header, f);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t n = 0; n < inner; n++)
            put_element(f, form, form.fortran ? value(seed, n, o) : value(seed, o, n));
    cr_assert_eq(fclose(f), 0);
}

jask_array *e2e_open(const char *path)
{
    jask_array *array = NULL;
    jask_error err;
    cr_assert_eq(jask_array_open(path, &array, &err), JASK_OK, "%s", err.msg);
    return array;
}

jask_array *e2e_make(const char *name, jask_dtype dtype, int ndim, const int64_t *shape,
                     const void *data)
{
    jask_array *array;
    jask_array_info info;
    jask_error err;
    const char *path = e2e_path(name);
    cr_assert_eq(jask_array_create(NULL, path, dtype, ndim, shape, &array, &err), JASK_OK, "%s",
                 err.msg);
    jask_array_get_info(array, &info, sizeof info);
    cr_assert_eq(jask_array_write(array, 0, info.elements, data, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jask_array_commit(array, &err), JASK_OK, "%s", err.msg);
    jask_array_close(array);
    if (dtype == JASK_BF16) { /* which the file alone does not say */
        char spec[256];
        snprintf(spec, sizeof spec, "%s@bf16", path);
        return e2e_open(spec);
    }
    return e2e_open(path);
}

jask_context *e2e_context(uint64_t budget_bytes, const char *planner, bool pipelined)
{
    jask_context *ctx = NULL;
    jask_options options;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = budget_bytes;
    options.planner = planner;
    options.pipeline = pipelined ? 1 : -1;
    options.sync = -1;
    options.allow_tmpfs = 1;
    options.scratch_dir = base;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    return ctx;
}

/* One assertion a product: Criterion reports each to its parent. */
static void check_report(const jask_report *r)
{
    bool exact = r->io.h2d_bytes == r->plan.h2d_bytes && r->io.h2d_pages == r->plan.h2d_pages &&
                 r->io.d2h_bytes == r->plan.d2h_bytes && r->io.d2h_pages == r->plan.d2h_pages &&
                 r->io.file_read_bytes == r->plan.file_read_bytes &&
                 r->io.file_write_bytes == r->plan.file_write_bytes &&
                 r->peak_device_bytes == r->plan.peak_bytes;
    cr_assert(exact,
              "counted and planned differ: up %" PRIu64 "/%" PRIu64 " down %" PRIu64 "/%" PRIu64
              " read %" PRIu64 "/%" PRIu64 " written %" PRIu64 "/%" PRIu64 " peak %" PRIu64
              "/%" PRIu64,
              r->io.h2d_bytes, r->plan.h2d_bytes, r->io.d2h_bytes, r->plan.d2h_bytes,
              r->io.file_read_bytes, r->plan.file_read_bytes, r->io.file_write_bytes,
              r->plan.file_write_bytes, r->peak_device_bytes, r->plan.peak_bytes);
    cr_assert_leq(r->peak_device_bytes, r->budget_bytes);
}

jask_array *e2e_dot(jask_context *ctx, const jask_array *a, const jask_array *b,
                    const jask_dot_args *args, jask_report *report)
{
    jask_array *d = NULL;
    jask_report mine = {.struct_size = sizeof mine};
    jask_error err;
    cr_assert_eq(jask_dot(ctx, a, b, args, &d, &mine, &err), JASK_OK, "%s", err.msg);
    check_report(&mine);
    if (report)
        *report = mine;
    return d;
}

double *e2e_read(const jask_array *array)
{
    jask_array_info info;
    jask_error err;
    double *out;
    jask_array_get_info(array, &info, sizeof info);
    out = malloc((size_t)info.elements * sizeof *out + 1);
    cr_assert_not_null(out);
    if (info.dtype == JASK_F64) {
        cr_assert_eq(jask_array_read(array, 0, info.elements, out, &err), JASK_OK, "%s", err.msg);
        return out;
    }
    /* Floats fill the upper half, then spread out from the front. */
    float *narrow = (float *)out + info.elements;
    cr_assert_eq(jask_array_read(array, 0, info.elements, narrow, &err), JASK_OK, "%s", err.msg);
    for (uint64_t i = 0; i < info.elements; i++) {
        double wide = (double)narrow[i];
        memcpy(&out[i], &wide, sizeof wide);
    }
    return out;
}
