/* A replay of every step must add up to what the plan predicts, and must find in its slots what it
 * does not copy. */
#include "planner/internal.h"
#include "random.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* About as many numbers of each length. */
static int64_t random_extent(int64_t most)
{
    return random_between(1, jk_max(1, most >> random_between(0, 9)));
}

static int random_element(void)
{
    return 1 << random_between(0, 4);
}

/* Sums in slabs as often as not, and then short ones. */
static int64_t random_slab(void)
{
    return random_bits() % 2 ? 0 : random_between(1, 12);
}

/* As often as not the files hold what the device does. */
static int random_file_element(void)
{
    return random_bits() % 2 ? 0 : random_element();
}

static int64_t random_batches(void)
{
    return random_bits() % 2 ? 0 : random_between(1, 4);
}

/* Replays ask millions of questions, which Criterion's own assertions are too slow for. */
static const jk_plan *current;

static void hold(bool true_as_promised, const char *what)
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
        hold(op->used[slot] < 0 || op->used[slot] <= s - op->slots, "displaces what is in use");
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
    hold(step->tile == s / plan->kt, "tile number");
    hold(step->first == (s % plan->kt == 0), "first step of a tile");
    hold(step->last == ((s + 1) % plan->kt == 0), "last step of a tile");
    hold(step->load_c == (p->read_c && step->first), "reading C");
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
    uint64_t a_bytes, b_bytes, a_read, b_read, c_up, c_down;
    int64_t a_pages, b_pages, c_pages, stores;
} replay;

static bool begins_group(const jk_plan *plan, int64_t tile)
{
    return tile % (plan->mt * plan->nt) % (jk_plan_rows(plan) * jk_plan_group(plan)) == 0;
}

/* What the steps of a plan move, or with `resumed` of a run that begins at `first_tile`; each finds in
 * its slots what it does not copy. */
static replay replay_steps(const jk_plan *plan, bool resumed, int64_t first_tile)
{
    const jk_problem *p = &plan->problem;
    bool page = plan->schedule == JK_SCHEDULE_PAGE;
    int64_t met = 0; /* indices of k, of the tile */
    operand a = operand_make(plan->a_slots, jk_plan_a_strips_bytes(plan), p->a_bytes);
    operand b = operand_make(plan->b_slots, jk_plan_b_strips_bytes(plan), p->b_bytes);
    replay r = {0};
    for (int64_t s = first_tile * plan->kt; s < plan->steps; s++) {
        jk_step step = resumed ? jk_plan_step_from(plan, first_tile, s) : jk_plan_step(plan, s);
        check_step(plan, &step, s);
        met = step.first ? 0 : met;
        hold(p->slab == 0 || step.depth_start == met, "indices out of order");
        met += step.depth;
        if (step.first && begins_group(plan, step.tile)) {
            operand_forget(&a);
            operand_forget(&b);
        }
        int64_t a_panel = panel_number(plan, &step, step.i, plan->mt);
        int64_t b_panel = panel_number(plan, &step, step.j, plan->nt);
        int64_t a_elements = step.rows * step.depth, b_elements = step.depth * step.cols;
        hold((step.load_a || !step.read_a) && (step.load_b || !step.read_b), "reads for nothing");
        if (step.load_a)
            operand_fetch(&a, step.read_a, (int64_t)jk_plan_a_place(plan, &step) / p->a_bytes,
                          step.a_strip * plan->kt + step.p, a_elements, a_panel,
                          a_elements * p->a_bytes);
        if (step.load_b)
            operand_fetch(&b, step.read_b, (int64_t)jk_plan_b_place(plan, &step) / p->b_bytes,
                          step.b_strip * plan->kt + step.p, b_elements, b_panel,
                          b_elements * p->b_bytes);
        operand_use(&a, page, s, step.a_slot, a_panel, step.load_a, a_elements * p->a_bytes);
        if (plan->b_slots == 0)
            check_gram_step(&step);
        else
            operand_use(&b, page, s, step.b_slot, b_panel, step.load_b, b_elements * p->b_bytes);
        uint64_t tile = (uint64_t)(step.rows * step.cols * p->c_bytes);
        r.c_up += step.load_c ? tile : 0;
        r.c_pages += step.load_c;
        r.c_down += step.last ? tile : 0;
        r.stores += step.last;
    }
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
    hold(plan->file_read_bytes == file_bytes_read(p, r.a_read, r.b_read, r.c_up), "bytes read");
    hold(plan->file_write_bytes == file_bytes_written(p, r.c_down), "bytes written");
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
    hold(rest.file_read_bytes == file_bytes_read(p, r.a_read, r.b_read, r.c_up),
         "the rest is read");
    hold(rest.file_write_bytes == file_bytes_written(p, r.c_down), "the rest is written");
}

