/* Timelines whose file cannot be written; what they say is tested by running jask-gemm. */
#include "runtime/trace.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static int fail_at, calls;

ssize_t __real_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset)
{
    if (++calls == fail_at) {
        errno = ENOSPC;
        return -1;
    }
    return __real_pwrite64(fd, buf, bytes, offset);
}

TestSuite(trace, .init = tree_enter, .fini = tree_leave, .timeout = 60);

/* More than any buffer holds. */
static void trace_much(char *note, size_t note_size)
{
    jk_trace *trace = NULL;
    jask_error err;
    cr_assert_eq(jk_trace_open("t.json", 2, 1, &trace, &err), JASK_OK, "%s", err.msg);
    for (int i = 0; i < 20000; i++)
        jk_trace_span(trace, JK_TRACK_WRITER, "write", "band", i, 1 + i, 2 + i);
    jk_trace_end(&trace, "dot", 1, note, note_size);
    cr_assert_null(trace);
}

Test(trace, a_full_disk_is_told_and_leaves_the_older_file)
{
    char note[64] = "";
    int writes;
    trace_much(note, sizeof note);
    cr_assert_str_empty(note);
    writes = calls;
    cr_assert_gt(writes, 10);
    for (int i = 1; i <= writes; i++) {
        fail_at = i;
        calls = 0;
        note[0] = '\0';
        tree_write(".", "/t.json", "older");
        trace_much(note, sizeof note);
        cr_assert_eq(calls, i, "it went on writing");
        cr_assert_eq(strncmp(note, "no trace was written: ", 22), 0, "%s", note);
        cr_assert_eq(tree_entries("."), 1);
    }
}

Test(trace, a_warning_that_is_there_stays)
{
    char note[64] = "less memory";
    fail_at = 1;
    trace_much(note, sizeof note);
    cr_assert_str_eq(note, "less memory");
    calls = 0;
    trace_much(NULL, 0);
}

Test(trace, nobody_who_listens_costs_nothing)
{
    jk_trace *none = NULL;
    jk_trace_span(NULL, JK_TRACK_WRITER, "write", "band", 0, 0, 1);
    jk_trace_end(&none, "dot", 0, NULL, 0);
}
