/* What runtime/waits.h declares, where the runtime is built for the simulator. */
#include "waits.h"

#include "cusim.h"

static jk_wait left_out = JK_WAITS;

void waits_leave_out(jk_wait wait)
{
    left_out = wait;
}

bool jk_must_wait(jk_wait wait)
{
    return wait != left_out;
}

void jk_give(const void *what)
{
    cusim_give(what);
}

void jk_take(jk_wait wait, const void *what)
{
    if (jk_must_wait(wait))
        cusim_take(what);
}
