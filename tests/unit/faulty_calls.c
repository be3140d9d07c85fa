#include "faulty_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct faulty faulty;

int __real_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);
int __real_fallocate64(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes);
int __real_ftruncate64(int fd, off_t bytes);
int __wrap_ftruncate64(int fd, off_t bytes);
ssize_t __real_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);
int __wrap_fsync(int fd);
int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

static bool fails(void)
{
    if (++faulty.calls != faulty.fail_at)
        return false;
    errno = faulty.fail_with;
    return true;
}

int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
    if (fails())
        return -1;
    if ((flags & O_TMPFILE) == O_TMPFILE && faulty.tmpfile) {
        errno = faulty.tmpfile;
        return -1;
    }
    return __real_openat64(dir, path, flags, mode);
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes)
{
    if (fails())
        return -1;
    if (faulty.fallocate_times-- > 0) {
        errno = faulty.fallocate;
        return -1;
    }
    return __real_fallocate64(fd, mode, offset, bytes);
}

int __wrap_ftruncate64(int fd, off_t bytes)
{
    return fails() ? -1 : __real_ftruncate64(fd, bytes);
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset)
{
    return fails() ? -1 : __real_pwrite64(fd, buf, bytes, offset);
}

int __wrap_fsync(int fd)
{
    faulty.syncs++;
    (void)fd; /* what is counted here needs no disk to wait for */
    return fails() ? -1 : 0;
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    if (fails())
        return -1;
    if ((flags & AT_EMPTY_PATH) && faulty.empty_path) {
        errno = faulty.empty_path;
        return -1;
    }
    return __real_linkat(from_dir, from, to_dir, to, flags);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (faulty.signal_at_rename)
        kill(getpid(), faulty.signal_at_rename);
    return fails() ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_access(const char *path, int mode)
{
    if (faulty.no_proc && strncmp(path, "/proc/", 6) == 0) {
        errno = ENOENT;
        return -1;
    }
    return __real_access(path, mode);
}
