/* Reading and writing around the page cache (O_DIRECT): what is moved neither takes memory there nor
 * pushes anything out, is not copied by a core, and goes in requests as large as the calls are. */
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Right wherever the kernel does not say: no disk has larger sectors than a page. */
#define UNIT_MAX 4096

/* The units that requests are made of; false where there can be none. */
static bool find_units(jk_direct *direct)
{
    direct->offset_unit = direct->mem_unit = UNIT_MAX;
#ifdef STATX_DIOALIGN
    struct statx st;
    if (statx(direct->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 &&
        (st.stx_mask & STATX_DIOALIGN)) {
        direct->offset_unit = st.stx_dio_offset_align;
        direct->mem_unit = st.stx_dio_mem_align;
    }
#endif
    return direct->offset_unit > 0 && direct->offset_unit <= UNIT_MAX && direct->mem_unit > 0 &&
           direct->mem_unit <= UNIT_MAX;
}

static bool open_around(const jk_file *file, bool writes, jk_direct *out, jask_error *err)
{
    char path[64];
    /* By descriptor: the file may have another name by now, or none. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    *out = (jk_direct){.file = file, .writes = writes};
    do
        out->fd = open(path, (writes ? O_WRONLY : O_RDONLY) | O_CLOEXEC | O_DIRECT);
    while (out->fd < 0 && errno == EINTR);
    if (out->fd >= 0 && !find_units(out)) {
        close(out->fd);
        out->fd = -1;
        errno = EOPNOTSUPP;
    }
    if (out->fd < 0) {
        const char *how = writes ? "written" : "read", *what = writes ? "writes" : "reads";
        jk_fail_errno(err, "'%.160s' is %s through the page cache; opening it for direct %s",
                      file->name, how, what);
        return false;
    }
    return true;
}

bool jk_direct_open(const jk_file *file, jk_direct *out, jask_error *err)
{
    if (!open_around(file, false, out, err))
        return false;
    /* What is left to the page cache, the ends of runs, shall not bring its surroundings with it. */
    (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
    return true;
}

bool jk_direct_open_write(const jk_file *file, jk_direct *out, jask_error *err)
{
    if (!open_around(file, true, out, err))
        return false;
    out->offset_unit = (size_t)sysconf(_SC_PAGESIZE);
    return true;
}

void jk_direct_close(jk_direct *direct)
{
    if (direct->fd < 0)
        return;
    if (!direct->writes)
        (void)posix_fadvise(direct->file->fd, 0, 0, POSIX_FADV_NORMAL);
    close(direct->fd);
    direct->fd = -1;
}

/* Whole units from or to an address that fits. *done: how many bytes came before the end, or before the
 * kernel would have no more requests of this kind. */
static jask_status move_whole(jk_direct *direct, uint64_t offset, char *mem, size_t bytes,
                              size_t *done, jask_error *err)
{
    *done = 0;
    while (*done < bytes) {
        char *at = mem + *done;
        size_t left = bytes - *done;
        off_t from = (off_t)(offset + *done);
        ssize_t moved =
            direct->writes ? pwrite(direct->fd, at, left, from) : pread(direct->fd, at, left, from);
        if (moved < 0 && errno == EINTR)
            continue;
        /* Some file systems open a file so and then refuse to move anything. */
        if (moved < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
            direct->refused = true;
            return JASK_OK;
        }
        if (moved < 0)
            return jk_fail_errno(err, "%s %zu bytes at %llu of '%s'",
                                 direct->writes ? "write" : "read", left, (unsigned long long)from,
                                 direct->file->name);
        *done += (size_t)moved / direct->offset_unit * direct->offset_unit;
        direct->used = true;
        if (moved == 0 || (size_t)moved % direct->offset_unit != 0)
            return JASK_OK;
    }
    return JASK_OK;
}

jask_status jk_direct_read(jk_direct *direct, uint64_t offset, void *dst, size_t bytes,
                           jask_error *err)
{
    const jk_file *file = direct->file;
    size_t unit = direct->offset_unit, head, whole, shift, done;
    char *to;
    jask_status st;
    if (bytes < JK_DIRECT_MIN || direct->refused)
        return jk_file_read(file, offset, dst, bytes, err);
    head = (size_t)(-offset % unit);
    to = (char *)dst + head;
    whole = (bytes - head) / unit * unit;
    /* Read to the next address that the disk can write to, and moved from there into place. */
    shift = (size_t)(-(uintptr_t)to % direct->mem_unit);
    whole -= (shift + unit - 1) / unit * unit;
    st = move_whole(direct, offset + head, to + shift, whole, &done, err);
    if (st)
        return st;
    memmove(to, to + shift, done);
    st = jk_file_read(file, offset, dst, head, err);
    return st ? st : jk_file_read(file, offset + head + done, to + done, bytes - head - done, err);
}

jask_status jk_direct_write(jk_direct *direct, uint64_t offset, const void *src, size_t bytes,
                            jask_error *err)
{
    const jk_file *file = direct->file;
    const char *from = src;
    size_t head = (size_t)(-offset % direct->offset_unit), whole, done = 0;
    jask_status st = JASK_OK;
    if (bytes < JK_DIRECT_WRITE_MIN || direct->refused ||
        (uintptr_t)(from + head) % direct->mem_unit != 0)
        return jk_file_write(file, offset, src, bytes, err);
    whole = (bytes - head) / direct->offset_unit * direct->offset_unit;
    /* From where it writes, memory is only read. */
    st = move_whole(direct, offset + head, (char *)from + head, whole, &done, err);
    if (!st)
        st = jk_file_write(file, offset, from, head, err);
    return st ? st
              : jk_file_write(file, offset + head + done, from + head + done, bytes - head - done,
                              err);
}

/* Pages that one look is at. */
#define LOOK 64

double jk_file_cached_at(const jk_file *file, uint64_t offset)
{
    unsigned char resident[LOOK];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), left;
    size_t pages, found = 0;
    jk_mapping map;
    offset -= offset % page;
    left = offset < file->bytes ? (file->bytes - offset + page - 1) / page : 0;
    pages = left < LOOK ? (size_t)left : LOOK;
    if (pages == 0 || jk_file_map(file, offset, pages * page, false, &map, NULL))
        return 0;
    if (mincore(map.base, pages * page, resident) == 0)
        for (size_t p = 0; p < pages; p++)
            found += resident[p] & 1;
    jk_file_unmap(&map);
    return (double)found / (double)pages;
}

double jk_file_cached_share(const jk_file *file)
{
    enum { SAMPLES = 64 };
    uint64_t look = LOOK * (uint64_t)sysconf(_SC_PAGESIZE);
    double found = 0;
    for (uint64_t i = 0; i < SAMPLES && file->bytes >= SAMPLES * look; i++)
        found += jk_file_cached_at(file, file->bytes / SAMPLES * i);
    return found / SAMPLES;
}
