/* A plan of blocks in words, and as JSON. */
#include "planner/blocks.h"
#include "planner/text_out.h"

static void put_extents(text_out *out, const jk_blocks *plan, const int64_t *extents,
                        const char *between)
{
    for (int d = 0; d < plan->problem.ndim; d++)
        put(out, "%s%" PRId64, d ? between : "", extents[d]);
    if (plan->problem.ndim == 0)
        put(out, "1");
}

static int64_t loads(const jk_blocks *plan)
{
    int64_t sum = 0;
    for (int i = 0; i < JK_BLOCKS_INPUTS; i++)
        sum += plan->loads[i];
    return sum;
}

static void put_blocks_text(text_out *out, const jk_blocks *plan)
{
    put(out, "plan     blocks\nspace    ");
    if (plan->blocks == 0)
        put(out, "empty\n");
    else {
        put_extents(out, plan, plan->problem.shape, " x ");
        put(out, ", in blocks of ");
        put_extents(out, plan, plan->box, " x ");
        put(out, "; %" PRId64 " of them\n", plan->blocks);
    }
    put_moved(out, "files    read ", plan->file_read_bytes);
    put(out, " in %" PRId64 " window%s", loads(plan), loads(plan) == 1 ? "" : "s");
    put_moved(out, ", write ", plan->file_write_bytes);
    put(out, " in %" PRId64, plan->stores);
    put_moved(out, "\nmemory   ", plan->peak_bytes);
    put_moved(out, " of ", plan->budget_bytes);
    put(out, "\n");
}

static void put_blocks_json(text_out *out, const jk_blocks *plan)
{
    put(out, "{\"schedule\": \"blocks\", \"space\": [");
    if (plan->problem.ndim > 0)
        put_extents(out, plan, plan->problem.shape, ", ");
    put(out, "], \"box\": [");
    if (plan->problem.ndim > 0)
        put_extents(out, plan, plan->box, ", ");
    put(out,
        "], \"blocks\": %" PRId64 ", \"loads\": %" PRId64 ", \"stores\": %" PRId64
        ", \"file_read_bytes\": %" PRIu64 ", \"file_write_bytes\": %" PRIu64
        ", \"peak_bytes\": %" PRIu64 ", \"budget_bytes\": %" PRIu64 "}",
        plan->blocks, loads(plan), plan->stores, plan->file_read_bytes, plan->file_write_bytes,
        plan->peak_bytes, plan->budget_bytes);
}

size_t jk_blocks_format(const jk_blocks *plan, bool json, char *text, size_t text_size)
{
    text_out out = text_into(text, text_size);
    if (json)
        put_blocks_json(&out, plan);
    else
        put_blocks_text(&out, plan);
    return out.used;
}
