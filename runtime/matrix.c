/* 2-D windows of arrays. */
#include "kernels/host_elements.h"
#include "runtime/array.h"
#include "runtime/dtype.h"

#include <assert.h>
#include <inttypes.h>

jask_status jk_matrix_of(const jask_array *array, bool transpose, const char *what, jk_matrix *out,
                         jask_error *err)
{
    const jk_layout *layout = &array->layout;
    bool turned = layout->fortran_order;
    if (layout->ndim != 2)
        return jk_fail(err, JASK_ERR_ARG, "%s '%s' has %d dimension%s, but a matrix has 2", what,
                       array->path, layout->ndim, layout->ndim == 1 ? "" : "s");
    *out = (jk_matrix){
        .file = jk_array_file(array),
        .path = array->path,
        .offset = layout->data_offset,
        .rows = layout->shape[turned ? 1 : 0],
        .cols = layout->shape[turned ? 0 : 1],
        .dtype = layout->dtype,
        .swap = layout->big_endian != JK_HOST_BIG_ENDIAN,
        .trans = transpose != turned,
    };
    out->row_bytes = (uint64_t)out->cols * jask_dtype_size(out->dtype);
    return JASK_OK;
}

bool jk_matrix_is_transpose(const jk_matrix *a, const jk_matrix *b)
{
    return a->file && b->file && jk_file_same(a->file, b->file) && a->offset == b->offset &&
           a->rows == b->rows && a->cols == b->cols && a->row_bytes == b->row_bytes &&
           a->dtype == b->dtype && a->swap == b->swap && a->trans != b->trans &&
           a->conj == b->conj && !a->parts && !b->parts;
}

/* A window as runs of bytes: whole rows that lie together on both sides are one. */
typedef struct runs {
    int64_t count;
    size_t bytes; /* of one */
    uint64_t file_offset, file_pitch;
    size_t mem_pitch;
} runs;

static runs runs_of(const jk_matrix *matrix, const jk_window *window, int64_t ld_elems,
                    jask_dtype in_memory)
{
    size_t size = jask_dtype_size(matrix->dtype);
    runs r = {
        .count = window->rows,
        .bytes = (size_t)window->cols * size,
        .file_offset = matrix->offset + (uint64_t)window->row * matrix->row_bytes +
                       (uint64_t)window->col * size,
        .file_pitch = matrix->row_bytes,
        .mem_pitch = (size_t)ld_elems * jask_dtype_size(in_memory),
    };
    assert(window->row >= 0 && window->rows >= 0 && window->row + window->rows <= matrix->rows);
    assert(window->col >= 0 && window->cols >= 0 && window->col + window->cols <= matrix->cols);
    assert(ld_elems >= window->cols);
    if (r.bytes == r.file_pitch && ld_elems == window->cols) {
        r.bytes *= (size_t)r.count;
        r.count = 1;
    }
    return r;
}

static bool goes_direct(const jk_matrix *matrix, size_t run_bytes)
{
    return matrix->direct && run_bytes >= JK_DIRECT_MIN;
}

/* Runs that are not in the page cache yet, with what else of their rows is to come with them. What is there
 * need not be announced: a call for each run is dear beside copying a short one. */
static void announce(const jk_matrix *matrix, const jk_window *window, const runs *r)
{
    uint64_t start = (uint64_t)window->col * jask_dtype_size(matrix->dtype), end = start + r->bytes;
    uint64_t row = r->file_offset - start, ahead = matrix->ahead_bytes;
    if (jk_file_runs_cached(matrix->file, r->file_offset, r->file_pitch, r->count))
        return;
    if (ahead > 0) {
        start -= start % ahead;
        end = (uint64_t)jk_ceil_div((int64_t)end, (int64_t)ahead) * ahead;
        end = end < matrix->row_bytes ? end : matrix->row_bytes;
    }
    jk_file_announce(matrix->file, row + start, (size_t)(end - start), r->file_pitch, r->count);
}

static uint64_t offset_of_part(const jk_parts *parts, int64_t part)
{
    uint64_t offset = 0;
    for (int d = parts->ndim - 1; d >= 0; d--) {
        offset += (uint64_t)(part % parts->extents[d]) * parts->steps[d];
        part /= parts->extents[d];
    }
    return offset;
}

/* A window part by part. */
static jask_status read_parts(const jk_matrix *matrix, const jk_window *window, char *dst,
                              int64_t ld_elems, _Atomic uint64_t *bytes, jask_error *err)
{
    const jk_parts *parts = matrix->parts;
    size_t size = jask_dtype_size(jk_memory_type(matrix));
    int64_t from = parts->beside ? window->col : window->row;
    int64_t end = from + (parts->beside ? window->cols : window->rows);
    jask_status st = JASK_OK;
    for (int64_t at = from, count; !st && at < end; at += count) {
        int64_t inside = at % parts->extent;
        jk_matrix one = *matrix;
        jk_window w = *window;
        count = jk_min(parts->extent - inside, end - at);
        one.parts = NULL;
        one.offset += offset_of_part(parts, at / parts->extent);
        *(parts->beside ? &one.cols : &one.rows) = parts->extent;
        *(parts->beside ? &w.col : &w.row) = inside;
        *(parts->beside ? &w.cols : &w.rows) = count;
        st = jk_matrix_read(&one, &w,
                            dst + (size_t)((at - from) * (parts->beside ? 1 : ld_elems)) * size,
                            ld_elems, bytes, err);
    }
    return st;
}

