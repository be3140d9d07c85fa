/* What the fault tests do: products, sums, gradients and reductions, from settings to the committed
 * result. A is in a.npy, B in b.npy, C in c.npy; the result goes to d.npy. */
#ifndef JK_TEST_FAULT_WORKS_H
#define JK_TEST_FAULT_WORKS_H

#include <jask.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { M = 60, N = 70, K = 50, LONG_K = 2000 };
/* Gradients by a joint plan whose sums are stored in parts. */
enum { WIDE = 200, FLAT_K = 16 };
#define BUDGET ((uint64_t)48 << 10)
/* Pieces are a 32nd of it, and whole rows of LONG_K: long enough to go around the page cache. */
#define LONG_BUDGET ((uint64_t)4 << 20)
#define RESULT_MAX 40960
#define OLD "an older result"

typedef enum work { PRODUCT, SUM, SUM_IN_PLACE, SUM_GRADIENTS, REDUCTION } work;

/* What is done; every variant takes other paths through the library. */
typedef struct scene {
    work work;
    const char *planner;
    bool named;      /* under a name that an older file bears; else in scratch */
    bool sync;       /* durable, or left to the system */
    bool adds;       /* a C of other order and byte order */
    bool skips;      /* alpha 0: C is scaled, without a pipeline */
    bool verifies;   /* the result is checked as well */
    bool no_tmpfile; /* results have a temporary name meanwhile */
    bool links;      /* the name is that of a symlink to the older file */
    bool resumes;    /* a run that fails may keep what the next one goes on with */
    bool direct;     /* long inputs are read around the page cache */
    bool gradients;  /* of A and B, with C as that of the product: dA as the result, and dB */
} scene;

typedef struct outcome {
    jask_status status;
    jask_error err;
    size_t bytes; /* of the result, when it lies in scratch */
    unsigned char result[RESULT_MAX];
} outcome;

/* Leaves nothing open. A result in scratch goes to out->result. */
void work_perform(const scene *s, outcome *out);

#endif
