#include "runtime/file.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* How the wrapped calls behave: at most `cap` bytes at once; every second call is interrupted; call
 * number `fail_at` (1 is the first) fails with `fail_with`, or returns 0 when that is 0. */
static struct act {
    size_t cap;
    bool interrupt;
    int fail_at, fail_with;
    int calls;
    size_t largest;
} act;

ssize_t __real_pread64(int fd, void *buf, size_t bytes, off_t offset);
ssize_t __real_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);

/* 1: go on, with *bytes cut down; else what the call is to return. */
static int play(size_t *bytes)
{
    act.calls++;
    if (act.calls == act.fail_at) {
        errno = act.fail_with;
        return act.fail_with ? -1 : 0;
    }
    if (act.interrupt && act.calls % 2) {
        errno = EINTR;
        return -1;
    }
    if (*bytes > act.largest)
        act.largest = *bytes;
    if (act.cap && *bytes > act.cap)
        *bytes = act.cap;
    return 1;
}

ssize_t __wrap_pread64(int fd, void *buf, size_t bytes, off_t offset)
{
    int go = play(&bytes);
    return go == 1 ? __real_pread64(fd, buf, bytes, offset) : go;
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset)
{
    int go = play(&bytes);
    return go == 1 ? __real_pwrite64(fd, buf, bytes, offset) : go;
}

static int ranges, range_error;
static unsigned range_flags;

int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags);
int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags)
{
    (void)fd, (void)offset, (void)bytes;
    ranges++;
    range_flags = flags;
    errno = range_error;
    return range_error ? -1 : 0;
}

/* What the page cache is said to hold, and what was announced. */
static struct cache {
    off_t cached; /* bytes before it */
    int announced;
    off_t offset[8], bytes[8];
} cache;

ssize_t __wrap_preadv64v2(int fd, const struct iovec *to, int count, off_t offset, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *to, int count, off_t offset, int flags)
{
    (void)fd;
    cr_assert_eq(flags, RWF_NOWAIT);
    cr_assert_eq(count, 1);
    if (offset < cache.cached)
        return (ssize_t)to->iov_len;
    errno = EAGAIN;
    return -1;
}

int __wrap_posix_fadvise64(int fd, off_t offset, off_t bytes, int advice);
int __wrap_posix_fadvise64(int fd, off_t offset, off_t bytes, int advice)
{
    (void)fd;
    if (advice == POSIX_FADV_WILLNEED && cache.announced < 8) {
        cache.offset[cache.announced] = offset;
        cache.bytes[cache.announced] = bytes;
    }
    cache.announced += advice == POSIX_FADV_WILLNEED;
    return 0;
}

TestSuite(file, .init = tree_enter, .fini = tree_leave);

static jk_file open_rw(const char *name)
{
    jk_file file;
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(jk_file_adopt(fd, name, &file, NULL), JASK_OK);
    return file;
}

