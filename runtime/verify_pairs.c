/* Complex matrices as real ones, twice as wide, for the check. Of D = A B a row of D, its real and imaginary
 * parts one after the other as they lie in memory, is the same of A times B with
 *
 *     [  re  im ]
 *     [ -im  re ]
 *
 * in the place of each element. So the product of an m x k by a k x n matrix is a real one of m x 2k by
 * 2k x 2n, made of the very sums that any complex product is made of, and all that is known of those holds. */
#include "runtime/verify.h"

#include "runtime/array.h"

#include <assert.h>
#include <string.h>

#define JK_INLINE static inline __attribute__((always_inline))

/* Elements that are taken apart at a time. */
enum { PART = 512 };

static size_t part_bytes(const jk_matrix *m)
{
    return jask_dtype_size(jk_memory_type(m)) / 2;
}

/* n elements to their real parts and to their imaginary parts. */
JK_INLINE void split(size_t bytes, int64_t n, const char *from, char *re, char *im)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(re + (size_t)i * bytes, from + (size_t)(2 * i) * bytes, bytes);
        memcpy(im + (size_t)i * bytes, from + (size_t)(2 * i + 1) * bytes, bytes);
    }
}

/* Where the transpose is wanted, parts are not neighbours in memory but whole rows. */
static jask_status read_apart(const jk_verify_matrix *from, const jk_window *at, char *dst,
                              int64_t ld_elems, jask_error *err)
{
    _Alignas(16) char room[PART * 16];
    size_t bytes = part_bytes(from->matrix);
    jask_status st = JASK_OK;
    for (int64_t r = 0; r < at->rows; r += 2)
        for (int64_t c = 0; !st && c < at->cols; c += PART) {
            jk_window one = {(at->row + r) / 2, at->col + c, 1, jk_min(at->cols - c, PART)};
            char *re = dst + (size_t)(r * ld_elems + c) * bytes;
            char *im = re + (size_t)ld_elems * bytes;
            st = jk_matrix_read(from->matrix, &one, room, one.cols, from->bytes, err);
            if (st)
                break;
            if (bytes == sizeof(float))
                split(sizeof(float), one.cols, room, re, im);
            else
                split(sizeof(double), one.cols, room, re, im);
        }
    return st;
}

/* Of windows only even ones are asked for along what has parts. */
static jask_status read_pairs(void *user, const jk_window *at, void *dst, int64_t ld_elems,
                              jask_error *err)
{
    const jk_verify_matrix *from = user;
    if (from->matrix->trans) {
        assert(at->row % 2 == 0 && at->rows % 2 == 0);
        return read_apart(from, at, dst, ld_elems, err);
    }
    assert(at->col % 2 == 0 && at->cols % 2 == 0 && ld_elems % 2 == 0);
    jk_window whole = {at->row, at->col / 2, at->rows, at->cols / 2};
    return jk_matrix_read(from->matrix, &whole, dst, ld_elems / 2, from->bytes, err);
}

/* n elements to two rows of twice as many. `from` may be where `second` is. */
#define DEFINE_SPREAD(name, type)                                                                  \
    static void name(int64_t n, bool trans, const void *from, void *first, void *second)           \
    {                                                                                              \
        const type *x = from;                                                                      \
        type *y = first, *z = second;                                                              \
        for (int64_t i = 0; i < 2 * n; i += 2) {                                                   \
            type re = x[i], im = x[i + 1];                                                         \
            y[i] = re;                                                                             \
            y[i + 1] = trans ? -im : im;                                                           \
            z[i] = trans ? im : -im;                                                               \
            z[i + 1] = re;                                                                         \
        }                                                                                          \
    }

DEFINE_SPREAD(spread_f32, float)
DEFINE_SPREAD(spread_f64, double)

/* They are read into the second half of the window, and spread from its beginning. */
static jask_status read_blocks(void *user, const jk_window *at, void *dst, int64_t ld_elems,
                               jask_error *err)
{
    const jk_verify_matrix *from = user;
    const jk_matrix *m = from->matrix;
    jk_window whole = {at->row / 2, at->col / 2, at->rows / 2, at->cols / 2};
    size_t row_bytes = (size_t)ld_elems * part_bytes(m);
    char *half = (char *)dst + (size_t)whole.rows * row_bytes;
    assert(at->row % 2 == 0 && at->rows % 2 == 0 && at->col % 2 == 0 && at->cols % 2 == 0);
    assert(ld_elems == at->cols);
    jask_status st = jk_matrix_read(m, &whole, half, whole.cols, from->bytes, err);
    for (int64_t r = 0; !st && r < whole.rows; r++) {
        char *first = (char *)dst + (size_t)(2 * r) * row_bytes;
        (part_bytes(m) == sizeof(float) ? spread_f32 : spread_f64)(
            whole.cols, m->trans, half + (size_t)r * row_bytes, first, first + row_bytes);
    }
    return st;
}

jk_verify_source jk_verify_pairs(jk_verify_matrix *from)
{
    const jk_matrix *m = from->matrix;
    return (jk_verify_source){.read = read_pairs,
                              .user = from,
                              .rows = m->trans ? 2 * m->rows : m->rows,
                              .cols = m->trans ? m->cols : 2 * m->cols,
                              .trans = m->trans};
}

jk_verify_source jk_verify_blocks(jk_verify_matrix *from)
{
    const jk_matrix *m = from->matrix;
    return (jk_verify_source){.read = read_blocks,
                              .user = from,
                              .rows = 2 * m->rows,
                              .cols = 2 * m->cols,
                              .trans = m->trans};
}
