/* The reference's rules for sizes and square pages. */
#include "common/base.h"
#include "planner/internal.h"

enum { OS_PAGE_BYTES = 4096, MAX_DIMS = 32 };

uint64_t jask_align_to_os_page(uint64_t bytes)
{
    return bytes - bytes % OS_PAGE_BYTES;
}

int64_t jask_peak_blocks(int num_inputs, jask_phase phase, int pipelined)
{
    int64_t inputs = jk_max(num_inputs, 0);
    int64_t blocks = (phase == JASK_BACKWARD ? 2 * inputs : inputs) + 2;
    return pipelined ? 2 * blocks : blocks;
}

/* base^exponent is at most `limit`; decided without forming a power that does not fit. */
static bool power_within(uint64_t base, int exponent, jk_u128 limit)
{
    jk_u128 power = 1;
    for (int i = 0; i < exponent; i++) {
        if (__builtin_mul_overflow(power, (jk_u128)base, &power) || power > limit)
            return false;
    }
    return true;
}

static int64_t floor_root(uint64_t value, int degree)
{
    uint64_t low = 1, high = value;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (power_within(middle, degree, value))
            low = middle;
        else
            high = middle - 1;
    }
    return (int64_t)low;
}

/* The block with this side, clipped to the array, holds at most `elements` elements. */
static bool block_within(int64_t side, int ndim, const int64_t *shape, uint64_t elements)
{
    uint64_t volume = 1;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            return true;
    }
    for (int d = 0; d < ndim; d++) {
        if (!jk_mul_u64(volume, (uint64_t)jk_min(side, shape[d]), &volume) || volume > elements)
            return false;
    }
    return true;
}

/* The nearest whole root, as the reference rounds it; the next lower one where rounding up would
 * make the block exceed its share of the budget, which the reference overlooks. */
static int64_t block_side(uint64_t elements, int ndim, const int64_t *shape)
{
    int64_t root = floor_root(elements, ndim);
    bool rounds_up = power_within(2 * (uint64_t)root + 1, ndim, (jk_u128)elements << ndim);
    return rounds_up && block_within(root + 1, ndim, shape, elements) ? root + 1 : root;
}

jask_status jask_page_shape(uint64_t budget_bytes, jask_dtype dtype, int ndim, const int64_t *shape,
                            int num_inputs, jask_phase phase, int pipelined, int64_t *out_shape,
                            jask_error *err)
{
    size_t element = jask_dtype_size(dtype);
    if (element == 0)
        return jk_fail(err, JASK_ERR_ARG, "a page shape needs an element type; %d is none",
                       (int)dtype);
    if (ndim < 1 || ndim > MAX_DIMS)
        return jk_fail(err, JASK_ERR_ARG, "a page shape needs 1 to %d dimensions, not %d", MAX_DIMS,
                       ndim);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return jk_fail(err, JASK_ERR_ARG, "extent %d of the shape is negative: %lld", d,
                           (long long)shape[d]);
    }
    uint64_t share = budget_bytes / (uint64_t)jask_peak_blocks(num_inputs, phase, pipelined);
    uint64_t page = share < OS_PAGE_BYTES ? OS_PAGE_BYTES : jask_align_to_os_page(share);
    int64_t side = block_side(page / element, ndim, shape);
    for (int d = 0; d < ndim; d++)
        out_shape[d] = jk_min(side, shape[d]);
    return JASK_OK;
}
