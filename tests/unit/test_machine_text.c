/* Machines described in text. */
#include "runtime/machine_text.h"

#include <criterion/criterion.h>

#include <string.h>

Test(machine_text, every_key_is_read)
{
    jk_machine_said said;
    jask_error err;
    cr_assert_eq(jk_machine_parse("gpu=80G,host=64GiB,flops=51T,flops_f64=1.25T,h2d=55G,d2h=40G,"
                                  "disk_read=2G,disk_write=500M,memory=4.8T",
                                  &said, &err),
                 JASK_OK, "%s", err.msg);
    cr_assert_eq(said.gpu_bytes, (uint64_t)80 << 30);
    cr_assert_eq(said.host_bytes, (uint64_t)64 << 30);
    cr_assert(said.flops == 51e12 && said.flops_f64 == 1.25e12);
    cr_assert(said.h2d == 55e9 && said.d2h == 40e9 && said.device_memory == 4.8e12);
    cr_assert(said.disk_read == 2e9 && said.disk_write == 5e8);
    cr_assert_eq(jk_machine_parse("disk=123456789", &said, &err), JASK_OK);
    cr_assert(said.disk_read == 123456789 && said.disk_write == 123456789 && said.flops == 0);
}

Test(machine_text, what_cannot_be_read_is_named_and_changes_nothing)
{
    static const char *const bad[] = {"",
                                      "gpu",
                                      "gpu=",
                                      "=4G",
                                      "speed=4G",
                                      "disk=2G,",
                                      ",disk=2G",
                                      "disk=2GG",
                                      "disk=-2",
                                      "disk=1.",
                                      "disk=.",
                                      "disk=0",
                                      "disk=1e9",
                                      "disk= 2",
                                      "disk=nan",
                                      "gpu=0",
                                      "gpu=lots",
                                      "disk=1234567890123456789",
                                      "flops=1T,h2d=x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        jk_machine_said said = {.flops = 77};
        jask_error err;
        cr_assert_eq(jk_machine_parse(bad[i], &said, &err), JASK_ERR_ARG, "'%s'", bad[i]);
        cr_assert(said.flops == 77);
        cr_assert_not_null(strstr(err.msg, "disk_write"), "%s", err.msg);
    }
}

Test(machine_text, what_is_said_replaces_what_was_known)
{
    const jk_machine known = {.device_bytes = 1000,
                              .flops = 1,
                              .h2d = 2,
                              .d2h = 3,
                              .disk_read = 4,
                              .disk_write = 5,
                              .device_memory = 6,
                              .shared_cores = true};
    jk_machine_said said;
    jk_machine machine = known;
    cr_assert_eq(jk_machine_parse("flops=10,flops_f64=5,h2d=20", &said, NULL), JASK_OK);
    jk_machine_apply(&said, true, &machine);
    cr_assert(machine.flops == 5 && machine.h2d == 20 && machine.d2h == 20);
    cr_assert(machine.disk_read == 4 && machine.device_bytes == 1000 && machine.shared_cores);
    cr_assert_eq(jk_machine_parse("gpu=2K,host=1K", &said, NULL), JASK_OK);
    jk_machine_apply(&said, false, &machine);
    cr_assert(machine.device_bytes == 2048 && machine.cache_bytes == 1024 && !machine.shared_cores);
    cr_assert_eq(jk_machine_parse("host=1K", &said, NULL), JASK_OK);
    jk_machine_apply(&said, false, &machine);
    cr_assert(machine.device_bytes == 1024 && machine.shared_cores);
}
