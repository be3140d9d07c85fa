/* Runs that are stopped and go on: the same bits as a run that nobody disturbed, exactly what is
 * left is moved, and nothing that has changed is gone on with. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(resume, .init = e2e_init, .fini = e2e_cleanup);

/* The user hears of progress every 50 ms: here at every step, so that a run can be stopped
 * anywhere. */
double __real_jk_clock_seconds(void);
double __wrap_jk_clock_seconds(void);

double __wrap_jk_clock_seconds(void)
{
    static _Atomic unsigned calls;
    return __real_jk_clock_seconds() + 0.06 * calls++;
}

/* The fail_at-th wait for the disk fails, as on a disk that breaks; the system says so only once.
 */
static _Atomic int syncs, fail_at;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

static bool sync_fails(void)
{
    errno = EIO;
    return ++syncs == fail_at;
}

int __wrap_fdatasync(int fd)
{
    return sync_fails() ? -1 : __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
    return sync_fails() ? -1 : __real_fsync(fd);
}

/* Locks, where a test says so, are such as a file system has them that has none. */
static bool no_locks;

int __real_fcntl64(int fd, int command, void *argument);
int __wrap_fcntl64(int fd, int command, void *argument);

int __wrap_fcntl64(int fd, int command, void *argument)
{
    if (no_locks && command == F_OFD_SETLK) {
        errno = ENOLCK;
        return -1;
    }
    return __real_fcntl64(fd, command, argument);
}

static double real_value(unsigned seed, int64_t i, int64_t j)
{
    return (double)e2e_value(seed, i, j) / 7 + 1e-3 * (double)e2e_value(seed + 1, j, i);
}

/* A product and how often it may go on. */
typedef struct run {
    const char *planner;
    bool pipelined;
    jask_dtype dtype;
    bool ta, tb, fortran_c;
    double alpha, beta;
    int64_t m, n, k;
    uint64_t budget;
    double stop_at; /* cancel once this part is done; 1: never */
} run;

static int stop_when_told(const jask_progress *p, void *user)
{
    const run *r = user;
    return r->stop_at < 1 && (double)p->steps_done >= r->stop_at * (double)p->steps_total;
}

static jask_context *context(run *r)
{
    jask_options options;
    jask_context *ctx = NULL;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = r->budget;
    options.planner = r->planner;
    options.pipeline = r->pipelined ? 1 : -1;
    options.sync = -1;
    options.device = "host";
    options.io_threads = 2;
    options.progress = stop_when_told;
    options.progress_user = r;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    return ctx;
}

static void write_inputs(const run *r)
{
    e2e_form form = {.dtype = r->dtype}, c_form = {.dtype = r->dtype, .fortran = r->fortran_c};
    e2e_write(e2e_path("a.npy"), form, r->ta ? r->k : r->m, r->ta ? r->m : r->k, 1, real_value);
    e2e_write(e2e_path("b.npy"), form, r->tb ? r->n : r->k, r->tb ? r->k : r->n, 2, real_value);
    e2e_write(e2e_path("c.npy"), c_form, r->m, r->n, 3, real_value);
}

static jask_status multiply(run *r, const char *output, bool resume, jask_report *report,
                            jask_error *err)
{
    jask_context *ctx = context(r);
    jask_array *a = e2e_open(e2e_path("a.npy")), *b = e2e_open(e2e_path("b.npy")),
               *c = e2e_open(e2e_path("c.npy"));
    jask_dot_args args;
    jask_status st;
    jask_dot_args_init(&args, sizeof args);
    args.alpha = r->alpha;
    args.beta = r->beta;
    args.c = c;
    args.transpose_a = r->ta;
    args.transpose_b = r->tb;
    args.output = e2e_path(output);
    args.resume = resume;
    *report = (jask_report){.struct_size = sizeof *report};
    st = jask_dot(ctx, a, b, &args, NULL, report, err);
    jask_array_close(c);
    jask_array_close(b);
    jask_array_close(a);
    jask_context_close(ctx);
    return st;
}

