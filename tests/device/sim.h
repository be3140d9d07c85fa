/* What tests on the simulated CUDA runtime share. */
#ifndef JASK_TESTS_SIM_H
#define JASK_TESTS_SIM_H

#include "cusim.h"
#include "runtime/device.h"

/* A machine with one card, its work in an order of its own for every seed. */
cusim_config sim_config(uint64_t seed);

/* Begin with such a machine, and hold host threads to be ordered by nothing but what they give and take. */
void sim_separate(uint64_t seed);

/* cuda:0 of the simulator, which is its own cuBLAS. */
jk_device_ref sim_open(void);

/* The same as an option: the simulator's file. */
const char *sim_cublas(void);

/* No report, and nothing left. `what` is for the message. */
void sim_check_clean(const char *what, uint64_t number);

#endif
