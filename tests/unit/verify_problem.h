/* Products in memory that the check reads through the same windows as files. */
#ifndef JK_TEST_VERIFY_PROBLEM_H
#define JK_TEST_VERIFY_PROBLEM_H

#include "runtime/verify.h"

#define MEMORY ((uint64_t)64 << 20)
#define LEAST_MEMORY ((uint64_t)4096)

typedef struct matrix {
    int64_t rows, cols; /* as wanted */
    bool trans;         /* stored as its transpose */
    jask_dtype dtype;
    double *at; /* wanted form, values of the type */
    int64_t reads;
    int64_t largest_window;
} matrix;

typedef enum data { NOISE, POSITIVE, INTEGERS, CONSTANT, OUTLIERS, TENTHS, DATA_COUNT } data;

typedef struct problem {
    jask_dtype dtype;
    double alpha, beta;
    double input_unit; /* what the check allows for */
    uint64_t memory;
    matrix a, b, c, d;
    double told, total;
} problem;

/* Everything random follows from the seed. */
void seed_values(uint64_t seed);
double value(data kind);
double rounded(jask_dtype dtype, double x);

matrix matrix_new(int64_t rows, int64_t cols, jask_dtype dtype);

/* A, B and C filled, D zero, alpha 1, beta 0. */
problem problem_new(jask_dtype dtype, int64_t m, int64_t n, int64_t k, data kind);
void problem_free(problem *p);

/* D as plain loops in the type of the data compute it: sums of `slab` terms, added up in order onto
 * beta * C. */
void multiply(problem *p, int64_t slab);

jk_verify_job job_of(problem *p);
jask_verification verify(problem *p);
void expect_pass(problem *p, const char *what);
jask_verification expect_fail(problem *p, const char *what);

#endif
