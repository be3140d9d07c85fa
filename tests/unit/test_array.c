#include "array_files.h"
#include "runtime/array.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(array, .init = tree_enter, .fini = tree_leave);

static jask_array_info info_of(const jask_array *array)
{
    jask_array_info info;
    jask_array_get_info(array, &info, sizeof info);
    return info;
}

/* 2 x 3 in both orders and both byte orders, at aligned and odd offsets. */
Test(array, reads_logical_values_whatever_the_file_looks_like)
{
    static const unsigned char little[] = {0, 0, 0x80, 0x3f, 0, 0, 0,    0x40, 0, 0, 0x40, 0x40,
                                           0, 0, 0x80, 0x40, 0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0x40};
    static const unsigned char big[] = {0x3f, 0x80, 0, 0, 0x40, 0,    0, 0, 0x40, 0x40, 0, 0,
                                        0x40, 0x80, 0, 0, 0x40, 0xa0, 0, 0, 0x40, 0xc0, 0, 0};
    static const struct {
        const char *dictionary;
        const unsigned char *data;
        size_t data_at;
        float values[6];
    } cases[] = {
        {DICT("<f4", "False", "(2, 3)"), little, 128, {1, 2, 3, 4, 5, 6}},
        {DICT("<f4", "False", "(2, 3)"), little, 80, {1, 2, 3, 4, 5, 6}},
        {DICT("<f4", "False", "(2, 3)"), little, 5000, {1, 2, 3, 4, 5, 6}},
        {DICT("<f4", "False", "(2, 3)"), little, 65472, {1, 2, 3, 4, 5, 6}},
        {DICT(">f4", "False", "(2, 3)"), big, 77, {1, 2, 3, 4, 5, 6}},
        {DICT("<f4", "True", "(2, 3)"), little, 128, {1, 3, 5, 2, 4, 6}},
        {DICT(">f4", "True", "(2, 3)"), big, 128, {1, 3, 5, 2, 4, 6}},
        {DICT("<f4", "True", "(6,)"), little, 128, {1, 2, 3, 4, 5, 6}},
        {DICT("<f4", "True", "(3, 1, 2)"), little, 128, {1, 4, 2, 5, 3, 6}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_array *array;
        float values[6] = {0};
        put_npy("a.npy", cases[i].dictionary, cases[i].data_at, cases[i].data, 24);
        cr_assert_eq(jask_array_open("a.npy", &array, NULL), JASK_OK);
        cr_assert_eq(info_of(array).data_offset, cases[i].data_at);
        cr_assert_eq(jask_array_read(array, 0, 6, values, NULL), JASK_OK);
        for (int k = 0; k < 6; k++)
            cr_assert_eq(values[k], cases[i].values[k], "case %zu element %d", i, k);
        jask_array_close(array);
    }
}

Test(array, describes_itself)
{
    jask_array *array;
    jask_array_info info;
    struct {
        jask_array_info info;
        char beyond[8];
    } larger;
    char data[2 * 3 * 4 * 2] = {0};
    put_npy("a.npy", DICT(">i2", "True", "(2, 3, 4)"), 128, data, sizeof data);
    cr_assert_eq(jask_array_open("a.npy", &array, NULL), JASK_OK);
    info = info_of(array);
    cr_assert_eq(info.struct_size, sizeof info);
    cr_assert_str_eq(info.path, "a.npy");
    cr_assert_eq(info.dtype, JASK_I16);
    cr_assert(info.big_endian && info.fortran_order);
    cr_assert_eq(info.ndim, 3);
    cr_assert_eq(info.shape[2], 4);
    cr_assert_eq(info.stride_bytes[2], 12);
    cr_assert_eq(info.data_bytes, 48);
    cr_assert_eq(info.elements, 24);
    cr_assert_str_eq(info.format, "npy 1.0");

    memset(&info, 0x55, sizeof info); /* an older caller's struct ends early */
    jask_array_get_info(array, &info, offsetof(jask_array_info, ndim));
    cr_assert_str_eq(info.path, "a.npy");
    cr_assert_eq(info.ndim, 0x55555555);
    memset(&larger, 0x55, sizeof larger); /* a newer one's goes on */
    jask_array_get_info(array, &larger.info, sizeof larger);
    cr_assert_str_eq(larger.info.format, "npy 1.0");
    cr_assert_eq(larger.beyond[7], 0);
    jask_array_get_info(array, NULL, sizeof info);
    jask_array_get_info(NULL, &info, sizeof info);
    cr_assert_eq(info.ndim, 0);
    jask_array_close(array);
}

Test(array, raw_files_must_have_exactly_the_size_of_their_specification)
{
    static const struct {
        const char *spec;
        jask_status status;
        const char *said;
    } cases[] = {
        {"r@f4:3x2", JASK_OK, ""},
        {"r@f8:3", JASK_OK, ""},
        {"r@u1:0+24", JASK_OK, ""},
        {"r@f4:2x2+8", JASK_OK, ""},
        {"r@f4:3x1", JASK_ERR_FORMAT, "need exactly 12 bytes (12 of data after 0), have 24"},
        {"r@f8:2x2", JASK_ERR_FORMAT, "need exactly 32 bytes (32 of data after 0), have 24"},
        {"r@f4:2x2", JASK_ERR_FORMAT, "need exactly 16 bytes"},
        {"r@f4:3x2+8", JASK_ERR_FORMAT, "need exactly 32 bytes (24 of data after 8), have 24"},
        {"r@f4:3y2", JASK_ERR_ARG, "y2"},
        {"none@f4:2", JASK_ERR_IO, "open 'none'"},
        {"r@f99:3x2", JASK_ERR_IO, "'r@f99:3x2' is no raw specification"},
        {"empty@f4:0x4", JASK_OK, ""},
        {"empty@f4:1", JASK_ERR_FORMAT, "need exactly 4 bytes (4 of data after 0), have 0"},
        {".@f4:2", JASK_ERR_FORMAT, "'.' is a directory"},
    };
    put_file("r", "012345678901234567890123", 24);
    put_file("empty", "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_array *array = NULL;
        jask_error err = {.msg = ""};
        jask_status st = jask_array_open(cases[i].spec, &array, &err);
        cr_assert_eq(st, cases[i].status, "%s: %s", cases[i].spec, err.msg);
        cr_assert_not_null(strstr(err.msg, cases[i].said), "%s", err.msg);
        cr_assert_eq(array != NULL, st == JASK_OK);
        if (!st) {
            cr_assert_str_eq(info_of(array).path, cases[i].spec);
            cr_assert_str_eq(info_of(array).format, "raw");
        }
        jask_array_close(array);
        cr_assert_eq(jask_array_open(cases[i].spec, &array, NULL), st);
        if (!st)
            jask_array_close(array);
    }
}

Test(array, damaged_and_foreign_files_are_refused_in_words)
{
    static const struct {
        size_t cut;
        const char *said;
    } cases[] = {{0, "is empty"},
                 {5, "need 10 bytes"},
                 {9, "have 9"},
                 {10, "need 128"},
                 {60, "have 60"},
                 {148, "need 152 bytes, have 148"},
                 {151, "need 152 bytes, have 151"}};
    jask_array *array = NULL;
    jask_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char data[24] = {0};
        put_npy("a.npy", DICT("<f4", "False", "(3, 2)"), 128, data, sizeof data);
        cr_assert_eq(truncate("a.npy", (off_t)cases[i].cut), 0);
        cr_assert_eq(jask_array_open("a.npy", &array, &err), JASK_ERR_FORMAT);
        cr_assert_not_null(strstr(err.msg, cases[i].said), "%s", err.msg);
        cr_assert_null(array);
    }
    put_file("a.npz", "PK\3\4junk", 8);
    cr_assert_eq(jask_array_open("a.npz", &array, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "unzip"), "%s", err.msg);
    cr_assert_eq(jask_array_open("none.npy", &array, &err), JASK_ERR_IO);
    cr_assert_eq(err.sys_errno, ENOENT);
    cr_assert_eq(jask_array_open("/dev/zero", &array, NULL), JASK_ERR_FORMAT);
    cr_assert_eq(jask_array_open("", &array, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_array_open(NULL, &array, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_array_open("a.npy", NULL, NULL), JASK_ERR_ARG);
    jask_array_close(NULL);
}

/* Bytes this process has read by system calls. */
static unsigned long long bytes_read(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "rchar: %llu", &bytes), 1);
    fclose(file);
    return bytes;
}

