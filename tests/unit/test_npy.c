#include "runtime/npy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header as a file has it: preamble and text, in memory of exactly that size, so that the
 * sanitizer sees every byte read beyond it. */
typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static bytes raw_header(int version, const char *text, size_t len, uint64_t claimed)
{
    size_t preamble = version == 1 ? 10 : 12;
    bytes b = {malloc(preamble + len), preamble + len};
    memcpy(b.data, "\x93NUMPY", 6);
    b.data[6] = (unsigned char)version;
    b.data[7] = 0;
    for (size_t i = 8; i < preamble; i++)
        b.data[i] = (unsigned char)(claimed >> (8 * (i - 8)));
    memcpy(b.data + preamble, text, len);
    return b;
}

static bytes header(int version, const char *text)
{
    return raw_header(version, text, strlen(text), strlen(text));
}

static jask_status parse(bytes b, uint64_t data_bytes, jk_layout *out, jask_error *err)
{
    size_t need = 0;
    bool done = false;
    jask_status st = jk_npy_parse(b.data, b.size, b.size + data_bytes, "a.npy", JASK_DTYPE_NONE,
                                  &need, &done, out, err);
    if (!st) {
        cr_assert(done);
        cr_assert_eq(need, b.size);
    }
    return st;
}

Test(npy, reads_every_way_to_write_a_header)
{
    static const struct {
        const char *text;
        jask_dtype dtype;
        bool big, fortran;
        int ndim;
        int64_t shape[4];
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
         JASK_F32,
         false,
         false,
         2,
         {2, 3}},
        {"{'shape':(2,2),'fortran_order':True,'descr':'<f4'}", JASK_F32, false, true, 2, {2, 2}},
        {"{\"descr\": \"<f8\", \"shape\": (3,), \"fortran_order\": False}\n",
         JASK_F64,
         false,
         false,
         1,
         {3}},
        {"  {  'descr'\t:\r\n'>i2' ,'fortran_order' : False , 'shape' : ( 1 , 2 , 3 , 4 , ) , } \n",
         JASK_I16,
         true,
         false,
         4,
         {1, 2, 3, 4}},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }", JASK_U8, false, false, 0, {0}},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (3L, 4L), }",
         JASK_I64,
         false,
         false,
         2,
         {3, 4}},
        {"{'descr': 'f4', 'fortran_order': False, 'shape': (0, 5), }",
         JASK_F32,
         false,
         false,
         2,
         {0, 5}},
        {"{'descr': '=c16', 'fortran_order': True, 'shape': (5, 0, 7), }",
         JASK_C128,
         false,
         true,
         3,
         {5, 0, 7}},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (2147483664, 1), }",
         JASK_F16,
         false,
         false,
         2,
         {2147483664, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int version = 1; version <= 3; version++) {
            char format[16];
            bytes b = header(version, cases[i].text);
            jk_layout layout;
            jask_error err = {.msg = ""};
            cr_assert_eq(parse(b, (uint64_t)1 << 40, &layout, &err), JASK_OK, "%s: %s",
                         cases[i].text, err.msg);
            cr_assert_eq(layout.dtype, cases[i].dtype);
            cr_assert_eq(layout.big_endian, cases[i].big);
            cr_assert_eq(layout.fortran_order, cases[i].fortran);
            cr_assert_eq(layout.ndim, cases[i].ndim);
            for (int d = 0; d < layout.ndim; d++)
                cr_assert_eq(layout.shape[d], cases[i].shape[d]);
            cr_assert_eq(layout.data_offset, b.size);
            snprintf(format, sizeof format, "npy %d.0", version);
            cr_assert_str_eq(layout.format, format);
            free(b.data);
        }
    }
}

#define REST ", 'fortran_order': False, 'shape': (2, 2), }"
#define WITH_SHAPE(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

