/* A plan in words, and as JSON. Numbers are written from integers, so no locale can change them. */
#include "planner/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Text that grows past the end of its buffer is counted, not kept. */
typedef struct text_out {
    char *text;
    size_t size, used;
} text_out;

static void put(text_out *out, const char *fmt, ...) JK_PRINTF(2, 3);

static void put(text_out *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool room = out->used < out->size;
    int length =
        vsnprintf(room ? out->text + out->used : NULL, room ? out->size - out->used : 0, fmt, args);
    va_end(args);
    if (length > 0)
        out->used += (size_t)length;
}

/* part / whole with two decimals, rounded to nearest. */
static void put_ratio(text_out *out, jk_u128 part, jk_u128 whole)
{
    jk_u128 hundredths = (part * 100 + whole / 2) / whole;
    put(out, "%" PRIu64 ".%02u", (uint64_t)(hundredths / 100), (unsigned)(hundredths % 100));
}

static void put_size(text_out *out, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        put(out, "%" PRIu64 " bytes", bytes);
        return;
    }
    int unit = 0;
    while (unit < 5 && bytes >> (10 * (unit + 2)))
        unit++;
    put_ratio(out, bytes, (jk_u128)1 << (10 * (unit + 1)));
    put(out, " %s", units[unit]);
}

/* A size, and the exact number where that says more. */
static void put_exact(text_out *out, uint64_t bytes)
{
    put_size(out, bytes);
    if (bytes >= 1024)
        put(out, " (%" PRIu64 " bytes)", bytes);
}

static uint64_t whole_micros(double seconds)
{
    return seconds < 1e12 ? (uint64_t)(seconds * 1e6 + 0.5) : (uint64_t)1000000000000000000;
}

static void put_duration(text_out *out, double seconds)
{
    static const struct {
        const char *name;
        uint64_t micros;
    } units[] = {{"days", 86400000000}, {"h", 3600000000}, {"min", 60000000},
                 {"s", 1000000},        {"ms", 1000},      {"us", 1}};
    uint64_t micros = whole_micros(seconds);
    size_t i = 0;
    while (i < sizeof units / sizeof *units - 1 && micros < 2 * units[i].micros)
        i++;
    put_ratio(out, micros, units[i].micros);
    put(out, " %s", units[i].name);
}

static void put_tiles(text_out *out, const jk_plan *plan)
{
    put(out, "plan     %s, planner %s\n", jk_schedule_name(plan->schedule),
        jk_planner_name(plan->planner));
    put(out,
        "tiles    %" PRId64 " x %" PRId64 ", %" PRId64 " x %" PRId64 " of them; depth %" PRId64
        ", %" PRId64 " panels; %" PRId64 " steps\n",
        plan->bm, plan->bn, plan->mt, plan->nt, plan->bk, plan->kt, plan->steps);
    put(out, "order    %s%s\n", plan->order == JK_ORDER_IJ ? "row by row" : "column by column",
        plan->serpentine ? ", back and forth" : "");
    put(out, "slots    A %" PRId64 ", B %" PRId64 ", C %" PRId64 ", aligned to %zu bytes\n",
        plan->a_slots, plan->b_slots, plan->c_slots, plan->slot_align);
}

static void put_passes(text_out *out, const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    jk_traffic traffic = jk_plan_traffic(plan);
    put(out, "passes   A ");
    put_ratio(out, traffic.bytes[JK_ROWS], (jk_u128)p->m * (jk_u128)p->k * (jk_u128)p->a_bytes);
    put(out, ", B ");
    put_ratio(out, traffic.bytes[JK_COLS], (jk_u128)p->k * (jk_u128)p->n * (jk_u128)p->b_bytes);
    put(out, ", C %s\n", p->read_c ? "read once, written once" : "written once");
}

static void put_moved(text_out *out, const char *label, uint64_t bytes)
{
    put(out, "%s", label);
    put_exact(out, bytes);
}

static void put_pages(text_out *out, int64_t pages)
{
    put(out, " in %" PRId64 " page%s\n", pages, pages == 1 ? "" : "s");
}

static void put_empty(text_out *out, const jk_plan *plan)
{
    put(out, "plan     empty: nothing is multiplied, D is %s\n",
        plan->problem.read_c ? "a multiple of C" : "zero");
    put_moved(out, "files    read ", plan->file_read_bytes);
    put_moved(out, ", write ", plan->file_write_bytes);
    put(out, "\n");
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
    put(out, "\ntime     ");
    put_duration(out, plan->seconds);
    put(out, " predicted\n");
}

static void put_json(text_out *out, const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    uint64_t micros = whole_micros(plan->seconds);
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
    put(out, "\"h2d_bytes\": %" PRIu64 ", \"h2d_pages\": %" PRId64 ", ", plan->h2d_bytes,
        plan->h2d_pages);
    put(out, "\"d2h_bytes\": %" PRIu64 ", \"d2h_pages\": %" PRId64 ", ", plan->d2h_bytes,
        plan->d2h_pages);
    put(out, "\"file_read_bytes\": %" PRIu64 ", \"file_write_bytes\": %" PRIu64 ", ",
        plan->file_read_bytes, plan->file_write_bytes);
    put(out, "\"lower_bound_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 ", ",
        plan->lower_bound_bytes, plan->peak_bytes);
    put(out, "\"budget_bytes\": %" PRIu64 ", \"seconds\": %" PRIu64 ".%06u}", plan->budget_bytes,
        micros / 1000000, (unsigned)(micros % 1000000));
}

size_t jk_plan_format(const jk_plan *plan, bool json, char *text, size_t text_size)
{
    text_out out = {.text = text, .size = text_size};
    if (text_size > 0)
        *text = '\0';
    if (json)
        put_json(&out, plan);
    else
        put_text(&out, plan);
    return out.used;
}
