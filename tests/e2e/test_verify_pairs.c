/* jask_dot_verify of complex products and of batches: right ones pass in every form, and a single wrong part of
 * a single element is found. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(verify_pairs, .init = e2e_init, .fini = e2e_cleanup);

enum { M = 37, N = 150, K = 147, BUDGET = 64 << 10 };

/* Numbers between -8 and 8, of both types: part `part` of element (i, j). */
static double part_value(unsigned seed, int64_t i, int64_t j, int part)
{
    unsigned own = seed + 10 * (unsigned)part;
    return (double)((float)e2e_value(own, i, j) + (float)e2e_value(own + 100, i, j) / 19);
}

static double *random_parts(unsigned seed, int64_t rows, int64_t cols)
{
    double *parts = malloc((size_t)(2 * rows * cols) * sizeof *parts);
    cr_assert_not_null(parts);
    for (int64_t e = 0; e < rows * cols; e++)
        for (int part = 0; part < 2; part++)
            parts[2 * e + part] = part_value(seed, e / cols, e % cols, part);
    return parts;
}

/* A .npy of complex numbers, whose `parts` are in C order. */
static jask_array *store(const char *name, jask_dtype dtype, bool fortran, int64_t rows,
                         int64_t cols, const double *parts)
{
    FILE *file = fopen(e2e_path(name), "wb");
    char header[118];
    snprintf(header, sizeof header, "{'descr': '<c%d', 'fortran_order': %s, 'shape': (%d, %d), }",
             dtype == JASK_C64 ? 8 : 16, fortran ? "True" : "False", (int)rows, (int)cols);
    cr_assert_not_null(file);
    fprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, header);
    for (int64_t e = 0; e < rows * cols; e++) {
        int64_t from = fortran ? e % rows * cols + e / rows : e;
        for (int part = 0; part < 2; part++) {
            double wide = parts[2 * from + part];
            float narrow = (float)wide;
            fwrite(dtype == JASK_C64 ? (void *)&narrow : &wide, dtype == JASK_C64 ? 4 : 8, 1, file);
        }
    }
    cr_assert_eq(fclose(file), 0);
    return e2e_open(e2e_path(name));
}

static jask_array *make(const char *name, jask_dtype dtype, bool fortran, int64_t rows,
                        int64_t cols, unsigned seed)
{
    double *parts = random_parts(seed, rows, cols);
    jask_array *array = store(name, dtype, fortran, rows, cols, parts);
    free(parts);
    return array;
}

static jask_verification verify(jask_context *ctx, const jask_array *a, const jask_array *b,
                                const jask_array *d, const jask_dot_args *args)
{
    jask_verification v = {0};
    jask_error err;
    cr_assert_eq(jask_dot_verify(ctx, a, b, d, args, &v, sizeof v, &err), JASK_OK, "%s", err.msg);
    return v;
}

static double *parts_of(const jask_array *d, jask_dtype dtype, int64_t count)
{
    double *parts = malloc((size_t)(2 * count) * sizeof *parts);
    jask_error err;
    cr_assert_not_null(parts);
    cr_assert_eq(jask_array_read(d, 0, (uint64_t)count, parts, &err), JASK_OK, "%s", err.msg);
    for (int64_t e = 2 * count - 1; dtype == JASK_C64 && e >= 0; e--)
        parts[e] = (double)((float *)parts)[e];
    return parts;
}

/* One part of one element is wrong by half of what it is. */
static void check_damage(jask_context *ctx, const jask_array *a, const jask_array *b,
                         const jask_dot_args *args, jask_dtype dtype, bool fortran, double *parts,
                         int turn)
{
    for (int part = 0; part < 2; part++) {
        int64_t row = (turn * 7 + 3) % M, col = (turn * 31 + part) % N;
        double *place = &parts[2 * (row * N + col) + part], right = *place;
        *place = 1.5 * right;
        jask_array *d = store("wrong.npy", dtype, fortran, M, N, parts);
        jask_verification v = verify(ctx, a, b, d, args);
        cr_assert(!v.passed && v.worst_row == row, "turn %d, part %d of (%d,%d): z %g in row %d",
                  turn, part, (int)row, (int)col, v.max_z, (int)v.worst_row);
        *place = right;
        jask_array_close(d);
    }
}