Test(npy, refuses_foreign_types_and_damaged_text_and_quotes_them)
{
    static const struct {
        const char *text;
        jask_status status;
        const char *quoted;
    } cases[] = {
        {"{'descr': [('i', '<i8'), ('k', '<f8')]" REST, JASK_ERR_UNSUPPORTED,
         "structured dtype not supported: [('i', '<i8'), ('k', '<f8')];"},
        {"{'descr': ('<f4', (2,))" REST, JASK_ERR_UNSUPPORTED, "('<f4', (2,))"},
        {"{'descr': [('\xd0\xb6', '<i8')]" REST, JASK_ERR_UNSUPPORTED, "\\xd0\\xb6"},
        {"{'descr': '|O'" REST, JASK_ERR_UNSUPPORTED, "pickle"},
        {"{'descr': 'O'" REST, JASK_ERR_UNSUPPORTED, "pickle"},
        {"{'descr': '|V2'" REST, JASK_ERR_UNSUPPORTED, "FILE@bf16"},
        {"{'descr': '<V2'" REST, JASK_ERR_UNSUPPORTED, "'<V2'"},
        {"{'descr': '<U4'" REST, JASK_ERR_UNSUPPORTED, "'<U4' is text"},
        {"{'descr': '|S4'" REST, JASK_ERR_UNSUPPORTED, "'|S4' is text"},
        {"{'descr': '<M8[ns]'" REST, JASK_ERR_UNSUPPORTED, "'<M8[ns]' is dates"},
        {"{'descr': '<f1'" REST, JASK_ERR_UNSUPPORTED, "'<f1'"},
        {"{'descr': '<f16'" REST, JASK_ERR_UNSUPPORTED, "'<f16'"},
        {"{'descr': '|b1'" REST, JASK_ERR_UNSUPPORTED, "'|b1'"},
        {"{'descr': '<ixy'" REST, JASK_ERR_UNSUPPORTED, "'<ixy'"},
        {"{'descr': ''" REST, JASK_ERR_UNSUPPORTED, "''"},
        {"{'descr': '<'" REST, JASK_ERR_UNSUPPORTED, "'<'"},
        {"{'descr': '<f'" REST, JASK_ERR_UNSUPPORTED, "'<f'"},
        {"{'descr': '<f99999999999'" REST, JASK_ERR_UNSUPPORTED, "'<f99999999999'"},
        {"{'descr': '|f4'" REST, JASK_ERR_UNSUPPORTED, "'|f4'"},
        {"{'descr': 4" REST, JASK_ERR_FORMAT, "'descr' is not a text: 4"},
        {"{'descr': '<f4', 'fortran_order': Falsely, 'shape': (2,)}", JASK_ERR_FORMAT, "Falsely"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", JASK_ERR_FORMAT, "False: 0"},
        {"{'descr': '<f4', 'fortran_order': , 'shape': (2,)}", JASK_ERR_FORMAT, "fortran_order"},
        {WITH_SHAPE("10"), JASK_ERR_FORMAT, "shape is not a tuple: 10"},
        {WITH_SHAPE("(10)"), JASK_ERR_FORMAT, "shape is not a tuple: (10)"},
        {WITH_SHAPE("[2, 2]"), JASK_ERR_FORMAT, "shape is not a tuple: [2, 2]"},
        {WITH_SHAPE("(np.int64(1), np.int64(2))"), JASK_ERR_FORMAT, ": (np.int64(1), np.int64(2))"},
        {WITH_SHAPE("(array(100),)"), JASK_ERR_FORMAT, "(array(100),)"},
        {WITH_SHAPE("(-1, 2)"), JASK_ERR_FORMAT, "negative extent: (-1, 2)"},
        {WITH_SHAPE("(2, -9)"), JASK_ERR_FORMAT, "negative extent: (2, -9)"},
        {WITH_SHAPE("(2 2)"), JASK_ERR_FORMAT, "(2 2)"},
        {WITH_SHAPE("(2,,2)"), JASK_ERR_FORMAT, "(2,,2)"},
        {WITH_SHAPE("(,)"), JASK_ERR_FORMAT, "(,)"},
        {WITH_SHAPE("(2.0, 2)"), JASK_ERR_FORMAT, "(2.0, 2)"},
        {WITH_SHAPE("(2e1, 2)"), JASK_ERR_FORMAT, "(2e1, 2)"},
        {WITH_SHAPE("(0x2, 2)"), JASK_ERR_FORMAT, "(0x2, 2)"},
        {WITH_SHAPE("(2LL,)"), JASK_ERR_FORMAT, "(2LL,)"},
        {WITH_SHAPE("(9223372036854775808,)"), JASK_ERR_FORMAT,
         "below 2^63: (9223372036854775808,)"},
        {WITH_SHAPE("(99999999999999999999999,)"), JASK_ERR_FORMAT, "99999999999999999999999"},
        {WITH_SHAPE("(4294967296, 4294967296)"), JASK_ERR_FORMAT, "(4294967296, 4294967296)"},
        {WITH_SHAPE("(0, 4294967296, 4294967296)"), JASK_ERR_FORMAT, "larger than any file"},
        {WITH_SHAPE("(9223372036854775807,)"), JASK_ERR_FORMAT, "larger than any file"},
        {WITH_SHAPE("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
         JASK_ERR_UNSUPPORTED, "more than 32 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, }", JASK_ERR_FORMAT, "lacks the key 'shape'"},
        {"{'fortran_order': False, 'shape': (2,)}", JASK_ERR_FORMAT, "lacks the key 'descr'"},
        {"{'descr': '<f4', 'shape': (2,)}", JASK_ERR_FORMAT, "lacks the key 'fortran_order'"},
        {"{}", JASK_ERR_FORMAT, "lacks"},
        {"{'descr': '<f4', 'descr': '<f4'" REST, JASK_ERR_FORMAT, "'descr' twice"},
        {"{'descr': '<f4', 'extra': 1" REST, JASK_ERR_FORMAT, "unknown key 'extra'"},
        {"{descr: '<f4'" REST, JASK_ERR_FORMAT, "expected a key in quotes at byte 1"},
        {"{'descr' '<f4'" REST, JASK_ERR_FORMAT, "expected ':'"},
        {"{'descr': '<f4' 'fortran_order': False}", JASK_ERR_FORMAT, "expected ',' or '}'"},
        {"{'descr': '<f4'" REST " x", JASK_ERR_FORMAT, "nothing after '}'"},
        {"{'descr': '<f4'" REST "{}", JASK_ERR_FORMAT, "nothing after '}'"},
        {"['descr', '<f4']", JASK_ERR_FORMAT, "expected '{'"},
        {"", JASK_ERR_FORMAT, "expected '{'"},
        {"      \n", JASK_ERR_FORMAT, "expected '{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int version = 1; version <= 3; version++) {
            bytes b = header(version, cases[i].text);
            jk_layout layout = {.ndim = 77};
            jask_error err;
            cr_assert_eq(parse(b, (uint64_t)1 << 62, &layout, &err), cases[i].status, "%s",
                         cases[i].text);
            cr_assert_eq(err.code, cases[i].status);
            cr_assert_not_null(strstr(err.msg, cases[i].quoted), "%s", err.msg);
            cr_assert_not_null(strstr(err.msg, "'a.npy'"), "%s", err.msg);
            cr_assert_eq(layout.ndim, 77);
            cr_assert_eq(parse(b, (uint64_t)1 << 62, &layout, NULL), cases[i].status);
            free(b.data);
        }
    }
}

Test(npy, refuses_every_truncated_header_and_names_both_sizes)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }  \n";
    for (int version = 1; version <= 3; version++) {
        bytes whole = header(version, text);
        for (size_t n = 0; n < whole.size; n++) {
            bytes part = {malloc(n), n};
            jk_layout layout = {.ndim = 77};
            jask_error err;
            memcpy(part.data, whole.data, n);
            cr_assert_eq(parse(part, 0, &layout, &err), JASK_ERR_FORMAT, "%zu bytes", n);
            cr_assert_eq(layout.ndim, 77);
            cr_assert_not_null(strstr(err.msg, n ? "is cut short: need " : "is empty"), "%s",
                               err.msg);
            free(part.data);
        }
        free(whole.data);
    }
}

