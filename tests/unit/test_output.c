#include "faulty_calls.h"
#include "runtime/file.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(output, .init = tree_enter, .fini = tree_leave);

static const char *content(const char *path)
{
    static char text[64];
    FILE *file = fopen(path, "r");
    size_t got;
    if (!file)
        return "(none)";
    got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    return text;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    cr_assert_eq(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

/* Write "new" under `target`. */
static jask_status write_new(const char *target, bool sync, jask_error *err)
{
    jk_output *output = NULL;
    jask_status st = jk_output_open(target, 3, &output, err);
    if (!st)
        st = jk_file_write(&output->file, 0, "new", 3, err);
    if (!st)
        st = jk_output_commit(output, sync, err);
    jk_output_close(output);
    return st;
}

/* The ways in which systems differ; all must give the same. */
static const struct {
    int tmpfile, fallocate, empty_path;
    bool no_proc;
} systems[] = {
    {0, 0, 0, false},           {0, 0, ENOENT, false}, /* no privilege to link by descriptor */
    {EOPNOTSUPP, 0, 0, false},  {EISDIR, EOPNOTSUPP, 0, false}, {EINVAL, ENOSYS, 0, false},
    {ENOENT, EINVAL, 0, false}, {0, EOPNOTSUPP, ENOENT, false}, {0, 0, 0, true},
};
#define SYSTEMS (sizeof systems / sizeof *systems)

static void become(size_t i)
{
    memset(&faulty, 0, sizeof faulty);
    faulty.tmpfile = systems[i].tmpfile;
    faulty.fallocate = systems[i].fallocate;
    faulty.fallocate_times = systems[i].fallocate ? 1000 : 0;
    faulty.empty_path = systems[i].empty_path;
    faulty.no_proc = systems[i].no_proc;
}

/* ---- tests ---- */

Test(output, appears_at_commit_complete_and_alone)
{
    for (size_t i = 0; i < SYSTEMS; i++) {
        for (int old = 0; old <= 1; old++) {
            jk_output *output;
            become(i);
            unlink("c");
            if (old)
                tree_write(".", "/c", "old");
            cr_assert_eq(jk_output_open("c", 3, &output, NULL), JASK_OK);
            cr_assert_eq(jk_file_write(&output->file, 0, "new", 3, NULL), JASK_OK);
            cr_assert_str_eq(content("c"), old ? "old" : "(none)");
            cr_assert_eq(jk_output_commit(output, true, NULL), JASK_OK);
            cr_assert_str_eq(content("c"), "new");
            cr_assert_eq(faulty.syncs, 2);
            jk_output_close(output);
            cr_assert_str_eq(content("c"), "new");
            cr_assert_eq(tree_entries("."), 1);
        }
    }
}

Test(output, what_is_not_committed_leaves_no_trace)
{
    for (size_t i = 0; i < SYSTEMS; i++) {
        jk_output *output;
        become(i);
        tree_write(".", "/c", "old");
        cr_assert_eq(jk_output_open("c", 1000, &output, NULL), JASK_OK);
        cr_assert_eq(jk_file_write(&output->file, 0, "new", 3, NULL), JASK_OK);
        jk_output_close(output);
        cr_assert_str_eq(content("c"), "old");
        cr_assert_eq(tree_entries("."), 1);
    }
    jk_output_close(NULL);
}

Test(output, is_as_long_as_asked_and_zero)
{
    static const uint64_t sizes[] = {0, 1, 4096, 1000001};
    for (size_t i = 0; i < SYSTEMS; i++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            jk_output *output;
            struct stat st;
            char byte = 1;
            become(i);
            cr_assert_eq(jk_output_open("c", sizes[s], &output, NULL), JASK_OK);
            cr_assert_eq(output->file.bytes, sizes[s]);
            cr_assert_eq((output->file.lacks & JK_FILE_NAMED) != 0,
                         systems[i].tmpfile || systems[i].no_proc);
            cr_assert_eq((output->file.lacks & JK_FILE_UNRESERVED) != 0,
                         systems[i].fallocate && sizes[s]);
            if (sizes[s]) {
                cr_assert_eq(jk_file_read(&output->file, sizes[s] - 1, &byte, 1, NULL), JASK_OK);
                cr_assert_eq(byte, 0);
            }
            cr_assert_eq(jk_output_commit(output, false, NULL), JASK_OK);
            jk_output_close(output);
            cr_assert_eq(stat("c", &st), 0);
            cr_assert_eq((uint64_t)st.st_size, sizes[s]);
        }
    }
}

Test(output, without_sync_nothing_waits_for_the_disk)
{
    cr_assert_eq(write_new("c", false, NULL), JASK_OK);
    cr_assert_eq(faulty.syncs, 0);
}

Test(output, permissions_follow_umask_or_the_file_that_is_replaced)
{
    static const struct {
        mode_t umask, old, then; /* old 0: no file */
    } cases[] = {
        {022, 0, 0644}, {027, 0, 0640}, {0, 0, 0666}, {022, 0604, 0604}, {077, 0664, 0664}};
    for (size_t i = 0; i < SYSTEMS; i++) {
        for (size_t m = 0; m < sizeof cases / sizeof *cases; m++) {
            become(i);
            unlink("c");
            if (cases[m].old) {
                tree_write(".", "/c", "old");
                cr_assert_eq(chmod("c", cases[m].old), 0);
            }
            umask(cases[m].umask);
            cr_assert_eq(write_new("c", false, NULL), JASK_OK);
            cr_assert_eq(mode_of("c"), cases[m].then);
        }
    }
}

Test(output, a_symlink_stays_one_and_its_target_is_replaced)
{
    char link[64] = "", path[PATH_MAX];
    cr_assert_eq(mkdir("data", 0777), 0);
    tree_write(".", "/data/c", "old");
    cr_assert_eq(symlink("data/hop", "link"), 0);
    cr_assert_eq(symlink("../data/c", "data/hop"), 0);
    cr_assert_eq(write_new("link", true, NULL), JASK_OK);
    cr_assert_str_eq(content("data/c"), "new");
    cr_assert_gt(readlink("link", link, sizeof link - 1), 0);
    cr_assert_str_eq(link, "data/hop");
    cr_assert_gt(readlink("data/hop", link, sizeof link - 1), 0);
    cr_assert_eq(tree_entries("data"), 2);

    cr_assert_eq(unlink("data/c"), 0); /* now it dangles */
    cr_assert_eq(write_new("link", true, NULL), JASK_OK);
    cr_assert_str_eq(content("data/c"), "new");

    cr_assert_not_null(getcwd(path, sizeof path - 2));
    strcat(path, "/d");
    cr_assert_eq(symlink(path, "absolute"), 0);
    cr_assert_eq(write_new("absolute", true, NULL), JASK_OK);
    cr_assert_str_eq(content("d"), "new");
}

Test(output, hard_linked_inputs_keep_their_bytes)
{
    tree_write(".", "/a", "old");
    cr_assert_eq(link("a", "c"), 0);
    cr_assert_eq(write_new("c", true, NULL), JASK_OK);
    cr_assert_str_eq(content("a"), "old");
    cr_assert_str_eq(content("c"), "new");
}

Test(output, refuses_what_is_no_place_for_a_result)
{
    static const struct {
        const char *target;
        jask_status status;
        const char *said;
    } cases[] = {
        {"", JASK_ERR_ARG, "empty name"},
        {"dir", JASK_ERR_ARG, "'dir' is a directory"},
        {"dir/", JASK_ERR_ARG, "'dir/' is a directory"},
        {".", JASK_ERR_ARG, "'.' is a directory"},
        {"new/", JASK_ERR_ARG, "'new/' names a directory"},
        {"fifo", JASK_ERR_ARG, "'fifo' is a FIFO"},
        {"/dev/null", JASK_ERR_ARG, "'/dev/null' is a device"},
        {"to_fifo", JASK_ERR_ARG, "'to_fifo' is a FIFO"},
        {"loop", JASK_ERR_IO, "'loop'"},
        {"none/c", JASK_ERR_IO, "directory 'none/', where 'none/c' is to be written: No such"},
        {"file/c", JASK_ERR_IO, "'file/c': Not a directory"},
        {"to_none", JASK_ERR_IO, "directory 'none/', where 'to_none' is"},
    };
    cr_assert_eq(mkdir("dir", 0777), 0);
    cr_assert_eq(mkfifo("fifo", 0666), 0);
    tree_write(".", "/file", "old");
    cr_assert_eq(symlink("fifo", "to_fifo"), 0);
    cr_assert_eq(symlink("loop", "loop"), 0);
    cr_assert_eq(symlink("none/c", "to_none"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_output *output = NULL;
        jask_error err;
        cr_assert_eq(jk_output_open(cases[i].target, 3, &output, &err), cases[i].status, "'%s'",
                     cases[i].target);
        cr_assert_not_null(strstr(err.msg, cases[i].said), "%s", err.msg);
        cr_assert_null(output);
        cr_assert_eq(jk_output_open(cases[i].target, 3, &output, NULL), cases[i].status);
    }
    cr_assert_eq(tree_entries("."), 6);
}

Test(output, a_name_of_full_length_works_on_every_system)
{
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    for (size_t i = 0; i < SYSTEMS; i++) {
        become(i);
        cr_assert_eq(write_new(name, false, NULL), JASK_OK);
        cr_assert_str_eq(content(name), "new");
        cr_assert_eq(tree_entries("."), 1);
    }
}

Test(output, is_refused_beforehand_where_it_cannot_fit)
{
    jk_output *output = NULL;
    jk_file scratch = JK_FILE_NONE;
    jask_error err;
    struct statvfs fs;
    struct rlimit limit = {1000, RLIM_INFINITY};
    uint64_t too_much;
    char text[64];
    cr_assert_eq(statvfs(".", &fs), 0);
    too_much = fs.f_frsize * (uint64_t)fs.f_blocks + 1;
    snprintf(text, sizeof text, "needs %llu bytes, and ", (unsigned long long)too_much);

    cr_assert_eq(jk_output_open("c", too_much, &output, &err), JASK_ERR_IO);
    cr_assert_eq(err.sys_errno, ENOSPC);
    cr_assert_not_null(strstr(err.msg, text), "%s", err.msg);
    cr_assert_not_null(strstr(err.msg, "'c'"), "%s", err.msg);
    cr_assert_eq(jk_file_scratch(".", too_much, &scratch, &err), JASK_ERR_IO);
    cr_assert_not_null(strstr(err.msg, text), "%s", err.msg);

    /* Beyond this limit the system would kill the process by SIGXFSZ. */
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(jk_output_open("c", 1001, &output, &err), JASK_ERR_IO);
    cr_assert_eq(err.sys_errno, EFBIG);
    cr_assert_not_null(strstr(err.msg, "needs 1001 bytes"), "%s", err.msg);
    cr_assert_not_null(strstr(err.msg, "files of 1000"), "%s", err.msg);
    cr_assert_eq(jk_file_scratch(".", 1001, &scratch, NULL), JASK_ERR_IO);
    cr_assert_eq(jk_output_open("c", 1000, &output, NULL), JASK_OK);
    jk_output_close(output);
    cr_assert_eq(tree_entries("."), 0);
}

Test(output, only_not_supported_is_not_an_error_of_reserving)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EIO};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        jk_output *output = NULL;
        jk_file scratch = JK_FILE_NONE;
        jask_error err;
        faulty.fallocate = errors[i];
        faulty.fallocate_times = 2;
        cr_assert_eq(jk_output_open("c", 12345, &output, &err), JASK_ERR_IO);
        cr_assert_eq(err.sys_errno, errors[i]);
        cr_assert_not_null(strstr(err.msg, "reserve 12345 bytes for 'c' ("), "%s", err.msg);
        cr_assert_not_null(strstr(err.msg, strerror(errors[i])), "%s", err.msg);
        cr_assert_null(output);
        cr_assert_eq(jk_file_scratch(".", 12345, &scratch, &err), JASK_ERR_IO);
        cr_assert_eq(scratch.fd, -1);
        cr_assert_eq(tree_entries("."), 0);
    }
    faulty.fallocate = EINTR;
    faulty.fallocate_times = 3;
    cr_assert_eq(write_new("c", false, NULL), JASK_OK);
}