Test(verify_pairs, complex_products_pass_in_every_form_and_wrong_parts_do_not)
{
    for (int turn = 0; turn < 72; turn++) {
        int ta = turn % 3, tb = turn / 3 % 3;
        jask_dtype dtype = turn & 1 ? JASK_C128 : JASK_C64;
        bool fortran = turn / 9 & 1, with_c = turn / 18 & 1;
        jask_context *ctx = e2e_context(BUDGET, "auto", true);
        jask_array *a = make("a.npy", dtype, turn / 9 & 2, ta ? K : M, ta ? M : K, 1);
        jask_array *b = make("b.npy", dtype, turn / 9 & 4, tb ? N : K, tb ? K : N, 2);
        jask_array *c = make("c.npy", dtype, fortran, M, N, 3);
        jask_dot_args args;
        jask_dot_args_init(&args, sizeof args);
        args.transpose_a = ta;
        args.transpose_b = tb;
        args.alpha = with_c ? -0.7 : 1;
        args.beta = with_c ? 1.9 : 0;
        args.c = with_c ? c : NULL;
        jask_array *d = e2e_dot(ctx, a, b, &args, NULL);
        jask_verification v = verify(ctx, a, b, d, &args);
        cr_assert(v.passed && v.max_z > 0, "turn %d: z max %g rms %g", turn, v.max_z, v.rms_z);
        cr_assert_eq(v.file_read_bytes,
                     (size_t)(M * K + K * N + M * N * (1 + with_c)) * jask_dtype_size(dtype));
        double *parts = parts_of(d, dtype, M * N);
        jask_array *copy = store("copy.npy", dtype, fortran, M, N, parts);
        v = verify(ctx, a, b, copy, &args);
        cr_assert(v.passed, "turn %d, copy: z max %g rms %g", turn, v.max_z, v.rms_z);
        jask_array_close(copy);
        check_damage(ctx, a, b, &args, dtype, fortran, parts, turn);
        free(parts);
        jask_array_close(d);
        jask_array_close(c);
        jask_array_close(b);
        jask_array_close(a);
        jask_context_close(ctx);
    }
}

/* A conjugate that was forgotten, or one too many, is wrong in every element. */
Test(verify_pairs, a_transpose_is_no_conjugate_transpose)
{
    jask_context *ctx = e2e_context(BUDGET, "auto", true);
    jask_array *a = make("a.npy", JASK_C64, false, K, M, 1);
    jask_array *b = make("b.npy", JASK_C64, false, K, N, 2);
    jask_dot_args args;
    jask_dot_args_init(&args, sizeof args);
    args.transpose_a = JASK_CONJUGATE_TRANSPOSE;
    jask_array *d = e2e_dot(ctx, a, b, &args, NULL);
    cr_assert(verify(ctx, a, b, d, &args).passed);
    args.transpose_a = JASK_TRANSPOSE;
    cr_assert(!verify(ctx, a, b, d, &args).passed);
    jask_array_close(d);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

static jask_array *make_batches(const char *name, int ndim, const int64_t *shape, unsigned seed)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    double *values = malloc((size_t)count * sizeof *values + 1);
    for (int64_t e = 0; e < count; e++)
        values[e] = part_value(seed, e / 64, e % 64, 0);
    jask_array *array = e2e_make(name, JASK_F64, ndim, shape, values);
    free(values);
    return array;
}

/* (2, 1) and (3) broadcast to (2, 3). Each batch is checked against its own operands, and rows are counted on
 * from batch to batch. */
Test(verify_pairs, a_wrong_element_in_any_batch_is_found)
{
    const int64_t of_a[] = {2, 1, 20, 30}, of_b[] = {3, 30, 25}, of_d[] = {2, 3, 20, 25};
    double seen[7] = {0};
    jask_context *ctx = e2e_context(BUDGET, "auto", true);
    jask_array *a = make_batches("a.npy", 4, of_a, 1), *b = make_batches("b.npy", 3, of_b, 2);
    jask_array *d = NULL;
    jask_error err;
    cr_assert_eq(jask_matmul(ctx, a, b, NULL, &d, NULL, &err), JASK_OK, "%s", err.msg);
    jask_verification v = verify(ctx, a, b, d, NULL);
    cr_assert(v.passed && v.max_z > 0, "z max %g rms %g", v.max_z, v.rms_z);
    double *values = e2e_read(d);
    for (int64_t batch = 0; batch < 6; batch++) {
        int64_t row = 3 * batch + 1, at = (batch * 20 + row) * 25 + 7;
        double right = values[at];
        values[at] = 1.5 * right;
        jask_array *wrong = e2e_make("wrong.npy", JASK_F64, 4, of_d, values);
        v = verify(ctx, a, b, wrong, NULL);
        cr_assert(!v.passed && v.worst_row == batch * 20 + row, "batch %d: z %g in row %d",
                  (int)batch, v.max_z, (int)v.worst_row);
        seen[batch] = v.relative_error;
        values[at] = right;
        jask_array_close(wrong);
    }
    cr_assert(seen[0] > 0 && seen[0] < 0.1, "%g: of the norm of all batches", seen[0]);
    free(values);
    jask_array_close(d);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}

Test(verify_pairs, no_batch_has_nothing_wrong_in_it)
{
    const int64_t of_a[] = {0, 20, 30}, of_b[] = {30, 25}, of_d[] = {0, 20, 25};
    jask_context *ctx = e2e_context(BUDGET, "auto", true);
    jask_array *a = make_batches("a.npy", 3, of_a, 1), *b = make_batches("b.npy", 2, of_b, 2);
    jask_array *d = make_batches("d.npy", 3, of_d, 3);
    jask_verification v = verify(ctx, a, b, d, NULL);
    cr_assert(v.passed && v.worst_row == -1);
    jask_array_close(d);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
}