Test(npy, asks_for_the_rest_of_a_long_header)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }  \n";
    for (int version = 1; version <= 3; version++) {
        bytes whole = header(version, text);
        for (size_t n = 0; n < whole.size; n++) {
            bytes part = {malloc(n), n};
            size_t need = 0;
            bool done = true;
            jk_layout layout;
            memcpy(part.data, whole.data, n);
            cr_assert_eq(jk_npy_parse(part.data, n, whole.size + 24, "a", JASK_DTYPE_NONE, &need,
                                      &done, &layout, NULL),
                         JASK_OK);
            cr_assert(!done);
            cr_assert_gt(need, n);
            cr_assert_leq(need, whole.size);
            free(part.data);
        }
        free(whole.data);
    }
}

Test(npy, data_must_be_all_there_and_may_be_followed_by_more)
{
    char text[128];
    bytes b;
    jk_layout layout;
    jask_error err;
    snprintf(text, sizeof text, "%-117s\n", WITH_SHAPE("(3, 2)"));
    b = header(1, text);
    cr_assert_eq(b.size, 128);
    cr_assert_eq(parse(b, 24, &layout, NULL), JASK_OK);
    cr_assert_eq(parse(b, 25, &layout, NULL), JASK_OK);
    cr_assert_eq(parse(b, 20, &layout, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "need 152 bytes, have 148"), "%s", err.msg);
    free(b.data);
}

