/* The page cache behind the readers of files: what they bring into it is let go of again. */
#ifndef JK_RUNTIME_DROP_BEHIND_H
#define JK_RUNTIME_DROP_BEHIND_H

#include "runtime/file.h"

#include <stdatomic.h>

/* Of one file. All zero: of none yet. */
typedef struct jk_drop_behind {
    const jk_file *file;
    uint64_t from, chunk_bytes;
    _Atomic int64_t *chunks; /* bytes of each that are still to be read before it goes */
} jk_drop_behind;

/* All of `file` from `from` on is going to be read, in any order, perhaps several times. Takes one of
 * the `count` in `set`: that of the same file where it has one, else the next of none. NULL when there
 * is no memory: nothing is let go of then. */
jk_drop_behind *jk_drop_behind_open(jk_drop_behind *set, int count, const jk_file *file,
                                    uint64_t from);
void jk_drop_behind_close(jk_drop_behind *set, int count);

/* So much has been read, by any thread. NULL allowed. A hint that cannot fail. */
void jk_drop_behind_add(jk_drop_behind *behind, uint64_t offset, uint64_t bytes);

#endif
