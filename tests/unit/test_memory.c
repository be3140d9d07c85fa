#include "runtime/system.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct file {
    const char *path, *text;
} file;

typedef struct machine {
    const char *what;
    file files[14];
    uint64_t bytes;
    const char *source;
} machine;

#define MEMINFO                                                                                    \
    {                                                                                              \
        "/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:          100 kB\n"                 \
                         "MemAvailable:    8388608 kB\nCached:  77 kB\n"                           \
    }
#define AVAILABLE 8589934592u
#define V1_HUGE "9223372036854771712\n"
#define V2_MOUNT "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define DISK_MOUNT "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"

static const machine plain[] = {
    {"no control groups", {MEMINFO}, AVAILABLE, "MemAvailable"},
    {"a group file that names none",
     {MEMINFO, {"/proc/self/cgroup", ""}},
     AVAILABLE,
     "MemAvailable"},
    {"a key that only begins like the one wanted",
     {{"/proc/meminfo", "MemAvailableX: 1 kB\nMemAvailable: 2 kB\n"}},
     2048,
     "MemAvailable"},
};

static const machine v2[] = {
    {"a limit, and nothing used",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/job\n"},
      {"/proc/self/mountinfo", DISK_MOUNT V2_MOUNT},
      {"/sys/fs/cgroup/job/memory.max", "268435456\n"},
      {"/sys/fs/cgroup/job/memory.current", "0\n"}},
     268435456,
     "/sys/fs/cgroup/job"},
    {"a container of 90 GB on a host of 1007 GB",
     {{"/proc/meminfo", "MemTotal: 1056431636 kB\nMemAvailable: 880426716 kB\n"},
      {"/proc/self/cgroup", "0::/\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/memory.max", "96636764160\n"},
      {"/sys/fs/cgroup/memory.current", "45000000000\n"}},
     51636764160,
     "/sys/fs/cgroup"},
    {"no limit anywhere",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a/b\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
      {"/sys/fs/cgroup/a/b/memory.current", "5\n"},
      {"/sys/fs/cgroup/a/memory.max", "max\n"}},
     AVAILABLE,
     "MemAvailable"},
    {"the parent's limit is the smaller",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a/b/c\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/b/c/memory.max", "2000000\n"},
      {"/sys/fs/cgroup/a/b/c/memory.current", "1000\n"},
      {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
      {"/sys/fs/cgroup/a/memory.max", "1500000\n"},
      {"/sys/fs/cgroup/a/memory.current", "500000\n"}},
     1000000,
     "/sys/fs/cgroup/a"},
    {"the parent's limit is the smaller, but less of it is used",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a/b\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/b/memory.max", "2000000\n"},
      {"/sys/fs/cgroup/a/b/memory.current", "1600000\n"},
      {"/sys/fs/cgroup/a/memory.max", "1500000\n"},
      {"/sys/fs/cgroup/a/memory.current", "500000\n"}},
     400000,
     "/sys/fs/cgroup/a/b"},
    {"memory.high below memory.max",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "2000000\n"},
      {"/sys/fs/cgroup/a/memory.high", "1000000\n"},
      {"/sys/fs/cgroup/a/memory.current", "1\n"}},
     999999,
     "/sys/fs/cgroup/a"},
    {"page cache that can go",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "2000000\n"},
      {"/sys/fs/cgroup/a/memory.current", "1900000\n"},
      {"/sys/fs/cgroup/a/memory.stat",
       "anon 400000\ninactive_file2 1\ninactive_file 1000000\nactive_file 500000\n"}},
     1600000,
     "/sys/fs/cgroup/a"},
    {"more page cache than use: the two are not read at one instant",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "2000000\n"},
      {"/sys/fs/cgroup/a/memory.current", "1000\n"},
      {"/sys/fs/cgroup/a/memory.stat", "inactive_file 1500\n"}},
     2000000,
     "/sys/fs/cgroup/a"},
    {"more used than the limit allows",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "1000\n"},
      {"/sys/fs/cgroup/a/memory.current", "1001\n"}},
     0,
     "/sys/fs/cgroup/a"},
    {"a limit of nothing",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "0\n"}},
     0,
     "/sys/fs/cgroup/a"},
    {"a limit above all the memory there is",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "17179869185\n"},
      {"/sys/fs/cgroup/a/memory.current", "17179869000\n"}},
     AVAILABLE,
     "MemAvailable"},
    {"a group outside of the namespace: what the mount shows counts",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/../sibling\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/memory.max", "3000\n"},
      {"/sys/fs/sibling/memory.max", "1000\n"}},
     3000,
     "/sys/fs/cgroup"},
    {"a host's path in front of a mount that knows nothing of it",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/system.slice/docker-12ab.scope\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/memory.max", "3000\n"},
      {"/sys/fs/cgroup/memory.current", "1000\n"}},
     2000,
     "/sys/fs/cgroup"},
    {"another container's group, mounted elsewhere",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/pods/one\n"},
      {"/proc/self/mountinfo", "40 1 0:26 /pods/two /mnt/two rw - cgroup2 cgroup2 rw\n" V2_MOUNT
                               "41 1 0:26 /pods/on /mnt/on rw - cgroup2 cgroup2 rw\n"
                               "42 1 0:26 /pods/one /mnt/one rw - cgroup2 cgroup2 rw\n"},
      {"/mnt/two/memory.max", "10\n"},
      {"/mnt/on/memory.max", "20\n"},
      {"/sys/fs/cgroup/pods/one/memory.max", "3000\n"},
      {"/sys/fs/cgroup/pods/memory.max", "2500\n"}},
     2500,
     "/sys/fs/cgroup/pods"},
    {"a mount point with a blank in its name",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", "29 23 0:26 / /my\\040groups rw - cgroup2 none rw\n"},
      {"/my groups/a/memory.max", "4000\n"}},
     4000,
     "/my groups/a"},
    {"a group with colons in its name",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a:b:c\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a:b:c/memory.max", "4000\n"}},
     4000,
     "/sys/fs/cgroup/a:b:c"},
};

