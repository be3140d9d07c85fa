/* Lower bounds on what any schedule moves between host and device, in bytes.
 *
 * Memory holds D bytes; elements of A, B, C take a, b, c bytes; V = m n k products are formed. Each
 * element of D accumulates in one chain: it is created (or, when C is read, loaded) once and stored
 * at the end.
 *
 * Phases. Count the creation of an element of D as if it were loaded. The number of creations is at
 * most the number of stores, so the loads counted this way are at most loads plus stores of the
 * real run (and, when C is really loaded, the stores of D come on top). Cut the run into phases of
 * at most R bytes of such loads, each too full for one more element. In a phase at most D + R bytes
 * of A, B and C are at hand, x, y and z elements of them, and by Loomis and Whitney they form at
 * most sqrt(x y z) products. If no phase can form more than F of them, there are at least V/F
 * phases, and all but the last move more than R - e bytes, e being the largest element: loads >= (R
 * - e) (V/F - 1).
 *
 * - Square: by the inequality of means, x y z <= ((D + R)/3)^3 / (a b c). R = 2D is best. This is
 * the finite form of the bound of Smith, Lowery, Langou and van de Geijn (arXiv 1702.02017).
 * - Thin: let the matrix Y lack dimension d, so that each of its elements takes part in at most d
 *   products, F <= d y. The other two then need x z >= d^2 y, so y |Y| + 2 g d sqrt(y) <= D + R
 * with g^2 the product of their element sizes. Best is sqrt(y) = D/(g d), R = y |Y| + D, provided
 * that F lies where this constraint binds, which is y >= (g d / |Y|)^2, or g^2 d^2 <= D |Y|.
 * - Compulsory: every element of A and B goes up once, every element of D comes down once.
 *
 * Batches that share no operand: a phase over several of them forms no more products, because F
 * grows faster than memory. So (R - e) (batches V/F - 1) holds, which is at least `batches` times
 * the bound of one. An operand that batches share is counted as if each had its own. */
#include "planner/internal.h"

#include <math.h>

/* Far more than the rounding errors of the few operations below, on any long double. */
#define ROUNDING 1e-13L

/* loads >= (round - element) * (products / most - 1), rounded to the safe side; 0 when negative. */
static long double phase_bound(long double round, long double element, long double products,
                               long double most)
{
    long double phases = products / most * (1 - ROUNDING) - 1;
    return phases > 0 && round > element ? (round - element) * phases * (1 - ROUNDING) : 0;
}

/* With one input that serves on both sides, x elements of it and z of D form at most x sqrt(z)
 * products in a phase, (2/3) (D + R) sqrt((D + R)/3) elements at the most: twice as many as in general. And
 * the upper half of D could be had from the lower one, which halves the products. */
enum { GRAM_HALVES = 4 };

static long double square_bound(const jk_problem *p, long double memory)
{
    long double elements = (long double)p->a_bytes * p->b_bytes * p->c_bytes;
    long double products = (long double)p->m * (long double)p->n * (long double)p->k;
    if (p->gram)
        products /= GRAM_HALVES;
    long double most = memory * sqrtl(memory / elements);
    return phase_bound(2 * memory, (long double)jk_largest_element(p), products, most);
}

/* `extent` is the dimension that the matrix with elements of `own` bytes lacks. */
static long double thin_bound(const jk_problem *p, long double memory, int64_t extent, int own)
{
    long double products = (long double)p->m * (long double)p->n * (long double)p->k;
    long double others = (long double)p->a_bytes * p->b_bytes * p->c_bytes / own;
    long double d = (long double)extent;
    if (p->gram) /* the other two may be one */
        return 0;
    if (others * d * d * (1 + ROUNDING) > memory * own)
        return 0;
    long double y = memory / d * memory / d / others;
    return phase_bound(y * own + memory, (long double)jk_largest_element(p), products, d * y);
}

uint64_t jk_lower_bound(const jk_problem *p, uint64_t memory_bytes)
{
    jk_u128 result = (jk_u128)p->m * (jk_u128)p->n * (jk_u128)p->c_bytes;
    jk_u128 compulsory = (jk_u128)p->m * (jk_u128)p->k * (jk_u128)p->a_bytes +
                         (p->gram ? 0 : (jk_u128)p->k * (jk_u128)p->n * (jk_u128)p->b_bytes) +
                         result;
    long double memory = memory_bytes > 0 ? (long double)memory_bytes : 1;
    const long double bounds[] = {
        square_bound(p, memory),
        thin_bound(p, memory, p->k, p->c_bytes),
        thin_bound(p, memory, p->m, p->b_bytes),
        thin_bound(p, memory, p->n, p->a_bytes),
    };
    long double loads = 0;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        loads = bounds[i] > loads ? bounds[i] : loads;

    /* Counted creations stand for the stores unless C is loaded: then both happen. */
    jk_u128 bound = loads < 0x1p100L ? (jk_u128)loads : (jk_u128)1 << 100;
    if (p->read_c) {
        compulsory += result;
        bound += result;
    }
    if (bound < compulsory)
        bound = compulsory;
    bound *= (uint64_t)jk_problem_batches(p);
    return bound > UINT64_MAX ? UINT64_MAX : (uint64_t)bound;
}
