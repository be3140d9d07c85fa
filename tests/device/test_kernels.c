/* Kernels against their plain-C twins, bit for bit, on whole buffers: what lies around the operands
 * must stay as it was. */
#include "kernel_rounds.h"
#include "kernels/device_kernels.h"
#include "kernels/host_kernels.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check(cudaError_t error, const char *what)
{
    cr_assert_eq(error, cudaSuccess, "%s: %s", what, cudaGetErrorString(error));
}

/* The same bytes on the host, for the twin, and on the device, for the kernel. */
typedef struct operand {
    unsigned char *host, *device, *back;
    size_t bytes;
} operand;

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static operand operand_open(size_t bytes)
{
    operand o = {.bytes = bytes, .host = malloc(bytes), .back = malloc(bytes)};
    cr_assert(o.host && o.back);
    void *device = NULL;
    check(cudaMalloc(&device, bytes), "cudaMalloc");
    o.device = device;
    for (size_t i = 0; i < bytes; i++)
        o.host[i] = (unsigned char)(random_bits() >> 32);
    return o;
}

static void operand_upload(const operand *o)
{
    check(cudaMemcpy(o->device, o->host, o->bytes, cudaMemcpyHostToDevice), "upload");
}

static void operand_download(operand *o)
{
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaMemcpy(o->back, o->device, o->bytes, cudaMemcpyDeviceToHost), "download");
}

static void operand_close(operand *o)
{
    free(o->host);
    free(o->back);
    check(cudaFree(o->device), "cudaFree");
}

/* Arithmetic gives a NaN no particular bits: give it some. */
static void settle_nans(unsigned char *bytes, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        float f = 0;
        double d = 0;
        memcpy(size == 4 ? (void *)&f : (void *)&d, bytes + i * size, size);
        if (isnan(f) || isnan(d))
            memset(bytes + i * size, 0xff, size);
    }
}

static void compare(const operand *o, const char *what, int64_t n, size_t offset)
{
    for (size_t i = 0; i < o->bytes; i++)
        if (o->host[i] != o->back[i])
            cr_assert_fail("%s, n %" PRId64 ", offset %zu: byte %zu is %02x, not %02x", what, n,
                           offset, i, o->back[i], o->host[i]);
}

static void agree(operand *o, const char *what, int64_t n, size_t offset)
{
    operand_download(o);
    compare(o, what, n, offset);
}

#define ROOM 16 /* elements before and behind */

static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 255, 1023, 1025, 4099};
/* More than all threads of the largest grid take at once, singly and in packs. */
static const int64_t large = 4 * 2048 * 256 + 4099;

typedef struct numbers_case {
    const char *name;
    size_t in_size, out_size;
    bool arithmetic;
    void (*host)(int64_t n, const void *x, void *y);
    cudaError_t (*device)(int64_t n, const void *x, void *y, cudaStream_t stream);
} numbers_case;

#define CONVERSION(name, from, to)                                                                 \
    static void host_##name(int64_t n, const void *x, void *y)                                     \
    {                                                                                              \
        jk_##name(n, x, y);                                                                        \
    }                                                                                              \
    static cudaError_t device_##name(int64_t n, const void *x, void *y, cudaStream_t stream)       \
    {                                                                                              \
        return jk_cuda_##name(n, x, y, stream);                                                    \
    }
CONVERSION(f16_to_f32, uint16_t, float)
CONVERSION(bf16_to_f32, uint16_t, float)
CONVERSION(f32_to_f16, float, uint16_t)
CONVERSION(f32_to_bf16, float, uint16_t)
CONVERSION(f32_to_f64, float, double)
CONVERSION(f64_to_f32, double, float)

