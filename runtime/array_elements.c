/* jask_array_read and jask_array_write: ranges of elements in logical (C) order. */
#include "runtime/array.h"
#include "runtime/dtype.h"

#include <stdlib.h>
#include <string.h>

/* Elements that lie apart are read together, with what is between, while at most this lies between:
 * a request costs about as much as copying that many bytes. */
#define GAP_BYTES ((int64_t)32 << 10)
#define BUFFER_BYTES ((int64_t)1 << 20)

static jask_status check_range(const jask_array *array, uint64_t first, uint64_t count,
                               const void *data, const char *verb, jask_error *err)
{
    uint64_t end;
    if (!array || (!data && count > 0))
        return jk_fail(err, JASK_ERR_ARG, "an array and a buffer are needed to %s elements", verb);
    if (!jk_add_u64(first, count, &end) || end > array->layout.elements)
        return jk_fail(err, JASK_ERR_ARG,
                       "cannot %s %llu elements from number %llu of '%s', which has %llu", verb,
                       (unsigned long long)count, (unsigned long long)first, array->path,
                       (unsigned long long)array->layout.elements);
    return JASK_OK;
}

static jask_status read_dense(const jask_array *array, uint64_t first, uint64_t count, void *out,
                              jask_error *err)
{
    size_t size = jask_dtype_size(array->layout.dtype);
    return jk_file_read(jk_array_file(array), array->layout.data_offset + first * size, out,
                        (size_t)count * size, err);
}

/* ---- Fortran order: the first index runs fastest in the file, the last in what is asked ---- */

/* Part of the index space; its elements are a range in logical order. */
typedef struct box {
    int64_t lo[JASK_MAX_DIMS];
    int64_t len[JASK_MAX_DIMS];
    int64_t elements;
} box;

/* The largest box that begins with element `first` and has at most `count` elements: some indices
 * fixed, then a range of one, then all of the others. A range takes less than two boxes a
 * dimension. */
static box first_box(const jk_layout *layout, int64_t first, int64_t count)
{
    int64_t below = (int64_t)layout->elements; /* elements of one slice along dimension d */
    int64_t rest = first;
    bool fixed = true;
    box b = {.elements = 0};
    for (int d = 0; d < layout->ndim; d++) {
        below /= layout->shape[d];
        b.lo[d] = fixed ? rest / below : 0;
        b.len[d] = fixed ? 1 : layout->shape[d];
        rest %= below;
        if (fixed && rest == 0 && below <= count) {
            b.len[d] = jk_min(layout->shape[d] - b.lo[d], count / below);
            b.elements = b.len[d] * below;
            fixed = false;
        }
    }
    return b;
}

/* A piece of the file in memory. */
typedef struct window {
    const jk_file *file;
    char *buffer;
    uint64_t start;
    int64_t bytes;
} window;

/* `bytes` (at most BUFFER_BYTES) at `offset`; when they have to be read, `ahead` in all. */
static jask_status fetch(window *w, uint64_t offset, int64_t bytes, int64_t ahead, const char **out,
                         jask_error *err)
{
    if (offset < w->start || offset + (uint64_t)bytes > w->start + (uint64_t)w->bytes) {
        int64_t take = jk_max(bytes, jk_min(ahead, BUFFER_BYTES));
        jask_status st = jk_file_read(w->file, offset, w->buffer, (size_t)take, err);
        if (st)
            return st;
        w->start = offset;
        w->bytes = take;
    }
    *out = w->buffer + (offset - w->start);
    return JASK_OK;
}

/* The bytes from the box's first element over all that lie close enough together. */
static int64_t close_span(const jk_layout *layout, const box *b, int64_t size)
{
    int64_t span = b->len[0] * size;
    for (int d = 1; d < layout->ndim; d++) {
        if (b->len[d] > 1 && layout->strides[d] - span > GAP_BYTES)
            break;
        span += (b->len[d] - 1) * layout->strides[d];
    }
    return span;
}

