#include "runtime/array.h"
#include "runtime/dtype.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What was announced last. */
static struct announced {
    uint64_t offset, pitch;
    size_t bytes;
    int64_t count;
} announced;

void __wrap_jk_file_announce(const jk_file *file, uint64_t offset, size_t bytes, uint64_t pitch,
                             int64_t count);
void __wrap_jk_file_announce(const jk_file *file, uint64_t offset, size_t bytes, uint64_t pitch,
                             int64_t count)
{
    (void)file;
    announced = (struct announced){offset, pitch, bytes, count};
}

/* What the page cache is said to have, and of which runs that was asked last. */
static bool cached;
static struct announced asked;

bool __wrap_jk_file_runs_cached(const jk_file *file, uint64_t offset, uint64_t pitch,
                                int64_t count);
bool __wrap_jk_file_runs_cached(const jk_file *file, uint64_t offset, uint64_t pitch, int64_t count)
{
    (void)file;
    asked = (struct announced){offset, pitch, 0, count};
    return cached;
}

TestSuite(matrix, .init = tree_enter, .fini = tree_leave);

enum { ROWS = 5, COLS = 7, LEAD = 12 };

/* A file of ROWS x COLS numbers row*10 + col after LEAD bytes, opened as `layout` says: big-endian
 * numbers, or in Fortran order its transpose. */
static jask_array open_grid(bool big_endian, bool fortran)
{
    static const int64_t straight[] = {ROWS, COLS}, turned[] = {COLS, ROWS};
    jask_array array = {.path = (char *)(uintptr_t) "grid", .file = JK_FILE_NONE};
    float grid[ROWS][COLS];
    cr_assert_eq(jk_file_scratch(".", LEAD + sizeof grid, &array.file, NULL), JASK_OK);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            grid[r][c] = (float)(r * 10 + c);
    if (big_endian != JK_HOST_BIG_ENDIAN)
        jk_dtype_swap(grid, ROWS * COLS, JASK_F32);
    cr_assert_eq(jk_file_write(&array.file, LEAD, grid, sizeof grid, NULL), JASK_OK);
    array.layout.dtype = JASK_F32;
    array.layout.big_endian = big_endian;
    array.layout.data_offset = LEAD;
    cr_assert_eq(jk_layout_dense(&array.layout, 2, fortran ? turned : straight, fortran, NULL),
                 JASK_OK);
    return array;
}

Test(matrix, order_and_transpose_say_how_it_is_stored)
{
    for (int fortran = 0; fortran <= 1; fortran++) {
        for (int transpose = 0; transpose <= 1; transpose++) {
            jask_array array = open_grid(false, fortran);
            jk_matrix m;
            cr_assert_eq(jk_matrix_of(&array, transpose, "A", &m, NULL), JASK_OK);
            cr_assert_eq(m.rows, ROWS);
            cr_assert_eq(m.cols, COLS);
            cr_assert_eq(m.row_bytes, COLS * sizeof(float));
            cr_assert_eq(m.offset, LEAD);
            cr_assert_eq(m.trans, fortran != transpose);
            cr_assert_eq(m.file, &array.file);
            jk_file_close(&array.file);
        }
    }
}

Test(matrix, refuses_what_is_not_2d_by_name)
{
    static const int64_t shape[] = {2, 3, 4};
    static const int ndims[] = {0, 1, 3};
    for (size_t i = 0; i < sizeof ndims / sizeof *ndims; i++) {
        jask_array array = {.path = (char *)(uintptr_t) "x.npy", .layout.dtype = JASK_F32};
        jk_matrix m;
        jask_error err;
        char said[64];
        cr_assert_eq(jk_layout_dense(&array.layout, ndims[i], shape, false, NULL), JASK_OK);
        cr_assert_eq(jk_matrix_of(&array, false, "B", &m, &err), JASK_ERR_ARG);
        snprintf(said, sizeof said, "B 'x.npy' has %d dimension", ndims[i]);
        cr_assert_not_null(strstr(err.msg, said), "%s", err.msg);
        cr_assert_eq(jk_matrix_of(&array, false, "B", &m, NULL), JASK_ERR_ARG);
    }
}

static void check_window(const jk_matrix *m, const jk_window *w, int64_t ld)
{
    _Atomic uint64_t bytes = 1000;
    float dst[(ROWS + 1) * (COLS + 4)];
    for (size_t i = 0; i < sizeof dst / sizeof *dst; i++)
        dst[i] = -1;
    cr_assert_eq(jk_matrix_read(m, w, dst, ld, &bytes, NULL), JASK_OK);
    cr_assert_eq(bytes, 1000 + (uint64_t)(w->rows * w->cols) * sizeof(float));
    for (size_t i = 0; i < sizeof dst / sizeof *dst; i++) {
        int64_t r = (int64_t)i / ld, c = (int64_t)i % ld;
        bool inside = r < w->rows && c < w->cols;
        float want = inside ? (float)((w->row + r) * 10 + w->col + c) : -1;
        cr_assert_eq(dst[i], want, "window %d,%d %dx%d ld %d at %zu", (int)w->row, (int)w->col,
                     (int)w->rows, (int)w->cols, (int)ld, i);
    }
}