Test(array, opening_reads_the_header_only, .timeout = 20)
{
    jask_array *array;
    float last = 0;
    static const float three = 3;
    unsigned long long before;
    int fd;
    put_npy("a.npy", DICT("<f4", "False", "(1, 2147483664)"), 128, "", 0);
    fd = open("a.npy", O_WRONLY);
    cr_assert_eq(ftruncate(fd, 128 + 2147483664 * 4), 0);
    cr_assert_eq(pwrite(fd, &three, 4, 128 + 2147483663 * 4), 4);
    close(fd);
    before = bytes_read();
    cr_assert_eq(jask_array_open("a.npy", &array, NULL), JASK_OK);
    cr_assert_lt(bytes_read() - before, 16384);
    cr_assert_eq(info_of(array).elements, 2147483664);
    cr_assert_eq(jask_array_read(array, 2147483663, 1, &last, NULL), JASK_OK);
    cr_assert_eq(last, 3);
    jask_array_close(array);
}

/* Every range of a small array against its definition: file element number is
 * i0 + n0 * (i1 + n1 * (i2 + ...)). */
Test(array, every_range_of_a_fortran_array_is_in_logical_order)
{
    enum { N0 = 3, N1 = 1, N2 = 4, N3 = 2, N = N0 * N1 * N2 * N3 };
    unsigned char file[N], logical[N], got[N + 1];
    jask_array *array;
    for (int i = 0; i < N; i++) {
        int i3 = i % N3, i2 = i / N3 % N2, i1 = i / N3 / N2 % N1, i0 = i / N3 / N2 / N1;
        file[i] = (unsigned char)(100 + i);
        logical[i] = (unsigned char)(100 + i0 + N0 * (i1 + N1 * (i2 + N2 * i3)));
    }
    put_npy("a.npy", DICT("|u1", "True", "(3, 1, 4, 2)"), 128, file, N);
    cr_assert_eq(jask_array_open("a.npy", &array, NULL), JASK_OK);
    for (uint64_t first = 0; first <= N; first++) {
        for (uint64_t count = 0; first + count <= N; count++) {
            memset(got, 0, sizeof got);
            cr_assert_eq(jask_array_read(array, first, count, got, NULL), JASK_OK);
            for (uint64_t k = 0; k < count; k++)
                cr_assert_eq(got[k], logical[first + k], "%d of [%d, +%d)", (int)k, (int)first,
                             (int)count);
            cr_assert_eq(got[count], 0);
        }
    }
    jask_array_close(array);
}

