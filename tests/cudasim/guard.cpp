// Wrong addresses: work that touches device memory that is not there, a host that touches device
// memory, or pinned memory that a queued copy uses.
#include "sim.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace cusim
{

static thread_local sigjmp_buf *way_out;

// What the signal handler needs, where it can read it without the lock.
struct Watched {
    std::atomic<uint64_t> base, bytes;
};
static Watched watched[256];
static std::atomic<unsigned> watched_count;
static std::atomic<uint64_t> touched[64];
static std::atomic<unsigned> touched_count;

static struct sigaction previous_segv, previous_bus;

static bool touches_guard(uint64_t at)
{
    for (unsigned i = 0; i < watched_count; i++) {
        uint64_t base = watched[i].base, bytes = watched[i].bytes;
        if (at - base >= bytes)
            continue;
        unsigned n = touched_count++;
        if (n < 64)
            touched[n] = at;
        mprotect(pointer(base), bytes, PROT_READ | PROT_WRITE);
        return true;
    }
    return false;
}

static void on_fault(int number, siginfo_t *info, void *)
{
    uint64_t at = address(info->si_addr);
    if (way_out)
        siglongjmp(*way_out, 1);
    if (touches_guard(at))
        return;
    if (is_device(at)) {
        static const char text[] = "cusim: the host touches memory by a device pointer\n";
        if (write(2, text, sizeof text - 1) < 0)
            _exit(99);
    }
    // Comes back here no more: the access is tried again under the handler there was before.
    sigaction(number, number == SIGBUS ? &previous_bus : &previous_segv, nullptr);
}

void install_fault_handler()
{
    static bool installed;
    struct sigaction action;
    if (installed)
        return;
    installed = true;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
}

cudaError_t guarded(const std::function<cudaError_t()> &body)
{
    sigjmp_buf here;
    if (sigsetjmp(here, 1)) {
        way_out = nullptr;
        return cudaErrorIllegalAddress;
    }
    way_out = &here;
    cudaError_t error = body();
    way_out = nullptr;
    return error;
}

void watch_guard(uint64_t base, uint64_t bytes)
{
    unsigned n = watched_count;
    if (n == 256)
        return;
    watched[n].base = base;
    watched[n].bytes = bytes;
    watched_count = n + 1;
}

void forget_guards()
{
    watched_count = 0;
    touched_count = 0;
}

void collect_host_faults()
{
    unsigned count = touched_count.exchange(0);
    for (unsigned i = 0; i < count && i < 64; i++) {
        Alloc *alloc = find_alloc(touched[i]);
        report("HOST: the host touches byte " +
               std::to_string(alloc ? touched[i] - alloc->base : 0) +
               " of pinned memory that a queued copy uses");
    }
}

// Pages wholly inside what queued work uses: none may read what it writes, nor write what it reads.
void refresh_guard(Alloc &alloc)
{
    if (alloc.place != Place::pinned || alloc.alias == alloc.base)
        return;
    std::map<uint64_t, int> pages;
    for (const Record &r : alloc.track) {
        const Range &range = r.access.range;
        if (hosts_know(r.line, r.number))
            continue;
        for (uint64_t row = 0; row < range.rows; row++) {
            uint64_t begin = range.base + row * range.pitch;
            uint64_t last = (begin + range.width) / page_bytes * page_bytes;
            for (uint64_t p = round_up(begin, page_bytes); p < last; p += page_bytes)
                if (r.access.write)
                    pages[p] = PROT_NONE;
                else
                    pages.emplace(p, PROT_READ);
        }
    }
    mprotect(pointer(alloc.base), alloc.map_bytes, PROT_READ | PROT_WRITE);
    for (const auto &page : pages)
        mprotect(pointer(page.first), page_bytes, page.second);
}

void refresh_guards()
{
    if (!state.config.guard_pinned)
        return;
    for (auto &entry : state.allocs)
        refresh_guard(entry.second);
}

} // namespace cusim
