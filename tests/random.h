/* Random numbers for tests (splitmix64), the same in every run: Criterion gives each test a process of its own. */
#ifndef JK_TESTS_RANDOM_H
#define JK_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 20240607;

static inline uint64_t random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Both ends are among them. */
static inline int64_t random_between(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

#endif
