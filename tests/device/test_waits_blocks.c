/* Every wait of operations in blocks is needed, as those of products are (test_waits.c): windows lie in
 * memory that the simulator watches, and what reads, computes and writes them tells it so. */
#include "waits.h"

#include "../e2e/e2e.h"
#include "runtime/block_run.h"
#include "runtime/device.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What gives a missing wait away: a kind of report, or a failure that the run does not tell. */
#define SILENCE "no error"

static const struct {
    const char *name, *seen;
} waits[JK_WAITS] = {
    [JK_WAIT_WINDOW_LOADED] = {"WINDOW_LOADED", "ORDER"},
    [JK_WAIT_WINDOW_USED] = {"WINDOW_USED", "ORDER"},
    [JK_WAIT_WINDOW_COMPUTED] = {"WINDOW_COMPUTED", "ORDER"},
    [JK_WAIT_WINDOW_STORED] = {"WINDOW_STORED", "ORDER"},
    [JK_WAIT_ALL_WINDOWS_STORED] = {"ALL_WINDOWS_STORED", SILENCE},
};

/* A run without a wait need not be finished once it is found out, or hangs. */
#define PATIENCE_SECONDS 2

/* Of the run under way. */
static const jk_blocks *plan;
static bool disk_full; /* the last write fails, after a while */
static _Atomic int64_t blocks_computed;
static int64_t windows_written;

/* ---- the memory of windows, and what is done to it ---- */

extern const jk_device_table __real_jk_device_host;
extern jk_device_table __wrap_jk_device_host;
jk_device_table __wrap_jk_device_host;

static jask_status watched_alloc(jk_device *dev, size_t bytes, void **out, jask_error *err)
{
    (void)dev;
    if (cudaHostAlloc(out, bytes, cudaHostAllocDefault) != cudaSuccess)
        return jk_fail(err, JASK_ERR_NOMEM, "no pinned memory");
    return JASK_OK;
}

static void watched_free(jk_device *dev, void *ptr, size_t bytes)
{
    (void)dev, (void)bytes;
    cudaFreeHost(ptr);
}

static size_t window_bytes(const jk_blocks_operand *o, const jk_box *box)
{
    return (size_t)jk_window_elems(plan, o, box->len) * (size_t)o->bytes;
}

jask_status __wrap_jk_strided_read(const jk_strided *array, const jk_box *box, void *dst,
                                   _Atomic uint64_t *bytes, jask_error *err);
jask_status __wrap_jk_strided_read(const jk_strided *array, const jk_box *box, void *dst,
                                   _Atomic uint64_t *bytes, jask_error *err)
{
    static const struct timespec a_moment = {.tv_nsec = 300000};
    /* The arrays of a run are told apart by their paths. */
    size_t size = window_bytes(&plan->problem.input[array->path[0] - 'a'], box);
    (void)err;
    nanosleep(&a_moment, NULL); /* so that windows are computed meanwhile */
    cusim_host_write(dst, size, "reading a window");
    memset(dst, 1, size);
    *bytes += size;
    return JASK_OK;
}

/* A writer that is ahead would be in order all the same: before a window is computed the products take what it has
 * given until then. So it comes after them, whatever it has waited for. */
static void let_compute(int64_t window)
{
    static const struct timespec a_moment = {.tv_nsec = 100000};
    int64_t blocks = (window + 1) * jk_blocks_share(plan, &plan->problem.output);
    for (int i = 0; blocks_computed < blocks && i < PATIENCE_SECONDS * 10000; i++)
        nanosleep(&a_moment, NULL);
}

jask_status __wrap_jk_strided_write(const jk_strided *array, const jk_box *box, void *src,
                                    _Atomic uint64_t *bytes, jask_error *err);
jask_status __wrap_jk_strided_write(const jk_strided *array, const jk_box *box, void *src,
                                    _Atomic uint64_t *bytes, jask_error *err)
{
    static const struct timespec a_while = {.tv_nsec = 20000000};
    size_t size = window_bytes(&plan->problem.output, box);
    (void)array;
    let_compute(windows_written++);
    cusim_host_read(src, size, "writing a window");
    *bytes += size;
    if (disk_full && *bytes == plan->file_write_bytes) {
        nanosleep(&a_while, NULL);
        return jk_fail(err, JASK_ERR_IO, "the disk is full");
    }
    return JASK_OK;
}

