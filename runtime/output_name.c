/* Names of results: where a target's links end, and results that keep a name while they are made.
 */
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
