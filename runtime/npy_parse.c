/* Reads the dictionary text of an .npy header. It comes from strangers: every byte is checked,
 * nothing is allocated, and what is refused is quoted. */
#include "runtime/npy.h"

#include "runtime/dtype.h"

#include <stdio.h>
#include <string.h>

#define HEADER_TEXT_MAX (UINT64_C(16) << 20)

static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

typedef struct span {
    const char *text;
    size_t len;
} span;

typedef struct scanner {
    const char *start, *at, *end;
    const char *name; /* of the file */
    jask_error *err;
} scanner;

typedef struct header {
    bool has_descr, has_order, has_shape;
    span descr;
    span shape_text;
    bool fortran_order;
    int ndim;
    int64_t shape[JASK_MAX_DIMS];
} header;

/* Room for a quoted piece of a header. */
typedef struct quoted {
    char text[160];
} quoted;

/* Printable ASCII as it is, other bytes as \xNN, "..." where it had to be cut. */
static const char *quote(span what, quoted *out)
{
    size_t used = 0;
    for (size_t i = 0; i < what.len; i++) {
        unsigned char c = (unsigned char)what.text[i];
        if (used + sizeof "\\xNN..." > sizeof out->text) {
            used += (size_t)snprintf(out->text + used, sizeof out->text - used, "...");
            break;
        }
        used += (size_t)snprintf(out->text + used, sizeof out->text - used,
                                 c >= ' ' && c <= '~' ? "%c" : "\\x%02x", c);
    }
    out->text[used] = '\0';
    return out->text;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_blanks(scanner *s)
{
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
}

static bool next_is(scanner *s, char c)
{
    skip_blanks(s);
    return s->at < s->end && *s->at == c;
}

static bool take(scanner *s, char c)
{
    bool found = next_is(s, c);
    s->at += found;
    return found;
}

static jask_status fail_syntax(scanner *s, const char *wanted)
{
    quoted q;
    span rest = {s->at, (size_t)(s->end - s->at)};
    return jk_fail(s->err, JASK_ERR_FORMAT,
                   "'%s': the header is damaged: expected %s at byte %zu of its text, found \"%s\"",
                   s->name, wanted, (size_t)(s->at - s->start), quote(rest, &q));
}

/* A string in quotes of either kind; false when there is none or it does not end. */
static bool take_string(scanner *s, span *out)
{
    const char *p;
    skip_blanks(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"'))
        return false;
    for (p = s->at + 1; p < s->end && *p != *s->at; p++)
        if (*p == '\\' && p + 1 < s->end)
            p++;
    if (p >= s->end)
        return false;
    *out = (span){s->at + 1, (size_t)(p - s->at - 1)};
    s->at = p + 1;
    return true;
}

/* The value that begins here, whatever it is: up to the ',' or '}' that ends it outside brackets
 * and strings. For quoting. */
static span whole_value(const scanner *s)
{
    scanner look = *s;
    span string;
    int depth = 0;
    while (look.at < look.end) {
        char c = *look.at;
        if (c == '\'' || c == '"') {
            if (take_string(&look, &string))
                continue;
            look.at = look.end;
            break;
        }
        if (depth == 0 && (c == ',' || c == '}'))
            break;
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        look.at++;
        if (depth < 0)
            break;
    }
    while (look.at > s->at && is_blank(look.at[-1]))
        look.at--;
    return (span){s->at, (size_t)(look.at - s->at)};
}

static jask_status read_descr(scanner *s, header *h)
{
    quoted q;
    skip_blanks(s);
    if (next_is(s, '[') || next_is(s, '(') || next_is(s, '{'))
        return jk_fail(s->err, JASK_ERR_UNSUPPORTED,
                       "'%s': structured dtype not supported: %s; save the columns as arrays of "
                       "their own",
                       s->name, quote(whole_value(s), &q));
    if (!take_string(s, &h->descr))
        return jk_fail(s->err, JASK_ERR_FORMAT, "'%s': 'descr' is not a text: %s", s->name,
                       quote(whole_value(s), &q));
    return JASK_OK;
}

static jask_status read_order(scanner *s, header *h)
{
    quoted q;
    span word;
    skip_blanks(s);
    word = (span){s->at, 0};
    while (s->at < s->end && is_word(*s->at))
        s->at++;
    word.len = (size_t)(s->at - word.text);
    if (word.len == 4 && memcmp(word.text, "True", 4) == 0) {
        h->fortran_order = true;
    } else if (word.len == 5 && memcmp(word.text, "False", 5) == 0) {
        h->fortran_order = false;
    } else {
        s->at = word.text;
        return jk_fail(s->err, JASK_ERR_FORMAT,
                       "'%s': 'fortran_order' is neither True nor False: %s", s->name,
                       quote(whole_value(s), &q));
    }
    return JASK_OK;
}

/* A plain integer, with the L that Python 2 printed after a long one. */
static bool take_extent(scanner *s, int64_t *out)
{
    int64_t value = 0;
    skip_blanks(s);
    if (s->at == s->end || !is_digit(*s->at))
        return false;
    for (; s->at < s->end && is_digit(*s->at); s->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *s->at - '0', &value))
            return false;
    if (s->at < s->end && (*s->at == 'L' || *s->at == 'l'))
        s->at++;
    *out = value;
    return s->at == s->end || !is_word(*s->at);
}

static jask_status fail_shape(const scanner *s, const header *h, jask_status code, const char *why)
{
    quoted q;
    return jk_fail(s->err, code, "'%s': shape %s: %s", s->name, why, quote(h->shape_text, &q));
}

static jask_status read_shape(scanner *s, header *h)
{
    bool comma = false;
    skip_blanks(s);
    h->shape_text = whole_value(s);
    if (!take(s, '('))
        return fail_shape(s, h, JASK_ERR_FORMAT, "is not a tuple");
    while (!take(s, ')')) {
        if (h->ndim > 0 && !comma)
            return fail_shape(s, h, JASK_ERR_FORMAT, "is not a tuple of plain integers");
        if (next_is(s, '-'))
            return fail_shape(s, h, JASK_ERR_FORMAT, "has a negative extent");
        if (h->ndim == JASK_MAX_DIMS)
            return fail_shape(s, h, JASK_ERR_UNSUPPORTED, "has more than 32 dimensions");
        if (!take_extent(s, &h->shape[h->ndim]))
            return fail_shape(s, h, JASK_ERR_FORMAT, "is not a tuple of plain integers below 2^63");
        h->ndim++;
        comma = take(s, ',');
    }
    if (h->ndim == 1 && !comma) /* Python's (3) is a number */
        return fail_shape(s, h, JASK_ERR_FORMAT, "is not a tuple");
    return JASK_OK;
}

static bool is_key(span key, const char *name)
{
    return key.len == strlen(name) && memcmp(key.text, name, key.len) == 0;
}

static jask_status read_entry(scanner *s, header *h)
{
    quoted q;
    span key;
    bool *seen;
    jask_status (*read)(scanner *, header *);
    if (!take_string(s, &key))
        return fail_syntax(s, "a key in quotes");
    if (is_key(key, "descr")) {
        seen = &h->has_descr;
        read = read_descr;
    } else if (is_key(key, "fortran_order")) {
        seen = &h->has_order;
        read = read_order;
    } else if (is_key(key, "shape")) {
        seen = &h->has_shape;
        read = read_shape;
    } else {
        return jk_fail(s->err, JASK_ERR_FORMAT,
                       "'%s': the header has an unknown key '%s'; .npy has descr, fortran_order "
                       "and shape",
                       s->name, quote(key, &q));
    }
    if (*seen)
        return jk_fail(s->err, JASK_ERR_FORMAT, "'%s': the header has the key '%s' twice", s->name,
                       quote(key, &q));
    *seen = true;
    if (!take(s, ':'))
        return fail_syntax(s, "':'");
    return read(s, h);
}

static jask_status read_dictionary(scanner *s, header *h)
{
    if (!take(s, '{'))
        return fail_syntax(s, "'{'");
    while (!take(s, '}')) {
        jask_status st = read_entry(s, h);
        if (st)
            return st;
        if (!take(s, ',') && !next_is(s, '}'))
            return fail_syntax(s, "',' or '}'");
    }
    skip_blanks(s);
    if (s->at != s->end)
        return fail_syntax(s, "nothing after '}'");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return jk_fail(s->err, JASK_ERR_FORMAT, "'%s': the header lacks the key '%s'", s->name,
                       !h->has_descr   ? "descr"
                       : !h->has_order ? "fortran_order"
                                       : "shape");
    return JASK_OK;
}

static jask_status fail_descr(const scanner *s, span descr)
{
    quoted q;
    const char *text = quote(descr, &q);
    size_t mark = descr.len > 0 && memchr("<>=|", descr.text[0], 4) ? 1 : 0;
    char kind = '\0';
    if (mark < descr.len)
        kind = descr.text[mark];
    switch (kind) {
    case 'O':
        return jk_fail(s->err, JASK_ERR_UNSUPPORTED,
                       "'%s': dtype '%s' holds Python objects (pickle), which are never loaded",
                       s->name, text);
    case 'V':
        return jk_fail(s->err, JASK_ERR_UNSUPPORTED,
                       "'%s': dtype '%s' is bytes without a type; if these are bfloat16 numbers, "
                       "say so: FILE@bf16",
                       s->name, text);
    case 'U':
    case 'S':
    case 'a':
        return jk_fail(s->err, JASK_ERR_UNSUPPORTED, "'%s': dtype '%s' is text, not numbers",
                       s->name, text);
    case 'M':
    case 'm':
        return jk_fail(s->err, JASK_ERR_UNSUPPORTED,
                       "'%s': dtype '%s' is dates or times, not numbers", s->name, text);
    default:
        return jk_fail(s->err, JASK_ERR_UNSUPPORTED,
                       "'%s': dtype '%s' not supported; jask reads f2 f4 f8 c8 c16 i1..i8 u1..u8, "
                       "with '<' or '>'",
                       s->name, text);
    }
}

/* From the dictionary to the layout; the data must be all there. More bytes than that are allowed,
 * as NumPy allows them: arrays saved one after another share a file. */
static jask_status settle(const scanner *s, const header *h, jask_dtype said, size_t header_bytes,
                          uint64_t file_bytes, jk_layout *layout)
{
    uint64_t need;
    if (!jk_dtype_read_descr(h->descr.text, h->descr.len, said == JASK_BF16, &layout->dtype,
                             &layout->big_endian))
        return fail_descr(s, h->descr);
    if (said != JASK_DTYPE_NONE && said != layout->dtype)
        return jk_fail(s->err, JASK_ERR_ARG, "'%s' holds %s by its header, not %s", s->name,
                       jask_dtype_name(layout->dtype), jask_dtype_name(said));
    if (jk_layout_dense(layout, h->ndim, h->shape, h->fortran_order, NULL))
        return fail_shape(s, h, JASK_ERR_FORMAT, "is larger than any file");
    layout->data_offset = header_bytes;
    need = header_bytes + layout->data_bytes;
    if (file_bytes < need)
        return jk_fail(
            s->err, JASK_ERR_FORMAT,
            "'%s' is cut short: need %llu bytes, have %llu (%zu of header, %llu of data)", s->name,
            (unsigned long long)need, (unsigned long long)file_bytes, header_bytes,
            (unsigned long long)layout->data_bytes);
    return JASK_OK;
}

static jask_status fail_short(const char *name, uint64_t need, uint64_t have, jask_error *err)
{
    return jk_fail(err, JASK_ERR_FORMAT,
                   "'%s' is cut short: need %llu bytes for its header alone, have %llu", name,
                   (unsigned long long)need, (unsigned long long)have);
}

static jask_status check_magic(const unsigned char *bytes, size_t available, uint64_t file_bytes,
                               const char *name, jask_error *err)
{
    quoted q;
    size_t n = available < sizeof magic ? available : sizeof magic;
    if (file_bytes == 0)
        return jk_fail(err, JASK_ERR_FORMAT, "'%s' is empty: not an .npy file", name);
    if (n >= 2 && memcmp(bytes, "PK", 2) == 0)
        return jk_fail(err, JASK_ERR_FORMAT,
                       "'%s' is a zip archive (.npz?): unzip it first, then name the .npy file",
                       name);
    if (memcmp(bytes, magic, n) != 0)
        return jk_fail(err, JASK_ERR_FORMAT,
                       "'%s' is not an .npy file: it begins with \"%s\"; a raw file is named "
                       "FILE@DTYPE:D0xD1",
                       name, quote((span){(const char *)bytes, n}, &q));
    return JASK_OK;
}

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Where the text begins and the data begins, as far as the available bytes tell: `known` false asks
 * for header_bytes of them. */
typedef struct extent {
    size_t text_at;
    size_t header_bytes;
    bool known;
} extent;

static jask_status measure(const unsigned char *bytes, size_t available, uint64_t file_bytes,
                           const char *name, extent *out, jask_error *err)
{
    uint64_t text_bytes;
    size_t preamble = available > 6 && bytes[6] >= 2 ? 12 : 10;
    *out = (extent){preamble, preamble, false};
    if (file_bytes < preamble)
        return fail_short(name, preamble, file_bytes, err);
    if (available >= 8 && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0))
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "'%s': .npy version %d.%d not supported; jask reads 1.0, 2.0 and 3.0", name,
                       bytes[6], bytes[7]);
    if (available < preamble)
        return JASK_OK;
    text_bytes = little_endian(bytes + 8, (int)preamble - 8);
    if (text_bytes > file_bytes - preamble)
        return fail_short(name, preamble + text_bytes, file_bytes, err);
    if (text_bytes > HEADER_TEXT_MAX)
        return jk_fail(err, JASK_ERR_FORMAT,
                       "'%s': a header of %llu bytes is more than jask reads (16 MiB)", name,
                       (unsigned long long)text_bytes);
    out->header_bytes = preamble + (size_t)text_bytes;
    out->known = true;
    return JASK_OK;
}

jask_status jk_npy_parse(const unsigned char *bytes, size_t available, uint64_t file_bytes,
                         const char *name, jask_dtype said, size_t *need, bool *done,
                         jk_layout *out, jask_error *err)
{
    header h = {0};
    jk_layout layout = {0};
    scanner s = {.name = name, .err = err};
    extent ext = {0};
    jask_status st = check_magic(bytes, available, file_bytes, name, err);
    if (!st)
        st = measure(bytes, available, file_bytes, name, &ext, err);
    if (st)
        return st;
    if (!ext.known || ext.header_bytes > available) {
        *need = ext.header_bytes;
        *done = false;
        return JASK_OK;
    }
    s.start = s.at = (const char *)bytes + ext.text_at;
    s.end = (const char *)bytes + ext.header_bytes;
    st = read_dictionary(&s, &h);
    if (!st)
        st = settle(&s, &h, said, ext.header_bytes, file_bytes, &layout);
    if (st)
        return st;
    snprintf(layout.format, sizeof layout.format, "npy %d.%d", bytes[6], bytes[7]);
    *need = ext.header_bytes;
    *done = true;
    *out = layout;
    return JASK_OK;
}
