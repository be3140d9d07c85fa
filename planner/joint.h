/* Joint plans: both gradients of a product, made in one pass over that of the product.
 *
 * D = A B is m x n, with k indices between; G is the gradient with respect to D. Those with respect
 * to A and B are dA = G B' (m x k) and dB = A' G (k x n). Two products read G twice; here each block
 * of it comes once and serves both. A and dA run along its rows, B and dB along its columns: a side is
 * an operand and its gradient, and everything holds with the sides exchanged.
 *
 * G is cut into block[JK_ROWS] x block[JK_COLS]. Blocks of the side that `stays` are taken one after
 * the other: of its operand and its gradient one block is on the device, with all of k, while those
 * of the other side pass by, each with its block of G. What passes of the other gradient is a sum
 * over this block alone: it is stored, and brought again to be added to when the next block has come.
 * With a single block of the side that stays, everything moves once.
 *
 * With memory for S elements this moves about half of what two products do where k is much less than
 * sqrt(S) / 2, and more where it is greater: which of both is for who compares the bytes. */
#ifndef JK_PLANNER_JOINT_H
#define JK_PLANNER_JOINT_H

#include "planner/plan.h"

/* An operand and its gradient. Elements in bytes, as they are in files. */
typedef struct jk_joint_side {
    int bytes, gradient_bytes;
    bool turned;      /* both are stored as their transposes */
    bool adds;        /* the gradient is added to one that there is, */
    int before_bytes; /* of these */
} jk_joint_side;

typedef struct jk_joint_problem {
    int64_t m, n, k;       /* none is 0 */
    int bytes, sum_bytes;  /* on the device: an element of A, B and G; of dA and dB */
    int g_bytes;           /* of G in its file, */
    bool g_turned;         /* stored as n x m */
    jk_joint_side side[2]; /* A and dA; B and dB */
} jk_joint_problem;

/* Slots, each for blocks of one array. */
typedef enum jk_joint_pool {
    JK_JOINT_OPERAND, /* + side */
    JK_JOINT_SUMS = JK_JOINT_OPERAND + 2,
    JK_JOINT_G = JK_JOINT_SUMS + 2,
    JK_JOINT_POOLS
} jk_joint_pool;

typedef struct jk_joint {
    jk_joint_problem problem;
    jk_planner planner; /* as asked */
    int stays;          /* JK_ROWS or JK_COLS */
    int64_t block[2];   /* of G */
    int64_t count[2];   /* of blocks of G along either side */
    int64_t slots[JK_JOINT_POOLS];
    size_t slot_align;
    int64_t steps; /* 2 for each block of G */
    int64_t tiles; /* that are stored, partial sums among them */
    jk_plan_counts counts;
    uint64_t peak_bytes, reserve_bytes, budget_bytes;
    double seconds;
    double stage_seconds[JK_STAGES];
    /* For comparison: what the two products would move and take. */
    jk_plan_counts apart;
    double apart_seconds;
} jk_joint;

/* The best plan that fits; false when none does, or its bytes cannot be counted in 64 bits. `planner`
 * is AUTO or BYTES. */
bool jk_joint_make(const jk_joint_problem *problem, const jk_machine *machine, jk_planner planner,
                   bool pipelined, jk_joint *out);

/* Whether it is better than the two products, whose counts and seconds are set: it moves fewer bytes,
 * and with AUTO takes hardly longer. */
bool jk_joint_is_better(const jk_joint *plan);

/* Step s, 0 <= s < steps, as that of one of the products dA (step.product JK_ROWS) and dB (JK_COLS):
 * rows, columns and depth are those of the gradient as it is stored, A and B its two factors, C and D
 * the gradient. Even steps add to the gradient that passes by, odd ones to the one that stays. Tiles
 * are numbered in the order in which they are finished. */
jk_step jk_joint_step(const jk_joint *plan, int64_t s);

/* The last step of a tile. */
int64_t jk_joint_tile_step(const jk_joint *plan, int64_t tile);

/* The tile that was in this one's slot before it; -1: none. */
int64_t jk_joint_tile_before(const jk_joint *plan, int64_t tile);

/* The tile that a tile whose steps are `from_partial` goes on from. */
int64_t jk_joint_tile_continued(const jk_joint *plan, int64_t tile);

/* The pools, jk_joint_pool, of the three places of a step of `product`: of A, of B, of C and D. */
void jk_joint_pools(const jk_joint *plan, int product, int out[3]);

/* Bytes of one slot, alignment included. */
uint64_t jk_joint_slot_bytes(const jk_joint *plan, int pool);

/* Fewest bytes up and down that any schedule can do with: everything once. */
uint64_t jk_joint_lower_bound(const jk_joint *plan);

/* As jk_plan_format. */
size_t jk_joint_format(const jk_joint *plan, bool json, char *text, size_t text_size);

/* ---- within the planner, and for its tests ---- */

/* Set count, steps, tiles and counts from stays, block and slots. False when they exceed 64 bits. */
bool jk_joint_set_counts(jk_joint *plan);

/* The longest runs in which G is read, in elements. */
int64_t jk_joint_run(const jk_joint *plan);

#endif
