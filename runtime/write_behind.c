#include "runtime/write_behind.h"

#include "runtime/budget.h"

/* Let the disk begin when this much has gathered: as large as its requests get, and little enough
 * that few are left for the sync at the end. */
#define WINDOW_BYTES ((uint64_t)8 << 20)

/* Half of the memory beside the budget: the inputs are there as well. */
static bool outgrows_memory(const jk_file *file, const jask_context *ctx)
{
    uint64_t room;
    if (jk_memory_room(ctx, jk_context_cpu_budget(ctx), &room, NULL, 0, NULL))
        return false;
    return file->bytes > room / 2;
}

jk_write_behind jk_write_behind_of(const jk_file *file, const jask_context *ctx, bool durable)
{
    return (jk_write_behind){
        .file = file,
        .starts = durable || jk_context_sync(ctx),
        .bounds = file && ctx && outgrows_memory(file, ctx),
    };
}

jask_status jk_write_behind_add(jk_write_behind *behind, uint64_t bytes, jask_error *err)
{
    behind->gathered += bytes;
    if (behind->gathered < WINDOW_BYTES)
        return JASK_OK;
    behind->gathered = 0;
    if (behind->bounds)
        return jk_file_write_out(behind->file, err);
    if (behind->starts)
        jk_file_write_behind(behind->file);
    return JASK_OK;
}