Test(matrix, reads_every_window_and_touches_nothing_beside)
{
    for (int big = 0; big <= 1; big++) {
        jask_array array = open_grid(big, false);
        jk_matrix m;
        jk_window w;
        cr_assert_eq(jk_matrix_of(&array, false, "A", &m, NULL), JASK_OK);
        for (w.row = 0; w.row <= ROWS; w.row++)
            for (w.rows = 0; w.row + w.rows <= ROWS; w.rows++)
                for (w.col = 0; w.col <= COLS; w.col++)
                    for (w.cols = 0; w.col + w.cols <= COLS; w.cols++)
                        for (int64_t ld = w.cols ? w.cols : 1; ld <= w.cols + 3; ld += 3)
                            check_window(&m, &w, ld);
        jk_file_close(&array.file);
    }
}

Test(matrix, writes_windows_where_they_belong)
{
    static const jk_window windows[] = {
        {0, 0, ROWS, COLS}, {1, 0, 2, COLS}, {2, 3, 3, 4}, {4, 6, 1, 1}, {0, 0, 0, COLS}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        for (int64_t ld = COLS; ld <= COLS + 2; ld += 2) {
            const jk_window *w = &windows[i];
            const jk_window all = {0, 0, ROWS, COLS};
            _Atomic uint64_t bytes = 0;
            float src[ROWS * (COLS + 2)], back[ROWS][COLS];
            jask_array array = open_grid(JK_HOST_BIG_ENDIAN, false);
            jk_matrix m;
            cr_assert_eq(jk_matrix_of(&array, false, "D", &m, NULL), JASK_OK);
            for (int64_t k = 0; k < ROWS * ld; k++)
                src[k] = (float)(1000 + k);
            cr_assert_eq(jk_matrix_write(&m, w, src, ld, &bytes, NULL), JASK_OK);
            cr_assert_eq(bytes, (uint64_t)(w->rows * w->cols) * sizeof(float));
            cr_assert_eq(jk_matrix_read(&m, &all, back, COLS, &bytes, NULL), JASK_OK);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t c = 0; c < COLS; c++) {
                    int64_t wr = r - w->row, wc = c - w->col;
                    bool inside = wr >= 0 && wr < w->rows && wc >= 0 && wc < w->cols;
                    cr_assert_eq(back[r][c],
                                 inside ? (float)(1000 + wr * ld + wc) : (float)(r * 10 + c));
                }
            jk_file_close(&array.file);
        }
    }
}

/* A row of more than 2^31 elements, in a file that is nearly all hole. */
Test(matrix, reaches_rows_and_columns_beyond_2_31)
{
    static const int64_t wide = ((int64_t)1 << 31) + 16;
    static const jk_window last = {1, wide - 2, 1, 2};
    static const float marks[2] = {3, 5};
    for (int turned = 0; turned < 2; turned++) {
        jask_array array = {.path = (char *)(uintptr_t) "wide", .file = JK_FILE_NONE};
        int64_t shape[] = {turned ? wide : 2, turned ? 2 : wide};
        char name[] = "./wide.XXXXXX";
        _Atomic uint64_t bytes = 0;
        float got[2] = {0, 0};
        jk_matrix m;
        array.layout.dtype = JASK_F32;
        cr_assert_eq(jk_layout_dense(&array.layout, 2, shape, turned, NULL), JASK_OK);
        array.file.fd = mkstemp(name);
        cr_assert_geq(array.file.fd, 0);
        if (ftruncate(array.file.fd, (off_t)array.layout.data_bytes))
            cr_skip_test("no file of 16 GiB here");
        cr_assert_eq(jk_matrix_of(&array, turned, "A", &m, NULL), JASK_OK);
        cr_assert_eq(m.rows, 2);
        cr_assert_eq(m.row_bytes, (uint64_t)wide * 4);
        cr_assert_eq(jk_matrix_write(&m, &last, marks, 2, &bytes, NULL), JASK_OK);
        cr_assert_eq(jk_matrix_read(&m, &last, got, 2, &bytes, NULL), JASK_OK);
        cr_assert(got[0] == 3 && got[1] == 5);
        cr_assert_eq(pread(array.file.fd, got, 8, (off_t)array.layout.data_bytes - 8), 8);
        cr_assert(got[0] == 3 && got[1] == 5, "the last two elements of the file");
        jk_file_close(&array.file);
        unlink(name);
    }
}

