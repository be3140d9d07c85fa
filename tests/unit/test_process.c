#include "runtime/system.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

Test(process, has_a_clock_that_goes_forward_by_seconds)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    double before = jk_clock_seconds();
    nanosleep(&nap, NULL);
    double after = jk_clock_seconds();
    cr_assert_geq(after - before, 0.02);
    cr_assert_lt(after - before, 10.0);
    for (int i = 0; i < 100000; i++) {
        double now = jk_clock_seconds();
        cr_assert_geq(now, after);
        after = now;
    }
}

Test(process, counts_what_reaches_the_disk)
{
    enum { BYTES = 1 << 20 };
    static char block[BYTES];
    uint64_t read_before, written_before, read_after, written_after, said;
    char name[4096], type[32];
    bool in_ram;
    char *tree = tree_open();

    cr_assert_eq(jk_dir_in_ram(tree, &in_ram, type, sizeof type, NULL), JASK_OK);
    if (in_ram || !jk_proc_number("/proc/self/io", "write_bytes", &said)) {
        tree_remove(tree);
        cr_skip_test("no disk, or a system that does not count");
    }
    jk_process_disk_bytes(&read_before, &written_before);
    snprintf(name, sizeof name, "%s/x", tree);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, block, BYTES), BYTES);
    cr_assert_eq(fsync(fd), 0);
    close(fd);
    jk_process_disk_bytes(&read_after, &written_after);
    cr_assert_geq(written_after - written_before, BYTES, "%" PRIu64 " to %" PRIu64, written_before,
                  written_after);
    cr_assert_geq(read_after, read_before);
    cr_assert_lt(read_after - read_before, BYTES, "reads and writes are mixed up");
    tree_remove(tree);
}