/* Runs longer than the buffer, and elements too far apart to be read together. */
Test(array, large_fortran_arrays_are_read_through_a_small_buffer)
{
    static const struct {
        int64_t rows, cols;
    } cases[] = {{300001, 5}, {5, 100003}, {9001, 33}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t rows = cases[i].rows, cols = cases[i].cols, n = rows * cols;
        double *file = malloc((size_t)n * sizeof *file), *got = calloc((size_t)n, sizeof *got);
        uint64_t first = (uint64_t)(n / 3), count = (uint64_t)(n / 2);
        jask_array *array;
        char name[64];
        for (int64_t e = 0; e < n; e++)
            file[e] = (double)e;
        put_file("a", file, (size_t)n * sizeof *file);
        snprintf(name, sizeof name, "a@f8:%dx%d", (int)rows, (int)cols);
        cr_assert_eq(jask_array_open(name, &array, NULL), JASK_OK);
        array->layout.fortran_order = true; /* raw files have no word for it */
        array->layout.strides[0] = 8;
        array->layout.strides[1] = 8 * rows;
        cr_assert_eq(jask_array_read(array, 0, (uint64_t)n, got, NULL), JASK_OK);
        for (int64_t e = 0; e < n; e++)
            cr_assert_eq(got[e], (double)(e / cols + rows * (e % cols)));
        cr_assert_eq(jask_array_read(array, first, count, got, NULL), JASK_OK);
        for (uint64_t k = 0; k < count; k++) {
            int64_t e = (int64_t)(first + k);
            cr_assert_eq(got[k], (double)(e / cols + rows * (e % cols)));
        }
        jask_array_close(array);
        free(file);
        free(got);
    }
}

