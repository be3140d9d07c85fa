#include "runtime/scale.h"

#include "kernels/host_kernels.h"

#include <stdlib.h>
#include <string.h>

static void scale(void *data, int64_t count, jask_dtype dtype, double beta)
{
    bool is_complex = dtype == JASK_C64 || dtype == JASK_C128;
    int64_t parts = is_complex ? 2 * count : count;
    if (dtype == JASK_F32 || dtype == JASK_C64)
        for (int64_t i = 0; i < parts; i++)
            ((float *)data)[i] *= (float)beta;
    else
        for (int64_t i = 0; i < parts; i++)
            ((double *)data)[i] *= beta;
}

/* One window of D: read (turned, if C is stored as its transpose), scale, write. */
static jask_status scale_window(const jk_matrix *c, double beta, const jk_matrix *d, jk_window w,
                                char *buffer, char *turned, _Atomic uint64_t bytes[2],
                                jask_error *err)
{
    jask_dtype memory = jk_memory_type(d);
    size_t size = jask_dtype_size(memory);
    jk_window stored = c->trans ? (jk_window){w.col, w.row, w.cols, w.rows} : w;
    jask_status st = jk_matrix_read(c, &stored, buffer, stored.cols, &bytes[0], err);
    if (st)
        return st;
    scale(buffer, w.rows * w.cols, memory, beta);
    if (c->trans) {
        jk_transpose(turned, w.cols, buffer, w.rows, w.cols, w.rows, size);
        buffer = turned;
    }
    st = jk_matrix_narrow(d, &w, buffer, w.cols, err);
    return st ? st : jk_matrix_write(d, &w, buffer, w.cols, &bytes[1], err);
}

/* One block to read into, one to turn a C stored as its transpose into. */
size_t jk_scale_bytes(size_t block_bytes)
{
    return 2 * block_bytes;
}

jask_status jk_scale_matrix(const jk_matrix *c, double beta, const jk_matrix *d, size_t block_bytes,
                            jk_run_stats *stats, jask_error *err)
{
    int64_t block = (int64_t)(block_bytes / jask_dtype_size(jk_memory_type(d)));
    _Atomic uint64_t bytes[2] = {0, 0};
    jask_status st = JASK_OK;
    char *buffer = malloc(jk_scale_bytes(block_bytes));
    if (!buffer)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for %zu bytes of buffers",
                       jk_scale_bytes(block_bytes));
    for (int64_t row = 0; !st && d->cols > 0 && row < d->rows;) {
        int64_t cols = jk_min(d->cols, block);
        int64_t rows = jk_min(d->rows - row, block / cols);
        for (int64_t col = 0; !st && col < d->cols; col += cols) {
            jk_window w = {row, col, rows, jk_min(cols, d->cols - col)};
            st = scale_window(c, beta, d, w, buffer, buffer + block_bytes, bytes, err);
        }
        row += rows;
    }
    free(buffer);
    if (st)
        return st;
    stats->io.file_read_bytes += bytes[0];
    stats->io.file_write_bytes += bytes[1];
    stats->peak_device_bytes = jk_scale_bytes(block_bytes);
    return JASK_OK;
}
