// Streams as queues, and who runs what stands in them: see cusim_scheduler.
#include "sim.h"

#include <ctime>

namespace cusim
{

static double now_seconds()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

static void delay(uint64_t us)
{
    timespec t{0, static_cast<long>(us) * 1000};
    if (us)
        nanosleep(&t, nullptr);
}

// What code that TSan does not see (BLAS, memcpy) is about to touch.
static void tell_tsan_accesses(const Op &op)
{
    if (!have_tsan() || op.kernel)
        return;
    for (const Access &a : op.accesses)
        for (uint64_t row = 0; row < a.range.rows; row++) {
            const void *at = pointer(a.range.base + row * a.range.pitch);
            (a.write ? __tsan_write_range : __tsan_read_range)(cusim_memory(at),
                                                               static_cast<long>(a.range.width));
        }
}

static cudaError_t run_body(Stream &stream, Op &op)
{
    void *home = nullptr;
    if (stream.tsan_fiber) {
        home = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(stream.tsan_fiber, 1);
        __tsan_acquire(&state.runner_tag);
    }
    if (have_tsan()) {
        __tsan_acquire(&op.queued_tag);
        for (const OpPtr &earlier : op.after)
            __tsan_acquire(&earlier->done_tag);
        tell_tsan_accesses(op);
    }
    cudaError_t error = op.body ? guarded(op.body) : cudaSuccess;
    if (have_tsan())
        __tsan_release(&op.done_tag);
    if (home)
        __tsan_switch_to_fiber(home, 1);
    return error;
}

// High enough in any element type that a comparison with a tolerance sees it.
static void flip_bit(const Op &op)
{
    for (const Access &a : op.accesses)
        if (a.write && !a.range.empty()) {
            *pointer(reachable(a.range.base + (a.range.width > 1 ? 1 : 0))) ^= 0x40;
            return;
        }
}

// The lock is held before and after; while the body runs only by the inline scheduler.
static void execute(Lock &lock, Stream &stream, const OpPtr &op)
{
    Device &device = state.devices[static_cast<size_t>(stream.device)];
    bool keep = state.config.scheduler == CUSIM_INLINE;
    cudaError_t error = op->inject;
    if (error == cudaSuccess && state.fail_next != cudaSuccess) {
        error = state.fail_next;
        state.fail_next = cudaSuccess;
    }
    if (device.sticky == cudaSuccess && error == cudaSuccess) {
        uint64_t us = state.config.scheduler == CUSIM_THREADS && state.config.max_delay_us
                          ? next_random(state.random) % (state.config.max_delay_us + 1)
                          : 0;
        if (keep)
            tsan_ignore_end();
        else
            lock.leave();
        delay(us);
        error = run_body(stream, *op);
        if (keep)
            tsan_ignore_begin();
        else
            lock.enter();
        if (error != cudaSuccess)
            report("FAULT: " + op->name + " failed: " + cudaGetErrorName(error));
        else if (op->flip)
            flip_bit(*op);
    }
    if (error != cudaSuccess && device.sticky == cudaSuccess)
        device.sticky = error;
    op->seconds = now_seconds();
    op->done = true;
    op->body = nullptr;
    op->after.clear();
    state.stats.operations++;
}

static bool runnable(const Stream &stream)
{
    if (stream.queue.empty())
        return false;
    for (const OpPtr &earlier : stream.queue.front()->after)
        if (!earlier->done)
            return false;
    return true;
}

// The op stays in front while it runs, so that nobody else starts the next.
static void run_front(Lock &lock, Stream &stream)
{
    OpPtr op = stream.queue.front();
    execute(lock, stream, op);
    stream.queue.pop_front();
    state.changed.notify_all();
}

static void worker_main(Stream *stream)
{
    Lock lock;
    for (;;) {
        lock.wait([&] { return stream->stop || runnable(*stream); });
        if (stream->stop)
            return;
        run_front(lock, *stream);
    }
}

static Stream *first_runnable()
{
    Stream *best = nullptr;
    for (const auto &entry : state.streams) {
        Stream *s = entry.second.get();
        if (runnable(*s) && (!best || s->priority > best->priority))
            best = s;
    }
    return best;
}

static void shuffle_priorities()
{
    constexpr uint64_t one_in = 8;
    if (next_random(state.random) % one_in)
        return;
    for (const auto &entry : state.streams)
        entry.second->priority = next_random(state.random);
}

// Runs only what somebody waits for, and whatever the priorities put before it.
static void runner_main()
{
    if (have_tsan())
        __tsan_release(&state.runner_tag);
    Lock lock;
    for (;;) {
        lock.wait(
            [] { return state.runner_stop || state.steps || (state.waiting && first_runnable()); });
        if (state.runner_stop)
            return;
        shuffle_priorities();
        Stream *stream = first_runnable();
        if (stream)
            run_front(lock, *stream);
        if (state.steps && !--state.steps)
            state.changed.notify_all();
    }
}

void start_runner()
{
    state.runner_stop = false;
    state.waiting = state.steps = 0;
    if (state.config.scheduler == CUSIM_PCT)
        state.runner = std::thread(runner_main);
}

void stop_runner(Lock &lock)
{
    if (!state.runner.joinable())
        return;
    state.runner_stop = true;
    state.changed.notify_all();
    lock.leave();
    state.runner.join();
    lock.enter();
}

void await_op(Lock &lock, const OpPtr &awaited)
{
    OpPtr op = awaited; // the stream's last may change meanwhile
    if (!op)
        return;
    state.waiting++;
    state.changed.notify_all();
    lock.wait([&] { return op->done; });
    state.waiting--;
    tsan_acquire_inside(&op->done_tag);
}

// A query grants one step, so that a program that polls gets on.
bool poll_op(Lock &lock, const OpPtr &asked)
{
    OpPtr op = asked;
    if (!op)
        return true;
    if (!op->done && state.config.scheduler == CUSIM_PCT) {
        state.steps++;
        state.changed.notify_all();
        lock.wait([] { return !state.steps; });
    }
    if (op->done)
        tsan_acquire_inside(&op->done_tag);
    return op->done;
}

void drain(Lock &lock)
{
    std::vector<OpPtr> last;
    for (const auto &entry : state.streams)
        last.push_back(entry.second->last);
    for (const OpPtr &op : last)
        await_op(lock, op);
}

Stream *find_stream(cudaStream_t handle)
{
    if (!handle || handle == cudaStreamLegacy)
        return current_device().legacy;
    for (const auto &entry : state.streams)
        if (reinterpret_cast<cudaStream_t>(entry.second.get()) == handle)
            return entry.second.get();
    return nullptr;
}

Stream &create_stream(unsigned flags, int device)
{
    unsigned line = state.next_line++;
    Stream &s = *(state.streams[line] = std::make_unique<Stream>());
    s.line = line;
    s.flags = flags;
    s.device = device;
    s.priority = next_random(state.random);
    s.clock.resize(line + 1);
    s.fibers = make_fiber_pool();
    if (state.config.scheduler == CUSIM_PCT && have_tsan())
        s.tsan_fiber = __tsan_create_fiber(0);
    if (state.config.scheduler == CUSIM_THREADS)
        s.worker = std::thread(worker_main, &s);
    return s;
}

void remove_stream(Lock &lock, Stream &stream)
{
    await_op(lock, stream.last);
    stream.stop = true;
    state.changed.notify_all();
    if (stream.worker.joinable()) {
        lock.leave();
        stream.worker.join();
        lock.enter();
    }
    lock.wait([&] { return stream.queue.empty(); });
    if (stream.tsan_fiber)
        __tsan_destroy_fiber(stream.tsan_fiber);
    state.streams.erase(stream.line);
}

OpPtr make_op(const std::string &name, std::vector<Access> accesses,
              std::function<cudaError_t()> body)
{
    OpPtr op = std::make_shared<Op>();
    op->name = name;
    op->accesses = std::move(accesses);
    op->body = std::move(body);
    return op;
}

// The legacy default stream waits for all blocking streams, and they for it.
static void legacy_edges(Stream &stream, Op &op)
{
    const Stream *legacy = state.devices[static_cast<size_t>(stream.device)].legacy;
    if (stream.flags & cudaStreamNonBlocking)
        return;
    for (const auto &entry : state.streams) {
        const Stream &other = *entry.second;
        if (&other == &stream || (other.flags & cudaStreamNonBlocking) || !other.last ||
            other.device != stream.device || (&stream != legacy && &other != legacy))
            continue;
        op.after.push_back(other.last);
        join(stream.clock, other.clock);
    }
}

static void check_accesses(Stream &stream, Op &op)
{
    std::string what = op.name + " (op " + std::to_string(op.number) + ")";
    for (const Access &a : op.accesses) {
        if (a.range.empty())
            continue;
        Alloc *alloc = find_alloc(a.range.base);
        bool on_device = is_device(a.range.base);
        if (!alloc && !on_device)
            continue; // pageable
        if (!alloc || a.range.end() > alloc->base + alloc->bytes) {
            report("BOUNDS: " + what + " reaches outside its " +
                   (on_device ? "device memory" : "pinned memory"));
            if (on_device)
                op.inject = cudaErrorIllegalAddress;
        }
        if (!alloc)
            continue;
        check_access(alloc->track, a, {stream.line, op.number, &stream.clock, what}, "ORDER",
                     describe(a.range, *alloc));
        refresh_guard(*alloc);
    }
}

cudaError_t enqueue(Call &call, Stream &stream, OpPtr op)
{
    Lock &lock = call.lock;
    join(stream.clock, this_host().clock);
    legacy_edges(stream, *op);
    op->number = ++stream.clock[stream.line];
    check_accesses(stream, *op);
    if (call.planned_ && call.fault_.how == CUSIM_FAIL_LATER)
        op->inject = call.fault_.error;
    if (call.planned_ && call.fault_.how == CUSIM_FLIP_BIT)
        op->flip = true;
    call.planned_ = false;
    stream.last = op;
    tsan_release_inside(&op->queued_tag);
    if (state.config.scheduler == CUSIM_INLINE) {
        execute(lock, stream, op);
    } else {
        stream.queue.push_back(std::move(op));
        state.changed.notify_all();
    }
    return cudaSuccess;
}

} // namespace cusim
