/* Products of the public API on the simulator: when a context is closed nothing may have been found
 * wrong, and after the last one nothing may be left on the card. */
#include "sim.h"

#include <criterion/criterion.h>
#include <jask.h>

static int contexts;

jask_status __real_jask_context_open(const jask_options *options, jask_context **out,
                                     jask_error *err);
jask_status __wrap_jask_context_open(const jask_options *options, jask_context **out,
                                     jask_error *err);
void __real_jask_context_close(jask_context *ctx);
void __wrap_jask_context_close(jask_context *ctx);

jask_status __wrap_jask_context_open(const jask_options *options, jask_context **out,
                                     jask_error *err)
{
    jask_status st = __real_jask_context_open(options, out, err);
    contexts += st == JASK_OK;
    return st;
}

void __wrap_jask_context_close(jask_context *ctx)
{
    __real_jask_context_close(ctx);
    cr_assert_eq(cusim_report_count(NULL), 0, "%s", cusim_report(0));
    if (--contexts == 0)
        sim_check_clean("context", 0);
}
