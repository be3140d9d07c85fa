#include "runtime/system.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define MAGIC_TMPFS 0x01021994u
#define MAGIC_RAMFS 0x858458f6u

/* Undo the kernel's escapes: a blank, tab, newline or backslash is a backslash and three octal
 * digits. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++) {
        if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
            text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
            *to++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

bool jk_mount_parse(char *line, jk_mount *out)
{
    char *state = NULL;
    /* Id, parent, device, root, mount point, options; then optional ones up to a dash. */
    char *field[6];

    for (int i = 0; i < 6; i++) {
        field[i] = strtok_r(i == 0 ? line : NULL, " \n", &state);
        if (!field[i])
            return false;
    }
    char *word;
    do {
        word = strtok_r(NULL, " \n", &state);
        if (!word)
            return false;
    } while (strcmp(word, "-") != 0);
    char *type = strtok_r(NULL, " \n", &state);
    char *source = strtok_r(NULL, " \n", &state);
    char *options = strtok_r(NULL, " \n", &state);
    if (!type || !source || field[3][0] != '/' || field[4][0] != '/')
        return false;
    /* A mount without a source has an empty field there. */
    *out = (jk_mount){.root = field[3], .point = field[4], .type = type};
    out->options = options ? options : source;
    unescape(out->root);
    unescape(out->point);
    return true;
}

bool jk_path_within(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (len > 0 && dir[len - 1] == '/')
        len--;
    return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

jask_status jk_mount_type(const char *root, const char *path, char *type, size_t type_size,
                          jask_error *err)
{
    jask_status st = JASK_OK;
    char name[PATH_MAX];
    char found[64] = "";
    char *line = NULL;
    size_t line_size = 0;
    size_t longest = 0;
    jk_mount mount;

    snprintf(name, sizeof name, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(name, "re");
    if (!file)
        return jk_fail_errno(err, "open '%s'", name);
    while (getline(&line, &line_size, file) >= 0) {
        if (!jk_mount_parse(line, &mount) || !jk_path_within(path, mount.point))
            continue;
        size_t length = strlen(mount.point);
        /* Of equals the later one lies on top. */
        if (length >= longest) {
            longest = length;
            snprintf(found, sizeof found, "%s", mount.type);
        }
    }
    if (longest == 0)
        st = jk_fail(err, JASK_ERR_IO, "no mount in '%s' holds '%s'", name, path);
    else
        snprintf(type, type_size, "%s", found);
    free(line);
    fclose(file);
    return st;
}

jask_status jk_dir_in_ram(const char *path, bool *out, char *type, size_t type_size,
                          jask_error *err)
{
    static const char *const ram_types[] = {"tmpfs", "ramfs", "devtmpfs"};
    char real[PATH_MAX];
    char mounted[64];
    struct statfs fs;
    const char *found = NULL;

    if (!realpath(path, real))
        return jk_fail_errno(err, "resolve '%s'", path);
    if (statfs(real, &fs))
        return jk_fail_errno(err, "statfs '%s'", real);
    if ((uint32_t)fs.f_type == MAGIC_TMPFS)
        found = "tmpfs";
    if ((uint32_t)fs.f_type == MAGIC_RAMFS)
        found = "ramfs";
    /* Where /proc is missing the file system's own word has to do. */
    if (!jk_mount_type("", real, mounted, sizeof mounted, NULL)) {
        for (size_t i = 0; i < sizeof ram_types / sizeof *ram_types; i++) {
            if (strcmp(mounted, ram_types[i]) == 0)
                found = ram_types[i];
        }
    }
    *out = found != NULL;
    snprintf(type, type_size, "%s", found ? found : "");
    return JASK_OK;
}
