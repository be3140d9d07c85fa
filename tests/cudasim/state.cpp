// The one state: brought up by the first call, dropped by a reset.
#include "sim.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "blas.h"

namespace cusim
{

// Never destroyed: threads of the simulator may still wait when the program ends.
State &state = *new State;

static thread_local ThreadState thread_state;

ThreadState &this_thread()
{
    if (thread_state.generation != state.generation) {
        thread_state.generation = state.generation;
        thread_state.last_error = cudaSuccess;
        thread_state.device = 0;
        thread_state.host = nullptr;
    }
    return thread_state;
}

// A host thread that has ended is one that somebody has joined, or soon will.
ThreadState::~ThreadState()
{
    if (!host)
        return;
    Lock lock;
    if (generation != state.generation || host == state.hosts[0])
        return;
    join(state.hosts[0]->clock, host->clock);
    state.hosts.erase(std::remove(state.hosts.begin(), state.hosts.end(), host), state.hosts.end());
}

Lock::Lock() : inner_(state.mutex, std::defer_lock)
{
    enter();
}

Lock::~Lock()
{
    leave();
}

void Lock::enter()
{
    tsan_ignore_begin();
    inner_.lock();
}

void Lock::leave()
{
    inner_.unlock();
    tsan_ignore_end();
}

Call::Call(const char *call_name) : name(call_name)
{
    boot();
    planned_ = take_fault(name, &fault_);
    if (state.config.unusable)
        early_ = static_cast<cudaError_t>(state.config.unusable);
    else if (state.devices.empty())
        early_ = cudaErrorNoDevice;
    if (failed())
        return;
    Device &device = current_device();
    if (planned_ && fault_.how == CUSIM_FAIL_STICKY && device.sticky == cudaSuccess)
        device.sticky = fault_.error;
    if (device.sticky != cudaSuccess)
        early_ = device.sticky;
    else if (planned_ && fault_.how == CUSIM_FAIL_NOW)
        early_ = fault_.error;
}

cudaError_t Call::finish(cudaError_t error)
{
    if (failed())
        error = early_;
    if (planned_ && fault_.how == CUSIM_FAIL_LATER && error == cudaSuccess)
        state.fail_next = fault_.error;
    planned_ = false;
    if (error != cudaSuccess)
        this_thread().last_error = error;
    return error;
}

Device &current_device()
{
    return state.devices[static_cast<size_t>(this_thread().device)];
}

void report(const std::string &text)
{
    constexpr size_t enough = 1000;
    bool told = std::find(state.reports.begin(), state.reports.end(), text) != state.reports.end();
    if (!told && state.reports.size() < enough)
        state.reports.push_back(text);
}

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : nullptr;
}

static uint64_t setting_number(const char *name, uint64_t otherwise)
{
    const char *text = setting(name);
    return text ? strtoull(text, nullptr, 0) : otherwise;
}

static cusim_scheduler setting_scheduler()
{
    const char *text = setting("CUSIM_SCHEDULER");
    if (text && !strcmp(text, "inline"))
        return CUSIM_INLINE;
    return text && !strcmp(text, "pct") ? CUSIM_PCT : CUSIM_THREADS;
}

// CALL:NTH:HOW:ERROR
static void plan_fault_from_setting()
{
    const char *text = setting("CUSIM_FAULT");
    char call[64];
    unsigned long nth;
    int how, error;
    if (!text || sscanf(text, "%63[^:]:%lu:%d:%d", call, &nth, &how, &error) != 4)
        return;
    state.faults.push_back({strcmp(call, "any") ? call : "", nth,
                            static_cast<cusim_fault_kind>(how), static_cast<cudaError_t>(error)});
}

// The devices that CUDA_VISIBLE_DEVICES lets be seen: indices up to the first that is none.
static void find_devices()
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    state.devices.clear();
    for (int i = 0; !list && i < state.config.devices; i++)
        state.devices.push_back({i, state.config.reserved_bytes, cudaSuccess, nullptr});
    while (list && *list) {
        char *end;
        long index = strtol(list, &end, 10);
        if (end == list || index < 0 || index >= state.config.devices)
            break;
        state.devices.push_back(
            {static_cast<int>(index), state.config.reserved_bytes, cudaSuccess, nullptr});
        list = *end == ',' ? end + 1 : "";
    }
}

