/* Reading around the page cache: any offset, length and address, and every refusal. */
#include "../random.h"
#include "runtime/file.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define SIZE ((size_t)300 << 10)
#define ROOM ((size_t)8192) /* before and after what is read */
#define TMPFS 0x01021994

/* How the wrapped calls behave. */
static struct act {
    size_t cap;        /* bytes a read moves at the most; 0: any number */
    bool interrupt;    /* every second read is interrupted */
    int no_open;       /* errno of opening with O_DIRECT */
    int no_read;       /* errno of reading so */
    int reads, direct; /* calls, in all and around the page cache */
} act;

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
ssize_t __real_pread64(int fd, void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *buf, size_t bytes, off_t offset);

int __wrap_open64(const char *path, int flags, mode_t mode)
{
    if ((flags & O_DIRECT) && act.no_open) {
        errno = act.no_open;
        return -1;
    }
    return __real_open64(path, flags, mode);
}

ssize_t __wrap_pread64(int fd, void *buf, size_t bytes, off_t offset)
{
    bool direct = fcntl(fd, F_GETFL) & O_DIRECT;
    act.reads++;
    if (act.interrupt && act.reads % 2) {
        errno = EINTR;
        return -1;
    }
    act.direct += direct;
    if (direct && act.no_read) {
        errno = act.no_read;
        return -1;
    }
    /* The kernel cuts a direct read short as well, but is not to be asked for an odd number. */
    ssize_t count =
        __real_pread64(fd, buf, act.cap && !direct && bytes > act.cap ? act.cap : bytes, offset);
    return act.cap && count > (ssize_t)act.cap ? (ssize_t)act.cap : count;
}

static unsigned char content[SIZE], got[SIZE + 2 * ROOM];
static jk_file file;
static jk_direct direct;

static void enter(void)
{
    int fd;
    tree_enter();
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (unsigned char)random_bits();
    fd = open("data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_eq(write(fd, content, SIZE), (ssize_t)SIZE);
    cr_assert_eq(fsync(fd), 0);
    cr_assert_eq(jk_file_adopt(fd, "data", &file, NULL), JASK_OK);
    direct.fd = -1;
}

static void leave(void)
{
    jk_direct_close(&direct);
    jk_direct_close(&direct);
    jk_file_close(&file);
    tree_leave();
}

TestSuite(file_direct, .init = enter, .fini = leave, .timeout = 60);

static void open_direct(void)
{
    jask_error err;
    if (!jk_direct_open(&file, &direct, &err))
        cr_skip_test("%s", err.msg);
}

/* [offset, offset + bytes) arrives `shift` bytes after an aligned address, and nothing else does. */
static void check_read(size_t offset, size_t bytes, size_t shift)
{
    unsigned char *to = got + ROOM + shift;
    jask_error err;
    memset(got, 0x5a, sizeof got);
    cr_assert_eq(jk_direct_read(&direct, offset, to, bytes, &err), JASK_OK, "%s", err.msg);
    cr_assert_eq(memcmp(to, content + offset, bytes), 0, "%zu bytes at %zu, address + %zu", bytes,
                 offset, shift);
    for (size_t i = 0; i < ROOM; i++)
        if ((to - 1 - i >= got && to[-1 - (ptrdiff_t)i] != 0x5a) ||
            (to + bytes + i < got + sizeof got && to[bytes + i] != 0x5a))
            cr_assert_fail("%zu bytes at %zu: memory beside them was written", bytes, offset);
}

static void check_reads(void)
{
    static const size_t offsets[] = {0, 1, 80, 128, 511, 512, 4095, 4096, 4097, 70001};
    static const size_t shifts[] = {0, 1, 4, 128, 511, 512, 4095};
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
            size_t rest = SIZE - offsets[o];
            check_read(offsets[o], rest, shifts[s]);
            check_read(offsets[o], JK_DIRECT_MIN, shifts[s]);
            check_read(offsets[o], JK_DIRECT_MIN + 4099, shifts[s]);
            check_read(offsets[o], JK_DIRECT_MIN - 1, shifts[s]);
            check_read(offsets[o], 0, shifts[s]);
        }
}

Test(file_direct, any_offset_length_and_address_is_read_exactly)
{
    open_direct();
    act = (struct act){0};
    check_read(128, SIZE - 128, 0);
    cr_assert_eq(act.direct, 1);
    cr_assert(direct.used);
    check_reads();
    cr_assert_not(direct.refused);
}

Test(file_direct, short_counts_and_interrupts_lose_nothing)
{
    open_direct();
    act = (struct act){.cap = 1000, .interrupt = true};
    check_reads();
    act = (struct act){.cap = 8192, .interrupt = true};
    check_reads();
    cr_assert(direct.used && !direct.refused);
}

Test(file_direct, a_file_system_that_opens_none_is_said)
{
    static const int errors[] = {EINVAL, EOPNOTSUPP, EACCES, EMFILE};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        jask_error err;
        act = (struct act){.no_open = errors[i]};
        cr_assert_not(jk_direct_open(&file, &direct, &err));
        cr_assert_not_null(strstr(err.msg, "'data' is read through the page cache"), "%s", err.msg);
        cr_assert_not_null(strstr(err.msg, strerror(errors[i])), "%s", err.msg);
        cr_assert_eq(direct.fd, -1);
    }
}

Test(file_direct, a_file_system_that_refuses_to_read_so_is_read_otherwise)
{
    static const int errors[] = {EINVAL, EOPNOTSUPP};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        open_direct();
        act = (struct act){.no_read = errors[i]};
        check_reads();
        cr_assert(direct.refused && !direct.used);
        cr_assert_eq(act.direct, 1, "asked once, not %d times", act.direct);
        jk_direct_close(&direct);
    }
}

Test(file_direct, failures_and_files_that_shrink_are_errors)
{
    jask_error err;
    open_direct();
    act = (struct act){.no_read = EIO};
    cr_assert_eq(jk_direct_read(&direct, 128, got, SIZE - 128, &err), JASK_ERR_IO);
    cr_assert_not_null(strstr(err.msg, "of 'data': "), "%s", err.msg);
    cr_assert_not_null(strstr(err.msg, strerror(EIO)), "%s", err.msg);
    cr_assert_not(direct.refused);
    for (size_t end = 0; end <= 200000; end += 100000) {
        act = (struct act){0};
        cr_assert_eq(truncate("data", (off_t)end), 0);
        cr_assert_eq(jk_direct_read(&direct, 128, got, SIZE - 128, &err), JASK_ERR_FORMAT);
        cr_assert_not_null(strstr(err.msg, "'data' shrank"), "%s", err.msg);
    }
}

Test(file_direct, the_page_cache_is_looked_into)
{
    size_t bytes = (size_t)32 << 20;
    struct statfs fs;
    char *zeros = calloc(1, bytes);
    cr_assert_eq(jk_file_cached_share(&file), 0, "a small file");
    cr_assert_eq(pwrite(file.fd, zeros, bytes, 0), (ssize_t)bytes);
    file.bytes = bytes;
    cr_assert_geq(jk_file_cached_share(&file), 0.9);
    cr_assert_eq(fstatfs(file.fd, &fs), 0);
    if (fs.f_type != TMPFS) {
        cr_assert_eq(fsync(file.fd), 0);
        cr_assert_eq(posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        cr_assert_leq(jk_file_cached_share(&file), 0.1);
    }
    free(zeros);
}
