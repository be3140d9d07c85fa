/* Results on their way to the disk while the rest is still computed. */
#ifndef JK_RUNTIME_WRITE_BEHIND_H
#define JK_RUNTIME_WRITE_BEHIND_H

#include "runtime/context.h"
#include "runtime/file.h"

typedef struct jk_write_behind {
    const jk_file *file;
    bool starts; /* the result is to be durable: a sync at the end would wait for all of it */
    bool bounds; /* memory cannot hold it: few of its bytes may wait for the disk at once */
    uint64_t gathered;
} jk_write_behind;

/* For a result that is written from now on; `durable`: whatever the context says. ctx may be NULL. */
jk_write_behind jk_write_behind_of(const jk_file *file, const jask_context *ctx, bool durable);

/* So many bytes have been written. Fails when earlier ones could not be. */
jask_status jk_write_behind_add(jk_write_behind *behind, uint64_t bytes, jask_error *err);

#endif
