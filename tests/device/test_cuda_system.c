/* The CUDA device where the system's calls do not give what they usually do: where cuBLAS is looked
 * for, memory that is not there, and callers that want no message. */
#include "contract.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void begin(void)
{
    alarm(120);
}

TestSuite(cuda_system, .init = begin);

/* Libraries: only the one whose name ends in `library_there` can be loaded, and is the simulator.
 * A pattern has one match, itself. */
static const char *library_there;
static char searched[16][128];
static size_t searches;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    size_t end = library_there ? strlen(library_there) : 0;
    if (searches < sizeof searched / sizeof *searched)
        snprintf(searched[searches++], sizeof *searched, "%s", name);
    if (end == 0 || strlen(name) < end || strcmp(name + strlen(name) - end, library_there) != 0)
        return NULL;
    return __real_dlopen(sim_cublas(), flags);
}

int __wrap_glob64(const char *pattern, int flags, int (*fail)(const char *, int), glob_t *out);
int __wrap_glob64(const char *pattern, int flags, int (*fail)(const char *, int), glob_t *out)
{
    (void)flags, (void)fail;
    if (strstr(pattern, "/opt/"))
        return GLOB_NOMATCH;
    out->gl_pathv = calloc(2, sizeof *out->gl_pathv);
    out->gl_pathv[0] = strdup(pattern);
    out->gl_pathc = 1;
    return 0;
}

void __wrap_globfree64(glob_t *found);
void __wrap_globfree64(glob_t *found)
{
    free(found->gl_pathv[0]);
    free(found->gl_pathv);
}

/* Memory: the nth request from now on is refused. */
static int refuse_in;

static bool refused(void)
{
    return refuse_in > 0 && --refuse_in == 0;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return refused() ? NULL : __real_calloc(count, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return refused() ? NULL : __real_strdup(text);
}

Test(cuda_system, cublas_is_looked_for_by_soname_in_known_places_and_by_name)
{
    jk_device_options options = {.complete = true};
    jk_device_ref ref;
    jask_error err;
    cusim_reset(NULL);
    cr_assert_eq(jk_device_select("cuda", &options, &ref, &err), JASK_ERR_DEVICE);
    cr_assert_gt(searches, 6);
    for (size_t i = 0; i < searches; i++) {
        cr_assert_eq(strchr(searched[i], '/') == NULL, i == 0 || i == searches - 1, "%s",
                     searched[i]);
        cr_assert_not_null(strstr(searched[i], "libcublas.so"));
        if (i < 3)
            cr_assert_not_null(strstr(err.msg, searched[i]), "%s not in: %s", searched[i], err.msg);
    }
    cr_assert_str_eq(searched[searches - 1], "libcublas.so");
    cr_assert_not_null(strstr(err.msg, "JASK_CUBLAS"), "%s", err.msg);
    sim_check_clean("case", 0);
}

Test(cuda_system, what_was_found_is_used)
{
    static const char *const places[] = {"libcublas.so.13", "cublas/lib/libcublas.so.13",
                                         "libcublas.so"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        jk_device_ref ref;
        jask_error err;
        cusim_reset(NULL);
        library_there = places[i];
        must(jk_device_select("cuda", NULL, &ref, &err), &err);
        contract_check(ref);
        sim_check_clean("place", i);
    }
}

/* A device with a queue and an event; all closed again. */
static jask_status open_all(jask_error *err)
{
    jk_device_options options = {.cublas = sim_cublas()};
    jk_device_ref ref;
    jk_queue *queue = NULL;
    jk_event *event = NULL;
    jask_status st = jk_device_select("cuda", &options, &ref, err);
    if (st)
        return st;
    st = ref.table->queue_open(ref.dev, &queue, err);
    if (!st)
        st = ref.table->event_open(ref.dev, &event, err);
    ref.table->event_close(event);
    ref.table->queue_close(queue);
    jk_device_release(&ref);
    return st;
}

Test(cuda_system, every_request_for_memory_may_be_refused)
{
    int failures = 0;
    library_there = sim_cublas();
    for (int nth = 1; nth < 100; nth++) {
        jask_error err;
        jask_status st;
        cusim_reset(NULL);
        refuse_in = nth;
        st = open_all(&err);
        sim_check_clean("request", (uint64_t)nth);
        if (refuse_in > 0)
            break; /* there were not so many */
        failures += st != JASK_OK;
        cr_assert(st == JASK_OK || st == JASK_ERR_NOMEM, "request %d: %s", nth, err.msg);
    }
    cr_assert_geq(failures, 4);
}

Test(cuda_system, cublas_may_lack_memory)
{
    float one = 1;
    void *mem;
    jk_gemm g;
    contract_bench b;
    jask_error err;
    cusim_reset(NULL);
    library_there = sim_cublas();
    b.ref = sim_open();
    must(b.ref.table->queue_open(b.ref.dev, &b.queue, &err), &err);
    mem = contract_upload(&b, &one, 4);
    g = contract_square(mem, mem);
    /* Also for a caller that wants no message. */
    for (int i = 0; i < 2; i++) {
        cusim_fault("cublasGemmEx", 1, CUSIM_FAIL_NOW, cudaErrorMemoryAllocation);
        cr_assert_eq(b.ref.table->gemm(b.queue, &g, i ? NULL : &err), JASK_ERR_NOMEM);
        cr_assert_not_null(strstr(err.msg, "lower the memory budget"), "%s", err.msg);
        cusim_fault("cudaMalloc", 1, CUSIM_FAIL_NOW, cudaErrorMemoryAllocation);
        cr_assert_eq(b.ref.table->mem_alloc(b.ref.dev, 4, &mem, i ? NULL : &err), JASK_ERR_NOMEM);
    }
    must(b.ref.table->gemm(b.queue, &g, &err), &err);
    b.ref.table->queue_close(b.queue);
    b.ref.table->mem_free(b.ref.dev, g.c, 4);
    jk_device_release(&b.ref);
    sim_check_clean("case", 0);
}

/* It is the caller's device that cannot be had back; what was asked for is done. */
Test(cuda_system, going_back_to_the_callers_device_may_fail)
{
    cusim_config config = sim_config(1);
    jk_device_ref ref;
    void *mem;
    jask_error err;
    library_there = sim_cublas();
    config.devices = 2;
    cusim_reset(&config);
    ref = sim_open();
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    cusim_fault("cudaSetDevice", 2, CUSIM_FAIL_NOW, cudaErrorInvalidValue);
    must(ref.table->mem_alloc(ref.dev, 64, &mem, &err), &err);
    cr_assert_eq(cudaPeekAtLastError(), cudaSuccess);
    ref.table->mem_free(ref.dev, mem, 64);
    jk_device_release(&ref);
    sim_check_clean("case", 0);
}
