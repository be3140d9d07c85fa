/* A plan in words, and as JSON. Numbers are written from integers, so no locale can change them. */
#include "planner/internal.h"
#include "planner/text_out.h"

static void put_tiles(text_out *out, const jk_plan *plan)
{
    put(out, "plan     %s, planner %s\n", jk_schedule_name(plan->schedule),
        jk_planner_name(plan->planner));
    put(out,
        "tiles    %" PRId64 " x %" PRId64 ", %" PRId64 " x %" PRId64 " of them; depth %" PRId64
        ", %" PRId64 " panels; %" PRId64 " steps\n",
        plan->bm, plan->bn, plan->mt, plan->nt, plan->bk, plan->kt, plan->steps);
    put(out, "order    %s%s", plan->order == JK_ORDER_IJ ? "row by row" : "column by column",
        plan->serpentine ? ", back and forth" : "");
    if (plan->group > 0)
        put(out, ", in groups of %" PRId64 " %s of tiles", plan->group,
            plan->order == JK_ORDER_IJ ? "columns" : "rows");
    put(out, "\n");
    put(out, "slots    A %" PRId64 ", B %" PRId64 ", C %" PRId64 ", aligned to %zu bytes\n",
        plan->a_slots, plan->b_slots, plan->c_slots, plan->slot_align);
}

/* How often A and B go where `traffic` says. */
static void put_operands(text_out *out, const jk_plan *plan, const jk_traffic *traffic)
{
    const jk_problem *p = &plan->problem;
    put(out, "A ");
    put_ratio(out, traffic->bytes[JK_ROWS], (jk_u128)p->m * (jk_u128)p->k * (jk_u128)p->a_bytes);
    put(out, ", B ");
    if (plan->b_slots == 0)
        put(out, "none: it is A");
    else
        put_ratio(out, traffic->bytes[JK_COLS],
                  (jk_u128)p->k * (jk_u128)p->n * (jk_u128)p->b_bytes);
}

static void put_passes(text_out *out, const jk_plan *plan)
{
    jk_traffic up = jk_plan_traffic(plan), reading = jk_plan_reading(plan, &up);
    put(out, "passes   ");
    put_operands(out, plan, &up);
    if (plan->layer > 0)
        put(out, ", C %" PRId64 " times up, %" PRId64 " times down\n",
            jk_plan_layers(plan) - 1 + plan->problem.read_c, jk_plan_layers(plan));
    else
        put(out, ", C %s\n", plan->problem.read_c ? "read once, written once" : "written once");
    if (plan->host_budget_bytes == 0)
        return;
    if (plan->layer > 0)
        put(out,
            "layers   %" PRId64 ", of %" PRId64 " panels; sums of %" PRId64 " x %" PRId64
            " tiles stay in host memory\n",
            jk_plan_layers(plan), plan->layer, plan->super_rows, plan->super_cols);
    put(out,
        "strips   A %" PRId64 " of %" PRId64 ", B %" PRId64 " of %" PRId64
        " stay in host memory; passes over files ",
        plan->a_strips, plan->mt, plan->b_strips, plan->nt);
    put_operands(out, plan, &reading);
    put(out, "\n");
}

static void put_empty(text_out *out, const jk_plan *plan)
{
    put(out, "plan     empty: nothing is multiplied, D is %s\n",
        plan->problem.read_c ? "a multiple of C" : "zero");
    put_moved(out, "files    read ", plan->file_read_bytes);
    put_moved(out, ", write ", plan->file_write_bytes);
    put(out, "\n");
}

static const char *const stage_names[JK_STAGES] = {
    [JK_STAGE_PRODUCTS] = "products", [JK_STAGE_UP] = "up",       [JK_STAGE_DOWN] = "down",
    [JK_STAGE_READ] = "read",         [JK_STAGE_WRITE] = "write",
};

const char *jk_stage_name(jk_stage stage)
{
    return stage_names[stage];
}

/* What binds, and what would help. */
static void put_limit(text_out *out, const jk_plan *plan)
{
    static const char *const bound[JK_STAGES] = {
        [JK_STAGE_PRODUCTS] = "compute-bound",
        [JK_STAGE_UP] = "bound by copies to the device",
        [JK_STAGE_DOWN] = "bound by copies from the device",
        [JK_STAGE_READ] = "disk-bound, reading",
        [JK_STAGE_WRITE] = "disk-bound, writing",
    };
    jk_stage stage = jk_plan_bottleneck(plan);
    put(out, "limit    %s", bound[stage]);
    if (plan->compute_bound_host_budget > 0) {
        put(out, "; compute-bound from a host budget of ");
        put_size(out, plan->compute_bound_host_budget);
    } else if (plan->compute_bound_budget > 0) {
        put(out, "; compute-bound from a budget of ");
        put_size(out, plan->compute_bound_budget);
    } else if (stage != JK_STAGE_PRODUCTS) {
        put(out, "; a larger budget does not help");
    }
    put(out, "\n");
    put_stages(out, plan->stage_seconds);
}