static const machine v1[] = {
    {"the group's own limit",
     {MEMINFO,
      {"/proc/self/cgroup", "5:cpu,cpuacct:/else\n3:memory2,nomemory:/not\n4:memory:/job\n"},
      {"/proc/self/mountinfo",
       "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" V1_MOUNT},
      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "268435456\n"},
      {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "68435456\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", V1_HUGE}},
     200000000,
     "/sys/fs/cgroup/memory/job"},
    {"a parent's limit under a group without one",
     {MEMINFO,
      {"/proc/self/cgroup", "4:memory:/a/b\n"},
      {"/proc/self/mountinfo", V1_MOUNT},
      {"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", V1_HUGE},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n"},
      {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2000000\n"},
      /* The group's own cache is 4, all that lies below it 1000000. */
      {"/sys/fs/cgroup/memory/a/memory.stat",
       "inactive_file 4\ntotal_inactive_file 600000\ntotal_active_file 400000\n"}},
     4000000,
     "/sys/fs/cgroup/memory/a"},
    {"no limit",
     {MEMINFO,
      {"/proc/self/cgroup", "4:memory:/a\n"},
      {"/proc/self/mountinfo", V1_MOUNT},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", V1_HUGE},
      {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "7\n"}},
     AVAILABLE,
     "MemAvailable"},
    {"no limit, and no word of how much memory there is",
     {{"/proc/meminfo", "MemAvailable: 1 kB\n"},
      {"/proc/self/cgroup", "4:memory:/a\n"},
      {"/proc/self/mountinfo", V1_MOUNT},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", V1_HUGE},
      {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", V1_HUGE}},
     1024,
     "MemAvailable"},
    {"a container that sees its own group as the mount",
     {MEMINFO,
      {"/proc/self/cgroup", "4:cpuset,memory:/docker/12ab\n0::/\n"},
      {"/proc/self/mountinfo",
       "35 31 0:32 /docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n"},
      {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "300000\n"},
      {"/docker/12ab/memory.limit_in_bytes", "1\n"}},
     700000,
     "/sys/fs/cgroup/memory"},
    {"a group below the container's",
     {MEMINFO,
      {"/proc/self/cgroup", "4:memory:/docker/12ab/job\n"},
      {"/proc/self/mountinfo",
       "35 31 0:32 /docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n"},
      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500000\n"}},
     500000,
     "/sys/fs/cgroup/memory/job"},
    {"a mount that begins beside the group, its name a prefix",
     {MEMINFO,
      {"/proc/self/cgroup", "4:memory:/docker/12ab\n"},
      {"/proc/self/mountinfo",
       "35 31 0:32 /docker/12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n"},
      {"/sys/fs/cgroup/memoryab/memory.limit_in_bytes", "1\n"}},
     1000000,
     "/sys/fs/cgroup/memory"},
    {"v1 for memory beside a v2 that has no controllers",
     {MEMINFO,
      {"/proc/self/cgroup", "9:name=systemd:/\n4:memory:/api/ce31\n3:cpuset:/\n0::/\n"},
      {"/proc/self/mountinfo",
       "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" V1_MOUNT
       "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", V1_HUGE},
      {"/sys/fs/cgroup/memory/api/memory.limit_in_bytes", "600000\n"},
      {"/sys/fs/cgroup/memory/api/memory.usage_in_bytes", "100000\n"},
      {"/sys/fs/cgroup/memory/api/ce31/memory.limit_in_bytes", V1_HUGE},
      {"/sys/fs/cgroup/unified/cgroup.procs", "1\n"}},
     500000,
     "/sys/fs/cgroup/memory/api"},
    {"limits in both versions",
     {MEMINFO,
      {"/proc/self/cgroup", "4:memory:/a\n0::/b\n"},
      {"/proc/self/mountinfo",
       V1_MOUNT "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "600000\n"},
      {"/sys/fs/cgroup/unified/b/memory.max", "500000\n"}},
     500000,
     "/sys/fs/cgroup/unified/b"},
};

static const machine garbage[] = {
    {"limits that are none",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a/b/c/d/e\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/b/c/d/e/memory.max", "lots\n"},
      {"/sys/fs/cgroup/a/b/c/d/memory.max", "-1\n"},
      {"/sys/fs/cgroup/a/b/c/memory.max", "12x\n"},
      {"/sys/fs/cgroup/a/b/memory.max", ""},
      {"/sys/fs/cgroup/a/memory.max", "18446744073709551617\n"}},
     AVAILABLE,
     "MemAvailable"},
    {"use that cannot be read",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "5000\n"},
      {"/sys/fs/cgroup/a/memory.current", "some\n"},
      {"/sys/fs/cgroup/a/memory.stat", "inactive_file\ninactive_file x\n"}},
     5000,
     "/sys/fs/cgroup/a"},
    {"lines that are none",
     {MEMINFO,
      {"/proc/self/cgroup", "\n:\n0\n0:\n0::\n0::relative\n::/x\n0::/a\n"},
      {"/proc/self/mountinfo", "\n-\n1 2 3\n29 23 0:26 / /sys/fs/cgroup rw - \n"
                               "29 23 0:26 / /x rw cgroup2 cgroup2 rw\n"
                               "29 23 0:26 x y rw - cgroup2 cgroup2 rw\n" V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "5000"}},
     5000,
     "/sys/fs/cgroup/a"},
    {"a meminfo without numbers, and a limit",
     {{"/proc/meminfo", "MemTotal: much kB\nMemAvailable: 18446744073709551615 kB\n"},
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max", "5000\n"}},
     5000,
     "/sys/fs/cgroup/a"},
    {"a directory where a file should be",
     {MEMINFO,
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/a/memory.max/x", "5000\n"}},
     AVAILABLE,
     "MemAvailable"},
};

static void check_machines(const machine *machines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const machine *m = &machines[i];
        char source[4096] = "";
        uint64_t bytes = 0;
        jask_error err = {0};
        char *tree = tree_open();

        for (const file *f = m->files; f->path; f++)
            tree_write(tree, f->path, f->text);
        cr_assert_eq(jk_memory_available(tree, &bytes, source, sizeof source, &err), JASK_OK,
                     "%s: %s", m->what, err.msg);
        cr_assert_eq(bytes, m->bytes, "%s: %" PRIu64 " bytes, not %" PRIu64, m->what, bytes,
                     m->bytes);
        cr_assert_str_eq(source, m->source, "%s: '%s'", m->what, source);
        tree_remove(tree);
    }
}

Test(memory, is_what_the_system_says_without_groups)
{
    check_machines(plain, sizeof plain / sizeof *plain);
}

Test(memory, respects_v2_groups_and_their_parents)
{
    check_machines(v2, sizeof v2 / sizeof *v2);
}

Test(memory, respects_v1_groups_and_their_parents)
{
    check_machines(v1, sizeof v1 / sizeof *v1);
}

Test(memory, takes_no_number_from_garbage)
{
    check_machines(garbage, sizeof garbage / sizeof *garbage);
}

Test(memory, survives_a_group_path_longer_than_any_file_name)
{
    char text[9000] = "0::/a\n";
    char *tree = tree_open();
    uint64_t bytes = 0;

    tree_write(tree, "/proc/meminfo", "MemAvailable: 3 kB\n");
    tree_write(tree, "/proc/self/mountinfo", V2_MOUNT);
    memset(text + 5, 'a', sizeof text - 6);
    tree_write(tree, "/proc/self/cgroup", text);
    cr_assert_eq(jk_memory_available(tree, &bytes, NULL, 0, NULL), JASK_OK);
    cr_assert_eq(bytes, 3072);
    /* One that fits, on a mount that makes it too long. */
    text[4000] = '\0';
    tree_write(tree, "/proc/self/cgroup", text);
    cr_assert_eq(jk_memory_available(tree, &bytes, NULL, 0, NULL), JASK_OK);
    cr_assert_eq(bytes, 3072);
    tree_remove(tree);
}

Test(memory, is_an_error_where_nobody_says)
{
    char *tree = tree_open();
    char source[16] = "kept";
    uint64_t bytes = 7;
    jask_error err;

    for (int round = 0; round < 2; round++) {
        cr_assert_eq(jk_memory_available(tree, &bytes, source, sizeof source, &err), JASK_ERR_IO);
        cr_assert_not_null(strstr(err.msg, "/proc/meminfo"), "%s", err.msg);
        cr_assert_eq(bytes, 7);
        cr_assert_str_eq(source, "kept");
        tree_write(tree, "/proc/meminfo", "MemTotal: 5 kB\n");
    }
    tree_remove(tree);
}

Test(memory, of_this_machine_is_some_but_not_more_than_it_has)
{
    uint64_t bytes, again;
    char source[4096] = "";
    jask_error err;
    uint64_t has = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    cr_assert_eq(jask_available_memory(&bytes, source, sizeof source, &err), JASK_OK, "%s",
                 err.msg);
    cr_assert_gt(bytes, 1 << 20);
    cr_assert_leq(bytes, has);
    cr_assert(strcmp(source, "MemAvailable") == 0 || source[0] == '/', "%s", source);
    cr_assert_eq(jask_available_memory(&again, NULL, 0, NULL), JASK_OK);
}