static jask_status compute(void *user, const jk_block *block, jask_error *err)
{
    (void)user, (void)err;
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        if (plan->problem.input[i].bytes > 0)
            cusim_host_read(block->input[i], window_bytes(&plan->problem.input[i], &block->box),
                            "computing");
    cusim_host_write(block->output, window_bytes(&plan->problem.output, &block->box), "computing");
    blocks_computed++;
    return JASK_OK;
}

/* ---- runs ---- */

/* A sum; one of a row that serves many blocks; a reduction, many of whose blocks give one window. */
static const jk_blocks_problem problems[] = {
    {.ndim = 1,
     .shape = {20000},
     .input = {{.bytes = 8, .strides = {1}}, {.bytes = 4, .strides = {1}}},
     .output = {.bytes = 8, .strides = {1}}},
    {.ndim = 2,
     .shape = {50, 3000},
     .input = {{.bytes = 4, .strides = {3000, 1}}, {.bytes = 4, .strides = {0, 1}}},
     .output = {.bytes = 4, .strides = {3000, 1}}},
    {.ndim = 2,
     .shape = {12, 9000},
     .input = {{.bytes = 4, .strides = {9000, 1}}},
     .output = {.bytes = 8, .work_bytes = 8, .strides = {1, 0}}},
};

enum { PROBLEMS = sizeof problems / sizeof *problems, RUNS = 4 * PROBLEMS };

static bool all_kept = true;

static int on_progress(const jask_progress *progress, void *user)
{
    (void)user;
    return !all_kept && (cusim_report_count(NULL) > 0 || progress->seconds > PATIENCE_SECONDS);
}

static jask_context *open_context(int io_threads)
{
    jask_context *ctx;
    jask_options options;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 1 << 20;
    options.device = "host";
    options.allow_tmpfs = 1;
    options.scratch_dir = e2e_path("");
    options.io_threads = io_threads;
    options.progress = on_progress;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    return ctx;
}

static jask_status run(uint64_t number, bool fails)
{
    jask_context *ctx = open_context(1 + (int)(number / PROBLEMS) % 3);
    jk_blocks_machine machine = {.bytes = 60000, .slots = number % 2 ? 1 : 3};
    jk_file file = {.fd = -1};
    jk_blocks made;
    jk_block_job job = {.plan = &made, .ctx = ctx, .compute = compute};
    jk_run_stats stats;
    jask_error err;
    jask_status st;
    sim_separate(number);
    cr_assert_eq(jk_blocks_make(&problems[number % PROBLEMS], false, &machine, &made, &err),
                 JASK_OK, "%s", err.msg);
    cr_assert_gt(made.blocks, 5);
    plan = &made;
    disk_full = fails;
    blocks_computed = windows_written = 0;
    job.output.file = &file;
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        if (made.problem.input[i].bytes > 0) {
            job.input[i].file = &file;
            job.input[i].path = i == 0 ? "a" : "b";
        }
    st = jk_blocks_run(&job, &stats, &err);
    jask_context_close(ctx);
    return st;
}

static bool given_away(jk_wait wait, uint64_t number)
{
    const char *seen = waits[wait].seen;
    bool silence = strcmp(seen, SILENCE) == 0;
    jask_status st;
    waits_leave_out(wait);
    all_kept = false;
    st = run(number, silence);
    waits_leave_out(JK_WAITS);
    all_kept = true;
    return silence ? st == JASK_OK : cusim_report_count(seen) > 0;
}

static void begin(void)
{
    alarm(200);
    e2e_init();
    __wrap_jk_device_host = __real_jk_device_host;
    __wrap_jk_device_host.mem_alloc = watched_alloc;
    __wrap_jk_device_host.mem_free = watched_free;
}

TestSuite(waits_blocks, .init = begin, .fini = e2e_cleanup);

Test(waits_blocks, all_kept_nothing_is_reported)
{
    for (uint64_t number = 0; number < RUNS; number++)
        for (int fails = 0; fails < 2; fails++) {
            jask_status st = run(number, fails);
            cr_assert_eq(st, fails ? JASK_ERR_IO : JASK_OK, "run %" PRIu64, number);
            sim_check_clean("run", number);
        }
}

Test(waits_blocks, none_can_be_left_out)
{
    for (jk_wait wait = JK_WAITS_OF_PRODUCTS; wait < JK_WAITS; wait++) {
        uint64_t number = 0;
        cr_assert_not_null(waits[wait].name, "wait %d", (int)wait);
        while (number < RUNS && !given_away(wait, number))
            number++;
        cr_expect_lt(number, RUNS, "%s can be left out", waits[wait].name);
        printf("# without %s: %s in run %" PRIu64 "\n", waits[wait].name, waits[wait].seen, number);
    }
}
