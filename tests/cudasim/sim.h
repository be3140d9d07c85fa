// The simulator's own state and the functions that its files share. One mutex guards all of it.
#ifndef CUSIM_SIM_H
#define CUSIM_SIM_H

#include "cusim.h"
#include "hooks.h"

// The calls that are implemented here are what this library exports.
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cusim
{

// Of two-dimensional copies: far less than any card has, so that tests can pass it.
constexpr size_t max_pitch = size_t{1} << 20;

constexpr uint64_t page_bytes = 4096;

inline uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

inline uint64_t address(const void *ptr)
{
    return reinterpret_cast<uint64_t>(ptr);
}

inline char *pointer(uint64_t addr)
{
    return reinterpret_cast<char *>(addr);
}

// SplitMix64.
inline uint64_t next_random(uint64_t &state)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// ---- order (order.cpp)

// A line is something whose actions follow each other: a host thread or a stream. A clock tells,
// for each line, how many of its actions are known to be done.
using Clock = std::vector<uint64_t>;

uint64_t known(const Clock &clock, unsigned line);
void join(Clock &into, const Clock &other);

struct Range {
    uint64_t base, width, pitch, rows;
    uint64_t end() const { return base + (rows - 1) * pitch + width; }
    bool empty() const { return !width || !rows; }
};

bool overlap(const Range &a, const Range &b);
bool contains(const Range &outer, const Range &inner);

struct Access {
    Range range;
    bool write;
};

struct Record {
    Access access;
    unsigned line;
    uint64_t number;
    std::string what;
};

// The accesses to one allocation that a later one may still conflict with.
using Track = std::vector<Record>;

struct Host {
    unsigned line;
    Clock clock;
};

// Who accesses: action `number` of `line`, knowing `clock`.
struct Actor {
    unsigned line;
    uint64_t number;
    const Clock *clock;
    std::string what;
};

// Report what conflicts with the access, then remember it. `kind` and `where` are for the report.
void check_access(Track &track, const Access &access, const Actor &actor, const char *kind,
                  const std::string &where);
bool hosts_know(unsigned line, uint64_t number);
Host &this_host();
// The calling thread now knows what `clock` knows.
void host_learns(const Clock &clock);

// ---- memory (memory.cpp)

enum class Place { device, pinned };

struct Alloc {
    Place place;
    uint64_t base, bytes; // what the caller was given
    uint64_t map, map_bytes;
    uint64_t alias; // pinned: the simulator's own view, never protected
    uint64_t charged;
    int device;
    Track track;
};

struct Space {
    uint64_t handles, memory, bytes, next;
    int fd;
};

void space_open();
void space_close();
Alloc *find_alloc(uint64_t addr);
bool is_device(uint64_t addr);
// Where the simulator may read and write what the address means to the program.
uint64_t reachable(uint64_t addr);
void release_alloc(Alloc &alloc);
void refresh_guard(Alloc &alloc);
void refresh_guards();
// Device memory that is nobody's pointer: of a cuBLAS handle.
bool reserve_bytes(int device, uint64_t bytes);
void unreserve_bytes(int device, uint64_t bytes);
std::string describe(const Range &range, const Alloc &alloc);

// ---- faults (faults.cpp)

struct PlannedFault {
    std::string call;
    uint64_t nth;
    cusim_fault_kind how;
    cudaError_t error;
};

// What the plan says on this call; counts it.
bool take_fault(const char *call, PlannedFault *out);

// ---- streams (scheduler.cpp)

struct Op;
using OpPtr = std::shared_ptr<Op>;

struct Op {
    std::string name;
    std::function<cudaError_t()> body;
    std::vector<OpPtr> after;
    std::vector<Access> accesses;
    uint64_t number = 0;
    cudaError_t inject = cudaSuccess;
    bool flip = false;
    bool kernel = false; // its body is instrumented code
    bool done = false;
    double seconds = 0;
    char queued_tag = 0, done_tag = 0; // addresses that stand for edges in TSan
};

struct Device {
    int physical = 0;
    uint64_t used = 0;
    cudaError_t sticky = cudaSuccess;
    struct Stream *legacy = nullptr;
};

class FiberPool;

struct Stream {
    unsigned line = 0;
    unsigned flags = 0;
    int device = 0;
    uint64_t priority = 0;
    std::deque<OpPtr> queue;
    OpPtr last;
    Clock clock;
    std::thread worker;
    bool stop = false;
    void *tsan_fiber = nullptr;
    // Not shared between streams: to TSan a fiber is a thread, and would order them.
    std::shared_ptr<FiberPool> fibers;
};

struct Event {
    unsigned flags = 0;
    int device = 0;
    OpPtr op; // null: never recorded
    Clock clock;
    Track track; // of the handle, by host threads
};

struct BlasHandle;

struct State {
    cusim_config config{};
    bool booted = false;
    uint64_t generation = 0;
    std::mutex mutex;
    std::condition_variable changed;

    std::vector<Device> devices; // the visible ones
    std::map<uint64_t, Alloc> allocs;
    std::vector<std::pair<uint64_t, uint64_t>> retired;  // pinned mappings, unmapped by a reset
    std::map<unsigned, std::unique_ptr<Stream>> streams; // by line
    std::map<Event *, std::unique_ptr<Event>> events;
    std::map<BlasHandle *, std::unique_ptr<BlasHandle>> handles;
    unsigned next_line = 0;
    std::vector<std::shared_ptr<Host>> hosts;
    std::map<const void *, Clock> tokens;
    Space space{};
    uint64_t random = 0;

    std::vector<PlannedFault> faults;
    cudaError_t fail_next = cudaSuccess; // a late fault of a call that queued nothing
    std::map<std::string, uint64_t> calls;
    uint64_t calls_total = 0;
    std::deque<std::string> reports;
    cusim_stats stats{};

    std::thread runner; // PCT
    bool runner_stop = false;
    uint64_t waiting = 0; // host threads that wait for work
    uint64_t steps = 0;   // single steps granted by queries
    char runner_tag = 0;
};

extern State &state;

struct ThreadState {
    uint64_t generation = 0;
    cudaError_t last_error = cudaSuccess;
    int device = 0;
    std::shared_ptr<Host> host;
    ~ThreadState();
};

// The calling thread's, renewed after a reset. With the lock held.
ThreadState &this_thread();

class Lock
{
  public:
    Lock();
    ~Lock();
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
    // Around code that is not the simulator's.
    void leave();
    void enter();
    template <class Condition> void wait(Condition condition)
    {
        state.changed.wait(inner_, condition);
    }

  private:
    std::unique_lock<std::mutex> inner_;
};

// A call of the API: the lock, the count, the fault planned for it, and the error that it must
// return at once. Calls that free something do so all the same.
class Call
{
  public:
    explicit Call(const char *name);
    bool failed() const { return early_ != cudaSuccess; }
    cudaError_t early() const { return early_; }
    // The call's result: makes it the thread's last error, and a planned late fault come true.
    cudaError_t finish(cudaError_t error);
    const PlannedFault *fault() const { return planned_ ? &fault_ : nullptr; }

    const char *const name;
    Lock lock;

  private:
    cudaError_t early_ = cudaSuccess;
    PlannedFault fault_;
    bool planned_ = false;
    friend cudaError_t enqueue(Call &, Stream &, OpPtr);
};

void boot();
void report(const std::string &text);
Device &current_device();

Stream *find_stream(cudaStream_t handle);
Stream &create_stream(unsigned flags, int device);
void remove_stream(Lock &lock, Stream &stream);
// Check and queue; the call's planned fault goes into the op.
cudaError_t enqueue(Call &call, Stream &stream, OpPtr op);
OpPtr make_op(const std::string &name, std::vector<Access> accesses,
              std::function<cudaError_t()> body);
void await_op(Lock &lock, const OpPtr &op);
bool poll_op(Lock &lock, const OpPtr &op);
void drain(Lock &lock);
void start_runner();
void stop_runner(Lock &lock);

// Run body; cudaErrorIllegalAddress if it touches device memory that is not there.
cudaError_t guarded(const std::function<cudaError_t()> &body);
void install_fault_handler();
void forget_guards();
void watch_guard(uint64_t base, uint64_t bytes);
void collect_host_faults();

// ---- kernels (grid.cpp)

cudaError_t run_grid(Stream &stream, dim3 grid, dim3 block, const std::function<void()> &body,
                     uint64_t seed);
std::shared_ptr<FiberPool> make_fiber_pool();

} // namespace cusim

#endif
