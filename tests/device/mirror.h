/* A device for tests: the host's arithmetic behind memory of its own. Device memory is filled with
 * NaN and reached through copies only, so a pipeline that forgets one shows wrong numbers on any
 * machine. */
#ifndef JASK_TESTS_MIRROR_H
#define JASK_TESTS_MIRROR_H

#include "runtime/device.h"

extern const jk_device_table mirror_device;

/* Bytes of device and pinned memory held now. */
size_t mirror_device_bytes(void);
size_t mirror_pinned_bytes(void);

jk_device_ref mirror_open(void);

#endif
