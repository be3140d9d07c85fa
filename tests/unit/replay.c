#include "replay.h"

#include "planner/internal.h"

#include <criterion/criterion.h>

#include <stdlib.h>

static const jk_plan *current;

void hold(bool true_as_promised, const char *what)
{
    char text[2048];
    if (true_as_promised)
        return;
    jk_plan_format(current, true, text, sizeof text);
    cr_assert_fail("%s: %s", what, text);
}

/* What lies in the slots of an operand, the number of its panel, -1 for nothing, and the
 * step that used a slot last. */
typedef struct operand {
    int64_t slots;
    int64_t *held, *used;
    int64_t walked; /* slots, but those that are of no use */
    uint64_t bytes;
    int64_t pages;
    /* Host memory: the panel that each element is of, and the number by which the runtime keeps track of it;
     * bytes that came from the file. */
    int64_t *kept, *tracked, kept_elements;
    uint64_t read;
} operand;

static operand operand_make(int64_t slots, uint64_t kept_bytes, int element)
{
    operand op = {.slots = slots,
                  .walked = slots,
                  .held = malloc(2 * (size_t)slots * sizeof(int64_t)),
                  .kept_elements = (int64_t)(kept_bytes / (uint64_t)element)};
    cr_assert_not_null(op.held);
    op.kept = malloc(2 * (size_t)op.kept_elements * sizeof(int64_t) + 1);
    cr_assert_not_null(op.kept);
    op.tracked = op.kept + op.kept_elements;
    for (int64_t i = 0; i < op.kept_elements; i++)
        op.kept[i] = op.tracked[i] = -1;
    op.used = op.held + slots;
    for (int64_t i = 0; i < slots; i++)
        op.held[i] = op.used[i] = -1;
    return op;
}

/* Step `s` uses the panel, after copying it or not. What is copied goes to the slot whose content has
 * been idle for longest: then the copy can be made while the steps before still multiply. */
static void operand_use(operand *op, bool always_copies, int64_t s, int64_t slot, int64_t panel,
                        bool load, int64_t bytes)
{
    hold(slot >= 0 && slot < op->slots, "slot outside its array");
    if (load) {
        hold(always_copies || op->held[slot] != panel, "copies what is already there");
        hold(op->used[slot] < 0 || op->used[slot] <= s - op->walked, "displaces what is in use");
        op->held[slot] = panel;
        op->bytes += (uint64_t)bytes;
        op->pages++;
    }
    hold(op->held[slot] == panel, "the panel is not in its slot");
    op->used[slot] = s;
}

/* Step `s` copies the panel, from its file or from where it lies in host memory. That is waited for by `number`, so
 * no other one may have an element of it. */
static void operand_fetch(operand *op, bool from_file, int64_t place, int64_t number,
                          int64_t elements, int64_t panel, int64_t bytes)
{
    op->read += from_file ? (uint64_t)bytes : 0;
    if (op->kept_elements == 0) {
        hold(from_file, "host memory has no place for it");
        return;
    }
    hold(place >= 0 && place + elements <= op->kept_elements, "a place outside host memory");
    for (int64_t i = place; i < place + elements; i++) {
        if (op->tracked[i] >= 0 && op->tracked[i] != number)
            hold(false, "an element of two places in host memory");
        op->tracked[i] = number;
        if (from_file)
            op->kept[i] = panel;
        else if (op->kept[i] != panel)
            hold(false, "the panel is not where it is looked for in host memory");
    }
}

/* A group or batch finds nothing of use on the device, and may displace what the one before has just
 * used. */
static void operand_forget(operand *op)
{
    for (int64_t i = 0; i < op->slots; i++)
        op->used[i] = op->held[i] = -1;
}

static void operand_free(operand *op)
{
    free(op->held);
    free(op->kept);
}

/* B is A's transpose, and a tile is all of D. */
static void check_gram_step(const jk_step *step)
{
    hold(step->i == 0 && step->j == 0 && step->rows == step->cols, "a tile with other panels");
    hold(step->b_slot == step->a_slot && !step->load_b, "B's panel is A's");
}

