#include "contract.h"

#include "runtime/blas.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

void must(jask_status st, const jask_error *err)
{
    cr_assert_eq(st, JASK_OK, "%s", err->msg);
}

void *contract_upload(contract_bench *b, const void *data, size_t bytes)
{
    void *out;
    jask_error err;
    jk_copy copy = {
        .src = data, .dst_pitch = bytes, .src_pitch = bytes, .row_bytes = bytes, .rows = 1};
    must(b->ref.table->mem_alloc(b->ref.dev, bytes, &out, &err), &err);
    copy.dst = out;
    must(b->ref.table->upload(b->queue, &copy, &err), &err);
    return out;
}

void contract_fetch(contract_bench *b, void *dst, const void *src, size_t bytes)
{
    jask_error err;
    jk_copy copy = {.dst = dst,
                    .src = src,
                    .dst_pitch = bytes,
                    .src_pitch = bytes,
                    .row_bytes = bytes,
                    .rows = 1};
    must(b->ref.table->download(b->queue, &copy, &err), &err);
    must(b->ref.table->queue_drain(b->queue, &err), &err);
}

static void *pinned(contract_bench *b, size_t bytes)
{
    void *out;
    jask_error err;
    must(b->ref.table->pin_alloc(b->ref.dev, bytes, &out, &err), &err);
    memset(out, 0xff, bytes);
    return out;
}

/* A window of `cols` bytes a row goes to the device with one pitch and comes back with another. */
static void check_copies(contract_bench *b)
{
    static const struct {
        size_t rows, cols, host_pitch, device_pitch, back_pitch;
    } cases[] = {{1, 1, 1, 1, 1},     {1, 1000, 2000, 1000, 1000}, {7, 33, 33, 33, 33},
                 {7, 33, 40, 33, 33}, {7, 33, 33, 64, 35},         {100, 3, 5, 7, 11},
                 {0, 10, 10, 10, 10}, {10, 0, 10, 10, 10}};
    const jk_device_table *t = b->ref.table;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t rows = cases[i].rows, cols = cases[i].cols, bytes = 4096;
        unsigned char *from = pinned(b, bytes), *to = pinned(b, bytes);
        jask_error err;
        jk_copy copy = {.src = from,
                        .src_pitch = cases[i].host_pitch,
                        .dst_pitch = cases[i].device_pitch,
                        .row_bytes = cols,
                        .rows = rows};
        void *mem;
        for (size_t k = 0; k < bytes; k++)
            from[k] = (unsigned char)(k * 7 + k / 256);
        must(t->mem_alloc(b->ref.dev, bytes, &mem, &err), &err);
        copy.dst = mem;
        must(t->upload(b->queue, &copy, &err), &err);
        copy = (jk_copy){.dst = to,
                         .src = mem,
                         .dst_pitch = cases[i].back_pitch,
                         .src_pitch = cases[i].device_pitch,
                         .row_bytes = cols,
                         .rows = rows};
        must(t->download(b->queue, &copy, &err), &err);
        must(t->queue_drain(b->queue, &err), &err);
        for (size_t r = 0; r < rows; r++)
            cr_assert_arr_eq(to + r * cases[i].back_pitch, from + r * cases[i].host_pitch, cols,
                             "case %zu row %zu", i, r);
        if (rows * cases[i].back_pitch < bytes)
            cr_assert_eq(to[rows ? (rows - 1) * cases[i].back_pitch + cols : 0], 0xff);
        t->mem_free(b->ref.dev, mem, bytes);
        t->pin_free(b->ref.dev, from, bytes);
        t->pin_free(b->ref.dev, to, bytes);
    }
}

/* Rows farther apart than a card's two-dimensional copies reach. */
static void check_far_rows(contract_bench *b)
{
    enum { ROWS = 3, PITCH = (1 << 20) + 512 };
    const jk_device_table *t = b->ref.table;
    unsigned char *from = pinned(b, 64), *to = pinned(b, 64);
    void *mem;
    jask_error err;
    jk_copy copy = {.src = from, .src_pitch = 5, .dst_pitch = PITCH, .row_bytes = 5, .rows = ROWS};
    for (unsigned i = 0; i < 64; i++)
        from[i] = (unsigned char)i;
    must(t->mem_alloc(b->ref.dev, ROWS * (size_t)PITCH, &mem, &err), &err);
    copy.dst = mem;
    must(t->upload(b->queue, &copy, &err), &err);
    copy = (jk_copy){
        .dst = to, .src = mem, .dst_pitch = 5, .src_pitch = PITCH, .row_bytes = 5, .rows = ROWS};
    must(t->download(b->queue, &copy, &err), &err);
    must(t->queue_drain(b->queue, &err), &err);
    cr_assert_arr_eq(to, from, 5 * ROWS);
    cr_assert_eq(to[5 * ROWS], 0xff);
    t->mem_free(b->ref.dev, mem, ROWS * (size_t)PITCH);
    t->pin_free(b->ref.dev, from, 64);
    t->pin_free(b->ref.dev, to, 64);
}

/* The second queue overwrites what the first uploads: only the event makes it come later. An event
 * that was never recorded holds nobody up. */
