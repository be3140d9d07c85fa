#include "cusim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <signal.h>
#include <string.h>

/* How a wrong access ends: AddressSanitizer has its own way, which the tests set to abort. */
#if defined(__SANITIZE_ADDRESS__)
#define DEATH SIGABRT
#else
#define DEATH SIGSEGV
#endif

static void start(cusim_scheduler scheduler, size_t device_bytes)
{
    cusim_config c;
    cusim_config_default(&c);
    c.scheduler = scheduler;
    c.device_bytes = device_bytes;
    cusim_reset(&c);
}

static char *take(size_t bytes)
{
    void *ptr = NULL;
    cr_assert_eq(cudaMalloc(&ptr, bytes), cudaSuccess);
    return ptr;
}

static void *pin(size_t bytes)
{
    void *ptr = NULL;
    cr_assert_eq(cudaHostAlloc(&ptr, bytes, cudaHostAllocDefault), cudaSuccess);
    return ptr;
}

static cudaStream_t stream_open(void)
{
    cudaStream_t stream;
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

Test(memory, ends_where_the_budget_does)
{
    size_t free_bytes, total;
    void *a, *b, *c = NULL;
    cusim_stats stats;
    start(CUSIM_PCT, 4096);
    a = take(1000); /* charged as 1024 */
    cr_assert_eq(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    cr_assert_eq(total, 4096);
    cr_assert_eq(free_bytes, 3072);
    b = take(3072);
    cr_assert_eq(cudaMalloc(&c, 1), cudaErrorMemoryAllocation);
    cr_assert_null(c);
    cr_assert_eq(cudaFree(b), cudaSuccess);
    c = take(512);
    cr_assert_neq(b, c, "an address given out twice");
    cusim_get_stats(&stats);
    cr_assert_eq(stats.peak_bytes, 4096);
    cr_assert_eq(stats.used_bytes, 1536);
    cr_assert_eq(cudaFree(a), cudaSuccess);
    cr_assert_eq(cudaFree(a), cudaErrorInvalidValue);
    cr_assert_eq(cudaFree(NULL), cudaSuccess);
}

Test(memory, pinned_memory_ends_where_its_limit_does)
{
    cusim_config config;
    void *a, *b = NULL;
    cusim_config_default(&config);
    config.pinned_bytes = 1000;
    cusim_reset(&config);
    a = pin(600);
    cr_assert_eq(cudaHostAlloc(&b, 600, cudaHostAllocDefault), cudaErrorMemoryAllocation);
    cr_assert_eq(cudaFreeHost(a), cudaSuccess);
    b = pin(1000);
    cr_assert_eq(cudaFreeHost(b), cudaSuccess);
}

Test(memory, is_nan_until_written)
{
    float *device, host[8] = {0};
    start(CUSIM_INLINE, 1 << 20);
    device = (float *)take(sizeof host);
    cr_assert_eq(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 8; i++)
        cr_assert(isnan(host[i]));
    cr_assert(isnan(*(float *)pin(4)));
}

Test(memory, what_is_left_is_told)
{
    char text[512];
    cudaEvent_t event;
    start(CUSIM_THREADS, 1 << 20);
    cr_assert_eq(cusim_leaks(text, sizeof text), 0);
    cr_assert_str_empty(text);
    take(100);
    pin(200);
    stream_open();
    cr_assert_eq(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    cr_assert_eq(cusim_leaks(text, sizeof text), 4);
    cr_assert_not_null(strstr(text, "100 bytes of device memory"));
    cr_assert_not_null(strstr(text, "200 bytes of pinned memory"));
    cr_assert_not_null(strstr(text, "stream"));
    cr_assert_not_null(strstr(text, "an event"));
}

Test(memory, copies_past_the_end_are_reported_and_fail)
{
    char *device, *pinned;
    start(CUSIM_PCT, 1 << 20);
    device = take(100);
    pinned = pin(200);
    memset(pinned, 0, 200);
    cr_assert_eq(cudaMemcpyAsync(device, pinned, 101, cudaMemcpyHostToDevice, stream_open()),
                 cudaSuccess);
    cr_assert_eq(cusim_report_count("BOUNDS"), 1);
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

Test(memory, copies_the_wrong_way_are_refused)
{
    char *device, host[4] = "abc";
    start(CUSIM_INLINE, 1 << 20);
    device = take(4);
    cr_assert_eq(cudaMemcpy(device, host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    cr_assert_eq(cusim_report_count("DIRECTION"), 1);
}

/* AddressSanitizer would find it first. */
__attribute__((no_sanitize("address"))) static void overrun(char *ptr)
{
    *(volatile char *)ptr = 0;
}

Test(memory, overrun_bytes_are_found_when_freed)
{
    char *device, *pinned;
    start(CUSIM_INLINE, 1 << 20);
    device = take(100);
    pinned = pin(100);
    overrun((char *)cusim_memory(device) + 100);
    overrun(pinned + 150);
    cr_assert_eq(cudaFree(device), cudaSuccess);
    cr_assert_eq(cudaFreeHost(pinned), cudaSuccess);
    cr_assert_eq(cusim_report_count("OVERRUN"), 2);
}

Test(memory, a_host_that_follows_a_device_pointer_dies, .signal = DEATH)
{
    start(CUSIM_PCT, 1 << 20);
    *(volatile char *)take(1) = 1;
}

Test(memory, a_host_that_uses_freed_pinned_memory_dies, .signal = DEATH)
{
    volatile char *pinned;
    start(CUSIM_PCT, 1 << 20);
    pinned = pin(1);
    *pinned = 1;
    cudaFreeHost((void *)(uintptr_t)pinned);
    *pinned = 2;
}

Test(memory, freed_while_in_use_is_reported)
{
    for (int waited = 0; waited < 2; waited++) {
        cudaStream_t stream;
        char *device;
        start(CUSIM_PCT, 1 << 20);
        stream = stream_open();
        device = take(64);
        cr_assert_eq(cudaMemsetAsync(device, 0, 64, stream), cudaSuccess);
        if (waited)
            cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
        cr_assert_eq(cudaFree(device), cudaSuccess);
        cr_assert_eq(cusim_report_count("FREE"), waited ? 0 : 1);
    }
}

/* Without a word from the program: the pages themselves refuse. */
Test(memory, guarded_pinned_pages_notice_an_early_host)
{
    for (int early = 0; early < 2; early++) {
        cusim_config config;
        cudaStream_t stream;
        char *device, *in, *out;
        cusim_config_default(&config);
        config.scheduler = CUSIM_PCT;
        config.guard_pinned = true;
        cusim_reset(&config);
        stream = stream_open();
        device = take(8192);
        in = pin(8192);
        out = pin(8192);
        memset(in, 7, 8192);
        cr_assert_eq(cudaMemcpyAsync(device, in, 8192, cudaMemcpyHostToDevice, stream),
                     cudaSuccess);
        cr_assert_eq(cudaMemcpyAsync(out, device, 8192, cudaMemcpyDeviceToHost, stream),
                     cudaSuccess);
        cr_assert_eq(in[5000], 7, "what is copied from may be read");
        if (!early)
            cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
        in[5000] = 8;
        cr_assert_eq(out[0], early ? -1 : 7);
        cr_assert_eq(cusim_report_count("HOST"), early ? 2 : 0);
    }
}

Test(memory, device_memory_given_to_the_host_is_reported)
{
    start(CUSIM_PCT, 1 << 20);
    cusim_host_read(take(4), 4, "reading");
    cr_assert_eq(cusim_report_count("HOST"), 1);
}
