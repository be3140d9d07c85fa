#include "cusim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <string.h>

static void start(cusim_scheduler scheduler)
{
    cusim_config c;
    cusim_config_default(&c);
    c.scheduler = scheduler;
    cusim_reset(&c);
}

static char *take(size_t bytes)
{
    void *ptr = NULL;
    cr_assert_eq(cudaMalloc(&ptr, bytes), cudaSuccess);
    return ptr;
}

static char *pin(size_t bytes)
{
    void *ptr = NULL;
    cr_assert_eq(cudaHostAlloc(&ptr, bytes, cudaHostAllocDefault), cudaSuccess);
    return memset(ptr, 0, bytes);
}

static cudaStream_t stream_open(unsigned flags)
{
    cudaStream_t stream;
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
}

static cudaEvent_t event_open(unsigned flags)
{
    cudaEvent_t event;
    cr_assert_eq(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
    return event;
}

Test(streams, nothing_runs_before_somebody_waits)
{
    cudaStream_t stream;
    char *device, *pinned;
    start(CUSIM_PCT);
    stream = stream_open(cudaStreamNonBlocking);
    device = take(4);
    pinned = pin(4);
    memcpy(pinned, "abc", 4);
    cr_assert_eq(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
    cr_assert_neq(memcmp(cusim_memory(device), "abc", 4), 0);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
    cr_assert_eq(memcmp(cusim_memory(device), "abc", 4), 0);
}

Test(streams, queries_get_an_answer_in_the_end)
{
    for (int scheduler = CUSIM_INLINE; scheduler <= CUSIM_PCT; scheduler++) {
        cudaStream_t stream;
        cudaEvent_t event;
        char *device;
        int polls = 0;
        start((cusim_scheduler)scheduler);
        stream = stream_open(cudaStreamNonBlocking);
        event = event_open(cudaEventDisableTiming);
        device = take(64);
        cr_assert_eq(cudaEventQuery(event), cudaSuccess, "never recorded");
        for (int i = 0; i < 3; i++)
            cr_assert_eq(cudaMemsetAsync(device, i, 64, stream), cudaSuccess);
        cr_assert_eq(cudaEventRecord(event, stream), cudaSuccess);
        while (cudaEventQuery(event) == cudaErrorNotReady)
            polls++;
        cr_assert_eq(cudaStreamQuery(stream), cudaSuccess);
        if (scheduler == CUSIM_PCT)
            cr_assert_eq(polls, 3);
        cr_assert_eq(cudaFree(device), cudaSuccess);
        cr_assert_eq(cusim_report_count(NULL), 0, "a successful query orders: %s", cusim_report(0));
    }
}

Test(streams, a_wait_means_the_record_before_it)
{
    cudaStream_t a, b;
    cudaEvent_t event;
    char *device;
    start(CUSIM_PCT);
    a = stream_open(cudaStreamNonBlocking);
    b = stream_open(cudaStreamNonBlocking);
    event = event_open(cudaEventDisableTiming);
    device = take(64);
    cr_assert_eq(cudaMemsetAsync(device, 1, 64, a), cudaSuccess);
    cr_assert_eq(cudaEventRecord(event, a), cudaSuccess);
    cr_assert_eq(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(device, 2, 64, b), cudaSuccess);
    cr_assert_eq(cusim_report_count(NULL), 0);
    /* A later record does not order what was queued before it against b. */
    cr_assert_eq(cudaMemsetAsync(device, 3, 64, a), cudaSuccess);
    cr_assert_eq(cusim_report_count("ORDER"), 1);
}

Test(streams, parts_and_interleaved_columns_may_be_written_at_once)
{
    cudaStream_t a, b;
    char *device, *pinned;
    start(CUSIM_PCT);
    a = stream_open(cudaStreamNonBlocking);
    b = stream_open(cudaStreamNonBlocking);
    device = take(8192);
    pinned = pin(8192);
    cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, a);
    cudaMemcpyAsync(device + 4096, pinned, 4096, cudaMemcpyHostToDevice, b);
    cr_assert_eq(cusim_report_count(NULL), 0);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    cudaMemcpy2DAsync(device, 64, pinned, 64, 32, 128, cudaMemcpyHostToDevice, a);
    cudaMemcpy2DAsync(device + 32, 64, pinned, 64, 32, 128, cudaMemcpyHostToDevice, b);
    cr_assert_eq(cusim_report_count(NULL), 0, "%s", cusim_report(0));
    cudaMemcpy2DAsync(device + 31, 64, pinned, 64, 32, 10, cudaMemcpyHostToDevice, b);
    cr_assert_eq(cusim_report_count("ORDER"), 1);
}

Test(streams, the_default_stream_is_ordered_with_blocking_ones_only)
{
    for (unsigned flags = cudaStreamDefault; flags <= cudaStreamNonBlocking; flags++) {
        char *device;
        start(CUSIM_PCT);
        device = take(64);
        cr_assert_eq(cudaMemsetAsync(device, 1, 64, stream_open(flags)), cudaSuccess);
        cr_assert_eq(cudaMemset(device, 2, 64), cudaSuccess);
        cr_assert_eq(cusim_report_count("ORDER"), flags == cudaStreamNonBlocking ? 1 : 0);
    }
}

Test(streams, pageable_sources_are_taken_at_once_and_pageable_targets_waited_for)
{
    cudaStream_t stream;
    char *device, in[4] = "abc", out[4] = "";
    cusim_stats stats;
    start(CUSIM_PCT);
    stream = stream_open(cudaStreamNonBlocking);
    device = take(4);
    cr_assert_eq(cudaMemcpyAsync(device, in, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
    memset(in, 0, sizeof in);
    cr_assert_eq(cudaMemcpyAsync(out, device, 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    cr_assert_str_eq(out, "abc");
    cusim_get_stats(&stats);
    cr_assert_eq(stats.pageable_copies, 2);
    cr_assert_eq(stats.h2d_bytes, 4);
    cr_assert_eq(stats.d2h_bytes, 4);
    cr_assert_eq(cusim_report_count(NULL), 0);
}

/* The plain copy of pageable memory returns when it is staged: nothing says that the device has it.
 */
Test(streams, a_plain_upload_of_pageable_memory_orders_nothing)
{
    char *device, in[64] = "", *pinned;
    start(CUSIM_PCT);
    device = take(64);
    pinned = pin(64);
    cr_assert_eq(cudaMemcpy(device, in, 64, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(device, 0, 64, stream_open(cudaStreamNonBlocking)), cudaSuccess);
    cr_assert_eq(cusim_report_count("ORDER"), 1);
    start(CUSIM_PCT);
    device = take(64);
    pinned = pin(64);
    cr_assert_eq(cudaMemcpy(device, pinned, 64, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(device, 0, 64, stream_open(cudaStreamNonBlocking)), cudaSuccess);
    cr_assert_eq(cusim_report_count("ORDER"), 0);
}

Test(streams, time_passes_between_timed_events_only)
{
    cudaStream_t stream;
    cudaEvent_t a, b, untimed;
    float ms = -1;
    start(CUSIM_PCT);
    stream = stream_open(cudaStreamNonBlocking);
    a = event_open(cudaEventDefault);
    b = event_open(cudaEventDefault);
    untimed = event_open(cudaEventDisableTiming);
    cr_assert_eq(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    cr_assert_eq(cudaEventRecord(a, stream), cudaSuccess);
    cr_assert_eq(cudaEventRecord(untimed, stream), cudaSuccess);
    cr_assert_eq(cudaEventRecord(b, stream), cudaSuccess);
    cr_assert_eq(cudaEventElapsedTime(&ms, a, b), cudaErrorNotReady);
    cr_assert_eq(cudaEventSynchronize(b), cudaSuccess);
    cr_assert_eq(cudaEventElapsedTime(&ms, a, b), cudaSuccess);
    cr_assert_geq(ms, 0.0f);
    cr_assert_eq(cudaEventElapsedTime(&ms, a, untimed), cudaErrorInvalidResourceHandle);
}

Test(streams, handles_that_are_gone_are_refused)
{
    cudaStream_t stream;
    cudaEvent_t event;
    start(CUSIM_THREADS);
    stream = stream_open(cudaStreamNonBlocking);
    event = event_open(cudaEventDisableTiming);
    cr_assert_eq(cudaStreamDestroy(stream), cudaSuccess);
    cr_assert_eq(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    cr_assert_eq(cudaEventDestroy(event), cudaSuccess);
    cr_assert_eq(cudaEventSynchronize(event), cudaErrorInvalidResourceHandle);
    cr_assert_eq(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
}
