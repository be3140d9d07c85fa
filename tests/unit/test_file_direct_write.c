/* Writing around the page cache: any offset, length and address, and every refusal. */
#include "../random.h"
#include "runtime/file.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE ((size_t)3 << 20)
#define PAGE ((size_t)4096)

/* How the wrapped call behaves. */
static struct act {
    size_t cap;         /* bytes a write moves at the most; 0: any number */
    bool interrupt;     /* every second write is interrupted */
    int no_write;       /* errno of writing around the page cache */
    int writes, direct; /* calls, in all and around the page cache */
    size_t direct_bytes;
} act;

ssize_t __real_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset);

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t bytes, off_t offset)
{
    bool direct = fcntl(fd, F_GETFL) & O_DIRECT;
    act.writes++;
    if (act.interrupt && act.writes % 2) {
        errno = EINTR;
        return -1;
    }
    act.direct += direct;
    if (direct && act.no_write) {
        errno = act.no_write;
        return -1;
    }
    if (direct)
        cr_assert(offset % (off_t)PAGE == 0 && bytes % PAGE == 0, "%zu bytes at %lld", bytes,
                  (long long)offset);
    if (act.cap && bytes > act.cap)
        bytes = act.cap;
    ssize_t put = __real_pwrite64(fd, buf, bytes, offset);
    act.direct_bytes += direct && put > 0 ? (size_t)put : 0;
    return put;
}

static unsigned char *content, *want, *got;
static jk_file file;
static jk_direct direct;

static void enter(void)
{
    int fd;
    tree_enter();
    content = aligned_alloc(PAGE, SIZE + PAGE);
    want = malloc(SIZE);
    got = malloc(SIZE);
    cr_assert(content && want && got);
    for (size_t i = 0; i < SIZE + PAGE; i++)
        content[i] = (unsigned char)random_bits();
    fd = open("data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    memset(want, 0x5a, SIZE);
    cr_assert_eq(write(fd, want, SIZE), (ssize_t)SIZE);
    cr_assert_eq(jk_file_adopt(fd, "data", &file, NULL), JASK_OK);
    direct.fd = -1;
}

static void leave(void)
{
    jk_direct_close(&direct);
    jk_file_close(&file);
    free(content);
    free(want);
    free(got);
    tree_leave();
}

TestSuite(file_direct_write, .init = enter, .fini = leave, .timeout = 60);

static void open_direct(void)
{
    jask_error err;
    if (!jk_direct_open_write(&file, &direct, &err))
        cr_skip_test("%s", err.msg);
}

/* [offset, offset + bytes) of the file becomes what lies at content + at, and nothing else changes. */
static void check_write(size_t offset, size_t bytes, size_t at)
{
    jask_error err;
    act.direct_bytes = 0;
    memcpy(want + offset, content + at, bytes);
    cr_assert_eq(jk_direct_write(&direct, offset, content + at, bytes, &err), JASK_OK, "%s",
                 err.msg);
    cr_assert_eq(pread(file.fd, got, SIZE, 0), (ssize_t)SIZE);
    cr_assert_eq(memcmp(got, want, SIZE), 0, "%zu bytes at %zu from address + %zu", bytes, offset,
                 at);
}

static void check_writes(void)
{
    static const size_t offsets[] = {0, 1, 128, 512, 4095, 4096, 4097, 70144};
    static const size_t lengths[] = {
        0, 1, JK_DIRECT_WRITE_MIN - 1, JK_DIRECT_WRITE_MIN, JK_DIRECT_WRITE_MIN + 4099, SIZE / 2};
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            check_write(offsets[o], lengths[l], offsets[o] % PAGE); /* as in the file */
            check_write(offsets[o], lengths[l], 64);
        }
}

Test(file_direct_write, whole_pages_of_long_runs_go_around_the_page_cache)
{
    open_direct();
    act = (struct act){0};
    check_write(4096, 2 << 20, 0);
    cr_assert_eq(act.direct_bytes, 2 << 20);
    cr_assert_eq(act.writes, 1);
    cr_assert(direct.used);
    check_write(512, JK_DIRECT_WRITE_MIN, 512); /* but for the ends */
    cr_assert_eq(act.direct_bytes, JK_DIRECT_WRITE_MIN - PAGE);
    check_write(4096, 2 << 20, 1); /* no such address */
    check_write(4096, JK_DIRECT_WRITE_MIN - 1, 0);
    cr_assert_eq(act.direct_bytes, 0);
}

Test(file_direct_write, any_offset_length_and_address_is_written_exactly)
{
    open_direct();
    act = (struct act){0};
    check_writes();
    cr_assert(direct.used && !direct.refused);
}

Test(file_direct_write, short_counts_and_interrupts_lose_nothing)
{
    open_direct();
    act = (struct act){.cap = 2 * PAGE, .interrupt = true};
    check_writes();
    act = (struct act){.cap = (SIZE / 3) / PAGE * PAGE, .interrupt = true};
    check_writes();
    cr_assert(direct.used && !direct.refused);
}

Test(file_direct_write, a_file_system_that_refuses_to_write_so_is_written_otherwise)
{
    static const int errors[] = {EINVAL, EOPNOTSUPP};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        open_direct();
        act = (struct act){.no_write = errors[i]};
        check_writes();
        cr_assert(direct.refused && !direct.used);
        cr_assert_eq(act.direct, 1, "asked once, not %d times", act.direct);
        jk_direct_close(&direct);
    }
}

Test(file_direct_write, failures_are_errors)
{
    static const int errors[] = {EIO, ENOSPC, EDQUOT};
    open_direct();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        jask_error err;
        act = (struct act){.no_write = errors[i]};
        cr_assert_eq(jk_direct_write(&direct, 4096, content, SIZE / 2, &err), JASK_ERR_IO);
        cr_assert_not_null(strstr(err.msg, "of 'data': "), "%s", err.msg);
        cr_assert_not_null(strstr(err.msg, strerror(errors[i])), "%s", err.msg);
        cr_assert_not(direct.refused);
    }
}
