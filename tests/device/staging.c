#include "staging.h"

#include "cusim.h"
#include "kernels/host_kernels.h"
#include "runtime/array.h"

#include <time.h>

static bool fail_last_write;

void staging_fail_last_write(bool fail)
{
    fail_last_write = fail;
}

static size_t span_bytes(int64_t rows, int64_t cols, int64_t ld, size_t size)
{
    return rows > 0 ? (size_t)((rows - 1) * ld + cols) * size : 0;
}

jask_status __real_jk_matrix_read(const jk_matrix *matrix, const jk_window *w, void *dst,
                                  int64_t ld, _Atomic uint64_t *bytes, jask_error *err);
jask_status __wrap_jk_matrix_read(const jk_matrix *matrix, const jk_window *w, void *dst,
                                  int64_t ld, _Atomic uint64_t *bytes, jask_error *err);
jask_status __wrap_jk_matrix_read(const jk_matrix *matrix, const jk_window *w, void *dst,
                                  int64_t ld, _Atomic uint64_t *bytes, jask_error *err)
{
    cusim_host_write(dst, span_bytes(w->rows, w->cols, ld, jask_dtype_size(matrix->dtype)),
                     "reading a file");
    return __real_jk_matrix_read(matrix, w, dst, ld, bytes, err);
}

void __real_jk_transpose(void *dst, int64_t dst_ld, const void *src, int64_t src_ld, int64_t rows,
                         int64_t cols, size_t size);
void __wrap_jk_transpose(void *dst, int64_t dst_ld, const void *src, int64_t src_ld, int64_t rows,
                         int64_t cols, size_t size);
void __wrap_jk_transpose(void *dst, int64_t dst_ld, const void *src, int64_t src_ld, int64_t rows,
                         int64_t cols, size_t size)
{
    cusim_host_write(dst, span_bytes(cols, rows, dst_ld, size), "transposing");
    __real_jk_transpose(dst, dst_ld, src, src_ld, rows, cols, size);
}

jask_status __real_jk_matrix_write(const jk_matrix *matrix, const jk_window *w, const void *src,
                                   int64_t ld, _Atomic uint64_t *bytes, jask_error *err);
jask_status __wrap_jk_matrix_write(const jk_matrix *matrix, const jk_window *w, const void *src,
                                   int64_t ld, _Atomic uint64_t *bytes, jask_error *err);
jask_status __wrap_jk_matrix_write(const jk_matrix *matrix, const jk_window *w, const void *src,
                                   int64_t ld, _Atomic uint64_t *bytes, jask_error *err)
{
    static const struct timespec a_while = {.tv_nsec = 20000000};
    bool last = w->row + w->rows == matrix->rows && w->col + w->cols == matrix->cols;
    cusim_host_read(src, span_bytes(w->rows, w->cols, ld, jask_dtype_size(matrix->dtype)),
                    "writing a file");
    if (last && fail_last_write) {
        nanosleep(&a_while, NULL);
        return jk_fail(err, JASK_ERR_IO, "the disk has failed");
    }
    return __real_jk_matrix_write(matrix, w, src, ld, bytes, err);
}
