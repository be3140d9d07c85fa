#ifndef JK_RUNTIME_MACHINE_H
#define JK_RUNTIME_MACHINE_H

#include "planner/plan.h"
#include "runtime/device.h"

/* What the planner is told of a device: its budget, and rates that are good enough to rank plans.
 * They are not measured here, so predicted seconds are no promise. */
jk_machine jk_machine_of(const jk_device_ref *device, jask_dtype dtype, uint64_t budget_bytes,
                         uint64_t reserve_bytes);

#endif
