#include "runtime/array.h"

#include <criterion/criterion.h>
#include <string.h>

Test(raw_spec, reads_type_shape_and_offset)
{
    static const struct {
        const char *spec, *path;
        jask_dtype dtype;
        bool big;
        int ndim;
        int64_t shape[3];
        uint64_t offset;
    } cases[] = {
        {"a.bin@f4:3x2", "a.bin", JASK_F32, false, 2, {3, 2}, 0},
        {"a.bin@f32:3x2", "a.bin", JASK_F32, false, 2, {3, 2}, 0},
        {"/tmp/a b@>f8:7", "/tmp/a b", JASK_F64, true, 1, {7}, 0},
        {"a@=f4:1X2x3", "a", JASK_F32, false, 3, {1, 2, 3}, 0},
        {"a@<float64:4x4+128", "a", JASK_F64, false, 2, {4, 4}, 128},
        {"a@f4:4x4+0", "a", JASK_F32, false, 2, {4, 4}, 0},
        {"a@f4:4x4+4KiB", "a", JASK_F32, false, 2, {4, 4}, 4096},
        {"a@bf16:0x4", "a", JASK_BF16, false, 2, {0, 4}, 0},
        {"a@f4:2147483664x1", "a", JASK_F32, false, 2, {2147483664, 1}, 0},
        /* '@' in names: the last one with a type behind it counts */
        {"me@home@f4:2", "me@home", JASK_F32, false, 1, {2}, 0},
        {"a@f8:1@f4:2", "a@f8:1", JASK_F32, false, 1, {2}, 0},
        {"x:y@f4:2", "x:y", JASK_F32, false, 1, {2}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[64];
        bool is_raw = false;
        jask_dtype said;
        jk_layout layout;
        jask_error err = {.msg = ""};
        uint64_t elements = 1;
        cr_assert_eq(jk_raw_parse(cases[i].spec, &is_raw, &said, path, sizeof path, &layout, &err),
                     JASK_OK, "%s: %s", cases[i].spec, err.msg);
        cr_assert(is_raw);
        cr_assert_str_eq(path, cases[i].path);
        cr_assert_eq(layout.dtype, cases[i].dtype);
        cr_assert_eq(layout.big_endian, cases[i].big);
        cr_assert_eq(layout.ndim, cases[i].ndim);
        for (int d = 0; d < layout.ndim; d++) {
            cr_assert_eq(layout.shape[d], cases[i].shape[d]);
            elements *= (uint64_t)layout.shape[d];
        }
        cr_assert_eq(layout.elements, elements);
        cr_assert_eq(layout.data_bytes, elements * jask_dtype_size(layout.dtype));
        cr_assert_eq(layout.data_offset, cases[i].offset);
        cr_assert_str_eq(layout.format, "raw");
    }
}

Test(raw_spec, leaves_plain_names_alone)
{
    static const char *const specs[] = {"a.npy",   "a@b.npy", "@",       "a@",        "a@f4",
                                        "a@f99:2", "a@:3",    "a@f4 :3", "dir@x/y:z", ""};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        char path[8] = "same";
        bool is_raw = true;
        jask_dtype said = JASK_F32;
        cr_assert_eq(jk_raw_parse(specs[i], &is_raw, &said, path, sizeof path, NULL, NULL),
                     JASK_OK);
        cr_assert(!is_raw, "%s", specs[i]);
        cr_assert_str_eq(path, "same");
        cr_assert_eq(said, JASK_DTYPE_NONE);
    }
}

Test(raw_spec, takes_a_word_for_bfloat16_alone)
{
    static const struct {
        const char *spec, *path; /* path NULL: nothing is said */
    } cases[] = {
        {"a.npy@bf16", "a.npy"}, {"a@b@BF16", "a@b"},    {"a@bfloat16", "a"},
        {"a@<bf16", NULL},       {"a@>bf16", NULL},      {"@bf16", NULL},
        {"a@f2", NULL},          {"a@bf16/b.npy", NULL}, {"a@bf16@f4", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[32] = "same";
        bool is_raw = true;
        jask_dtype said = JASK_F32;
        cr_assert_eq(jk_raw_parse(cases[i].spec, &is_raw, &said, path, sizeof path, NULL, NULL),
                     JASK_OK);
        cr_assert(!is_raw, "%s", cases[i].spec);
        cr_assert_eq(said, cases[i].path ? JASK_BF16 : JASK_DTYPE_NONE, "%s", cases[i].spec);
        cr_assert_str_eq(path, cases[i].path ? cases[i].path : "same");
    }
}

Test(raw_spec, refuses_bad_shapes_and_offsets_and_quotes_them)
{
    static const char *const specs[] = {
        "a@f4:",
        "a@f4:x2",
        "a@f4:2x",
        "a@f4:-1x2",
        "a@f4:2,3",
        "a@f4:2x3 ",
        "a@f4:2+",
        "a@f4:2+x",
        "a@f4:2+-1",
        "a@f4:2+-0",
        "a@f4:2+00",
        "@f4:2",
        "a@f4:9223372036854775808",
        "a@f4:4294967296x4294967296",
        "a@f8:0x9223372036854775807x9",
        "a@f4:2+7000000000000000000",
        "a@f4:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1",
        "a-name-that-is-too-long-for-the-room@f4:2",
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        char path[32] = "same";
        bool is_raw = false;
        jask_dtype said;
        jk_layout layout = {.ndim = 77};
        jask_error err;
        cr_assert_eq(jk_raw_parse(specs[i], &is_raw, &said, path, sizeof path, &layout, &err),
                     JASK_ERR_ARG, "%s", specs[i]);
        cr_assert_not_null(strstr(err.msg, specs[i]), "%s", err.msg);
        cr_assert_str_eq(path, "same");
        cr_assert_eq(layout.ndim, 77);
        cr_assert_eq(jk_raw_parse(specs[i], &is_raw, &said, path, sizeof path, &layout, NULL),
                     JASK_ERR_ARG);
    }
}

Test(raw_spec, dense_layouts_have_the_strides_of_their_order)
{
    static const int64_t shape[] = {2, 3, 4};
    static const int64_t c[] = {96, 32, 8}, f[] = {8, 16, 48};
    jk_layout layout = {.dtype = JASK_F64};
    cr_assert_eq(jk_layout_dense(&layout, 3, shape, false, NULL), JASK_OK);
    cr_assert_arr_eq(layout.strides, c, sizeof c);
    cr_assert_eq(jk_layout_dense(&layout, 3, shape, true, NULL), JASK_OK);
    cr_assert_arr_eq(layout.strides, f, sizeof f);
    cr_assert_eq(layout.elements, 24);
    cr_assert_eq(layout.data_bytes, 192);
    cr_assert_eq(jk_layout_dense(&layout, 0, NULL, false, NULL), JASK_OK);
    cr_assert_eq(layout.elements, 1);
    cr_assert_eq(jk_layout_dense(&layout, 33, shape, false, NULL), JASK_ERR_ARG);
    cr_assert_eq(jk_layout_dense(&layout, -1, shape, false, NULL), JASK_ERR_ARG);
}