static void check_moved(const jask_report *r)
{
    cr_assert(r->io.h2d_bytes == r->planned.h2d_bytes && r->io.h2d_pages == r->planned.h2d_pages &&
                  r->io.d2h_bytes == r->planned.d2h_bytes &&
                  r->io.d2h_pages == r->planned.d2h_pages &&
                  r->io.file_read_bytes == r->planned.file_read_bytes &&
                  r->io.file_write_bytes == r->planned.file_write_bytes &&
                  r->peak_device_bytes == r->plan.peak_bytes,
              "after %" PRId64 " tiles: up %" PRIu64 "/%" PRIu64 " in %" PRId64 "/%" PRId64
              ", down %" PRIu64 "/%" PRIu64,
              r->resumed_tiles, r->io.h2d_bytes, r->planned.h2d_bytes, r->io.h2d_pages,
              r->planned.h2d_pages, r->io.d2h_bytes, r->planned.d2h_bytes);
    if (r->resumed_tiles == 0)
        cr_assert(r->planned.h2d_bytes == r->plan.h2d_bytes &&
                  r->planned.d2h_bytes == r->plan.d2h_bytes);
    else
        cr_assert_lt(r->planned.d2h_bytes, r->plan.d2h_bytes);
}

static bool exists(const char *name)
{
    return access(e2e_path(name), F_OK) == 0;
}

static void check_same_bytes(const char *one, const char *other)
{
    FILE *x = fopen(e2e_path(one), "rb"), *y = fopen(e2e_path(other), "rb");
    char from_x[4096], from_y[4096];
    size_t got;
    cr_assert(x && y);
    do {
        got = fread(from_x, 1, sizeof from_x, x);
        cr_assert_eq(fread(from_y, 1, sizeof from_y, y), got);
        cr_assert_eq(memcmp(from_x, from_y, got), 0, "other bits");
    } while (got > 0);
    fclose(x);
    fclose(y);
}

/* Stop at `at`: CANCELED, and when something is finished it is kept and the message says so. */
static void stop_once(run *r, double at)
{
    jask_report report;
    jask_error err;
    r->stop_at = at;
    cr_assert_eq(multiply(r, "d.npy", true, &report, &err), JASK_ERR_CANCELED);
    cr_assert_not(exists("d.npy"));
    cr_assert_eq(exists("d.npy.jask-partial"), exists("d.npy.jask-journal"));
    cr_assert_eq(strstr(err.msg, "goes on from there") != NULL, exists("d.npy.jask-partial"), "%s",
                 err.msg);
}

/* Returns the tiles that the last of the runs found finished. */
static int64_t check_run(run r)
{
    jask_report report;
    jask_error err;
    write_inputs(&r);
    remove(e2e_path("d.npy"));
    r.stop_at = 2;
    cr_assert_eq(multiply(&r, "whole.npy", false, &report, &err), JASK_OK, "%s", err.msg);
    check_moved(&report);
    cr_assert_eq(report.resumed_tiles, 0);
    stop_once(&r, 0.3);
    stop_once(&r, 0.7);
    r.stop_at = 2;
    cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    check_moved(&report);
    check_same_bytes("d.npy", "whole.npy");
    cr_assert_not(exists("d.npy.jask-partial"));
    cr_assert_not(exists("d.npy.jask-journal"));
    return report.resumed_tiles;
}

Test(resume, gives_the_bits_of_a_run_that_nobody_disturbed)
{
    static const char *const planners[] = {"auto", "bytes", "page"};
    int64_t resumed = 0;
    for (unsigned v = 0; v < 12; v++) {
        run r = {.planner = planners[v % 3],
                 .pipelined = v % 4 != 1,
                 .dtype = v % 2 ? JASK_F64 : JASK_F32,
                 .ta = v >> 1 & 1,
                 .tb = v >> 2 & 1,
                 .fortran_c = v >> 3 & 1,
                 .alpha = 1.5,
                 .beta = v >> 2 & 1 ? -0.75 : 0,
                 .m = 401 + 7 * (int64_t)v,
                 .n = 370,
                 .k = 290,
                 .budget = 128 << 10};
        int64_t tiles = check_run(r);
        cr_assert_gt(tiles, 0, "variant %u", v);
        resumed += tiles;
    }
    cr_assert_gt(resumed, 12);
}

static run plain_run(void)
{
    return (run){.planner = "bytes",
                 .pipelined = true,
                 .dtype = JASK_F32,
                 .alpha = 1,
                 .m = 500,
                 .n = 400,
                 .k = 300,
                 .budget = 128 << 10};
}

