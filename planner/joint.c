/* A joint plan's steps, and what it moves in closed form. */
#include "planner/joint.h"

#include "planner/internal.h"

static int64_t side_length(const jk_joint_problem *p, int side)
{
    return side == JK_ROWS ? p->m : p->n;
}

/* The gradient has k along its rows' index: dA as its transpose, dB as it is. */
static bool k_first(const jk_joint_problem *p, int product)
{
    return (product == JK_COLS) != p->side[product].turned;
}

/* Blocks of G are taken in pairs of steps. */
static int64_t passing(const jk_joint *plan)
{
    return plan->count[!plan->stays];
}

jk_step jk_joint_step(const jk_joint *plan, int64_t s)
{
    const jk_joint_problem *p = &plan->problem;
    int64_t pair = s / 2, stay = pair / passing(plan), pass = pair % passing(plan);
    bool passes = s % 2 == 0;
    int own = passes ? !plan->stays : plan->stays;
    int64_t at[2], start[2], length[2];
    at[plan->stays] = stay;
    at[!plan->stays] = pass;
    for (int side = 0; side < 2; side++) {
        start[side] = at[side] * plan->block[side];
        length[side] = jk_min(plan->block[side], side_length(p, side) - start[side]);
    }
    /* The factor beside G is the operand of the other side. */
    int64_t turn = passes ? stay : pair;
    int64_t operand_slot = turn % plan->slots[JK_JOINT_OPERAND + !own];
    int64_t g_slot = pair % plan->slots[JK_JOINT_G];
    bool load_operand = !passes || pass == 0, load_g = passes;
    bool k_rows = k_first(p, own);
    jk_step step = {
        .tile = stay * (passing(plan) + 1) + (passes ? pass : passing(plan)),
        .i = k_rows ? 0 : at[own],
        .j = k_rows ? at[own] : 0,
        .p = at[!own],
        .row = k_rows ? 0 : start[own],
        .col = k_rows ? start[own] : 0,
        .depth_start = start[!own],
        .rows = k_rows ? p->k : length[own],
        .cols = k_rows ? length[own] : p->k,
        .depth = length[!own],
        .a_slot = k_rows ? operand_slot : g_slot,
        .b_slot = k_rows ? g_slot : operand_slot,
        .c_slot = (passes ? pair : stay) % plan->slots[JK_JOINT_SUMS + own],
        .load_a = k_rows ? load_operand : load_g,
        .load_b = k_rows ? load_g : load_operand,
        .first = passes || pass == 0,
        .last = passes || pass == passing(plan) - 1,
        .product = own,
        .from_partial = passes && stay > 0,
        .to_partial = passes && stay < plan->count[plan->stays] - 1,
    };
    step.load_c = step.first && (step.from_partial || p->side[own].adds);
    return step;
}

int64_t jk_joint_tile_step(const jk_joint *plan, int64_t tile)
{
    int64_t tiles = passing(plan) + 1, stay = tile / tiles, pass = tile % tiles;
    return pass == passing(plan) ? 2 * (stay + 1) * passing(plan) - 1
                                 : 2 * (stay * passing(plan) + pass);
}

int64_t jk_joint_tile_before(const jk_joint *plan, int64_t tile)
{
    int64_t tiles = passing(plan) + 1, stay = tile / tiles, pass = tile % tiles;
    if (pass == passing(plan)) {
        int64_t before = tile - plan->slots[JK_JOINT_SUMS + plan->stays] * tiles;
        return before < 0 ? -1 : before;
    }
    int64_t pair = stay * passing(plan) + pass - plan->slots[JK_JOINT_SUMS + !plan->stays];
    return pair < 0 ? -1 : pair / passing(plan) * tiles + pair % passing(plan);
}

int64_t jk_joint_tile_continued(const jk_joint *plan, int64_t tile)
{
    return tile - passing(plan) - 1;
}

void jk_joint_pools(const jk_joint *plan, int product, int out[3])
{
    bool k_rows = k_first(&plan->problem, product);
    int operand = JK_JOINT_OPERAND + !product;
    out[0] = k_rows ? operand : JK_JOINT_G;
    out[1] = k_rows ? JK_JOINT_G : operand;
    out[2] = JK_JOINT_SUMS + product;
}

/* ---- bytes ---- */

/* Elements that go up and down for each array. */
typedef struct joint_traffic {
    jk_u128 operand[2], g;
    jk_u128 before[2];     /* of gradients that are added to */
    jk_u128 partial_in[2]; /* sums brought again */
    jk_u128 partial_out[2], out[2];
} joint_traffic;

