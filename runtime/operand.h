/* Arrays as operands of products: a matrix for each index of their batch dimensions. */
#ifndef JK_RUNTIME_OPERAND_H
#define JK_RUNTIME_OPERAND_H

#include "runtime/array.h"

typedef struct jk_operand {
    jk_matrix matrix; /* of the first batch */
    int batch_ndim;   /* dimensions before those of the matrix */
    int64_t batch_shape[JASK_MAX_DIMS];
    uint64_t batch_steps[JASK_MAX_DIMS]; /* bytes; 0 where the extent is 1 */
} jk_operand;

/* What of a matrix an array has no dimension for: there is one row, or one column. */
typedef struct jk_lacks {
    bool rows, cols;
} jk_lacks;

/* ARG naming `what` for an array with too few dimensions; UNSUPPORTED for batches in Fortran order,
 * whose matrices do not lie in one piece. */
jask_status jk_operand_of(const jask_array *array, jk_lacks lacks, bool transpose, const char *what,
                          jk_operand *out, jask_error *err);

/* Rows and columns of what is wanted. */
static inline int64_t jk_wanted_rows(const jk_matrix *m)
{
    return m->trans ? m->cols : m->rows;
}

static inline int64_t jk_wanted_cols(const jk_matrix *m)
{
    return m->trans ? m->rows : m->cols;
}

/* The arrays of a product, in the order of jk_batches. */
enum { JK_ARRAY_A, JK_ARRAY_B, JK_ARRAY_C, JK_ARRAY_D, JK_ARRAYS };

/* Products of equal extents, one for each index of the batch dimensions. */
typedef struct jk_batches {
    int64_t count; /* the product of extents */
    int ndim;
    int64_t extents[JASK_MAX_DIMS];
    uint64_t steps[JK_ARRAYS][JASK_MAX_DIMS]; /* bytes; 0: one matrix serves them all */
} jk_batches;

/* The batch dimensions of a product as NumPy broadcasts them, with the steps of A and B. ARG for
 * extents that differ and are not 1. */
jask_status jk_batches_of(const jk_operand *a, const jk_operand *b, jk_batches *out,
                          jask_error *err);

/* ARG, with both shapes, when op(A) has not as many columns as op(B) has rows. */
jask_status jk_check_inner(const jk_matrix *a, const jk_matrix *b, jask_error *err);

/* The product's dimensions: batches, then m and n unless A, or B, lacks them. */
jask_status jk_product_shape(const jk_batches *batches, jk_lacks lacks, int64_t m, int64_t n,
                             int *out_ndim, int64_t *out_shape, jask_error *err);

/* ARG unless `array`, called `what`, has the shape that `owner` has. */
jask_status jk_check_shape(const jask_array *array, const char *what, const char *owner, int ndim,
                           const int64_t *shape, jask_error *err);

/* The steps of an array whose batches are those of the result, matrix_bytes each, one behind the
 * other. */
void jk_batches_set_dense(jk_batches *batches, int array, uint64_t matrix_bytes);

/* Drop the last batch dimensions as far as one B serves them and the rows of all others that are
 * read or written follow one another: then that many times more rows are one product. Returns how
 * many times. */
int64_t jk_batches_fold(jk_batches *batches, const jk_matrix *a, const jk_matrix *c);

/* The same for a sum over batches: the rows of a transposed A and of B follow one another, and are
 * that many times more indices of k. */
int64_t jk_batches_fold_depth(jk_batches *batches, jk_matrix *a, jk_matrix *b);

/* `matrix`, which is the first of its array, in batch number `batch`. */
jk_matrix jk_batch_matrix(const jk_batches *batches, int array, const jk_matrix *matrix,
                          int64_t batch);

#endif