static void finish_strictly()
{
    char leaks[1024];
    size_t count = cusim_report_count(nullptr), alive = cusim_leaks(leaks, sizeof leaks);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "cusim: %s\n", cusim_report(i));
    if (alive)
        fprintf(stderr, "cusim: left behind:\n%s", leaks);
    if (count || alive)
        _exit(99);
}

void boot()
{
    static bool first = true;
    if (state.booted)
        return;
    if (first) {
        first = false;
        if (!state.generation)
            cusim_config_default(&state.config);
        plan_fault_from_setting();
        if (setting_number("CUSIM_STRICT", 0))
            atexit(finish_strictly);
    }
    state.booted = true;
    state.generation++;
    state.random = state.config.seed * 2654435761u + 1;
    state.next_line = 0;
    state.stats = {};
    state.hosts = {std::make_shared<Host>(Host{state.next_line++, {0}})};
    this_thread().host = state.hosts[0];
    find_devices();
    for (size_t i = 0; i < state.devices.size(); i++)
        state.stats.used_bytes += state.devices[i].used;
    state.stats.peak_bytes = state.stats.used_bytes;
    space_open();
    install_fault_handler();
    start_runner();
    for (size_t i = 0; i < state.devices.size(); i++)
        state.devices[i].legacy = &create_stream(0, static_cast<int>(i));
}

static void shut_down(Lock &lock)
{
    drain(lock);
    while (!state.streams.empty())
        remove_stream(lock, *state.streams.begin()->second);
    stop_runner(lock);
    forget_guards();
    for (auto &entry : state.allocs)
        release_alloc(entry.second);
    state.allocs.clear();
    state.events.clear();
    state.handles.clear();
    state.tokens.clear();
    space_close();
    state.booted = false;
}

} // namespace cusim

using namespace cusim;

void cusim_config_default(cusim_config *out)
{
    cusim_config c{};
    c.devices = static_cast<int>(setting_number("CUSIM_DEVICES", 1));
    c.unusable = static_cast<int>(setting_number("CUSIM_UNUSABLE", 0));
    c.driver_version = 13000;
    c.device_bytes = setting_number("CUSIM_DEVICE_BYTES", 256u << 20);
    c.granularity_bytes = 512;
    c.blas_default_bytes = 4u << 20;
    c.scheduler = setting_scheduler();
    c.seed = setting_number("CUSIM_SEED", 1);
    c.max_delay_us = static_cast<unsigned>(setting_number("CUSIM_DELAY_US", 0));
    c.check_order = true;
    c.guard_pinned = setting_number("CUSIM_GUARD", 0) != 0;
    *out = c;
}

void cusim_reset(const cusim_config *config)
{
    cusim_config next;
    if (config)
        next = *config;
    else
        cusim_config_default(&next);
    Lock lock;
    if (state.booted)
        shut_down(lock);
    state.faults.clear();
    state.fail_next = cudaSuccess;
    state.calls.clear();
    state.calls_total = 0;
    state.reports.clear();
    state.config = next;
    state.generation++; // also: a configuration has been given
    boot();
}

size_t cusim_report_count(const char *kind)
{
    Lock lock;
    collect_host_faults();
    size_t count = 0, length = kind ? strlen(kind) : 0;
    for (const std::string &text : state.reports)
        count += !kind || (!text.compare(0, length, kind) && text[length] == ':');
    return count;
}

const char *cusim_report(size_t index)
{
    Lock lock;
    collect_host_faults();
    return index < state.reports.size() ? state.reports[index].c_str() : "";
}

size_t cusim_leaks(char *text, size_t size)
{
    Lock lock;
    std::string lines;
    size_t count = 0;
    auto add = [&](const std::string &line) {
        count++;
        lines += line + "\n";
    };
    for (const auto &entry : state.allocs) {
        const Alloc &a = entry.second;
        add(std::to_string(a.bytes) +
            (a.place == Place::device ? " bytes of device memory" : " bytes of pinned memory"));
    }
    for (const auto &entry : state.streams)
        if (entry.second.get() != state.devices[static_cast<size_t>(entry.second->device)].legacy)
            add("stream " + std::to_string(entry.first));
    for (size_t i = 0; i < state.events.size(); i++)
        add("an event");
    for (size_t i = 0; i < state.handles.size(); i++)
        add("a cuBLAS handle");
    if (text && size)
        snprintf(text, size, "%s", lines.c_str());
    return count;
}

void cusim_get_stats(cusim_stats *out)
{
    Lock lock;
    *out = state.stats;
}
