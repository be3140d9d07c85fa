/* Leaving out one of the pipeline's waits (runtime/waits.h), in programs on the simulator. */
#ifndef JASK_TESTS_WAITS_H
#define JASK_TESTS_WAITS_H

#include "runtime/waits.h"

/* JK_WAITS: none. While no run is under way. */
void waits_leave_out(jk_wait wait);

#endif