static void check_memory(const jk_plan *plan, bool pipelined)
{
    const jk_problem *p = &plan->problem;
    uint64_t a = jk_plan_a_slot_bytes(plan), b = jk_plan_b_slot_bytes(plan);
    uint64_t c = jk_plan_c_slot_bytes(plan);
    uint64_t all =
        (uint64_t)plan->a_slots * a + (uint64_t)plan->b_slots * b + (uint64_t)plan->c_slots * c;
    hold(plan->peak_bytes == all + plan->reserve_bytes, "peak");
    hold(plan->peak_bytes <= plan->budget_bytes, "within the budget");
    hold(plan->slot_align >= jk_largest_element(p), "elements aligned");
    hold(a % plan->slot_align == 0 && b % plan->slot_align == 0 && c % plan->slot_align == 0,
         "slots aligned");
    hold(a >= (uint64_t)(plan->bm * plan->bk * p->a_bytes), "room for a panel of A");
    hold(b >= (uint64_t)(plan->bk * plan->bn * p->b_bytes), "room for a panel of B");
    hold(c >= (uint64_t)(plan->bm * plan->bn * p->c_bytes), "room for a tile of C");
    if (!pipelined)
        hold(plan->a_slots == 1 && plan->b_slots <= 1 && plan->c_slots == 1, "one slot each");
    hold(plan->b_slots > 0 || p->gram, "panels of B without a slot");
    if (plan->schedule == JK_SCHEDULE_C_STATIONARY) {
        bool by_rows = plan->order == JK_ORDER_IJ;
        int64_t least = pipelined ? jk_min(2, plan->kt) : 1;
        int64_t stays = jk_max(2, plan->kt);
        int64_t turns = jk_max(2, plan->kt * (by_rows ? plan->nt : plan->mt));
        hold(plan->a_slots >= least && plan->a_slots <= (by_rows ? stays : turns), "slots of A");
        bool gram = p->gram && plan->b_slots == 0;
        hold((gram || plan->b_slots >= least) && plan->b_slots <= (by_rows ? turns : stays),
             "slots of B");
    }
}

static void check_host_memory(const jk_plan *plan, const jk_machine *machine)
{
    uint64_t strips = jk_plan_a_strips_bytes(plan) + jk_plan_b_strips_bytes(plan);
    hold(plan->host_budget_bytes == machine->host_bytes, "host budget");
    hold(plan->host_peak_bytes == plan->host_reserve_bytes + strips, "host peak");
    hold(strips == 0 || plan->host_reserve_bytes == machine->host_reserve_bytes, "staging");
    hold(plan->host_peak_bytes <= machine->host_bytes, "within the host budget");
}

static void check_plan(const jk_plan *plan)
{
    current = plan;
    check_coverage(plan);
    check_replay(plan);
    check_rest(plan, random_between(0, plan->tiles));
    jk_plan_counts whole = jk_plan_rest(plan, 0);
    hold(whole.h2d_bytes == plan->h2d_bytes && whole.h2d_pages == plan->h2d_pages &&
             whole.d2h_bytes == plan->d2h_bytes && whole.d2h_pages == plan->d2h_pages &&
             whole.file_read_bytes == plan->file_read_bytes &&
             whole.file_write_bytes == plan->file_write_bytes,
         "a run from the first tile is the whole plan");
}

/* Where panels are met in ascending order, more slots than a block has panels are those of blocks. */
static int64_t whole_blocks(const jk_plan *plan, int64_t slots)
{
    return slots < plan->kt ? slots : slots / plan->kt * plan->kt;
}

static void keep_any_strips(jk_plan *plan)
{
    int64_t rows = jk_plan_rows(plan), width = jk_plan_width(plan);
    plan->group = random_bits() % 2 ? random_between(1, width) : 0;
    int64_t outer = random_bits() % 4 ? random_between(1, rows) : 0;
    int64_t inner = random_bits() % 4 ? jk_plan_group(plan) : 0;
    plan->a_strips = plan->order == JK_ORDER_IJ ? outer : inner;
    plan->b_strips = plan->order == JK_ORDER_IJ ? inner : outer;
}

