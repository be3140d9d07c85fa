/* The machine's processors and memory, as hwloc describes them. */
#ifndef JK_RUNTIME_TOPOLOGY_H
#define JK_RUNTIME_TOPOLOGY_H

#include "common/base.h"

typedef struct jk_topology {
    char cpu_model[96];
    int cores; /* that this process may use; at least 1 */
    uint64_t memory_bytes;
} jk_topology;

jask_status jk_topology_read(jk_topology *out, jask_error *err);

#endif