static void check_events(contract_bench *b)
{
    const jk_device_table *t = b->ref.table;
    enum { BYTES = 1 << 16 };
    unsigned char *first = pinned(b, BYTES), *second = pinned(b, BYTES), *back = pinned(b, BYTES);
    jk_queue *other;
    jk_event *done, *fresh;
    void *mem;
    jask_error err;
    jk_copy copy = {
        .src = first, .dst_pitch = BYTES, .src_pitch = BYTES, .row_bytes = BYTES, .rows = 1};
    memset(first, 1, BYTES);
    memset(second, 2, BYTES);
    must(t->queue_open(b->ref.dev, &other, &err), &err);
    must(t->event_open(b->ref.dev, &done, &err), &err);
    must(t->event_open(b->ref.dev, &fresh, &err), &err);
    must(t->mem_alloc(b->ref.dev, BYTES, &mem, &err), &err);
    must(t->queue_await(b->queue, fresh, &err), &err);
    must(t->event_wait(fresh, &err), &err);
    copy.dst = mem;
    must(t->upload(b->queue, &copy, &err), &err);
    must(t->event_record(done, b->queue, &err), &err);
    must(t->queue_await(other, done, &err), &err);
    copy.src = second;
    must(t->upload(other, &copy, &err), &err);
    must(t->event_record(done, other, &err), &err);
    must(t->queue_await(b->queue, done, &err), &err);
    copy = (jk_copy){.dst = back,
                     .src = mem,
                     .dst_pitch = BYTES,
                     .src_pitch = BYTES,
                     .row_bytes = BYTES,
                     .rows = 1};
    must(t->download(b->queue, &copy, &err), &err);
    must(t->event_record(done, b->queue, &err), &err);
    must(t->event_wait(done, &err), &err);
    for (int i = 0; i < BYTES; i++)
        cr_assert_eq(back[i], 2);
    t->queue_close(other);
    t->event_close(done);
    t->event_close(fresh);
    t->mem_free(b->ref.dev, mem, BYTES);
    t->pin_free(b->ref.dev, first, BYTES);
    t->pin_free(b->ref.dev, second, BYTES);
    t->pin_free(b->ref.dev, back, BYTES);
}

/* A small integer; complex ones have another as their imaginary part. */
static void put(jask_dtype dtype, void *at, int64_t i, double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    switch (dtype) {
    case JASK_F64:
        ((double *)at)[i] = value;
        break;
    case JASK_C64:
        ((float *)at)[2 * i] = f;
        ((float *)at)[2 * i + 1] = 1 - f;
        break;
    case JASK_C128:
        ((double *)at)[2 * i] = value;
        ((double *)at)[2 * i + 1] = 1 - value;
        break;
    case JASK_BF16:
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
        break;
    case JASK_F16: /* its exponent is 5 bits wide, and never least but for 0 */
        ((uint16_t *)at)[i] =
            (uint16_t)(value == 0 ? 0
                                  : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112 << 10)));
        break;
    default:
        ((float *)at)[i] = f;
    }
}

static void *small_integers(jask_dtype dtype, int64_t count, int seed)
{
    void *out = malloc((size_t)count * jask_dtype_size(dtype));
    cr_assert_not_null(out);
    for (int64_t i = 0; i < count; i++)
        put(dtype, out, i, (double)((i * 37 + seed * 11 + i / 7) % 9 - 4));
    return out;
}

/* Exactly; of a zero either sign will do, which comes by more than one way: 0 * -1 is -0, and some BLAS (OpenBLAS
 * with AVX-512) multiplies by an alpha of 0. */
static bool same_numbers(jask_dtype dtype, const void *x, const void *y, size_t bytes)
{
    bool wide = dtype == JASK_F64 || dtype == JASK_C128;
    for (size_t i = 0; i < bytes / (wide ? sizeof(double) : sizeof(float)); i++)
        if (wide ? ((const double *)x)[i] != ((const double *)y)[i]
                 : ((const float *)x)[i] != ((const float *)y)[i])
            return false;
    return true;
}

/* Against the plain loops, exactly: sums of small integers are exact in any order. These have no
 * 16-bit types, so they get the same numbers as f32. */