static void stopped_run(run *r)
{
    write_inputs(r);
    stop_once(r, 0.5);
    cr_assert(exists("d.npy.jask-partial"));
    r->stop_at = 2;
}

/* Refused with `code` and these words, and neither file is touched. */
static void check_refused(run *r, jask_status code, const char *words)
{
    jask_report report;
    jask_error err;
    struct stat before, after;
    cr_assert_eq(stat(e2e_path("d.npy.jask-journal"), &before), 0);
    cr_assert_eq(multiply(r, "d.npy", true, &report, &err), code, "not refused: %s", words);
    cr_assert_not_null(strstr(err.msg, words), "'%s' is not in: %s", words, err.msg);
    cr_assert_not_null(strstr(err.msg, "d.npy.jask-"), "%s", err.msg);
    cr_assert_eq(stat(e2e_path("d.npy.jask-journal"), &after), 0);
    cr_assert_eq(after.st_size, before.st_size);
    cr_assert(exists("d.npy.jask-partial"));
    cr_assert_not(exists("d.npy"));
}

static void start_over(void)
{
    remove(e2e_path("d.npy.jask-partial"));
    remove(e2e_path("d.npy.jask-journal"));
}

Test(resume, refuses_another_plan_or_scalar_and_names_it)
{
    run base = plain_run();
    stopped_run(&base);
    run r = base;
    r.budget = 200 << 10;
    check_refused(&r, JASK_ERR_ARG, "memory budget) was ");
    r = base;
    r.alpha = 1.25;
    check_refused(&r, JASK_ERR_ARG, "alpha was 1 and is now 5*2^-2");
    r = base;
    r.beta = -2;
    check_refused(&r, JASK_ERR_ARG, "C was nothing and is now ");
    /* The product itself is still there. */
    jask_report report;
    jask_error err;
    cr_assert_eq(multiply(&base, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_gt(report.resumed_tiles, 0);
}

/* One byte of A, in the middle, by another program; the time put back. */
static void change_byte(const char *path, off_t at, bool same_time)
{
    struct stat st;
    unsigned char byte;
    int fd = open(path, O_RDWR);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (same_time)
        cr_assert_eq(futimens(fd, times), 0);
    close(fd);
}

Test(resume, refuses_a_changed_input_and_names_it)
{
    run r = plain_run();
    stopped_run(&r);
    change_byte(e2e_path("a.npy"), 128, true); /* the first sample */
    check_refused(&r, JASK_ERR_ARG, "content of A was ");
    change_byte(e2e_path("a.npy"), 128, true);
    change_byte(e2e_path("b.npy"), 300000, false);
    check_refused(&r, JASK_ERR_ARG, "modification time of B was ");
    start_over();
    stopped_run(&r);
    e2e_write(e2e_path("b.npy"), (e2e_form){.dtype = JASK_F32}, r.k, r.n + 1, 2, real_value);
    run wider = r;
    wider.n++;
    e2e_write(e2e_path("c.npy"), (e2e_form){.dtype = JASK_F32}, r.m, r.n + 1, 3, real_value);
    check_refused(&wider, JASK_ERR_ARG, "size of B was ");
    start_over();
    jask_report report;
    jask_error err;
    cr_assert_eq(multiply(&wider, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(report.resumed_tiles, 0);
}

Test(resume, refuses_what_is_damaged_and_starts_over_where_nothing_is_lost)
{
    run r = plain_run();
    jask_report report;
    jask_error err;
    stopped_run(&r);
    change_byte(e2e_path("d.npy.jask-journal"), 40, false);
    check_refused(&r, JASK_ERR_FORMAT, "damaged");
    change_byte(e2e_path("d.npy.jask-journal"), 40, false);
    change_byte(e2e_path("d.npy.jask-journal"), 0, false);
    check_refused(&r, JASK_ERR_FORMAT, "none of jask's");
    change_byte(e2e_path("d.npy.jask-journal"), 0, false);
    cr_assert_eq(truncate(e2e_path("d.npy.jask-partial"), 1000), 0);
    check_refused(&r, JASK_ERR_FORMAT, "1000 bytes instead of ");
    remove(e2e_path("d.npy.jask-partial"));
    cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(report.resumed_tiles, 0);
    /* An empty journal, a partial result without one. */
    fclose(fopen(e2e_path("d.npy.jask-journal"), "w"));
    fclose(fopen(e2e_path("d.npy.jask-partial"), "w"));
    cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_not(exists("d.npy.jask-journal"));
}

/* A run that is going on holds its journal. */
Test(resume, refuses_a_second_run_for_one_output)
{
    run r = plain_run();
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    stopped_run(&r);
    int fd = open(e2e_path("d.npy.jask-journal"), O_RDWR);
    cr_assert_eq(fcntl(fd, F_OFD_SETLK, &whole), 0);
    check_refused(&r, JASK_ERR_ARG, "another run");
    close(fd);
    jask_report report;
    jask_error err;
    cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_gt(report.resumed_tiles, 0);
}

Test(resume, warns_where_nothing_can_be_locked_and_goes_on)
{
    run r = plain_run();
    jask_report report;
    jask_error err;
    no_locks = true;
    stopped_run(&r);
    cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_gt(report.resumed_tiles, 0);
    cr_assert_not_null(strstr(report.note, "cannot be locked"), "%s", report.note);
    no_locks = false;
}

Test(resume, needs_an_output_that_is_no_input)
{
    run r = plain_run();
    jask_report report;
    jask_error err;
    r.stop_at = 2;
    write_inputs(&r);
    cr_assert_eq(multiply(&r, "a.npy", true, &report, &err), JASK_ERR_ARG);
    cr_assert_not_null(strstr(err.msg, "own input"), "%s", err.msg);
    cr_assert_not(exists("a.npy.jask-journal"));
    jask_context *ctx = context(&r);
    jask_array *a = e2e_open(e2e_path("a.npy")), *d = NULL;
    jask_dot_args args;
    jask_dot_args_init(&args, sizeof args);
    args.transpose_b = 1;
    args.resume = 1;
    cr_assert_eq(jask_dot(ctx, a, a, &args, &d, NULL, &err), JASK_ERR_ARG);
    jask_array_close(a);
    jask_context_close(ctx);
}

/* A failure before the first tile leaves nothing behind; nor does a product of nothing. */
Test(resume, leaves_no_files_that_hold_nothing)
{
    run r = plain_run();
    jask_report report;
    jask_error err;
    write_inputs(&r);
    r.stop_at = 0;
    cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_ERR_CANCELED);
    cr_assert_not(exists("d.npy.jask-journal") || exists("d.npy.jask-partial"));
    r.stop_at = 2;
    r.alpha = 0;
    r.beta = 3;
    cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(report.resumed_tiles, 0);
    cr_assert_not(exists("d.npy.jask-journal") || exists("d.npy.jask-partial"));
    cr_assert_eq(multiply(&r, "missing/d.npy", true, &report, &err), JASK_ERR_IO);
}

/* Whichever wait for the disk fails, before or after the last tile: the run fails, what is recorded
 * is right, and the next run ends with the same bits. */
Test(resume, survives_a_disk_that_fails_once)
{
    run r = plain_run();
    jask_report report;
    jask_error err;
    int failed = 0;
    r.stop_at = 2;
    write_inputs(&r);
    cr_assert_eq(multiply(&r, "whole.npy", false, &report, &err), JASK_OK, "%s", err.msg);
    for (int at = 1;; at++) {
        syncs = 0;
        fail_at = at;
        jask_status st = multiply(&r, "d.npy", true, &report, &err);
        bool reached = syncs >= at;
        fail_at = 0;
        if (st) {
            failed++;
            cr_assert_eq(st, JASK_ERR_IO);
            cr_assert_not_null(strstr(err.msg, "sync"), "%s", err.msg);
            cr_assert_not(exists("d.npy"));
            cr_assert_eq(multiply(&r, "d.npy", true, &report, &err), JASK_OK, "%s", err.msg);
            check_moved(&report);
        }
        check_same_bytes("d.npy", "whole.npy");
        cr_assert_not(exists("d.npy.jask-journal") || exists("d.npy.jask-partial"));
        remove(e2e_path("d.npy"));
        if (!reached)
            break;
    }
    cr_assert_geq(failed, 3);
}