/* Whatever call fails: an error and the old file, or the new one; nothing beside it, nothing
 * leaked. */
Test(output, any_failing_call_leaves_the_old_or_the_new_file_alone)
{
    static const int errors[] = {EIO, ENOSPC, EACCES, ENOENT, EMFILE};
    for (size_t i = 0; i < SYSTEMS; i++) {
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
            for (int old = 0; old <= 1; old++) {
                bool reached = true;
                for (int n = 1; reached; n++) {
                    jask_error err = {.msg = ""};
                    jask_status st;
                    int fd = dup(0);
                    become(i);
                    faulty.fail_at = n;
                    faulty.fail_with = errors[e];
                    unlink("c");
                    if (old)
                        tree_write(".", "/c", "old");
                    st = write_new("c", true, &err);
                    reached = faulty.calls >= n;
                    close(fd);
                    cr_assert_eq(dup(0), fd, "a descriptor leaks");
                    close(fd);
                    cr_assert(st == JASK_OK || (reached && err.msg[0]));
                    /* Only the directory's own sync comes after the name. */
                    if (st && !strstr(err.msg, "its directory could not be synced"))
                        cr_assert_str_eq(content("c"), old ? "old" : "(none)", "call %d: %s", n,
                                         err.msg);
                    else
                        cr_assert_str_eq(content("c"), "new");
                    cr_assert_leq(tree_entries("."), 1);
                    cr_assert_eq(tree_entries("."), strcmp(content("c"), "(none)") != 0);
                }
            }
        }
    }
}

