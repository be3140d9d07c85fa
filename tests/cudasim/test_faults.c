#include "cusim.h"
#include "example.h"

#include <criterion/criterion.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

static void start(uint64_t seed)
{
    cusim_config c;
    cusim_config_default(&c);
    c.scheduler = CUSIM_PCT;
    c.seed = seed;
    cusim_reset(&c);
}

/* Fail the nth call of all; false when the program makes fewer. */
static bool fail_nth(uint64_t nth, cusim_fault_kind how)
{
    bool right;
    char leaks[256] = "";
    int error;
    start(nth);
    cusim_fault(NULL, nth, how, cudaErrorLaunchFailure);
    error = example_run(EXAMPLE_ALL_WAITS, &right);
    if (cusim_calls(NULL) < nth)
        return false;
    cr_assert_eq(cusim_leaks(leaks, sizeof leaks), 0, "call %d, kind %d: %s", (int)nth, (int)how,
                 leaks);
    cr_assert_eq(cusim_report_count("ORDER"), 0, "%s", cusim_report(0));
    /* A late fault of a call near the end may find no work left to fail. */
    if (!cusim_faults_left())
        cr_assert_neq(error, 0, "call %d, kind %d went unnoticed", (int)nth, (int)how);
    else
        cr_assert(how == CUSIM_FAIL_LATER && right);
    return true;
}

Test(faults, every_call_can_fail_in_every_way)
{
    for (int how = CUSIM_FAIL_NOW; how <= CUSIM_FAIL_STICKY; how++) {
        uint64_t nth = 1;
        while (fail_nth(nth, (cusim_fault_kind)how))
            nth++;
        cr_assert_gt(nth, 100);
    }
}

Test(faults, the_nth_call_by_name_fails_once)
{
    void *first = NULL, *second = NULL, *third = NULL;
    start(1);
    cusim_fault("cudaMalloc", 2, CUSIM_FAIL_NOW, cudaErrorMemoryAllocation);
    cr_assert_eq(cudaMalloc(&first, 16), cudaSuccess);
    cr_assert_eq(cudaMalloc(&second, 16), cudaErrorMemoryAllocation);
    cr_assert_null(second);
    cr_assert_eq(cudaMalloc(&third, 16), cudaSuccess);
    cr_assert_eq(cusim_calls("cudaMalloc"), 3);
    cr_assert_str_eq(cusim_call_name(0), "cudaMalloc");
    cr_assert_null(cusim_call_name(1));
    cr_assert_eq(cusim_faults_left(), 0);
}

Test(faults, a_late_fault_shows_where_the_host_waits_and_stays)
{
    char *device;
    cudaStream_t stream;
    start(1);
    cr_assert_eq(cudaMalloc((void **)&device, 64), cudaSuccess);
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    cusim_fault("cudaMemsetAsync", 1, CUSIM_FAIL_LATER, cudaErrorIllegalAddress);
    cr_assert_eq(cudaMemsetAsync(device, 0, 64, stream), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    cr_assert_eq(cudaGetLastError(), cudaErrorIllegalAddress);
    cr_assert_eq(cudaGetLastError(), cudaErrorIllegalAddress, "a lost device stays lost");
    cr_assert_eq(cudaFree(device), cudaErrorIllegalAddress);
    cr_assert_eq(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
    cr_assert_eq(cusim_leaks(NULL, 0), 0);
}

Test(faults, an_error_of_a_call_is_told_once_more_then_forgotten)
{
    void *ptr;
    start(1);
    cr_assert_eq(cudaMalloc(&ptr, (size_t)1 << 40), cudaErrorMemoryAllocation);
    cr_assert_eq(cudaMalloc(&ptr, 8), cudaSuccess);
    cr_assert_eq(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    cr_assert_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
}

Test(faults, a_flipped_bit_shows_in_the_result)
{
    bool right;
    for (int scheduler = CUSIM_INLINE; scheduler <= CUSIM_PCT; scheduler++) {
        cusim_config c;
        cusim_config_default(&c);
        c.scheduler = (cusim_scheduler)scheduler;
        cusim_reset(&c);
        cusim_fault("cublasSgemm", 3, CUSIM_FLIP_BIT, 0);
        cr_assert_eq(example_run(EXAMPLE_ALL_WAITS, &right), 0);
        cr_assert_not(right);
        cr_assert_eq(cusim_report_count(NULL), 0);
    }
}

Test(faults, cublas_tells_them_as_its_own_statuses)
{
    const struct {
        int error;
        cublasStatus_t status;
    } rows[] = {
        {cudaErrorMemoryAllocation, CUBLAS_STATUS_ALLOC_FAILED},
        {cudaErrorLaunchFailure, CUBLAS_STATUS_EXECUTION_FAILED},
        {cudaErrorNotSupported, CUBLAS_STATUS_NOT_SUPPORTED},
        {cudaErrorInsufficientDriver, CUBLAS_STATUS_NOT_INITIALIZED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cublasHandle_t handle = NULL;
        start(1);
        cusim_fault("cublasCreate", 1, CUSIM_FAIL_NOW, rows[i].error);
        cr_assert_eq(cublasCreate(&handle), rows[i].status);
        cr_assert_null(handle);
    }
    cr_assert_str_eq(cublasGetStatusString(CUBLAS_STATUS_ALLOC_FAILED),
                     "CUBLAS_STATUS_ALLOC_FAILED");
}