Test(npy, refuses_foreign_files_by_their_first_bytes)
{
    static const struct {
        const char *start;
        size_t size;
        jask_status status;
        const char *said;
    } cases[] = {
        {"PK\003\004junk......", 14, JASK_ERR_FORMAT, "unzip it first"},
        {"hello, world, again", 19, JASK_ERR_FORMAT, "begins with \"hello,\""},
        {"\x93NUMPZ\1\0\0\0....", 14, JASK_ERR_FORMAT, "not an .npy file"},
        {"\x1f\x8b\b\0\0\0\0\0\0\0", 10, JASK_ERR_FORMAT, "\\x1f\\x8b"},
        {"\x93NUMPY\x9\0vvvvvv", 14, JASK_ERR_UNSUPPORTED, "version 9.0 not supported"},
        {"\x93NUMPY\0\0vvvvvv", 14, JASK_ERR_UNSUPPORTED, "version 0.0 not supported"},
        {"\x93NUMPY\1\1vvvvvv", 14, JASK_ERR_UNSUPPORTED, "version 1.1 not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b = {malloc(cases[i].size), cases[i].size};
        jk_layout layout;
        jask_error err;
        memcpy(b.data, cases[i].start, b.size);
        cr_assert_eq(parse(b, 1000, &layout, &err), cases[i].status);
        cr_assert_not_null(strstr(err.msg, cases[i].said), "%s", err.msg);
        free(b.data);
    }
}

Test(npy, a_header_is_never_longer_than_the_file_or_16_mib)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
    jk_layout layout;
    jask_error err;
    size_t need = 0;
    bool done = true;
    bytes b = raw_header(2, text, strlen(text), 0xFFFFFFF0);
    cr_assert_eq(parse(b, 4, &layout, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "need 4294967292 bytes"), "%s", err.msg);
    cr_assert_eq(parse(b, (uint64_t)1 << 40, &layout, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "16 MiB"), "%s", err.msg);
    free(b.data);

    b = raw_header(3, text, strlen(text), 16 << 20);
    cr_assert_eq(
        jk_npy_parse(b.data, b.size, 17 << 20, "a", JASK_DTYPE_NONE, &need, &done, &layout, NULL),
        JASK_OK);
    cr_assert(!done);
    cr_assert_eq(need, 12 + (16 << 20));
    free(b.data);
}

Test(npy, takes_headers_of_any_length)
{
    static char text[1 << 20];
    static const struct {
        int version;
        size_t len;
    } cases[] = {{1, 65535}, {1, 65472 - 10}, {2, 65536}, {3, sizeof text}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_layout layout;
        bytes b;
        memset(text, ' ', sizeof text);
        memcpy(text, WITH_SHAPE("(3, 2)"), sizeof WITH_SHAPE("(3, 2)") - 1);
        b = raw_header(cases[i].version, text, cases[i].len, cases[i].len);
        cr_assert_eq(parse(b, 24, &layout, NULL), JASK_OK);
        cr_assert_eq(layout.data_offset, b.size);
        free(b.data);
    }
}

/* Quoting a value looks for its end: that must not be tried again at each of its bytes. */
Test(npy, long_hostile_texts_take_linear_time, .timeout = 20)
{
    static char text[8 << 20];
    static const char *const starts[] = {"{'descr': 1", "{'descr': [", "{'descr': '",
                                         "{'shape': ("};
    static const char *const patterns[] = {"'\\", "\"'", "((", "])", "'''"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        for (size_t j = 0; j < sizeof patterns / sizeof *patterns; j++) {
            size_t used = strlen(starts[i]), step = strlen(patterns[j]);
            jk_layout layout;
            bytes b;
            memset(text, ' ', sizeof text);
            memcpy(text, starts[i], used);
            for (; used + step <= sizeof text; used += step)
                memcpy(text + used, patterns[j], step);
            b = raw_header(2, text, sizeof text, sizeof text);
            cr_assert_neq(parse(b, 0, &layout, NULL), JASK_OK);
            free(b.data);
        }
    }
}

Test(npy, any_damage_is_answered_and_never_read_beyond)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2L), }  \n";
    static const char alphabet[] = "{}()[]'\",:\\ \n-+0129LTFdesfx\x93\xff";
    uint64_t seed = 20240607;
    int accepted = 0;
    for (int round = 0; round < 60000; round++) {
        bytes b = header(1 + round % 3, text);
        jk_layout layout = {0};
        for (int edits = 1 + round % 4; edits > 0; edits--) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            b.data[6 + (seed >> 33) % (b.size - 6)] =
                round % 2 ? (unsigned char)(seed >> 20)
                          : (unsigned char)alphabet[(seed >> 20) % sizeof alphabet];
        }
        size_t need = 0;
        bool done = false;
        if (!jk_npy_parse(b.data, b.size, b.size + 24, "a", JASK_DTYPE_NONE, &need, &done, &layout,
                          NULL) &&
            done) {
            accepted++;
            cr_assert_leq(layout.data_offset + layout.data_bytes, b.size + 24);
            cr_assert_leq(layout.ndim, JASK_MAX_DIMS);
        }
        free(b.data);
    }
    cr_assert_gt(accepted, 0);
}

