/* Whole products, sums, gradients and reductions in which the nth call of a kind fails, for n = 1, 2, ...
 * until it gets through. */
#include "e2e/e2e.h"
#include "faults.h"
#include "unit/tree.h"
#include "works.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* To look at the real machine, call by call, would take most of the time. */
static void enter(void)
{
    setenv("HWLOC_SYNTHETIC", "node:1 core:2 pu:1", 1);
    tree_enter();
}

TestSuite(fault, .init = enter, .fini = tree_leave, .timeout = 500);

typedef enum ending { FAILS, SUCCEEDS, EITHER } ending;

static const struct {
    fault_kind kind;
    int error;
    ending expected; /* EITHER where the library has another way */
} faults[] = {
    {FAULT_READ, EIO, FAILS},          {FAULT_READ, EINTR, SUCCEEDS},
    {FAULT_WRITE, EIO, FAILS},         {FAULT_WRITE, ENOSPC, FAILS},
    {FAULT_WRITE, EDQUOT, FAILS},      {FAULT_WRITE, EFBIG, FAILS},
    {FAULT_WRITE, EINTR, SUCCEEDS},    {FAULT_RESERVE, ENOSPC, FAILS},
    {FAULT_RESERVE, EDQUOT, FAILS},    {FAULT_RESERVE, EIO, FAILS},
    {FAULT_RESERVE, EFBIG, FAILS},     {FAULT_RESERVE, EINTR, SUCCEEDS},
    {FAULT_RESERVE, ENOSYS, SUCCEEDS}, {FAULT_RESERVE, EOPNOTSUPP, SUCCEEDS},
    {FAULT_RESERVE, EINVAL, SUCCEEDS}, {FAULT_SYNC, EIO, FAILS},
    {FAULT_SYNC, ENOSPC, FAILS},       {FAULT_SYNC, EDQUOT, FAILS},
    {FAULT_SYNC, EINTR, SUCCEEDS},     {FAULT_OPEN, EIO, EITHER},
    {FAULT_OPEN, EMFILE, EITHER},      {FAULT_OPEN, ENFILE, EITHER},
    {FAULT_OPEN, EACCES, EITHER},      {FAULT_OPEN, EINTR, SUCCEEDS},
    {FAULT_LOOK, EIO, EITHER},         {FAULT_LOOK, ENOMEM, EITHER},
    {FAULT_NAME, EIO, EITHER},         {FAULT_NAME, ENOSPC, EITHER},
    {FAULT_NAME, EACCES, EITHER},      {FAULT_CLOSE, EIO, EITHER},
    {FAULT_MEMORY, ENOMEM, EITHER},    {FAULT_MAP, ENOMEM, FAILS},
    {FAULT_MAP, EAGAIN, FAILS},        {FAULT_THREAD, EAGAIN, FAILS},
    {FAULT_SPARE, EAGAIN, SUCCEEDS},
};

/* ---- what must hold ---- */

static size_t read_result(const char *name, unsigned char *out)
{
    FILE *file = fopen(name, "rb");
    size_t got = 0;
    if (file) {
        got = fread(out, 1, RESULT_MAX, file);
        fclose(file);
    }
    return got;
}

static void write_old(const char *name)
{
    FILE *file = fopen(name, "wb");
    if (!file || fputs(OLD, file) < 0 || fclose(file))
        cr_assert_fail("%s", name);
}

/* What is there before: in place, what is added to. */
static void write_target(const scene *s)
{
    if (s->work == SUM_IN_PLACE)
        e2e_write("d.npy", (e2e_form){JASK_F64, true, true}, M, N, 3, NULL);
    else
        write_old("d.npy");
}

static bool result_is(const char *name, const void *bytes, size_t count)
{
    unsigned char found[RESULT_MAX];
    return read_result(name, found) == count && memcmp(found, bytes, count) == 0;
}

/* tree_entries() without its assertion, each of which Criterion reports to its parent. */
static int entries(const char *dir)
{
    int count = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count - 2;
}

/* A thread that has been joined can be listed for a moment longer. */
static int entries_at_most(const char *dir, int most)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    int found = entries(dir);
    for (int i = 0; i < 1000 && found > most; i++) {
        nanosleep(&moment, NULL);
        found = entries(dir);
    }
    return found;
}

static struct {
    int descriptors, threads, names;
    unsigned char result[RESULT_MAX], second[RESULT_MAX], old[RESULT_MAX]; /* old: in place */
    size_t bytes, second_bytes;
    scene scene;
} clean;

static bool result_is_right(const outcome *got)
{
    if (clean.scene.gradients && !result_is("e.npy", clean.second, clean.second_bytes))
        return false;
    if (clean.scene.named)
        return result_is("d.npy", clean.result, clean.bytes);
    return got->bytes == clean.bytes && memcmp(got->result, clean.result, clean.bytes) == 0;
}

