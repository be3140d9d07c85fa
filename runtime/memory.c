#include "runtime/cgroup.h"
#include "runtime/system.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* v1 writes a number near 2^63 where there is no limit. */
#define NO_LIMIT ((uint64_t)1 << 62)

/* What a control group of either version calls its files. */
typedef struct group_files {
    const char *limit[2]; /* the second may be NULL */
    const char *use;
    const char *reclaimable[2]; /* keys in memory.stat: page cache, which goes when memory is
                                   wanted; MemAvailable counts it in the same way */
} group_files;

static const group_files v1_files = {{"memory.limit_in_bytes", NULL},
                                     "memory.usage_in_bytes",
                                     {"total_inactive_file", "total_active_file"}};
/* Beyond memory.high a group is throttled until it barely moves: as much a limit as memory.max. */
static const group_files v2_files = {
    {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file"}};

/* The least found so far. */
typedef struct least_found {
    uint64_t bytes;
    char source[2 * PATH_MAX];
    bool known;
} least_found;

/* Digits, ended by a blank or the line's end. */
static bool read_number(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    size_t len = strspn(text, "0123456789");

    if (len == 0 || (text[len] != '\0' && text[len] != '\n' && text[len] != ' '))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!jk_mul_u64(value, 10, &value) || !jk_add_u64(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool jk_proc_number(const char *path, const char *key, uint64_t *out)
{
    char line[512];
    size_t len = strlen(key);
    bool found = false;
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, len) != 0)
            continue;
        const char *rest = line + len;
        size_t gap = strspn(rest, ": \t");
        found = (len == 0) == (gap == 0) && read_number(rest + gap, out);
    }
    fclose(file);
    return found;
}

static void consider(least_found *least, uint64_t bytes, const char *source)
{
    if (least->known && bytes >= least->bytes)
        return;
    least->known = true;
    least->bytes = bytes;
    snprintf(least->source, sizeof least->source, "%s", source);
}

/* One group. What cannot be read there limits nothing; "max" is such a thing. */
static void consider_group(const jk_cgroup *group, const group_files *files, uint64_t total,
                           least_found *least)
{
    char dir[2 * PATH_MAX];
    uint64_t limit = NO_LIMIT;
    uint64_t value;
    uint64_t use = 0;

    for (int i = 0; i < 2; i++) {
        if (files->limit[i] && jk_cgroup_number(group, files->limit[i], "", &value) &&
            value < limit)
            limit = value;
    }
    if (limit >= NO_LIMIT || limit > total)
        return;
    jk_cgroup_number(group, files->use, "", &use);
    for (int i = 0; i < 2; i++)
        if (jk_cgroup_number(group, "memory.stat", files->reclaimable[i], &value))
            use -= value < use ? value : use;
    snprintf(dir, sizeof dir, "%s%s", group->mount, group->below);
    consider(least, limit > use ? limit - use : 0, dir);
}

static void consider_parents(const char *root, bool v2, uint64_t total, least_found *least)
{
    jk_cgroup group;

    if (!jk_cgroup_find(root, v2 ? NULL : "memory", &group))
        return;
    do
        consider_group(&group, v2 ? &v2_files : &v1_files, total, least);
    while (jk_cgroup_up(&group));
}

jask_status jk_memory_available(const char *root, uint64_t *out_bytes, char *source,
                                size_t source_size, jask_error *err)
{
    least_found least = {0};
    char name[PATH_MAX];
    uint64_t total, available;

    snprintf(name, sizeof name, "%s/proc/meminfo", root);
    if (!jk_proc_number(name, "MemTotal", &total) || !jk_mul_u64(total, 1024, &total))
        total = UINT64_MAX;
    if (jk_proc_number(name, "MemAvailable", &available) && jk_mul_u64(available, 1024, &available))
        consider(&least, available, "MemAvailable");
    consider_parents(root, false, total, &least);
    consider_parents(root, true, total, &least);
    if (!least.known)
        return jk_fail(err, JASK_ERR_IO,
                       "available memory is unknown: '%s' has no MemAvailable, "
                       "and no control group a limit",
                       name);
    *out_bytes = least.bytes;
    if (source)
        snprintf(source, source_size, "%s", least.source);
    return JASK_OK;
}

jask_status jask_available_memory(uint64_t *out_bytes, char *source, size_t source_size,
                                  jask_error *err)
{
    return jk_memory_available("", out_bytes, source, source_size, err);
}
