// A grid, block after block. The threads of a block run one after another on a fiber, until one
// meets a barrier: it keeps its fiber and waits, the next thread gets another.
#include "cusim_kernel.h"
#include "sim.h"
#include "switch.h"

#include <algorithm>
#include <sys/mman.h>

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

__thread cusim_thread *cusim_self;

namespace cusim
{

constexpr size_t stack_bytes = 64u << 10;
constexpr unsigned warp_threads = 32;

enum class Wait { none, warp, block };

struct Block;
class FiberPool;

// Owned in turn by the pool and by the thread of a block that runs, or waits, on it.
struct Fiber {
    Context context;
    char *stack = nullptr;
    void *sanitizer = nullptr; // AddressSanitizer's view of this stack while it is left
    cusim_thread thread{};
    unsigned place = 0; // of its thread in the block
    Wait wait = Wait::none;
    bool resting = false; // where fiber_main can go on with another block
    uint64_t value = 0;   // given in an exchange
    Block *block = nullptr;
};

struct Block {
    const std::function<void()> *body = nullptr;
    FiberPool *pool = nullptr;
    Context home;
    void *home_sanitizer = nullptr;
    const void *home_stack = nullptr;
    size_t home_stack_bytes = 0;
    dim3 size, grid;
    uint3 index{};
    std::vector<unsigned> order;
    size_t next = 0;             // in order
    std::vector<Fiber *> parked; // by place: threads at a barrier
};

class FiberPool
{
  public:
    FiberPool() = default;
    FiberPool(const FiberPool &) = delete;
    FiberPool &operator=(const FiberPool &) = delete;
    ~FiberPool()
    {
        for (const auto &fiber : all_)
            munmap(fiber->stack, stack_bytes);
    }
    Fiber *take();
    void give(Fiber *fiber) { idle_.push_back(fiber); }
    // After a fault: whoever was on a fiber is not coming back.
    void reclaim()
    {
        idle_.clear();
        for (const auto &fiber : all_)
            idle_.push_back(fiber.get());
    }
    // The one that runs. Not on a stack: a fault leaves by a jump. Nor a thread's: the streams, which to
    // TSan are threads of their own, share one.
    Block block;

  private:
    std::vector<std::unique_ptr<Fiber>> all_;
    std::vector<Fiber *> idle_;
};

std::shared_ptr<FiberPool> make_fiber_pool()
{
    return std::make_shared<FiberPool>();
}

static __thread Fiber *this_fiber;

static void leave_fiber(Fiber &fiber)
{
    Block &block = *fiber.block;
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&fiber.sanitizer, block.home_stack, block.home_stack_bytes);
    switch_context(fiber.context, block.home);
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(fiber.sanitizer, nullptr, nullptr);
}

static void enter_fiber(Fiber &fiber)
{
    Block &block = *fiber.block;
    this_fiber = &fiber;
    cusim_self = &fiber.thread;
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&block.home_sanitizer, fiber.stack, stack_bytes);
    switch_context(block.home, fiber.context);
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(block.home_sanitizer, nullptr, nullptr);
}

static void begin_thread(Fiber &fiber)
{
    Block &block = *fiber.block;
    unsigned place = block.order[block.next++];
    fiber.place = place;
    fiber.wait = Wait::none;
    fiber.thread = {{place % block.size.x, place / block.size.x % block.size.y,
                     place / block.size.x / block.size.y},
                    block.index,
                    block.size,
                    block.grid};
}

// A fiber lives on: when a block has no more threads for it, it waits for another block's.
static void fiber_main(void *argument)
{
    Fiber &fiber = *static_cast<Fiber *>(argument);
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(nullptr, &fiber.block->home_stack,
                                        &fiber.block->home_stack_bytes);
    for (;;) {
        while (fiber.block->next < fiber.block->order.size()) {
            begin_thread(fiber);
            (*fiber.block->body)();
        }
        fiber.resting = true;
        leave_fiber(fiber);
        fiber.resting = false;
    }
}

Fiber *FiberPool::take()
{
    if (idle_.empty()) {
        all_.push_back(std::make_unique<Fiber>());
        void *stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED)
            abort();
        all_.back()->stack = static_cast<char *>(stack);
        idle_.push_back(all_.back().get());
    }
    Fiber *fiber = idle_.back();
    idle_.pop_back();
    if (fiber->resting)
        return fiber;
    prepare_context(fiber->context, fiber->stack, stack_bytes, fiber_main, fiber);
    return fiber;
}

