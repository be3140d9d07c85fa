/* Rates of files, on a disk and by a clock that the test makes. */
#include "runtime/calibrate.h"
#include "runtime/file.h"
#include "runtime/system.h"

#include "tree.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>

#define BLOCK ((size_t)1 << 20)

double __wrap_jk_clock_seconds(void);
jask_status __wrap_jk_file_read(const jk_file *file, uint64_t offset, void *dst, size_t bytes,
                                jask_error *err);
jask_status __wrap_jk_file_write(const jk_file *file, uint64_t offset, const void *src,
                                 size_t bytes, jask_error *err);
jask_status __wrap_jk_file_sync(const jk_file *file, jask_error *err);
jask_status __wrap_jk_dir_in_ram(const char *dir, bool *out, char *type, size_t type_size,
                                 jask_error *err);
void __wrap_jk_file_announce(const jk_file *file, uint64_t offset, size_t bytes, uint64_t pitch,
                             int64_t count);
bool __wrap_jk_direct_open(const jk_file *file, jk_direct *out, jask_error *err);
int __wrap_posix_fadvise64(int fd, off_t offset, off_t length, int advice);

/* Seconds of a byte and of a call. `cold`: nothing is in the page cache. */
static double now, cached_byte, disk_byte, run_call;
static uint64_t unsynced, announced, not_announced;
static bool cold, ram;

double __wrap_jk_clock_seconds(void)
{
    return now;
}

bool __wrap_jk_direct_open(const jk_file *file, jk_direct *out, jask_error *err)
{
    (void)file, (void)out, (void)err;
    return false;
}

int __wrap_posix_fadvise64(int fd, off_t offset, off_t length, int advice)
{
    (void)fd, (void)offset, (void)length;
    cold = cold || advice == POSIX_FADV_DONTNEED;
    return 0;
}

void __wrap_jk_file_announce(const jk_file *file, uint64_t offset, size_t bytes, uint64_t pitch,
                             int64_t count)
{
    (void)file, (void)offset;
    cr_assert(bytes < pitch && count > 1);
    announced += (uint64_t)count;
}

/* The disk has a price for each run, and one for each byte; only runs are announced. */
jask_status __wrap_jk_file_read(const jk_file *file, uint64_t offset, void *dst, size_t bytes,
                                jask_error *err)
{
    (void)dst, (void)err;
    cr_assert_leq(offset + bytes, file->bytes);
    now += (double)bytes * (cold ? disk_byte : cached_byte);
    if (bytes < BLOCK) {
        now += run_call;
        not_announced += announced == 0;
        announced -= announced > 0;
    }
    return JASK_OK;
}

jask_status __wrap_jk_file_write(const jk_file *file, uint64_t offset, const void *src,
                                 size_t bytes, jask_error *err)
{
    (void)file, (void)offset, (void)src, (void)err;
    now += (double)bytes * cached_byte;
    unsynced += bytes;
    return JASK_OK;
}

jask_status __wrap_jk_file_sync(const jk_file *file, jask_error *err)
{
    (void)file, (void)err;
    now += (double)unsynced * disk_byte;
    unsynced = 0;
    return JASK_OK;
}

jask_status __wrap_jk_dir_in_ram(const char *dir, bool *out, char *type, size_t type_size,
                                 jask_error *err)
{
    (void)dir, (void)err;
    type[0] = '\0';
    cr_assert_gt(type_size, 0);
    *out = ram;
    return JASK_OK;
}

TestSuite(calibrate_files, .init = tree_enter, .fini = tree_leave);

static jk_file_rates measure(void)
{
    char *memory = aligned_alloc(4096, 2 * BLOCK);
    jk_file_rates rates;
    jask_context *ctx;
    jask_options options;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 16 << 20;
    options.device = "host";
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    const jk_calibration_run run = {.ctx = ctx, .total = 1};
    now = 0;
    cold = false;
    announced = not_announced = 0;
    cr_assert_eq(jk_calibrate_files(&run, ".", 1, memory, 2 * BLOCK, BLOCK, &rates, &err), JASK_OK,
                 "%s", err.msg);
    cr_assert_eq(announced + not_announced, 0, "each run is announced, and each that is is read");
    jask_context_close(ctx);
    free(memory);
    return rates;
}

static void is(double rate, double expected, const char *what)
{
    cr_assert(fabs(rate / expected - 1) < 1e-9, "%s: %.17g, not %g", what, rate, expected);
}

Test(calibrate_files, each_rate_is_what_the_disk_and_the_cache_take)
{
    cached_byte = 1e-10;
    disk_byte = 1e-9;
    run_call = 1e-5;
    jk_file_rates rates = measure();
    is(rates.up, 1e10, "up");
    is(rates.down, 1e10, "down");
    is(rates.read, 1e9, "read");
    is(rates.write, 1e9, "write");
    /* Beside the bytes, which are counted as bytes. */
    is(rates.runs, 1e5, "runs");
}

Test(calibrate_files, what_slow_disks_do_not_finish_is_left)
{
    cached_byte = 1e-9;
    disk_byte = 1e-7; /* 6.4 s for the 64 MiB of a part */
    run_call = 1e-2;  /* a turn of the disk */
    jk_file_rates rates = measure();
    is(rates.read, 1e7, "read");
    is(rates.write, 1e7, "write");
    is(rates.runs, 1e2, "runs");
    cr_assert_lt(now, 30, "%g s", now);
}

Test(calibrate_files, runs_that_cost_nothing_cost_half_of_their_time)
{
    cached_byte = 1e-10;
    disk_byte = 1e-9;
    run_call = 0;
    jk_file_rates rates = measure();
    is(rates.runs, 2e9 / 4096, "runs");
}

Test(calibrate_files, files_in_ram_have_no_disk)
{
    cached_byte = 1e-10;
    disk_byte = 1e-9;
    run_call = 1e-5;
    ram = true;
    jk_file_rates rates = measure();
    is(rates.up, 1e10, "up");
    cr_assert(rates.read == 0 && rates.write == 0 && rates.runs == 0);
}
