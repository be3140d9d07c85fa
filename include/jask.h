/** jask: products of arrays that fit neither in GPU memory nor in RAM.
 *
 *  Arrays are files. A planner decides, before anything is read, which tiles visit the device in
 *  which order, so that a memory budget holds and few bytes move; a pipeline carries the plan out.
 *  Without a GPU the same plan runs on the CPU. This header is the whole API and its manual.
 *
 *      jask_error err;
 *      jask_array *a = NULL, *b = NULL;
 *      jask_dot_args args;
 *      jask_dot_args_init(&args, sizeof args);
 *      args.output = "C.npy";
 *      if (jask_set_memory_budget("256MiB", NULL, 0, &err) ||
 *          jask_array_open("A.npy", &a, &err) || jask_array_open("B.npy", &b, &err) ||
 *          jask_dot(NULL, a, b, &args, NULL, NULL, &err))
 *          fprintf(stderr, "%s\n", err.msg);
 *      jask_array_close(a);
 *      jask_array_close(b);
 *
 *  Rules that hold everywhere:
 *  - A function that can fail returns a jask_status, 0 being success, and takes `jask_error *err`
 *    last, which may be NULL. Its outputs are written only on success.
 *  - The library never prints, never exits, installs no signal handler and changes neither the
 *    locale nor the thread count of the BLAS that it shares with the calling program.
 *  - Matrices are row-major: A is m x k, B is k x n, the product m x n.
 *  - Strings given to the library are copied; strings it returns live as long as their owner.
 *  - Structs that begin with `struct_size` can grow: fill them with their _init function, which
 *    takes the size the caller was compiled with.
 *  - A jask_context may be used from several threads at once. A jask_array that is open for
 *    reading may be too; one being written belongs to one thread at a time.
 */
#ifndef JASK_H
#define JASK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JASK_VERSION_MAJOR 0
#define JASK_VERSION_MINOR 1
#define JASK_VERSION_PATCH 0

#if defined(__GNUC__)
#define JASK_API __attribute__((visibility("default")))
#else
#define JASK_API
#endif

/** The version of the library that is running, "major.minor.patch". */
JASK_API const char *jask_version(void);

/* ---- errors ---------------------------------------------------------------------------------- */

typedef enum jask_status {
    JASK_OK = 0,
    JASK_ERR_ARG,    /**< an argument is wrong: shapes, ranges, names */
    JASK_ERR_CONFIG, /**< a setting is missing or wrong: no budget, scratch directory in RAM */
    JASK_ERR_BUDGET, /**< no plan fits the memory budget; the message names the least that does */
    JASK_ERR_NOMEM,  /**< the system refused memory or another resource */
    JASK_ERR_IO,     /**< a file operation failed; sys_errno says why */
    JASK_ERR_FORMAT, /**< a file is not what its name or header claims */
    JASK_ERR_UNSUPPORTED, /**< well-formed, but not something jask does */
    JASK_ERR_DEVICE,      /**< the named device cannot be had, or failed */
    JASK_ERR_CANCELED,    /**< the progress callback asked to stop */
    JASK_ERR_INTERNAL     /**< a fault of jask's own: please report it */
} jask_status;

/** What went wrong: `code` repeats the return value; `sys_errno` is an errno value or 0; `msg` is one
 *  line saying what was tried, on what, with which numbers, and what to do about it. */
typedef struct jask_error {
    jask_status code;
    int sys_errno;
    char msg[1024];
} jask_error;

/** A short name, "budget" for JASK_ERR_BUDGET. Never NULL. */
JASK_API const char *jask_status_name(jask_status status);

/* ---- element types ---------------------------------------------------------------------------- */

/** Known element types. jask_dtype_promote, jask_dot and jask_add say which go together. */
typedef enum jask_dtype {
    JASK_DTYPE_NONE = 0,
    JASK_F16,
    JASK_BF16,
    JASK_F32,
    JASK_F64,
    JASK_C64,
    JASK_C128,
    JASK_I8,
    JASK_I16,
    JASK_I32,
    JASK_I64,
    JASK_U8,
    JASK_U16,
    JASK_U32,
    JASK_U64
} jask_dtype;

/** Bytes of one element; 0 for a value that is no type. */
JASK_API size_t jask_dtype_size(jask_dtype dtype);

/** "f32", "c128", ...; "none" for a value that is no type. */
JASK_API const char *jask_dtype_name(jask_dtype dtype);

/** Read a type's name: jask's ("f32", "bf16"), NumPy's ("float32", "f4", "<f4", "=f8"), any case.
 *  Bare i8, u8 and f16 are jask's, counted in bits; with a mark NumPy's count in bytes holds: <i8 is i64.
 *  A big-endian mark is refused here, because a type has no byte order; raw specifications take it.
 *  @return JASK_OK; JASK_ERR_ARG quoting the text. */
JASK_API jask_status jask_dtype_parse(const char *text, jask_dtype *out, jask_error *err);

/** The type that an operation on arrays of types a and b works in and gives: the smallest that holds
 *  every value of both, so that nothing is lost by converting. Of two types of one name it is that
 *  type. Where there is none, the operation is refused: the row is missing.
 *
 *            u8   i8   u16  i16  u32  i32  u64  i64  f16  bf16 f32  f64  c64  c128
 *      u8    u8   i16  u16  i16  u32  i32  u64  i64  f16  bf16 f32  f64  c64  c128
 *      i8         i8   i32  i16  i64  i32  -    i64  f16  bf16 f32  f64  c64  c128
 *      u16             u16  i32  u32  i32  u64  i64  f32  f32  f32  f64  c64  c128
 *      i16                  i16  i64  i32  -    i64  f32  f32  f32  f64  c64  c128
 *      u32                       u32  i64  u64  i64  f64  f64  f64  f64  c128 c128
 *      i32                            i32  -    i64  f64  f64  f64  f64  c128 c128
 *      u64                                 u64  -    -    -    -    -    -    -
 *      i64                                      i64  -    -    -    -    -    -
 *      f16                                           f16  f32  f32  f64  c64  c128
 *      bf16                                               bf16 f32  f64  c64  c128
 *      f32                                                     f32  f64  c64  c128
 *      f64                                                          f64  c128 c128
 *      c64                                                               c64  c128
 *      c128                                                                   c128
 *
 *  @return JASK_OK; UNSUPPORTED naming the missing row; ARG for what is no type. */
JASK_API jask_status jask_dtype_promote(jask_dtype a, jask_dtype b, jask_dtype *out,
                                        jask_error *err);