static void run_fiber(Block &block, Fiber *fiber)
{
    fiber->block = &block;
    enter_fiber(*fiber);
    if (fiber->resting)
        block.pool->give(fiber);
    else
        block.parked[fiber->place] = fiber;
}

static void resume(Block &block, unsigned place)
{
    Fiber *fiber = block.parked[place];
    block.parked[place] = nullptr;
    run_fiber(block, fiber);
}

// All threads of the warp that are left stand at a warp barrier.
static bool warp_is_ready(const Block &block, size_t warp)
{
    size_t end = std::min(block.parked.size(), (warp + 1) * warp_threads);
    bool any = false;
    for (size_t i = warp * warp_threads; i < end; i++)
        if (block.parked[i]) {
            if (block.parked[i]->wait != Wait::warp)
                return false;
            any = true;
        }
    return any;
}

static bool release_warps(Block &block)
{
    bool released = false;
    for (size_t warp = 0; warp * warp_threads < block.parked.size(); warp++) {
        if (!warp_is_ready(block, warp))
            continue;
        released = true;
        for (unsigned place : block.order)
            if (place / warp_threads == warp && block.parked[place])
                resume(block, place);
    }
    return released;
}

// False if some wait for their warp, whose other threads wait for the block.
static bool release_block(Block &block)
{
    for (const Fiber *fiber : block.parked)
        if (fiber && fiber->wait != Wait::block)
            return false;
    for (unsigned place : block.order)
        if (block.parked[place])
            resume(block, place);
    return true;
}

static bool run_block(Block &block)
{
    block.next = 0;
    std::fill(block.parked.begin(), block.parked.end(), nullptr);
    while (block.next < block.order.size())
        run_fiber(block, block.pool->take());
    auto waits = [](const Fiber *fiber) { return fiber != nullptr; };
    while (std::any_of(block.parked.begin(), block.parked.end(), waits))
        if (!release_warps(block) && !release_block(block))
            return false;
    return true;
}

static void set_order(Block &block, uint64_t seed)
{
    unsigned threads = block.size.x * block.size.y * block.size.z;
    block.order.resize(threads);
    block.parked.resize(threads);
    for (unsigned i = 0; i < threads; i++)
        block.order[i] = state.config.kernel_order == 1 ? threads - 1 - i : i;
    for (unsigned i = threads; state.config.kernel_order == 2 && i > 1; i--)
        std::swap(block.order[i - 1], block.order[next_random(seed) % i]);
}

cudaError_t run_grid(Stream &stream, dim3 grid, dim3 size, const std::function<void()> &body,
                     uint64_t seed)
{
    Block &block = stream.fibers->block;
    uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    stream.fibers->reclaim();
    block = Block();
    block.body = &body;
    block.pool = stream.fibers.get();
    block.size = size;
    block.grid = grid;
    set_order(block, seed);
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t at = state.config.kernel_order ? blocks - 1 - i : i;
        block.index = {static_cast<unsigned>(at % grid.x),
                       static_cast<unsigned>(at / grid.x % grid.y),
                       static_cast<unsigned>(at / grid.x / grid.y)};
        if (!run_block(block))
            return cudaErrorLaunchFailure;
    }
    return cudaSuccess;
}

} // namespace cusim

using namespace cusim;

static void wait_at(Wait wait)
{
    Fiber &fiber = *this_fiber;
    fiber.wait = wait;
    leave_fiber(fiber);
}

void cusim_block_barrier(void)
{
    wait_at(Wait::block);
}

void cusim_warp_barrier(void)
{
    wait_at(Wait::warp);
}

// Two barriers: all have given before one takes, all have taken before one gives again.
uint64_t cusim_exchange(uint64_t value, int from)
{
    Fiber &fiber = *this_fiber;
    fiber.value = value;
    wait_at(Wait::warp);
    size_t place = fiber.place / warp_threads * warp_threads + static_cast<unsigned>(from);
    const Block &block = *fiber.block;
    if (place < block.parked.size() && block.parked[place])
        value = block.parked[place]->value;
    wait_at(Wait::warp);
    return value;
}