Test(file, opens_regular_files_and_nothing_else, .timeout = 20)
{
    static const struct {
        const char *path;
        jask_status status;
        const char *said;
    } cases[] = {
        {"data", JASK_OK, ""},
        {"link", JASK_OK, ""},
        {"dir", JASK_ERR_FORMAT, "'dir' is a directory"},
        {"fifo", JASK_ERR_FORMAT, "'fifo' is a FIFO"},
        {"/dev/zero", JASK_ERR_FORMAT, "'/dev/zero' is a device"},
        {"none", JASK_ERR_IO, "open 'none': No such file"},
        {"dangling", JASK_ERR_IO, "'dangling'"},
        {"data/x", JASK_ERR_IO, "'data/x': Not a directory"},
        {"", JASK_ERR_IO, "''"},
    };
    tree_write(".", "/data", "12345");
    cr_assert_eq(mkdir("dir", 0777), 0);
    cr_assert_eq(mkfifo("fifo", 0666), 0);
    cr_assert_eq(symlink("data", "link"), 0);
    cr_assert_eq(symlink("nowhere", "dangling"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_file file = {.fd = -77};
        jask_error err = {.msg = ""};
        cr_assert_eq(jk_file_open(cases[i].path, &file, &err), cases[i].status, "%s",
                     cases[i].path);
        cr_assert_not_null(strstr(err.msg, cases[i].said), "%s", err.msg);
        if (cases[i].status) {
            cr_assert_eq(file.fd, -77);
            cr_assert_eq(jk_file_open(cases[i].path, &file, NULL), cases[i].status);
            continue;
        }
        cr_assert_eq(file.bytes, 5);
        cr_assert(fcntl(file.fd, F_GETFD) & FD_CLOEXEC);
        jk_file_close(&file);
        cr_assert_eq(file.fd, -1);
        jk_file_close(&file);
    }
    jk_file_close(NULL);
}

Test(file, a_disk_is_known_by_its_number)
{
    cr_assert(jk_file_on_block_device(&(jk_file){.dev = makedev(8, 1)}));
    cr_assert(jk_file_on_block_device(&(jk_file){.dev = makedev(259, 300)}));
    cr_assert_not(jk_file_on_block_device(&(jk_file){.dev = makedev(0, 300)}));
}

Test(file, reads_and_writes_all_in_pieces_and_after_interrupts)
{
    enum { SIZE = 12345 };
    static char in[SIZE], out[SIZE];
    jk_file file = open_rw("data");
    for (size_t i = 0; i < SIZE; i++)
        in[i] = (char)(i * 7);
    act.cap = 1000;
    act.interrupt = true;
    cr_assert_eq(jk_file_write(&file, 11, in, SIZE, NULL), JASK_OK);
    cr_assert_eq(act.calls, 2 * 13);
    cr_assert_eq(jk_file_read(&file, 11, out, SIZE, NULL), JASK_OK);
    cr_assert_arr_eq(in, out, SIZE);
    cr_assert_eq(jk_file_read(&file, 12, out, SIZE - 1, NULL), JASK_OK);
    cr_assert_arr_eq(in + 1, out, SIZE - 1);
    cr_assert_eq(jk_file_read(&file, 1 << 30, out, 0, NULL), JASK_OK);
    jk_file_close(&file);
}

Test(file, never_asks_for_more_than_a_call_can_move)
{
    char byte;
    jk_file file = open_rw("data");
    /* One byte arrives, then an error: the buffer needs not be as long as it is said to be. */
    act = (struct act){.fail_at = 2, .fail_with = EIO, .cap = 1};
    cr_assert_eq(ftruncate(file.fd, 1), 0);
    cr_assert_eq(jk_file_read(&file, 0, &byte, (size_t)5 << 30, NULL), JASK_ERR_IO);
    cr_assert_eq(act.largest, (size_t)1 << 30);
    jk_file_close(&file);
}

Test(file, failures_name_file_offset_bytes_and_reason)
{
    static const int errors[] = {EIO, ENOSPC, EDQUOT, EBADF};
    char buf[100] = {0};
    jk_file file = open_rw("data");
    cr_assert_eq(jk_file_write(&file, 0, buf, 100, NULL), JASK_OK);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        jask_error err;
        act = (struct act){.cap = 40, .fail_at = 2, .fail_with = errors[i]};
        cr_assert_eq(jk_file_read(&file, 0, buf, 100, &err), JASK_ERR_IO);
        cr_assert_eq(err.sys_errno, errors[i]);
        cr_assert_not_null(strstr(err.msg, "read 60 bytes at 40 of 'data': "), "%s", err.msg);
        cr_assert_not_null(strstr(err.msg, strerror(errors[i])), "%s", err.msg);
        act = (struct act){.cap = 40, .fail_at = 2, .fail_with = errors[i]};
        cr_assert_eq(jk_file_write(&file, 0, buf, 100, &err), JASK_ERR_IO);
        cr_assert_not_null(strstr(err.msg, "write 60 bytes at 40 of 'data': "), "%s", err.msg);
    }
    act = (struct act){.fail_at = 1};
    cr_assert_eq(jk_file_write(&file, 0, buf, 100, NULL), JASK_ERR_IO);
    jk_file_close(&file);
}

