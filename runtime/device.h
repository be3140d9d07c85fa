/* What computes. A device is a table of functions without optional entries; how devices differ is
 * data in their info. Work is queued; events are points in a queue. On a device with host memory
 * (the CPU) queues are immediate: a call returns when its work is done. */
#ifndef JK_RUNTIME_DEVICE_H
#define JK_RUNTIME_DEVICE_H

#include "common/base.h"
#include "runtime/placement.h"

typedef struct jk_device jk_device;
typedef struct jk_queue jk_queue;
typedef struct jk_event jk_event;

typedef struct jk_device_info {
    char name[64];         /* as the device option takes it */
    char description[160]; /* model, library */
    char advice[256];      /* what would make products faster; "" */
    uint64_t total_bytes;
    uint64_t free_bytes;
    size_t alignment;  /* of mem_alloc, at least */
    bool host_memory;  /* staging and device memory are one: files are read straight into it */
    bool shared_cores; /* products run on the cores that also read and write files */
    int cores;         /* processors of the host that this process may use; 0 elsewhere */
    /* Larger products are split, so that canceling stays prompt where one cannot be interrupted; 0:
     * no need to. */
    double gemm_flops_max;
    bool f16, bf16;           /* can multiply these as they are, with sums in f32 */
    bool tf32;                /* can multiply f32 with rounded inputs, when asked to */
    size_t workspace_bytes;   /* that products like to have beside their operands; 0: none */
    char pci_bus_id[20];      /* "" where there is none */
    const jk_placement *near; /* what of the machine is next to the device; NULL: no matter */
    /* With memory of its own, estimates to rank plans by; a second. */
    double flops_f32, flops_f64, copy_bytes_per_second, memory_bytes_per_second;
} jk_device_info;

/* Of a budget, what to give to products as a workspace: all that they like where that is little. */
size_t jk_device_workspace(const jk_device_info *info, uint64_t budget_bytes);

/* What a device may need to be told when it is opened; all NULL is "nothing said". */
typedef struct jk_device_options {
    const char *cublas; /* the file to load cuBLAS from */
    bool complete;      /* refuse a device that lacks a library for products; else that shows at the
                           first one */
} jk_device_options;

/* c[m x n] = alpha * op(a)[m x k] * op(b)[k x n] + beta * c, row-major, leading dimensions in
 * elements; a transposed operand is stored as its transpose. beta 0 overwrites without reading. */
typedef struct jk_gemm {
    jask_dtype dtype;       /* of c, and of sums */
    jask_dtype input_dtype; /* of a and b: NONE is dtype; f16 or bf16 where info says so */
    bool trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    bool tf32; /* inputs may be rounded, where info.tf32 says that the device can */
    /* Sums are made in the order of kernels/host_ordered.h: panels of k that are added up must begin at
     * multiples of its slab. */
    bool ordered;
    int threads; /* for that, on the host */
    /* Device memory, aligned as mem_alloc does, that this product and others of its queue may
     * scribble on. */
    void *workspace;
    size_t workspace_bytes;
} jk_gemm;

typedef struct jk_copy {
    void *dst;
    const void *src;
    size_t dst_pitch, src_pitch; /* bytes from row to row */
    size_t row_bytes;
    size_t rows;
} jk_copy;

typedef struct jk_device_table {
    const char *kind; /* "host", "cuda" */
    /* How many there are, 0 with a reason in `note` (never an error: absence is normal). */
    int (*count)(char *note, size_t note_size);
    /* options may be NULL. */
    jask_status (*open)(int index, const jk_device_options *options, jk_device **out,
                        jask_error *err);
    void (*close)(jk_device *dev); /* NULL allowed */
    /* Each thread that is only the library's calls it before it uses the device. */
    void (*begin_thread)(jk_device *dev);
    jask_status (*info)(jk_device *dev, jk_device_info *out, jask_error *err);

    jask_status (*mem_alloc)(jk_device *dev, size_t bytes, void **out, jask_error *err);
    void (*mem_free)(jk_device *dev, void *ptr, size_t bytes);
    /* Host memory that the device copies from at full speed. */
    jask_status (*pin_alloc)(jk_device *dev, size_t bytes, void **out, jask_error *err);
    void (*pin_free)(jk_device *dev, void *ptr, size_t bytes);

    jask_status (*queue_open)(jk_device *dev, jk_queue **out, jask_error *err);
    void (*queue_close)(jk_queue *queue); /* waits; NULL allowed */
    jask_status (*queue_drain)(jk_queue *queue, jask_error *err);

    jask_status (*event_open)(jk_device *dev, jk_event **out, jask_error *err);
    void (*event_close)(jk_event *event); /* NULL allowed */
    jask_status (*event_record)(jk_event *event, jk_queue *queue, jask_error *err);
    /* Work queued after this runs only when the event's work is done. The caller does not wait. */
    jask_status (*queue_await)(jk_queue *queue, jk_event *event, jask_error *err);
    /* The caller waits. Asynchronous failures surface here and in queue_drain. */
    jask_status (*event_wait)(jk_event *event, jask_error *err);

    jask_status (*upload)(jk_queue *queue, const jk_copy *copy, jask_error *err);
    jask_status (*download)(jk_queue *queue, const jk_copy *copy, jask_error *err);
    jask_status (*gemm)(jk_queue *queue, const jk_gemm *gemm, jask_error *err);
} jk_device_table;

/* An open device: its table, and the handle that the table's functions take. */
typedef struct jk_device_ref {
    const jk_device_table *table;
    jk_device *dev;
    jk_device_info info;
    char note[256]; /* "auto": why not a better one; else "" */
} jk_device_ref;

extern const jk_device_table jk_device_host;
extern const jk_device_table jk_device_cuda; /* where built */

/* Memory that an open host (NULL allowed: none) keeps for the next operation, and that counts as taken. */
uint64_t jk_device_host_spare(jk_device *host);

/* The tables this build has, NULL-ended, in the order "auto" tries them. */
extern const jk_device_table *const jk_device_tables[];

/* Open what the device option names: "auto" or a kind, with an optional ":index". DEVICE with what
 * can be had for a name that cannot. */
jask_status jk_device_select(const char *name, const jk_device_options *options, jk_device_ref *out,
                             jask_error *err);
void jk_device_release(jk_device_ref *ref);

#endif