/* y is read and written: alpha and beta are no powers of 2, so that every rounding shows. */
#define AXPBY(name, real)                                                                          \
    static void host_##name(int64_t n, const void *x, void *y)                                     \
    {                                                                                              \
        jk_##name(n, (real)1.1, x, (real)-0.7, y, y);                                              \
    }                                                                                              \
    static cudaError_t device_##name(int64_t n, const void *x, void *y, cudaStream_t stream)       \
    {                                                                                              \
        return jk_cuda_##name(n, (real)1.1, x, (real)-0.7, y, y, stream);                          \
    }                                                                                              \
    static void host_scale_##name(int64_t n, const void *x, void *y)                               \
    {                                                                                              \
        jk_##name(n, (real)1.1, x, 0, NULL, y);                                                    \
    }                                                                                              \
    static cudaError_t device_scale_##name(int64_t n, const void *x, void *y, cudaStream_t stream) \
    {                                                                                              \
        return jk_cuda_##name(n, (real)1.1, x, 0, NULL, y, stream);                                \
    }
AXPBY(axpby_f32, float)
AXPBY(axpby_f64, double)

#define CASE(name, in, out, arithmetic)                                                            \
    {                                                                                              \
#name, in, out, arithmetic, host_##name, device_##name                                     \
    }
static const numbers_case numbers[] = {
    CASE(f16_to_f32, 2, 4, false),     CASE(bf16_to_f32, 2, 4, false),
    CASE(f32_to_f16, 4, 2, false),     CASE(f32_to_bf16, 4, 2, false),
    CASE(f32_to_f64, 4, 8, true),      CASE(f64_to_f32, 8, 4, true),
    CASE(axpby_f32, 4, 4, true),       CASE(axpby_f64, 8, 8, true),
    CASE(scale_axpby_f32, 4, 4, true), CASE(scale_axpby_f64, 8, 8, true),
};

static void compare_numbers(const numbers_case *c, int64_t n, size_t x_first, size_t y_first)
{
    size_t elems = (size_t)n + 2 * ROOM;
    operand x = operand_open(elems * c->in_size), y = operand_open(elems * c->out_size);
    operand_upload(&x);
    operand_upload(&y);
    c->host(n, x.host + x_first * c->in_size, y.host + y_first * c->out_size);
    check(c->device(n, x.device + x_first * c->in_size, y.device + y_first * c->out_size, NULL),
          c->name);
    operand_download(&y);
    if (c->arithmetic) {
        settle_nans(y.host, elems, c->out_size);
        settle_nans(y.back, elems, c->out_size);
    }
    compare(&y, c->name, n, y_first);
    agree(&x, c->name, n, x_first);
    operand_close(&x);
    operand_close(&y);
}

Test(kernels, numbers_agree_at_every_size_and_alignment)
{
    kernel_round(0);
    for (size_t c = 0; c < sizeof numbers / sizeof *numbers; c++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (size_t first = 0; first < 9; first++)
                compare_numbers(&numbers[c], counts[i], first, first % 3 ? first : 8 - first);
        compare_numbers(&numbers[c], large, 0, 0);
        compare_numbers(&numbers[c], large / 4, 1, 0);
    }
    cr_assert_str_empty(kernel_complaint());
}

