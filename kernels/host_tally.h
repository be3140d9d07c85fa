/* Sums, norms and extremes of many numbers, in an order that is the caller's alone. Pure. */
#ifndef JK_KERNELS_HOST_TALLY_H
#define JK_KERNELS_HOST_TALLY_H

#include <stdint.h>

__extension__ typedef __int128 jk_int128;

/* What is known of some numbers. `sum + rest` is their sum, compensated: what an addition rounds off
 * goes to rest. Squares are kept apart by size, so that none overflows or vanishes. */
typedef struct jk_tally {
    double sum, rest;
    double squares, squares_rest;
    double large, small; /* squares of x / 2^600 and x * 2^600, where x is beyond 2^+-500 */
    double min, max;     /* of those that are no NaN */
    int64_t nans, infinities;
    /* Of 64-bit integers, exactly; min and max are not used then. */
    jk_int128 whole, whole_min, whole_max;
} jk_tally;

typedef enum jk_tally_parts {
    JK_TALLY_SUM = 1,
    JK_TALLY_SQUARES = 2,
    JK_TALLY_RANGE = 4, /* min, max, nans, infinities */
} jk_tally_parts;

void jk_tally_clear(jk_tally *tally);

/* Number i of the n at x goes to tally[i * step], or with `lanes` above 0 to
 * tally[(first + i) % lanes], so that which one depends on its place in the whole alone. */
typedef struct jk_tally_row {
    jk_tally *tally;
    int64_t step, lanes, first;
} jk_tally_row;

void jk_tally_reals(const jk_tally_row *row, int parts, int64_t n, const double *x);
/* The same for 64-bit integers. */
void jk_tally_signed(const jk_tally_row *row, int parts, int64_t n, const int64_t *x);
void jk_tally_unsigned(const jk_tally_row *row, int parts, int64_t n, const uint64_t *x);

/* Add what `more` knows. */
void jk_tally_join(jk_tally *tally, const jk_tally *more);

double jk_tally_norm(const jk_tally *tally);

#endif
