/* What every device promises, for the host and for CUDA on the simulated card; then what only a
 * card has: being absent, lost, too small, without cuBLAS. */
#include "contract.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void begin(void)
{
    alarm(120); /* nothing may hang */
}

TestSuite(cuda, .init = begin);

static jk_device_ref open_host(void)
{
    jk_device_ref host;
    jask_error err;
    must(jk_device_select("host", NULL, &host, &err), &err);
    return host;
}

Test(cuda, the_host_keeps_the_contract)
{
    contract_check(open_host());
}

Test(cuda, a_card_keeps_the_contract_under_100_schedules)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        cusim_config config = sim_config(seed);
        cusim_reset(&config);
        contract_check(sim_open());
        sim_check_clean("seed", seed);
    }
}

/* F01: 4097 needs 12 bits of fraction, TF32 keeps 10. */
Test(cuda, f32_is_ieee_unless_tf32_is_asked_for)
{
    float values[] = {4097, 1024.5F, 2049}, one = 1, got;
    contract_bench b;
    jask_error err;
    setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
    cusim_reset(NULL);
    b.ref = sim_open();
    cr_assert(b.ref.info.tf32);
    cr_assert_eq(b.ref.info.flops_f64, b.ref.info.flops_f32 / 4, "as the card says");
    must(b.ref.table->queue_open(b.ref.dev, &b.queue, &err), &err);
    for (int i = 0; i < 6; i++) {
        void *a = contract_upload(&b, &values[i % 3], 4), *o = contract_upload(&b, &one, 4);
        void *c = contract_upload(&b, &one, 4);
        jk_gemm g = {.dtype = JASK_F32,
                     .m = 1,
                     .n = 1,
                     .k = 1,
                     .alpha = 1,
                     .a = a,
                     .b = o,
                     .c = c,
                     .lda = 1,
                     .ldb = 1,
                     .ldc = 1,
                     .tf32 = i >= 3};
        must(b.ref.table->gemm(b.queue, &g, &err), &err);
        contract_fetch(&b, &got, c, 4);
        cr_assert_eq(got == values[i % 3], i < 3);
        b.ref.table->mem_free(b.ref.dev, a, 4);
        b.ref.table->mem_free(b.ref.dev, o, 4);
        b.ref.table->mem_free(b.ref.dev, c, 4);
    }
    b.ref.table->queue_close(b.queue);
    jk_device_release(&b.ref);
    sim_check_clean("case", 0);
}

