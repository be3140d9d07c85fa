#include "runtime/operand.h"

#include "runtime/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static jask_status check_dims(const jask_array *array, int own, const char *what, jask_error *err)
{
    int ndim = array->layout.ndim;
    if (ndim >= own)
        return JASK_OK;
    return jk_fail(err, JASK_ERR_ARG, "%s '%s' has %d dimension%s, but needs %s%d", what,
                   array->path, ndim, ndim == 1 ? "" : "s", own == 1 ? "at least " : "", own);
}

jask_status jk_operand_of(const jask_array *array, jk_lacks lacks, bool transpose, const char *what,
                          jk_operand *out, jask_error *err)
{
    const jk_layout *layout = &array->layout;
    int own = 2 - lacks.rows - lacks.cols;
    int64_t batches = 1;
    bool turned = layout->fortran_order && own == 2;
    jk_operand op = {.batch_ndim = layout->ndim - own};
    jask_status st = check_dims(array, own, what, err);
    if (st)
        return st;
    for (int d = 0; d < op.batch_ndim; d++) {
        op.batch_shape[d] = layout->shape[d];
        op.batch_steps[d] = layout->shape[d] == 1 ? 0 : (uint64_t)layout->strides[d];
        batches *= layout->shape[d] == 1 ? 1 : 2; /* 1 or more */
    }
    if (layout->fortran_order && batches > 1)
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "%s '%s' holds batches of matrices in Fortran order: theirs lie scattered; "
                       "store it in C order first (jask-add with --beta 0)",
                       what, array->path);
    int64_t rows = lacks.rows ? 1 : layout->shape[op.batch_ndim];
    int64_t cols = lacks.cols ? 1 : layout->shape[layout->ndim - 1];
    op.matrix = (jk_matrix){
        .file = jk_array_file(array),
        .path = array->path,
        .offset = layout->data_offset,
        .rows = turned ? cols : rows,
        .cols = turned ? rows : cols,
        .dtype = layout->dtype,
        .swap = layout->big_endian != JK_HOST_BIG_ENDIAN,
        .trans = transpose != turned,
    };
    op.matrix.row_bytes = (uint64_t)op.matrix.cols * jask_dtype_size(op.matrix.dtype);
    *out = op;
    return JASK_OK;
}

/* Extent and step of `op` along dimension d of `ndim` broadcast ones: 1 and 0 where it has none. */
static int64_t extent_of(const jk_operand *op, int ndim, int d, uint64_t *step)
{
    int own = d - (ndim - op->batch_ndim);
    *step = own < 0 ? 0 : op->batch_steps[own];
    return own < 0 ? 1 : op->batch_shape[own];
}

jask_status jk_batches_of(const jk_operand *a, const jk_operand *b, jk_batches *out,
                          jask_error *err)
{
    jk_batches all = {.count = 1, .ndim = (int)jk_max(a->batch_ndim, b->batch_ndim)};
    for (int d = 0; d < all.ndim; d++) {
        int64_t x = extent_of(a, all.ndim, d, &all.steps[JK_ARRAY_A][d]);
        int64_t y = extent_of(b, all.ndim, d, &all.steps[JK_ARRAY_B][d]);
        if (x != y && x != 1 && y != 1)
            return jk_fail(err, JASK_ERR_ARG,
                           "batch dimensions do not fit: %" PRId64 " of A '%s' and %" PRId64
                           " of B '%s' meet; they must be equal, or one of them 1",
                           x, a->matrix.path, y, b->matrix.path);
        all.extents[d] = x == 1 ? y : x;
        if (__builtin_mul_overflow(all.count, all.extents[d], &all.count))
            return jk_fail(err, JASK_ERR_ARG, "more batches than can be counted in 63 bits");
    }
    *out = all;
    return JASK_OK;
}

jask_status jk_check_inner(const jk_matrix *a, const jk_matrix *b, jask_error *err)
{
    if (jk_wanted_cols(a) == jk_wanted_rows(b))
        return JASK_OK;
    return jk_fail(err, JASK_ERR_ARG,
                   "shapes do not fit: A '%s' as it is used is %" PRId64 " x %" PRId64
                   ", B '%s' is %" PRId64 " x %" PRId64
                   "; the columns of the first must equal the rows of the second",
                   a->path, jk_wanted_rows(a), jk_wanted_cols(a), b->path, jk_wanted_rows(b),
                   jk_wanted_cols(b));
}

