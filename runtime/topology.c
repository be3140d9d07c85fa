#include "runtime/topology.h"

#include "runtime/cgroup.h"
#include "runtime/context.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *cpu_model(hwloc_topology_t topology)
{
    const char *model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    if (!model && package)
        model = hwloc_obj_get_info_by_name(package, "CPUModel");
    return model ? model : "CPU";
}

/* "50000 100000" of cpu.max, and the two files of v1 put the same way: how many processors that is.
 * False for "max", v1's -1, and anything that is no such pair. */
static bool read_quota(const char *text, double *out)
{
    unsigned long long quota, period;
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    quota = strtoull(text, &end, 10);
    if (errno || *end != ' ' || end[1] < '0' || end[1] > '9')
        return false;
    period = strtoull(end + 1, &end, 10);
    if (errno || (*end != '\0' && *end != '\n') || quota == 0 || period == 0)
        return false;
    *out = (double)quota / (double)period;
    return true;
}

static bool group_quota(const jk_cgroup *group, bool v2, double *out)
{
    char text[128], quota[32];
    uint64_t period;
    if (v2)
        return jk_cgroup_line(group, "cpu.max", text, sizeof text) && read_quota(text, out);
    if (!jk_cgroup_line(group, "cpu.cfs_quota_us", quota, sizeof quota) ||
        !jk_cgroup_number(group, "cpu.cfs_period_us", "", &period))
        return false;
    quota[strcspn(quota, "\n")] = '\0';
    snprintf(text, sizeof text, "%s %llu", quota, (unsigned long long)period);
    return read_quota(text, out);
}

bool jk_cpu_quota(const char *root, double *out, char *source, size_t source_size)
{
    bool found = false;
    jk_cgroup group;
    for (int v2 = 0; v2 <= 1; v2++) {
        bool more = jk_cgroup_find(root, v2 ? NULL : "cpu", &group);
        for (; more; more = jk_cgroup_up(&group)) {
            double quota;
            if (!group_quota(&group, v2, &quota) || (found && quota >= *out))
                continue;
            found = true;
            *out = quota;
            snprintf(source, source_size, "%s%s", group.mount, group.below);
        }
    }
    return found;
}

/* Cores with a processor that the scheduler may put this process on: hwloc leaves out what cpusets
 * forbid, but not what an affinity (taskset, a batch system) does. */
static int allowed_cores(hwloc_topology_t topology)
{
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    hwloc_obj_t core = NULL;
    int cores = 0;
    if (bound && hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) != 0)
        hwloc_bitmap_fill(bound);
    while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)))
        cores += !bound || hwloc_bitmap_intersects(core->cpuset, bound);
    hwloc_bitmap_free(bound);
    return cores > 0 ? cores : 1;
}

int jk_threads_within(int cores, double quota)
{
    if (quota <= 0 || quota >= cores)
        return cores;
    /* With a part of a processor's time left over, one thread more can use it. */
    return (int)quota + (quota > (int)quota);
}

jask_status jk_topology_read(jk_topology *out, jask_error *err)
{
    hwloc_topology_t topology;
    int cores;
    if (hwloc_topology_init(&topology) != 0)
        return jk_fail_errno(err, "hwloc cannot start");
    if (hwloc_topology_load(topology) != 0) {
        jask_status st = jk_fail_errno(err, "hwloc cannot describe this machine");
        hwloc_topology_destroy(topology);
        return st;
    }
    cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    snprintf(out->cpu_model, sizeof out->cpu_model, "%s", cpu_model(topology));
    out->all_cores = cores > 0 ? cores : 1;
    out->cores = allowed_cores(topology);
    out->quota = 0;
    out->quota_source[0] = '\0';
    jk_cpu_quota("", &out->quota, out->quota_source, sizeof out->quota_source);
    out->threads = jk_threads_within(out->cores, out->quota);
    /* hwloc leaves out memory that was added while the machine ran. */
    out->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    hwloc_topology_destroy(topology);
    return JASK_OK;
}

jask_status jask_get_cpus(jask_cpus *out, size_t struct_size, jask_error *err)
{
    jk_topology topology;
    jask_cpus cpus = {0};
    jask_status st = jk_topology_read(&topology, err);
    if (st)
        return st;
    cpus.machine = topology.all_cores;
    cpus.allowed = topology.cores;
    cpus.threads = topology.threads;
    cpus.quota = topology.quota;
    memcpy(cpus.quota_source, topology.quota_source, sizeof cpus.quota_source);
    jk_struct_out(out, struct_size, &cpus, sizeof cpus);
    return JASK_OK;
}