/* ---- sizes and pages: the reference's rules ---------------------------------------------------- */

/** Read a memory size: a number with an optional unit, any case, blanks allowed around and between.
 *  KB, KiB, Ki, K and so on up to T are powers of 1024; B and no unit are bytes. Decimal fractions and
 *  exponents are read and the result rounded down. Independent of the locale.
 *  @return JASK_OK; JASK_ERR_ARG quoting the text when it is not a positive size below 2^63: nothing
 *          unreadable ever becomes 0, a default or unlimited. */
JASK_API jask_status jask_parse_size(const char *text, uint64_t *out_bytes, jask_error *err);

/** Write `bytes` as a short text that jask_parse_size reads back to exactly the same number:
 *  "256MiB", "1.5GiB", "1000". `text` holds at least 32 characters. Returns `text`. */
JASK_API char *jask_format_size(uint64_t bytes, char *text, size_t text_size);

/** `bytes` rounded down to a whole number of 4096-byte pages. */
JASK_API uint64_t jask_align_to_os_page(uint64_t bytes);

typedef enum jask_phase { JASK_FORWARD = 0, JASK_BACKWARD } jask_phase;

/** Blocks resident at once in the reference's schedule: forward n+2, backward 2n+2, doubled when
 *  pipelined; n is the number of inputs. Negative n counts as 0. */
JASK_API int64_t jask_peak_blocks(int num_inputs, jask_phase phase, int pipelined);

/** The reference's page shape: the sides of a block, at most `shape[d]` each, such that peak_blocks
 *  blocks of `dtype` fit in `budget_bytes`, an ndim-th root split of one block's elements. Below
 *  peak_blocks x 4096 bytes it answers for 4096-byte blocks (planning refuses such a budget).
 *  `shape` and `out_shape` hold ndim values, 1 <= ndim <= 32.
 *  @return JASK_OK; JASK_ERR_ARG for a bad ndim, a negative extent or an unknown dtype. */
JASK_API jask_status jask_page_shape(uint64_t budget_bytes, jask_dtype dtype, int ndim,
                                     const int64_t *shape, int num_inputs, jask_phase phase,
                                     int pipelined, int64_t *out_shape, jask_error *err);

/* ---- context and options ------------------------------------------------------------------------ */

typedef struct jask_context jask_context;

/** Where a long operation stands. Times in seconds; `seconds_left` is negative while unknown. */
typedef struct jask_progress {
    size_t struct_size;
    int64_t steps_done;
    int64_t steps_total;
    double fraction; /**< of the work, 0 to 1; never decreases, 1 only after the commit */
    uint64_t file_read_bytes;
    uint64_t file_write_bytes;
    double seconds;
    double seconds_left;
} jask_progress;

/** Called from the thread that runs the operation, several times a second, never after it returns.
 *  Non-zero cancels: the operation stops, leaves the target as it was and returns
 *  JASK_ERR_CANCELED. */
typedef int (*jask_progress_fn)(const jask_progress *progress, void *user);

typedef enum jask_log_level {
    JASK_LOG_ERROR = 1, /**< an operation failed; its caller gets the same message */
    JASK_LOG_WARN,      /**< something goes less well than asked for: a budget that was cut */
    JASK_LOG_INFO,      /**< what was decided, and why: budget, device, plan, scratch, fallbacks */
    JASK_LOG_DEBUG      /**< every setting and step */
} jask_log_level;

/** "warn" for JASK_LOG_WARN; "none" for a value that is no level. Never NULL. */
JASK_API const char *jask_log_level_name(jask_log_level level);

/** Called with one line of text, without a newline, that lives until it returns. It comes from the
 *  threads that call jask, never from threads of its own, and one call of a context at a time, so
 *  that it needs no lock for what only one context uses. It must not call jask with that context. */
typedef void (*jask_log_fn)(jask_log_level level, const char *message, void *user);

/** Everything a context can be told. A field left as jask_options_init made it is "not set": then the
 *  environment variable decides, else the default. */
typedef struct jask_options {
    size_t struct_size;
    uint64_t memory_budget_bytes; /**< JASK_MEMORY_BUDGET; bytes resident at once on the device that
                                       computes; on the host device everything: tiles, staging,
                                       buffers. Reduced to 0.8 x what is available, of which a
                                       result that lies in RAM (tmpfs) first takes its size.
                                       0: not set */
    uint64_t host_budget_bytes;   /**< JASK_HOST_BUDGET; beside a GPU: pinned staging, at most half
                                       of it; of the rest, parts of a product's inputs that stay
                                       there so that files are read less often; and sums.
                                       0: not set (256 MiB) */
    const char *scratch_dir;      /**< JASK_SCRATCH_DIR; default ".jask_scratch" under the working
                                       directory; made when first needed. NULL: not set */
    int allow_tmpfs;              /**< JASK_ALLOW_TMPFS; 1 accepts a scratch directory that lies in
                                       RAM, -1 refuses it, 0: not set (refused) */
    const char *device;           /**< JASK_DEVICE; "auto" (the first that can be used), "cuda",
                                       "cuda:N" or "host". NULL: not set */
    const char *planner;          /**< JASK_PLANNER; "auto" (least predicted time), "bytes" (fewest
                                       bytes moved) or "page" (the reference's). NULL: not set */
    int pipeline;                 /**< JASK_PIPELINE; 1 overlaps reading, computing and writing, -1
                                       does one after the other, 0: not set (overlap) */
    int sync;                     /**< JASK_SYNC; 1 makes a result durable before it gets its name,
                                       -1 leaves that to the system, 0: not set (durable) */
    int io_threads;            /**< JASK_IO_THREADS; threads that read files, 1 to 64. 0: not set */
    jask_progress_fn progress; /**< may be NULL */
    void *progress_user;       /**< handed to progress */
    const char *precision;     /**< JASK_PRECISION; "f32" (IEEE arithmetic) or "tf32" (lets a
                                       device that can round the inputs of f32 products to 10 bits,
                                       which is faster). NULL: not set (f32) */
    const char *cublas;        /**< JASK_CUBLAS; the file of the cuBLAS library for a CUDA device.
                                       NULL: not set (searched for) */
    jask_log_fn log;           /**< may be NULL: the library itself prints nothing */
    void *log_user;            /**< handed to log */
    const char *log_level;     /**< JASK_LOG_LEVEL; the last level that is logged: "error", "warn",
                                       "info" or "debug". NULL: not set (warn) */
    const char *io;            /**< JASK_IO; how inputs are read and products written: "pread"
                                       (through the page cache), "direct" (around it, where the file
                                       system can) or "auto" (inputs around it that are not there
                                       already and do not fit beside the budget, or have 1 GiB or
                                       more on a disk of this machine that a product reads once, in
                                       less time than it multiplies by its plan; results where
                                       `sync` is set, or which do not fit, or have 1 GiB or more
                                       and are written in such time). Only long runs of bytes go
                                       around it; sums and reductions go through it always. NULL: not set (auto) */
    const char *machine;       /**< JASK_MACHINE; what plans are made with instead of what is known
                                       of the device: KEY=NUMBER parted by commas, of flops,
                                       flops_f64, flops_tf32, flops_f16 (of f16 and bf16, where the
                                       device multiplies them as they are), h2d, d2h, disk,
                                       disk_read, disk_write, runs (bytes that lie together in a file
                                       not in the page cache) and memory (a second; K to P are powers
                                       of 1000). gpu=SIZE or host=SIZE describe another machine, for
                                       jask_*_plan* alone: products refuse them. NULL: not set */
    int deterministic;         /**< JASK_DETERMINISTIC; products whose bits depend on the inputs
                                    alone: see jask_dot. 1 yes, -1 no, 0 not set (no) */
} jask_options;

