/* Raw files by specification, FILE@DTYPE:D0xD1x...[+OFFSET], and FILE@bf16. */
#include "runtime/array.h"

#include "runtime/dtype.h"

#include <stdio.h>
#include <string.h>

#define FORM "FILE@DTYPE:D0xD1x...[+OFFSET]"
#define OFFSET_MAX (UINT64_C(1) << 62)

/* The last '@' with a type and ':' behind it; so a file's name may hold '@' itself. *shape is what
 * follows the ':'. NULL when there is none. */
static const char *find_type(const char *spec, jask_dtype *dtype, char *mark, const char **shape)
{
    for (const char *at = spec + strlen(spec); at-- > spec;) {
        const char *colon = *at == '@' ? strchr(at, ':') : NULL;
        if (colon && jk_dtype_read(at + 1, (size_t)(colon - at - 1), dtype, mark)) {
            *shape = colon + 1;
            return at;
        }
    }
    return NULL;
}

static jask_status read_extent(const char *spec, const char **text, int64_t *out, jask_error *err)
{
    const char *p = *text;
    int64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *p - '0', &value))
            return jk_fail(err, JASK_ERR_ARG, "'%s': an extent does not fit 63 bits: %s", spec,
                           *text);
    if (p == *text)
        return jk_fail(err, JASK_ERR_ARG, "'%s': expected an extent at \"%s\"; a raw file is " FORM,
                       spec, p);
    *text = p;
    *out = value;
    return JASK_OK;
}

static jask_status read_offset(const char *spec, const char *text, uint64_t *out, jask_error *err)
{
    jask_status st;
    if (strcmp(text, "0") == 0) { /* a size is never 0, an offset may be */
        *out = 0;
        return JASK_OK;
    }
    st = jask_parse_size(text, out, err);
    if (st)
        return jk_fail_in(err, st, "offset in '%s'", spec);
    if (*out > OFFSET_MAX)
        return jk_fail(err, JASK_ERR_ARG, "'%s': an offset beyond 2^62", spec);
    return JASK_OK;
}

/* D0xD1x...[+OFFSET], the rest of `spec`. */
static jask_status read_shape(const char *spec, const char *text, jk_layout *layout,
                              jask_error *err)
{
    int64_t shape[JASK_MAX_DIMS];
    int ndim = 0;
    jask_status st;
    for (;; text++) {
        if (ndim == JASK_MAX_DIMS)
            return jk_fail(err, JASK_ERR_ARG, "'%s' has more than %d dimensions", spec,
                           JASK_MAX_DIMS);
        st = read_extent(spec, &text, &shape[ndim++], err);
        if (st)
            return st;
        if (*text != 'x' && *text != 'X')
            break;
    }
    if (*text != '\0' && *text != '+')
        return jk_fail(err, JASK_ERR_ARG,
                       "'%s': expected 'x', '+' or the end at \"%s\"; a raw file is " FORM, spec,
                       text);
    st = *text == '+' ? read_offset(spec, text + 1, &layout->data_offset, err) : JASK_OK;
    if (st)
        return st;
    st = jk_layout_dense(layout, ndim, shape, false, err);
    return st ? jk_fail_in(err, st, "'%s'", spec) : JASK_OK;
}

/* The '@' of FILE@bf16, the one type that an .npy file has no word for. NULL when there is none. */
static const char *find_said(const char *spec)
{
    const char *at = strrchr(spec, '@');
    jask_dtype dtype;
    char mark;
    if (!at || at == spec || !jk_dtype_read(at + 1, strlen(at + 1), &dtype, &mark))
        return NULL;
    return dtype == JASK_BF16 && mark == '\0' ? at : NULL;
}

jask_status jk_raw_parse(const char *spec, bool *is_raw, jask_dtype *said, char *path,
                         size_t path_size, jk_layout *out, jask_error *err)
{
    jk_layout layout = {.format = "raw"};
    const char *shape;
    char mark;
    const char *raw = find_type(spec, &layout.dtype, &mark, &shape);
    const char *at = raw ? raw : find_said(spec);
    size_t path_len = at ? (size_t)(at - spec) : 0;
    jask_status st;
    if (!at) {
        *is_raw = false;
        *said = JASK_DTYPE_NONE;
        return JASK_OK;
    }
    if (path_len == 0)
        return jk_fail(err, JASK_ERR_ARG, "'%s' names no file; a raw file is " FORM, spec);
    if (path_len >= path_size)
        return jk_fail(err, JASK_ERR_ARG, "the path in '%s' has more than %zu bytes", spec,
                       path_size - 1);
    if (raw) {
        layout.big_endian = mark == '>' || (mark == '=' && JK_HOST_BIG_ENDIAN);
        st = read_shape(spec, shape, &layout, err);
        if (st)
            return st;
        *out = layout;
    }
    memcpy(path, spec, path_len);
    path[path_len] = '\0';
    *is_raw = raw != NULL;
    *said = raw ? JASK_DTYPE_NONE : JASK_BF16;
    return JASK_OK;
}