Test(file, an_input_that_shrinks_or_changes_is_an_error)
{
    char buf[100];
    jk_file file;
    jask_error err;
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    tree_write(".", "/data", "0123456789");
    cr_assert_eq(jk_file_open("data", &file, NULL), JASK_OK);
    cr_assert_eq(jk_file_check_unchanged(&file, NULL), JASK_OK);
    cr_assert_eq(utimensat(AT_FDCWD, "data", times, 0), 0);
    cr_assert_eq(jk_file_check_unchanged(&file, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "'data' was modified"), "%s", err.msg);

    cr_assert_eq(truncate("data", 4), 0);
    cr_assert_eq(jk_file_check_unchanged(&file, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "'data' shrank: it had 10 bytes and now has 4"), "%s",
                       err.msg);
    cr_assert_eq(jk_file_read(&file, 2, buf, 8, &err), JASK_ERR_FORMAT);
    cr_assert_not_null(strstr(err.msg, "'data' shrank: 8 bytes at 2"), "%s", err.msg);
    cr_assert_not_null(strstr(err.msg, "ends at 4"), "%s", err.msg);
    jk_file_close(&file);
}

Test(file, maps_from_any_offset)
{
    enum { SIZE = 10000 };
    jk_file file = open_rw("data");
    jk_mapping map = {0};
    char byte = 'x', back;
    jask_error err;
    cr_assert_eq(ftruncate(file.fd, SIZE), 0);
    jk_file_unmap(&map);
    cr_assert_eq(jk_file_write(&file, 4097, &byte, 1, NULL), JASK_OK);
    cr_assert_eq(jk_file_map(&file, 4097, SIZE - 4097, true, &map, NULL), JASK_OK);
    cr_assert_eq(*(char *)map.data, 'x');
    *(char *)map.data = 'y';
    jk_file_unmap(&map);
    cr_assert_null(map.base);
    cr_assert_eq(jk_file_read(&file, 4097, &back, 1, NULL), JASK_OK);
    cr_assert_eq(back, 'y');
    cr_assert_eq(jk_file_map(&file, 0, (size_t)1 << 62, false, &map, &err), JASK_ERR_NOMEM);
    cr_assert_not_null(strstr(err.msg, "of 'data'"), "%s", err.msg);
    jk_file_close(&file);
}

Test(file, what_is_written_out_waits_for_what_began_before_and_hears_of_failures)
{
    static const int failures[] = {EIO, ENOSPC, EDQUOT}, lacks[] = {ENOSYS, EINVAL, ESPIPE};
    jk_file file = open_rw("data");
    jask_error err;
    cr_assert_eq(jk_file_write_out(&file, &err), JASK_OK);
    cr_assert_eq(ranges, 1);
    cr_assert_eq(range_flags, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
    for (size_t i = 0; i < 3; i++) {
        range_error = failures[i];
        cr_assert_eq(jk_file_write_out(&file, &err), JASK_ERR_IO);
        cr_assert_eq(err.sys_errno, failures[i]);
        cr_assert_not_null(strstr(err.msg, "'data'"), "%s", err.msg);
        range_error = lacks[i];
        cr_assert_eq(jk_file_write_out(&file, &err), JASK_OK);
    }
    jk_file_write_behind(&file);
    cr_assert_eq(range_flags, SYNC_FILE_RANGE_WRITE);
    jk_file_close(&file);
}

Test(file, runs_are_cached_when_the_first_and_the_last_one_are)
{
    jk_file file = open_rw("data");
    /* None of the runs is there, all but the last, and all. */
    const off_t cached[] = {0, 1128, 1129};
    for (int i = 0; i < 3; i++) {
        cache = (struct cache){.cached = cached[i]};
        cr_assert_eq(jk_file_runs_cached(&file, 128, 500, 3), i == 2);
    }
    jk_file_close(&file);
}

Test(file, every_run_is_announced)
{
    jk_file file = open_rw("data");
    cache = (struct cache){.cached = 0};
    jk_file_announce(&file, 128, 50, 500, 3);
    cr_assert_eq(cache.announced, 3);
    for (int run = 0; run < 3; run++) {
        cr_assert_eq(cache.offset[run], 128 + 500 * run);
        cr_assert_eq(cache.bytes[run], 50);
    }
    jk_file_close(&file);
}
