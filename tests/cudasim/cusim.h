/* The simulated CUDA runtime, seen by a test: how it behaves, what it found. The CUDA and cuBLAS
 * calls themselves are the ordinary ones.
 *
 * It runs work on host threads in any order that the streams and events allow, and checks that this
 * freedom does no harm: every access of queued work and every declared access of the host must be
 * ordered against every other access to the same bytes. What it finds wrong is a report; a report's
 * first word says of which kind:
 *   ORDER     two accesses to the same bytes, one a write, that nothing orders
 *   HANDOVER  two host threads use one event without an order (separate_hosts)
 *   BOUNDS    work reaches outside its allocation     OVERRUN  bytes behind an allocation changed
 *   FREE      memory freed while work may use it      DIRECTION  a copy's kind does not fit its
 * pointers HOST      the host touches device memory, or pinned memory in use (guard_pinned) FAULT
 * work failed by itself (illegal address, divergent barrier)
 *
 * Link or load ONE copy of the simulator: a program linked with libcusim.so may also open it as its
 * cuBLAS; with the static library it may not. */
#ifndef CUSIM_H
#define CUSIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUSIM_API __attribute__((visibility("default")))

typedef enum cusim_scheduler {
    CUSIM_INLINE,  /* work runs when it is queued */
    CUSIM_THREADS, /* a thread a stream, with random delays of up to max_delay_us before each work
                    */
    CUSIM_PCT      /* nothing runs until the host waits; then one at a time, by random priorities of
                      the streams. With one host thread the same seed gives the same order. */
} cusim_scheduler;

typedef struct cusim_config {
    int devices;               /* in the machine; CUDA_VISIBLE_DEVICES chooses among them */
    int unusable;              /* every call gives this error: 34, 35 (driver), 100 (no device) */
    bool no_kernel_image;      /* a kernel's launch gives cudaErrorNoKernelImageForDevice */
    int driver_version;        /* as 13000; 0 when unusable */
    size_t device_bytes;       /* of each */
    size_t reserved_bytes;     /* of these, taken before the first allocation */
    size_t granularity_bytes;  /* allocations are charged in multiples of this */
    size_t pinned_bytes;       /* of pinned memory at once; 0: no limit */
    size_t blas_handle_bytes;  /* device memory of a cuBLAS handle */
    size_t blas_default_bytes; /* further, from its first product without cublasSetWorkspace */
    cusim_scheduler scheduler;
    uint64_t seed;
    unsigned max_delay_us;
    bool check_order;
    bool guard_pinned;   /* pages in use by queued copies fault when the host touches them */
    bool separate_hosts; /* host threads are ordered by cusim_give and cusim_take only */
    int kernel_order;    /* of a grid's threads: 0 forward, 1 backward, 2 random */
} cusim_config;

/* The defaults, changed by the environment, so that a whole program can be run on the simulator:
 * CUSIM_SCHEDULER (inline, threads, pct), CUSIM_SEED, CUSIM_DELAY_US, CUSIM_DEVICES,
 * CUSIM_DEVICE_BYTES, CUSIM_UNUSABLE, CUSIM_GUARD; CUSIM_FAULT=CALL:NTH:HOW:ERROR (CALL may be
 * "any", HOW a number of cusim_fault_kind); CUSIM_STRICT=1: at exit, print reports and leaks to
 * standard error and, when there are any, end with status 99. */
CUSIM_API void cusim_config_default(cusim_config *out);

/* Forget everything (memory, streams, faults, reports, counts) and start anew; NULL: defaults. No
 * other thread may use the simulator meanwhile. */
CUSIM_API void cusim_reset(const cusim_config *config);

typedef enum cusim_fault_kind {
    CUSIM_FAIL_NOW,   /* the call returns the error and does nothing (a call that frees, frees) */
    CUSIM_FAIL_LATER, /* the call succeeds; its work (or, if it queues none, the next to run) fails,
                         and the device with it */
    CUSIM_FAIL_STICKY, /* the device is lost: this call and all later ones return the error */
    CUSIM_FLIP_BIT     /* the work succeeds with one bit of its output wrong */
} cusim_fault_kind;

/* Let the nth call from now on (1: the next) of `call` ("cudaMalloc", "cublasSgemm"; NULL: of any)
 * fail with a cudaError_t. cuBLAS calls give the status that fits it. */
CUSIM_API void cusim_fault(const char *call, uint64_t nth, cusim_fault_kind how, int error);
/* Faults planned and not yet met. */
CUSIM_API size_t cusim_faults_left(void);

/* Calls since the reset; NULL: of all that cusim_fault can make fail. */
CUSIM_API uint64_t cusim_calls(const char *call);
/* The calls seen since the reset, by name, in order of name; NULL past the last. */
CUSIM_API const char *cusim_call_name(size_t index);

/* Reports of a kind (a first word, as above); NULL: of all. */
CUSIM_API size_t cusim_report_count(const char *kind);
/* "" past the last. Valid until the next reset. */
CUSIM_API const char *cusim_report(size_t index);

/* Allocations, streams, events and cuBLAS handles alive; a line on each goes to `text` if there is
 * one. */
CUSIM_API size_t cusim_leaks(char *text, size_t size);

typedef struct cusim_stats {
    uint64_t used_bytes, peak_bytes; /* of device memory, all devices, as charged */
    uint64_t pinned_bytes, pinned_peak_bytes;
    uint64_t h2d_bytes, d2h_bytes, d2d_bytes; /* queued for copying */
    uint64_t operations;                      /* run */
    uint64_t pageable_copies;    /* asynchronous copies that pageable memory made less so */
    uint64_t foreign_copies;     /* by threads whose current device is not that of the stream */
    uint64_t products;           /* cuBLAS */
    uint64_t default_workspaces; /* products that ran in cuBLAS' own workspace */
} cusim_stats;

CUSIM_API void cusim_get_stats(cusim_stats *out);

/* Say that the host is about to access pinned memory. Ignored for memory the simulator does not
 * know, except that device memory is reported. `what` is for the report. */
CUSIM_API void cusim_host_read(const void *ptr, size_t bytes, const char *what);
CUSIM_API void cusim_host_write(const void *ptr, size_t bytes, const char *what);

/* separate_hosts: what this thread has done is ordered before what a thread does that takes the
 * same token later. Without separate_hosts all host threads count as one, and these do nothing. */
CUSIM_API void cusim_give(const void *token);
CUSIM_API void cusim_take(const void *token);

/* An access of queued work: `rows` rows of row_bytes, `pitch` bytes apart. */
typedef struct cusim_access {
    const void *ptr;
    size_t row_bytes, pitch, rows;
    bool write;
} cusim_access;

/* Where the simulation keeps what a device pointer points to. */
CUSIM_API void *cusim_memory(const void *device_ptr);

#ifdef __cplusplus
}
#endif
#endif
