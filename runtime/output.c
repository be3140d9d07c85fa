/* Files that jask makes: results, which get their name when complete, and scratch, which never has
 * one. */
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define NAME_TRIES 100
#define PROC_FD_MAX 40

static jask_status fail_nomem(const char *target, jask_error *err)
{
    return jk_fail(err, JASK_ERR_NOMEM, "no memory for the path of '%s'", target);
}

/* The last component of a resolved path. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int open_dir(const char *path)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static jask_status open_dir_of(const char *path, const char *target, int *out, jask_error *err)
{
    size_t len = (size_t)(base_of(path) - path);
    char *dir = len ? strndup(path, len) : strdup(".");
    jask_status st = JASK_OK;
    int fd;
    if (!dir)
        return fail_nomem(target, err);
    fd = open_dir(dir);
    if (fd < 0)
        st = jk_fail_errno(err, "directory '%s', where '%s' is to be written", dir, target);
    else
        *out = fd;
    free(dir);
    return st;
}

/* What bears the name now may be replaced: a regular file that could be written, or nothing. *mode
 * receives the permissions that the result is to have, before the umask. */
static jask_status look_at_target(const char *target, mode_t *mode, bool *replaces, jask_error *err)
{
    struct stat st;
    *mode = 0666;
    *replaces = false;
    if (target[0] == '\0')
        return jk_fail(err, JASK_ERR_ARG, "the result has an empty name");
    if (stat(target, &st) != 0) {
        if (errno == ENOENT)
            return JASK_OK; /* a missing directory shows when it is opened */
        return jk_fail_errno(err, "look at '%s'", target);
    }
    if (!S_ISREG(st.st_mode))
        return jk_fail(err, JASK_ERR_ARG, "'%s' is %s; a result replaces only a regular file",
                       target, jk_file_kind(st.st_mode));
    if (faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) != 0)
        return jk_fail_errno(err, "'%s' may not be replaced", target);
    *mode = st.st_mode & 0777;
    *replaces = true;
    return JASK_OK;
}

/* Refuse what cannot fit before a byte is written. Beyond RLIMIT_FSIZE the system would send
 * SIGXFSZ, which kills; so the limit is never tried. */
static jask_status check_room(int dir_fd, const char *name, uint64_t bytes, bool all_new,
                              jask_error *err)
{
    struct rlimit limit;
    struct statvfs fs;
    uint64_t free_bytes;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur) {
        errno = EFBIG;
        return jk_fail_errno(err,
                             "'%s' needs %llu bytes, and this process may write files of %llu "
                             "(ulimit -f)",
                             name, (unsigned long long)bytes, (unsigned long long)limit.rlim_cur);
    }
    if (!all_new) /* it has its blocks */
        return JASK_OK;
    if (fstatvfs(dir_fd, &fs) != 0)
        return jk_fail_errno(err, "ask for the free space for '%s'", name);
    if (fs.f_blocks == 0) /* the file system does not say */
        return JASK_OK;
    if (jk_mul_u64(fs.f_bavail, fs.f_frsize, &free_bytes) && bytes > free_bytes) {
        errno = ENOSPC;
        return jk_fail_errno(err, "'%s' needs %llu bytes, and %llu are free there", name,
                             (unsigned long long)bytes, (unsigned long long)free_bytes);
    }
    return JASK_OK;
}

/* Give the file its length and its blocks. A file system that cannot reserve gives the length
 * alone: then every write is checked instead. */
