#include "runtime/system.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char table[] = "23 28 0:22 / /proc rw,nosuid shared:12 - proc proc rw\n"
                            "28 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n"
                            "30 28 0:26 / /dev/shm rw shared:4 master:2 - tmpfs tmpfs rw\n"
                            "31 28 8:3 / /data rw - xfs /dev/sdb1 rw\n"
                            "32 31 0:40 / /data/fast rw - tmpfs tmpfs rw\n"
                            "33 28 8:4 / /over rw - ext4 /dev/sdc1 rw\n"
                            "34 33 0:41 / /over rw - tmpfs tmpfs rw\n"
                            "35 28 0:42 / /with\\040blank\\134slash\\011tab rw - ramfs none rw\n"
                            "36 28 0:43 / /octal\\180\\108\\400 rw - fuse.x none rw\n"
                            "37 28 0:44 /sub /bound rw -  btrfs  rw\n"
                            "damaged\n"
                            "38 28 0:45 / /nofs rw\n";

Test(mounts, finds_the_type_by_the_longest_mount_point)
{
    static const struct {
        const char *path, *type;
    } cases[] = {
        {"/", "ext4"},
        {"/home/x", "ext4"},
        {"/proc", "proc"},
        {"/proc/self", "proc"},
        {"/process", "ext4"},
        {"/dev", "ext4"},
        {"/dev/shm", "tmpfs"},
        {"/dev/shm/jask", "tmpfs"},
        {"/dev/shmoo", "ext4"},
        {"/data", "xfs"},
        {"/data/fas", "xfs"},
        {"/data/faster", "xfs"},
        {"/data/fast", "tmpfs"},
        {"/data/fast/x/y", "tmpfs"},
        {"/over/x", "tmpfs"},
        {"/with blank\\slash\ttab/x", "ramfs"},
        {"/octal\\180\\108\\400", "fuse.x"},
        {"/bound/x", "btrfs"},
        {"/nofs", "ext4"},
    };
    char *tree = tree_open();

    tree_write(tree, "/proc/self/mountinfo", table);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char type[32] = "";
        jask_error err = {0};
        cr_assert_eq(jk_mount_type(tree, cases[i].path, type, sizeof type, &err), JASK_OK, "%s",
                     err.msg);
        cr_assert_str_eq(type, cases[i].type, "%s: %s", cases[i].path, type);
    }
    tree_remove(tree);
}

Test(mounts, refuses_what_no_mount_holds)
{
    char *tree = tree_open();
    char type[8] = "kept";
    jask_error err;

    cr_assert_eq(jk_mount_type(tree, "/x", type, sizeof type, &err), JASK_ERR_IO);
    cr_assert_not_null(strstr(err.msg, "No such file"), "%s", err.msg);
    tree_write(tree, "/proc/self/mountinfo", "23 28 0:22 / /proc rw - proc proc rw\n");
    cr_assert_eq(jk_mount_type(tree, "/x", type, sizeof type, &err), JASK_ERR_IO);
    cr_assert_not_null(strstr(err.msg, "'/x'"), "%s", err.msg);
    cr_assert_str_eq(type, "kept");
    tree_remove(tree);
}

Test(mounts, takes_a_line_apart)
{
    char full[] =
        "35 31 0:32 /a\\040b /mnt\\011x ro,noexec shared:7 master:1 - cgroup none rw,memory\n";
    char sourceless[] = "37 28 0:44 /sub /bound rw - btrfs  rw\n";
    jk_mount mount;

    cr_assert(jk_mount_parse(full, &mount));
    cr_assert_str_eq(mount.root, "/a b");
    cr_assert_str_eq(mount.point, "/mnt\tx");
    cr_assert_str_eq(mount.type, "cgroup");
    cr_assert_str_eq(mount.options, "rw,memory");
    cr_assert(jk_mount_parse(sourceless, &mount));
    cr_assert_str_eq(mount.type, "btrfs");
    cr_assert_str_eq(mount.options, "rw");
}

Test(mounts, compares_whole_components)
{
    cr_assert(jk_path_within("/a", "/a"));
    cr_assert(jk_path_within("/a/b", "/a"));
    cr_assert(jk_path_within("/a/b", "/"));
    cr_assert(jk_path_within("/", "/"));
    cr_assert_not(jk_path_within("/ab", "/a"));
    cr_assert_not(jk_path_within("/a", "/a/b"));
    cr_assert_not(jk_path_within("/", "/a"));
}

Test(mounts, sees_ram_through_links_and_from_within)
{
    char *tree = tree_open();
    char link[4096];
    char shm[64] = "/dev/shm/jask-test-XXXXXX";
    char type[32] = "kept";
    bool in_ram = false;
    jask_error err;

    cr_assert_eq(jk_dir_in_ram("/no/such", &in_ram, type, sizeof type, &err), JASK_ERR_IO);
    cr_assert_not_null(strstr(err.msg, "'/no/such'"), "%s", err.msg);
    cr_assert_str_eq(type, "kept");
    if (jk_mount_type("", "/dev/shm", type, sizeof type, NULL) || strcmp(type, "tmpfs") != 0 ||
        !mkdtemp(shm)) {
        tree_remove(tree);
        cr_skip_test("no tmpfs on /dev/shm to write to");
    }
    snprintf(link, sizeof link, "%s/link", tree);
    cr_assert_eq(symlink(shm, link), 0);
    const char *paths[] = {"/dev/shm", shm, link};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        in_ram = false;
        cr_assert_eq(jk_dir_in_ram(paths[i], &in_ram, type, sizeof type, &err), JASK_OK, "%s",
                     err.msg);
        cr_assert(in_ram, "%s", paths[i]);
        cr_assert_str_eq(type, "tmpfs");
    }
    cr_assert_eq(jk_dir_in_ram("/proc", &in_ram, type, sizeof type, &err), JASK_OK);
    cr_assert_not(in_ram);
    cr_assert_str_eq(type, "");
    rmdir(shm);
    tree_remove(tree);
}