Test(npy, a_word_of_the_user_makes_bare_bytes_bfloat16)
{
    bytes bare = header(1, "{'descr': '|V2'" REST), f16 = header(1, "{'descr': '<f2'" REST);
    jk_layout layout = {0};
    jask_error err;
    size_t need;
    bool done;
    cr_assert_eq(jk_npy_parse(bare.data, bare.size, bare.size + 8, "a", JASK_BF16, &need, &done,
                              &layout, &err),
                 JASK_OK, "%s", err.msg);
    cr_assert_eq(layout.dtype, JASK_BF16);
    cr_assert_eq(layout.data_bytes, 8);
    cr_assert_eq(
        jk_npy_parse(f16.data, f16.size, f16.size + 8, "a", JASK_BF16, &need, &done, &layout, &err),
        JASK_ERR_ARG);
    cr_assert_str_eq(err.msg, "'a' holds f16 by its header, not bf16");
    free(bare.data);
    free(f16.data);
}

Test(npy, writes_what_numpy_writes)
{
    static const struct {
        jask_dtype dtype;
        bool fortran;
        int ndim;
        int64_t shape[3];
        const char *text;
    } cases[] = {
        {JASK_F32, false, 2, {2, 3}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
        {JASK_F64, false, 1, {3}, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"},
        {JASK_U8, false, 0, {0}, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }"},
        {JASK_BF16, false, 1, {2}, "{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }"},
        {JASK_C128,
         true,
         3,
         {0, 5, 6},
         "{'descr': '<c16', 'fortran_order': True, 'shape': (0, 5, 6), }"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char out[JK_NPY_HEADER_MAX];
        jk_layout layout = {.dtype = cases[i].dtype}, back;
        size_t len = strlen(cases[i].text), size, need;
        bool done;
        cr_assert_eq(
            jk_layout_dense(&layout, cases[i].ndim, cases[i].shape, cases[i].fortran, NULL),
            JASK_OK);
        size = jk_npy_write(out, &layout);
        cr_assert_eq(size, 128);
        cr_assert_arr_eq(out, "\x93NUMPY\1\0\x76\0", 10);
        cr_assert_arr_eq(out + 10, cases[i].text, len);
        for (size_t p = 10 + len; p < size - 1; p++)
            cr_assert_eq(out[p], ' ');
        cr_assert_eq(out[size - 1], '\n');
        cr_assert_eq(jk_npy_parse(out, size, size + layout.data_bytes, "a", cases[i].dtype, &need,
                                  &done, &back, NULL),
                     JASK_OK);
        cr_assert(done);
        cr_assert_arr_eq(&back, &layout, sizeof back);
    }
}

/* So that its bytes lie as requests around the page cache need them; NumPy reads such headers. */
Test(npy, data_of_32_mebibytes_begins_at_a_page)
{
    static const int64_t floats[] = {(1 << 23) - 1, 1 << 23};
    static const size_t sizes[] = {128, 4096};
    for (int i = 0; i < 2; i++) {
        unsigned char out[JK_NPY_HEADER_MAX];
        jk_layout layout = {.dtype = JASK_F32}, back;
        size_t need;
        bool done;
        cr_assert_eq(jk_layout_dense(&layout, 1, &floats[i], false, NULL), JASK_OK);
        cr_assert_eq(jk_npy_write(out, &layout), sizes[i]);
        cr_assert_eq(layout.data_offset, sizes[i]);
        cr_assert_eq(out[sizes[i] - 1], '\n');
        cr_assert_eq(jk_npy_parse(out, sizes[i], sizes[i] + layout.data_bytes, "a", JASK_F32, &need,
                                  &done, &back, NULL),
                     JASK_OK);
        cr_assert(done);
        cr_assert_arr_eq(&back, &layout, sizeof back);
    }
}

Test(npy, the_longest_shape_fits_its_room)
{
    unsigned char out[JK_NPY_HEADER_MAX];
    jk_layout layout = {.dtype = JASK_C128, .ndim = JASK_MAX_DIMS};
    size_t size;
    for (int d = 0; d < JASK_MAX_DIMS; d++)
        layout.shape[d] = INT64_MAX;
    size = jk_npy_write(out, &layout);
    cr_assert_eq(size % 64, 0);
    cr_assert_eq(out[size - 1], '\n');
    cr_assert_eq(layout.data_offset, size);
}