/** Fill `options` with "not set". `struct_size` is sizeof(jask_options) as the caller sees it. */
JASK_API void jask_options_init(jask_options *options, size_t struct_size);

/** Open a context. `options` may be NULL: all from environment and defaults. The scratch directory is
 *  created and examined here when it was named, else at its first use. On the host device a context keeps
 *  the memory of its last operation for the next one that needs as much: it is within the budget, the
 *  system may take it when it was not used for a second (MADV_FREE; a thread sees to that), and
 *  jask_context_close gives it back.
 *  @return JASK_OK; CONFIG for a setting that cannot be read or honoured, naming its source; CONFIG
 *          when no budget is set anywhere; DEVICE when the named device cannot be had; NOMEM; IO. */
JASK_API jask_status jask_context_open(const jask_options *options, jask_context **out,
                                       jask_error *err);

/** Close a context; NULL is allowed. Arrays opened or made through it must be closed before. */
JASK_API void jask_context_close(jask_context *ctx);

/** Set the process-wide default context, which every call uses that is given no context. `budget` is a
 *  size as jask_parse_size reads it; `scratch_dir` NULL is the default; `allow_tmpfs` as in the
 *  options. Replaces an earlier default; operations already running keep the old one.
 *  @return as jask_context_open; JASK_ERR_CONFIG quotes a budget that cannot be read. */
JASK_API jask_status jask_set_memory_budget(const char *budget, const char *scratch_dir,
                                            int allow_tmpfs, jask_error *err);

/** The settings in force in a context. Texts live as long as the context; those of the default one
 *  until another takes its place. */
typedef struct jask_config {
    size_t struct_size;
    uint64_t memory_budget_bytes; /**< after the clamp to 0.8 x available */
    uint64_t asked_budget_bytes;
    uint64_t available_bytes;     /**< when the context was opened, where the budget lies */
    const char *available_source; /**< what set the limit: "MemAvailable", a cgroup's path, or "free
                                       memory of cuda:0" */
    const char *scratch_dir;      /**< absolute */
    const char *device;           /**< the device that works, "host" */
    uint64_t host_budget_bytes;   /**< beside a device with memory of its own; else 0 */
    const char *device_note;      /**< why "auto" took no better device; else "" */
} jask_config;

/** Read the settings in force; ctx NULL is the process-wide default.
 *  @return JASK_OK; JASK_ERR_CONFIG when there is no default yet: call jask_set_memory_budget, or
 *          set JASK_MEMORY_BUDGET. */
JASK_API jask_status jask_get_config(jask_context *ctx, jask_config *out, size_t struct_size,
                                     jask_error *err);

/** Host memory that can be had now: the least of MemAvailable and, for every enclosing control group
 *  (v1 and v2), its limit less its use. `source` (may be NULL) receives what set the limit.
 *  @return JASK_OK; JASK_ERR_IO when the system does not say. */
JASK_API jask_status jask_available_memory(uint64_t *out_bytes, char *source, size_t source_size,
                                           jask_error *err);

/** Processor cores for this process. */
typedef struct jask_cpus {
    size_t struct_size;
    int machine; /**< cores that there are */
    int allowed; /**< of these, those that the process's affinity and cpusets allow */
    int threads; /**< worth computing with: `allowed`, or the quota rounded up where that is less */
    double quota; /**< processors' worth of time that the control groups around this process (v1 and
                       v2) grant at the most; 0: no limit */
    char quota_source[256]; /**< the group's path; "" without a quota */
} jask_cpus;

/** Count the cores that this process may use now.
 *  @return JASK_OK; JASK_ERR_IO when the system does not say. */
JASK_API jask_status jask_get_cpus(jask_cpus *out, size_t struct_size, jask_error *err);

/** One row of the table of settings, which also makes --help, jask-info and the README's table. */
typedef struct jask_setting {
    const char *name;          /**< "memory_budget" */
    const char *environment;   /**< "JASK_MEMORY_BUDGET" */
    const char *type;          /**< "size", "path", "choice", "text", "bool", "count" */
    const char *default_value; /**< as text; "" when there is none */
    const char *help;          /**< one line */
} jask_setting;

/** The number of settings, and row `index` of them (0 <= index < count; NULL outside). */
JASK_API int jask_setting_count(void);
JASK_API const jask_setting *jask_setting_get(int index);

/** The text that setting `index`'s environment variable holds now; NULL when it is not set, or for a bad
 *  index. Tells "nothing said" from "said something unreadable" before a context is opened. */
JASK_API const char *jask_setting_environment(int index);

/** Setting `index` as it is in force in `ctx`: its value as text, and where it came from: "option",
 *  "environment" or "default", and of the machine also "calibration" (jask_calibrate). Both live as long as the context.
 *  @return JASK_OK; JASK_ERR_ARG for a bad index; JASK_ERR_CONFIG without a context. */
JASK_API jask_status jask_context_setting(jask_context *ctx, int index, const char **out_value,
                                          const char **out_source, jask_error *err);

/** One device as jask-info lists it. `usable` is 0 with a reason in `note` when it cannot be had; of a usable
 *  one `note` says what would make it faster, such as a BLAS library that knows the processor; else "". */
