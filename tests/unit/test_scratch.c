#include "runtime/system.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int entries(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    cr_assert_not_null(dir, "%s", path);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static void check_ready(const char *dir, bool allow_tmpfs, const char *resolved)
{
    char *out = NULL;
    jask_error err = {0};
    cr_assert_eq(jk_scratch_prepare(dir, "option", allow_tmpfs, &out, &err), JASK_OK, "%s: %s", dir,
                 err.msg);
    cr_assert_str_eq(out, resolved);
    cr_assert_eq(entries(out), 0, "something was left in %s", out);
    free(out);
}

/* Refused with each of the words in the message. */
static void check_refused(const char *dir, const char *source, const char *const words[4],
                          int sys_errno)
{
    char *out = (char *)"untouched";
    jask_error err = {0};
    cr_assert_eq(jk_scratch_prepare(dir, source, false, &out, &err), JASK_ERR_CONFIG, "%s", dir);
    cr_assert_eq(err.code, JASK_ERR_CONFIG);
    cr_assert_eq(err.sys_errno, sys_errno, "%s", err.msg);
    cr_assert_str_eq(out, "untouched");
    for (int i = 0; i < 4 && words[i]; i++)
        cr_assert_not_null(strstr(err.msg, words[i]), "'%s' is not in: %s", words[i], err.msg);
    cr_assert_eq(jk_scratch_prepare(dir, source, false, &out, NULL), JASK_ERR_CONFIG);
}

Test(scratch, makes_what_is_missing_and_resolves_it)
{
    char *tree = tree_open();
    char path[PATH_MAX], deep[PATH_MAX], asked[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof path, "%s/one", tree);
    check_ready(path, false, path);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0700, "other users must not see scratch files");
    check_ready(path, false, path);

    snprintf(deep, sizeof deep, "%s/a/b/c", tree);
    snprintf(asked, sizeof asked, "%s/a//b/c//", tree);
    check_ready(asked, false, deep);
    cr_assert_eq(stat(deep, &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0700);

    /* A link stays a link, and what it names is what is told. */
    snprintf(path, sizeof path, "%s/link", tree);
    cr_assert_eq(symlink("a/b", path), 0);
    snprintf(deep, sizeof deep, "%s/a/b", tree);
    snprintf(asked, sizeof asked, "%s/link/../b/d", tree);
    char want[PATH_MAX];
    snprintf(want, sizeof want, "%s/a/b/d", tree);
    check_ready(asked, false, want);
    rmdir(want);
    rmdir(strcat(deep, "/c"));
    snprintf(deep, sizeof deep, "%s/a/b", tree);
    check_ready(path, false, deep);

    /* Relative to where the program is. */
    cr_assert_eq(chdir(tree), 0);
    snprintf(want, sizeof want, "%s/rel/x", tree);
    check_ready("rel/x", false, want);
    snprintf(want, sizeof want, "%s/.jask_scratch", tree);
    check_ready(".jask_scratch", false, want);
    tree_remove(tree);
}

Test(scratch, says_which_setting_which_path_and_why)
{
    char *tree = tree_open();
    char file[PATH_MAX], below[PATH_MAX], dangling[PATH_MAX];
    const char *dir_advice = "set scratch_dir or JASK_SCRATCH_DIR";

    tree_write(tree, "/file", "text");
    snprintf(file, sizeof file, "%s/file", tree);
    snprintf(below, sizeof below, "%s/file/x", tree);
    snprintf(dangling, sizeof dangling, "%s/dangling", tree);
    cr_assert_eq(symlink("nowhere", dangling), 0);

    check_refused("", "environment", (const char *[4]){"JASK_SCRATCH_DIR", "''", "empty"}, 0);
    check_refused("", "option", (const char *[4]){"the scratch_dir option", "''", "empty"}, 0);
    check_refused(
        file, "environment",
        (const char *[4]){"JASK_SCRATCH_DIR", file, "cannot be used: Not a directory", dir_advice},
        ENOTDIR);
    check_refused(below, "option",
                  (const char *[4]){"the scratch_dir option", below, "Not a directory", dir_advice},
                  ENOTDIR);
    check_refused(
        dangling, "default",
        (const char *[4]){"the default scratch directory", dangling, "No such file", dir_advice},
        ENOENT);
    cr_assert(exists(file));
    cr_assert(exists(dangling));
    tree_remove(tree);
}

