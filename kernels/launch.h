/* How a kernel is launched: one source for two compilers. nvcc makes the kernels that ship; g++
 * makes the same text run on the simulated CUDA runtime (JK_CUSIM), whose <cusim_kernel.h> then
 * gives every name below another meaning, and the words of CUDA C++ besides.
 *
 *     extern "C" __global__ void jk_k_fill(int64_t n, float value, float *x) { ... }
 *     JK_KERNEL(jk_k_fill)
 *
 *     return JK_LAUNCH(jk_k_fill, blocks, threads, 0, stream,
 *                      JK_ACCESS(JK_WRITES(x, (size_t)n * sizeof *x)), n, value, x);
 *
 * JK_LAUNCH is an expression, the cudaError_t of the launch. Grid and block are dim3 or a number.
 * What follows the accesses are the kernel's own parameters, converted to its parameter types;
 * pointers are passed as such, never inside a struct. JK_ACCESS lists every byte of device memory
 * that the kernel may touch, for the checker of the order of accesses; nvcc drops it unevaluated.
 * JK_KERNEL makes a kernel known by name, so that a launch from an object made by nvcc finds its
 * twin. */
#ifndef JK_KERNELS_LAUNCH_H
#define JK_KERNELS_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef JK_CUSIM

#include <cusim_kernel.h>

#else

template <class T> struct jk_same {
    typedef T type;
};

/* Unlike <<<>>>, returns the launch's own error. */
template <class... P>
static cudaError_t jk_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                             cudaStream_t stream, typename jk_same<P>::type... args)
{
    void *list[] = {&args...};
    return cudaLaunchKernel((const void *)kernel, grid, block, list, shared_bytes, stream);
}

#define JK_LAUNCH(kernel, grid, block, shared_bytes, stream, access, ...)                          \
    jk_launch(kernel, grid, block, shared_bytes, stream, __VA_ARGS__)
#define JK_KERNEL(kernel) static_assert(sizeof(#kernel) > 1, "a kernel's name");

/* A list of JK_READS and JK_WRITES: `bytes` from `ptr` on, or `rows` rows of `row_bytes` bytes that
 * begin `pitch` bytes apart. */
#define JK_ACCESS(...)
#define JK_READS(ptr, bytes)
#define JK_WRITES(ptr, bytes)
#define JK_READS_2D(ptr, row_bytes, pitch, rows)
#define JK_WRITES_2D(ptr, row_bytes, pitch, rows)

#endif
#endif