static void check_step(const jk_plan *plan, const jk_step *step, int64_t s)
{
    const jk_problem *p = &plan->problem;
    if (plan->layer == 0)
        hold(step->tile == s / plan->kt, "tile number");
    hold(step->first == (s == jk_plan_tile_step(plan, step->tile)), "first step of a tile");
    hold(step->last == (s + 1 == jk_plan_tile_step(plan, step->tile + 1)), "last step of a tile");
    hold(step->load_c == ((p->read_c || step->from_partial) && step->first), "loading C");
    hold(step->c_slot == step->tile % plan->c_slots, "slot of C");
    hold(step->row == step->i * plan->bm, "first row");
    hold(step->col == step->j * plan->bn, "first column");
    hold(step->depth_start == step->p * plan->bk, "first index of k");
    hold(step->rows == jk_min(plan->bm, p->m - step->row), "rows");
    hold(step->cols == jk_min(plan->bn, p->n - step->col), "columns");
    hold(step->depth == jk_min(plan->bk, p->k - step->depth_start), "depth");
    hold(step->rows > 0 && step->cols > 0 && step->depth > 0, "empty step");
}

/* Panel step->p of row or column `block` of tiles, over all batches. */
static int64_t panel_number(const jk_plan *plan, const jk_step *step, int64_t block, int64_t blocks)
{
    return (step->batch * blocks + block) * plan->kt + step->p;
}

/* Each tile of D meets each panel once, and all steps of a tile come together. */
static void check_coverage(const jk_plan *plan)
{
    unsigned char *seen = calloc((size_t)plan->steps, 1);
    cr_assert_not_null(seen);
    jk_step before = {.tile = -1};
    int64_t products = 0;
    for (int64_t s = 0; s < plan->steps; s++) {
        jk_step step = jk_plan_step(plan, s);
        check_step(plan, &step, s);
        bool same_tile = step.i == before.i && step.j == before.j && step.batch == before.batch;
        hold(step.tile != before.tile || same_tile, "a tile that wanders");
        int64_t cell = panel_number(plan, &step, step.i, plan->mt) * plan->nt + step.j;
        hold(cell >= 0 && cell < plan->steps && !seen[cell], "a step done twice");
        seen[cell] = 1;
        products += step.rows * step.cols * step.depth;
        before = step;
    }
    hold(products == jk_problem_batches(&plan->problem) * plan->problem.m * plan->problem.n *
                         plan->problem.k,
         "products missing");
    free(seen);
}

/* What goes to the device, as it lies in files. */
static uint64_t file_bytes_read(const jk_problem *p, uint64_t a, uint64_t b, uint64_t c)
{
    return a / (uint64_t)p->a_bytes * (uint64_t)(p->a_file_bytes ? p->a_file_bytes : p->a_bytes) +
           b / (uint64_t)p->b_bytes * (uint64_t)(p->b_file_bytes ? p->b_file_bytes : p->b_bytes) +
           c / (uint64_t)p->c_bytes * (uint64_t)(p->c_file_bytes ? p->c_file_bytes : p->c_bytes);
}

static uint64_t file_bytes_written(const jk_problem *p, uint64_t d)
{
    return d / (uint64_t)p->c_bytes * (uint64_t)(p->d_file_bytes ? p->d_file_bytes : p->c_bytes);
}

typedef struct replay {
    uint64_t a_bytes, b_bytes, a_read, b_read, c_up, c_read, c_down, d_written;
    int64_t a_pages, b_pages, c_pages, stores;
} replay;

static bool begins_group(const jk_plan *plan, int64_t tile)
{
    return tile % (plan->mt * plan->nt) % (jk_plan_rows(plan) * jk_plan_group(plan)) == 0;
}

/* Another layer, or another super-tile. */
static bool begins_part(const jk_plan *plan, const jk_step *before, const jk_step *step)
{
    return before->tile < 0 || before->batch != step->batch ||
           before->i / plan->super_rows != step->i / plan->super_rows ||
           before->j / plan->super_cols != step->j / plan->super_cols ||
           before->p / plan->layer != step->p / plan->layer;
}

/* A layer may have fewer panels than there are slots: of an operand that stays along a row of tiles two blocks are
 * walked over at the most, and whole ones where panels are met in ascending order. */
static int64_t walked_slots(const jk_plan *plan, const jk_step *step, bool stays, int64_t slots)
{
    int64_t panels = jk_min(plan->layer, plan->kt - step->p / plan->layer * plan->layer);
    if (slots < panels)
        return slots;
    if (plan->problem.slab > 0 && panels > 1)
        return slots / panels * panels;
    return stays ? jk_min(slots, 2 * panels) : slots;
}

/* Tiles of D: the indices of k that each has met, and the tile it was last stored as; and of which each element
 * of host memory is a sum. */
typedef struct results {
    const jk_plan *plan;
    int64_t *met, *stored_as;
    int64_t *sums, sums_elements;
} results;

