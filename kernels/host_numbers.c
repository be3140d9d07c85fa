#include "kernels/host_numbers.h"

uint32_t jk_probe_word(uint32_t seed, uint32_t index)
{
    return seed ^ index * 0x9e3779b9u;
}
