/* Strips of A and B, and sums, that stay in host memory beside a device with memory of its own. It is ordinary
 * memory, from which readers copy into the staging ring as they would from the page cache, and into which the
 * writer copies from there: to pin it would take as long as many copies, before the first of them. */
#include "runtime/run.h"

#include <stdlib.h>
#include <string.h>

static jask_status open_kept(jk_run *run, int op, uint64_t bytes, jask_error *err)
{
    static const char *const names[JK_OPERANDS] = {"A", "B", "sums of the result"};
    jk_kept *kept = &run->kept[op];
    if (bytes == 0)
        return JASK_OK;
    kept->mem = malloc(bytes);
    if (!kept->mem)
        return jk_fail(err, JASK_ERR_NOMEM,
                       "no memory for %llu bytes of %s in host memory; lower the host budget "
                       "(JASK_HOST_BUDGET)",
                       (unsigned long long)bytes, names[op]);
    kept->bytes = bytes;
    return JASK_OK;
}

static jask_status open_places(jk_run *run, int op, int64_t strips, jask_error *err)
{
    jk_kept *kept = &run->kept[op];
    int64_t places = strips * jk_plan_strip_panels(run->plan);
    if (places == 0)
        return JASK_OK;
    kept->last_piece = malloc((size_t)places * sizeof *kept->last_piece);
    if (!kept->last_piece)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to keep track of %lld panels",
                       (long long)places);
    for (int64_t i = 0; i < places; i++)
        kept->last_piece[i] = -1;
    return JASK_OK;
}

jask_status jk_kept_open(jk_run *run, jask_error *err)
{
    const jk_plan *plan = run->plan;
    const uint64_t bytes[JK_OPERANDS] = {jk_plan_a_strips_bytes(plan), jk_plan_b_strips_bytes(plan),
                                         jk_plan_sums_bytes(plan)};
    jask_status st = JASK_OK;
    for (int op = 0; !st && op < JK_OPERANDS; op++)
        st = open_kept(run, op, bytes[op], err);
    if (!st)
        st = open_places(run, JK_OPERAND_A, plan->a_strips, err);
    if (!st)
        st = open_places(run, JK_OPERAND_B, plan->b_strips, err);
    return st;
}

void jk_kept_close(jk_run *run)
{
    for (int op = 0; op < JK_OPERANDS; op++) {
        free(run->kept[op].mem);
        free(run->kept[op].last_piece);
    }
}

size_t jk_kept_bytes(const jk_run *run)
{
    size_t bytes = 0;
    for (int op = 0; op < JK_OPERANDS; op++)
        bytes += run->kept[op].bytes;
    return bytes;
}

char *jk_kept_place(const jk_run *run, int op, const jk_step *step)
{
    const jk_plan *plan = run->plan;
    if (!run->kept[op].mem)
        return NULL;
    return run->kept[op].mem + (op == JK_OPERAND_A   ? jk_plan_a_place(plan, step)
                                : op == JK_OPERAND_B ? jk_plan_b_place(plan, step)
                                                     : jk_plan_sums_place(plan, step));
}

int64_t *jk_kept_last_piece(const jk_run *run, int op, const jk_step *step)
{
    int64_t strip = op == JK_OPERAND_A ? step->a_strip : step->b_strip;
    return &run->kept[op].last_piece[strip * jk_plan_strip_panels(run->plan) +
                                     jk_plan_strip_panel(run->plan, step)];
}

void jk_kept_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}
