/* Helpers of the end-to-end tests: matrices of small integers in files of every form, products of
 * them through the public API, and what must hold of every product's report. */
#ifndef JASK_TESTS_E2E_H
#define JASK_TESTS_E2E_H

#include <jask.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct e2e_form {
    jask_dtype dtype;
    bool fortran, big_endian;
} e2e_form;

/* A directory for this test alone, removed with its content by e2e_cleanup. */
void e2e_init(void);
void e2e_cleanup(void);
/* Path of `name` in it; the text lives until the eighth call from now. */
const char *e2e_path(const char *name);

/* Element (i, j) of the integer matrix `seed`: between -8 and 8. */
int64_t e2e_value(unsigned seed, int64_t i, int64_t j);

/* Write rows x cols of `value(seed, i, j)` (NULL: e2e_value) as .npy. */
typedef double (*e2e_value_fn)(unsigned seed, int64_t i, int64_t j);
void e2e_write(const char *path, e2e_form form, int64_t rows, int64_t cols, unsigned seed,
               e2e_value_fn value);

jask_array *e2e_open(const char *path);

/* A new .npy of that name in the directory, holding `data`; open for reading. */
jask_array *e2e_make(const char *name, jask_dtype dtype, int ndim, const int64_t *shape,
                     const void *data);

/* A context with this budget; scratch lies in the test's directory, results are not synced. */
jask_context *e2e_context(uint64_t budget_bytes, const char *planner, bool pipelined);

/* jask_dot that must succeed, with every promise of its report checked: counted bytes equal planned
 * ones, the peak equals the plan's and stays within the budget. Returns the result, in scratch. */
jask_array *e2e_dot(jask_context *ctx, const jask_array *a, const jask_array *b,
                    const jask_dot_args *args, jask_report *report);

/* Read a whole f32 or f64 array as doubles, in C order; free it. */
double *e2e_read(const jask_array *array);

#endif