/* The message tells which file, or that it is memory or threads that are missing. */
static bool names_the_thing(const jask_error *err)
{
    static const char *const things[] = {".npy", "scratch", "memory", "thread", "/proc/"};
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        if (strstr(err->msg, things[i]))
            return true;
    return false;
}

/* In place, an element is as it was or the sum. */
static bool elements_are_old_or_new(void)
{
    unsigned char found[RESULT_MAX];
    size_t count = read_result("d.npy", found);
    for (size_t i = 0; i < count; i += sizeof(double))
        if (memcmp(found + i, clean.old + i, sizeof(double)) != 0 &&
            memcmp(found + i, clean.result + i, sizeof(double)) != 0)
            return false;
    return count == clean.bytes;
}

/* Of two gradients the first may have its new name, if the second could not be given its own. */
static bool older_is_left(void)
{
    if (clean.scene.work == SUM_IN_PLACE)
        return elements_are_old_or_new();
    bool first = result_is("d.npy", OLD, strlen(OLD));
    if (!clean.scene.gradients)
        return first;
    return result_is("e.npy", OLD, strlen(OLD)) &&
           (first || result_is("d.npy", clean.result, clean.bytes));
}

static const char *fault_in_error(const outcome *got, int error)
{
    const jask_error *err = &got->err;
    bool complete = strstr(err->msg, "is complete, but") != NULL;
    if (err->code != got->status)
        return "the code differs from the status";
    if (!names_the_thing(err))
        return "the message names nothing";
    if ((err->code == JASK_ERR_IO || err->code == JASK_ERR_CONFIG) && err->sys_errno != 0 &&
        !strstr(err->msg, strerror(error)))
        return "the message lacks the reason";
    if (complete && clean.scene.gradients ? !result_is("d.npy", clean.result, clean.bytes)
        : complete                        ? !result_is_right(got)
                                          : !older_is_left())
        return "the older result is harmed";
    return NULL;
}

static const char *fault_in(const outcome *got, ending expected, int error, bool hit)
{
    char link[16];
    if (got->status && (!hit || expected == SUCCEEDS))
        return "it failed";
    if (!got->status && hit && expected == FAILS)
        return "it succeeded";
    if (readlink("link.npy", link, sizeof link) < 0)
        return "the symlink was replaced";
    if ((entries(".") != clean.names && !(clean.scene.resumes && got->status)) ||
        entries("scratch") != 0)
        return "a file was left";
    if (entries("/proc/self/fd") != clean.descriptors)
        return "a descriptor was left open";
    if (entries_at_most("/proc/self/task", clean.threads) > clean.threads)
        return "a thread was left running";
    if (got->status)
        return fault_in_error(got, error);
    return result_is_right(got) ? NULL : "the result is wrong";
}

/* After a failure the next run ends right, and nothing of either is left. */
static void go_on(const outcome *failed)
{
    outcome got = {.status = JASK_OK};
    work_perform(&clean.scene, &got);
    if (got.status || !result_is_right(&got) || entries(".") != clean.names)
        cr_assert_fail("after '%s' the next run %s: %s, %d names", failed->err.msg,
                       got.status ? "fails" : "is wrong", got.status ? got.err.msg : "",
                       entries("."));
}

/* Returns whether the call that was to fail was made at all. */
static bool attempt(size_t f, int64_t nth, bool onward)
{
    outcome got = {.status = JASK_OK};
    ending expected = faults[f].expected;
    const char *wrong;
    bool hit;
    write_target(&clean.scene);
    if (clean.scene.gradients)
        write_old("e.npy");
    fault_arm(faults[f].kind, nth, faults[f].error, onward);
    work_perform(&clean.scene, &got);
    hit = fault_disarm() >= nth;
    /* Names that are not durable cost a resumed run its start, not its result. */
    if (clean.scene.resumes && faults[f].kind == FAULT_SYNC && expected == FAILS)
        expected = EITHER;
    /* One other way is enough where one call fails, not where all do. */
    wrong =
        fault_in(&got, onward && expected == SUCCEEDS ? EITHER : expected, faults[f].error, hit);
    if (wrong)
        cr_assert_fail("call %" PRId64 "%s of kind %d with '%s': %s (%s: %s)", nth,
                       onward ? " and all later ones" : "", (int)faults[f].kind,
                       strerror(faults[f].error), wrong, jask_status_name(got.status),
                       got.status ? got.err.msg : "");
    if (got.status && clean.scene.resumes)
        go_on(&got);
    return hit;
}