jask_status jk_matrix_read(const jk_matrix *matrix, const jk_window *window, void *dst,
                           int64_t ld_elems, _Atomic uint64_t *bytes, jask_error *err)
{
    if (matrix->parts)
        return read_parts(matrix, window, dst, ld_elems, bytes, err);
    jask_dtype memory = jk_memory_type(matrix);
    runs r = runs_of(matrix, window, ld_elems, memory);
    size_t size = jask_dtype_size(matrix->dtype), wide = jask_dtype_size(memory);
    atomic_fetch_add(bytes, (uint64_t)r.count * r.bytes);
    if (r.count > 1 && !goes_direct(matrix, r.bytes))
        announce(matrix, window, &r);
    for (int64_t i = 0; i < r.count; i++) {
        size_t elems = r.bytes / size;
        char *place = (char *)dst + (size_t)i * r.mem_pitch;
        /* At the end of the place of wider elements, which then spread out from the front. */
        char *to = place + elems * (wide - size);
        uint64_t offset = r.file_offset + (uint64_t)i * r.file_pitch;
        jask_status st = matrix->direct ? jk_direct_read(matrix->direct, offset, to, r.bytes, err)
                                        : jk_file_read(matrix->file, offset, to, r.bytes, err);
        if (st)
            return st;
        jk_drop_behind_add(matrix->behind, offset, r.bytes);
        if (matrix->swap)
            jk_dtype_swap(to, elems, matrix->dtype);
        if (memory != matrix->dtype)
            jk_convert((int64_t)elems, matrix->dtype, to, memory, place);
        if (matrix->conj)
            jk_conjugate((int64_t)elems, memory, place);
    }
    return JASK_OK;
}

static jask_status narrow_run(const jk_matrix *matrix, const jk_window *window, int64_t row,
                              int64_t count, const char *src, char *dst, jask_error *err)
{
    jk_kind kind = jk_dtype_kind(matrix->dtype);
    int64_t bad;
    double value;
    if (kind != JK_SIGNED && kind != JK_UNSIGNED) {
        jk_convert(count, jk_memory_type(matrix), src, matrix->dtype, dst);
        return JASK_OK;
    }
    bad = jk_f64_to_whole(count, src, matrix->dtype, dst, &value);
    if (bad == count)
        return JASK_OK;
    return jk_fail(err, JASK_ERR_UNSUPPORTED,
                   "element (%" PRId64 ", %" PRId64 ") of '%s' is %.0f, which %s cannot hold; "
                   "choose a wider type for the result",
                   window->row + row + bad / window->cols, window->col + bad % window->cols,
                   matrix->path, value, jask_dtype_name(matrix->dtype));
}

jask_status jk_matrix_narrow(const jk_matrix *matrix, const jk_window *window, void *data,
                             int64_t ld_elems, jask_error *err)
{
    jask_dtype memory = jk_memory_type(matrix);
    size_t pitch = (size_t)ld_elems * jask_dtype_size(memory);
    jask_status st = JASK_OK;
    if (memory == matrix->dtype)
        return JASK_OK;
    if (ld_elems == window->cols)
        return narrow_run(matrix, window, 0, window->rows * window->cols, data, data, err);
    for (int64_t i = 0; !st && i < window->rows; i++) {
        char *row = (char *)data + (size_t)i * pitch;
        st = narrow_run(matrix, window, i, window->cols, row, row, err);
    }
    return st;
}

jask_status jk_matrix_write(const jk_matrix *matrix, const jk_window *window, const void *src,
                            int64_t ld_elems, _Atomic uint64_t *bytes, jask_error *err)
{
    jask_dtype memory = ld_elems == window->cols ? matrix->dtype : jk_memory_type(matrix);
    runs r = runs_of(matrix, window, ld_elems, memory);
    assert(!matrix->swap);
    atomic_fetch_add(bytes, (uint64_t)r.count * r.bytes);
    for (int64_t i = 0; i < r.count; i++) {
        uint64_t offset = r.file_offset + (uint64_t)i * r.file_pitch;
        const char *from = (const char *)src + (size_t)i * r.mem_pitch;
        jask_status st = matrix->direct
                             ? jk_direct_write(matrix->direct, offset, from, r.bytes, err)
                             : jk_file_write(matrix->file, offset, from, r.bytes, err);
        if (st)
            return st;
    }
    return JASK_OK;
}
