/* What the pipeline's threads read and write in memory, told to the simulator; and a disk that
 * fails. For programs linked with --wrap of these calls. */
#ifndef JASK_TESTS_STAGING_H
#define JASK_TESTS_STAGING_H

#include <stdbool.h>

/* Whether the write of a matrix's last element fails, after a while. */
void staging_fail_last_write(bool fail);

#endif
