#include "runtime/dtype.h"

#include "kernels/host_kernels.h"

#include <string.h>

typedef struct type_row {
    const char *name;  /* jask's: kind and bits */
    const char *numpy; /* NumPy's long name */
    const char *descr; /* NumPy's short one: kind and bytes; NULL when there is none */
    size_t size;
    size_t part_size; /* of what a byte order applies to */
    jk_kind kind;
    int digits;    /* every whole number of so many bits is a value of the type */
    int exponents; /* bits of the exponent; 0 for integers */
} type_row;

static const type_row types[] = {
    [JASK_DTYPE_NONE] = {"none", NULL, NULL, 0, 0, JK_UNSIGNED, 0, 0},
    [JASK_F16] = {"f16", "float16", "f2", 2, 2, JK_REAL, 11, 5},
    [JASK_BF16] = {"bf16", "bfloat16", NULL, 2, 2, JK_REAL, 8, 8},
    [JASK_F32] = {"f32", "float32", "f4", 4, 4, JK_REAL, 24, 8},
    [JASK_F64] = {"f64", "float64", "f8", 8, 8, JK_REAL, 53, 11},
    [JASK_C64] = {"c64", "complex64", "c8", 8, 4, JK_COMPLEX, 24, 8},
    [JASK_C128] = {"c128", "complex128", "c16", 16, 8, JK_COMPLEX, 53, 11},
    [JASK_I8] = {"i8", "int8", "i1", 1, 1, JK_SIGNED, 7, 0},
    [JASK_I16] = {"i16", "int16", "i2", 2, 2, JK_SIGNED, 15, 0},
    [JASK_I32] = {"i32", "int32", "i4", 4, 4, JK_SIGNED, 31, 0},
    [JASK_I64] = {"i64", "int64", "i8", 8, 8, JK_SIGNED, 63, 0},
    [JASK_U8] = {"u8", "uint8", "u1", 1, 1, JK_UNSIGNED, 8, 0},
    [JASK_U16] = {"u16", "uint16", "u2", 2, 2, JK_UNSIGNED, 16, 0},
    [JASK_U32] = {"u32", "uint32", "u4", 4, 4, JK_UNSIGNED, 32, 0},
    [JASK_U64] = {"u64", "uint64", "u8", 8, 8, JK_UNSIGNED, 64, 0},
};

/* NumPy has no name for bfloat16: it stores it as two bytes that mean nothing. */
#define BF16_DESCR "V2"

#define TYPE_COUNT (sizeof types / sizeof *types)

static const type_row *row_of(jask_dtype dtype)
{
    size_t index = (size_t)dtype;
    return &types[index < TYPE_COUNT ? index : JASK_DTYPE_NONE];
}

size_t jask_dtype_size(jask_dtype dtype)
{
    return row_of(dtype)->size;
}

const char *jask_dtype_name(jask_dtype dtype)
{
    return row_of(dtype)->name;
}

const char *jk_dtype_descr(jask_dtype dtype)
{
    return dtype == JASK_BF16 ? BF16_DESCR : row_of(dtype)->descr;
}

jk_kind jk_dtype_kind(jask_dtype dtype)
{
    return row_of(dtype)->kind;
}

/* Whether every value of type x is one of type y. */
static bool fits_into(const type_row *x, const type_row *y)
{
    bool integer = x->kind == JK_SIGNED || x->kind == JK_UNSIGNED;
    if (y->digits < x->digits || y->exponents < x->exponents)
        return false;
    switch (y->kind) {
    case JK_UNSIGNED:
        return x->kind == JK_UNSIGNED;
    case JK_SIGNED:
        return integer;
    case JK_REAL:
        return integer || x->kind == JK_REAL;
    default:
        return true;
    }
}

jask_status jask_dtype_promote(jask_dtype a, jask_dtype b, jask_dtype *out, jask_error *err)
{
    /* Smallest first; of one size, whole numbers before others. */
    static const jask_dtype candidates[] = {JASK_U8,   JASK_I8,  JASK_U16, JASK_I16, JASK_F16,
                                            JASK_BF16, JASK_U32, JASK_I32, JASK_F32, JASK_U64,
                                            JASK_I64,  JASK_F64, JASK_C64, JASK_C128};
    const type_row *x = row_of(a), *y = row_of(b);
    if (!x->size || !y->size || !out)
        return jk_fail(err, JASK_ERR_ARG, "jask_dtype_promote needs two types and a place");
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        const type_row *both = row_of(candidates[i]);
        if (fits_into(x, both) && fits_into(y, both)) {
            *out = candidates[i];
            return JASK_OK;
        }
    }
    return jk_fail(err, JASK_ERR_UNSUPPORTED,
                   "the table of promotions has no row %s + %s: no type holds every value of both; "
                   "convert one of them first",
                   x->name, y->name);
}

