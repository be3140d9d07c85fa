#include "runtime/array.h"

#define BYTES_MAX (UINT64_C(1) << 62)

/* The bytes of the array, extents of 0 counted as 1: strides are products of the other extents, and
 * have to fit although the array is empty. */
static bool padded_bytes(jask_dtype dtype, int ndim, const int64_t *shape, uint64_t *out)
{
    uint64_t bytes = jask_dtype_size(dtype);
    for (int d = 0; d < ndim; d++)
        if (!jk_mul_u64(bytes, shape[d] ? (uint64_t)shape[d] : 1, &bytes))
            return false;
    *out = bytes;
    return bytes <= BYTES_MAX;
}

jask_status jk_layout_dense(jk_layout *layout, int ndim, const int64_t *shape, bool fortran_order,
                            jask_error *err)
{
    uint64_t bytes;
    int64_t stride = (int64_t)jask_dtype_size(layout->dtype);
    bool empty = false;
    if (ndim < 0 || ndim > JASK_MAX_DIMS)
        return jk_fail(err, JASK_ERR_ARG, "an array has 0 to %d dimensions, not %d", JASK_MAX_DIMS,
                       ndim);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return jk_fail(err, JASK_ERR_ARG, "extent %d of the shape is negative: %lld", d,
                           (long long)shape[d]);
        empty = empty || shape[d] == 0;
    }
    if (!padded_bytes(layout->dtype, ndim, shape, &bytes))
        return jk_fail(err, JASK_ERR_ARG, "the shape has more than 2^62 bytes");

    layout->ndim = ndim;
    layout->fortran_order = fortran_order;
    for (int i = 0; i < ndim; i++) {
        int d = fortran_order ? i : ndim - 1 - i;
        layout->shape[d] = shape[d];
        layout->strides[d] = stride;
        stride *= jk_max(shape[d], 1);
    }
    layout->data_bytes = empty ? 0 : bytes;
    layout->elements = layout->data_bytes / jask_dtype_size(layout->dtype);
    return JASK_OK;
}
