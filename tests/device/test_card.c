/* The device and the pipeline on a real card; on the simulator, to see that these tests work. */
#include "../e2e/e2e.h"
#include "contract.h"
#include "gpu.h"
#include "product.h"
#include "runtime/settings.h"

#include <criterion/criterion.h>

TestSuite(card, .init = e2e_init, .fini = e2e_cleanup);

static jk_device_ref card(void)
{
    jk_device_options options = {.cublas = jask_setting_environment(JK_SET_CUBLAS)};
    jk_device_ref ref;
    jask_error err;
    if (jk_device_select("cuda", &options, &ref, &err))
        gpu_absent(err.msg);
    return ref;
}

Test(card, keeps_the_contract)
{
    contract_check(card());
}

Test(card, products_are_exact)
{
    jk_device_ref ref = card();
    product_run_many(ref);
    jk_device_release(&ref);
}