/* Any tiles, slots, strips and order, not only such as a planner would choose. */
Test(planner_steps, closed_forms_agree_with_a_replay_for_any_tiles)
{
    for (int round = 0; round < 100000; round++) {
        jk_plan plan = {
            .problem = {.m = random_between(1, 30),
                        .n = random_between(1, 30),
                        .k = random_between(1, 30),
                        .a_bytes = random_element(),
                        .b_bytes = random_element(),
                        .c_bytes = random_element(),
                        .read_c = random_bits() % 2,
                        .a_file_bytes = random_file_element(),
                        .b_file_bytes = random_file_element(),
                        .c_file_bytes = random_file_element(),
                        .d_file_bytes = random_file_element(),
                        .batches = random_batches(),
                        .slab = random_slab()},
            .schedule = JK_SCHEDULE_C_STATIONARY,
            .order = random_bits() % 2 ? JK_ORDER_IJ : JK_ORDER_JI,
            .serpentine = true,
            .slot_align = 16,
            .c_slots = random_between(1, 3),
        };
        plan.bm = random_between(1, plan.problem.m);
        plan.bn = random_between(1, plan.problem.n);
        plan.bk = random_between(1, plan.problem.k);
        bool by_rows = plan.order == JK_ORDER_IJ, gram = random_bits() % 8 == 0;
        if (gram) {
            plan.problem.gram = true;
            plan.problem.n = plan.bm = plan.bn = plan.problem.m;
            plan.problem.b_bytes = plan.problem.a_bytes;
        }
        jk_plan_set_grid(&plan);
        int64_t stays = 2 * plan.kt, turns = plan.kt * ((by_rows ? plan.nt : plan.mt) + 1);
        plan.a_slots = random_between(1, by_rows ? stays : turns);
        plan.b_slots = gram ? 0 : random_between(1, by_rows ? turns : stays);
        if (plan.problem.slab > 0) {
            plan.a_slots = whole_blocks(&plan, plan.a_slots);
            plan.b_slots = whole_blocks(&plan, plan.b_slots);
        }
        if (!gram && random_bits() % 2)
            keep_any_strips(&plan);
        cr_assert(jk_plan_set_counts(&plan));
        check_plan(&plan);
        uint64_t memory = (uint64_t)jk_plan_slots_bytes(&plan, jk_largest_element(&plan.problem));
        hold(plan.h2d_bytes + plan.d2h_bytes >= jk_lower_bound(&plan.problem, memory),
             "fewer bytes than the lower bound");
    }
}

static jk_machine random_machine(const jk_problem *p, jk_planner planner, bool pipelined)
{
    jk_machine machine = {.reserve_bytes =
                              random_bits() % 2 ? (uint64_t)random_between(1, 100000) : 0,
                          .flops = 1e11,
                          .h2d = 5e9,
                          .d2h = 5e9,
                          .disk_read = 2e9,
                          .disk_write = 1e9,
                          .device_memory = 1e10,
                          .step_seconds = 1e-5,
                          .shared_cores = random_bits() % 2};
    machine.device_bytes = jk_plan_least_budget(p, &machine, planner, pipelined);
    machine.device_bytes += random_bits() % 3 ? (uint64_t)random_extent(1000000) : 0;
    if (random_bits() % 2) {
        int64_t inputs = p->m * p->k * p->a_bytes + p->k * p->n * p->b_bytes;
        machine.host_reserve_bytes = (uint64_t)random_between(0, 10000);
        machine.host_bytes = machine.host_reserve_bytes + (uint64_t)random_between(0, inputs);
    }
    return machine;
}

static void hold_slabs(const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    current = plan;
    hold(p->slab == 0 || plan->bk == p->k || plan->bk % p->slab == 0, "a panel that cuts a slab");
}

Test(planner_steps, plans_of_every_planner_hold_what_they_promise)
{
    int keep = 0, in_groups = 0;
    for (int round = 0; round < 1500; round++) {
        bool large = round % 4 == 3; /* of which little fits */
        jk_problem p = {.m = large ? random_between(200, 700) : random_extent(700),
                        .n = large ? random_between(200, 700) : random_extent(700),
                        .k = large ? random_between(200, 700) : random_extent(700),
                        .a_bytes = random_element(),
                        .read_c = random_bits() % 2,
                        .a_file_bytes = random_file_element(),
                        .d_file_bytes = random_file_element(),
                        .batches = random_batches(),
                        .slab = random_slab()};
        p.b_bytes = random_bits() % 4 ? p.a_bytes : random_element();
        p.c_bytes = random_bits() % 4 ? p.a_bytes : random_element();
        p.gram = random_bits() % 8 == 0;
        if (p.gram) {
            p.n = p.m;
            p.b_bytes = p.a_bytes;
        }
        jk_planner planner = (jk_planner)(round % 3);
        bool pipelined = random_bits() % 4;
        jk_machine machine = random_machine(&p, planner, pipelined);
        jk_plan plan;
        jask_error err;
        cr_assert_eq(jk_plan_make(&p, &machine, planner, pipelined, &plan, &err), JASK_OK, "%s",
                     err.msg);
        cr_assert_eq(plan.planner, planner);
        cr_assert_eq(plan.schedule,
                     planner == JK_PLANNER_PAGE ? JK_SCHEDULE_PAGE : JK_SCHEDULE_C_STATIONARY);
        cr_assert_eq(plan.budget_bytes, machine.device_bytes);
        cr_assert(plan.seconds > 0);
        cr_assert(plan.h2d_bytes + plan.d2h_bytes >= plan.lower_bound_bytes);
        hold_slabs(&plan);
        check_plan(&plan);
        check_memory(&plan, pipelined);
        check_host_memory(&plan, &machine);
        keep += plan.a_strips + plan.b_strips > 0;
        in_groups += plan.group > 0;
    }
    cr_assert(keep > 60 && in_groups > 15, "%d keep strips, %d in groups", keep, in_groups);
}
