/* The machine's processors and memory, as hwloc describes them. */
#ifndef JK_RUNTIME_TOPOLOGY_H
#define JK_RUNTIME_TOPOLOGY_H

#include "common/base.h"

typedef struct jk_topology {
    char cpu_model[96];
    int all_cores;
    int cores;              /* that affinity and cpusets allow this process; at least 1 */
    double quota;           /* processors' worth of time that control groups grant; 0: no limit */
    char quota_source[256]; /* which group */
    int threads; /* to compute with: cores, or the quota rounded up where that is less; at least 1
                  */
    uint64_t memory_bytes;
} jk_topology;

/* As many threads as can run: the quota rounded up, at most one a core. */
int jk_threads_within(int cores, double quota);

jask_status jk_topology_read(jk_topology *out, jask_error *err);

/* The least CPU time that this process's control group and its parents (v1: cpu.cfs_quota_us, v2:
 * cpu.max) grant, in processors; false when none sets a limit. `root` as in system.h. hwloc does
 * not know of it. `source` receives the group's path. */
bool jk_cpu_quota(const char *root, double *out, char *source, size_t source_size);

#endif