typedef struct jask_device_info {
    size_t struct_size;
    char name[64];         /**< as the device option takes it: "host", "cuda:0" */
    char description[160]; /**< model, cores, library and, where it says so, its kernels */
    uint64_t total_bytes;
    uint64_t free_bytes;
    int usable;
    char note[256];
} jask_device_info;

/** Fill row `index` of the devices: every one that is there, and a row for each kind that this build
 *  knows of and none is there.
 *  @return JASK_OK; JASK_ERR_ARG past the last one. */
JASK_API jask_status jask_device_get(int index, jask_device_info *out, size_t struct_size,
                                     jask_error *err);

/** What jask_calibrate measured. Floating point operations, bytes and runs a second; 0: the device has no
 *  such products, its memory is the host's, or the files lie in RAM. */
typedef struct jask_calibration {
    size_t struct_size;
    double flops_f32, flops_f64;
    double flops_tf32, flops_f16, flops_bf16; /**< of a GPU, with sums in f32 */
    double h2d, d2h; /**< alone; of the CPU, what its cores copy from and to the page cache */
    double duplex;   /**< each way while the other one is busy, beside a GPU */
    double memory;   /**< reading and writing what a product adds to */
    double disk_read, disk_write; /**< in the scratch directory, written to be durable */
    double seconds;               /**< that it took */
    char machine[384];            /**< what plans are made with, as the machine option takes it */
    char path[4096];              /**< the file that keeps it */
    double
        runs; /**< short runs, bytes that lie together, of a file that is not in the page cache: what
                      they cost beside their bytes. Plans beside a GPU do not count them: 0 */
} jask_calibration;

/** Measure the device of a context and the disk of its scratch directory, one after the other, and keep
 *  the rates for contexts to come: those on this host with this device whose options and environment say
 *  nothing of a machine plan with them, and jask_context_setting gives "calibration" as the source.
 *  They are kept in $XDG_CACHE_HOME/jask, or $HOME/.cache/jask, in one file for each host and device; it
 *  is used only while processors and device are the ones that it names. Takes a few seconds, memory
 *  within the budgets, at least 16 MiB (and 8 MiB of host memory beside a GPU), and 512 MiB of the
 *  disk, in a file without a name; what else runs meanwhile makes the rates too low. ctx NULL is the
 *  default context, which is none of those to come. Tells of progress, and can be canceled.
 *  @return JASK_OK; CONFIG where there is no cache directory, or a scratch directory that cannot be used;
 *          BUDGET; IO, also when the disk has too little room or the file cannot be kept; NOMEM; DEVICE;
 *          CANCELED. */
JASK_API jask_status jask_calibrate(jask_context *ctx, jask_calibration *out, size_t struct_size,
                                    jask_error *err);

/* ---- arrays ------------------------------------------------------------------------------------- */

#define JASK_MAX_DIMS 32

typedef struct jask_array jask_array;

/** Open an existing file as an array, for reading. `spec` is the path of a .npy file (format 1.0, 2.0
 *  or 3.0, C or Fortran order, either byte order), or a raw file `FILE@DTYPE:D0xD1x...[+OFFSET]`:
 *  C order, little-endian unless DTYPE begins with '>', OFFSET in bytes (a size text), and the file
 *  must be exactly as long as that says. NumPy stores bfloat16 as V2, two bytes without a type: such a
 *  .npy file is opened as `FILE@bf16`, and refused without that word. Reads the header only.
 *  @return JASK_OK; IO; FORMAT for a damaged or foreign file, with expected and actual bytes;
 *          UNSUPPORTED for a type or structure that jask has no name for; ARG for a bad `spec`. */
JASK_API jask_status jask_array_open(const char *spec, jask_array **out, jask_error *err);

/** Make a new array, C order, little-endian, all zero. `path` names a .npy file (1.0; bf16 has the
 *  type V2 there) that appears
 *  only at jask_array_commit; an existing file there is replaced then, whole. With `path` NULL the
 *  array lives in the context's scratch directory, without a name, until it is closed. ctx NULL is the
 *  default context.
 *  @return JASK_OK; ARG; CONFIG (scratch); IO, also when the file system has too little room. */
JASK_API jask_status jask_array_create(jask_context *ctx, const char *path, jask_dtype dtype,
                                       int ndim, const int64_t *shape, jask_array **out,
                                       jask_error *err);

/** Give a created array its name: all bytes written so far are made durable (unless the context says
 *  sync is off) and the file replaces whatever bore the name. Once. A scratch array has no name to be
 *  given: JASK_ERR_ARG.
 *  @return JASK_OK; ARG; IO: then the target is as it was before. */
JASK_API jask_status jask_array_commit(jask_array *array, jask_error *err);

/** Close an array; NULL is allowed. What was created and not committed disappears without a trace. So
 *  does what a kill interrupts, with two exceptions: on a file system that has no nameless files a
 *  hidden `.<name>.jask-<16 digits>` stays; and between the two calls that replace an older file by a
 *  finished one, `.<name>.jask-commit<digit>`, which the next array created under that name removes. */
JASK_API void jask_array_close(jask_array *array);

typedef struct jask_array_info {
    size_t struct_size;
    const char *path; /**< as opened; "(scratch)" for one without a name. Lives with the array */
    jask_dtype dtype;
    int big_endian;
    int fortran_order;
    int ndim;
    int64_t shape[JASK_MAX_DIMS];
    int64_t stride_bytes[JASK_MAX_DIMS];
    uint64_t data_offset; /**< of the first element in the file */
    uint64_t data_bytes;
    uint64_t elements;
    char format[16]; /**< "npy 1.0", "raw" */
} jask_array_info;

/** Describe an array. No file is touched. */
JASK_API void jask_array_get_info(const jask_array *array, jask_array_info *out,
                                  size_t struct_size);

/** Copy `count` elements, beginning with element `first` in logical (C) order, into `out`, in the
 *  array's type and this machine's byte order. Reads only what is asked.
 *  @return JASK_OK; ARG outside the array; IO; FORMAT when the file has become shorter. */
JASK_API jask_status jask_array_read(const jask_array *array, uint64_t first, uint64_t count,
                                     void *out, jask_error *err);

/** Copy `count` elements from `data` into a created, uncommitted array, beginning with element
 *  `first` in logical order.
 *  @return JASK_OK; ARG outside the array or for one that is not being written; IO. */
