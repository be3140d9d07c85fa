/* Files: whole reads and writes with 64-bit offsets, and results that appear under their name only
 * when complete. */
#ifndef JK_RUNTIME_FILE_H
#define JK_RUNTIME_FILE_H

#include "common/base.h"

/* What a file that is made could not have, bits of jk_file.lacks. */
enum {
    JK_FILE_NAMED = 1,      /* being nameless: what is not committed outlives a kill */
    JK_FILE_UNRESERVED = 2, /* its blocks: writing may yet find the disk full */
    JK_FILE_IN_RAM = 4      /* a disk under it */
};

typedef struct jk_file {
    int fd; /* -1: not open */
    unsigned lacks;
    uint64_t bytes;
    uint64_t dev, ino;
    int64_t mtime_ns; /* when opened; JK_MTIME_OURS for a file that only this process writes */
    char *name;       /* for messages */
} jk_file;

#define JK_MTIME_OURS INT64_MIN

#define JK_FILE_NONE                                                                               \
    (jk_file)                                                                                      \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Open a regular file for reading. FORMAT-class refusals (directory, FIFO, device) in words,
 * without ever blocking on a FIFO. */
jask_status jk_file_open(const char *path, jk_file *out, jask_error *err);

/* The regular file behind descriptor `fd`, which is taken over in any case; FORMAT for another
 * kind. */
jask_status jk_file_adopt(int fd, const char *name, jk_file *out, jask_error *err);

/* The same file once more, for writing. */
jask_status jk_file_reopen(const jk_file *file, jk_file *out, jask_error *err);
jask_status jk_file_sync(const jk_file *file, jask_error *err);

static inline bool jk_file_same(const jk_file *x, const jk_file *y)
{
    return x->dev == y->dev && x->ino == y->ino;
}

/* On a disk of this machine, as far as its number tells: network file systems, FUSE, those in memory and
 * some on several disks have none, and are not. */
bool jk_file_on_block_device(const jk_file *file);

/* What st_mode says a file is, "a directory"; NULL for a regular file. */
const char *jk_file_kind(unsigned mode);

/* NULL and a never-opened file allowed. */
void jk_file_close(jk_file *file);

/* All of [offset, offset + bytes), whatever the system returns in pieces. A file that ends early is
 * a FORMAT error saying that it shrank. */
jask_status jk_file_read(const jk_file *file, uint64_t offset, void *dst, size_t bytes,
                         jask_error *err);
jask_status jk_file_write(const jk_file *file, uint64_t offset, const void *src, size_t bytes,
                          jask_error *err);

/* Whether the page cache has `count` runs, the first at `offset` and the others `pitch` further each, as far
 * as the first bytes of the first and the last one tell. False also where the system does not say. */
bool jk_file_runs_cached(const jk_file *file, uint64_t offset, uint64_t pitch, int64_t count);

/* What is about to be read: so many runs, of `bytes` bytes. The system begins to bring all of them at once:
 * read one after the other each would be waited for. A hint that cannot fail. */
void jk_file_announce(const jk_file *file, uint64_t offset, size_t bytes, uint64_t pitch,
                      int64_t count);

/* Let the system begin to write what is dirty; a hint that cannot fail. */
void jk_file_write_behind(const jk_file *file);

/* The same where memory is short: wait until what an earlier call began is on the disk, and let go
 * of its pages. Between calls one window is dirty and one on its way. */
jask_status jk_file_write_out(const jk_file *file, jask_error *err);

/* FORMAT when the file no longer is what it was at opening: shorter, or modified. */
jask_status jk_file_check_unchanged(const jk_file *file, jask_error *err);

/* A file as it is read, or written, around the page cache, beside its descriptor in `file`. */
typedef struct jk_direct {
    const jk_file *file;
    int fd; /* -1: not open */
    bool writes;
    size_t offset_unit, mem_unit; /* requests begin and end at multiples of them */
    _Atomic bool used;            /* something went around the page cache */
    _Atomic bool refused;         /* one could not: from then on all goes through it */
} jk_direct;

/* False, with the reason in err, where the file system has no such reads (writes). */
bool jk_direct_open(const jk_file *file, jk_direct *out, jask_error *err);
bool jk_direct_open_write(const jk_file *file, jk_direct *out, jask_error *err);
void jk_direct_close(jk_direct *direct);

/* jk_file_read, for several threads at once. All but the ends of long runs goes around the page
 * cache; short ones, and what the file system refuses, through it. No memory but dst is used.
 * Short: a request has its price, and what lies around a run in its first and last page is read for
 * nothing (bench/README.md has the numbers). */