Test(output, directories_that_cannot_sync_are_no_error)
{
    jk_output *output;
    cr_assert_eq(jk_output_open("c", 0, &output, NULL), JASK_OK);
    faulty.fail_at = faulty.calls + 3; /* fsync, linkat, fsync */
    faulty.fail_with = EINVAL;
    cr_assert_eq(jk_output_commit(output, true, NULL), JASK_OK);
    cr_assert_eq(faulty.syncs, 2);
    cr_assert_eq(faulty.calls, faulty.fail_at);
    jk_output_close(output);
}

Test(output, two_writers_of_one_name_do_not_meet)
{
    for (size_t i = 0; i < SYSTEMS; i++) {
        jk_output *a, *b;
        become(i);
        unlink("c");
        cr_assert_eq(jk_output_open("c", 3, &a, NULL), JASK_OK);
        cr_assert_eq(jk_output_open("c", 3, &b, NULL), JASK_OK);
        cr_assert_eq(jk_file_write(&a->file, 0, "aaa", 3, NULL), JASK_OK);
        cr_assert_eq(jk_file_write(&b->file, 0, "bbb", 3, NULL), JASK_OK);
        cr_assert_eq(jk_output_commit(b, false, NULL), JASK_OK);
        cr_assert_str_eq(content("c"), "bbb");
        cr_assert_eq(jk_output_commit(a, false, NULL), JASK_OK);
        cr_assert_str_eq(content("c"), "aaa");
        jk_output_close(a);
        jk_output_close(b);
        cr_assert_eq(tree_entries("."), 1);
    }
}

