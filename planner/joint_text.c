/* A joint plan in words, and as JSON. */
#include "planner/joint.h"
#include "planner/text_out.h"

static const char *const operands[2] = {"A", "B"};
static const char *const gradients[2] = {"dA", "dB"};

static void put_blocks(text_out *out, const jk_joint *plan)
{
    int stays = plan->stays;
    int64_t times = plan->count[stays];
    put(out, "plan     joint, planner %s: dD is read once for both gradients\n",
        jk_planner_name(plan->planner));
    put(out,
        "blocks   dD in %" PRId64 " x %" PRId64 ", %" PRId64 " x %" PRId64
        " of them; %s and %s stay, %s and %s pass by; %" PRId64 " steps\n",
        plan->block[0], plan->block[1], plan->count[0], plan->count[1], operands[stays],
        gradients[stays], operands[!stays], gradients[!stays], plan->steps);
    put(out,
        "slots    A %" PRId64 ", B %" PRId64 ", dD %" PRId64 ", dA %" PRId64 ", dB %" PRId64
        ", aligned to %zu bytes\n",
        plan->slots[JK_JOINT_OPERAND], plan->slots[JK_JOINT_OPERAND + 1], plan->slots[JK_JOINT_G],
        plan->slots[JK_JOINT_SUMS], plan->slots[JK_JOINT_SUMS + 1], plan->slot_align);
    put(out, "passes   dD 1, %s 1, %s %" PRId64 ", %s written once, %s %" PRId64 " times\n",
        operands[stays], operands[!stays], times, gradients[stays], gradients[!stays], times);
}

static void put_text(text_out *out, const jk_joint *plan)
{
    const jk_joint_problem *p = &plan->problem;
    uint64_t bound = jk_joint_lower_bound(plan);
    put(out,
        "gradient %" PRId64 " x %" PRId64 " x %" PRId64
        " (m x n x k), elements of %d bytes, sums of %d\n",
        p->m, p->n, p->k, p->bytes, p->sum_bytes);
    put_blocks(out, plan);
    put_moved(out, "up       ", plan->counts.h2d_bytes);
    put_pages(out, plan->counts.h2d_pages);
    put_moved(out, "down     ", plan->counts.d2h_bytes);
    put_pages(out, plan->counts.d2h_pages);
    put_moved(out, "files    read ", plan->counts.file_read_bytes);
    put_moved(out, ", write ", plan->counts.file_write_bytes);
    put_moved(out, "\napart    two products: up ", plan->apart.h2d_bytes);
    put_moved(out, ", down ", plan->apart.d2h_bytes);
    put(out, "\nbound    ");
    put_ratio(out, (jk_u128)plan->counts.h2d_bytes + plan->counts.d2h_bytes, bound);
    put_moved(out, " times the lower bound of ", bound);
    put_moved(out, "\nmemory   ", plan->peak_bytes);
    put_moved(out, " of ", plan->budget_bytes);
    put(out, "\ntime     ");
    put_duration(out, plan->seconds);
    put(out, " predicted, ");
    put_duration(out, plan->apart_seconds);
    put(out, " as two products\n");
    put_stages(out, plan->stage_seconds);
}

static void put_json_counts(text_out *out, const jk_plan_counts *counts)
{
    put(out, "\"h2d_bytes\": %" PRIu64 ", \"h2d_pages\": %" PRId64 ", ", counts->h2d_bytes,
        counts->h2d_pages);
    put(out, "\"d2h_bytes\": %" PRIu64 ", \"d2h_pages\": %" PRId64 ", ", counts->d2h_bytes,
        counts->d2h_pages);
    put(out, "\"file_read_bytes\": %" PRIu64 ", \"file_write_bytes\": %" PRIu64,
        counts->file_read_bytes, counts->file_write_bytes);
}

static void put_json(text_out *out, const jk_joint *plan)
{
    const jk_joint_problem *p = &plan->problem;
    put(out, "{\"planner\": \"%s\", \"schedule\": \"joint\", ", jk_planner_name(plan->planner));
    put(out, "\"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", ", p->m, p->n, p->k);
    put(out, "\"bm\": %" PRId64 ", \"bn\": %" PRId64 ", \"stays\": \"%s\", ", plan->block[0],
        plan->block[1], operands[plan->stays]);
    put(out, "\"tiles\": %" PRId64 ", \"steps\": %" PRId64 ", ", plan->tiles, plan->steps);
    put(out,
        "\"a_slots\": %" PRId64 ", \"b_slots\": %" PRId64 ", \"dd_slots\": %" PRId64
        ", \"da_slots\": %" PRId64 ", \"db_slots\": %" PRId64 ", ",
        plan->slots[JK_JOINT_OPERAND], plan->slots[JK_JOINT_OPERAND + 1], plan->slots[JK_JOINT_G],
        plan->slots[JK_JOINT_SUMS], plan->slots[JK_JOINT_SUMS + 1]);
    put_json_counts(out, &plan->counts);
    put(out, ", \"apart\": {");
    put_json_counts(out, &plan->apart);
    put(out, ", \"seconds\": ");
    put_json_seconds(out, plan->apart_seconds);
    put(out, "}, \"lower_bound_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 ", ",
        jk_joint_lower_bound(plan), plan->peak_bytes);
    put(out, "\"budget_bytes\": %" PRIu64 ", \"seconds\": ", plan->budget_bytes);
    put_json_seconds(out, plan->seconds);
    put(out, ", ");
    put_json_stages(out, plan->stage_seconds);
    put(out, "}");
}

size_t jk_joint_format(const jk_joint *plan, bool json, char *text, size_t text_size)
{
    text_out out = text_into(text, text_size);
    if (json)
        put_json(&out, plan);
    else
        put_text(&out, plan);
    return out.used;
}