/* One run along dimension 0: from the file, where it is dense, to every step-th element of `out`.
 */
static jask_status read_run(window *w, uint64_t offset, int64_t elems, int64_t ahead, int64_t size,
                            char *out, int64_t step, jask_error *err)
{
    const char *from;
    for (int64_t done = 0; done < elems;) {
        int64_t part = jk_min(elems - done, BUFFER_BYTES / size);
        jask_status st = fetch(w, offset + (uint64_t)(done * size), part * size,
                               ahead - done * size, &from, err);
        if (st)
            return st;
        for (int64_t i = 0; i < part; i++, done++)
            memcpy(out + done * step * size, from + i * size, (size_t)size);
    }
    return JASK_OK;
}

static jask_status read_box(const jk_layout *layout, const box *b, window *w, char *out,
                            jask_error *err)
{
    int64_t size = (int64_t)jask_dtype_size(layout->dtype);
    int64_t span = close_span(layout, b, size);
    int64_t at[JASK_MAX_DIMS] = {0};
    int64_t out_stride[JASK_MAX_DIMS];
    int64_t from = 0, end = 0, to = 0; /* in the file, in elements of out */
    int d;
    for (int64_t stride = 1, i = layout->ndim - 1; i >= 0; i--) {
        out_stride[i] = stride;
        stride *= b->len[i];
        from += b->lo[i] * layout->strides[i];
        end += (b->lo[i] + b->len[i] - 1) * layout->strides[i];
    }
    end += size;
    do {
        jask_status st =
            read_run(w, layout->data_offset + (uint64_t)from, b->len[0], jk_min(span, end - from),
                     size, out + to * size, out_stride[0], err);
        if (st)
            return st;
        for (d = 1; d < layout->ndim; d++) { /* the next run, in file order */
            from += layout->strides[d];
            to += out_stride[d];
            if (++at[d] < b->len[d])
                break;
            from -= at[d] * layout->strides[d];
            to -= at[d] * out_stride[d];
            at[d] = 0;
        }
    } while (d < layout->ndim);
    return JASK_OK;
}

static jask_status read_fortran(const jask_array *array, uint64_t first, uint64_t count, char *out,
                                jask_error *err)
{
    window w = {.file = jk_array_file(array), .buffer = malloc((size_t)BUFFER_BYTES)};
    size_t size = jask_dtype_size(array->layout.dtype);
    jask_status st = JASK_OK;
    if (!w.buffer)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a buffer to read '%s'", array->path);
    while (!st && count > 0) {
        box b = first_box(&array->layout, (int64_t)first, (int64_t)count);
        st = read_box(&array->layout, &b, &w, out, err);
        first += (uint64_t)b.elements;
        count -= (uint64_t)b.elements;
        out += (size_t)b.elements * size;
    }
    free(w.buffer);
    return st;
}

/* ---- the public two ---- */

jask_status jask_array_read(const jask_array *array, uint64_t first, uint64_t count, void *out,
                            jask_error *err)
{
    jask_status st = check_range(array, first, count, out, "read", err);
    if (st || count == 0)
        return st;
    if (array->layout.fortran_order && array->layout.ndim > 1)
        st = read_fortran(array, first, count, out, err);
    else
        st = read_dense(array, first, count, out, err);
    if (!st && array->layout.big_endian != JK_HOST_BIG_ENDIAN)
        jk_dtype_swap(out, count, array->layout.dtype);
    return st;
}

jask_status jask_array_write(jask_array *array, uint64_t first, uint64_t count, const void *data,
                             jask_error *err)
{
    size_t size;
    jask_status st = check_range(array, first, count, data, "write", err);
    if (st)
        return st;
    if (!array->writable)
        return jk_fail(err, JASK_ERR_ARG, "'%s' is not being written", array->path);
    size = jask_dtype_size(array->layout.dtype);
    return jk_file_write(jk_array_file(array), array->layout.data_offset + first * size, data,
                         (size_t)count * size, err);
}