/* A process that gets a signal just before it renames "kid" to c. */
static pid_t write_until_rename(int number)
{
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        jk_output *output = NULL;
        faulty.signal_at_rename = number;
        _exit(jk_output_open("c", 3, &output, NULL) ||
              jk_file_write(&output->file, 0, "kid", 3, NULL) ||
              jk_output_commit(output, false, NULL));
    }
    return child;
}

static int wait_for(pid_t child, int how)
{
    int status = 0;
    cr_assert_eq(waitpid(child, &status, how), child);
    return status;
}

/* Between its two names a result has another one, which the next run for the target removes. */
Test(output, killed_while_it_replaces_is_cleared_away_by_the_next)
{
    pid_t children[JK_COMMIT_NAMES];
    jk_output *next = NULL;
    tree_write(".", "/c", "old");
    for (int i = 0; i < JK_COMMIT_NAMES; i++) {
        children[i] = write_until_rename(SIGSTOP);
        cr_assert(WIFSTOPPED(wait_for(children[i], WUNTRACED)));
    }
    cr_assert_eq(tree_entries("."), 1 + JK_COMMIT_NAMES);
    cr_assert_eq(write_new("c", false, NULL), JASK_OK, "there is a name for one more");
    for (int i = 0; i < JK_COMMIT_NAMES; i++) {
        cr_assert_eq(kill(children[i], SIGKILL), 0);
        cr_assert(WIFSIGNALED(wait_for(children[i], 0)));
    }
    cr_assert_str_eq(content("c"), "new");
    cr_assert_str_eq(content(".c.jask-commit7"), "kid");
    cr_assert_eq(tree_entries("."), 1 + JK_COMMIT_NAMES);
    cr_assert_eq(jk_output_open("c", 3, &next, NULL), JASK_OK);
    cr_assert_eq(tree_entries("."), 1);
    jk_output_close(next);
    cr_assert(WIFSIGNALED(wait_for(write_until_rename(SIGKILL), 0)));
    cr_assert_eq(tree_entries("."), 2);
    cr_assert_eq(jk_output_open_partial("c", 3, false, &next, NULL), JASK_OK);
    cr_assert_eq(tree_entries("."), 2); /* the partial result is the other one */
    cr_assert_str_eq(content(".c.jask-commit0"), "(none)");
    jk_output_close(next);
}