static void check_one_gemm(contract_bench *b, jk_gemm g)
{
    const jk_device_table *t = b->ref.table;
    jask_dtype input = g.input_dtype ? g.input_dtype : g.dtype;
    const jask_dtype types[3] = {input, input, g.dtype};
    int64_t a_rows = g.trans_a ? g.k : g.m, b_rows = g.trans_b ? g.n : g.k;
    const int64_t count[3] = {a_rows * g.lda, b_rows * g.ldb, g.m * g.ldc};
    size_t bytes[3], room = jk_device_workspace(&b->ref.info, 1 << 20);
    void *host[3], *mem[3], *workspace = NULL;
    jk_gemm plain = g;
    jask_error err;
    if (room > 0)
        must(t->mem_alloc(b->ref.dev, room, &workspace, &err), &err);
    for (int i = 0; i < 3; i++) {
        void *data = small_integers(types[i], count[i], i);
        bytes[i] = (size_t)count[i] * jask_dtype_size(types[i]);
        host[i] = small_integers(g.dtype, count[i], i);
        mem[i] = contract_upload(b, data, bytes[i]);
        free(data);
    }
    g.a = mem[0], g.b = mem[1], g.c = mem[2];
    g.workspace = workspace, g.workspace_bytes = room;
    must(t->gemm(b->queue, &g, &err), &err);
    void *got = malloc(bytes[2]);
    contract_fetch(b, got, mem[2], bytes[2]);
    plain.input_dtype = JASK_DTYPE_NONE;
    plain.a = host[0], plain.b = host[1], plain.c = host[2];
    jk_plain_gemm(&plain);
    cr_assert(same_numbers(g.dtype, got, host[2], bytes[2]), "%d%d %s of %s", g.trans_a, g.trans_b,
              jask_dtype_name(g.dtype), jask_dtype_name(input));
    for (int i = 0; i < 3; i++) {
        t->mem_free(b->ref.dev, mem[i], bytes[i]);
        free(host[i]);
    }
    t->mem_free(b->ref.dev, workspace, room);
    free(got);
}

/* Types of sums and of factors, each in every direction and with several sizes and leading dimensions,
 * odd ones too. */
static void check_gemm(contract_bench *b)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {17, 1, 33}, {1, 40, 2}, {64, 31, 65}};
    const jk_device_info *info = &b->ref.info;
    const struct {
        jask_dtype dtype, input;
        bool has, tf32;
    } types[] = {
        {JASK_F32, JASK_DTYPE_NONE, true, false},     {JASK_F64, JASK_DTYPE_NONE, true, false},
        {JASK_C64, JASK_DTYPE_NONE, true, false},     {JASK_C128, JASK_DTYPE_NONE, true, false},
        {JASK_F32, JASK_F16, info->f16, false},       {JASK_F32, JASK_BF16, info->bf16, false},
        {JASK_F32, JASK_DTYPE_NONE, info->tf32, true}};
    for (size_t y = 0; y < sizeof types / sizeof *types; y++)
        for (int v = 0; v < 4 * 5 && types[y].has; v++) {
            const int64_t *s = sizes[v / 4];
            jk_gemm g = {.dtype = types[y].dtype,
                         .input_dtype = types[y].input,
                         .tf32 = types[y].tf32,
                         .trans_a = v & 1,
                         .trans_b = v & 2,
                         .m = s[0],
                         .n = s[1],
                         .k = s[2]};
            int64_t more = (v + (int)y) % 3; /* rows apart */
            g.lda = (g.trans_a ? g.m : g.k) + more;
            g.ldb = (g.trans_b ? g.k : g.n) + 2 * more;
            g.ldc = g.n + more;
            g.alpha = v % 5 - 2;
            g.beta = v % 4;
            check_one_gemm(b, g);
        }
}

jk_gemm contract_square(const void *a, void *c)
{
    return (jk_gemm){.dtype = JASK_F32,
                     .m = 1,
                     .n = 1,
                     .k = 1,
                     .alpha = 1,
                     .a = a,
                     .b = a,
                     .c = c,
                     .lda = 1,
                     .ldb = 1,
                     .ldc = 1};
}

/* Also NaN: beta 0 does not read. */
static void check_overwrite(contract_bench *b)
{
    const jk_device_table *t = b->ref.table;
    float one = 3, nan_bits, got;
    jask_error err;
    memset(&nan_bits, 0xff, sizeof nan_bits);
    void *a = contract_upload(b, &one, 4), *c = contract_upload(b, &nan_bits, 4);
    jk_gemm g = contract_square(a, c);
    g.alpha = 2;
    must(t->gemm(b->queue, &g, &err), &err);
    contract_fetch(b, &got, c, 4);
    cr_assert_eq(got, 18);
    t->mem_free(b->ref.dev, a, 4);
    t->mem_free(b->ref.dev, c, 4);
}

void contract_check(jk_device_ref ref)
{
    contract_bench b = {.ref = ref};
    void *tiny;
    jask_error err;
    cr_assert_neq(ref.info.name[0], '\0');
    cr_assert_neq(ref.info.description[0], '\0');
    cr_assert_geq(ref.info.alignment, 64);
    must(ref.table->queue_open(ref.dev, &b.queue, &err), &err);
    must(ref.table->mem_alloc(ref.dev, 1, &tiny, &err), &err);
    cr_assert_eq((uintptr_t)tiny % ref.info.alignment, 0);
    ref.table->mem_free(ref.dev, tiny, 1);
    check_copies(&b);
    check_far_rows(&b);
    check_events(&b);
    check_gemm(&b);
    check_overwrite(&b);
    must(ref.table->queue_drain(b.queue, &err), &err);
    ref.table->queue_close(b.queue);
    ref.table->queue_close(NULL);
    ref.table->event_close(NULL);
    ref.table->mem_free(ref.dev, NULL, 0);
    ref.table->pin_free(ref.dev, NULL, 0);
    jk_device_release(&ref);
    jk_device_release(&ref);
}
