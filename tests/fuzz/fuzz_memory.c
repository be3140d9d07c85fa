/* A machine as its files describe it: the input is their texts in the order below, parted by form
 * feeds. The mount point of the control groups is /cg where the seeds say so. */
#include "fuzz.h"

#include "runtime/system.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const files[] = {
    "/proc/meminfo",   "/proc/self/cgroup",  "/proc/self/mountinfo", "/cg/memory.max",
    "/cg/memory.high", "/cg/memory.current", "/cg/memory.stat",
};
/* Version 1 calls them otherwise, and a child has them too. */
static const char *const links[][2] = {
    {"memory.max", "/cg/memory.limit_in_bytes"},
    {"memory.current", "/cg/memory.usage_in_bytes"},
    {"../memory.high", "/cg/a/memory.max"},
    {"../memory.current", "/cg/a/memory.current"},
};

static char tree[64];

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void remove_tree(void)
{
    nftw(tree, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *below(const char *path)
{
    static char name[PATH_MAX];
    snprintf(name, sizeof name, "%s%s", tree, path);
    return name;
}

static void make_tree(void)
{
    static const char *const dirs[] = {"/proc", "/proc/self", "/cg", "/cg/a"};
    strcpy(tree, "./fuzz.XXXXXX");
    fuzz_must(mkdtemp(tree) != NULL, "a directory can be made here");
    atexit(remove_tree);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        fuzz_must(mkdir(below(dirs[i]), 0700) == 0, "and one in it");
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        fuzz_must(symlink(links[i][0], below(links[i][1])) == 0, "and a link");
}

static void write_files(const char *text, size_t size)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *end = size ? memchr(text, '\f', size) : NULL;
        size_t len = end ? (size_t)(end - text) : size;
        FILE *file = fopen(below(files[i]), "w");
        fuzz_must(file && fwrite(text, 1, len, file) == len && fclose(file) == 0,
                  "files can be written");
        text += end ? len + 1 : len;
        size -= end ? len + 1 : len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char source[2 * PATH_MAX], type[64];
    uint64_t bytes = 0, number;
    jask_error err;
    jask_status st;
    if (tree[0] == '\0')
        make_tree();
    write_files((const char *)data, size);
    st = jk_memory_available(tree, &bytes, source, sizeof source, &err);
    if (st)
        fuzz_refused(st, &err);
    else
        fuzz_must(memchr(source, '\0', sizeof source) != NULL && source[0] != '\0',
                  "an amount has a source");
    if (!st && jk_proc_number(below(files[0]), "MemAvailable", &number) &&
        jk_mul_u64(number, 1024, &number))
        fuzz_must(bytes <= number, "never more than the system has available");
    st = jk_mount_type(tree, "/cg/a", type, sizeof type, &err);
    if (st)
        fuzz_refused(st, &err);
    else
        fuzz_must(memchr(type, '\0', sizeof type) != NULL, "the type ends");
    return 0;
}
