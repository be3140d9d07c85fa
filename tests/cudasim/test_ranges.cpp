// The arithmetic of byte ranges, against looking at every byte.
#include "sim.h"

#include <criterion/criterion.h>

using namespace cusim;

constexpr uint64_t bytes = 160;

static std::vector<bool> marked(const Range &r)
{
    std::vector<bool> mark(bytes);
    for (uint64_t row = 0; row < r.rows; row++)
        for (uint64_t i = 0; i < r.width; i++)
            mark[r.base + row * r.pitch + i] = true;
    return mark;
}

static Range some_range(uint64_t &seed)
{
    Range r;
    r.width = 1 + next_random(seed) % 12;
    r.pitch = r.width + next_random(seed) % 8;
    r.rows = 1 + next_random(seed) % 6;
    r.base = next_random(seed) % 40;
    return r;
}

Test(ranges, overlap_exactly_when_they_share_a_byte)
{
    uint64_t seed = 1;
    int shared = 0;
    for (int i = 0; i < 20000; i++) {
        Range a = some_range(seed), b = some_range(seed);
        std::vector<bool> in_a = marked(a), in_b = marked(b);
        bool expected = false;
        for (size_t at = 0; at < bytes; at++)
            expected |= in_a[at] && in_b[at];
        shared += expected;
        cr_assert_eq(overlap(a, b), expected);
        cr_assert_eq(overlap(b, a), expected);
    }
    cr_assert(shared > 1000 && shared < 19000);
}

Test(ranges, contain_only_what_is_in_them)
{
    uint64_t seed = 2;
    int inside = 0;
    for (int i = 0; i < 20000; i++) {
        Range a = some_range(seed), b = some_range(seed);
        if (next_random(seed) % 2)
            b.pitch = a.pitch;
        b.width = std::min(b.width, b.pitch);
        std::vector<bool> in_a = marked(a), in_b = marked(b);
        if (!contains(a, b))
            continue;
        inside++;
        for (size_t at = 0; at < bytes; at++)
            cr_assert(in_a[at] || !in_b[at]);
    }
    cr_assert(inside > 200);
    Range whole{8, 10, 16, 4}, part{24, 10, 16, 2}, dense{0, 100, 100, 1};
    cr_assert(contains(whole, part));
    cr_assert_not(contains(part, whole));
    cr_assert(contains(dense, whole));
    cr_assert(contains(whole, whole));
}