static jask_status reserve(jk_file *file, const char *name, uint64_t bytes, jask_error *err)
{
    struct statvfs fs;
    int fd = file->fd;
    unsigned long long free_bytes = 0;
    int failed;
    if (bytes == 0)
        return JASK_OK;
    do
        failed = fallocate(fd, 0, 0, (off_t)bytes);
    while (failed && errno == EINTR);
    if (failed && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
        file->lacks |= JK_FILE_UNRESERVED;
        do
            failed = ftruncate(fd, (off_t)bytes);
        while (failed && errno == EINTR);
    }
    if (failed) {
        int saved = errno;
        if (fstatvfs(fd, &fs) == 0)
            free_bytes = (unsigned long long)fs.f_bavail * fs.f_frsize;
        errno = saved;
        return jk_fail_errno(err, "reserve %llu bytes for '%s' (%llu are free there)",
                             (unsigned long long)bytes, name, free_bytes);
    }
    return JASK_OK;
}

static void proc_path(int fd, char *path)
{
    snprintf(path, PROC_FD_MAX, "/proc/self/fd/%d", fd);
}

/* A file without a name, or -1 where that is impossible. */
static int open_nameless(int dir_fd, mode_t mode, int flags)
{
    int fd;
    do
        fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC | flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* A hidden name beside `base`, not longer than file systems take. */
static jask_status random_name(const char *base, char **out, jask_error *err)
{
    unsigned long long number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return jk_fail_errno(err, "random bytes for a file name beside '%s'", base);
    if (asprintf(out, ".%.200s.jask-%016llx", base, number) < 0)
        return fail_nomem(base, err);
    return JASK_OK;
}

/* Make a file under a new random name; nothing that exists, link or file, is followed or opened. */
static jask_status open_random(int dir_fd, const char *base, const char *name, mode_t mode,
                               int *out_fd, char **out_name, jask_error *err)
{
    for (int tries = 0; tries < NAME_TRIES; tries++) {
        char *temp;
        int fd, saved;
        jask_status st = random_name(base, &temp, err);
        if (st)
            return st;
        fd = openat(dir_fd, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0) {
            *out_fd = fd;
            *out_name = temp;
            return JASK_OK;
        }
        saved = errno;
        free(temp);
        errno = saved;
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    return jk_fail_errno(err, "make '%s' in its directory", name);
}

/* Files are made with the permissions that they end with, so that the system applies umask and
 * default ACL, and nobody can read a result early who could not read it later. */
static jask_status open_hidden(jk_output *output, const char *target, mode_t mode, int *out_fd,
                               jask_error *err)
{
    char path[PROC_FD_MAX];
    int fd = open_nameless(output->dir_fd, mode, 0);
    proc_path(fd, path);
    if (fd >= 0 && access(path, F_OK) != 0) { /* without /proc it could not be given a name later */
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        return open_random(output->dir_fd, base_of(output->target), target, mode, out_fd,
                           &output->temp_name, err);
    *out_fd = fd;
    return JASK_OK;
}

/* Whether a result keeps a name meanwhile, and whether there is something to go on with. */
typedef enum body { BODY_HIDDEN, BODY_PARTIAL, BODY_CONTINUED } body;

static jask_status open_body(jk_output *output, const char *target, mode_t mode, bool replaces,
                             body kind, int *out_fd, jask_error *err)
{
    int fd = -1;
    jask_status st;
    if (kind == BODY_HIDDEN) {
        st = open_hidden(output, target, mode, &fd, err);
    } else {
        output->keep = true;
        if (asprintf(&output->temp_name, "%s%s", base_of(output->target), JK_PARTIAL_SUFFIX) < 0) {
            output->temp_name = NULL;
            return fail_nomem(target, err);
        }
        st = jk_partial_open(output->dir_fd, output->temp_name, mode, kind == BODY_CONTINUED, &fd,
                             err);
    }
    if (st)
        return st;
    /* The umask may have taken what the old file had. A file system without permissions refuses
     * this, and then the stricter ones stay. */
    if (replaces)
        (void)fchmod(fd, mode);
    *out_fd = fd;
    return JASK_OK;
}

static unsigned lacks_of(const jk_output *output)
{
    struct statfs fs;
    unsigned lacks = output->temp_name && !output->keep ? JK_FILE_NAMED : 0;
    if (fstatfs(output->file.fd, &fs) == 0 &&
        ((uint32_t)fs.f_type == TMPFS_MAGIC || (uint32_t)fs.f_type == RAMFS_MAGIC))
        lacks |= JK_FILE_IN_RAM;
    return lacks;
}

static jask_status check_length(const jk_output *output, uint64_t bytes, jask_error *err)
{
    if (output->file.bytes == bytes)
        return JASK_OK;
    return jk_fail(
        err, JASK_ERR_FORMAT,
        "the partial result '%s' has %llu bytes instead of %llu: remove it to start over",
        output->temp_name, (unsigned long long)output->file.bytes, (unsigned long long)bytes);
}

static jask_status open_output(const char *target, uint64_t bytes, body kind, jk_output **out,
                               jask_error *err)
{
    jk_output *output;
    mode_t mode;
    bool replaces;
    const char *base;
    int fd = -1;
    jask_status st = look_at_target(target, &mode, &replaces, err);
    if (st)
        return st;
    output = calloc(1, sizeof *output);
    if (!output)
        return fail_nomem(target, err);
    output->file = JK_FILE_NONE;
    output->dir_fd = -1;
    st = jk_output_resolve(target, &output->target, err);
    if (st)
        goto out;
    base = base_of(output->target);
    if (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
        st = jk_fail(err, JASK_ERR_ARG, "'%s' names a directory; a result needs a file name",
                     target);
        goto out;
    }
    st = open_dir_of(output->target, target, &output->dir_fd, err);
    if (!st)
        jk_commit_sweep(output->dir_fd, base);
    if (!st)
        st = check_room(output->dir_fd, target, bytes, kind != BODY_CONTINUED, err);
    if (!st)
        st = open_body(output, target, mode, replaces, kind, &fd, err);
    if (!st)
        st = jk_file_adopt(fd, target, &output->file, err);
    if (!st && kind == BODY_CONTINUED)
        st = check_length(output, bytes, err);
    if (!st)
        st = reserve(&output->file, target, bytes, err);
    if (st)
        goto out;
    output->file.lacks |= lacks_of(output);
    output->file.bytes = bytes;
    output->file.mtime_ns = JK_MTIME_OURS;
    *out = output;
    output = NULL;
out:
    jk_output_close(output);
    return st;
}

jask_status jk_output_open(const char *target, uint64_t bytes, jk_output **out, jask_error *err)
{
    return open_output(target, bytes, BODY_HIDDEN, out, err);
}

jask_status jk_output_open_partial(const char *target, uint64_t bytes, bool continues,
                                   jk_output **out, jask_error *err)
{
    return open_output(target, bytes, continues ? BODY_CONTINUED : BODY_PARTIAL, out, err);
}

static int sync_retrying(int fd)
{
    int failed;
    do
        failed = fsync(fd);
    while (failed && errno == EINTR);
    return failed;
}

/* Errors of writes that the system has put off come out here at the latest. */
jask_status jk_output_flush(const jk_output *output, bool sync, jask_error *err)
{
    int copy;
    if (sync) {
        if (sync_retrying(output->file.fd) != 0)
            return jk_fail_errno(err, "sync '%s'", output->file.name);
        return JASK_OK;
    }
    /* Network file systems send what is left, and tell, when a descriptor is closed. */
    copy = fcntl(output->file.fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0 || (close(copy) != 0 && errno != EINTR))
        return jk_fail_errno(err, "flush '%s'", output->file.name);
    return JASK_OK;
}

/* 0 or -1, as linkat(). Linking by descriptor alone needs a privilege on older systems, by /proc it
 * does not. */
static int link_as(const jk_output *output, const char *name)
{
    char path[PROC_FD_MAX];
    if (linkat(output->file.fd, "", output->dir_fd, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno == EEXIST)
        return -1;
    proc_path(output->file.fd, path);
    return linkat(AT_FDCWD, path, output->dir_fd, name, AT_SYMLINK_FOLLOW);
}

/* A name for a nameless result: its own, or while that is taken another one to be renamed. */
static jask_status give_name(jk_output *output, bool *named, jask_error *err)
{
    const char *base = base_of(output->target);
    *named = link_as(output, base) == 0;
    if (*named)
        return JASK_OK;
    if (errno == EEXIST)
        jk_commit_lock(output->file.fd);
    for (int tries = 0; errno == EEXIST && tries < NAME_TRIES; tries++) {
        char *temp;
        int saved;
        jask_status st = tries < JK_COMMIT_NAMES ? jk_commit_name(base, tries, &temp, err)
                                                 : random_name(base, &temp, err);
        if (st)
            return st;
        if (link_as(output, temp) == 0) {
            output->temp_name = temp;
            return JASK_OK;
        }
        saved = errno;
        free(temp);
        errno = saved;
    }
    return jk_fail_errno(err, "give '%s' its name", output->file.name);
}

jask_status jk_output_publish(jk_output *output, bool sync, jask_error *err)
{
    bool named = false;
    jask_status st = JASK_OK;
    if (!output->temp_name)
        st = give_name(output, &named, err);
    if (st)
        return st;
    if (!named) {
        if (renameat(output->dir_fd, output->temp_name, output->dir_fd, base_of(output->target)) !=
            0)
            return jk_fail_errno(err, "give '%s' its name", output->file.name);
        free(output->temp_name);
        output->temp_name = NULL;
        jk_commit_unlock(output->file.fd);
    }
    if (sync && sync_retrying(output->dir_fd) != 0 && errno != EINVAL)
        return jk_fail_errno(err, "'%s' is complete, but its directory could not be synced",
                             output->file.name);
    return JASK_OK;
}

jask_status jk_output_commit(jk_output *output, bool sync, jask_error *err)
{
    jask_status st = jk_output_flush(output, sync, err);
    return st ? st : jk_output_publish(output, sync, err);
}

void jk_output_close(jk_output *output)
{
    if (!output)
        return;
    if (output->temp_name && !output->keep)
        unlinkat(output->dir_fd, output->temp_name, 0);
    jk_file_close(&output->file);
    if (output->dir_fd >= 0)
        close(output->dir_fd);
    free(output->temp_name);
    free(output->target);
    free(output);
}

static jask_status open_scratch_body(int dir_fd, const char *name, int *out_fd, jask_error *err)
{
    char *temp;
    jask_status st;
    *out_fd = open_nameless(dir_fd, 0600, O_EXCL); /* O_EXCL: can never be given a name */
    if (*out_fd >= 0)
        return JASK_OK;
    st = open_random(dir_fd, "scratch", name, 0600, out_fd, &temp, err);
    if (st)
        return st;
    if (unlinkat(dir_fd, temp, 0) != 0) {
        st = jk_fail_errno(err, "remove the name '%s' of '%s'", temp, name);
        close(*out_fd);
    }
    free(temp);
    return st;
}

jask_status jk_file_scratch(const char *dir, uint64_t bytes, jk_file *out, jask_error *err)
{
    char name[PATH_MAX + 32];
    jk_file file = JK_FILE_NONE;
    int fd = -1;
    int dir_fd = open_dir(dir);
    jask_status st;
    if (dir_fd < 0)
        return jk_fail_errno(err, "scratch directory '%s'", dir);
    snprintf(name, sizeof name, "scratch file in %s", dir);
    st = check_room(dir_fd, name, bytes, true, err);
    if (!st)
        st = open_scratch_body(dir_fd, name, &fd, err);
    if (!st)
        st = jk_file_adopt(fd, name, &file, err);
    if (!st)
        st = reserve(&file, name, bytes, err);
    close(dir_fd);
    if (st) {
        jk_file_close(&file);
        return st;
    }
    file.bytes = bytes;
    file.mtime_ns = JK_MTIME_OURS;
    *out = file;
    return JASK_OK;
}
