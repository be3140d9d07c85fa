/* What goes from the page cache behind a reader, and when. */
#include "runtime/budget.h"
#include "runtime/drop_behind.h"
#include "tree.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#define TMPFS 0x01021994
#define CHUNK ((uint64_t)16 << 20)

/* How the wrapped calls behave, and what was let go. */
static struct act {
    bool real;          /* they are not in the way */
    uint64_t cached;    /* the page cache is said to hold what lies before it */
    uint64_t available; /* memory */
    int dropped;
    off_t offset[8], bytes[8];
} act;

double __real_jk_file_cached_at(const jk_file *file, uint64_t offset);
double __wrap_jk_file_cached_at(const jk_file *file, uint64_t offset);
int __real_posix_fadvise64(int fd, off_t offset, off_t bytes, int advice);
int __wrap_posix_fadvise64(int fd, off_t offset, off_t bytes, int advice);

double __wrap_jk_file_cached_at(const jk_file *file, uint64_t offset)
{
    return act.real ? __real_jk_file_cached_at(file, offset) : offset < act.cached ? 1 : 0;
}

int __wrap_posix_fadvise64(int fd, off_t offset, off_t bytes, int advice)
{
    if (act.real)
        return __real_posix_fadvise64(fd, offset, bytes, advice);
    cr_assert_eq(advice, POSIX_FADV_DONTNEED);
    cr_assert_lt(act.dropped, 8);
    act.offset[act.dropped] = offset;
    act.bytes[act.dropped++] = bytes;
    return 0;
}

jask_status __wrap_jask_available_memory(uint64_t *out_bytes, char *source, size_t source_size,
                                         jask_error *err);
jask_status __wrap_jask_available_memory(uint64_t *out_bytes, char *source, size_t source_size,
                                         jask_error *err)
{
    if (act.available == 0)
        return jk_fail(err, JASK_ERR_IO, "nobody knows");
    *out_bytes = act.available;
    if (source && source_size > 0)
        *source = 0;
    return JASK_OK;
}

TestSuite(drop_behind, .init = tree_enter, .fini = tree_leave);

static jk_file open_file(const char *name, uint64_t bytes)
{
    jk_file file;
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
    cr_assert_eq(jk_file_adopt(fd, name, &file, NULL), JASK_OK);
    return file;
}

/* Two panels side by side, each row in two runs that meet in the middle of a page. */
Test(drop_behind, a_chunk_goes_once_all_of_it_was_read_in_any_order)
{
    enum { ROW = 1 << 20, CUT = 300000, FROM = 128 };
    jk_file file = open_file("data", 3 * CHUNK + FROM);
    jk_drop_behind set[2] = {{0}};
    jk_drop_behind *behind = jk_drop_behind_open(set, 2, &file, FROM);
    for (int pass = 0; pass < 2; pass++) {
        act.dropped = 0;
        for (uint64_t row = 48; row-- > 0;)
            jk_drop_behind_add(behind, FROM + row * ROW + CUT, ROW - CUT);
        /* The last 128 bytes of row 48 are a chunk of their own. */
        cr_assert_eq(act.dropped, 1);
        for (uint64_t row = 0; row < 48; row++) {
            jk_drop_behind_add(behind, FROM + row * ROW, CUT);
            cr_assert_eq(act.dropped, 1 + (int)((row + 1) / 16), "row %d", (int)row);
        }
        for (int i = 0; i < 4; i++) {
            cr_assert_eq((uint64_t)act.offset[i], (uint64_t)((i + 3) % 4) * CHUNK);
            cr_assert_eq((uint64_t)act.bytes[i], CHUNK);
        }
    }
    jk_drop_behind_close(set, 2);
    jk_file_close(&file);
}

Test(drop_behind, what_was_in_the_page_cache_before_stays)
{
    jk_file file = open_file("data", 4 * CHUNK + 100);
    jk_drop_behind set[1] = {{0}};
    act.cached = CHUNK + CHUNK / 2 + 1; /* also the middle of the second */
    jk_drop_behind *behind = jk_drop_behind_open(set, 1, &file, 0);
    for (int pass = 0; pass < 2; pass++) {
        act.dropped = 0;
        for (uint64_t at = 0; at < file.bytes; at += 1000)
            jk_drop_behind_add(behind, at, file.bytes - at < 1000 ? file.bytes - at : 1000);
        cr_assert_eq(act.dropped, 3, "%d", act.dropped);
        cr_assert_eq((uint64_t)act.offset[0], 2 * CHUNK);
        cr_assert_eq((uint64_t)act.offset[2], 4 * CHUNK, "the last, of 100 bytes");
    }
    jk_drop_behind_close(set, 1);
    jk_file_close(&file);
}

Test(drop_behind, one_read_may_end_several_chunks_and_what_lies_before_the_data_is_none)
{
    jk_file file = open_file("data", 5 * CHUNK);
    jk_drop_behind set[1] = {{0}};
    jk_drop_behind *behind = jk_drop_behind_open(set, 1, &file, CHUNK + 5);
    jk_drop_behind_add(behind, CHUNK + 5, 3 * CHUNK);
    cr_assert_eq(act.dropped, 3);
    cr_assert_eq((uint64_t)act.offset[0], CHUNK);
    jk_drop_behind_add(behind, 0, CHUNK);
    cr_assert_eq(act.dropped, 3);
    jk_drop_behind_close(set, 1);
    jk_file_close(&file);
}

