/* Benchmarks of a CUDA device; README.md says what they compare.
 *
 * usage: bench_gpu copies [BYTES]
 *        bench_gpu memory [--dtype f32|f64|f16|bf16] [--tf32] N BUDGET PAIRS [DIR]
 *        bench_gpu files  [--dtype f32|f64] [--tf32] [--no-sync] [--cold] N BUDGET PAIRS [DIR] */
#include "gpu.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 64 };

void gpu_must(cudaError_t code, const char *what)
{
    if (code != cudaSuccess)
        bench_die(what, cudaGetErrorString(code));
}

void *gpu_pin(size_t bytes)
{
    void *out = NULL;
    gpu_must(cudaHostAlloc(&out, bytes, cudaHostAllocPortable), "pinned memory");
    return out;
}

/* Bits of the fraction of a 16-bit type; 0: it is another. The rest but one is the exponent's. */
static int fraction_bits(jask_dtype dtype)
{
    return dtype == JASK_F16 ? 10 : dtype == JASK_BF16 ? 7 : 0;
}

static double widen(uint16_t bits, int fraction)
{
    int bias = (1 << (14 - fraction)) - 1, exponent = (bits & 0x7fff) >> fraction;
    double part = ldexp(bits & ((1 << fraction) - 1), -fraction);
    double value = exponent == 2 * bias + 1 ? (part > 0 ? (double)NAN : (double)INFINITY)
                   : exponent == 0          ? ldexp(part, 1 - bias)
                                            : ldexp(1 + part, exponent - bias);
    return bits & 0x8000 ? -value : value;
}

/* bench_fill for 16-bit types: from 1/256 up to 1, either sign. */
static void fill_halves(uint16_t *out, int64_t count, int fraction, uint64_t seed)
{
    int bias = (1 << (14 - fraction)) - 1;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned exponent = (unsigned)(bias - 1) - (unsigned)__builtin_ctzll(seed >> 56 | 0x80);
        out[i] = (uint16_t)((seed >> 40 & 0x8000) | exponent << fraction |
                            (seed >> 32 & ((1u << fraction) - 1)));
    }
}

static void fill(const gpu_case *w, void *data, uint64_t seed)
{
    if (fraction_bits(w->dtype))
        fill_halves(data, w->n * w->n, fraction_bits(w->dtype), seed);
    else
        bench_fill(w->dtype, data, w->n * w->n, seed);
}

void gpu_case_open(gpu_case *w)
{
    w->matrix_bytes = (size_t)w->n * (size_t)w->n * jask_dtype_size(w->dtype);
    w->a = gpu_pin(w->matrix_bytes);
    w->b = gpu_pin(w->matrix_bytes);
    w->peer = gpu_pin(w->matrix_bytes);
    fill(w, w->a, 1);
    fill(w, w->b, 2);
}

void gpu_case_close(gpu_case *w)
{
    gpu_must(cudaFreeHost(w->a), "free");
    gpu_must(cudaFreeHost(w->b), "free");
    gpu_must(cudaFreeHost(w->peer), "free");
}

jask_context *gpu_context(const gpu_case *w)
{
    jask_options options;
    jask_context *ctx;
    jask_config config;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.sync = w->sync ? 1 : -1;
    options.device = "cuda:0";
    options.io = w->io;
    options.precision = w->tf32 ? "tf32" : "f32";
    if (jask_parse_size(w->budget, &options.memory_budget_bytes, &err) ||
        jask_context_open(&options, &ctx, &err) ||
        jask_get_config(ctx, &config, sizeof config, &err))
        bench_die("context", err.msg);
    if (config.memory_budget_bytes != config.asked_budget_bytes)
        bench_die("budget", "there is not so much free memory on the device");
    return ctx;
}

const char *gpu_setting(jask_context *ctx, const char *name)
{
    const char *value, *source;
    jask_error err;
    for (int i = 0; i < jask_setting_count(); i++)
        if (strcmp(jask_setting_get(i)->name, name) == 0 &&
            jask_context_setting(ctx, i, &value, &source, &err) == JASK_OK)
            return value;
    bench_die("no setting", name);
}