static results results_of(const jk_plan *plan)
{
    int64_t tiles = jk_problem_batches(&plan->problem) * plan->mt * plan->nt;
    results r = {.plan = plan,
                 .met = calloc(2 * (size_t)tiles, sizeof(int64_t)),
                 .sums_elements =
                     (int64_t)(jk_plan_sums_bytes(plan) / (uint64_t)plan->problem.c_bytes)};
    cr_assert_not_null(r.met);
    r.stored_as = r.met + tiles;
    for (int64_t i = 0; i < tiles; i++)
        r.stored_as[i] = -1;
    r.sums = malloc((size_t)r.sums_elements * sizeof(int64_t) + 1);
    cr_assert_not_null(r.sums);
    return r;
}

static void results_free(results *r)
{
    free(r->met);
    free(r->sums);
}

/* Each element of a tile that is not finished has its own in host memory. */
static int64_t *sums_of(const results *r, const jk_step *step)
{
    int64_t place =
        (int64_t)(jk_plan_sums_place(r->plan, step) / (uint64_t)r->plan->problem.c_bytes);
    hold(place >= 0 && place + step->rows * step->cols <= r->sums_elements, "sums out of place");
    return r->sums + place;
}

/* A tile begins with what was stored of it last, meets every index of k once, and is finished then. */
static void results_step(results *r, const jk_step *step)
{
    const jk_problem *p = &r->plan->problem;
    int64_t tile = (step->batch * r->plan->mt + step->i) * r->plan->nt + step->j;
    hold(step->from_partial == (r->stored_as[tile] >= 0), "goes on from nothing, or begins anew");
    if (step->first && step->from_partial) {
        const int64_t *sums = sums_of(r, step);
        hold(jk_plan_tile_continued(r->plan, step->tile) == r->stored_as[tile], "continued");
        for (int64_t i = 0; i < step->rows * step->cols; i++)
            if (sums[i] != tile)
                hold(false, "the sums of another tile");
    }
    hold(p->slab == 0 || step->depth_start == r->met[tile], "indices out of order");
    r->met[tile] += step->depth;
    if (!step->last)
        return;
    hold(step->to_partial == (r->met[tile] < p->k), "stored too early, or not at all");
    r->stored_as[tile] = step->tile;
    if (!step->to_partial)
        return;
    int64_t *sums = sums_of(r, step);
    for (int64_t i = 0; i < step->rows * step->cols; i++)
        sums[i] = tile;
}

/* What the steps of a plan move, or with `resumed` of a run that begins at `first_tile`; each finds in
 * its slots what it does not copy. */
static replay replay_steps(const jk_plan *plan, bool resumed, int64_t first_tile)
{
    const jk_problem *p = &plan->problem;
    bool page = plan->schedule == JK_SCHEDULE_PAGE;
    jk_step before = {.tile = -1};
    results d = results_of(plan);
    operand a = operand_make(plan->a_slots, jk_plan_a_strips_bytes(plan), p->a_bytes);
    operand b = operand_make(plan->b_slots, jk_plan_b_strips_bytes(plan), p->b_bytes);
    replay r = {0};
    for (int64_t s = first_tile * plan->kt; s < plan->steps; s++) {
        jk_step step = resumed ? jk_plan_step_from(plan, first_tile, s) : jk_plan_step(plan, s);
        check_step(plan, &step, s);
        results_step(&d, &step);
        if (plan->layer > 0 ? begins_part(plan, &before, &step)
                            : step.first && begins_group(plan, step.tile)) {
            operand_forget(&a);
            operand_forget(&b);
            if (plan->layer > 0) {
                a.walked = walked_slots(plan, &step, plan->order == JK_ORDER_IJ, a.slots);
                b.walked = walked_slots(plan, &step, plan->order == JK_ORDER_JI, b.slots);
            }
        }
        int64_t a_panel = panel_number(plan, &step, step.i, plan->mt);
        int64_t b_panel = panel_number(plan, &step, step.j, plan->nt);
        int64_t a_elements = step.rows * step.depth, b_elements = step.depth * step.cols;
        hold((step.load_a || !step.read_a) && (step.load_b || !step.read_b), "reads for nothing");
        if (step.load_a)
            operand_fetch(&a, step.read_a, (int64_t)jk_plan_a_place(plan, &step) / p->a_bytes,
                          step.a_strip * jk_plan_strip_panels(plan) +
                              jk_plan_strip_panel(plan, &step),
                          a_elements, a_panel, a_elements * p->a_bytes);
        if (step.load_b)
            operand_fetch(&b, step.read_b, (int64_t)jk_plan_b_place(plan, &step) / p->b_bytes,
                          step.b_strip * jk_plan_strip_panels(plan) +
                              jk_plan_strip_panel(plan, &step),
                          b_elements, b_panel, b_elements * p->b_bytes);
        operand_use(&a, page, s, step.a_slot, a_panel, step.load_a, a_elements * p->a_bytes);
        if (plan->b_slots == 0)
            check_gram_step(&step);
        else
            operand_use(&b, page, s, step.b_slot, b_panel, step.load_b, b_elements * p->b_bytes);
        uint64_t tile = (uint64_t)(step.rows * step.cols * p->c_bytes);
        r.c_up += step.load_c ? tile : 0;
        r.c_read += step.load_c && !step.from_partial ? tile : 0;
        r.c_pages += step.load_c;
        r.c_down += step.last ? tile : 0;
        r.d_written += step.last && !step.to_partial ? tile : 0;
        r.stores += step.last;
        before = step;
    }
    results_free(&d);
    r.a_bytes = a.bytes;
    r.b_bytes = b.bytes;
    r.a_pages = a.pages;
    r.b_pages = b.pages;
    r.a_read = a.read;
    r.b_read = b.read;
    operand_free(&a);
    operand_free(&b);
    return r;
}

