#include "runtime/dtype.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(dtype, every_name_reads_back)
{
    static const size_t sizes[] = {0, 2, 2, 4, 8, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8};
    for (int i = JASK_F16; i <= JASK_U64; i++) {
        jask_dtype dtype = JASK_DTYPE_NONE;
        cr_assert_eq(jask_dtype_parse(jask_dtype_name((jask_dtype)i), &dtype, NULL), JASK_OK);
        cr_assert_eq((int)dtype, i, "%s", jask_dtype_name((jask_dtype)i));
        cr_assert_eq(jask_dtype_size(dtype), sizes[i]);
    }
}

Test(dtype, what_is_no_type_has_no_size_and_the_name_none)
{
    static const int values[] = {0, -1, 15, 1000000};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        cr_assert_eq(jask_dtype_size((jask_dtype)values[i]), 0);
        cr_assert_str_eq(jask_dtype_name((jask_dtype)values[i]), "none");
    }
}

Test(dtype, reads_jasks_and_numpys_names)
{
    static const struct {
        const char *text;
        jask_dtype dtype;
    } cases[] = {
        {"f32", JASK_F32},
        {"F32", JASK_F32},
        {"bf16", JASK_BF16},
        {"f16", JASK_F16},
        {"float16", JASK_F16},
        {"f2", JASK_F16},
        {"<f2", JASK_F16},
        {"float32", JASK_F32},
        {"Float32", JASK_F32},
        {"f4", JASK_F32},
        {"<f4", JASK_F32},
        {"=f4", JASK_F32},
        {"<f32", JASK_F32},
        {"=f8", JASK_F64},
        {"f8", JASK_F64},
        {"float64", JASK_F64},
        {"c64", JASK_C64},
        {"complex64", JASK_C64},
        {"c8", JASK_C64},
        {"<c16", JASK_C128},
        {"c16", JASK_C128},
        {"complex128", JASK_C128},
        {"|i1", JASK_I8},
        {"int8", JASK_I8},
        {"i1", JASK_I8},
        {"i2", JASK_I16},
        {"int64", JASK_I64},
        {"|u1", JASK_U8},
        {"uint16", JASK_U16},
        {"u4", JASK_U32},
        {"bfloat16", JASK_BF16},
        {"<bf16", JASK_BF16},
        /* The same letters are 8 bits to jask and 8 bytes to NumPy; a mark says whose they are. */
        {"i8", JASK_I8},
        {"<i8", JASK_I64},
        {"u8", JASK_U8},
        {"=u8", JASK_U64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_dtype dtype = JASK_DTYPE_NONE;
        cr_assert_eq(jask_dtype_parse(cases[i].text, &dtype, NULL), JASK_OK, "%s", cases[i].text);
        cr_assert_eq(dtype, cases[i].dtype, "%s", cases[i].text);
    }
}

Test(dtype, refuses_what_is_no_type_and_quotes_it)
{
    static const char *const texts[] = {
        "",    "none", "f",  "f33", "<",  "<f16", "|f4", "|i8",       "f4 ",     " f4", "<<f4",
        ">f4", ">f32", "b1", "O",   "V2", "f128", "i4x", "f\xc4\xb1", "complex", "-f4", "float"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char quoted[40];
        jask_dtype dtype = JASK_U64;
        jask_error err;
        snprintf(quoted, sizeof quoted, "'%s'", texts[i]);
        cr_assert_eq(jask_dtype_parse(texts[i], &dtype, &err), JASK_ERR_ARG, "%s", texts[i]);
        cr_assert_eq(dtype, JASK_U64);
        cr_assert_not_null(strstr(err.msg, quoted), "%s", err.msg);
    }
    cr_assert_eq(jask_dtype_parse(NULL, NULL, NULL), JASK_ERR_ARG);
}

Test(dtype, a_descr_is_numpys_spelling_only)
{
    static const struct {
        const char *text;
        jask_dtype dtype; /* NONE: refused */
        bool big;
    } cases[] = {
        {"<f4", JASK_F32, false},
        {">f4", JASK_F32, true},
        {"f4", JASK_F32, JK_HOST_BIG_ENDIAN},
        {"=f8", JASK_F64, JK_HOST_BIG_ENDIAN},
        {">c16", JASK_C128, true},
        {"<i8", JASK_I64, false},
        {"i8", JASK_I64, JK_HOST_BIG_ENDIAN},
        {"|i1", JASK_I8, JK_HOST_BIG_ENDIAN},
        {"<u1", JASK_U8, false},
        {">u8", JASK_U64, true},
        {"|f4", JASK_DTYPE_NONE, false},
        {"<f32", JASK_DTYPE_NONE, false},
        {"<F4", JASK_DTYPE_NONE, false},
        {"", JASK_DTYPE_NONE, false},
        {"<", JASK_DTYPE_NONE, false},
        {"<f16", JASK_DTYPE_NONE, false},
        {"<f99999999999", JASK_DTYPE_NONE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_dtype dtype = JASK_DTYPE_NONE;
        bool big = false;
        bool found = jk_dtype_read_descr(cases[i].text, strlen(cases[i].text), false, &dtype, &big);
        cr_assert_eq(found, cases[i].dtype != JASK_DTYPE_NONE, "%s", cases[i].text);
        cr_assert_eq(dtype, cases[i].dtype, "%s", cases[i].text);
        cr_assert_eq(big, cases[i].big, "%s", cases[i].text);
    }
}

Test(dtype, bare_bytes_are_bfloat16_only_on_a_word)
{
    static const struct {
        const char *text;
        bool big;
    } cases[] = {{"|V2", JK_HOST_BIG_ENDIAN}, {"<V2", false}, {">V2", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jask_dtype dtype = JASK_DTYPE_NONE;
        bool big = false;
        cr_assert(!jk_dtype_read_descr(cases[i].text, 3, false, &dtype, &big));
        cr_assert(jk_dtype_read_descr(cases[i].text, 3, true, &dtype, &big), "%s", cases[i].text);
        cr_assert_eq(dtype, JASK_BF16);
        cr_assert_eq(big, cases[i].big, "%s", cases[i].text);
    }
}

/* The table of jask.h, row by row. */
Test(dtype, promotes_to_the_smallest_type_that_holds_both)
{
    enum { COUNT = 14 };
    static const char *const table[COUNT + 1][COUNT + 1] = {
        {"", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64",
         "c64", "c128"},
        {"u8", "u8", "i16", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64",
         "c64", "c128"},
        {"i8", "i16", "i8", "i32", "i16", "i64", "i32", "-", "i64", "f16", "bf16", "f32", "f64",
         "c64", "c128"},
        {"u16", "u16", "i32", "u16", "i32", "u32", "i32", "u64", "i64", "f32", "f32", "f32", "f64",
         "c64", "c128"},
        {"i16", "i16", "i16", "i32", "i16", "i64", "i32", "-", "i64", "f32", "f32", "f32", "f64",
         "c64", "c128"},
        {"u32", "u32", "i64", "u32", "i64", "u32", "i64", "u64", "i64", "f64", "f64", "f64", "f64",
         "c128", "c128"},
        {"i32", "i32", "i32", "i32", "i32", "i64", "i32", "-", "i64", "f64", "f64", "f64", "f64",
         "c128", "c128"},
        {"u64", "u64", "-", "u64", "-", "u64", "-", "u64", "-", "-", "-", "-", "-", "-", "-"},
        {"i64", "i64", "i64", "i64", "i64", "i64", "i64", "-", "i64", "-", "-", "-", "-", "-", "-"},
        {"f16", "f16", "f16", "f32", "f32", "f64", "f64", "-", "-", "f16", "f32", "f32", "f64",
         "c64", "c128"},
        {"bf16", "bf16", "bf16", "f32", "f32", "f64", "f64", "-", "-", "f32", "bf16", "f32", "f64",
         "c64", "c128"},
        {"f32", "f32", "f32", "f32", "f32", "f64", "f64", "-", "-", "f32", "f32", "f32", "f64",
         "c64", "c128"},
        {"f64", "f64", "f64", "f64", "f64", "f64", "f64", "-", "-", "f64", "f64", "f64", "f64",
         "c128", "c128"},
        {"c64", "c64", "c64", "c64", "c64", "c128", "c128", "-", "-", "c64", "c64", "c64", "c128",
         "c64", "c128"},
        {"c128", "c128", "c128", "c128", "c128", "c128", "c128", "-", "-", "c128", "c128", "c128",
         "c128", "c128", "c128"},
    };
    for (int i = 1; i <= COUNT; i++)
        for (int j = 1; j <= COUNT; j++) {
            jask_dtype a, b, out = JASK_DTYPE_NONE;
            jask_error err;
            bool missing = table[i][j][0] == '-';
            jask_dtype_parse(table[i][0], &a, NULL);
            jask_dtype_parse(table[0][j], &b, NULL);
            cr_assert_eq(jask_dtype_promote(a, b, &out, &err),
                         missing ? JASK_ERR_UNSUPPORTED : JASK_OK, "%s + %s", table[i][0],
                         table[0][j]);
            if (missing) {
                char row[32];
                snprintf(row, sizeof row, "no row %s + %s", table[i][0], table[0][j]);
                cr_assert_not_null(strstr(err.msg, row), "%s", err.msg);
                continue;
            }
            cr_assert_str_eq(jask_dtype_name(out), table[i][j], "%s + %s", table[i][0],
                             table[0][j]);
            cr_assert(jk_dtype_holds(out, a) && jk_dtype_holds(out, b));
        }
    cr_assert_eq(jask_dtype_promote(JASK_DTYPE_NONE, JASK_F32, NULL, NULL), JASK_ERR_ARG);
}

Test(dtype, complex_numbers_are_swapped_half_by_half)
{
    unsigned char real[8] = {1, 2, 3, 4, 5, 6, 7, 8}, complex[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const unsigned char f64[8] = {8, 7, 6, 5, 4, 3, 2, 1}, c64[8] = {4, 3, 2, 1, 8, 7, 6, 5};
    jk_dtype_swap(real, 1, JASK_F64);
    jk_dtype_swap(complex, 1, JASK_C64);
    cr_assert_arr_eq(real, f64, 8);
    cr_assert_arr_eq(complex, c64, 8);
}