Test(array, ranges_outside_are_refused)
{
    static const struct {
        uint64_t first, count;
        jask_status status;
    } cases[] = {{0, 6, JASK_OK},
                 {6, 0, JASK_OK},
                 {0, 7, JASK_ERR_ARG},
                 {6, 1, JASK_ERR_ARG},
                 {7, 0, JASK_ERR_ARG},
                 {UINT64_MAX, 2, JASK_ERR_ARG},
                 {1, UINT64_MAX, JASK_ERR_ARG}};
    float data[6] = {0};
    jask_array *array;
    jask_error err;
    put_npy("a.npy", DICT("<f4", "False", "(2, 3)"), 128, data, sizeof data);
    cr_assert_eq(jask_array_open("a.npy", &array, NULL), JASK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(jask_array_read(array, cases[i].first, cases[i].count, data, NULL),
                     cases[i].status);
    cr_assert_eq(jask_array_read(array, 4, 5, data, &err), JASK_ERR_ARG);
    cr_assert_not_null(strstr(err.msg, "read 5 elements from number 4 of 'a.npy', which has 6"),
                       "%s", err.msg);
    cr_assert_eq(jask_array_read(array, 0, 1, NULL, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_array_read(NULL, 0, 0, data, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_array_write(array, 0, 1, data, &err), JASK_ERR_ARG);
    cr_assert_not_null(strstr(err.msg, "'a.npy' is not being written"), "%s", err.msg);
    cr_assert_eq(jask_array_write(NULL, 0, 0, data, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_array_commit(array, &err), JASK_ERR_ARG);
    cr_assert_eq(jask_array_commit(NULL, NULL), JASK_ERR_ARG);
    cr_assert_eq(truncate("a.npy", 140), 0);
    cr_assert_eq(jask_array_read(array, 0, 6, data, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "shrank"), "%s", err.msg);
    jask_array_close(array);
}

/* Named results need no context. */
Test(array, a_created_array_appears_at_commit_and_reads_back)
{
    static const int64_t shapes[][3] = {{0}, {5}, {2, 3}, {0, 4}, {2, 0, 3}, {7, 1, 2}};
    static const int ndims[] = {0, 1, 2, 2, 3, 3};
    for (size_t i = 0; i < sizeof ndims / sizeof *ndims; i++) {
        jask_array *array, *back;
        jask_array_info info;
        struct stat st;
        double data[16], got[16];
        cr_assert_eq(jask_array_create(NULL, "c.npy", JASK_F64, ndims[i], shapes[i], &array, NULL),
                     JASK_OK);
        info = info_of(array);
        for (int k = 0; k < 16; k++)
            data[k] = k + 0.5;
        cr_assert_eq(jask_array_read(array, 0, info.elements, got, NULL), JASK_OK);
        for (uint64_t k = 0; k < info.elements; k++)
            cr_assert_eq(got[k], 0);
        cr_assert_eq(jask_array_write(array, 0, info.elements, data, NULL), JASK_OK);
        cr_assert_neq(access("c.npy", F_OK), 0);
        cr_assert_eq(jask_array_commit(array, NULL), JASK_OK);
        cr_assert_eq(jask_array_commit(array, NULL), JASK_ERR_ARG);
        cr_assert_eq(jask_array_write(array, 0, info.elements, data, NULL), JASK_ERR_ARG);
        cr_assert_eq(jask_array_read(array, 0, info.elements, got, NULL), JASK_OK);
        cr_assert_arr_eq(got, data, info.elements * 8);

        cr_assert_eq(stat("c.npy", &st), 0);
        cr_assert_eq(st.st_size, 128 + (off_t)info.elements * 8);
        cr_assert_eq(jask_array_open("c.npy", &back, NULL), JASK_OK);
        cr_assert(jk_array_same_file(array, back));
        cr_assert_eq(info_of(back).ndim, ndims[i]);
        cr_assert_arr_eq(info_of(back).shape, shapes[i], (size_t)ndims[i] * sizeof **shapes);
        cr_assert_eq(jask_array_read(back, 0, info.elements, got, NULL), JASK_OK);
        cr_assert_arr_eq(got, data, info.elements * 8);
        jask_array_close(array);
        jask_array_close(back);
        cr_assert_eq(unlink("c.npy"), 0);
    }
}

Test(array, closing_without_commit_leaves_the_old_file)
{
    static const int64_t shape[] = {100};
    jask_array *array;
    put_file("c.npy", "old", 3);
    cr_assert_eq(jask_array_create(NULL, "c.npy", JASK_F32, 1, shape, &array, NULL), JASK_OK);
    jask_array_close(array);
    cr_assert_eq(tree_entries("."), 1);
    struct stat st;
    cr_assert_eq(stat("c.npy", &st), 0);
    cr_assert_eq(st.st_size, 3);
}

Test(array, create_refuses_bad_arguments)
{
    static const int64_t negative[] = {2, -1}, huge[] = {INT64_MAX, INT64_MAX};
    static const int64_t shape[] = {2, 2}, eight_tb[] = {1000000, 1000000};
    static const struct {
        const char *path;
        jask_dtype dtype;
        int ndim;
        const int64_t *shape;
        jask_status status;
        const char *said;
    } cases[] = {
        {"c.npy", JASK_F32, 2, negative, JASK_ERR_ARG,
         "'c.npy': extent 1 of the shape is negative: -1"},
        {"c.npy", JASK_F32, 2, huge, JASK_ERR_ARG, "2^62"},
        {"c.npy", JASK_F32, 33, shape, JASK_ERR_ARG, "0 to 32 dimensions, not 33"},
        {"c.npy", JASK_F32, -1, shape, JASK_ERR_ARG, "not -1"},
        {"c.npy", JASK_F32, 2, NULL, JASK_ERR_ARG, "needs a shape"},
        {"c.npy", JASK_DTYPE_NONE, 2, shape, JASK_ERR_ARG, "no element type"},
        {"c.npy", (jask_dtype)99, 2, shape, JASK_ERR_ARG, "99 is no element type"},
        {"c.npy", JASK_F64, 2, eight_tb, JASK_ERR_IO, "'c.npy' needs 8000000004096 bytes, and"},
        {"none/c.npy", JASK_F64, 2, shape, JASK_ERR_IO, "directory 'none/'"},
        {".", JASK_F64, 2, shape, JASK_ERR_ARG, "is a directory"},
        {"", JASK_F64, 2, shape, JASK_ERR_ARG, "empty name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_array *array = NULL;
        jask_error err;
        cr_assert_eq(jask_array_create(NULL, cases[i].path, cases[i].dtype, cases[i].ndim,
                                       cases[i].shape, &array, &err),
                     cases[i].status, "case %zu", i);
        cr_assert_not_null(strstr(err.msg, cases[i].said), "%s", err.msg);
        cr_assert_null(array);
        cr_assert_eq(jask_array_create(NULL, cases[i].path, cases[i].dtype, cases[i].ndim,
                                       cases[i].shape, &array, NULL),
                     cases[i].status);
        cr_assert_eq(tree_entries("."), 0);
    }
    cr_assert_eq(jask_array_create(NULL, "c.npy", JASK_F32, 2, shape, NULL, NULL), JASK_ERR_ARG);
}

Test(array, a_result_may_replace_its_input_which_stays_readable)
{
    static const int64_t shape[] = {2};
    static const float old[] = {1, 2}, fresh[] = {3, 4};
    float got[2];
    jask_array *in, *out;
    put_npy("a.npy", DICT("<f4", "False", "(2,)"), 128, old, sizeof old);
    cr_assert_eq(jask_array_open("a.npy", &in, NULL), JASK_OK);
    cr_assert_eq(jask_array_create(NULL, "a.npy", JASK_F32, 1, shape, &out, NULL), JASK_OK);
    cr_assert_not(jk_array_same_file(in, out));
    cr_assert_eq(jask_array_write(out, 0, 2, fresh, NULL), JASK_OK);
    cr_assert_eq(jk_array_check_unchanged(in, NULL), JASK_OK);
    cr_assert_eq(jask_array_commit(out, NULL), JASK_OK);
    cr_assert_eq(jask_array_read(in, 0, 2, got, NULL), JASK_OK);
    cr_assert_arr_eq(got, old, sizeof old);
    jask_array_close(in);
    jask_array_close(out);
    cr_assert_eq(jask_array_open("a.npy", &in, NULL), JASK_OK);
    cr_assert_eq(jask_array_read(in, 0, 2, got, NULL), JASK_OK);
    cr_assert_arr_eq(got, fresh, sizeof fresh);
    jask_array_close(in);
}

Test(array, maps_are_the_bytes_of_the_file)
{
    static const int64_t shape[] = {1000, 3}, none[] = {0, 3};
    static const float data[] = {1, 2, 3};
    jask_array *array, *back;
    void *map = NULL, *again = NULL;
    float got = 0;
    cr_assert_eq(jask_array_create(NULL, "c.npy", JASK_F32, 2, shape, &array, NULL), JASK_OK);
    cr_assert_eq(jask_array_map(array, &map, NULL), JASK_OK);
    ((float *)map)[2999] = 7;
    cr_assert_eq(jask_array_map(array, &again, NULL), JASK_OK);
    cr_assert_eq(map, again);
    cr_assert_eq(jask_array_read(array, 2999, 1, &got, NULL), JASK_OK);
    cr_assert_eq(got, 7);
    cr_assert_eq(jask_array_commit(array, NULL), JASK_OK);
    jask_array_close(array);

    put_npy("odd.npy", DICT("<f4", "False", "(3,)"), 4099, data, sizeof data);
    cr_assert_eq(jask_array_open("odd.npy", &back, NULL), JASK_OK);
    cr_assert_eq(jask_array_map(back, &map, NULL), JASK_OK);
    cr_assert_arr_eq(map, data, sizeof data);
    cr_assert_eq(jask_array_map(back, NULL, NULL), JASK_ERR_ARG);
    cr_assert_eq(jask_array_map(NULL, &map, NULL), JASK_ERR_ARG);
    jask_array_close(back);

    cr_assert_eq(jask_array_create(NULL, "z.npy", JASK_F32, 2, none, &array, NULL), JASK_OK);
    cr_assert_eq(jask_array_map(array, &map, NULL), JASK_OK);
    cr_assert_null(map);
    jask_array_close(array);
}

Test(array, a_scratch_array_has_no_name_and_no_commit)
{
    static const int64_t shape[] = {10, 10};
    jask_options options;
    jask_context *ctx;
    jask_array *array;
    jask_error err;
    double x = 2.5, got;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 1 << 20;
    options.scratch_dir = "scratch";
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(jask_array_create(ctx, NULL, JASK_F64, 2, shape, &array, &err), JASK_OK, "%s",
                 err.msg);
    cr_assert_str_eq(info_of(array).path, "(scratch)");
    cr_assert_eq(info_of(array).data_offset, 0);
    cr_assert_eq(tree_entries("scratch"), 0);
    cr_assert_eq(jask_array_write(array, 99, 1, &x, NULL), JASK_OK);
    cr_assert_eq(jask_array_read(array, 99, 1, &got, NULL), JASK_OK);
    cr_assert_eq(got, 2.5);
    cr_assert_eq(jk_array_check_unchanged(array, NULL), JASK_OK);
    cr_assert_eq(jask_array_commit(array, &err), JASK_ERR_ARG);
    cr_assert_not_null(strstr(err.msg, "'(scratch)' cannot be committed"), "%s", err.msg);
    jask_array_close(array);
    cr_assert_eq(jask_array_create(ctx, NULL, JASK_BF16, 2, shape, &array, NULL), JASK_OK);
    jask_array_close(array);
    jask_context_close(ctx);
}