JASK_API jask_status jask_array_write(jask_array *array, uint64_t first, uint64_t count,
                                      const void *data, jask_error *err);

/** Map the data into memory, for the caller's own use: read-only for an opened array, shared and
 *  writable for a created one. The pointer lives until the array is closed; the bytes are as they lie
 *  in the file (order, byte order, and no alignment promised). Reading a mapped file that another
 *  program shortens ends in SIGBUS: jask itself never computes from this mapping. An array without
 *  elements gives NULL.
 *  @return JASK_OK; IO; NOMEM when address space is limited. */
JASK_API jask_status jask_array_map(jask_array *array, void **out, jask_error *err);

/* ---- plans -------------------------------------------------------------------------------------- */

typedef struct jask_plan jask_plan;

/** A plan in numbers. Tile (bm, bn, bk) covers m, n, k. Bytes are exact predictions: an operation that
 *  follows the plan counts the same. */
typedef struct jask_plan_info {
    size_t struct_size;
    char schedule[32]; /**< "page", "c-stationary"; "joint" (both gradients); "blocks" */
    char planner[16];  /**< "auto", "bytes", "page" */
    int64_t m, n, k;
    int64_t bm, bn, bk;
    int64_t tiles; /**< of the result; those of "joint", and where sums stay in host memory,
                        include sums that are added to later */
    int64_t steps;
    uint64_t h2d_bytes;
    int64_t h2d_pages;
    uint64_t d2h_bytes;
    int64_t d2h_pages;
    uint64_t file_read_bytes;
    uint64_t file_write_bytes;
    uint64_t peak_bytes;
    uint64_t budget_bytes;
    uint64_t lower_bound_bytes; /**< no schedule in this memory moves fewer host-to-device plus
                                     device-to-host bytes; see planner/bound.c for the source */
    double seconds;             /**< predicted */
} jask_plan_info;

JASK_API void jask_plan_get_info(const jask_plan *plan, jask_plan_info *out, size_t struct_size);

/** Write the plan as text (json 0) or as one JSON object (json 1), NUL-terminated, cut off at
 *  `text_size`. Returns the length the whole text has, as snprintf does. */
JASK_API size_t jask_plan_format(const jask_plan *plan, int json, char *text, size_t text_size);

/** Free a plan; NULL is allowed. */
JASK_API void jask_plan_close(jask_plan *plan);

/* ---- operations --------------------------------------------------------------------------------- */

/** Bytes and pages that moved. file_* was asked of files, exactly as planned; disk_* is what the
 *  kernel moved for the whole process meanwhile (/proc/self/io), 0 from a warm page cache. */
typedef struct jask_io_cost {
    size_t struct_size;
    int64_t h2d_pages; /**< tiles copied to the device */
    uint64_t h2d_bytes;
    int64_t d2h_pages;
    uint64_t d2h_bytes;
    uint64_t file_read_bytes;
    uint64_t file_write_bytes;
    uint64_t disk_read_bytes;
    uint64_t disk_write_bytes;
} jask_io_cost;

/** The sum over all operations of a context since it was opened. ctx NULL is the default context. */
JASK_API jask_status jask_context_io_cost(jask_context *ctx, jask_io_cost *out, size_t struct_size,
                                          jask_error *err);

/** What an operation did. Seconds of stages overlap, so they may add up to more than `seconds`. */
typedef struct jask_report {
    size_t struct_size;
    char op[16]; /**< "dot", "matmul", "dot_backward", "add", "add_backward", "reduce" */
    jask_dtype dtype;
    char device[64]; /**< the one that did the work */
    jask_plan_info plan;
    jask_io_cost io;
    double seconds;         /**< from call to committed result */
    double read_seconds;    /**< readers busy, summed over threads */
    double compute_seconds; /**< products */
    double write_seconds;   /**< writer busy */
    double commit_seconds;  /**< making the result durable and naming it */
    double stall_seconds;   /**< the products waited for data */
    uint64_t budget_bytes;
    uint64_t peak_device_bytes;
    uint64_t
        peak_host_bytes; /**< staging beside a device; on the host device all is device memory */
    char precision[8];   /**< how products were computed: "f32", "tf32" or "f64" */
    char device_description[160]; /**< model and, for a card, its PCI bus id */
    char device_note[256];        /**< why "auto" took no better device; else "" */
    char note[256];        /**< a warning: what went less well than planned, such as pinned memory
                                that was refused, or than it could, such as a BLAS library that
                                makes no use of the processor; else "" */
    int64_t resumed_tiles; /**< of the result, that an earlier run had finished */
    jask_io_cost planned;  /**< what the plan says that this run moves: all of it, or what the
                                resumed tiles have left over. `io` is equal, but for disk_* */
    double read_stall_seconds;  /**< readers waited for room, summed over threads */
    double write_stall_seconds; /**< the writer waited for something to write */
    char io_engine[16]; /**< how the inputs were read: "pread", "direct", or "mixed" when that
                                differs from one to the other */
    int deterministic;  /**< 1: the bits of a product depend on its inputs alone */
    char write_engine
        [16]; /**< how results were written: "pwrite", "direct" (long runs), or "mixed" */
} jask_report;

/** What is used of a stored matrix. */
enum {
    JASK_NO_TRANSPOSE = 0,
    JASK_TRANSPOSE = 1,
    JASK_CONJUGATE_TRANSPOSE = 2 /**< of real numbers the same as JASK_TRANSPOSE */
};

/** How a product is to be made. */
typedef struct jask_dot_args {
    size_t struct_size;
    double alpha;        /**< 1 */
    double beta;         /**< 0 */
    int transpose_a;     /**< JASK_NO_TRANSPOSE (0); of A's last two dimensions */
    int transpose_b;     /**< JASK_NO_TRANSPOSE (0) */
    const jask_array *c; /**< read only when beta is not 0; of the product's shape, and of a
                              type that the one which computes holds. May be NULL when beta is 0 */
    const char *output;  /**< path of the .npy result. NULL: a nameless array in scratch */
    int resume;        /**< 0; non-zero makes a run that can be stopped or killed and started again:
                              see jask_dot */
    const char *trace; /**< path of a timeline to write: what each thread did when, as JSON for
                              chrome://tracing and Perfetto. NULL: none */
    jask_dtype dtype;  /**< of the result; JASK_DTYPE_NONE (0): see jask_dot */
} jask_dot_args;

JASK_API void jask_dot_args_init(jask_dot_args *args, size_t struct_size);

