#include "faults.h"

#include "common/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

struct fault_system fault_system;

static struct {
    _Atomic fault_kind kind;
    int64_t nth;
    int error;
    bool onward;
    _Atomic int64_t calls; /* several threads call */
} armed;

void fault_arm(fault_kind kind, int64_t nth, int error, bool onward)
{
    armed.nth = nth;
    armed.error = error;
    armed.onward = onward;
    armed.calls = 0;
    armed.kind = kind;
}

int64_t fault_disarm(void)
{
    armed.kind = FAULT_NONE;
    return armed.calls;
}

static bool fails(fault_kind kind)
{
    int64_t call;
    if (armed.kind != kind)
        return false;
    call = ++armed.calls;
    if (call != armed.nth && !(armed.onward && call > armed.nth))
        return false;
    errno = armed.error;
    return true;
}

/* The wrapper of a call that says with one value that it failed. */
#define WRAP(kind, failed, type, name, params, args)                                               \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params                                                                      \
    {                                                                                              \
        return fails(kind) ? (failed) : __real_##name args;                                        \
    }

WRAP(FAULT_LOOK, -1, int, stat64, (const char *path, struct stat *out), (path, out))
WRAP(FAULT_LOOK, -1, int, fstat64, (int fd, struct stat *out), (fd, out))
WRAP(FAULT_LOOK, -1, int, statfs64, (const char *path, struct statfs *out), (path, out))
WRAP(FAULT_LOOK, -1, int, fstatfs64, (int fd, struct statfs *out), (fd, out))
WRAP(FAULT_LOOK, -1, int, fstatvfs64, (int fd, struct statvfs *out), (fd, out))
WRAP(FAULT_LOOK, -1, int, access, (const char *path, int mode), (path, mode))
WRAP(FAULT_LOOK, -1, int, faccessat, (int dir, const char *path, int mode, int flags),
     (dir, path, mode, flags))
WRAP(FAULT_LOOK, -1, ssize_t, readlink, (const char *path, char *out, size_t size),
     (path, out, size))
WRAP(FAULT_LOOK, NULL, char *, realpath, (const char *path, char *out), (path, out))
WRAP(FAULT_LOOK, NULL, char *, getcwd, (char *out, size_t size), (out, size))
WRAP(FAULT_LOOK, NULL, FILE *, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(FAULT_LOOK, -1, int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(FAULT_LOOK, -1, ssize_t, getrandom, (void *out, size_t size, unsigned flags),
     (out, size, flags))
WRAP(FAULT_LOOK, -1, int, fcntl64, (int fd, int what, long arg), (fd, what, arg))
WRAP(FAULT_LOOK, -1, int, flock, (int fd, int what), (fd, what))
WRAP(FAULT_LOOK, -1, int, ftruncate64, (int fd, off_t bytes), (fd, bytes))
WRAP(FAULT_RESERVE, -1, int, fallocate64, (int fd, int mode, off_t offset, off_t bytes),
     (fd, mode, offset, bytes))
WRAP(FAULT_NAME, -1, int, linkat,
     (int from_dir, const char *from, int to_dir, const char *to, int flags),
     (from_dir, from, to_dir, to, flags))
WRAP(FAULT_NAME, -1, int, renameat, (int from_dir, const char *from, int to_dir, const char *to),
     (from_dir, from, to_dir, to))
WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t bytes), (bytes))
WRAP(FAULT_MEMORY, NULL, void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(FAULT_MEMORY, NULL, void *, realloc, (void *old, size_t bytes), (old, bytes))
WRAP(FAULT_MEMORY, NULL, char *, strdup, (const char *text), (text))
WRAP(FAULT_MEMORY, NULL, char *, strndup, (const char *text, size_t most), (text, most))
WRAP(FAULT_MAP, MAP_FAILED, void *, mmap64,
     (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
     (at, bytes, protection, flags, fd, offset))

int __wrap_asprintf(char **out, const char *fmt, ...) JK_PRINTF(2, 3);
int __wrap_asprintf(char **out, const char *fmt, ...)
{
    va_list args;
    int len;
    if (fails(FAULT_MEMORY))
        return -1;
    va_start(args, fmt);
    len = vasprintf(out, fmt, args);
    va_end(args);
    return len;
}

static _Thread_local bool starts_spare; /* the thread that is being started */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg)
{
    return fails(starts_spare ? FAULT_SPARE : FAULT_THREAD)
               ? armed.error
               : __real_pthread_create(thread, attr, body, arg);
}

jask_status __real_jk_thread_start(pthread_t *thread, const char *name, void *(*body)(void *),
                                   void *arg, bool *started, jask_error *err);
jask_status __wrap_jk_thread_start(pthread_t *thread, const char *name, void *(*body)(void *),
                                   void *arg, bool *started, jask_error *err);
jask_status __wrap_jk_thread_start(pthread_t *thread, const char *name, void *(*body)(void *),
                                   void *arg, bool *started, jask_error *err)
{
    jask_status st;
    starts_spare = strcmp(name, "jask-spare") == 0;
    st = __real_jk_thread_start(thread, name, body, arg, started, err);
    starts_spare = false;
    return st;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    bool failing = fails(FAULT_CLOSE);
    int reason = errno;
    int result = __real_close(fd);
    if (failing)
        errno = reason;
    return failing ? -1 : result;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    return fails(FAULT_SYNC) ? -1 : 0;
}

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    return __wrap_fsync(fd);
}

static bool refused(int flags)
{
    if (!fault_system.no_tmpfile || (flags & O_TMPFILE) != O_TMPFILE)
        return false;
    errno = EOPNOTSUPP;
    return true;
}

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    return fails(FAULT_OPEN) || refused(flags) ? -1 : __real_open64(path, flags, mode);
}

int __real_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
    return fails(FAULT_OPEN) || refused(flags) ? -1 : __real_openat64(dir, path, flags, mode);
}

static size_t short_of(size_t bytes)
{
    return fault_system.call_bytes && bytes > fault_system.call_bytes ? fault_system.call_bytes
                                                                      : bytes;
}

ssize_t __real_pread64(int fd, void *out, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *out, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *out, size_t bytes, off_t offset)
{
    return fails(FAULT_READ) ? -1 : __real_pread64(fd, out, short_of(bytes), offset);
}

ssize_t __real_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t offset)
{
    return fails(FAULT_WRITE) ? -1 : __real_pwrite64(fd, data, short_of(bytes), offset);
}