static void enter_scene(const scene *s)
{
    const struct timespec settling = {.tv_nsec = 50000000};
    outcome got = {.status = JASK_OK};
    bool product = s->work == PRODUCT;
    int64_t k = !product ? N : s->direct ? LONG_K : s->gradients ? FLAT_K : K;
    int64_t m = s->gradients ? WIDE : M, n = s->gradients ? WIDE : N;
    clean.scene = *s;
    fault_system.no_tmpfile = s->no_tmpfile;
    e2e_write("a.npy", (e2e_form){JASK_F64, false, false}, m, k, 1, NULL);
    e2e_write("b.npy", (e2e_form){JASK_F64, !s->direct, false}, product ? n : 1, k, 2, NULL);
    e2e_write("c.npy", (e2e_form){JASK_F64, true, true}, m, n, 3, NULL);
    write_target(s);
    read_result("d.npy", clean.old);
    cr_assert(symlink("d.npy", "link.npy") == 0 || errno == EEXIST);
    cr_assert(mkdir("scratch", 0700) == 0 || errno == EEXIST);
    work_perform(s, &got);
    cr_assert_eq(got.status, JASK_OK, "%s", got.err.msg);
    clean.names = s->gradients ? 7 : 6;
    clean.bytes = s->named ? read_result("d.npy", clean.result) : got.bytes;
    clean.second_bytes = s->gradients ? read_result("e.npy", clean.second) : 0;
    if (!s->named)
        memcpy(clean.result, got.result, got.bytes);
    clean.descriptors = entries("/proc/self/fd");
    nanosleep(&settling, NULL);
    clean.threads = entries("/proc/self/task");
}

/* Each call in turn, alone and with all that follow; fewer of the many that are alike. An
 * interruption without end is none. */
static void fail_each_call(const scene *s)
{
    enter_scene(s);
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        bool lasts = faults[f].error != EINTR;
        for (int64_t nth = 1; attempt(f, nth, false); nth += 1 + nth / 64 * 32)
            if (lasts)
                attempt(f, nth, true);
    }
}

/* ---- tests ---- */

Test(fault, in_a_durable_product_leaves_the_older_result)
{
    fail_each_call(&(scene){.planner = "auto", .named = true, .sync = true, .links = true});
}

Test(fault, in_a_product_added_to_c_without_nameless_files_leaves_the_older_result)
{
    fail_each_call(&(scene){.planner = "page", .named = true, .adds = true, .no_tmpfile = true});
}

Test(fault, in_a_product_that_can_be_resumed_does_not_spoil_the_next_run)
{
    fail_each_call(&(scene){.planner = "bytes", .named = true, .sync = true, .resumes = true});
}

Test(fault, in_a_product_read_around_the_page_cache_leaves_the_older_result)
{
    fail_each_call(&(scene){.planner = "auto", .named = true, .sync = true, .direct = true});
}

Test(fault, in_a_scaled_c_leaves_the_older_result)
{
    fail_each_call(&(scene){.planner = "bytes", .named = true, .adds = true, .skips = true});
}

Test(fault, in_a_product_and_its_check_in_scratch_leaves_nothing)
{
    fail_each_call(&(scene){.planner = "bytes", .adds = true, .verifies = true});
}

Test(fault, in_gradients_made_jointly_leaves_both_older_results)
{
    fail_each_call(&(scene){.planner = "bytes", .named = true, .sync = true, .gradients = true});
}

Test(fault, in_a_sum_leaves_the_older_result)
{
    fail_each_call(
        &(scene){.work = SUM, .planner = "auto", .named = true, .sync = true, .links = true});
}

Test(fault, in_a_sum_in_scratch_leaves_nothing)
{
    fail_each_call(&(scene){.work = SUM, .planner = "auto", .no_tmpfile = true});
}

Test(fault, in_a_sum_in_place_leaves_elements_that_are_old_or_new)
{
    fail_each_call(&(scene){.work = SUM_IN_PLACE, .planner = "auto", .named = true, .sync = true});
}

Test(fault, in_gradients_of_a_sum_leaves_the_older_result)
{
    fail_each_call(&(scene){.work = SUM_GRADIENTS, .planner = "auto", .named = true, .sync = true});
}

Test(fault, in_a_reduction_leaves_the_older_result)
{
    fail_each_call(&(scene){.work = REDUCTION, .planner = "auto", .named = true, .sync = true});
}

Test(fault, calls_that_move_a_thousand_bytes_give_the_same_result)
{
    static const scene scenes[] = {{.planner = "auto", .named = true},
                                   {.planner = "page", .adds = true, .verifies = true},
                                   {.planner = "bytes", .named = true, .adds = true, .skips = true},
                                   {.planner = "auto", .named = true, .direct = true},
                                   {.work = SUM, .planner = "auto", .named = true},
                                   {.work = SUM_IN_PLACE, .planner = "auto", .named = true},
                                   {.work = REDUCTION, .planner = "auto"}};
    static const size_t most[] = {1000, 7, 1};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        enter_scene(&scenes[i]);
        for (size_t j = 0; j < sizeof most / sizeof *most; j++) {
            fault_system.call_bytes = most[j];
            cr_assert_not(attempt(0, INT64_MAX, false));
            fault_system.call_bytes = 0;
        }
    }
}
