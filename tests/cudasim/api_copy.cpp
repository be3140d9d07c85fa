// Copies and fills. How far pageable memory and the plain calls make the host wait follows NVIDIA's
// description of the runtime's synchronisation behaviour.
#include "sim.h"

#include <cstring>

using namespace cusim;

struct Copy {
    void *dst;
    size_t dst_pitch;
    const void *src;
    size_t src_pitch;
    size_t width, rows;
    cudaMemcpyKind kind;
    bool plain; // not ...Async
};

static void copy_rows(char *dst, size_t dst_pitch, const char *src, size_t src_pitch, size_t width,
                      size_t rows)
{
    for (size_t row = 0; row < rows; row++)
        memcpy(dst + row * dst_pitch, src + row * src_pitch, width);
}

static bool kind_fits(const Copy &copy, bool to_device, bool from_device)
{
    switch (copy.kind) {
    case cudaMemcpyHostToHost:
        return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
        return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
        return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
        return to_device && from_device;
    default:
        return true;
    }
}

static void count_bytes(bool to_device, bool from_device, uint64_t bytes)
{
    if (to_device && from_device)
        state.stats.d2d_bytes += bytes;
    else if (to_device)
        state.stats.h2d_bytes += bytes;
    else if (from_device)
        state.stats.d2h_bytes += bytes;
}

static OpPtr copy_op(const char *name, const Copy &c, std::shared_ptr<std::vector<char>> staged)
{
    bool to_device = is_device(address(c.dst)), from_device = is_device(address(c.src));
    std::string label = std::string(name) + (to_device     ? from_device ? " D2D" : " H2D"
                                             : from_device ? " D2H"
                                                           : " H2H");
    char *dst = pointer(reachable(address(c.dst)));
    const char *src = staged ? staged->data() : pointer(reachable(address(c.src)));
    size_t src_pitch = staged ? c.width : c.src_pitch;
    return make_op(label,
                   {{{address(c.src), c.width, c.src_pitch, c.rows}, false},
                    {{address(c.dst), c.width, c.dst_pitch, c.rows}, true}},
                   [=] {
                       (void)staged; // lives as long as this
                       copy_rows(dst, c.dst_pitch, src, src_pitch, c.width, c.rows);
                       return cudaSuccess;
                   });
}

static cudaError_t queue_copy(Call &call, const Copy &c, Stream &stream)
{
    bool to_device = is_device(address(c.dst)), from_device = is_device(address(c.src));
    bool src_pageable = !from_device && !find_alloc(address(c.src));
    bool dst_pageable = !to_device && !find_alloc(address(c.dst));
    bool wait = c.plain && !(to_device && from_device);
    std::shared_ptr<std::vector<char>> staged;
    int device = stream.device;
    if (!c.plain && (src_pageable || dst_pageable)) {
        state.stats.pageable_copies++;
        wait = dst_pageable;
    }
    if (to_device && src_pageable) {
        if (c.plain) {
            Clock clock = stream.clock;
            await_op(call.lock, stream.last);
            host_learns(clock);
        }
        // The call returns once the bytes are staged; that the device has them, it does not say.
        staged = std::make_shared<std::vector<char>>(c.width * c.rows);
        copy_rows(staged->data(), c.width, static_cast<const char *>(c.src), c.src_pitch, c.width,
                  c.rows);
        wait = false;
    }
    count_bytes(to_device, from_device, c.width * c.rows);
    OpPtr op = copy_op(call.name, c, staged);
    cudaError_t error = enqueue(call, stream, op);
    if (!wait)
        return error;
    Clock clock = stream.clock;
    await_op(call.lock, op);
    host_learns(clock);
    return state.devices[static_cast<size_t>(device)].sticky;
}

static cudaError_t copy_call(const char *name, Copy c, cudaStream_t handle)
{
    Call call(name);
    if (call.failed())
        return call.finish(cudaSuccess);
    Stream *stream = find_stream(handle);
    if (!stream)
        return call.finish(cudaErrorInvalidResourceHandle);
    bool one_piece = c.rows <= 1 || (c.dst_pitch == c.width && c.src_pitch == c.width);
    if (!one_piece && (c.dst_pitch > max_pitch || c.src_pitch > max_pitch))
        return call.finish(cudaErrorInvalidPitchValue);
    if (c.rows > 1 && (c.width > c.dst_pitch || c.width > c.src_pitch))
        return call.finish(cudaErrorInvalidPitchValue);
    if (!kind_fits(c, is_device(address(c.dst)), is_device(address(c.src)))) {
        report(std::string("DIRECTION: ") + name + " of kind " + std::to_string(c.kind) +
               " between other memory");
        return call.finish(cudaErrorInvalidValue);
    }
    if (!c.width || !c.rows)
        return call.finish(cudaSuccess);
    state.stats.foreign_copies += stream->device != this_thread().device;
    return call.finish(queue_copy(call, c, *stream));
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    return copy_call("cudaMemcpy", {dst, count, src, count, count, 1, kind, true}, nullptr);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return copy_call("cudaMemcpyAsync", {dst, count, src, count, count, 1, kind, false}, stream);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return copy_call("cudaMemcpy2D", {dst, dst_pitch, src, src_pitch, width, height, kind, true},
                     nullptr);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    return copy_call("cudaMemcpy2DAsync",
                     {dst, dst_pitch, src, src_pitch, width, height, kind, false}, stream);
}

static cudaError_t fill_call(const char *name, void *ptr, int value, size_t count,
                             cudaStream_t handle)
{
    Call call(name);
    if (call.failed())
        return call.finish(cudaSuccess);
    Stream *stream = find_stream(handle);
    if (!stream)
        return call.finish(cudaErrorInvalidResourceHandle);
    if (!is_device(address(ptr)))
        return call.finish(cudaErrorInvalidValue);
    if (!count)
        return call.finish(cudaSuccess);
    char *at = pointer(reachable(address(ptr)));
    return call.finish(
        enqueue(call, *stream, make_op(name, {{{address(ptr), count, count, 1}, true}}, [=] {
                    memset(at, value, count);
                    return cudaSuccess;
                })));
}

// Asynchronous to the host, for device memory.
cudaError_t cudaMemset(void *ptr, int value, size_t count)
{
    return fill_call("cudaMemset", ptr, value, count, nullptr);
}

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t count, cudaStream_t stream)
{
    return fill_call("cudaMemsetAsync", ptr, value, count, stream);
}