/* Every half with both neighbours in f32 and the ties between, and every exponent. */
Test(kernels, conversions_agree_on_every_half_and_tie)
{
    static const uint32_t near[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { kinds = sizeof near / sizeof *near };
    static uint32_t bits[0x10000 * kinds];
    for (uint32_t i = 0; i < 0x10000; i++)
        for (size_t k = 0; k < kinds; k++)
            bits[i * kinds + k] = i << 16 ^ near[k];
    kernel_round(0);
    operand halves = operand_open(0x10000 * 2), floats = operand_open(sizeof bits);
    operand from = operand_open(0x10000 * 4), to = operand_open(sizeof bits / 2);
    for (uint32_t i = 0; i < 0x10000; i++)
        memcpy(halves.host + i * 2, &(uint16_t){(uint16_t)i}, 2);
    memcpy(floats.host, bits, sizeof bits);
    operand_upload(&halves);
    operand_upload(&floats);
    for (size_t c = 0; c < 4; c++) {
        operand *in = c < 2 ? &halves : &floats, *out = c < 2 ? &from : &to;
        int64_t n = c < 2 ? 0x10000 : 0x10000 * kinds;
        numbers[c].host(n, in->host, out->host);
        check(numbers[c].device(n, in->device, out->device, NULL), numbers[c].name);
        agree(out, numbers[c].name, n, 0);
    }
    operand_close(&halves);
    operand_close(&floats);
    operand_close(&from);
    operand_close(&to);
    cr_assert_str_empty(kernel_complaint());
}

static void compare_swap(size_t size, int64_t n, size_t first_byte)
{
    operand data = operand_open((size_t)n * size + 64);
    operand_upload(&data);
    jk_swap_bytes(data.host + first_byte, n, size);
    check(jk_cuda_swap_bytes(data.device + first_byte, n, size, NULL), "swap");
    agree(&data, "swap", n, first_byte);
    operand_close(&data);
}

Test(kernels, swaps_agree_at_every_size_and_address)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    kernel_round(0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (size_t first = 0; first < 18; first++)
                compare_swap(sizes[s], counts[i], first);
        compare_swap(sizes[s], large, 0);
    }
    cr_assert_neq(jk_cuda_swap_bytes(NULL, 1, 3, NULL), cudaSuccess);
    cr_assert_str_empty(kernel_complaint());
}

static void compare_transpose(size_t size, int64_t rows, int64_t cols, size_t first_byte)
{
    int64_t src_ld = cols + 3, dst_ld = rows + 1;
    operand src = operand_open((size_t)(rows * src_ld) * size + 16 + size);
    operand dst = operand_open((size_t)(cols * dst_ld) * size + 16 + size);
    operand_upload(&src);
    operand_upload(&dst);
    jk_transpose(dst.host + first_byte, dst_ld, src.host + first_byte, src_ld, rows, cols, size);
    check(jk_cuda_transpose(dst.device + first_byte, dst_ld, src.device + first_byte, src_ld, rows,
                            cols, size, NULL),
          "transpose");
    agree(&dst, "transpose", rows, first_byte);
    agree(&src, "transpose", rows, first_byte);
    operand_close(&src);
    operand_close(&dst);
}

Test(kernels, transposes_agree_in_every_shape)
{
    static const struct {
        int64_t rows, cols;
    } shapes[] = {{0, 5}, {5, 0}, {1, 1}, {1, 100}, {100, 1}, {32, 32}, {31, 33}, {65, 97}};
    for (int round = 0; kernel_round(round); round++) {
        for (size_t size = 1; size <= 16; size += round == 0 ? 1 : 5) {
            const size_t offsets[] = {0, size, size / 2 + 1};
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
                    compare_transpose(size, shapes[s].rows, shapes[s].cols, offsets[o]);
        }
        cr_assert_neq(jk_cuda_transpose(NULL, 1, NULL, 1, 1, 1, 17, NULL), cudaSuccess);
        cr_assert_str_empty(kernel_complaint());
    }
}

/* More squares than blocks, which lie along x of the grid: its y ends at 65535. */
Test(kernels, transposes_agree_on_long_arrays)
{
    kernel_round(0);
    compare_transpose(4, 2048 * 32 + 5, 1, 0);
    compare_transpose(2, 3, 2049 * 32 + 5, 0);
    cr_assert_str_empty(kernel_complaint());
}

