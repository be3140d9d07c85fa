// What a kernel's source needs besides C++ when g++ compiles it for the simulator: the words of
// CUDA C++, and the launch. Included by kernels/launch.h where JK_CUSIM is defined; the macros
// named JK_ mean what they mean there.
#ifndef CUSIM_KERNEL_H
#define CUSIM_KERNEL_H

#include "cusim.h"

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

struct cusim_thread {
    uint3 index, block;
    dim3 block_size, grid_size;
};

// Not C++'s thread_local: that is read through a function, here of another library.
extern __thread cusim_thread *cusim_self CUSIM_API;

extern "C" {
CUSIM_API void cusim_block_barrier(void);
CUSIM_API void cusim_warp_barrier(void);
// What the lane `from` of the same warp gave; the own value where there is no such thread.
CUSIM_API uint64_t cusim_exchange(uint64_t value, int from);
}

CUSIM_API cudaError_t cusim_launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                                   cudaStream_t stream,
                                   std::initializer_list<cusim_access> accesses,
                                   std::function<void()> body);

// Make from a launch's argument list a call of the kernel.
using cusim_binder = std::function<void()> (*)(void **arguments);
CUSIM_API bool cusim_register_kernel(const char *name, cusim_binder bind);

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __restrict__
#undef __launch_bounds__
#undef __forceinline__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __restrict__
// A block runs on one thread of the host from beginning to end.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __forceinline__ inline
#define threadIdx (cusim_self->index)
#define blockIdx (cusim_self->block)
#define blockDim (cusim_self->block_size)
#define gridDim (cusim_self->grid_size)
#define __syncthreads() cusim_block_barrier()
#define __syncwarp(...) cusim_warp_barrier()

inline int cusim_lane()
{
    const cusim_thread &t = *cusim_self;
    unsigned place = t.index.x + t.block_size.x * (t.index.y + t.block_size.y * t.index.z);
    return static_cast<int>(place % 32);
}

template <class T> T cusim_exchange_value(T value, int from)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "one register");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = cusim_exchange(bits, from);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> T __shfl_sync(unsigned, T value, int lane)
{
    return cusim_exchange_value(value, lane & 31);
}

template <class T> T __shfl_down_sync(unsigned, T value, unsigned delta)
{
    int from = cusim_lane() + static_cast<int>(delta);
    return cusim_exchange_value(value, from < 32 ? from : cusim_lane());
}

template <class T> T __shfl_xor_sync(unsigned, T value, int mask)
{
    return cusim_exchange_value(value, cusim_lane() ^ mask);
}

// A device pointer as the kernel may follow it; anything else as it is.
template <class T> T cusim_argument(T value)
{
    if constexpr (std::is_pointer_v<T>)
        return static_cast<T>(cusim_memory(value));
    else
        return value;
}

template <class T> struct cusim_same {
    using type = T;
};

template <class... P>
cudaError_t cusim_launch_kernel(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                size_t shared_bytes, cudaStream_t stream,
                                std::initializer_list<cusim_access> accesses,
                                typename cusim_same<P>::type... arguments)
{
    return cusim_launch(name, grid, block, shared_bytes, stream, accesses,
                        [=] { kernel(cusim_argument(arguments)...); });
}

template <class... P, size_t... I>
std::function<void()> cusim_bind(void (*kernel)(P...), void **arguments, std::index_sequence<I...>)
{
    std::tuple<P...> copies(*static_cast<std::remove_const_t<P> *>(arguments[I])...);
    return [=] { kernel(cusim_argument(std::get<I>(copies))...); };
}

template <auto kernel> struct cusim_twin;
template <class... P, void (*kernel)(P...)> struct cusim_twin<kernel> {
    static std::function<void()> bind(void **arguments)
    {
        return cusim_bind(kernel, arguments, std::index_sequence_for<P...>{});
    }
};

#define JK_LAUNCH(kernel, grid, block, shared_bytes, stream, access, ...)                          \
    cusim_launch_kernel(#kernel, kernel, grid, block, shared_bytes, stream, access, __VA_ARGS__)
#define JK_KERNEL(kernel)                                                                          \
    static const bool kernel##_registered =                                                        \
        cusim_register_kernel(#kernel, cusim_twin<kernel>::bind);
#define JK_ACCESS(...)                                                                             \
    std::initializer_list<cusim_access>                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define JK_READS(ptr, bytes)                                                                       \
    cusim_access                                                                                   \
    {                                                                                              \
        ptr, bytes, bytes, 1, false                                                                \
    }
#define JK_WRITES(ptr, bytes)                                                                      \
    cusim_access                                                                                   \
    {                                                                                              \
        ptr, bytes, bytes, 1, true                                                                 \
    }
#define JK_READS_2D(ptr, row_bytes, pitch, rows)                                                   \
    cusim_access                                                                                   \
    {                                                                                              \
        ptr, row_bytes, pitch, rows, false                                                         \
    }
#define JK_WRITES_2D(ptr, row_bytes, pitch, rows)                                                  \
    cusim_access                                                                                   \
    {                                                                                              \
        ptr, row_bytes, pitch, rows, true                                                          \
    }

#endif
