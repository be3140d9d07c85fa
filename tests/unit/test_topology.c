#include "runtime/topology.h"

#include "tree.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef struct machine {
    const char *what;
    struct {
        const char *path, *text;
    } files[10];
    double quota; /* 0: none */
    const char *source;
} machine;

#define V2 "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1 "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
#define V1_MEMORY "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define GROUP "/proc/self/cgroup"
#define MOUNTS "/proc/self/mountinfo"
#define V1_DIR "/sys/fs/cgroup/cpu,cpuacct"

static const machine machines[] = {
    {"no control groups", {{"/x", ""}}, 0, ""},
    {"v2 without a limit",
     {{GROUP, "0::/a\n"}, {MOUNTS, V2}, {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}},
     0,
     ""},
    {"v2, one and a half",
     {{GROUP, "0::/a\n"}, {MOUNTS, V2}, {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"}},
     1.5,
     "/sys/fs/cgroup/a"},
    {"v2, the parent grants less",
     {{GROUP, "0::/a/b/c\n"},
      {MOUNTS, V2},
      {"/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n"},
      {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
      {"/sys/fs/cgroup/a/cpu.max", "20000 10000\n"}},
     2,
     "/sys/fs/cgroup/a"},
    {"v2, a container that sees its own group as the root",
     {{GROUP, "0::/\n"}, {MOUNTS, V2}, {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}},
     0.5,
     "/sys/fs/cgroup"},
    {"v1 without a limit",
     {{GROUP, "3:cpu,cpuacct:/a\n"},
      {MOUNTS, V1},
      {V1_DIR "/a/cpu.cfs_quota_us", "-1\n"},
      {V1_DIR "/a/cpu.cfs_period_us", "100000\n"}},
     0,
     ""},
    {"v1",
     {{GROUP, "3:cpu,cpuacct:/a\n"},
      {MOUNTS, V1},
      {V1_DIR "/a/cpu.cfs_quota_us", "250000\n"},
      {V1_DIR "/a/cpu.cfs_period_us", "100000\n"}},
     2.5,
     V1_DIR "/a"},
    {"v1, the parent grants less, and no period is no quota",
     {{GROUP, "3:cpu,cpuacct:/a/b\n"},
      {MOUNTS, V1},
      {V1_DIR "/a/b/cpu.cfs_quota_us", "400000\n"},
      {V1_DIR "/a/b/cpu.cfs_period_us", "100000\n"},
      {V1_DIR "/a/cpu.cfs_quota_us", "300000\n"},
      {V1_DIR "/a/cpu.cfs_period_us", "100000\n"},
      {V1_DIR "/cpu.cfs_quota_us", "100000\n"}},
     3,
     V1_DIR "/a"},
    {"both versions: the least counts",
     {{GROUP, "3:cpu,cpuacct:/a\n0::/u\n"},
      {MOUNTS, V1 V2},
      {V1_DIR "/a/cpu.cfs_quota_us", "400000\n"},
      {V1_DIR "/a/cpu.cfs_period_us", "100000\n"},
      {"/sys/fs/cgroup/u/cpu.max", "100000 100000\n"}},
     1,
     "/sys/fs/cgroup/u"},
    {"a group of another controller has none",
     {{GROUP, "4:memory:/a\n"}, {MOUNTS, V1_MEMORY}, {V1_DIR "/a/cpu.cfs_quota_us", "1000\n"}},
     0,
     ""},
};

TestSuite(topology, .init = tree_enter, .fini = tree_leave);

Test(topology, quota_is_the_least_that_any_parent_grants)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const machine *m = &machines[i];
        char *tree = tree_open();
        char source[256] = "";
        double quota = 0;
        bool found;
        for (int f = 0; f < 10 && m->files[f].path; f++)
            tree_write(tree, m->files[f].path, m->files[f].text);
        found = jk_cpu_quota(tree, &quota, source, sizeof source);
        cr_assert_eq(found, m->quota > 0, "%s", m->what);
        cr_assert_float_eq(quota, m->quota, 1e-12, "%s: %g", m->what, quota);
        cr_assert_str_eq(source, m->source, "%s: '%s'", m->what, source);
        tree_remove(tree);
    }
}

Test(topology, what_is_no_quota_limits_nothing)
{
    static const char *const texts[] = {"",           "max",        "0 100000",  "100000 0",
                                        "100000",     "100000 ",    "x 100000",  "-5 100000",
                                        "1000 x",     "1000 -5",    "1e3 100",   "1000  100",
                                        "1000 100 5", " 1000 1000", "0x10 1000", "max 100000"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *tree = tree_open();
        char source[256];
        double quota;
        tree_write(tree, GROUP, "0::/a\n");
        tree_write(tree, MOUNTS, V2);
        tree_write(tree, "/sys/fs/cgroup/a/cpu.max", texts[i]);
        cr_assert(!jk_cpu_quota(tree, &quota, source, sizeof source), "'%s'", texts[i]);
        tree_remove(tree);
    }
}

Test(topology, threads_keep_to_the_quota_rounded_up)
{
    static const struct {
        int cores;
        double quota;
        int threads;
    } cases[] = {{8, 0, 8},   {8, 0.1, 1}, {8, 1, 1}, {8, 1.01, 2}, {8, 2, 2},
                 {8, 7.5, 8}, {8, 8, 8},   {8, 9, 8}, {1, 4, 1},    {8, 1e300, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(jk_threads_within(cases[i].cores, cases[i].quota), cases[i].threads,
                     "%d cores, quota %g", cases[i].cores, cases[i].quota);
}

/* Of every thread: the BLAS has begun some already. */
static void bind_process(const cpu_set_t *set)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    cr_assert_not_null(tasks);
    while ((task = readdir(tasks)))
        if (task->d_name[0] != '.')
            cr_assert_eq(sched_setaffinity(atoi(task->d_name), sizeof *set, set), 0);
    closedir(tasks);
}

Test(topology, an_affinity_leaves_out_cores)
{
    jk_topology all, one;
    jask_cpus cpus;
    jask_error err;
    cpu_set_t set, old;
    cr_assert_eq(jk_topology_read(&all, &err), JASK_OK, "%s", err.msg);
    cr_assert_geq(all.all_cores, all.cores);
    cr_assert_geq(all.cores, all.threads);
    cr_assert_geq(all.threads, 1);
    cr_assert_eq(sched_getaffinity(0, sizeof old, &old), 0);
    CPU_ZERO(&set);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &old) && CPU_COUNT(&set) == 0)
            CPU_SET(cpu, &set);
    }
    bind_process(&set);
    cr_assert_eq(jk_topology_read(&one, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(one.cores, 1);
    cr_assert_eq(one.threads, 1);
    cr_assert_eq(one.all_cores, all.all_cores);
    cr_assert_eq(jask_get_cpus(&cpus, sizeof cpus, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(cpus.struct_size, sizeof cpus);
    cr_assert_eq(cpus.machine, all.all_cores);
    cr_assert_eq(cpus.allowed, 1);
    cr_assert_eq(cpus.threads, 1);
    bind_process(&old);
}