/** D = alpha * op(A) * op(B) + beta * C, on arrays that need not fit in memory.
 *
 *  op(A) is m x k, op(B) k x n, C and D m x n; D is .npy 1.0, C order, little-endian. As in NumPy, a 1-D A is a row and a 1-D B a column (neither has a transpose), and C
 *  and D lack that dimension: vector times vector has none. Sums over k run slab by slab in a fixed order, in the type below; the
 *  same inputs, plan, BLAS and thread count give the same bits. NaN and Inf follow IEEE 754. With
 *  beta 0, C is never read. An empty k gives zeros.
 *
 *  In a context that is deterministic (jask_options) the bits follow from the inputs, alpha and beta alone: not
 *  from budget, planner, pipeline, threads, a resumed run, device or BLAS, which is not used. D begins as beta * C, rounded
 *  once. For each slab of 256 indices of k, ascending, t begins at 0; for each index, ascending, t = fma(a, b, t);
 *  then D = fma(alpha, t, D). Complex numbers have a t for the real and one for the imaginary part of a, each with the parts of b,
 *  which are joined before they are added to D. f16, bf16 and integers are converted first. All sums are in the type below; tf32
 *  is not used, and vectors of f64 are summed so too, without compensation. That needs a processor with AVX2 and FMA to
 *  be fast, elsewhere it is slow; what NaN look like inside is not promised.
 *
 *  Types: products of floating-point and complex numbers are summed in the type that
 *  jask_dtype_promote gives for A and B, and for D's when that is wider; f16 and bf16 in f32. D is of
 *  that promoted type, or of args->dtype, rounded once: f16, bf16 and f32 from sums in f32, f32 and f64
 *  from f64, c64 and c128 from c128. Integers of up to 16 bits among themselves are exact and give i32
 *  (8 bits) or i64 (16 bits), or the integer type of args->dtype; an element that it cannot hold is an
 *  error, as is a k for which sums may exceed 2^53. Integers of up to 32 bits go with floating-point
 *  numbers as in the table, and among themselves with args->dtype f64; others are refused with the
 *  missing row. Of two vectors of f32 or c64 the sum is made in twice the precision, of f64 on the host
 *  device with compensation for every rounding. A device that does not take a type gets it converted.
 *
 *  Blocks until D is committed under args->output, replacing whatever bore that name, which may be
 *  one of the inputs: they are read to the end first. With out_d not NULL the result is also handed
 *  over as an open array, to be closed by the caller; a result without a name needs it.
 *  With args->resume, which needs an output that is none of the inputs, tiles of the result that are
 *  finished survive the run: a failure, a cancel, a kill or a power cut. They lie in
 *  `<output>.jask-partial`, and `<output>.jask-journal` says what they are tiles of: everything that
 *  decides the result's bits (tiles and order, scalars, device, BLAS and its threads) and of each
 *  input its path, size, time, layout and a hash of 64 samples of 4 KiB spread over the file. The
 *  same call again goes on after the last tile that was recorded, at most a second or 64 MiB of
 *  finished work earlier, and gives the bits that an undisturbed run gives. Where something has
 *  changed it is refused, with what that is; then remove both files to start over. So give the
 *  budget: a default that follows free memory makes other plans. At the end both files are gone.
 *  Where files can be locked, a second run for an output that one is being made for is refused.
 *
 *  `args` NULL is the plain product; `report` may be NULL, else its struct_size must be set.
 *  `ctx` NULL is the process-wide default.
 *  @return JASK_OK; ARG: shapes, types or arguments that do not fit together; CONFIG: no default
 *          context; BUDGET: the message names the least budget that works; NOMEM; IO; FORMAT: an
 *          input changed its size meanwhile, or a journal is damaged; DEVICE; CANCELED. After any
 *          failure the target is as it was before. */
JASK_API jask_status jask_dot(jask_context *ctx, const jask_array *a, const jask_array *b,
                              const jask_dot_args *args, jask_array **out_d, jask_report *report,
                              jask_error *err);

/** The products of batches of matrices: D[...] = alpha * op(A[...]) * op(B[...]) + beta * C[...].
 *
 *  As NumPy's matmul: the last two dimensions are those of jask_dot, also for 1-D operands; those before
 *  are batches, which are broadcast: aligned at the last one, where an extent of 1, or none, serves
 *  every index of the other operand. C has D's shape. Batched operands are in C order. Batches are one
 *  product (one plan, one report, one result); where one B serves them, their rows are taken together
 *  as those of a single larger A. Everything else is as in jask_dot.
 *  @return as jask_dot; UNSUPPORTED for batches in Fortran order. */
JASK_API jask_status jask_matmul(jask_context *ctx, const jask_array *a, const jask_array *b,
                                 const jask_dot_args *args, jask_array **out_d, jask_report *report,
                                 jask_error *err);

/** Make the plan that jask_matmul would follow, without reading any data.
 *  @return as jask_matmul, less IO and CANCELED. */
JASK_API jask_status jask_matmul_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                                      const jask_dot_args *args, jask_plan **out, jask_error *err);

/** Make the plan that jask_dot would follow, without reading any data. Takes well under 10 ms.
 *  @return as jask_dot, less IO and CANCELED. */
JASK_API jask_status jask_dot_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                                   const jask_dot_args *args, jask_plan **out, jask_error *err);

/** The plan that jask_dot would follow for C-order arrays of these extents, which need not exist: to
 *  size a run before there is data. op(A) is m x k, op(B) k x n; of `args`, only alpha, beta and the
 *  transposes count (NULL: the plain product).
 *  @return as jask_dot_plan. */
JASK_API jask_status jask_dot_plan_sizes(jask_context *ctx, jask_dtype dtype, int64_t m, int64_t n,
                                         int64_t k, const jask_dot_args *args, jask_plan **out,
                                         jask_error *err);

/** Which gradients are to be made, and how. */
typedef struct jask_dot_backward_args {
    size_t struct_size;
    double alpha;          /**< 1; that of the product */
    int transpose_a;       /**< JASK_NO_TRANSPOSE (0); as in the product */
    int transpose_b;       /**< 0 */
    const char *da_output; /**< path of dA, a .npy. NULL: a nameless array in scratch */
    const char *db_output;
    int accumulate_a; /**< 0 replaces what da_output holds; non-zero adds dA to it */
    int accumulate_b;
} jask_dot_backward_args;

JASK_API void jask_dot_backward_args_init(jask_dot_backward_args *args, size_t struct_size);

