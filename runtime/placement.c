#include "runtime/placement.h"

#include <hwloc.h>
#include <stdlib.h>

struct jk_placement {
    hwloc_topology_t topology;
    hwloc_obj_t around; /* the part of the machine that the card hangs on */
};

/* The smallest part of the machine around the device, if that is not all of it. */
static hwloc_obj_t find_around(hwloc_topology_t topology, const char *pci_bus_id)
{
    hwloc_obj_t card, around;
    if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2)
        return NULL;
    card = hwloc_get_pcidev_by_busidstring(topology, pci_bus_id);
    around = card ? hwloc_get_non_io_ancestor_obj(topology, card) : NULL;
    if (!around || hwloc_bitmap_isequal(around->nodeset, hwloc_get_root_obj(topology)->nodeset))
        return NULL;
    return around;
}

jk_placement *jk_placement_open(const char *pci_bus_id)
{
    jk_placement near;
    jk_placement *out = NULL;
    if (hwloc_topology_init(&near.topology) != 0)
        return NULL;
    hwloc_topology_set_io_types_filter(near.topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(near.topology) == 0) {
        near.around = find_around(near.topology, pci_bus_id);
        out = near.around ? malloc(sizeof *out) : NULL;
    }
    if (out)
        *out = near;
    else
        hwloc_topology_destroy(near.topology);
    return out;
}

void jk_placement_close(jk_placement *near)
{
    if (!near)
        return;
    hwloc_topology_destroy(near->topology);
    free(near);
}

void jk_placement_bind_thread(const jk_placement *near)
{
    hwloc_bitmap_t cpus = near ? hwloc_bitmap_alloc() : NULL;
    if (!cpus)
        return;
    /* Where the user has put the program counts more. */
    if (hwloc_get_cpubind(near->topology, cpus, HWLOC_CPUBIND_THREAD) == 0) {
        hwloc_bitmap_and(cpus, cpus, near->around->cpuset);
        if (!hwloc_bitmap_iszero(cpus))
            (void)hwloc_set_cpubind(near->topology, cpus, HWLOC_CPUBIND_THREAD);
    }
    hwloc_bitmap_free(cpus);
}

#define THREAD_NODES (HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET)

void jk_placement_prefer(const jk_placement *near, jk_placement_memory *before)
{
    hwloc_membind_policy_t policy;
    hwloc_bitmap_t nodes = near ? hwloc_bitmap_alloc() : NULL;
    before->nodes = NULL;
    if (!nodes)
        return;
    if (hwloc_get_membind(near->topology, nodes, &policy, THREAD_NODES) == 0 &&
        hwloc_set_membind(near->topology, near->around->nodeset, HWLOC_MEMBIND_BIND,
                          THREAD_NODES) == 0) {
        before->nodes = nodes;
        before->policy = (int)policy;
    } else {
        hwloc_bitmap_free(nodes);
    }
}

void jk_placement_restore(const jk_placement *near, jk_placement_memory *before)
{
    hwloc_membind_policy_t policy = (hwloc_membind_policy_t)before->policy;
    if (!before->nodes)
        return;
    /* So it reads where nothing was ever set; set again, it would be a wish of its own. */
    if (policy == HWLOC_MEMBIND_FIRSTTOUCH)
        policy = HWLOC_MEMBIND_DEFAULT;
    (void)hwloc_set_membind(near->topology, before->nodes, policy, THREAD_NODES);
    hwloc_bitmap_free(before->nodes);
    before->nodes = NULL;
}
