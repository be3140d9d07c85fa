/* Tests that need a card. */
#ifndef JASK_TESTS_GPU_H
#define JASK_TESTS_GPU_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* There is none: a test that is left out, or a failure where one was promised. */
static inline void gpu_absent(const char *why)
{
    const char *required = getenv("JASK_TEST_REQUIRE_GPU");
    if (required && strcmp(required, "1") == 0)
        cr_assert_fail("no CUDA device: %s", why);
    cr_skip_test("no CUDA device");
}

#endif
