/* The pipeline on every kind of device: with host memory, where files are read into place, and with
 * memory of its own, where everything is staged. */
#include "../e2e/e2e.h"
#include "mirror.h"
#include "product.h"

#include <criterion/criterion.h>

TestSuite(pipeline, .init = e2e_init, .fini = e2e_cleanup);

/* Blocks smaller than a row, one row, several rows and the whole panel; one reader and many. */
static void check_everything(jk_device_ref device)
{
    static const product_shape shapes[] = {
        {130, 70, 190, .ta = false},
        {70, 130, 190, .ta = true, .with_c = true},
        {65, 67, 33, .tb = true, .with_c = true, .c_fortran = true},
        {1, 300, 40, .ta = true, .tb = true},
        {300, 1, 40, .with_c = true, .c_fortran = true},
        {5, 6, 2000, .with_c = true},
        {700, 3, 3, .with_c = true},
        {700, 301, 9, .ta = false}, /* bands of tiles of different widths share a slot */
    };
    static const size_t blocks[] = {64, 512, 4096, 1 << 20};
    static const jk_planner planners[] = {JK_PLANNER_AUTO, JK_PLANNER_BYTES, JK_PLANNER_PAGE};
    product_setup s = {.device = device, .ctx = e2e_context(1 << 20, "auto", true)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int v = 0; v < 24; v++) {
            s.block_bytes = blocks[v % 4];
            s.planner = planners[v % 3];
            s.io_threads = v % 5 + 1;
            s.pipelined = v % 7 != 0;
            /* Room for the transposing buffers of the largest blocks. */
            s.budget = (v % 2 ? 32 << 10 : 100000) +
                       (shapes[i].c_fortran ? (uint64_t)s.io_threads * s.block_bytes : 0);
            product_run(&s, &shapes[i]);
        }
    jask_context_close(s.ctx);
}

Test(pipeline, is_exact_with_host_memory)
{
    jk_device_ref host;
    jask_error err;
    cr_assert_eq(jk_device_select("host", NULL, &host, &err), JASK_OK, "%s", err.msg);
    check_everything(host);
    jk_device_release(&host);
}

Test(pipeline, is_exact_with_device_memory)
{
    check_everything(mirror_open());
    cr_assert_eq(mirror_device_bytes(), 0);
    cr_assert_eq(mirror_pinned_bytes(), 0);
}
