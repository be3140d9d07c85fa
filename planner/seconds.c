/* How long a plan takes on a described machine.
 *
 * Pipelined, every resource works at its own rate and the slowest sets the pace, nearly; before it lies the
 * time to fill the pipeline, after it the time to store the last tile. The rates are rough, so the
 * model only has to rank plans and to be right about what binds. */
#include "planner/stages.h"

#include <math.h>

/* The products of one batch, with what they re-read and re-write in the device's own memory: each step but the
 * first of a tile adds to the tile that lies there. */
static double product_seconds(const jk_plan *plan, const jk_machine *machine)
{
    const jk_problem *p = &plan->problem;
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    double arithmetic = over(2 * m * n * k, machine->flops);
    double c_passes = 2 * (double)plan->kt - 1;
    double operand_bytes =
        m * k * p->a_bytes * (double)plan->nt + k * n * p->b_bytes * (double)plan->mt;
    double steps = (double)plan->mt * (double)plan->nt * (double)plan->kt;
    double issue = steps * machine->step_seconds;
    if (machine->shared_cores) {
        operand_bytes *= p->m == 1 || p->n == 1 ? 1 : PACKING;
        c_passes = 2 * blas_passes(plan->kt, p->k);
    }
    double c_bytes = m * n * p->c_bytes * c_passes;
    double memory = over(c_bytes + operand_bytes, machine->device_memory);
    return issue + with_memory(arithmetic, memory, machine);
}

/* A copy that nothing hides. Where cores are shared it comes straight from the file. */
static double bare_copy_seconds(double bytes, const jk_machine *machine)
{
    return machine->shared_cores ? bare_read_seconds(bytes, machine) : over(bytes, machine->h2d);
}

/* With a single slot, an operand's next panel waits until the present one is multiplied: either the
 * copy or the products are idle meanwhile. */
static double single_slot_seconds(const jk_plan *plan, const jk_machine *machine, double products)
{
    const jk_problem *p = &plan->problem;
    if (plan->a_slots != 1 && plan->b_slots != 1)
        return 0;
    const jk_traffic traffic = jk_plan_traffic(plan);
    double a = bare_copy_seconds((double)plan->bm * (double)plan->bk * p->a_bytes, machine);
    double b = bare_copy_seconds((double)plan->bk * (double)plan->bn * p->b_bytes, machine);
    double steps = (double)plan->mt * (double)plan->nt * (double)plan->kt;
    double step = products / steps;
    double wait = 0;
    if (plan->a_slots == 1)
        wait += ((double)traffic.pages[JK_ROWS] - 1) * fmin(a, step);
    if (plan->b_slots == 1)
        wait += ((double)traffic.pages[JK_COLS] - 1) * fmin(b, step);
    return wait;
}

/* An operand that stays whole through a row of tiles is replaced at one stroke at the turn; the
 * products wait for what does not fit beside those of one tile. */
static double burst_seconds(const jk_plan *plan, const jk_machine *machine, double products)
{
    const jk_problem *p = &plan->problem;
    bool by_rows = plan->order == JK_ORDER_IJ;
    if (plan->kt == 1 || (by_rows ? plan->a_slots : plan->b_slots) < plan->kt)
        return 0;
    double block = by_rows ? (double)plan->bm * p->a_bytes : (double)plan->bn * p->b_bytes;
    double load = bare_copy_seconds(block * (double)p->k, machine);
    double tile = products / ((double)plan->mt * (double)plan->nt);
    return (double)((by_rows ? plan->mt : plan->nt) - 1) * fmax(0, load - tile);
}

/* Runs of an array whose stored rows are `row` elements, of which a panel or tile takes `part`, and of
 * which `elements` are moved. Whole rows lie together: few, and long. */
static double runs_of(double elements, int64_t part, int64_t row)
{
    return part < row ? elements / (double)part : 0;
}

double jk_plan_run_seconds(const jk_plan *plan, const jk_machine *machine)
{
    const jk_problem *p = &plan->problem;
    const jk_traffic t = jk_plan_traffic(plan);
    double a = (double)t.bytes[JK_ROWS] / p->a_bytes, b = (double)t.bytes[JK_COLS] / p->b_bytes;
    double d = (double)p->m * (double)p->n;
    double runs = p->a_turned ? runs_of(a, plan->bm, p->m) : runs_of(a, plan->bk, p->k);
    runs += p->b_turned ? runs_of(b, plan->bk, p->k) : runs_of(b, plan->bn, p->n);
    if (p->read_c)
        runs += p->c_turned ? runs_of(d, plan->bm, p->m) : runs_of(d, plan->bn, p->n);
    runs += JK_PART_WRITTEN * runs_of(d, plan->bn, p->n);
    return over(runs * (double)jk_problem_batches(p), machine->runs);
}

/* Sums of a tile in host memory come down in bands, as a finished one does, and a next tile that has the same place
 * on the device goes up when they have. */
static double sums_seconds(const jk_plan *plan, const jk_machine *machine, double tile)
{
    return plan->c_slots == 1 ? over(tile, machine->d2h) / BANDS + bare_copy_seconds(tile, machine)
                              : 0;
}

jk_stage jk_plan_bottleneck(const jk_plan *plan)
{
    return slowest_stage(plan->stage_seconds);
}

void jk_plan_set_seconds(jk_plan *plan, const jk_machine *machine, bool pipelined)
{
    const jk_problem *p = &plan->problem;
    double batches = (double)jk_problem_batches(p), one = product_seconds(plan, machine);
    double products = batches * one;
    jk_plan_counts counts = jk_plan_all(plan);
    set_stages(plan->stage_seconds, machine, products, &counts);
    plan->seconds = sum_of_stages(plan->stage_seconds, machine);
    if (!pipelined)
        return;

    double panels =
        (double)plan->bk * ((double)plan->bm * p->a_bytes + (double)plan->bn * p->b_bytes);
    double tile = (double)plan->bm * (double)plan->bn * p->c_bytes;
    double store = over(tile, machine->d2h) + over(tile, machine->disk_write);
    double fill = bare_read_seconds(panels, machine);
    plan->stage_seconds[JK_STAGE_PRODUCTS] += batches * burst_seconds(plan, machine, one);
    /* A lone tile of D is stored in bands while its successor begins; about one band shows. The last
     * one is stored in bands during its last step. */
    double band = store / BANDS, step = products / (double)plan->steps;
    double shown = plan->c_slots == 1 ? band : 0;
    double end = fmax(band, store - step);
    double finished = (double)plan->tiles / (double)jk_plan_layers(plan);
    double waits = batches * single_slot_seconds(plan, machine, one);
    plan->seconds = fill + pipelined_seconds(plan->stage_seconds, machine) + waits +
                    (finished - 1) * shown +
                    ((double)plan->tiles - finished) * sums_seconds(plan, machine, tile) + end;
}
