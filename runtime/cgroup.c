#include "runtime/cgroup.h"

#include "runtime/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* This process's group, as /proc/self/cgroup has it ("ID:CONTROLLERS:PATH"): that of a v1
 * controller, or the one of v2. */
static bool find_path(const char *root, const char *controller, char path[PATH_MAX])
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
        found = controller ? has_word(controllers, controller)
                           : strcmp(line, "0") == 0 && !*controllers;
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
static void look_from(const jk_mount *mount, const char *path, jk_cgroup *out)
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

static bool better(const jk_cgroup *a, const jk_cgroup *b)
{
    if (a->covered != b->covered)
        return a->covered;
    return a->root_length <= b->root_length;
}

bool jk_cgroup_find(const char *root, const char *controller, jk_cgroup *out)
{
    char path[PATH_MAX];
    char *line = NULL;
    size_t line_size = 0;
    bool found = false;
    jk_mount mount;
    jk_cgroup seen;

    if (!find_path(root, controller, path))
        return false;
    FILE *file = open_below(root, "/proc/self/mountinfo");
    while (file && getline(&line, &line_size, file) >= 0) {
        if (!jk_mount_parse(line, &mount) ||
            strcmp(mount.type, controller ? "cgroup" : "cgroup2") != 0 ||
            (controller && !has_word(mount.options, controller)))
            continue;
        look_from(&mount, path, &seen);
        seen.tree = root;
        if (!found || better(&seen, out))
            *out = seen;
        found = true;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

bool jk_cgroup_up(jk_cgroup *group)
{
    char *last = strrchr(group->below, '/');
    if (last)
        *last = '\0';
    return last != NULL;
}

/* False when the name is too long. */
static bool name_file(const jk_cgroup *group, const char *file, char name[3 * PATH_MAX])
{
    int len =
        snprintf(name, 3 * PATH_MAX, "%s%s%s/%s", group->tree, group->mount, group->below, file);
    return len >= 0 && len < 3 * PATH_MAX;
}

bool jk_cgroup_number(const jk_cgroup *group, const char *file, const char *key, uint64_t *out)
{
    char name[3 * PATH_MAX];
    return name_file(group, file, name) && jk_proc_number(name, key, out);
}

bool jk_cgroup_line(const jk_cgroup *group, const char *file, char *text, size_t text_size)
{
    char name[3 * PATH_MAX];
    FILE *open = name_file(group, file, name) ? fopen(name, "re") : NULL;
    bool got = open && fgets(text, (int)text_size, open);
    if (open)
        fclose(open);
    return got;
}
