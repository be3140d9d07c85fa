/* Machines described in text. */
#include "runtime/machine_text.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

Test(machine_text, every_key_is_read)
{
    jk_machine_said said;
    jask_error err;
    cr_assert_eq(jk_machine_parse("gpu=80G,host=64GiB,flops=51T,flops_f64=1.25T,flops_tf32=300T,"
                                  "flops_f16=0.6P,h2d=55G,d2h=40G,"
                                  "disk_read=2G,disk_write=500M,runs=200K,memory=4.8T",
                                  &said, &err),
                 JASK_OK, "%s", err.msg);
    cr_assert_eq(said.gpu_bytes, (uint64_t)80 << 30);
    cr_assert_eq(said.host_bytes, (uint64_t)64 << 30);
    cr_assert(said.flops == 51e12 && said.flops_f64 == 1.25e12);
    cr_assert(said.flops_tf32 == 3e14 && said.flops_f16 == 6e14);
    cr_assert(said.h2d == 55e9 && said.d2h == 40e9 && said.device_memory == 4.8e12);
    cr_assert(said.disk_read == 2e9 && said.disk_write == 5e8 && said.runs == 2e5);
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
                              .runs = 7,
                              .shared_cores = true};
    jk_machine_said said;
    jk_machine machine = known;
    cr_assert_eq(jk_machine_parse("flops=10,flops_f64=5,h2d=20", &said, NULL), JASK_OK);
    jk_machine_apply(&said, said.flops_f64, &machine);
    cr_assert(machine.flops == 5 && machine.h2d == 20 && machine.d2h == 20);
    cr_assert(machine.disk_read == 4 && machine.runs == 7 && machine.device_bytes == 1000 &&
              machine.shared_cores);
    cr_assert_eq(jk_machine_parse("gpu=2K,host=1K", &said, NULL), JASK_OK);
    jk_machine_apply(&said, 0, &machine);
    cr_assert(machine.device_bytes == 2048 && machine.host_bytes == 1024 && !machine.shared_cores);
    cr_assert(machine.runs == 0, "what runs cost beside a card is not known");
    cr_assert_eq(jk_machine_parse("gpu=2K,runs=8", &said, NULL), JASK_OK);
    jk_machine_apply(&said, 0, &machine);
    cr_assert(machine.runs == 8);
    cr_assert_eq(jk_machine_parse("host=1K", &said, NULL), JASK_OK);
    jk_machine_apply(&said, 0, &machine);
    cr_assert(machine.device_bytes == 1024 && machine.shared_cores);
    cr_assert(machine.flops == 5);
}

Test(machine_text, products_have_the_rate_of_their_types)
{
    const jk_machine_said said = {
        .flops = 100, .flops_f64 = 48, .flops_tf32 = 700, .flops_f16 = 900};
    static const struct {
        jask_dtype compute, input;
        bool tf32;
        double want;
    } cases[] = {{JASK_F32, JASK_F32, false, 100}, {JASK_F32, JASK_F32, true, 700},
                 {JASK_F32, JASK_F16, false, 900}, {JASK_F32, JASK_BF16, false, 900},
                 {JASK_F64, JASK_F64, false, 48},  {JASK_F64, JASK_F32, false, 48},
                 {JASK_C64, JASK_C64, false, 25},  {JASK_C128, JASK_C128, false, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert(jk_machine_flops(&said, cases[i].compute, cases[i].input, cases[i].tf32) ==
                      cases[i].want,
                  "case %zu", i);
    cr_assert(jk_machine_flops(&(jk_machine_said){.flops = 1}, JASK_F32, JASK_F16, false) == 0);
}

Test(machine_text, rates_are_written_as_they_are_read)
{
    static const struct {
        double rate;
        const char *text;
    } cases[] = {{1, "1"},          {999, "999"},      {1000, "1K"},         {1234, "1.23K"},
                 {56789, "56.8K"},  {567890, "568K"},  {1.5e6, "1.5M"},      {1e9, "1G"},
                 {2.05e9, "2.05G"}, {51e12, "51T"},    {999.96e9, "1000G"},  {3e18, "3000P"},
                 {1.004e12, "1T"},  {10.04e12, "10T"}, {12.3456e9, "12.3G"}, {99.96e9, "100G"}};
    char text[JK_MACHINE_TEXT], want[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jk_machine_said said = {.h2d = cases[i].rate}, back;
        snprintf(want, sizeof want, "h2d=%s", cases[i].text);
        cr_assert_eq(jk_machine_format(&said, text, sizeof text), strlen(want));
        cr_assert_str_eq(text, want);
        cr_assert_eq(jk_machine_parse(text, &back, NULL), JASK_OK, "%s", text);
        cr_assert(fabs(back.h2d - said.h2d) <= 0.005 * said.h2d, "%s", text);
    }
    jk_machine_said all = {.gpu_bytes = 5,
                           .host_bytes = 6,
                           .flops = 1e9,
                           .flops_f64 = 2e9,
                           .flops_tf32 = 3e9,
                           .flops_f16 = 4e9,
                           .h2d = 5e9,
                           .d2h = 6e9,
                           .disk_read = 7e9,
                           .disk_write = 8e9,
                           .runs = 1e4,
                           .device_memory = 9e9};
    cr_assert_eq(jk_machine_format(&all, text, sizeof text), strlen(text));
    cr_assert_str_eq(text, "flops=1G,flops_f64=2G,flops_tf32=3G,flops_f16=4G,h2d=5G,d2h=6G,"
                           "disk_read=7G,disk_write=8G,runs=10K,memory=9G");
    size_t whole = strlen(text);
    cr_assert_eq(jk_machine_format(&all, text, 10), whole, "cut, and says how long it is");
    cr_assert_str_eq(text, "flops=1G,");
    cr_assert_eq(jk_machine_format(&(jk_machine_said){0}, text, sizeof text), 0);
    cr_assert_str_eq(text, "");
}