static void compare_sums(int64_t n, size_t first, bool wide, bool finite)
{
    size_t size = wide ? 8 : 4, elems = (size_t)n + ROOM;
    operand x = operand_open(elems * size);
    for (size_t i = 0; i < elems; i += finite ? 1 : 5) {
        float f = finite ? (float)(int32_t)random_bits() * 0x1p-20f : i % 2 ? INFINITY : -INFINITY;
        double d = finite ? (double)(int64_t)random_bits() * 0x1p-40 : (double)f;
        memcpy(x.host + i * size, wide ? (const void *)&d : (const void *)&f, size);
    }
    operand sums = operand_open(JK_MAX_PARTS * sizeof(double));
    operand ranges = operand_open(JK_MAX_PARTS * sizeof(jk_range));
    operand_upload(&x);
    operand_upload(&sums);
    operand_upload(&ranges);
    void *host = x.host + first * size, *device = x.device + first * size;
    if (wide) {
        jk_sum_f64(n, host, (double *)(void *)sums.host);
        jk_range_f64(n, host, (jk_range *)(void *)ranges.host);
        check(jk_cuda_sum_f64(n, device, (double *)(void *)sums.device, NULL), "sum");
        check(jk_cuda_range_f64(n, device, (jk_range *)(void *)ranges.device, NULL), "range");
    } else {
        jk_sum_f32(n, host, (double *)(void *)sums.host);
        jk_range_f32(n, host, (jk_range *)(void *)ranges.host);
        check(jk_cuda_sum_f32(n, device, (double *)(void *)sums.device, NULL), "sum");
        check(jk_cuda_range_f32(n, device, (jk_range *)(void *)ranges.device, NULL), "range");
    }
    agree(&ranges, wide ? "range of f64" : "range of f32", n, first);
    if (finite)
        agree(&sums, wide ? "sum of f64" : "sum of f32", n, first);
    operand_close(&x);
    operand_close(&sums);
    operand_close(&ranges);
}

Test(kernels, sums_and_ranges_agree_in_every_bit)
{
    static const int64_t more[] = {1024, 2048, 2049, 30001};
    for (int round = 0; kernel_round(round); round++) {
        for (int kind = round == 0 ? 0 : 2; kind < 4; kind++) {
            bool wide = kind & 1, finite = kind & 2;
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                for (size_t first = 0; first < 2; first++)
                    compare_sums(counts[i], first, wide, finite);
            for (size_t i = 0; i < sizeof more / sizeof *more; i++)
                compare_sums(more[i], i % 2, wide, finite);
        }
        if (round == 0) /* parts of more than one turn of all lanes */
            compare_sums(JK_MAX_PARTS * 4 * JK_LANES + 1, 1, false, true);
        cr_assert_str_empty(kernel_complaint());
    }
}

/* Numbers of a size at which no sum is exact. */
static void make_real(operand *o, bool wide)
{
    size_t size = wide ? 8 : 4;
    for (size_t i = 0; i < o->bytes / size; i++) {
        double d = (double)(int64_t)random_bits() * 0x1p-63;
        float f = (float)d;
        memcpy(o->host + i * size, wide ? (const void *)&d : (const void *)&f, size);
    }
}

typedef struct ordered_case {
    const char *name;
    size_t size;
    bool wide;
    void (*host)(const jk_ordered *g);
    cudaError_t (*device)(const jk_ordered *g, cudaStream_t stream);
} ordered_case;

/* Bit i of `how`: a transposed A, a transposed B, another factor than 0 for C. */
static void compare_ordered(const ordered_case *c, int64_t m, int64_t n, int64_t k, int how)
{
    jk_ordered g = {.trans_a = how & 1, .trans_b = how & 2, .m = m, .n = n, .k = k, .alpha = 0.7};
    g.beta = how & 4 ? -0.3 : 0;
    g.lda = (g.trans_a ? m : k) + 2;
    g.ldb = (g.trans_b ? k : n) + 1;
    g.ldc = n + 3;
    operand x = operand_open((size_t)((g.trans_a ? k : m) * g.lda) * c->size);
    operand y = operand_open((size_t)((g.trans_b ? n : k) * g.ldb) * c->size);
    operand z = operand_open((size_t)(m * g.ldc) * c->size);
    make_real(&x, c->wide);
    make_real(&y, c->wide);
    make_real(&z, c->wide);
    operand_upload(&x);
    operand_upload(&y);
    operand_upload(&z);
    g.a = x.host, g.b = y.host, g.c = z.host;
    c->host(&g);
    g.a = x.device, g.b = y.device, g.c = z.device;
    check(c->device(&g, NULL), c->name);
    agree(&z, c->name, m * n, (size_t)how);
    operand_close(&x);
    operand_close(&y);
    operand_close(&z);
}

