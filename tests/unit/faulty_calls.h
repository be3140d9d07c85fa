/* System calls that fail when told to. Programs that use this are linked with --wrap for each call.
 */
#ifndef JK_TEST_FAULTY_CALLS_H
#define JK_TEST_FAULTY_CALLS_H

#include <stdbool.h>

extern struct faulty {
    int tmpfile; /* errno of openat with O_TMPFILE */
    int fallocate, fallocate_times;
    int empty_path; /* errno of linkat with AT_EMPTY_PATH */
    bool no_proc;
    int fail_at, fail_with; /* call number fail_at of all fails */
    int calls;              /* so far */
    int syncs;
    int signal_at_rename; /* sent to the calling process before it renames */
} faulty;

#endif