static void check_replay(const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    replay r = replay_steps(plan, false, 0);
    hold(plan->h2d_bytes == r.a_bytes + r.b_bytes + r.c_up, "bytes up");
    hold(plan->h2d_pages == r.a_pages + r.b_pages + r.c_pages, "pages up");
    hold(plan->d2h_bytes == r.c_down, "bytes down");
    hold(plan->d2h_pages == r.stores, "pages down");
    hold(plan->file_read_bytes == file_bytes_read(p, r.a_read, r.b_read, r.c_read), "bytes read");
    hold(plan->file_write_bytes == file_bytes_written(p, r.d_written), "bytes written");
    uint64_t reads[3];
    jk_plan_file_reads(plan, reads);
    hold(reads[0] == file_bytes_read(p, r.a_read, 0, 0), "bytes of A that are read");
    hold(reads[1] == file_bytes_read(p, 0, r.b_read, 0), "bytes of B that are read");
    hold(reads[2] == file_bytes_read(p, 0, 0, r.c_read), "bytes of C that are read");
    jk_traffic traffic = jk_plan_traffic(plan);
    jk_u128 batches = (jk_u128)jk_problem_batches(p);
    hold(batches * traffic.bytes[JK_ROWS] == r.a_bytes, "bytes of A");
    hold(batches * traffic.bytes[JK_COLS] == r.b_bytes, "bytes of B");
    hold(batches * traffic.pages[JK_ROWS] == (jk_u128)r.a_pages, "pages of A");
    hold(batches * traffic.pages[JK_COLS] == (jk_u128)r.b_pages, "pages of B");
}

/* A run that begins at any tile moves what jk_plan_rest says. */
static void check_rest(const jk_plan *plan, int64_t first_tile)
{
    const jk_problem *p = &plan->problem;
    jk_plan_counts rest = jk_plan_rest(plan, first_tile);
    replay r = replay_steps(plan, true, first_tile);
    hold(rest.h2d_bytes == r.a_bytes + r.b_bytes + r.c_up, "bytes up of the rest");
    hold(rest.h2d_pages == r.a_pages + r.b_pages + r.c_pages, "pages up of the rest");
    hold(rest.d2h_bytes == r.c_down && rest.d2h_pages == r.stores, "the rest's way down");
    hold(rest.file_read_bytes == file_bytes_read(p, r.a_read, r.b_read, r.c_read),
         "the rest is read");
    hold(rest.file_write_bytes == file_bytes_written(p, r.d_written), "the rest is written");
}

void replay_plan(const jk_plan *plan, int64_t first_tile)
{
    current = plan;
    check_coverage(plan);
    check_replay(plan);
    check_rest(plan, first_tile);
    jk_plan_counts whole = jk_plan_rest(plan, 0);
    hold(whole.h2d_bytes == plan->h2d_bytes && whole.h2d_pages == plan->h2d_pages &&
             whole.d2h_bytes == plan->d2h_bytes && whole.d2h_pages == plan->d2h_pages &&
             whole.file_read_bytes == plan->file_read_bytes &&
             whole.file_write_bytes == plan->file_write_bytes,
         "a run from the first tile is the whole plan");
}
