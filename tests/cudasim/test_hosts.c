/* Several host threads. The simulator takes them for one, or, when told to, for as many as there
 * are, ordered by what they hand to each other. Here a thread fills a slot for the other, which
 * uses it. */
#include "cusim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

typedef struct shared {
    pthread_barrier_t handed, done;
    bool give, take;
    char *device, *pinned;
    cudaStream_t up;
    cudaEvent_t filled;
} shared;

static void *fill(void *arg)
{
    shared *x = arg;
    cusim_host_write(x->pinned, 64, "filling");
    cudaMemcpyAsync(x->device, x->pinned, 64, cudaMemcpyHostToDevice, x->up);
    cudaEventRecord(x->filled, x->up);
    if (x->give)
        cusim_give(x);
    pthread_barrier_wait(&x->handed);
    pthread_barrier_wait(&x->done);
    return NULL;
}

static void open_shared(shared *x, bool separate)
{
    cusim_config config;
    cusim_config_default(&config);
    config.scheduler = CUSIM_PCT;
    config.separate_hosts = separate;
    cusim_reset(&config);
    cr_assert_eq(cudaMalloc((void **)&x->device, 64), cudaSuccess);
    cr_assert_eq(cudaHostAlloc((void **)&x->pinned, 64, cudaHostAllocDefault), cudaSuccess);
    cr_assert_eq(cudaStreamCreateWithFlags(&x->up, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaEventCreateWithFlags(&x->filled, cudaEventDisableTiming), cudaSuccess);
    pthread_barrier_init(&x->handed, NULL, 2);
    pthread_barrier_init(&x->done, NULL, 2);
}

/* How many reports there are when the event that orders the device's work is waited for. */
static size_t use_what_was_filled(bool separate, bool give, bool take)
{
    shared x = {.give = give, .take = take};
    pthread_t thread;
    cudaStream_t compute;
    open_shared(&x, separate);
    pthread_create(&thread, NULL, fill, &x);
    pthread_barrier_wait(&x.handed);
    if (take)
        cusim_take(&x);
    cr_assert_eq(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaStreamWaitEvent(compute, x.filled, 0), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(x.device, 0, 64, compute), cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(compute), cudaSuccess);
    pthread_barrier_wait(&x.done);
    pthread_join(thread, NULL);
    cr_assert_eq(cudaFree(x.device), cudaSuccess);
    cr_assert_eq(cusim_report_count(NULL), cusim_report_count("HANDOVER"), "%s", cusim_report(0));
    return cusim_report_count("HANDOVER");
}

Test(hosts, are_one_unless_told_otherwise)
{
    cr_assert_eq(use_what_was_filled(false, false, false), 0);
}

Test(hosts, that_hand_over_are_ordered)
{
    cr_assert_eq(use_what_was_filled(true, true, true), 0);
}

Test(hosts, that_do_not_hand_over_are_reported_although_the_event_would_order_the_work)
{
    cr_assert_eq(use_what_was_filled(true, true, false), 1);
    cr_assert_eq(use_what_was_filled(true, false, true), 1);
}

Test(hosts, accesses_without_a_hand_over_are_reported)
{
    for (int take = 0; take < 2; take++) {
        shared x = {.give = true};
        pthread_t thread;
        open_shared(&x, true);
        pthread_create(&thread, NULL, fill, &x);
        pthread_barrier_wait(&x.handed);
        if (take)
            cusim_take(&x);
        /* Reads beside the copy that reads: only the filling is in the way. */
        cusim_host_read(x.pinned, 64, "looking");
        cr_assert_eq(cusim_report_count("ORDER"), take ? 0 : 1);
        pthread_barrier_wait(&x.done);
        pthread_join(thread, NULL);
        cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
        cusim_host_write(x.pinned, 64, "filling again");
        cr_assert_eq(cusim_report_count("ORDER"), take ? 0 : 1, "joining a thread orders");
    }
}
