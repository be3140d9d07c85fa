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
    const char *reclaimable; /* key in memory.stat: page cache that goes when memory is wanted */
} group_files;

static const group_files v1_files = {
    {"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes", "total_inactive_file"};
/* Beyond memory.high a group is throttled until it barely moves: as much a limit as memory.max. */
static const group_files v2_files = {
    {"memory.max", "memory.high"}, "memory.current", "inactive_file"};

/* Where this process's control group is to be seen. */
typedef struct memory_group {
    char mount[PATH_MAX]; /* of its hierarchy; "" when nowhere */
    char below[PATH_MAX]; /* the group's directory under the mount: "/a/b", or "" for the mount */
    bool covered;         /* the mount shows the group itself */
    size_t root_length;   /* the shorter, the more of the group's parents it shows */
} memory_group;

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

/* `word` is one of the words in a list parted by commas. */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (; *list; list += strcspn(list, ","), list += *list == ',') {
        if (strncmp(list, word, len) == 0 && (list[len] == '\0' || list[len] == ','))
            return true;
    }
    return false;
}

static FILE *open_below(const char *root, const char *path)
{
    char name[PATH_MAX];
    int len = snprintf(name, sizeof name, "%s%s", root, path);
    return len >= 0 && (size_t)len < sizeof name ? fopen(name, "re") : NULL;
}

/* This process's group, as /proc/self/cgroup has it ("ID:CONTROLLERS:PATH"): that of the v1 memory
 * controller, or the one of v2. */
static bool find_path(const char *root, bool v2, char path[PATH_MAX])
{
    char *line = NULL;
    size_t line_size = 0;
    bool found = false;
    FILE *file = open_below(root, "/proc/self/cgroup");

    while (file && !found && getline(&line, &line_size, file) >= 0) {
        char *controllers = strchr(line, ':');
        char *name = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!name || name[1] != '/')
            continue;
        *controllers++ = '\0';
        *name++ = '\0';
        name[strcspn(name, "\n")] = '\0';
        found = v2 ? strcmp(line, "0") == 0 && !*controllers : has_word(controllers, "memory");
        found = found && strlen(name) < PATH_MAX;
        if (found)
            strcpy(path, name);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* How well `mount` shows group `path`. In a container the path may be the host's while the mount
 * begins at the container's own group, or at one that is no parent of it: then the mount itself is
 * the best there is. */
static void look_from(const jk_mount *mount, const char *path, memory_group *out)
{
    const char *below = "";

    out->root_length = strlen(mount->root);
    out->covered = jk_path_within(path, mount->root);
    if (out->covered)
        below = path + (out->root_length > 1 ? out->root_length : 0);
    if (strcmp(below, "/") == 0)
        below = "";
    /* A group outside of the namespace: its name says how far, but not where. */
    if (strstr(below, "/..")) {
        out->covered = false;
        below = "";
    }
    snprintf(out->below, sizeof out->below, "%s", below);
    snprintf(out->mount, sizeof out->mount, "%s", mount->point);
}

static bool better(const memory_group *a, const memory_group *b)
{
    if (a->covered != b->covered)
        return a->covered;
    return a->root_length <= b->root_length;
}

static bool find_group(const char *root, bool v2, memory_group *out)
{
    char path[PATH_MAX];
    char *line = NULL;
    size_t line_size = 0;
    bool found = false;
    jk_mount mount;
    memory_group seen;

    if (!find_path(root, v2, path))
        return false;
    FILE *file = open_below(root, "/proc/self/mountinfo");
    while (file && getline(&line, &line_size, file) >= 0) {
        if (!jk_mount_parse(line, &mount) || strcmp(mount.type, v2 ? "cgroup2" : "cgroup") != 0 ||
            (!v2 && !has_word(mount.options, "memory")))
            continue;
        look_from(&mount, path, &seen);
        if (!found || better(&seen, out))
            *out = seen;
        found = true;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

static bool group_number(const char *root, const char *dir, const char *file, const char *key,
                         uint64_t *out)
{
    char name[3 * PATH_MAX];
    int len = snprintf(name, sizeof name, "%s%s/%s", root, dir, file);
    return len >= 0 && (size_t)len < sizeof name && jk_proc_number(name, key, out);
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
static void consider_group(const char *root, const group_files *files, const char *dir,
                           uint64_t total, least_found *least)
{
    uint64_t limit = NO_LIMIT;
    uint64_t value;
    uint64_t use = 0;

    for (int i = 0; i < 2; i++) {
        if (files->limit[i] && group_number(root, dir, files->limit[i], "", &value) &&
            value < limit)
            limit = value;
    }
    if (limit >= NO_LIMIT || limit > total)
        return;
    group_number(root, dir, files->use, "", &use);
    if (group_number(root, dir, "memory.stat", files->reclaimable, &value))
        use -= value < use ? value : use;
    consider(least, limit > use ? limit - use : 0, dir);
}

static void consider_parents(const char *root, bool v2, uint64_t total, least_found *least)
{
    memory_group group;
    char dir[2 * PATH_MAX];

    if (!find_group(root, v2, &group))
        return;
    for (;;) {
        snprintf(dir, sizeof dir, "%s%s", group.mount, group.below);
        consider_group(root, v2 ? &v2_files : &v1_files, dir, total, least);
        char *last = strrchr(group.below, '/');
        if (!last)
            return;
        *last = '\0';
    }
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
