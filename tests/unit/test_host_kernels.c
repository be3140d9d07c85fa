#include "kernels/host_kernels.h"

#include <criterion/criterion.h>
#include <string.h>

Test(host_kernels, swaps_the_bytes_of_each_element_at_any_address)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    unsigned char data[70], expected[70];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t offset = 0; offset < 3; offset++) {
            size_t size = sizes[s], count = 64 / size;
            for (size_t i = 0; i < sizeof data; i++)
                data[i] = expected[i] = (unsigned char)(i * 37 + 1);
            for (size_t i = 0; i < count; i++)
                for (size_t b = 0; b < size; b++)
                    expected[offset + i * size + b] = data[offset + i * size + size - 1 - b];
            jk_swap_bytes(data + offset, (int64_t)count, size);
            cr_assert_arr_eq(data, expected, sizeof data, "%zu bytes at %zu", size, offset);
        }
}

Test(host_kernels, transposes_elements_of_any_size)
{
    static const struct {
        int64_t rows, cols;
    } shapes[] = {{0, 3}, {1, 1}, {1, 40}, {40, 1}, {16, 16}, {17, 33}, {32, 64}, {70, 65}};
    static unsigned char src[73 * 75 * 16], dst[73 * 75 * 16];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (unsigned char)(i % 251);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t size = 1; size <= 16; size++) {
            int64_t rows = shapes[s].rows, cols = shapes[s].cols;
            size_t src_ld = (size_t)cols + 2, dst_ld = (size_t)rows + 3, untouched = 0;
            memset(dst, 255, sizeof dst);
            jk_transpose(dst, (int64_t)dst_ld, src, (int64_t)src_ld, rows, cols, size);
            for (size_t r = 0; r < (size_t)rows; r++)
                for (size_t c = 0; c < (size_t)cols; c++)
                    cr_assert_eq(
                        memcmp(dst + (c * dst_ld + r) * size, src + (r * src_ld + c) * size, size),
                        0, "%zu bytes, (%zu,%zu)", size, r, c);
            for (size_t i = 0; i < sizeof dst; i++)
                untouched += dst[i] == 255; /* no byte of src is */
            cr_assert_eq(untouched, sizeof dst - (size_t)(rows * cols) * size);
        }
}
