#include "runtime/budget.h"

#include "runtime/log.h"
#include "runtime/system.h"

jask_status jk_memory_room(const jask_context *ctx, uint64_t taken, uint64_t *out_bytes,
                           char *source, size_t source_size, jask_error *err)
{
    uint64_t available;
    jask_status st = jask_available_memory(&available, source, source_size, err);
    if (st)
        return st;
    available += jk_device_host_spare(jk_context_host(ctx));
    *out_bytes = available > taken ? available - taken : 0;
    return JASK_OK;
}

/* Scratch lies in RAM only where the user allows it, and only then is it looked at before its first
 * use. */
static jask_status scratch_memory(jask_context *ctx, uint64_t bytes, uint64_t *out, jask_error *err)
{
    char type[64];
    const char *dir;
    bool in_ram;
    jask_status st;
    *out = 0;
    if (!jk_context_allows_tmpfs(ctx))
        return JASK_OK;
    st = jk_context_scratch(ctx, &dir, err);
    if (!st)
        st = jk_dir_in_ram(dir, &in_ram, type, sizeof type, err);
    if (!st && in_ram)
        *out = bytes;
    return st;
}

static void log_cut(const jk_budget *b, uint64_t granted, uint64_t now, jk_log *log)
{
    char before[32], after[32], taken[32], available[32];
    jk_log_once(log, JK_LOG_RESULT_CUT, JASK_LOG_WARN,
                "memory budget cut from %s to %s: the result lies in RAM and takes %s of the %s "
                "available (%s)",
                jk_context_about(granted, before), jk_context_about(now, after),
                jk_context_about(b->result_bytes, taken),
                jk_context_about(b->available_bytes, available), b->source);
}

jask_status jk_budget_of(jask_context *ctx, const jk_result_place *place, jk_budget *out,
                         jask_error *err)
{
    bool host_computes = jk_context_device(ctx)->info.host_memory;
    jk_budget b = {.bytes = jk_context_budget(ctx), .host_bytes = jk_context_host_budget(ctx)};
    uint64_t *budget = host_computes ? &b.bytes : &b.host_bytes;
    uint64_t granted = *budget;
    jask_status st = JASK_OK;
    if (place->output)
        b.result_bytes = jk_output_memory(place->output, place->bytes, place->resumes);
    else if (place->bytes > 0)
        st = scratch_memory(ctx, place->bytes, &b.result_bytes, err);
    if (!st && b.result_bytes > 0)
        st = jk_memory_room(ctx, 0, &b.available_bytes, b.source, sizeof b.source, err);
    if (st)
        return st;
    if (b.result_bytes > 0) {
        uint64_t taken = b.result_bytes < b.available_bytes ? b.result_bytes : b.available_bytes;
        *budget = jk_context_clamp(granted, b.available_bytes - taken);
        b.cut = *budget < granted;
    }
    if (b.cut)
        log_cut(&b, granted, *budget, jk_context_log(ctx));
    *out = b;
    return JASK_OK;
}

jask_status jk_budget_explain(const jk_budget *b, const jask_context *ctx, jask_error *err)
{
    char taken[32], available[32];
    if (!b->cut)
        return jk_context_explain_budget(ctx, err);
    return jk_fail_in(
        err, JASK_ERR_BUDGET,
        "the result lies in RAM and takes %s of the %s available (%s), and the budget "
        "is cut to 0.8 of what that leaves",
        jk_context_about(b->result_bytes, taken), jk_context_about(b->available_bytes, available),
        b->source);
}

/* Where the file is first, so that it counts once. */
static int first_of(const jk_file *const *files, int i)
{
    int first = 0;
    while (!files[first] || !jk_file_same(files[first], files[i]))
        first++;
    return first;
}

/* The bytes of a file and of all smaller ones. */
static uint64_t bytes_up_to(const jk_file *const *files, int count, int i)
{
    uint64_t bytes = 0;
    int mine = first_of(files, i);
    for (int j = 0; j < count; j++)
        if (files[j] && first_of(files, j) == j &&
            (files[j]->bytes < files[i]->bytes ||
             (files[j]->bytes == files[i]->bytes && j <= mine)))
            bytes += files[j]->bytes;
    return bytes;
}

bool jk_outgrow_memory(jask_context *ctx, const jk_file *const *files, int count, bool *out)
{
    uint64_t room = 0, bytes = 0;
    char source[256], inputs[32], free_text[32];
    bool known = jk_memory_room(ctx, jk_context_cpu_budget(ctx), &room, source, sizeof source,
                                NULL) == JASK_OK;
    for (int i = 0; i < count; i++) {
        uint64_t up_to = files[i] ? bytes_up_to(files, count, i) : 0;
        out[i] = known && up_to > room;
        bytes = up_to > bytes ? up_to : bytes;
    }
    if (!known || bytes <= room)
        return false;
    jk_log_write(jk_context_log(ctx), JASK_LOG_INFO,
                 "inputs of %s do not fit in the %s left beside the budget (%s): what is read of "
                 "the largest does not stay in the page cache",
                 jask_format_size(bytes, inputs, sizeof inputs),
                 jask_format_size(room, free_text, sizeof free_text), source);
    return true;
}
