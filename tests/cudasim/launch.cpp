// Launches: of kernels compiled for the simulator, and of the launch stubs in objects made by nvcc,
// whose kernels' twins are found by name.
// First: it declares what is exported.
#include "sim.h"

#include "cusim_kernel.h"

using namespace cusim;

namespace
{

std::map<std::string, cusim_binder> &twins()
{
    static auto &map = *new std::map<std::string, cusim_binder>; // filled before main
    return map;
}

std::map<const void *, std::string> &stubs()
{
    static auto &map = *new std::map<const void *, std::string>;
    return map;
}

struct Shape {
    dim3 grid, block;
    size_t shared_bytes;
};

// Of a <<<>>>, between its parentheses and its stub.
struct Configuration {
    Shape shape;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

} // namespace

static bool shape_fits(const Shape &s)
{
    uint64_t threads = static_cast<uint64_t>(s.block.x) * s.block.y * s.block.z;
    return s.grid.x && s.grid.y && s.grid.z && threads && threads <= 1024 &&
           s.grid.x <= 0x7fffffffu && s.grid.y <= 65535 && s.grid.z <= 65535 && s.block.z <= 64 &&
           s.shared_bytes <= (48u << 10);
}

static cudaError_t queue_grid(Call &call, const char *name, const Shape &shape, cudaStream_t handle,
                              std::vector<Access> accesses, std::function<void()> body)
{
    Stream *stream = find_stream(handle);
    if (!stream || stream->device != this_thread().device)
        return cudaErrorInvalidResourceHandle;
    if (state.config.no_kernel_image)
        return cudaErrorNoKernelImageForDevice;
    if (!shape_fits(shape))
        return cudaErrorInvalidConfiguration;
    uint64_t seed = next_random(state.random);
    OpPtr op = make_op(name, std::move(accesses),
                       [=] { return run_grid(*stream, shape.grid, shape.block, body, seed); });
    op->kernel = true;
    return enqueue(call, *stream, op);
}

cudaError_t cusim_launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                         cudaStream_t stream, std::initializer_list<cusim_access> accesses,
                         std::function<void()> body)
{
    Call call("cudaLaunchKernel");
    if (call.failed())
        return call.finish(cudaSuccess);
    std::vector<Access> list;
    for (const cusim_access &a : accesses)
        list.push_back({{address(a.ptr), a.row_bytes, a.pitch, a.rows}, a.write});
    return call.finish(
        queue_grid(call, name, {grid, block, shared_bytes}, stream, list, std::move(body)));
}

bool cusim_register_kernel(const char *name, cusim_binder bind)
{
    twins()[name] = bind;
    return true;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    Call call("cudaLaunchKernel");
    if (call.failed())
        return call.finish(cudaSuccess);
    auto stub = stubs().find(function);
    auto twin = stub == stubs().end() ? twins().end() : twins().find(stub->second);
    if (twin == twins().end())
        return call.finish(cudaErrorInvalidDeviceFunction);
    return call.finish(queue_grid(call, twin->first.c_str(), {grid, block, shared_bytes}, stream,
                                  {}, twin->second(arguments)));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *)
{
    Call call("cudaFuncGetAttributes");
    if (call.failed() || state.config.no_kernel_image)
        return call.finish(cudaErrorNoKernelImageForDevice);
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    return call.finish(cudaSuccess);
}

// What nvcc's code calls at start and for <<<>>>.
extern "C" {
CUSIM_API void **__cudaRegisterFatBinary(void *image);
CUSIM_API void __cudaRegisterFatBinaryEnd(void **image);
CUSIM_API void __cudaUnregisterFatBinary(void **image);
CUSIM_API char __cudaInitModule(void **image);
CUSIM_API void __cudaRegisterFunction(void **image, const char *stub, char *function,
                                      const char *name, int limit, uint3 *, uint3 *, dim3 *, dim3 *,
                                      int *);
CUSIM_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                               cudaStream_t stream);
CUSIM_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                                 cudaStream_t *stream);
CUSIM_API cudaError_t __cudaGetKernel(const void **kernel, const void *stub);
CUSIM_API cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block,
                                         void **arguments, size_t shared_bytes,
                                         cudaStream_t stream);
}

void **__cudaRegisterFatBinary(void *)
{
    static void *image;
    return &image;
}

void __cudaRegisterFatBinaryEnd(void **) {}

void __cudaUnregisterFatBinary(void **) {}

char __cudaInitModule(void **)
{
    return 1;
}

void __cudaRegisterFunction(void **, const char *stub, char *, const char *name, int, uint3 *,
                            uint3 *, dim3 *, dim3 *, int *)
{
    stubs()[stub] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream)
{
    configurations.push_back({{grid, block, shared_bytes}, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                       cudaStream_t *stream)
{
    if (configurations.empty())
        return cudaErrorInvalidConfiguration;
    const Configuration &c = configurations.back();
    *grid = c.shape.grid;
    *block = c.shape.block;
    *shared_bytes = c.shape.shared_bytes;
    *stream = c.stream;
    configurations.pop_back();
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(const void **kernel, const void *stub)
{
    *kernel = stub;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
