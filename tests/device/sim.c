#include "sim.h"

#include "runtime/settings.h"

#include <criterion/criterion.h>
#include <inttypes.h>

cusim_config sim_config(uint64_t seed)
{
    cusim_config config;
    cusim_config_default(&config);
    config.seed = seed;
    config.scheduler = seed % 2 ? CUSIM_PCT : CUSIM_THREADS;
    config.max_delay_us = seed % 4 ? 0 : 50;
    config.granularity_bytes = 256;
    return config;
}

const char *sim_cublas(void)
{
    return jask_setting_environment(JK_SET_CUBLAS);
}

void sim_separate(uint64_t seed)
{
    cusim_config config = sim_config(seed);
    config.separate_hosts = true;
    cusim_reset(&config);
}

jk_device_ref sim_open(void)
{
    jk_device_options options = {.cublas = sim_cublas()};
    jk_device_ref device;
    jask_error err;
    cr_assert_eq(jk_device_select("cuda", &options, &device, &err), JASK_OK, "%s", err.msg);
    return device;
}

void sim_check_clean(const char *what, uint64_t number)
{
    char leaks[512] = "";
    cr_assert_eq(cusim_report_count(NULL), 0, "%s %" PRIu64 ": %s", what, number, cusim_report(0));
    cr_assert_eq(cusim_leaks(leaks, sizeof leaks), 0, "%s %" PRIu64 ": left: %s", what, number,
                 leaks);
}