bool jk_dtype_holds(jask_dtype dtype, jask_dtype value)
{
    return fits_into(row_of(value), row_of(dtype));
}

void jk_dtype_swap(void *data, uint64_t elements, jask_dtype dtype)
{
    const type_row *row = row_of(dtype);
    jk_swap_bytes(data, (int64_t)(elements * (row->size / row->part_size)), row->part_size);
}

static bool is_mark(char c)
{
    return c == '<' || c == '>' || c == '=' || c == '|';
}

/* In any case, by ASCII alone: tolower() follows the locale. */
static bool same_name(const char *text, size_t len, const char *name)
{
    if (!name || strlen(name) != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        if (c != name[i])
            return false;
    }
    return true;
}

static jask_dtype find(const char *text, size_t len, const char *(*spelling)(const type_row *))
{
    for (size_t i = JASK_DTYPE_NONE + 1; i < TYPE_COUNT; i++)
        if (same_name(text, len, spelling(&types[i])))
            return (jask_dtype)i;
    return JASK_DTYPE_NONE;
}

static const char *name_of(const type_row *row)
{
    return row->name;
}

static const char *numpy_of(const type_row *row)
{
    return row->numpy;
}

static const char *descr_of(const type_row *row)
{
    return row->descr;
}

bool jk_dtype_read(const char *text, size_t len, jask_dtype *dtype, char *mark)
{
    bool marked = len > 0 && is_mark(text[0]);
    const char *name = text + marked;
    size_t name_len = len - marked;
    jask_dtype found = find(name, name_len, marked ? descr_of : name_of);
    if (!found)
        found = find(name, name_len, numpy_of);
    if (!found)
        found = find(name, name_len, marked ? name_of : descr_of);
    /* To NumPy <f16 is a float of 16 bytes. */
    if (!found || (marked && same_name(name, name_len, "f16")))
        return false;
    if (marked && text[0] == '|' && types[found].size != 1)
        return false;
    *dtype = found;
    *mark = marked ? text[0] : '\0';
    return true;
}

bool jk_dtype_read_descr(const char *text, size_t len, bool bare_is_bf16, jask_dtype *dtype,
                         bool *big_endian)
{
    bool marked = len > 0 && is_mark(text[0]);
    char mark = marked ? text[0] : '=';
    const char *name = text + marked;
    size_t name_len = len - marked;
    for (size_t i = JASK_DTYPE_NONE + 1; i < TYPE_COUNT; i++) {
        const type_row *row = &types[i];
        const char *descr = row->descr ? row->descr : bare_is_bf16 ? BF16_DESCR : NULL;
        if (!descr || strlen(descr) != name_len || memcmp(name, descr, name_len))
            continue;
        if (mark == '|' && row->size != 1 && row->descr)
            return false;
        *dtype = (jask_dtype)i;
        *big_endian = mark == '>' || (mark != '<' && JK_HOST_BIG_ENDIAN);
        return true;
    }
    return false;
}

jask_status jask_dtype_parse(const char *text, jask_dtype *out, jask_error *err)
{
    jask_dtype dtype;
    char mark;
    if (!text || !out)
        return jk_fail(err, JASK_ERR_ARG, "jask_dtype_parse needs a text and a place for the type");
    if (!jk_dtype_read(text, strlen(text), &dtype, &mark))
        return jk_fail(err, JASK_ERR_ARG,
                       "'%s' is no element type: use f16, bf16, f32, f64, c64, c128, i8..i64, "
                       "u8..u64, or NumPy's names (float32, <f4)",
                       text);
    if (mark == '>')
        return jk_fail(err, JASK_ERR_ARG,
                       "'%s': a type has no byte order; only a raw specification "
                       "(FILE@>f4:D0xD1) takes a big-endian mark",
                       text);
    *out = dtype;
    return JASK_OK;
}
