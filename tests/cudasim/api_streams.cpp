// Streams and events.
#include "sim.h"

using namespace cusim;

static Event *find_event(cudaEvent_t handle)
{
    auto found = state.events.find(reinterpret_cast<Event *>(handle));
    return found == state.events.end() ? nullptr : found->second.get();
}

// An event is recorded and waited for by host threads: like memory, one may not record while
// another may still be about to wait for what was recorded before.
static void use_event(Event &event, bool write, const char *what)
{
    if (!state.config.separate_hosts)
        return;
    Host &host = this_host();
    if (host.clock.size() <= host.line)
        host.clock.resize(host.line + 1);
    uint64_t number = ++host.clock[host.line];
    check_access(event.track, {{0, 1, 1, 1}, write}, {host.line, number, &host.clock, what},
                 "HANDOVER", "an event");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags)
{
    Call call("cudaStreamCreateWithFlags");
    if (call.failed())
        return call.finish(cudaSuccess);
    if (!out || flags > cudaStreamNonBlocking)
        return call.finish(cudaErrorInvalidValue);
    *out = reinterpret_cast<cudaStream_t>(&create_stream(flags, this_thread().device));
    return call.finish(cudaSuccess);
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}

// The real call returns at once and lets queued work finish: no order comes from it here either.
cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    Call call("cudaStreamDestroy");
    Stream *stream = state.devices.empty() || !handle ? nullptr : find_stream(handle);
    if (!stream || stream == state.devices[static_cast<size_t>(stream->device)].legacy)
        return call.finish(cudaErrorInvalidResourceHandle);
    remove_stream(call.lock, *stream);
    return call.finish(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    Call call("cudaStreamSynchronize");
    if (call.failed())
        return call.finish(cudaSuccess);
    Stream *stream = find_stream(handle);
    if (!stream)
        return call.finish(cudaErrorInvalidResourceHandle);
    Clock clock = stream->clock;
    int device = stream->device;
    await_op(call.lock, stream->last);
    host_learns(clock);
    return call.finish(state.devices[static_cast<size_t>(device)].sticky);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    Call call("cudaStreamQuery");
    if (call.failed())
        return call.finish(cudaSuccess);
    Stream *stream = find_stream(handle);
    if (!stream)
        return call.finish(cudaErrorInvalidResourceHandle);
    Clock clock = stream->clock;
    int device = stream->device;
    if (!poll_op(call.lock, stream->last))
        return call.finish(cudaErrorNotReady);
    host_learns(clock);
    return call.finish(state.devices[static_cast<size_t>(device)].sticky);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int)
{
    Call call("cudaStreamWaitEvent");
    if (call.failed())
        return call.finish(cudaSuccess);
    Stream *stream = find_stream(handle);
    Event *event = find_event(event_handle);
    if (!stream || !event)
        return call.finish(cudaErrorInvalidResourceHandle);
    use_event(*event, false, "cudaStreamWaitEvent");
    if (!event->op)
        return call.finish(cudaSuccess); // never recorded: nothing to wait for
    OpPtr op = make_op("cudaStreamWaitEvent", {}, nullptr);
    op->after.push_back(event->op);
    join(stream->clock, event->clock);
    return call.finish(enqueue(call, *stream, op));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
    Call call("cudaEventCreateWithFlags");
    if (call.failed())
        return call.finish(cudaSuccess);
    if (!out)
        return call.finish(cudaErrorInvalidValue);
    auto event = std::make_unique<Event>();
    event->flags = flags;
    event->device = this_thread().device;
    *out = reinterpret_cast<cudaEvent_t>(event.get());
    state.events.emplace(event.get(), std::move(event));
    return call.finish(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    Call call("cudaEventDestroy");
    return call.finish(state.events.erase(reinterpret_cast<Event *>(handle))
                           ? cudaSuccess
                           : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
    Call call("cudaEventRecord");
    if (call.failed())
        return call.finish(cudaSuccess);
    Stream *stream = find_stream(stream_handle);
    Event *event = find_event(handle);
    if (!stream || !event || stream->device != event->device)
        return call.finish(cudaErrorInvalidResourceHandle);
    use_event(*event, true, "cudaEventRecord");
    OpPtr op = make_op("cudaEventRecord", {}, nullptr);
    event->op = op;
    cudaError_t error = enqueue(call, *stream, op);
    event->clock = stream->clock;
    return call.finish(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    Call call("cudaEventSynchronize");
    if (call.failed())
        return call.finish(cudaSuccess);
    Event *event = find_event(handle);
    if (!event)
        return call.finish(cudaErrorInvalidResourceHandle);
    use_event(*event, false, "cudaEventSynchronize");
    Clock clock = event->clock; // another thread may record it again meanwhile
    int device = event->device;
    await_op(call.lock, event->op);
    host_learns(clock);
    return call.finish(state.devices[static_cast<size_t>(device)].sticky);
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    Call call("cudaEventQuery");
    if (call.failed())
        return call.finish(cudaSuccess);
    Event *event = find_event(handle);
    if (!event)
        return call.finish(cudaErrorInvalidResourceHandle);
    use_event(*event, false, "cudaEventQuery");
    Clock clock = event->clock;
    int device = event->device;
    if (!poll_op(call.lock, event->op))
        return call.finish(cudaErrorNotReady);
    host_learns(clock);
    return call.finish(state.devices[static_cast<size_t>(device)].sticky);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start_handle, cudaEvent_t end_handle)
{
    Call call("cudaEventElapsedTime");
    if (call.failed())
        return call.finish(cudaSuccess);
    Event *start = find_event(start_handle), *end = find_event(end_handle);
    if (!start || !end || !start->op || !end->op ||
        ((start->flags | end->flags) & cudaEventDisableTiming))
        return call.finish(cudaErrorInvalidResourceHandle);
    if (!start->op->done || !end->op->done)
        return call.finish(cudaErrorNotReady);
    *ms = static_cast<float>((end->op->seconds - start->op->seconds) * 1e3);
    return call.finish(cudaSuccess);
}