/* Words that the message must have. */
static void check_message(const jask_error *err, jask_status code, const char *const *words)
{
    cr_assert_eq(err->code, code, "%s", err->msg);
    for (; *words; words++)
        cr_assert_not_null(strstr(err->msg, *words), "'%s' lacks '%s'", err->msg, *words);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(cuda, too_little_memory_is_told_and_forgotten)
{
    cusim_config config = sim_config(1);
    jk_device_ref ref;
    void *ptr = &ptr;
    jask_error err;
    config.device_bytes = 1 << 20;
    config.pinned_bytes = 1 << 20;
    cusim_reset(&config);
    ref = sim_open();
    cr_assert_eq(ref.info.total_bytes, 1 << 20);
    cr_assert_eq(ref.table->mem_alloc(ref.dev, 3 << 20, &ptr, &err), JASK_ERR_NOMEM);
    check_message(&err, JASK_ERR_NOMEM,
                  WORDS("cudaMalloc", "3MiB", "3145728", "cuda:0", "cudaErrorMemoryAllocation",
                        "lower the memory budget"));
    cr_assert_eq(ref.table->pin_alloc(ref.dev, 2 << 20, &ptr, &err), JASK_ERR_NOMEM);
    check_message(&err, JASK_ERR_NOMEM,
                  WORDS("cudaHostAlloc", "2MiB", "pinned host memory", "JASK_HOST_BUDGET"));
    cr_assert_eq(ptr, (void *)&ptr);
    cr_assert_eq(cudaPeekAtLastError(), cudaSuccess);
    must(ref.table->mem_alloc(ref.dev, 1 << 19, &ptr, &err), &err);
    ref.table->mem_free(ref.dev, ptr, 1 << 19);
    jk_device_release(&ref);
    sim_check_clean("case", 0);
}

/* Nothing to use: auto is the host and says why, a name is an error that says why, and so does the
 * list. */
static void check_unusable(const char *what, const char *const *words)
{
    jk_device_options options = {.cublas = sim_cublas()};
    jask_device_info row;
    jk_device_ref ref;
    jask_error err;
    must(jk_device_select("auto", &options, &ref, &err), &err);
    cr_assert_str_eq(ref.table->kind, "host", "%s", what);
    for (const char *const *w = words; *w; w++)
        cr_assert_not_null(strstr(ref.note, *w), "%s: '%s' lacks '%s'", what, ref.note, *w);
    jk_device_release(&ref);
    must(jask_device_get(0, &row, sizeof row, &err), &err);
    cr_assert_eq(row.usable, 0);
    cr_assert_eq(strncmp(row.name, "cuda", 4), 0);
    for (const char *const *w = words; *w; w++)
        cr_assert_not_null(strstr(row.note, *w), "%s: '%s' lacks '%s'", what, row.note, *w);
    must(jask_device_get(1, &row, sizeof row, &err), &err);
    cr_assert_str_eq(row.name, "host");
    cr_assert_eq(jask_device_get(2, &row, sizeof row, &err), JASK_ERR_ARG);
}

static void check_named(const char *name, const char *const *words)
{
    jk_device_options options = {.cublas = sim_cublas()};
    jk_device_ref ref;
    jask_error err;
    cr_assert_eq(jk_device_select(name, &options, &ref, &err), JASK_ERR_DEVICE);
    check_message(&err, JASK_ERR_DEVICE, words);
}

Test(cuda, an_unusable_card_is_passed_over_by_auto_only)
{
    static const struct {
        int code;
        const char *word;
    } cases[] = {
        {34, "driver"}, {35, "driver"}, {100, "CUDA_VISIBLE_DEVICES"}, {3, "cannot start"}};
    cusim_config config = sim_config(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config.unusable = cases[i].code;
        cusim_reset(&config);
        check_unusable("unusable", WORDS(cases[i].word));
        check_named("cuda", WORDS("cuda:0", cases[i].word));
    }
    config.unusable = 0;
    config.no_kernel_image = true;
    cusim_reset(&config);
    check_named("cuda",
                WORDS("compute capability 9.0", "cudaErrorNoKernelImageForDevice", "gpu_arch"));
    config.no_kernel_image = false;
    config.devices = 2;
    cusim_reset(&config);
    check_named("cuda:2", WORDS("cuda:2", "there are 2"));
    check_named("cuda:x", WORDS("cuda:x", "auto, cuda, host"));
    sim_check_clean("case", 0);
}

Test(cuda, a_missing_cublas_is_told_with_all_that_was_tried)
{
    static const struct {
        const char *file, *word;
    } cases[] = {{"/nowhere/libcublas.so", "No such file"}, {"libm.so.6", "has no cublasCreate"}};
    float one = 1;
    cusim_reset(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_device_options options = {.cublas = cases[i].file};
        jk_gemm g = {
            .dtype = JASK_F32, .m = 1, .n = 1, .k = 1, .alpha = 1, .lda = 1, .ldb = 1, .ldc = 1};
        contract_bench b;
        jask_error err;
        must(jk_device_select("auto", &options, &b.ref, &err), &err);
        cr_assert_str_eq(b.ref.table->kind, "host");
        cr_assert_not_null(strstr(b.ref.note, cases[i].word), "%s", b.ref.note);
        jk_device_release(&b.ref);
        /* By name it is a device like any other, until the first product. */
        must(jk_device_select("cuda:0", &options, &b.ref, &err), &err);
        must(b.ref.table->queue_open(b.ref.dev, &b.queue, &err), &err);
        g.c = contract_upload(&b, &one, 4);
        g.a = g.b = g.c;
        cr_assert_eq(b.ref.table->gemm(b.queue, &g, &err), JASK_ERR_DEVICE);
        check_message(&err, JASK_ERR_DEVICE, WORDS(cases[i].file, cases[i].word, "JASK_CUBLAS"));
        b.ref.table->queue_close(b.queue);
        b.ref.table->mem_free(b.ref.dev, g.c, 4);
        jk_device_release(&b.ref);
    }
    sim_check_clean("case", 0);
}

/* All that follows fails with the first error, at once; closing works. */
Test(cuda, a_lost_card_fails_every_call_with_the_first_error)
{
    cusim_config config = sim_config(1);
    unsigned char byte[4] = {0};
    jk_copy copy = {.src = byte, .dst_pitch = 4, .src_pitch = 4, .row_bytes = 4, .rows = 1};
    jk_event *event;
    jk_device_info info;
    void *other;
    contract_bench b;
    jask_error err, first;
    cusim_reset(&config);
    b.ref = sim_open();
    const jk_device_table *t = b.ref.table;
    must(t->queue_open(b.ref.dev, &b.queue, &err), &err);
    must(t->event_open(b.ref.dev, &event, &err), &err);
    copy.dst = contract_upload(&b, byte, 4);
    cusim_fault("cudaMemcpyAsync", 1, CUSIM_FAIL_STICKY, cudaErrorUnknown);
    cr_assert_eq(t->upload(b.queue, &copy, &first), JASK_ERR_DEVICE);
    check_message(&first, JASK_ERR_DEVICE, WORDS("cudaErrorUnknown", "cuda:0", "lost"));
    cr_assert_eq(t->upload(b.queue, &copy, &err), JASK_ERR_DEVICE);
    cr_assert_str_eq(err.msg, first.msg);
    cr_assert_eq(t->queue_drain(b.queue, &err), JASK_ERR_DEVICE);
    cr_assert_eq(t->event_wait(event, &err), JASK_ERR_DEVICE);
    cr_assert_eq(t->event_record(event, b.queue, &err), JASK_ERR_DEVICE);
    cr_assert_eq(t->queue_await(b.queue, event, &err), JASK_ERR_DEVICE);
    cr_assert_eq(t->mem_alloc(b.ref.dev, 4, &other, &err), JASK_ERR_DEVICE);
    cr_assert_eq(t->pin_alloc(b.ref.dev, 4, &other, &err), JASK_ERR_DEVICE);
    cr_assert_eq(t->info(b.ref.dev, &info, &err), JASK_ERR_DEVICE);
    cr_assert_str_eq(err.msg, first.msg);
    t->mem_free(b.ref.dev, copy.dst, 4);
    t->event_close(event);
    t->queue_close(b.queue);
    jk_device_release(&b.ref);
}

/* The program around us keeps its own device; several cards are listed and opened by number. */
/* One bit of what the first kernel leaves is wrong. */
Test(cuda, a_card_that_computes_wrong_values_is_refused_when_it_is_opened)
{
    jk_device_ref ref;
    jask_error err;
    cusim_reset(NULL);
    cusim_fault("cudaMemcpy", 1, CUSIM_FLIP_BIT, cudaSuccess);
    cr_assert_eq(jk_device_select("cuda", NULL, &ref, &err), JASK_ERR_DEVICE);
    cr_assert_not_null(strstr(err.msg, "computes wrong values"), "%s", err.msg);
    sim_check_clean("wrong", 0);
}

Test(cuda, the_callers_current_device_stays)
{
    cusim_config config = sim_config(1);
    jk_device_options options = {.cublas = sim_cublas()};
    jask_device_info row;
    jk_device_ref ref;
    jask_error err;
    int current;
    config.devices = 3;
    cusim_reset(&config);
    cr_assert_eq(cudaSetDevice(2), cudaSuccess);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "cuda:%d", i);
        must(jask_device_get(i, &row, sizeof row, &err), &err);
        cr_assert_str_eq(row.name, name);
        cr_assert(row.usable);
        cr_assert_not_null(strstr(row.description, "PCI 0000:0"), "%s", row.description);
        must(jk_device_select(name, &options, &ref, &err), &err);
        contract_check(ref);
        cr_assert_eq(cudaGetDevice(&current), cudaSuccess);
        cr_assert_eq(current, 2);
    }
    must(jask_device_get(3, &row, sizeof row, &err), &err);
    cr_assert_str_eq(row.name, "host");
    sim_check_clean("case", 0);
}
