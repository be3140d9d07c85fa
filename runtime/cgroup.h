/* Control groups, v1 and v2: where this process's own is to be seen, and its parents. */
#ifndef JK_RUNTIME_CGROUP_H
#define JK_RUNTIME_CGROUP_H

#include "common/base.h"

#include <limits.h>

typedef struct jk_cgroup {
    const char *tree;     /* the root directory that all is read below; "" is the real one */
    char mount[PATH_MAX]; /* of its hierarchy */
    char below[PATH_MAX]; /* the group's directory under the mount: "/a/b", or "" for the mount */
    bool covered;         /* the mount shows the group itself */
    size_t root_length;   /* the shorter, the more of the group's parents it shows */
} jk_cgroup;

/* The group of a v1 controller ("memory", "cpu"), or with NULL the one of v2. `root` must outlive
 * it. False when there is none, or no mount shows it. */
bool jk_cgroup_find(const char *root, const char *controller, jk_cgroup *out);

/* Go to the parent. False at the top. */
bool jk_cgroup_up(jk_cgroup *group);

/* As jk_proc_number, of one of the group's files. */
bool jk_cgroup_number(const jk_cgroup *group, const char *file, const char *key, uint64_t *out);

/* The first line of one of the group's files, or as much as `text` holds. */
bool jk_cgroup_line(const jk_cgroup *group, const char *file, char *text, size_t text_size);

#endif
