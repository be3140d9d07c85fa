#include "runtime/add_block.h"

#include "kernels/host_axpby.h"
#include "kernels/host_elements.h"
#include "runtime/dtype.h"

#include <string.h>

/* What is spread, converted and added at once stays in the nearest cache. */
enum { CHUNK = 1024, ELEMENT_MOST = 16 };

/* The index space of a block, cut into chunks: single indices of the dimensions before `cut`, up to
 * `step` of that one, and all of those behind. */
typedef struct space {
    int ndim, cut; /* at least one dimension */
    int64_t len[JASK_MAX_DIMS], strides[JASK_MAX_DIMS];
    int64_t elems, outer, inner, step; /* all; products of extents before and behind the cut */
} space;

/* A term in memory. */
typedef struct term {
    const char *data;
    const int64_t *strides; /* elements */
    int64_t own_strides[JASK_MAX_DIMS];
    bool dense; /* as the space */
    jask_dtype dtype;
    double factor;
} term;

typedef struct buffer {
    _Alignas(64) char bytes[CHUNK * ELEMENT_MOST];
} buffer;

static space space_of(const jk_blocks *plan, const jk_block *block)
{
    space s = {.ndim = plan->problem.ndim, .len = {1}, .outer = 1, .inner = 1};
    int64_t pieces, stride = 1;
    if (s.ndim > 0)
        memcpy(s.len, block->box.len, (size_t)s.ndim * sizeof *s.len);
    else
        s.ndim = 1;
    for (int d = s.ndim - 1; d >= 0; d--) {
        s.strides[d] = stride;
        stride *= s.len[d];
    }
    s.elems = stride;
    s.cut = s.ndim - 1;
    while (s.cut > 0 && s.inner * s.len[s.cut] <= CHUNK)
        s.inner *= s.len[s.cut--];
    pieces = jk_ceil_div(s.len[s.cut], CHUNK / s.inner);
    s.step = jk_ceil_div(s.len[s.cut], pieces);
    for (int d = 0; d < s.cut; d++)
        s.outer *= s.len[d];
    return s;
}

bool jk_add_in_order(const jk_blocks_problem *p, const jk_blocks_operand *o)
{
    int64_t before = INT64_MAX;
    for (int d = 0; d < p->ndim; d++) {
        if (o->strides[d] > before)
            return false;
        if (o->strides[d] != 0)
            before = o->strides[d];
    }
    return true;
}

static bool same_strides(const space *s, const int64_t *strides)
{
    for (int d = 0; d < s->ndim; d++)
        if (s->len[d] > 1 && strides[d] != s->strides[d])
            return false;
    return true;
}

static void open_term(const jk_add_terms *terms, const jk_blocks *plan, const jk_block *block,
                      const space *s, int i, term *t)
{
    const jk_strided *input = &terms->input[i];
    t->data = block->input[i];
    t->dtype = input->dtype;
    t->factor = terms->factor[i];
    t->own_strides[0] = 0;
    jk_strided_memory(input, &block->box, t->own_strides);
    t->strides = t->own_strides;
    if (plan->problem.input[i].spread_bytes > 0) {
        jk_spread(s->ndim, s->len, jask_dtype_size(t->dtype), t->data, t->strides,
                  block->input_work[i]);
        t->data = block->input_work[i];
        t->strides = s->strides;
    }
    t->dense = same_strides(s, t->strides);
}

/* The elements of a chunk side by side, in type `work`. */
static const void *gather(const term *t, const space *s, const int64_t *at, const int64_t *len,
                          int64_t n, jask_dtype work, buffer *out)
{
    size_t size = jask_dtype_size(t->dtype), wide = jask_dtype_size(work);
    const char *from = t->data;
    /* At the end: from there it can grow into all of it. */
    char *spread = out->bytes + (size_t)n * (wide - size);
    for (int d = 0; d <= s->cut; d++)
        from += (size_t)(at[d] * t->strides[d]) * size;
    if (!t->dense) {
        jk_spread(s->ndim - s->cut, len + s->cut, size, from, t->strides + s->cut, spread);
        from = spread;
    }
    if (t->dtype == work)
        return from;
    jk_convert(n, t->dtype, from, work, out->bytes);
    return out->bytes;
}

/* Complex numbers are two real ones, because factors are real. */
static void add_reals(jask_dtype work, int64_t n, const double f[2], const void *const x[2],
                      void *z)
{
    if (jk_dtype_kind(work) == JK_COMPLEX)
        n *= 2;
    if (work == JASK_F32 || work == JASK_C64)
        jk_axpby_wide_f32(n, (float)f[0], x[0], (float)f[1], x[1], z);
    else
        jk_axpby_wide_f64(n, f[0], x[0], f[1], x[1], z);
}

/* A chunk of n elements; returns as jk_add_block. */
static int64_t add_chunk(const jk_add_terms *terms, int64_t n, const double f[2],
                         const void *const x[2], char *z)
{
    buffer sum;
    jk_kind kind = jk_dtype_kind(terms->work);
    if (kind == JK_SIGNED || kind == JK_UNSIGNED)
        return jk_axpby_integer(terms->work, n, (int64_t)f[0], x[0], (int64_t)f[1], x[1],
                                terms->overflow, z);
    if (terms->work == terms->dtype) {
        add_reals(terms->work, n, f, x, z);
        return n;
    }
    add_reals(terms->work, n, f, x, sum.bytes);
    jk_convert(n, terms->work, sum.bytes, terms->dtype, z);
    return n;
}

int64_t jk_add_block(const jk_add_terms *terms, const jk_blocks *plan, const jk_block *block)
{
    space s = space_of(plan, block);
    size_t size = jask_dtype_size(terms->dtype);
    int64_t at[JASK_MAX_DIMS] = {0}, len[JASK_MAX_DIMS], first = s.elems, done = 0;
    term list[JK_BLOCKS_INPUTS];
    int count = 0;
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        if (terms->factor[i] != 0)
            open_term(terms, plan, block, &s, i, &list[count++]);
    if (count == 0) {
        memset(block->output, 0, (size_t)s.elems * size);
        return s.elems;
    }
    memcpy(len, s.len, sizeof len);
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t d = s.cut - 1, rest = o; d >= 0; d--) {
            at[d] = rest % s.len[d];
            rest /= s.len[d];
        }
        for (at[s.cut] = 0; at[s.cut] < s.len[s.cut]; at[s.cut] += len[s.cut]) {
            buffer place[JK_BLOCKS_INPUTS];
            const void *x[JK_BLOCKS_INPUTS] = {NULL};
            double factor[JK_BLOCKS_INPUTS] = {0};
            int64_t n, bad;
            len[s.cut] = jk_min(s.step, s.len[s.cut] - at[s.cut]);
            n = s.inner * len[s.cut];
            for (int i = 0; i < count; i++) {
                x[i] = gather(&list[i], &s, at, len, n, terms->work, &place[i]);
                factor[i] = list[i].factor;
            }
            bad = add_chunk(terms, n, factor, x, (char *)block->output + (size_t)done * size);
            if (bad < n)
                first = jk_min(first, done + bad);
            done += n;
        }
    }
    return first;
}