Test(matrix, a_file_that_has_shrunk_is_an_error)
{
    static const jk_window w = {3, 1, 2, 3};
    jask_array array = open_grid(false, false);
    _Atomic uint64_t bytes = 0;
    float dst[6];
    jk_matrix m;
    jask_error err;
    cr_assert_eq(jk_matrix_of(&array, false, "A", &m, NULL), JASK_OK);
    cr_assert_eq(ftruncate(array.file.fd, LEAD + 3 * COLS * 4 + 2 * 4), 0);
    cr_assert_eq(jk_matrix_read(&m, &w, dst, 3, &bytes, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "shrank"), "%s", err.msg);
    jk_file_close(&array.file);
}

Test(matrix, short_runs_are_announced_before_they_are_read)
{
    const jk_window part = {1, 2, 3, 2}, rows = {1, 0, 3, COLS};
    jask_array array = open_grid(false, false);
    jk_direct direct = {.file = &array.file, .fd = -1, .offset_unit = 512, .mem_unit = 512};
    float buf[3 * COLS];
    _Atomic uint64_t bytes = 0;
    jk_matrix m;
    cr_assert_eq(jk_matrix_of(&array, false, "A", &m, NULL), JASK_OK);
    for (int i = 0; i < 2; i++) {
        memset(&announced, 0, sizeof announced);
        m.direct = i ? &direct : NULL; /* which leaves short runs to the page cache */
        cr_assert_eq(jk_matrix_read(&m, &part, buf, 2, &bytes, NULL), JASK_OK);
        cr_assert_eq(announced.offset, LEAD + (1 * COLS + 2) * sizeof(float));
        cr_assert_eq(announced.bytes, 2 * sizeof(float));
        cr_assert_eq(announced.pitch, COLS * sizeof(float));
        cr_assert_eq(announced.count, 3);
    }
    memset(&announced, 0, sizeof announced);
    cr_assert_eq(jk_matrix_read(&m, &rows, buf, COLS, &bytes, NULL), JASK_OK);
    cr_assert_eq(announced.count, 0, "whole rows lie together");
    jk_file_close(&array.file);
}

/* Rows 1 to 3 of 7 columns. */
Test(matrix, more_of_a_row_is_announced_where_it_is_read_soon)
{
    static const struct {
        int64_t col, cols, ahead, from, to; /* columns */
    } cases[] = {
        {2, 2, 0, 2, 4}, {2, 2, 3, 0, 6}, {3, 2, 3, 3, 6}, {6, 1, 3, 6, 7},
        {5, 2, 3, 3, 7}, {1, 1, 2, 0, 2}, {2, 2, 7, 0, 7}, {2, 2, 2, 2, 4},
    };
    jask_array array = open_grid(false, false);
    float buf[3 * COLS];
    jk_matrix m;
    cr_assert_eq(jk_matrix_of(&array, false, "A", &m, NULL), JASK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_window w = {1, cases[i].col, 3, cases[i].cols};
        uint64_t row = LEAD + COLS * sizeof(float);
        _Atomic uint64_t bytes = 0;
        m.ahead_bytes = (uint64_t)cases[i].ahead * sizeof(float);
        memset(&announced, 0, sizeof announced);
        cached = false;
        cr_assert_eq(jk_matrix_read(&m, &w, buf, w.cols, &bytes, NULL), JASK_OK);
        cr_assert_eq(announced.offset, row + (uint64_t)cases[i].from * sizeof(float), "case %zu",
                     i);
        cr_assert_eq(announced.bytes, (size_t)(cases[i].to - cases[i].from) * sizeof(float),
                     "case %zu", i);
        cr_assert_eq(announced.pitch, COLS * sizeof(float));
        cr_assert_eq(announced.count, 3);
        cr_assert_eq(bytes, (uint64_t)(3 * w.cols) * sizeof(float), "what is read is the same");
        cr_assert_eq(buf[0], (float)(10 + w.col));
        /* What was announced with an earlier run is not announced again. */
        memset(&announced, 0, sizeof announced);
        cached = true;
        cr_assert_eq(jk_matrix_read(&m, &w, buf, w.cols, &bytes, NULL), JASK_OK);
        cr_assert_eq(announced.count, 0);
        cr_assert_eq(asked.offset, row + (uint64_t)w.col * sizeof(float));
        cr_assert_eq(asked.pitch, COLS * sizeof(float));
        cr_assert_eq(asked.count, 3);
    }
    jk_file_close(&array.file);
}