#define JK_DIRECT_MIN ((size_t)64 << 10)
jask_status jk_direct_read(jk_direct *direct, uint64_t offset, void *dst, size_t bytes,
                           jask_error *err);

/* jk_file_write, by one thread. Of a long run that lies in memory as in the file, modulo the units, the
 * whole pages of the file go around the page cache: so no page is written in both ways at one time.
 * The ends, short runs, those that lie otherwise, and what the file system refuses go through it. */
#define JK_DIRECT_WRITE_MIN ((size_t)1 << 20)
jask_status jk_direct_write(jk_direct *direct, uint64_t offset, const void *src, size_t bytes,
                            jask_error *err);

/* How much of a file lies in the page cache, 0 to 1, by samples; 0 where the system does not say,
 * and for files too small to matter. */
double jk_file_cached_share(const jk_file *file);

/* The same of what lies around `offset` (64 pages from its own on), for files of any size. */
double jk_file_cached_at(const jk_file *file, uint64_t offset);

/* A part of a file in memory, shared: `data` is where the asked offset lies. */
typedef struct jk_mapping {
    void *base;
    size_t base_bytes;
    void *data;
} jk_mapping;

/* bytes > 0. NOMEM when address space is limited. */
jask_status jk_file_map(const jk_file *file, uint64_t offset, size_t bytes, bool writable,
                        jk_mapping *out, jask_error *err);
void jk_file_unmap(jk_mapping *mapping); /* an empty one allowed */

/* A result on its way: a nameless file (or one with a random name where the file system has no
 * nameless ones) in the directory of the target. */
typedef struct jk_output {
    jk_file file;
    char *target;    /* resolved: a symlink's target, so that the link stays a link */
    char *temp_name; /* NULL for a nameless file */
    bool keep;       /* closing leaves what is not committed where it is */
    int dir_fd;
} jk_output;

/* Prepare a result of `bytes` bytes for `target`: blocks are reserved before anything is computed,
 * and a file system with too little room is refused with both numbers. FIFOs, devices and
 * directories are refused. */
jask_status jk_output_open(const char *target, uint64_t bytes, jk_output **out, jask_error *err);

/* The same under a name of its own, target and suffix, so that a later run can go on with it:
 * closing leaves it there. `continues`: go on with the file that bears the name, which must be
 * there and as long; else one that does is replaced. */
#define JK_PARTIAL_SUFFIX ".jask-partial"
jask_status jk_output_open_partial(const char *target, uint64_t bytes, bool continues,
                                   jk_output **out, jask_error *err);

/* Its file alone, opened or made in directory dir_fd; `mode` as for open(). */
jask_status jk_partial_open(int dir_fd, const char *name, unsigned mode, bool continues,
                            int *out_fd, jask_error *err);

/* Memory that a result of `bytes` bytes for `target` will take because its directory lies in RAM;
 * else 0. Where it `resumes`, what its partial result holds there is taken already. 0 also where it
 * does not fit or cannot be made: opening it tells. */
uint64_t jk_output_memory(const char *target, uint64_t bytes, bool resumes);

/* The path that a target's chain of symbolic links ends at, where nothing needs to exist; to be
 * freed. The second with a suffix. */
jask_status jk_output_resolve(const char *target, char **out, jask_error *err);
jask_status jk_output_beside(const char *target, const char *suffix, char **out, jask_error *err);

/* No call gives a nameless file a name that is taken: a result that replaces another is linked under
 * a name of its own first and then renamed. Killed between the two, a run leaves that one; whoever
 * next makes a result for the same target takes it away. A run holds a lock on its file meanwhile,
 * so that what is not locked is nobody's. (Random names beyond these, should all be taken, are not looked for.) */
#define JK_COMMIT_NAMES 8
jask_status jk_commit_name(const char *base, int number, char **out, jask_error *err);
void jk_commit_lock(int fd); /* keeps errno */
void jk_commit_unlock(int fd);
void jk_commit_sweep(int dir_fd, const char *base);

/* Give it its name, replacing what bore it; with `sync` the bytes are durable before and the name
 * after. In two halves where there is still something to decide between: nobody sees the first. */
jask_status jk_output_commit(jk_output *output, bool sync, jask_error *err);
jask_status jk_output_flush(const jk_output *output, bool sync, jask_error *err);
jask_status jk_output_publish(jk_output *output, bool sync, jask_error *err);

/* Discard what is not committed. NULL allowed. */
void jk_output_close(jk_output *output);

/* A nameless file of `bytes` bytes in directory `dir`: nothing is left of it, whatever happens. */
jask_status jk_file_scratch(const char *dir, uint64_t bytes, jk_file *out, jask_error *err);

#endif