static joint_traffic traffic_of(const jk_joint *plan)
{
    const jk_joint_problem *p = &plan->problem;
    joint_traffic t = {.g = (jk_u128)p->m * (jk_u128)p->n};
    jk_u128 again = (jk_u128)(plan->count[plan->stays] - 1);
    for (int side = 0; side < 2; side++) {
        jk_u128 whole = (jk_u128)side_length(p, side) * (jk_u128)p->k;
        jk_u128 partial = side == plan->stays ? 0 : again * whole;
        t.operand[side] = whole + partial;
        t.before[side] = p->side[side].adds ? whole : 0;
        t.partial_in[side] = t.partial_out[side] = partial;
        t.out[side] = whole;
    }
    return t;
}

typedef struct joint_sums {
    jk_u128 up, down, read, written;
} joint_sums;

static jk_u128 in_bytes(jk_u128 elements, int bytes)
{
    uint64_t each = (uint64_t)bytes;
    return elements * each;
}

static joint_sums bytes_of(const jk_joint *plan)
{
    const jk_joint_problem *p = &plan->problem;
    joint_traffic t = traffic_of(plan);
    joint_sums s = {.up = in_bytes(t.g, p->bytes), .read = in_bytes(t.g, p->g_bytes)};
    for (int i = 0; i < 2; i++) {
        const jk_joint_side *side = &p->side[i];
        s.up += in_bytes(t.operand[i], p->bytes) +
                in_bytes(t.before[i] + t.partial_in[i], p->sum_bytes);
        s.down += in_bytes(t.partial_out[i] + t.out[i], p->sum_bytes);
        s.read += in_bytes(t.operand[i], side->bytes) + in_bytes(t.before[i], side->before_bytes) +
                  in_bytes(t.partial_in[i], p->sum_bytes);
        s.written +=
            in_bytes(t.partial_out[i], p->sum_bytes) + in_bytes(t.out[i], side->gradient_bytes);
    }
    return s;
}

static jk_u128 pages_up(const jk_joint *plan)
{
    const jk_joint_problem *p = &plan->problem;
    jk_u128 stay = (jk_u128)plan->count[plan->stays], pass = (jk_u128)passing(plan);
    jk_u128 pages = stay + stay * pass; /* operands */
    pages += stay * pass;               /* G */
    pages += (stay - 1) * pass;         /* partial sums */
    pages += p->side[plan->stays].adds ? stay : 0;
    return pages + (p->side[!plan->stays].adds ? pass : 0);
}

bool jk_joint_set_counts(jk_joint *plan)
{
    for (int side = 0; side < 2; side++)
        plan->count[side] = jk_ceil_div(side_length(&plan->problem, side), plan->block[side]);
    joint_sums s = bytes_of(plan);
    jk_u128 pairs = (jk_u128)plan->count[0] * (jk_u128)plan->count[1];
    jk_u128 tiles = pairs + (uint64_t)plan->count[plan->stays], pages = pages_up(plan);
    if (s.up + s.down > UINT64_MAX || s.read > UINT64_MAX || s.written > UINT64_MAX ||
        2 * pairs > INT64_MAX || tiles > INT64_MAX || pages > INT64_MAX)
        return false;
    plan->steps = 2 * (int64_t)pairs;
    plan->tiles = (int64_t)tiles;
    plan->counts = (jk_plan_counts){
        .h2d_pages = (int64_t)pages,
        .d2h_pages = plan->tiles,
        .h2d_bytes = (uint64_t)s.up,
        .d2h_bytes = (uint64_t)s.down,
        .file_read_bytes = (uint64_t)s.read,
        .file_write_bytes = (uint64_t)s.written,
    };
    return true;
}

uint64_t jk_joint_lower_bound(const jk_joint *plan)
{
    jk_joint once = *plan;
    once.block[plan->stays] = side_length(&plan->problem, plan->stays);
    /* It moves fewer bytes than the plan, which could be counted. */
    (void)jk_joint_set_counts(&once);
    return once.counts.h2d_bytes + once.counts.d2h_bytes;
}

uint64_t jk_joint_slot_bytes(const jk_joint *plan, int pool)
{
    const jk_joint_problem *p = &plan->problem;
    int64_t elements;
    int bytes = p->bytes;
    if (pool == JK_JOINT_G) {
        elements = plan->block[0] * plan->block[1];
    } else if (pool >= JK_JOINT_SUMS) {
        elements = plan->block[pool - JK_JOINT_SUMS] * p->k;
        bytes = p->sum_bytes;
    } else {
        elements = plan->block[pool - JK_JOINT_OPERAND] * p->k;
    }
    return (uint64_t)jk_round_up_bytes((jk_u128)elements * (jk_u128)bytes, plan->slot_align);
}

int64_t jk_joint_run(const jk_joint *plan)
{
    const jk_joint_problem *p = &plan->problem;
    int across = p->g_turned ? JK_ROWS : JK_COLS;
    return plan->block[across] < side_length(p, across)
               ? plan->block[across]
               : plan->block[!across] * plan->block[across];
}