static void put_text(text_out *out, const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    put(out,
        "product  %" PRId64 " x %" PRId64 " x %" PRId64
        " (m x n x k), elements of %d, %d and %d bytes\n",
        p->m, p->n, p->k, p->a_bytes, p->b_bytes, p->c_bytes);
    if (p->batches > 1)
        put(out, "batches  %" PRId64 " such products\n", p->batches);
    if (plan->schedule == JK_SCHEDULE_EMPTY) {
        put_empty(out, plan);
        return;
    }
    put_tiles(out, plan);
    if (p->slab > 0)
        put(out, "sums     deterministic, in ascending slabs of %" PRId64 "\n", p->slab);
    put_passes(out, plan);
    put_moved(out, "up       ", plan->h2d_bytes);
    put_pages(out, plan->h2d_pages);
    put_moved(out, "down     ", plan->d2h_bytes);
    put_pages(out, plan->d2h_pages);
    put_moved(out, "files    read ", plan->file_read_bytes);
    put_moved(out, ", write ", plan->file_write_bytes);
    put(out, "\nbound    ");
    put_ratio(out, (jk_u128)plan->h2d_bytes + plan->d2h_bytes, plan->lower_bound_bytes);
    put_moved(out, " times the lower bound of ", plan->lower_bound_bytes);
    put_moved(out, "\nmemory   ", plan->peak_bytes);
    put_moved(out, " of ", plan->budget_bytes);
    if (plan->host_budget_bytes > 0) {
        put_moved(out, "\nhost     ", plan->host_peak_bytes);
        put_moved(out, " of ", plan->host_budget_bytes);
    }
    put(out, "\ntime     ");
    put_duration(out, plan->seconds);
    put(out, " predicted\n");
    put_limit(out, plan);
}

/* 0: there is none. */
static void put_json_cure(text_out *out, const char *name, uint64_t bytes)
{
    put(out, ", \"%s\": ", name);
    if (bytes > 0)
        put(out, "%" PRIu64, bytes);
    else
        put(out, "null");
}

static void put_json_times(text_out *out, const jk_plan *plan)
{
    put(out, "\"seconds\": ");
    put_json_seconds(out, plan->seconds);
    put(out, ", ");
    put_json_stages(out, plan->stage_seconds);
    put_json_cure(out, "compute_bound_budget_bytes", plan->compute_bound_budget);
    put_json_cure(out, "compute_bound_host_budget_bytes", plan->compute_bound_host_budget);
}

/* The level of host memory: what stays there, and what files are asked for. */
static void put_json_host(text_out *out, const jk_plan *plan)
{
    jk_traffic copies = jk_plan_traffic(plan), reading = jk_plan_reading(plan, &copies);
    const jk_element_sizes size = jk_device_elements(&plan->problem);
    const jk_element_sizes in_file = jk_file_elements(&plan->problem);
    uint64_t batches = (uint64_t)jk_problem_batches(&plan->problem);
    put(out, "\"group\": %" PRId64 ", \"a_strips\": %" PRId64 ", \"b_strips\": %" PRId64 ", ",
        jk_plan_group(plan), plan->a_strips, plan->b_strips);
    put(out, "\"a_file_bytes\": %" PRIu64 ", \"b_file_bytes\": %" PRIu64 ", ",
        (uint64_t)(reading.bytes[JK_ROWS] / size.a * in_file.a * batches),
        (uint64_t)(reading.bytes[JK_COLS] / size.b * in_file.b * batches));
    put(out, "\"super_rows\": %" PRId64 ", \"super_cols\": %" PRId64 ", \"layer\": %" PRId64 ", ",
        plan->super_rows, plan->super_cols, plan->layer);
    put(out, "\"host_peak_bytes\": %" PRIu64 ", \"host_budget_bytes\": %" PRIu64 ", ",
        plan->host_peak_bytes, plan->host_budget_bytes);
}

static void put_json(text_out *out, const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    put(out, "{\"planner\": \"%s\", \"schedule\": \"%s\", ", jk_planner_name(plan->planner),
        jk_schedule_name(plan->schedule));
    put(out, "\"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", ", p->m, p->n, p->k);
    put(out, "\"batches\": %" PRId64 ", ", jk_problem_batches(p));
    put(out, "\"bm\": %" PRId64 ", \"bn\": %" PRId64 ", \"bk\": %" PRId64 ", ", plan->bm, plan->bn,
        plan->bk);
    put(out, "\"tiles\": %" PRId64 ", \"steps\": %" PRId64 ", \"order\": \"%s\", ", plan->tiles,
        plan->steps, plan->order == JK_ORDER_IJ ? "ij" : "ji");
    put(out, "\"a_slots\": %" PRId64 ", \"b_slots\": %" PRId64 ", \"c_slots\": %" PRId64 ", ",
        plan->a_slots, plan->b_slots, plan->c_slots);
    put(out, "\"slab\": %" PRId64 ", ", p->slab);
    put(out, "\"h2d_bytes\": %" PRIu64 ", \"h2d_pages\": %" PRId64 ", ", plan->h2d_bytes,
        plan->h2d_pages);
    put(out, "\"d2h_bytes\": %" PRIu64 ", \"d2h_pages\": %" PRId64 ", ", plan->d2h_bytes,
        plan->d2h_pages);
    put(out, "\"file_read_bytes\": %" PRIu64 ", \"file_write_bytes\": %" PRIu64 ", ",
        plan->file_read_bytes, plan->file_write_bytes);
    put(out, "\"lower_bound_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 ", ",
        plan->lower_bound_bytes, plan->peak_bytes);
    put(out, "\"budget_bytes\": %" PRIu64 ", ", plan->budget_bytes);
    if (plan->host_budget_bytes > 0)
        put_json_host(out, plan);
    put_json_times(out, plan);
    put(out, "}");
}

size_t jk_plan_format(const jk_plan *plan, bool json, char *text, size_t text_size)
{
    text_out out = text_into(text, text_size);
    if (json)
        put_json(&out, plan);
    else
        put_text(&out, plan);
    return out.used;
}
