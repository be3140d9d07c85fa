/* Parts of the independent check of a product (verify_verdict.c says what it computes). Nothing
 * here knows the planner, the pipeline or a device: what checks must not share the faults of what
 * is checked. */
#ifndef JK_RUNTIME_VERIFY_H
#define JK_RUNTIME_VERIFY_H

#include "common/base.h"
#include "runtime/array.h"
#include "runtime/device.h"

/* Elements that the inner loops take at a time. */
#define JK_VERIFY_TILE 256

/* verify_math.c: the random vector and the inner loops. */

/* Components [first, first + count) of the random vector: +-(1 + U[0,1)), a function of the index
 * alone, so that the vector needs no memory. */
void jk_verify_vector(int64_t first, int64_t count, double *out);

void jk_verify_widen(const float *in, int64_t n, double *out);

/* *s += sum of a[c] * u[c], *t += sum of (a[c] * v[c])^2. */
void jk_verify_row(const double *a, const double *u, const double *v, int64_t n, double *s,
                   double *t);

/* The same for n columns of four rows that lie JK_VERIFY_TILE apart: s[c] += sum over r of
 * a[r][c] * u[r], t[c] += sum over r of (a[r][c] * v[r])^2. */
void jk_verify_columns(const double *a, const double *u, const double *v, int64_t n, double *s,
                       double *t);

/* What to check. */

/* A matrix to read: rows x cols as it is stored; `trans` says that its transpose is wanted. `read`
 * fills dst with a window of the stored form, in this machine's byte order. Where extents are even,
 * windows begin and end at even places. */
typedef struct jk_verify_source {
    jask_status (*read)(void *user, const jk_window *window, void *dst, int64_t ld_elems,
                        jask_error *err);
    void *user;
    int64_t rows, cols;
    bool trans;
} jk_verify_source;

typedef struct jk_verify_job {
    /* Products of these extents, one after the other, 0 is 1; `turn` (may be NULL for one) is called
     * before each, and then the sources are those of that batch. */
    int64_t batches;
    void (*turn)(void *user, int64_t batch);
    jask_dtype dtype;  /* f32 or f64: of elements as they are read, and of sums */
    jask_dtype output; /* that D was rounded to at the end, where that is narrower; else NONE */
    int64_t m, n, k;
    double alpha, beta;
    double input_unit; /* relative error that elements of A and B may be rounded with, or 0 */
    jk_verify_source a, b, d;
    jk_verify_source c;    /* read only when beta is not 0 */
    jk_device *host;       /* that lends the memory; may be NULL */
    uint64_t memory_bytes; /* less is taken when it is not needed; 4096 in any case */
    /* Called after every piece with the elements read so far and in all, of one batch; non-zero
     * stops. */
    jask_status (*tick)(void *user, double done, double total, jask_error *err);
    void *tick_user; /* of turn, too */
} jk_verify_job;

/* verify_pairs.c: complex matrices as sources of real ones. */

/* Where a source reads; `bytes` counts. */
typedef struct jk_verify_matrix {
    const jk_matrix *matrix;
    _Atomic uint64_t *bytes;
} jk_verify_matrix;

/* Of A, C and D: real and imaginary parts along the rows of what is wanted. Of B: each element is four. */
jk_verify_source jk_verify_pairs(jk_verify_matrix *from);
jk_verify_source jk_verify_blocks(jk_verify_matrix *from);

/* verify_probe.c: do rounding errors add up like noise? */

/* A piece of a matrix in memory, in the coordinates of what is wanted of it: element (i, j) lies at
 * data[(i - row) * row_step + (j - col) * col_step], and one of the steps is 1. */
typedef struct jk_verify_view {
    const void *data;
    jask_dtype dtype;
    int64_t row, col, rows, cols;
    int64_t row_step, col_step;
} jk_verify_view;

#define JK_PROBE_ROWS 16
#define JK_PROBE_COLS 8

typedef struct jk_probe_chain {
    double sum;            /* in the type of the data */
    double window;         /* rounding errors of the last `terms` steps, added up */
    double window_squares; /* of full windows */
    double step_squares;
    int64_t terms, windows;
} jk_probe_chain;

/* A sample of elements of op(A)op(B), summed over k as a plain loop would. */
typedef struct jk_probe {
    jask_dtype dtype;
    int64_t window_terms;
    int64_t rows[JK_PROBE_ROWS], cols[JK_PROBE_COLS];
    int row_count, col_count;
    double *b;            /* JK_PROBE_COLS x chunk: the sampled columns of B, the caller's memory */
    int64_t chunk, first; /* its length, and the k index it begins with */
    jk_probe_chain chain[JK_PROBE_ROWS][JK_PROBE_COLS];
} jk_probe;

/* Choose the sample out of the rows [row, row + rows) and all columns. */
void jk_probe_start(jk_probe *probe, const jk_verify_job *job, int64_t row, int64_t rows);

/* Take from a piece of op(B) what belongs to the sample; then go on with a piece of op(A), whose k
 * indices follow those of the piece before. */
void jk_probe_take_b(jk_probe *probe, const jk_verify_view *b);
void jk_probe_take_a(jk_probe *probe, const jk_verify_view *a);

/* What a drift adds to the variance of a sum's error: 0 for noise (and what chance alone explains),
 * about k times that of noise when every step errs alike. */
double jk_probe_drift(const jk_probe *probe);

/* verify_stream.c: the sums, in bounded memory. */

/* What is known of one row when all has been read. Squares are of elements times 2^exponent. */
typedef struct jk_verify_row_sums {
    double ab, ab_squares; /* (op(A)op(B)x)_i and q_i */
    double d, d_squares;   /* (Dx)_i and ||D_i||^2 */
    double c, c_squares;   /* the same of C; 0 when beta is 0 */
} jk_verify_row_sums;

/* Powers of two that keep squares of f64 elements in range. */
typedef struct jk_verify_exponents {
    int ab, d, c;
} jk_verify_exponents;

/* Reads each matrix once (B once for every block of rows, when the vectors of neither m nor k fit
 * the memory) and calls `judge` row after row. */
typedef void (*jk_verify_judge)(void *user, int64_t row, const jk_verify_row_sums *sums,
                                const jk_verify_exponents *exponents, double drift);
jask_status jk_verify_stream(const jk_verify_job *job, jk_verify_judge judge, void *judge_user,
                             jask_error *err);

/* verify_verdict.c: the verdict. */

/* Fills all of `out` but struct_size, seconds and file_read_bytes. */
jask_status jk_verify_run(const jk_verify_job *job, jask_verification *out, jask_error *err);

#endif