jask_status jk_product_shape(const jk_batches *batches, jk_lacks lacks, int64_t m, int64_t n,
                             int *out_ndim, int64_t *out_shape, jask_error *err)
{
    int ndim = batches->ndim;
    if (ndim + !lacks.rows + !lacks.cols > JASK_MAX_DIMS)
        return jk_fail(err, JASK_ERR_UNSUPPORTED, "the product has more than %d dimensions",
                       JASK_MAX_DIMS);
    memcpy(out_shape, batches->extents, (size_t)ndim * sizeof *out_shape);
    if (!lacks.rows)
        out_shape[ndim++] = m;
    if (!lacks.cols)
        out_shape[ndim++] = n;
    *out_ndim = ndim;
    return JASK_OK;
}

static void put_shape(int ndim, const int64_t *shape, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "%s", "without dimensions");
    for (int d = 0; d < ndim && used < size; d++) {
        int len = snprintf(text + used, size - used, "%s%" PRId64, d ? " x " : "", shape[d]);
        used += len < 0 ? 0 : (size_t)len;
    }
}

jask_status jk_check_shape(const jask_array *array, const char *what, const char *owner, int ndim,
                           const int64_t *shape, jask_error *err)
{
    const jk_layout *layout = &array->layout;
    char is[128], must[128];
    if (layout->ndim == ndim && memcmp(layout->shape, shape, (size_t)ndim * sizeof *shape) == 0)
        return JASK_OK;
    put_shape(layout->ndim, layout->shape, is, sizeof is);
    put_shape(ndim, shape, must, sizeof must);
    return jk_fail(err, JASK_ERR_ARG, "%s '%s' is %s but %s is %s", what, array->path, is, owner,
                   must);
}

void jk_batches_set_dense(jk_batches *batches, int array, uint64_t matrix_bytes)
{
    uint64_t step = matrix_bytes;
    for (int d = batches->ndim - 1; d >= 0; d--) {
        batches->steps[array][d] = step;
        step *= (uint64_t)batches->extents[d];
    }
}

int64_t jk_batches_fold(jk_batches *batches, const jk_matrix *a, const jk_matrix *c)
{
    uint64_t a_bytes = (uint64_t)a->rows * a->row_bytes;
    int64_t times = 1, rows;
    if (a->trans || (c->file && c->trans))
        return 1;
    while (batches->ndim > 0) {
        int last = batches->ndim - 1;
        int64_t extent = batches->extents[last];
        if (extent != 1 && (batches->steps[JK_ARRAY_B][last] != 0 ||
                            batches->steps[JK_ARRAY_A][last] != (uint64_t)times * a_bytes))
            break;
        /* Without columns there may be more rows than can be counted. */
        if (__builtin_mul_overflow(a->rows, times, &rows) ||
            __builtin_mul_overflow(rows, extent, &rows))
            break;
        batches->ndim--;
        times *= extent;
        batches->count /= jk_max(extent, 1);
    }
    return times;
}

int64_t jk_batches_fold_depth(jk_batches *batches, jk_matrix *a, jk_matrix *b)
{
    int64_t times = 1;
    if (!a->trans || b->trans)
        return 1;
    while (batches->ndim > 0) {
        int last = batches->ndim - 1;
        int64_t extent = batches->extents[last];
        if (extent != 1 && (batches->steps[JK_ARRAY_A][last] != (uint64_t)a->rows * a->row_bytes ||
                            batches->steps[JK_ARRAY_B][last] != (uint64_t)b->rows * b->row_bytes))
            break;
        if (__builtin_mul_overflow(a->rows, extent, &a->rows))
            break;
        b->rows = a->rows;
        batches->ndim--;
        times *= extent;
        batches->count /= jk_max(extent, 1);
    }
    return times;
}

jk_matrix jk_batch_matrix(const jk_batches *batches, int array, const jk_matrix *matrix,
                          int64_t batch)
{
    jk_matrix at = *matrix;
    for (int d = batches->ndim - 1; d >= 0; d--) {
        int64_t index = batch % batches->extents[d];
        batch /= batches->extents[d];
        at.offset += (uint64_t)index * batches->steps[array][d];
    }
    return at;
}