Test(drop_behind, operands_of_one_file_count_together)
{
    jk_file file = open_file("data", 2 * CHUNK), same = open_file("data", 2 * CHUNK);
    jk_file other = open_file("other", CHUNK);
    jk_drop_behind set[2] = {{0}};
    jk_drop_behind *a = jk_drop_behind_open(set, 2, &file, 0);
    cr_assert_eq(jk_drop_behind_open(set, 2, &same, 0), a);
    cr_assert_neq(jk_drop_behind_open(set, 2, &other, 0), a);
    /* Half of the chunk by each of them: gone, and begun anew. */
    for (int half = 0; half < 2; half++) {
        jk_drop_behind_add(a, (uint64_t)half * CHUNK / 2, CHUNK / 2);
        cr_assert_eq(act.dropped, half);
        jk_drop_behind_add(a, (uint64_t)half * CHUNK / 2, CHUNK / 2);
        cr_assert_eq(act.dropped, half + 1);
    }
    jk_drop_behind_close(set, 2);
    jk_drop_behind_add(NULL, 0, 100);
    jk_file_close(&file);
    jk_file_close(&same);
    jk_file_close(&other);
}

Test(drop_behind, the_largest_files_are_those_that_memory_cannot_hold)
{
    enum { MIB = 1 << 20, FILES = 5 };
    static const struct {
        uint64_t available, mebibytes[FILES]; /* the last file is the first once more; 0: none */
        bool outgrown[FILES];
    } cases[] = {
        {66 * MIB, {30, 0, 70, 10, 30}, {false, false, true, false, false}},
        {126 * MIB, {30, 0, 70, 10, 30}, {false, false, false, false, false}},
        {125 * MIB, {30, 0, 70, 10, 30}, {false, false, true, false, false}},
        {66 * MIB, {30, 30, 0, 0, 30}, {false, true, false, false, false}},
        {20 * MIB, {30, 3, 0, 0, 30}, {true, false, false, false, true}},
        {0, {30, 30, 70, 10, 30}, {false, false, false, false, false}},
    };
    jask_options options;
    jask_context *ctx;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 16 * MIB;
    options.device = "host";
    act.available = 100 * MIB;
    cr_assert_eq(jask_context_open(&options, &ctx, NULL), JASK_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        jk_file files[FILES];
        const jk_file *all[FILES];
        bool outgrown[FILES], any = false;
        for (int i = 0; i < FILES; i++) {
            files[i] = (jk_file){.bytes = cases[c].mebibytes[i] * MIB, .ino = 1 + (uint64_t)i % 4};
            all[i] = files[i].bytes ? &files[i] : NULL;
            any = any || cases[c].outgrown[i];
        }
        act.available = cases[c].available;
        cr_assert_eq(jk_outgrow_memory(ctx, all, FILES, outgrown), any, "case %zu", c);
        for (int i = 0; i < FILES; i++)
            cr_assert_eq(outgrown[i], cases[c].outgrown[i], "case %zu, file %d", c, i);
    }
    jask_context_close(ctx);
}

/* With the system's page cache: three chunks, of which the first was in it before. */
Test(drop_behind, the_page_cache_is_as_it_was)
{
    static char block[1 << 20];
    jk_file file = open_file("data", 3 * CHUNK);
    jk_drop_behind set[1] = {{0}};
    jk_drop_behind *behind;
    struct statfs fs;
    act.real = true;
    cr_assert_eq(fstatfs(file.fd, &fs), 0);
    if (fs.f_type == TMPFS)
        cr_skip_test("a file system in memory has nothing to let go of");
    for (uint64_t at = 0; at < file.bytes; at += sizeof block)
        cr_assert_eq(pwrite(file.fd, block, sizeof block, (off_t)at), (ssize_t)sizeof block);
    cr_assert_eq(fsync(file.fd), 0);
    cr_assert_eq(posix_fadvise(file.fd, CHUNK, 0, POSIX_FADV_DONTNEED), 0);
    behind = jk_drop_behind_open(set, 1, &file, 0);
    for (uint64_t at = 0; at < file.bytes; at += sizeof block) {
        cr_assert_eq(jk_file_read(&file, at, block, sizeof block, NULL), JASK_OK);
        cr_assert_geq(jk_file_cached_at(&file, at), 0.9);
        jk_drop_behind_add(behind, at, sizeof block);
    }
    for (uint64_t chunk = 0; chunk < 3; chunk++)
        for (uint64_t at = 0; at < CHUNK; at += CHUNK / 8) {
            double share = jk_file_cached_at(&file, chunk * CHUNK + at);
            cr_assert(chunk == 0 ? share >= 0.9 : share <= 0.1, "%d: %g", (int)chunk, share);
        }
    jk_drop_behind_close(set, 1);
    jk_file_close(&file);
}
