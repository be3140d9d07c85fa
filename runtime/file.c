#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

/* Linux moves at most 2 GiB - 4 KiB a call. */
#define CALL_MAX ((size_t)1 << 30)

const char *jk_file_kind(unsigned mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

bool jk_file_on_block_device(const jk_file *file)
{
    return major((dev_t)file->dev) != 0;
}

static int64_t mtime_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

jask_status jk_file_adopt(int fd, const char *name, jk_file *out, jask_error *err)
{
    jk_file file = {.fd = fd};
    struct stat st;
    jask_status status = JASK_OK;
    if (fstat(fd, &st) != 0)
        status = jk_fail_errno(err, "look at '%s'", name);
    else if (!S_ISREG(st.st_mode))
        status = jk_fail(err, JASK_ERR_FORMAT, "'%s' is %s, not a regular file", name,
                         jk_file_kind(st.st_mode));
    else if (!(file.name = strdup(name)))
        status = jk_fail(err, JASK_ERR_NOMEM, "no memory for the name '%s'", name);
    if (status) {
        jk_file_close(&file);
        return status;
    }
    file.bytes = (uint64_t)st.st_size;
    file.dev = (uint64_t)st.st_dev;
    file.ino = (uint64_t)st.st_ino;
    file.mtime_ns = mtime_of(&st);
    *out = file;
    return JASK_OK;
}

jask_status jk_file_open(const char *path, jk_file *out, jask_error *err)
{
    int fd;
    do /* O_NONBLOCK: a FIFO without a writer opens at once, to be refused */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return jk_fail_errno(err, "open '%s'", path);
    return jk_file_adopt(fd, path, out, err);
}

/* By descriptor: another file may bear the name by now. */
jask_status jk_file_reopen(const jk_file *file, jk_file *out, jask_error *err)
{
    char path[64];
    int fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    do
        fd = open(path, O_RDWR | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return jk_fail_errno(err, "open '%s' for writing", file->name);
    return jk_file_adopt(fd, file->name, out, err);
}

jask_status jk_file_sync(const jk_file *file, jask_error *err)
{
    int failed;
    do
        failed = fsync(file->fd);
    while (failed && errno == EINTR);
    return failed ? jk_fail_errno(err, "sync '%s'", file->name) : JASK_OK;
}

void jk_file_close(jk_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file->name);
    *file = JK_FILE_NONE;
}

static jask_status fail_shrunk(const jk_file *file, uint64_t offset, size_t bytes, uint64_t end,
                               jask_error *err)
{
    return jk_fail(err, JASK_ERR_FORMAT,
                   "'%s' shrank: %zu bytes at %llu were asked for, it had %llu bytes and now ends "
                   "at %llu",
                   file->name, bytes, (unsigned long long)offset, (unsigned long long)file->bytes,
                   (unsigned long long)end);
}

jask_status jk_file_read(const jk_file *file, uint64_t offset, void *dst, size_t bytes,
                         jask_error *err)
{
    size_t done = 0;
    while (done < bytes) {
        size_t call = bytes - done < CALL_MAX ? bytes - done : CALL_MAX;
        ssize_t got = pread(file->fd, (char *)dst + done, call, (off_t)(offset + done));
        if (got == 0)
            return fail_shrunk(file, offset, bytes, offset + done, err);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return jk_fail_errno(err, "read %zu bytes at %llu of '%s'", bytes - done,
                                 (unsigned long long)(offset + done), file->name);
        done += (size_t)got;
    }
    return JASK_OK;
}

static bool in_page_cache(const jk_file *file, uint64_t offset)
{
    char byte;
    const struct iovec to = {&byte, 1};
    return preadv2(file->fd, &to, 1, (off_t)offset, RWF_NOWAIT) == 1;
}

bool jk_file_runs_cached(const jk_file *file, uint64_t offset, uint64_t pitch, int64_t count)
{
    return in_page_cache(file, offset) &&
           in_page_cache(file, offset + (uint64_t)(count - 1) * pitch);
}

void jk_file_announce(const jk_file *file, uint64_t offset, size_t bytes, uint64_t pitch,
                      int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        (void)posix_fadvise(file->fd, (off_t)(offset + (uint64_t)i * pitch), (off_t)bytes,
                            POSIX_FADV_WILLNEED);
}

jask_status jk_file_write(const jk_file *file, uint64_t offset, const void *src, size_t bytes,
                          jask_error *err)
{
    size_t done = 0;
    while (done < bytes) {
        size_t call = bytes - done < CALL_MAX ? bytes - done : CALL_MAX;
        ssize_t put = pwrite(file->fd, (const char *)src + done, call, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0) /* no progress and no reason: never loop on it */
            errno = EIO;
        if (put <= 0)
            return jk_fail_errno(err, "write %zu bytes at %llu of '%s'", bytes - done,
                                 (unsigned long long)(offset + done), file->name);
        done += (size_t)put;
    }
    return JASK_OK;
}

void jk_file_write_behind(const jk_file *file)
{
    (void)sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

jask_status jk_file_write_out(const jk_file *file, jask_error *err)
{
    /* What this waits for is what the call before began. It hears of failed writes that a later
     * fsync of the same descriptor then does not hear of. */
    int failed =
        sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
    if (failed && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        return jk_fail_errno(err, "write what is buffered of '%s'", file->name);
    (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
    return JASK_OK;
}

jask_status jk_file_check_unchanged(const jk_file *file, jask_error *err)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return jk_fail_errno(err, "look at '%s'", file->name);
    if ((uint64_t)st.st_size < file->bytes)
        return jk_fail(err, JASK_ERR_FORMAT, "'%s' shrank: it had %llu bytes and now has %llu",
                       file->name, (unsigned long long)file->bytes, (unsigned long long)st.st_size);
    if (file->mtime_ns != JK_MTIME_OURS && mtime_of(&st) != file->mtime_ns)
        return jk_fail(err, JASK_ERR_FORMAT, "'%s' was modified while it was being read",
                       file->name);
    return JASK_OK;
}

jask_status jk_file_map(const jk_file *file, uint64_t offset, size_t bytes, bool writable,
                        jk_mapping *out, jask_error *err)
{
    size_t lead = (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE));
    int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void *base = mmap(NULL, lead + bytes, protection, MAP_SHARED, file->fd, (off_t)(offset - lead));
    if (base == MAP_FAILED)
        return jk_fail_errno(err, "map %zu bytes at %llu of '%s'", bytes,
                             (unsigned long long)offset, file->name);
    *out = (jk_mapping){base, lead + bytes, (char *)base + lead};
    return JASK_OK;
}

void jk_file_unmap(jk_mapping *mapping)
{
    if (mapping->base)
        munmap(mapping->base, mapping->base_bytes);
    *mapping = (jk_mapping){0};
}