/* /proc is a directory that every user may enter and nobody, not even root, can make files in. */
Test(scratch, refuses_a_directory_that_takes_no_files)
{
    if (!exists("/proc/self"))
        cr_skip_test("no /proc");
    check_refused("/proc", "environment",
                  (const char *[4]){"JASK_SCRATCH_DIR", "'/proc'", "no file can be made", "set "},
                  ENOENT);
    check_refused(
        "/proc/jask", "environment",
        (const char *[4]){"JASK_SCRATCH_DIR", "'/proc/jask'", "cannot be made", "No such"}, ENOENT);
}

Test(scratch, refuses_a_directory_without_permission)
{
    char *tree = tree_open();
    char locked[PATH_MAX], below[PATH_MAX];

    snprintf(locked, sizeof locked, "%s/locked", tree);
    snprintf(below, sizeof below, "%s/locked/x/y", tree);
    cr_assert_eq(mkdir(locked, 0555), 0);
    cr_assert_eq(chmod(tree, 0755), 0);
    /* Root may write anywhere: step down for a while. */
    bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0) {
        tree_remove(tree);
        cr_skip_test("cannot become another user");
    }
    check_refused(locked, "environment",
                  (const char *[4]){"JASK_SCRATCH_DIR", locked, "Permission denied", "set "},
                  EACCES);
    check_refused(below, "environment",
                  (const char *[4]){"JASK_SCRATCH_DIR", below, "Permission denied", "set "},
                  EACCES);
    cr_assert_eq(seteuid(root ? 0 : geteuid()), 0);
    tree_remove(tree);
}

static void *prepare(void *arg)
{
    char *out = NULL;
    jask_error err = {0};
    if (jk_scratch_prepare(arg, "option", false, &out, &err))
        return strdup(err.msg);
    free(out);
    return NULL;
}

Test(scratch, may_be_made_by_many_at_once)
{
    enum { THREADS = 8 };
    char *tree = tree_open();
    char path[PATH_MAX];

    for (int round = 0; round < 20; round++) {
        pthread_t thread[THREADS];
        snprintf(path, sizeof path, "%s/%d/b/c/d", tree, round);
        for (int i = 0; i < THREADS; i++)
            cr_assert_eq(pthread_create(&thread[i], NULL, prepare, path), 0);
        for (int i = 0; i < THREADS; i++) {
            void *message;
            cr_assert_eq(pthread_join(thread[i], &message), 0);
            cr_assert_null(message, "%s", (char *)message);
        }
    }
    tree_remove(tree);
}

/* A directory of ours on tmpfs; false where there is none. */
static bool open_shm(char *path, size_t path_size)
{
    char type[32];
    snprintf(path, path_size, "/dev/shm/jask-test-XXXXXX");
    return jk_mount_type("", "/dev/shm", type, sizeof type, NULL) == JASK_OK &&
           strcmp(type, "tmpfs") == 0 && mkdtemp(path);
}

Test(scratch, in_ram_is_refused_unless_allowed)
{
    char *tree = tree_open();
    char shm[64], fresh[PATH_MAX], parent[PATH_MAX], link[PATH_MAX];

    if (!open_shm(shm, sizeof shm)) {
        tree_remove(tree);
        cr_skip_test("no tmpfs on /dev/shm to write to");
    }
    snprintf(parent, sizeof parent, "%s/p", shm);
    snprintf(fresh, sizeof fresh, "%s/p/q/r", shm);
    snprintf(link, sizeof link, "%s/link", tree);
    cr_assert_eq(symlink(shm, link), 0);

    const char *const words[4] = {"the scratch_dir option", shm, "tmpfs", "JASK_ALLOW_TMPFS"};
    check_refused(shm, "option", words, 0);
    check_refused(link, "option", words, 0);
    check_refused(fresh, "option", words, 0);
    cr_assert(exists(shm), "what was there before must stay");
    cr_assert_not(exists(parent), "what was made and refused must go");
    strcat(link, "/s");
    check_refused(link, "option", words, 0);
    cr_assert_eq(entries(shm), 0);

    check_ready(shm, true, shm);
    check_ready(fresh, true, fresh);
    tree_remove(strdup(shm));
    tree_remove(tree);
}