double gpu_element(const void *product, int64_t i, int64_t j, const gpu_case *w)
{
    int64_t at = i * w->n + j;
    if (fraction_bits(w->dtype))
        return widen(((const uint16_t *)product)[at], fraction_bits(w->dtype));
    return w->dtype == JASK_F64 ? ((const double *)product)[at]
                                : (double)((const float *)product)[at];
}

/* Rounding of the sums at its worst, of the inputs to 11 bits as it adds up at random, and of the result. */
static double tolerance(const gpu_case *w, double sum)
{
    double n = (double)w->n, unit = w->dtype == JASK_F64 ? 0x1p-53 : 0x1p-24;
    int fraction = fraction_bits(w->dtype);
    return n * unit + (w->tf32 ? 4 * sqrt(n) * 0x1p-11 : 0) +
           (fraction ? ldexp(fabs(sum), -fraction - 1) * 1.01 : 0);
}

double gpu_difference(const gpu_case *w, const char *whose, gpu_element_fn element,
                      const void *product)
{
    double worst = 0;
    uint64_t random = 1;
    for (int s = 0; s < SAMPLES; s++) {
        int64_t i, j;
        double sum = 0, difference;
        random = random * 6364136223846793005u + 1442695040888963407u;
        i = (int64_t)(random >> 33) % w->n;
        random = random * 6364136223846793005u + 1442695040888963407u;
        j = (int64_t)(random >> 33) % w->n;
        for (int64_t p = 0; p < w->n; p++)
            sum += gpu_element(w->a, i, p, w) * gpu_element(w->b, p, j, w);
        difference = fabs(element(product, i, j, w) - sum);
        if (!(difference <= tolerance(w, sum)))
            bench_die(whose, "computes wrong values");
        worst = fmax(worst, difference);
    }
    return worst;
}

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: bench_gpu copies [BYTES]\n"
            "       bench_gpu memory [--dtype f32|f64|f16|bf16] [--tf32] N BUDGET PAIRS [DIR]\n"
            "       bench_gpu files [--dtype f32|f64] [--tf32] [--no-sync] [--cold] N BUDGET PAIRS "
            "[DIR]\n");
    exit(2);
}

/* Options, then N BUDGET PAIRS [DIR]. */
static gpu_case read_case(int argc, char **argv)
{
    gpu_case w = {.dtype = JASK_F32, .sync = 1, .dir = "."};
    jask_error err;
    for (; argc > 0 && argv[0][0] == '-'; argv++, argc--) {
        if (strcmp(argv[0], "--tf32") == 0)
            w.tf32 = 1;
        else if (strcmp(argv[0], "--no-sync") == 0)
            w.sync = 0;
        else if (strcmp(argv[0], "--cold") == 0)
            w.cold = 1;
        else if (strcmp(argv[0], "--dtype") != 0 || argc < 2)
            usage();
        else if (argv++, argc--, jask_dtype_parse(argv[0], &w.dtype, &err))
            bench_die("--dtype", err.msg);
    }
    if (argc < 3 || argc > 4)
        usage();
    w.n = atoll(argv[0]);
    w.budget = argv[1];
    w.pairs = atoi(argv[2]);
    if (argc > 3)
        w.dir = argv[3];
    if (w.n < 1 || w.n > INT_MAX || w.pairs < 1 || (w.tf32 && w.dtype != JASK_F32) ||
        (w.dtype != JASK_F32 && w.dtype != JASK_F64 && !fraction_bits(w.dtype)))
        usage();
    return w;
}

int main(int argc, char **argv)
{
    gpu_case w;
    uint64_t bytes = (uint64_t)1 << 30;
    jask_error err;
    if (argc < 2)
        usage();
    if (strcmp(argv[1], "copies") == 0) {
        if (argc > 3 || (argc == 3 && jask_parse_size(argv[2], &bytes, &err)))
            usage();
        gpu_copies((size_t)bytes);
        return 0;
    }
    w = read_case(argc - 2, argv + 2);
    if (strcmp(argv[1], "memory") == 0)
        gpu_memory(&w);
    else if (strcmp(argv[1], "files") == 0 && !fraction_bits(w.dtype))
        gpu_files(&w);
    else
        usage();
    return 0;
}
