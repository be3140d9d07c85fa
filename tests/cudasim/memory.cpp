// Memory. Device pointers are handles into a range that nobody may touch; the bytes are in a file
// mapped a constant distance away, where only the simulator looks. Each allocation ends at a page
// that is not there, and no address is given out twice.
#include "sim.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cusim
{

constexpr uint64_t space_bytes = 1ull << 36;
// Between the end of an allocation and its guard page; must keep this value.
constexpr unsigned char slack_byte = 0xa5;
constexpr unsigned char poison_byte = 0xff; // NaN in every floating-point type

static uint64_t map_or_abort(uint64_t bytes, int prot, int flags, int fd)
{
    void *at = mmap(nullptr, bytes, prot, flags | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED)
        abort();
    return address(at);
}

void space_open()
{
    Space &s = state.space;
    s.bytes = space_bytes;
    s.next = page_bytes;
    s.fd = memfd_create("cusim", MFD_CLOEXEC);
    if (s.fd < 0 || ftruncate(s.fd, static_cast<off_t>(s.bytes)))
        abort();
    s.handles = map_or_abort(s.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    s.memory = map_or_abort(s.bytes, PROT_NONE, MAP_SHARED, s.fd);
}

void space_close()
{
    Space &s = state.space;
    munmap(pointer(s.handles), s.bytes);
    munmap(pointer(s.memory), s.bytes);
    close(s.fd);
    for (const auto &mapping : state.retired)
        munmap(pointer(mapping.first), mapping.second);
    state.retired.clear();
    s = {};
}

bool is_device(uint64_t addr)
{
    return addr - state.space.handles < state.space.bytes;
}

Alloc *find_alloc(uint64_t addr)
{
    auto next = state.allocs.upper_bound(addr);
    if (next == state.allocs.begin())
        return nullptr;
    Alloc &alloc = std::prev(next)->second;
    return addr < alloc.base + std::max<uint64_t>(alloc.bytes, 1) ? &alloc : nullptr;
}

uint64_t reachable(uint64_t addr)
{
    if (is_device(addr))
        return addr - state.space.handles + state.space.memory;
    Alloc *alloc = find_alloc(addr);
    return alloc ? addr - alloc->base + alloc->alias : addr;
}

std::string describe(const Range &range, const Alloc &alloc)
{
    char text[160];
    snprintf(text, sizeof text, "%s memory of %llu bytes, at byte %llu, %llu row(s) of %llu",
             alloc.place == Place::device ? "device" : "pinned",
             static_cast<unsigned long long>(alloc.bytes),
             static_cast<unsigned long long>(range.base - alloc.base),
             static_cast<unsigned long long>(range.rows),
             static_cast<unsigned long long>(range.width));
    return text;
}

static void charge(Device &device, uint64_t bytes)
{
    device.used += bytes;
    state.stats.used_bytes += bytes;
    state.stats.peak_bytes = std::max(state.stats.peak_bytes, state.stats.used_bytes);
}

static void uncharge(Device &device, uint64_t bytes)
{
    device.used -= bytes;
    state.stats.used_bytes -= bytes;
}

static cudaError_t alloc_device(size_t bytes, void **out)
{
    Space &s = state.space;
    Device &device = current_device();
    uint64_t total = state.config.device_bytes;
    if (bytes > total)
        return cudaErrorMemoryAllocation;
    uint64_t charged = round_up(bytes, state.config.granularity_bytes);
    uint64_t map = round_up(bytes, page_bytes), slack = round_up(bytes, 256) - bytes;
    if (charged > total - std::min(device.used, total) || map + page_bytes > s.bytes - s.next)
        return cudaErrorMemoryAllocation;
    uint64_t at = s.next + map - bytes - slack;
    char *memory = pointer(s.memory + s.next);
    if (mprotect(memory, map, PROT_READ | PROT_WRITE))
        return cudaErrorMemoryAllocation;
    memset(memory, poison_byte, map);
    memset(pointer(s.memory + at + bytes), slack_byte, slack);
    if (__asan_poison_memory_region)
        __asan_poison_memory_region(pointer(s.memory + at + bytes), slack);
    Alloc alloc{Place::device, s.handles + at,       bytes, s.memory + s.next, map, s.memory + at,
                charged,       this_thread().device, {}};
    s.next += map + page_bytes;
    charge(device, charged);
    *out = pointer(alloc.base);
    state.allocs.emplace(alloc.base, std::move(alloc));
    return cudaSuccess;
}

static cudaError_t alloc_pinned(size_t bytes, void **out)
{
    uint64_t map = round_up(std::max<uint64_t>(bytes, 1), page_bytes), base, alias;
    uint64_t limit = state.config.pinned_bytes;
    if (limit && (bytes > limit || state.stats.pinned_bytes > limit - bytes))
        return cudaErrorMemoryAllocation;
    // TSan knows bytes by their address: under it there is one mapping only, and no guard.
    if (state.config.guard_pinned && !have_tsan()) {
        int fd = memfd_create("cusim-pinned", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(map)))
            abort();
        base = map_or_abort(map, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        alias = map_or_abort(map, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        close(fd);
        watch_guard(base, map);
    } else {
        base = map_or_abort(map, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        alias = base;
    }
    memset(pointer(base), poison_byte, bytes);
    memset(pointer(base + bytes), slack_byte, map - bytes);
    state.stats.pinned_bytes += bytes;
    state.stats.pinned_peak_bytes =
        std::max(state.stats.pinned_peak_bytes, state.stats.pinned_bytes);
    *out = pointer(base);
    state.allocs.emplace(
        base, Alloc{Place::pinned, base, bytes, base, map, alias, 0, this_thread().device, {}});
    return cudaSuccess;
}

static void check_slack(const Alloc &alloc)
{
    uint64_t end =
        alloc.place == Place::device ? alloc.map + alloc.map_bytes : alloc.alias + alloc.map_bytes;
    if (alloc.place == Place::device && __asan_unpoison_memory_region)
        __asan_unpoison_memory_region(pointer(alloc.map), alloc.map_bytes);
    for (uint64_t at = alloc.alias + alloc.bytes; at < end; at++)
        if (static_cast<unsigned char>(*pointer(at)) != slack_byte) {
            report("OVERRUN: bytes behind " +
                   describe({alloc.base, alloc.bytes, alloc.bytes, 1}, alloc) + " have changed");
            return;
        }
}

// The addresses stay taken: what still uses them fails.
void release_alloc(Alloc &alloc)
{
    check_slack(alloc);
    if (alloc.place == Place::device) {
        mprotect(pointer(alloc.map), alloc.map_bytes, PROT_NONE);
        fallocate(state.space.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(alloc.map - state.space.memory),
                  static_cast<off_t>(alloc.map_bytes));
        uncharge(state.devices[static_cast<size_t>(alloc.device)], alloc.charged);
        return;
    }
    state.stats.pinned_bytes -= alloc.bytes;
    if (alloc.alias != alloc.base)
        munmap(pointer(alloc.alias), alloc.map_bytes);
    madvise(pointer(alloc.map), alloc.map_bytes, MADV_DONTNEED);
    mprotect(pointer(alloc.map), alloc.map_bytes, PROT_NONE);
    state.retired.emplace_back(alloc.map, alloc.map_bytes);
}

// The real call waits for the device, by chance as it were: that orders nothing here.
static cudaError_t free_memory(Call &call, void *ptr, Place place)
{
    auto found = state.allocs.find(address(ptr));
    if (found == state.allocs.end() || found->second.place != place)
        return cudaErrorInvalidValue;
    // A lost device has dropped its work, and no call waits for it any more.
    bool lost = state.devices[static_cast<size_t>(found->second.device)].sticky != cudaSuccess;
    for (const Record &r : found->second.track)
        if (!lost && r.number > known(this_host().clock, r.line))
            report(std::string("FREE: ") + call.name + " while " + r.what +
                   " may still run, that nothing has waited for");
    drain(call.lock);
    Alloc alloc = std::move(found->second);
    state.allocs.erase(found);
    release_alloc(alloc);
    return cudaSuccess;
}

bool reserve_bytes(int device, uint64_t bytes)
{
    Device &d = state.devices[static_cast<size_t>(device)];
    if (bytes > state.config.device_bytes - std::min<uint64_t>(d.used, state.config.device_bytes))
        return false;
    charge(d, bytes);
    return true;
}

void unreserve_bytes(int device, uint64_t bytes)
{
    uncharge(state.devices[static_cast<size_t>(device)], bytes);
}

} // namespace cusim

using namespace cusim;

void *cusim_memory(const void *device_ptr)
{
    uint64_t addr = address(device_ptr);
    return is_device(addr) ? pointer(addr - state.space.handles + state.space.memory)
                           : pointer(addr);
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    Call call("cudaMalloc");
    if (call.failed())
        return call.finish(cudaSuccess);
    if (!out)
        return call.finish(cudaErrorInvalidValue);
    if (bytes)
        return call.finish(alloc_device(bytes, out));
    *out = nullptr;
    return call.finish(cudaSuccess);
}

cudaError_t cudaFree(void *ptr)
{
    Call call("cudaFree");
    return call.finish(ptr ? free_memory(call, ptr, Place::device) : cudaSuccess);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned int)
{
    Call call("cudaHostAlloc");
    if (call.failed())
        return call.finish(cudaSuccess);
    if (!out)
        return call.finish(cudaErrorInvalidValue);
    return call.finish(alloc_pinned(bytes, out));
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return cudaHostAlloc(out, bytes, 0);
}

cudaError_t cudaFreeHost(void *ptr)
{
    Call call("cudaFreeHost");
    return call.finish(ptr ? free_memory(call, ptr, Place::pinned) : cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    Call call("cudaMemGetInfo");
    if (call.failed())
        return call.finish(cudaSuccess);
    *total = state.config.device_bytes;
    *free_bytes = *total - std::min<uint64_t>(current_device().used, *total);
    return call.finish(cudaSuccess);
}
