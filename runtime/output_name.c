/* Names of results: where a target's links end, and results that keep a name while they are made.
 */
#include "runtime/file.h"
#include "runtime/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LINKS_MAX 40

static jask_status fail_nomem(const char *target, jask_error *err)
{
    return jk_fail(err, JASK_ERR_NOMEM, "no memory for the path of '%s'", target);
}

/* "dir/link" and what the link holds make the path that it stands for. */
static char *follow(const char *path, const char *link)
{
    const char *slash = strrchr(path, '/');
    size_t dir_len = slash && link[0] != '/' ? (size_t)(slash - path) + 1 : 0;
    char *next = malloc(dir_len + strlen(link) + 1);
    if (next) {
        memcpy(next, path, dir_len);
        strcpy(next + dir_len, link);
    }
    return next;
}

/* realpath() wants its target to exist. */
jask_status jk_output_resolve(const char *target, char **out, jask_error *err)
{
    char link[PATH_MAX];
    char *path = strdup(target);
    for (int links = 0; path && links < LINKS_MAX; links++) {
        ssize_t len = readlink(path, link, sizeof link - 1);
        char *next;
        if (len < 0 && (errno == EINVAL || errno == ENOENT)) { /* no link, or nothing there */
            *out = path;
            return JASK_OK;
        }
        if (len < 0) { /* taken for no link, a link would be replaced */
            jask_status st = jk_fail_errno(err, "follow the links of '%s'", target);
            free(path);
            return st;
        }
        link[len] = '\0';
        next = follow(path, link);
        free(path);
        path = next;
    }
    if (!path)
        return fail_nomem(target, err);
    free(path);
    errno = ELOOP;
    return jk_fail_errno(err, "follow the links of '%s'", target);
}

jask_status jk_output_beside(const char *target, const char *suffix, char **out, jask_error *err)
{
    char *path;
    jask_status st = jk_output_resolve(target, &path, err);
    if (st)
        return st;
    if (asprintf(out, "%s%s", path, suffix) < 0)
        st = fail_nomem(target, err);
    free(path);
    return st;
}

jask_status jk_partial_open(int dir_fd, const char *name, unsigned mode, bool continues,
                            int *out_fd, jask_error *err)
{
    /* Neither a link nor a FIFO that someone has put there is followed or waited for. */
    int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (continues ? 0 : O_CREAT | O_EXCL);
    int fd;
    if (!continues && unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT)
        return jk_fail_errno(err, "remove the partial result '%s' of an earlier run", name);
    do
        fd = openat(dir_fd, name, flags, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return jk_fail_errno(err, "%s the partial result '%s'", continues ? "open" : "make", name);
    *out_fd = fd;
    return JASK_OK;
}

/* Bytes that the file at `path` and suffix holds; 0 without one. */
static uint64_t held_bytes(const char *path, const char *suffix)
{
    struct stat found;
    char *name;
    uint64_t held = 0;
    if (asprintf(&name, "%s%s", path, suffix) < 0)
        return 0;
    if (lstat(name, &found) == 0 && S_ISREG(found.st_mode))
        held = (uint64_t)found.st_blocks * 512;
    free(name);
    return held;
}

/* Of the directory that `path` lies in; all that there is where nobody says. */
static uint64_t free_ram(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    struct statvfs fs;
    char type[64];
    bool in_ram;
    uint64_t bytes = 0;
    if (dir && !jk_dir_in_ram(dir, &in_ram, type, sizeof type, NULL) && in_ram &&
        (statvfs(dir, &fs) != 0 || fs.f_blocks == 0 ||
         !jk_mul_u64(fs.f_bavail, fs.f_frsize, &bytes)))
        bytes = UINT64_MAX;
    free(dir);
    return bytes;
}

uint64_t jk_output_memory(const char *target, uint64_t bytes, bool resumes)
{
    char *path;
    uint64_t held;
    if (jk_output_resolve(target, &path, NULL))
        return 0;
    held = resumes ? held_bytes(path, JK_PARTIAL_SUFFIX) : 0;
    bytes = bytes > held ? bytes - held : 0;
    if (bytes > free_ram(path))
        bytes = 0;
    free(path);
    return bytes;
}

jask_status jk_commit_name(const char *base, int number, char **out, jask_error *err)
{
    if (asprintf(out, ".%.200s.jask-commit%d", base, number) < 0)
        return fail_nomem(base, err);
    return JASK_OK;
}

/* Where no lock can be had, a sweep gets none either. */
void jk_commit_lock(int fd)
{
    int before = errno;
    int failed;
    do
        failed = flock(fd, LOCK_EX | LOCK_NB);
    while (failed && errno == EINTR);
    errno = before;
}

void jk_commit_unlock(int fd)
{
    (void)flock(fd, LOCK_UN);
}

/* Two sweeps may have the same file open: with its lock held, the name still being its own shows
 * that the other has not removed it, nor a run taken the name since. */
static bool is_abandoned(int dir_fd, const char *name, int fd)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && S_ISREG(held.st_mode) && held.st_uid == geteuid() &&
           flock(fd, LOCK_EX | LOCK_NB) == 0 &&
           fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == held.st_dev &&
           named.st_ino == held.st_ino;
}

/* Nothing depends on it: what cannot be looked at or removed stays. */
void jk_commit_sweep(int dir_fd, const char *base)
{
    for (int number = 0; number < JK_COMMIT_NAMES; number++) {
        char *name;
        int fd;
        if (jk_commit_name(base, number, &name, NULL))
            return;
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && is_abandoned(dir_fd, name, fd))
            (void)unlinkat(dir_fd, name, 0);
        if (fd >= 0)
            close(fd);
        free(name);
    }
}
