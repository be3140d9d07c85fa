#include "runtime/file.h"
#include "runtime/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADVICE "set scratch_dir or JASK_SCRATCH_DIR to a directory on a disk"

/* The setting as its user knows it. */
static const char *source_name(const char *source)
{
    if (strcmp(source, "option") == 0)
        return "the scratch_dir option";
    if (strcmp(source, "environment") == 0)
        return "JASK_SCRATCH_DIR";
    return strcmp(source, "default") == 0 ? "the default scratch directory" : source;
}

/* What mkdir could not make may be there already. False with errno set when it is not. */
static bool is_there(const char *path)
{
    int reason = errno;
    struct stat found;
    bool exists = stat(path, &found) == 0;

    if (exists && S_ISDIR(found.st_mode))
        return true;
    if (exists)
        errno = ENOTDIR;
    else if (reason != EEXIST)
        errno = reason;
    return false;
}

bool jk_directories_make(char *path, size_t *out_kept)
{
    size_t end = 0;
    bool good = true;

    *out_kept = strlen(path);
    while (good && path[end]) {
        size_t start = end;
        end += strspn(path + end, "/");
        end += strcspn(path + end, "/");
        bool last = path[end + strspn(path + end, "/")] == '\0';
        char after = path[end];
        path[end] = '\0';
        if (mkdir(path, last ? 0700 : 0777) != 0)
            good = is_there(path);
        else if (start < *out_kept)
            *out_kept = start;
        path[end] = after;
    }
    return good;
}

/* Undo jk_directories_make, as far as nobody put anything there meanwhile. */
static void remove_directories(char *path, size_t kept)
{
    while (strlen(path) > kept) {
        rmdir(path);
        char *slash = strrchr(path, '/');
        *(slash ? slash : path) = '\0';
    }
}

static jask_status refuse(const char *source, const char *path, int reason, jask_error *err)
{
    char text[128];

    jk_fail(err, JASK_ERR_CONFIG, "%s: '%s' cannot be %s: %s; " ADVICE, source_name(source), path,
            reason == ENOTDIR ? "used" : "made", strerror_r(reason, text, sizeof text));
    if (err)
        err->sys_errno = reason;
    return JASK_ERR_CONFIG;
}

/* `real` is resolved and a directory. */
static jask_status examine(const char *real, const char *source, bool allow_tmpfs, jask_error *err)
{
    jk_file probe = JK_FILE_NONE;
    jask_error inner;
    char type[64];
    bool in_ram;

    if (jk_dir_in_ram(real, &in_ram, type, sizeof type, &inner))
        return jk_fail(err, JASK_ERR_CONFIG, "%s: '%s' cannot be examined: %s; " ADVICE,
                       source_name(source), real, inner.msg);
    if (in_ram && !allow_tmpfs)
        return jk_fail(err, JASK_ERR_CONFIG,
                       "%s: '%s' lies in RAM (%s), where files take the memory that they are meant "
                       "to save; " ADVICE ", or accept it with allow_tmpfs or JASK_ALLOW_TMPFS=1",
                       source_name(source), real, type);
    /* Permissions, read-only mounts and file systems without files of ours: trying tells all. */
    if (jk_file_scratch(real, 0, &probe, &inner)) {
        jk_fail(err, JASK_ERR_CONFIG, "%s: no file can be made in '%s': %s; " ADVICE,
                source_name(source), real, inner.msg);
        if (err)
            err->sys_errno = inner.sys_errno;
        return JASK_ERR_CONFIG;
    }
    jk_file_close(&probe);
    return JASK_OK;
}

jask_status jk_scratch_prepare(const char *dir, const char *source, bool allow_tmpfs, char **out,
                               jask_error *err)
{
    jask_status st = JASK_OK;
    char *real = NULL;
    size_t kept;

    if (!*dir)
        return jk_fail(err, JASK_ERR_CONFIG, "%s: '' is empty; " ADVICE, source_name(source));
    char *path = strdup(dir);
    if (!path)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for the path of '%s'", dir);
    if (jk_directories_make(path, &kept))
        real = realpath(path, NULL);
    if (!real)
        st = refuse(source, dir, errno, err);
    else
        st = examine(real, source, allow_tmpfs, err);
    if (st) {
        remove_directories(path, kept);
    } else {
        *out = real;
        real = NULL;
    }
    free(real);
    free(path);
    return st;
}