/** The gradients of D = alpha * op(A) * op(B) with respect to A and B, given dd, that with respect to D.
 *
 *  A, B and dd are as in jask_matmul, dd of D's shape; dA and dB have the shapes and the type of A and
 *  B as they are stored, in C order: dA = alpha * dd * op(B)', dB = alpha * op(A)' * dd, transposed where
 *  the operand is. Where A or B was broadcast over batches its gradient is the sum over them.
 *
 *  A gradient is made when its output is named or its array taken; the other one costs nothing. Where A
 *  and B are one array its gradient is one: the sum of both terms, as dA. A gradient with a name
 *  replaces what bore it, or, accumulated, is added to it; both appear together at the end, when all is
 *  computed.
 *
 *  Both gradients of matrices are made by one joint plan where that moves fewer bytes to and from the device
 *  than two products and, with the planner `auto`, is predicted to take hardly longer (5%): where k is much less than
 *  half the root of the number of elements that the budget holds. Then each element of dd is read once, and
 *  sums of one gradient may be stored and read again before they are finished, in its file or, where its type is
 *  not that of sums, in a nameless one in scratch. Two products are made for batches, for one array, for
 *  one of A and B conjugated but not the other, for types that do not go into a product together, in a deterministic context,
 *  and by the planner `page`, with the
 *  reference's number of blocks for gradients. In the report, plan and counts are those of the joint plan, with
 *  m, n and k of the product whose gradients they are; or of both products, with m, n, k and tiles of the first.
 *  @return as jask_matmul. After any failure the outputs are as they were before; only where naming
 *          the second one fails does the first have its new name. */
JASK_API jask_status jask_dot_backward(jask_context *ctx, const jask_array *a, const jask_array *b,
                                       const jask_array *dd, const jask_dot_backward_args *args,
                                       jask_array **out_da, jask_array **out_db,
                                       jask_report *report, jask_error *err);

/** Make the plans that jask_dot_backward would follow, without reading any data: of the products for dA
 *  and dB where the places are not NULL; where A and B are one array, of the two products for dA. A joint
 *  plan, if jask_dot_backward would follow one for both, is *out_da, and *out_db is set to NULL.
 *  @return as jask_dot_backward, less IO and CANCELED. */
JASK_API jask_status jask_dot_backward_plan(jask_context *ctx, const jask_array *a,
                                            const jask_array *b, const jask_array *dd,
                                            const jask_dot_backward_args *args, jask_plan **out_da,
                                            jask_plan **out_db, jask_error *err);

/** What jask_dot_verify found. A row's z is its difference to the exact product along a random
 *  vector, in units of the rounding error to be expected (runtime/verify_verdict.c has the formula). */
typedef struct jask_verification {
    size_t struct_size;
    int passed;   /**< max_z <= 8 and rms_z <= 5 */
    double max_z; /**< largest |z| over all rows; infinite where a row must be finite and is
                                not, or the other way round */
    double rms_z; /**< root mean square of z */
    int64_t
        worst_row; /**< the one with max_z, of batches counted on from one to the next; -1 when no
                            row could be checked */
    double relative_error; /**< estimated Frobenius norm of the error over that of D */
    double seconds;
    uint64_t file_read_bytes;
    int64_t unchecked_rows; /**< not finite, as they must be (Inf or NaN in A, B or C, overflow):
                                 they do not fail, and nothing more is known of them */
} jask_verification;

/** Check D = alpha * op(A) * op(B) + beta * C by Freivalds' method: D x against A (B x) for a random
 *  vector x, in f64, streaming each file once on the CPU (an operand that serves several batches once for
 *  each), by code that shares nothing with the pipeline. A wrong tile, a missing slab or a single badly
 *  wrong element, or part of a complex one, shows; rounding does not. Shapes are as in jask_matmul.
 *  `args` as for the product (output is ignored). Uses at most the context's budget.
 *  @return JASK_OK also when the check fails (look at `passed`); ARG, CONFIG, IO, NOMEM, CANCELED;
 *          UNSUPPORTED: types that make no product, batches in Fortran order; FORMAT: a file has become shorter. */
JASK_API jask_status jask_dot_verify(jask_context *ctx, const jask_array *a, const jask_array *b,
                                     const jask_array *d, const jask_dot_args *args,
                                     jask_verification *out, size_t struct_size, jask_error *err);

/* ---- sums --------------------------------------------------------------------------------------- */

/** What becomes of a sum of integers that its type cannot hold. */
typedef enum jask_overflow {
    JASK_OVERFLOW_REFUSE = 0, /**< the operation fails and names the element */
    JASK_OVERFLOW_WRAP,       /**< modulo 2^bits, as C and NumPy do */
    JASK_OVERFLOW_SATURATE    /**< the nearest value that the type holds */
} jask_overflow;

/** How a sum is to be made. */
typedef struct jask_add_args {
    size_t struct_size;
    double alpha;           /**< 1 */
    double beta;            /**< 1 */
    jask_dtype dtype;       /**< of the result: one that holds every value of A's and B's types.
                             JASK_DTYPE_NONE (0): as jask_dtype_promote says */
    jask_overflow overflow; /**< JASK_OVERFLOW_REFUSE (0); for integers */
    const char *output;     /**< path of the .npy result. NULL: a nameless array in scratch */
    int in_place;           /**< 0; non-zero writes the sum over A, in A's file: see jask_add */
    const char *trace;      /**< path of a timeline to write, as jask_dot_args.trace. NULL: none */
} jask_add_args;

JASK_API void jask_add_args_init(jask_add_args *args, size_t struct_size);

