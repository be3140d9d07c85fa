#include "runtime/strided.h"

#include "runtime/dtype.h"

/* The dimensions that a window has, the one with the largest stride first. */
typedef struct order {
    int count;
    int dims[JASK_MAX_DIMS];
} order;

static order file_order(const jk_strided *array)
{
    order o = {.count = 0};
    for (int d = 0; d < array->ndim; d++) {
        int at = o.count;
        if (array->strides[d] == 0)
            continue;
        for (; at > 0 && array->strides[o.dims[at - 1]] < array->strides[d]; at--)
            o.dims[at] = o.dims[at - 1];
        o.dims[at] = d;
        o.count++;
    }
    return o;
}

void jk_strided_memory(const jk_strided *array, const jk_box *box, int64_t *out_strides)
{
    order o = file_order(array);
    int64_t stride = 1;
    for (int d = 0; d < array->ndim; d++)
        out_strides[d] = 0;
    for (int i = o.count - 1; i >= 0; i--) {
        out_strides[o.dims[i]] = stride;
        stride *= box->len[o.dims[i]];
    }
}

/* A window as runs of bytes in the file, one behind the other in memory. `o` keeps the dimensions
 * outside of a run. */
typedef struct runs {
    order outer;
    size_t bytes; /* of one */
    int64_t count;
    int64_t first; /* elements from the array's first */
} runs;

static runs runs_of(const jk_strided *array, const jk_box *box)
{
    runs r = {.outer = file_order(array), .count = 1};
    int64_t elems = 1;
    while (r.outer.count > 0 && array->strides[r.outer.dims[r.outer.count - 1]] == elems)
        elems *= box->len[r.outer.dims[--r.outer.count]];
    for (int i = 0; i < r.outer.count; i++)
        r.count *= box->len[r.outer.dims[i]];
    for (int d = 0; d < array->ndim; d++)
        r.first += box->lo[d] * array->strides[d];
    r.bytes = (size_t)elems * jask_dtype_size(array->dtype);
    return r;
}

/* Where run number i begins in the file. */
static uint64_t run_offset(const jk_strided *array, const jk_box *box, const runs *r, int64_t i)
{
    int64_t at = r->first;
    for (int j = r->outer.count - 1; j >= 0; j--) {
        int d = r->outer.dims[j];
        at += i % box->len[d] * array->strides[d];
        i /= box->len[d];
    }
    return array->offset + (uint64_t)at * jask_dtype_size(array->dtype);
}

jask_status jk_strided_read(const jk_strided *array, const jk_box *box, void *dst,
                            _Atomic uint64_t *bytes, jask_error *err)
{
    runs r = runs_of(array, box);
    size_t all = (size_t)r.count * r.bytes;
    atomic_fetch_add(bytes, all);
    for (int64_t i = 0; i < r.count; i++) {
        uint64_t offset = run_offset(array, box, &r, i);
        jask_status st =
            jk_file_read(array->file, offset, (char *)dst + (size_t)i * r.bytes, r.bytes, err);
        if (st)
            return st;
        jk_drop_behind_add(array->behind, offset, r.bytes);
    }
    if (array->swap)
        jk_dtype_swap(dst, all / jask_dtype_size(array->dtype), array->dtype);
    return JASK_OK;
}

jask_status jk_strided_write(const jk_strided *array, const jk_box *box, void *src,
                             _Atomic uint64_t *bytes, jask_error *err)
{
    runs r = runs_of(array, box);
    size_t all = (size_t)r.count * r.bytes;
    atomic_fetch_add(bytes, all);
    if (array->swap)
        jk_dtype_swap(src, all / jask_dtype_size(array->dtype), array->dtype);
    for (int64_t i = 0; i < r.count; i++) {
        jask_status st = jk_file_write(array->file, run_offset(array, box, &r, i),
                                       (const char *)src + (size_t)i * r.bytes, r.bytes, err);
        if (st)
            return st;
    }
    return JASK_OK;
}
