// What is ordered before what: vector clocks of streams and host threads, and the recent accesses
// to each allocation. Checked when work is queued, so the verdict does not depend on when it runs.
#include "sim.h"

#include <algorithm>

namespace cusim
{

uint64_t known(const Clock &clock, unsigned line)
{
    return line < clock.size() ? clock[line] : 0;
}

void join(Clock &into, const Clock &other)
{
    if (into.size() < other.size())
        into.resize(other.size());
    for (size_t i = 0; i < other.size(); i++)
        into[i] = std::max(into[i], other[i]);
}

// Exact for rows at a pitch; the work is that of the side with fewer rows.
bool overlap(const Range &a, const Range &b)
{
    if (a.empty() || b.empty() || a.end() <= b.base || b.end() <= a.base)
        return false;
    if (a.rows > b.rows)
        return overlap(b, a);
    for (uint64_t row = 0; row < a.rows; row++) {
        uint64_t begin = a.base + row * a.pitch, end = begin + a.width;
        // The first row of b that ends behind begin.
        uint64_t first = begin < b.base + b.width ? 0
                         : b.rows == 1            ? 1
                                                  : (begin - b.base - b.width) / b.pitch + 1;
        if (first < b.rows && b.base + first * b.pitch < end)
            return true;
    }
    return false;
}

static Range simplest(const Range &r)
{
    if (r.rows > 1 && r.pitch == r.width)
        return {r.base, r.width * r.rows, r.width * r.rows, 1};
    return r;
}

// True only if every byte of inner is in outer; may miss some odd pitches.
bool contains(const Range &outer_range, const Range &inner_range)
{
    Range outer = simplest(outer_range), inner = simplest(inner_range);
    if (inner.base < outer.base || inner.end() > outer.end())
        return false;
    if (outer.rows == 1)
        return true;
    uint64_t row = (inner.base - outer.base) / outer.pitch;
    uint64_t column = (inner.base - outer.base) % outer.pitch;
    return (inner.rows == 1 || inner.pitch == outer.pitch) && column + inner.width <= outer.width &&
           row + inner.rows <= outer.rows;
}

bool hosts_know(unsigned line, uint64_t number)
{
    for (const auto &host : state.hosts)
        if (known(host->clock, line) < number)
            return false;
    return true;
}

static std::string line_name(unsigned line)
{
    for (const auto &host : state.hosts)
        if (host->line == line)
            return line == state.hosts[0]->line ? "the host"
                                                : "host thread " + std::to_string(line);
    return "stream " + std::to_string(line);
}

static bool ordered(const Record &earlier, const Actor &actor)
{
    return earlier.line == actor.line || earlier.number <= known(*actor.clock, earlier.line);
}

static const char *verb(const Access &access)
{
    return access.write ? "write" : "read";
}

static void report_conflict(const Record &earlier, const Access &access, const Actor &actor,
                            const char *kind, const std::string &where)
{
    report(std::string(kind) + ": " + verb(access) + " by " + actor.what + " of " +
           line_name(actor.line) + " is not ordered after the " + verb(earlier.access) + " by " +
           earlier.what + " of " + line_name(earlier.line) + ", in " + where);
}

void check_access(Track &track, const Access &access, const Actor &actor, const char *kind,
                  const std::string &where)
{
    if (!state.config.check_order || access.range.empty())
        return;
    for (const Record &earlier : track)
        if ((access.write || earlier.access.write) && !ordered(earlier, actor) &&
            overlap(access.range, earlier.access.range))
            report_conflict(earlier, access, actor, kind, where);
    // Whatever conflicts with a forgotten access conflicts with this one too, or comes from a host
    // that knows of it.
    auto forget = [&](const Record &earlier) {
        return hosts_know(earlier.line, earlier.number) ||
               (ordered(earlier, actor) && (access.write || !earlier.access.write) &&
                contains(access.range, earlier.access.range));
    };
    track.erase(std::remove_if(track.begin(), track.end(), forget), track.end());
    if (!hosts_know(actor.line, actor.number))
        track.push_back({access, actor.line, actor.number, actor.what});
}

Host &this_host()
{
    ThreadState &thread = this_thread();
    if (!state.config.separate_hosts)
        return *state.hosts[0];
    if (!thread.host) {
        // Who started the thread is not known: it is taken for the first host.
        thread.host = std::make_shared<Host>(Host{state.next_line++, state.hosts[0]->clock});
        state.hosts.push_back(thread.host);
    }
    return *thread.host;
}

void host_learns(const Clock &clock)
{
    join(this_host().clock, clock);
    refresh_guards();
}

static uint64_t next_action(Host &host)
{
    if (host.clock.size() <= host.line)
        host.clock.resize(host.line + 1);
    return ++host.clock[host.line];
}

static void host_access(const void *ptr, size_t bytes, bool write, const char *what)
{
    Lock lock;
    boot();
    Alloc *alloc = find_alloc(address(ptr));
    if (!bytes || (!alloc && !is_device(address(ptr))))
        return;
    if (!alloc || alloc->place == Place::device) {
        report(std::string("HOST: ") + what + " is given device memory");
        return;
    }
    Host &host = this_host();
    Access access{{address(ptr), bytes, bytes, 1}, write};
    if (access.range.end() > alloc->base + alloc->bytes)
        report(std::string("BOUNDS: ") + what + " reaches outside its pinned memory");
    uint64_t number = next_action(host);
    check_access(alloc->track, access,
                 {host.line, number, &host.clock, std::string("'") + what + "'"}, "ORDER",
                 describe(access.range, *alloc));
}

} // namespace cusim

using namespace cusim;

void cusim_host_read(const void *ptr, size_t bytes, const char *what)
{
    host_access(ptr, bytes, false, what);
}

void cusim_host_write(const void *ptr, size_t bytes, const char *what)
{
    host_access(ptr, bytes, true, what);
}

void cusim_give(const void *token)
{
    Lock lock;
    boot();
    if (state.config.separate_hosts)
        join(state.tokens[token], this_host().clock);
}

void cusim_take(const void *token)
{
    Lock lock;
    boot();
    if (state.config.separate_hosts)
        host_learns(state.tokens[token]);
}