/** D = alpha * A + beta * B, element by element, on arrays that need not fit in memory.
 *
 *  Arrays have up to 32 dimensions, in C or Fortran order and either byte order, and broadcast as in
 *  NumPy: shapes are aligned at the last dimension, and an extent of 1, or none, serves every index.
 *  D has the shape of both together and is .npy 1.0, C order, little-endian.
 *
 *  Types: D is of args->dtype, else of the type that jask_dtype_promote gives. f32, f64 and complex
 *  numbers are computed in that type, as fma(alpha, a, beta * b), so that with both factors 1 the sum
 *  is rounded once; f16 and bf16 in f32 and rounded once, at the end. Integers are exact: factors must be whole
 *  numbers up to 2^53, and a sum that does not fit is dealt with as args->overflow says. A factor of
 *  0 leaves its array unread, so that its NaN and Inf count for nothing.
 *
 *  Blocks until D is committed under args->output, replacing whatever bore that name, which may be
 *  A or B: they are read to the end first. With out_d not NULL the result is also handed over as an
 *  open array, to be closed by the caller; a result without a name needs it.
 *
 *  With args->in_place the sum is written over A's elements, in A's file, order and byte order, and
 *  no other array is made. A FAILURE, A KILL OR A POWER CUT THEN LEAVES A HALF OLD AND HALF NEW: each element as it was or
 *  the sum (but for one that a write was cut off in), and nothing beside the elements is touched. The sum must have
 *  A's shape and type; B may be A, but must not overlap it otherwise. A stays open as it was.
 *
 *  Beside a card the CPU computes sums, reductions and the gradients of sums, within the host budget: their time is that of
 *  the files, and a card would only add two copies. The report names the device "host".
 *
 *  Every element of D is computed from its own two alone: the bits depend on nothing else. `args` NULL
 *  is the plain sum; `report` may be NULL, else its struct_size must be set; in its plan, m is the
 *  number of elements of D after joining dimensions, bm those of a block. `ctx` NULL is the
 *  process-wide default.
 *  @return JASK_OK; ARG: shapes or arguments that do not fit, an integer sum that overflows;
 *          UNSUPPORTED: types without a row in the table of promotions; CONFIG; BUDGET: the message
 *          names the least budget that works; NOMEM; IO; FORMAT: an input changed meanwhile; DEVICE;
 *          CANCELED. After any failure the target is as it was before, unless in place. */
JASK_API jask_status jask_add(jask_context *ctx, const jask_array *a, const jask_array *b,
                              const jask_add_args *args, jask_array **out_d, jask_report *report,
                              jask_error *err);

/** Make the plan that jask_add would follow, without reading any data.
 *  @return as jask_add, less IO and CANCELED. */
JASK_API jask_status jask_add_plan(jask_context *ctx, const jask_array *a, const jask_array *b,
                                   const jask_add_args *args, jask_plan **out, jask_error *err);

/** How the gradients of a sum are to be made. */
typedef struct jask_add_backward_args {
    size_t struct_size;
    double alpha, beta;  /**< 1, 1: those of the sum */
    const char *da, *db; /**< paths of the .npy results. NULL: nameless arrays in scratch */
    const jask_array
        *old_da; /**< added to dA, of A's shape and type: accumulates. NULL: overwrites */
    const jask_array *old_db; /**< the same for dB */
} jask_add_backward_args;

JASK_API void jask_add_backward_args_init(jask_add_backward_args *args, size_t struct_size);

/** The gradients of D = alpha * A + beta * B, given dD of D's shape: dA = alpha * dD (+ old_da), summed over
 *  the dimensions along which A was broadcast, in A's shape; dB likewise.
 *
 *  A and B give their shapes and types alone and are not read; all arrays have one real or complex
 *  type. Sums are made as jask_reduce makes them, in f64 (complex: each part), and rounded once at the end (to f16 and bf16
 *  by way of f32). A gradient is made when it has a name or a place (out_da, out_db): either may be absent. Where A and
 *  B are the same array, each gradient has both terms. What dD is empty of is zero. A name may be that of old_da, old_db or any
 *  input. Results get their names when both are complete. `args` NULL is the plain sum.
 *  @return as jask_add; UNSUPPORTED also for integers. */
JASK_API jask_status jask_add_backward(jask_context *ctx, const jask_array *a, const jask_array *b,
                                       const jask_array *dd, const jask_add_backward_args *args,
                                       jask_array **out_da, jask_array **out_db,
                                       jask_report *report, jask_error *err);

/* ---- reductions --------------------------------------------------------------------------------- */

typedef enum jask_reduction {
    JASK_SUM = 0,
    JASK_MEAN, /**< NaN of no elements */
    JASK_MIN,  /**< NaN where there is one, as in NumPy */
    JASK_MAX,
    JASK_NORM /**< the root of the sum of squares (Frobenius) */
} jask_reduction;

#define JASK_ALL_AXES INT32_MIN

typedef struct jask_reduce_args {
    size_t struct_size;
    jask_reduction reduction; /**< JASK_SUM */
    int axis;                 /**< JASK_ALL_AXES, or one: 0 is the first, -1 the last */
    const char *output;       /**< path of the .npy result. NULL: a nameless array in scratch */
} jask_reduce_args;

JASK_API void jask_reduce_args_init(jask_reduce_args *args, size_t struct_size);

/** Reduce an array over one axis, which the result lacks, or over all to a scalar (0-d).
 *
 *  Sums are made in f64 with what every addition rounds off (compensated), in the order of the file,
 *  which is fixed: the bits depend neither on budget nor on threads. The result is f64, of complex numbers c128;
 *  sums of integers are exact and i64 or u64, refused when that does not hold them. Minimum and
 *  maximum have A's type; complex numbers have none. Norms neither overflow nor vanish on the way.
 *  Integers of 64 bits count as f64 in a norm.
 *
 *  Output, out_d, report and errors as jask_add. A minimum of nothing is refused. `args` NULL: the sum
 *  of all.
 *  @return as jask_add. */
JASK_API jask_status jask_reduce(jask_context *ctx, const jask_array *a,
                                 const jask_reduce_args *args, jask_array **out_d,
                                 jask_report *report, jask_error *err);

/** What jask_stats found. Of complex numbers sum and mean are the real parts', `sum_imaginary` the other's;
 *  min and max are not set (NaN), as for arrays without a number. */
typedef struct jask_statistics {
    size_t struct_size;
    uint64_t elements;
    double sum, sum_imaginary;
    double mean;
    double min, max; /**< of the elements that are not NaN */
    double norm;
    uint64_t nans, infinities;         /**< real and imaginary parts count apart */
    int64_t first_nan, first_infinity; /**< their places in logical (C) order; -1: there is none */
    double seconds;
    uint64_t file_read_bytes;
} jask_statistics;

/** Read an array once and sum it up; where there are NaN or infinities, read it once more up to the
 *  first of them. As exact, and in the same order, as jask_reduce; numbers of 64-bit integers are
 *  rounded to f64 at the end.
 *  @return JASK_OK; ARG, CONFIG, BUDGET, NOMEM, IO, FORMAT, CANCELED. */
JASK_API jask_status jask_stats(jask_context *ctx, const jask_array *a, jask_statistics *out,
                                size_t struct_size, jask_error *err);

#ifdef __cplusplus
}
#endif

#endif
