/* What the machine says about itself: memory, mounts, time. Each takes the root directory it reads
 * below ("" is the real one), so that tests can describe machines. */
#ifndef JK_RUNTIME_SYSTEM_H
#define JK_RUNTIME_SYSTEM_H

#include "common/base.h"

/* Host memory that can be had: the least of MemAvailable and of limit - use for this process's
 * control group and each of its parents, v1 and v2. The limit is memory.high where that is below
 * memory.max; page cache is not use, because the kernel gives it up first. "max", v1's
 * huge number and anything above MemTotal are no limit. `source` (may be NULL) receives
 * "MemAvailable" or the group's path. */
jask_status jk_memory_available(const char *root, uint64_t *out_bytes, char *source,
                                size_t source_size, jask_error *err);

/* The number behind `key` in a file of lines "key: number" or "key number", as /proc and control
 * groups have them; with key "" the number that the file begins with. False when it is not there.
 */
bool jk_proc_number(const char *path, const char *key, uint64_t *out);

/* One mount, as a line of /proc/self/mountinfo describes it. */
typedef struct jk_mount {
    char *root; /* the directory of the file system that is mounted */
    char *point;
    char *type;
    char *options; /* of the file system */
} jk_mount;

/* Take a line apart, in place: the fields point into it, escapes undone. False for a foreign line.
 */
bool jk_mount_parse(char *line, jk_mount *out);

/* `path` is `dir` or lies below it; whole components count, as they are written. */
bool jk_path_within(const char *path, const char *dir);

/* The file system type that holds `path` (which must be absolute and resolved), by the longest
 * mount point that is a prefix of it in <root>/proc/self/mountinfo. */
jask_status jk_mount_type(const char *root, const char *path, char *type, size_t type_size,
                          jask_error *err);

/* True with the file system's name in `type` when the directory lies in RAM (tmpfs, ramfs), by
 * statfs or by its mount. */
jask_status jk_dir_in_ram(const char *path, bool *out, char *type, size_t type_size,
                          jask_error *err);

/* Make `path` and its missing parents; the last is closed to other users. *out_kept is the length of
 * the part that was there before. `path` is changed meanwhile. False with errno set. */
bool jk_directories_make(char *path, size_t *out_kept);

/* Make (when missing) and examine the scratch directory; *out is its resolved absolute path, to be
 * freed. CONFIG naming the setting's `source`, the path, and what to set instead. */
jask_status jk_scratch_prepare(const char *dir, const char *source, bool allow_tmpfs, char **out,
                               jask_error *err);

/* Seconds on a clock that only goes forward. The one place that reads a clock. */
double jk_clock_seconds(void);

/* Bytes this process has read from and written to storage (/proc/self/io); zeros where the system
 * does not say. */
void jk_process_disk_bytes(uint64_t *out_read, uint64_t *out_written);

#endif