Test(output, stopped_while_it_replaces_is_left_alone_by_others)
{
    pid_t child;
    tree_write(".", "/c", "old");
    child = write_until_rename(SIGSTOP);
    cr_assert(WIFSTOPPED(wait_for(child, WUNTRACED)));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(write_new("c", false, NULL), JASK_OK);
        cr_assert_str_eq(content("c"), "new");
        cr_assert_str_eq(content(".c.jask-commit0"), "kid");
        cr_assert_eq(tree_entries("."), 2);
    }
    cr_assert_eq(kill(child, SIGCONT), 0);
    cr_assert_eq(wait_for(child, 0), 0);
    cr_assert_str_eq(content("c"), "kid");
    cr_assert_eq(tree_entries("."), 1);
}

/* What has such a name and is no result of this user's stays; names are left over for the commit. */
Test(output, takes_away_only_what_it_has_left)
{
    tree_write(".", "/c", "old");
    tree_write(".", "/.c.jask-commit", "mine");
    tree_write(".", "/.c.jask-commit00", "mine");
    tree_write(".", "/.cc.jask-commit0", "mine");
    cr_assert_eq(mkdir(".c.jask-commit0", 0777), 0);
    cr_assert_eq(mkfifo(".c.jask-commit1", 0666), 0);
    cr_assert_eq(symlink(".c.jask-commit", ".c.jask-commit2"), 0);
    tree_write(".", "/.c.jask-commit3", "theirs");
    if (geteuid() == 0)
        cr_assert_eq(chown(".c.jask-commit3", 1, 1), 0);
    cr_assert_eq(write_new("c", false, NULL), JASK_OK);
    cr_assert_str_eq(content("c"), "new");
    cr_assert_str_eq(content(".c.jask-commit"), "mine");
    cr_assert_eq(tree_entries("."), geteuid() == 0 ? 8 : 7);
}

Test(output, scratch_files_have_no_name_and_are_private)
{
    jask_error err;
    jk_file none = JK_FILE_NONE;
    for (size_t i = 0; i < SYSTEMS; i++) {
        jk_file file;
        struct stat st;
        char text[4] = "";
        become(i);
        umask(0);
        cr_assert_eq(jk_file_scratch(".", 100000, &file, NULL), JASK_OK);
        cr_assert_eq(file.lacks, systems[i].fallocate ? JK_FILE_UNRESERVED : 0);
        cr_assert_eq(tree_entries("."), 0);
        cr_assert_eq(fstat(file.fd, &st), 0);
        cr_assert_eq(st.st_nlink, 0);
        cr_assert_eq(st.st_mode & 0777, 0600);
        cr_assert_eq(st.st_size, 100000);
        if (!systems[i].fallocate)
            cr_assert_geq(st.st_blocks * 512, 100000);
        cr_assert_eq(jk_file_write(&file, 99997, "abc", 3, NULL), JASK_OK);
        cr_assert_eq(jk_file_read(&file, 99997, text, 3, NULL), JASK_OK);
        cr_assert_str_eq(text, "abc");
        cr_assert_eq(jk_file_check_unchanged(&file, NULL), JASK_OK);
        jk_file_close(&file);
    }
    cr_assert_eq(jk_file_scratch("none", 1, &none, &err), JASK_ERR_IO);
    cr_assert_not_null(strstr(err.msg, "scratch directory 'none': No such file"), "%s", err.msg);
}
