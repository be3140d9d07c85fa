/* A replay of every step of a plan must add up to what it predicts, and must find in its slots, and in host memory,
 * what it does not copy or read. */
#ifndef JK_TESTS_REPLAY_H
#define JK_TESTS_REPLAY_H

#include "planner/plan.h"

/* Of the plan, and of a run that begins with tile `first_tile`. */
void replay_plan(const jk_plan *plan, int64_t first_tile);

/* Fails with the plan that was replayed last, unless it is true. Replays ask millions of questions, which Criterion's
 * own assertions are too slow for. */
void hold(bool true_as_promised, const char *what);

#endif
