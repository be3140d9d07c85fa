#include "runtime/topology.h"

#include <hwloc.h>
#include <stdio.h>
#include <unistd.h>

static const char *cpu_model(hwloc_topology_t topology)
{
    const char *model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    if (!model && package)
        model = hwloc_obj_get_info_by_name(package, "CPUModel");
    return model ? model : "CPU";
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
    out->cores = cores > 0 ? cores : 1;
    /* hwloc leaves out memory that was added while the machine ran. */
    out->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    hwloc_topology_destroy(topology);
    return JASK_OK;
}