Test(kernels, ordered_products_agree_in_every_bit)
{
    static const ordered_case cases[] = {
        {"ordered f32", 4, false, jk_ordered_f32, jk_cuda_ordered_f32},
        {"ordered f64", 8, true, jk_ordered_f64, jk_cuda_ordered_f64},
        {"ordered c64", 8, false, jk_ordered_c64, jk_cuda_ordered_c64},
        {"ordered c128", 16, true, jk_ordered_c128, jk_cuda_ordered_c128},
    };
    static const int64_t shapes[][3] = {{1, 1, 1},     {64, 64, 16},  {65, 33, 257},
                                        {3, 130, 300}, {130, 1, 513}, {1, 70, 256}};
    for (int round = 0; kernel_round(round); round++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                compare_ordered(&cases[i], shapes[s][0], shapes[s][1], shapes[s][2],
                                (int)(s + i + (size_t)round) % 8);
        cr_assert_str_empty(kernel_complaint());
    }
}

/* More squares than blocks. */
Test(kernels, ordered_products_agree_on_long_arrays)
{
    static const ordered_case f32 = {"ordered f32", 4, false, jk_ordered_f32, jk_cuda_ordered_f32};
    kernel_round(0);
    compare_ordered(&f32, 2049 * 64 + 5, 1, 1, 0);
    cr_assert_str_empty(kernel_complaint());
}

Test(kernels, the_probe_writes_its_words)
{
    kernel_round(0);
    operand words = operand_open(40 * 4);
    operand_upload(&words);
    for (uint32_t i = 0; i < 32; i++)
        memcpy(words.host + 4 * i, &(uint32_t){jk_probe_word(12345, i)}, 4);
    check(jk_cuda_probe(12345, (uint32_t *)(void *)words.device, NULL), "probe");
    agree(&words, "probe", 32, 0);
    operand_close(&words);
    cr_assert_str_empty(kernel_complaint());
}

/* Each element is doubled once, wherever it lies: indices have 64 bits. */
Test(kernels, an_array_is_covered_to_its_end)
{
    kernel_round(0);
    int64_t n = kernel_many();
    float value;
    void *x = NULL, *parts = NULL;
    static jk_range ranges[JK_MAX_PARTS];
    memset(&value, 0x3f, sizeof value);
    for (int misaligned = 0; misaligned < 2; misaligned++) {
        size_t bytes = (size_t)(n + 1) * sizeof value;
        check(cudaMalloc(&x, bytes), "cudaMalloc");
        check(cudaMalloc(&parts, sizeof ranges), "cudaMalloc");
        check(cudaMemsetAsync(x, 0x3f, bytes, NULL), "cudaMemsetAsync");
        float *first = (float *)x + misaligned;
        check(jk_cuda_axpby_f32(n, 1, first, 1, first, first, NULL), "axpby");
        check(jk_cuda_range_f32(n, first, parts, NULL), "range");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        check(cudaMemcpy(ranges, parts, sizeof ranges, cudaMemcpyDeviceToHost), "download");
        jk_range range = jk_range_join(jk_parts(n), ranges);
        cr_assert(range.min == 2 * (double)value && range.max == 2 * (double)value,
                  "%" PRId64 " times %g: %g to %g", n, value, range.min, range.max);
        check(cudaFree(x), "cudaFree");
        check(cudaFree(parts), "cudaFree");
    }
    cr_assert_str_empty(kernel_complaint());
}
