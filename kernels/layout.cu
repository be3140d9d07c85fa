#include "kernels/device_kernels.h"
#include "kernels/device_loops.h"

__device__ static inline uint32_t reversed(uint32_t w)
{
    return w << 24 | (w & 0xff00u) << 8 | (w >> 8 & 0xff00u) | w >> 24;
}

typedef jk_pack<uint32_t, 4> quad;

template <int size> __device__ static inline quad reversed_elements(quad q)
{
    quad out;
    for (int j = 0; j < 4; j++)
        if (size == 2)
            out.v[j] = (q.v[j] & 0x00ff00ffu) << 8 | (q.v[j] >> 8 & 0x00ff00ffu);
        else
            out.v[j ^ (size / 4 - 1)] = reversed(q.v[j]);
    return out;
}

template <int size> struct swap_body {
    unsigned char *data;

    __device__ void one(int64_t i) const
    {
        unsigned char *element = data + i * size;
        for (int j = 0; j < size / 2; j++) {
            unsigned char kept = element[j];
            element[j] = element[size - 1 - j];
            element[size - 1 - j] = kept;
        }
    }
    __device__ void many(int64_t i) const
    {
        quad *q = (quad *)(data + i * size);
        *q = reversed_elements<size>(*q);
    }
};

#define DEFINE_SWAP(size)                                                                          \
    extern "C" __global__ void __launch_bounds__(JK_THREADS)                                       \
        jk_k_swap_##size(jk_span span, unsigned char *data)                                        \
    {                                                                                              \
        jk_each<16 / size>(span, swap_body<size>{data});                                           \
    }                                                                                              \
    JK_KERNEL(jk_k_swap_##size)                                                                    \
    static cudaError_t swap_##size(unsigned char *data, int64_t count, cudaStream_t stream)        \
    {                                                                                              \
        jk_span span = jk_split(count, 16 / size, data, size, data, size);                         \
        return JK_LAUNCH(jk_k_swap_##size, jk_span_blocks(span, 16 / size), JK_THREADS, 0, stream, \
                         JK_ACCESS(JK_WRITES(data, (size_t)count * size)), span, data);            \
    }

DEFINE_SWAP(2)
DEFINE_SWAP(4)
DEFINE_SWAP(8)
DEFINE_SWAP(16)

cudaError_t jk_cuda_swap_bytes(void *data, int64_t count, size_t size, cudaStream_t stream)
{
    unsigned char *bytes = (unsigned char *)data;
    if (count < 1 || size == 1)
        return cudaSuccess;
    switch (size) {
    case 2:
        return swap_2(bytes, count, stream);
    case 4:
        return swap_4(bytes, count, stream);
    case 8:
        return swap_8(bytes, count, stream);
    case 16:
        return swap_16(bytes, count, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* Rows of the source come into a square in shared memory and leave it as rows of the result, so
 * that both sides are read and written along rows. The square's rows are one element longer: a
 * column then lies in different banks. */
enum { side = 32, side_rows = JK_THREADS / side };

template <class Square> __device__ static void transpose(Square square, int64_t rows, int64_t cols)
{
    int64_t across = jk_ceil(cols, side), tiles = across * jk_ceil(rows, side);
    int lane = (int)threadIdx.x;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t row = tile / across * side, col = tile % across * side;
        for (int j = (int)threadIdx.y; j < side; j += side_rows)
            if (row + j < rows && col + lane < cols)
                square.load(j, lane, row + j, col + lane);
        __syncthreads();
        for (int j = (int)threadIdx.y; j < side; j += side_rows)
            if (col + j < cols && row + lane < rows)
                square.store(lane, j, row + lane, col + j);
        __syncthreads();
    }
}

template <class U> struct unit_square {
    U (*square)[side + 1];
    U *dst;
    int64_t dst_ld;
    const U *src;
    int64_t src_ld;

    __device__ void load(int j, int i, int64_t row, int64_t col) const
    {
        square[j][i] = src[row * src_ld + col];
    }
    __device__ void store(int j, int i, int64_t row, int64_t col) const
    {
        dst[col * dst_ld + row] = square[j][i];
    }
};

/* Elements of any size and at any address. */
struct bytes_square {
    unsigned char (*square)[side + 1][16];
    unsigned char *dst;
    int64_t dst_ld;
    const unsigned char *src;
    int64_t src_ld;
    int size;

    __device__ void load(int j, int i, int64_t row, int64_t col) const
    {
        for (int b = 0; b < size; b++)
            square[j][i][b] = src[(row * src_ld + col) * size + b];
    }
    __device__ void store(int j, int i, int64_t row, int64_t col) const
    {
        for (int b = 0; b < size; b++)
            dst[(col * dst_ld + row) * size + b] = square[j][i][b];
    }
};

static unsigned tile_blocks(int64_t rows, int64_t cols)
{
    int64_t tiles = jk_ceil(rows, side) * jk_ceil(cols, side);
    return (unsigned)(tiles < JK_MAX_BLOCKS ? tiles : JK_MAX_BLOCKS);
}

#define TRANSPOSE_ACCESS(size)                                                                     \
    JK_ACCESS(JK_READS_2D(src, (size_t)cols *size, (size_t)src_ld *size, (size_t)rows),            \
              JK_WRITES_2D(dst, (size_t)rows *size, (size_t)dst_ld *size, (size_t)cols))

#define DEFINE_TRANSPOSE(name, unit)                                                               \
    extern "C" __global__ void __launch_bounds__(JK_THREADS) jk_k_transpose_##name(                \
        unit *dst, int64_t dst_ld, const unit *src, int64_t src_ld, int64_t rows, int64_t cols)    \
    {                                                                                              \
        __shared__ unit square[side][side + 1];                                                    \
        transpose(unit_square<unit>{square, dst, dst_ld, src, src_ld}, rows, cols);                \
    }                                                                                              \
    JK_KERNEL(jk_k_transpose_##name)                                                               \
    static cudaError_t transpose_##name(void *dst, int64_t dst_ld, const void *src,                \
                                        int64_t src_ld, int64_t rows, int64_t cols,                \
                                        cudaStream_t stream)                                       \
    {                                                                                              \
        return JK_LAUNCH(jk_k_transpose_##name, tile_blocks(rows, cols), dim3(side, side_rows), 0, \
                         stream, TRANSPOSE_ACCESS(sizeof(unit)), (unit *)dst, dst_ld,              \
                         (const unit *)src, src_ld, rows, cols);                                   \
    }

DEFINE_TRANSPOSE(1, uint8_t)
DEFINE_TRANSPOSE(2, uint16_t)
DEFINE_TRANSPOSE(4, uint32_t)
DEFINE_TRANSPOSE(8, uint64_t)
DEFINE_TRANSPOSE(16, quad)

extern "C" __global__ void __launch_bounds__(JK_THREADS)
    jk_k_transpose_bytes(unsigned char *dst, int64_t dst_ld, const unsigned char *src,
                         int64_t src_ld, int64_t rows, int64_t cols, int size)
{
    __shared__ unsigned char square[side][side + 1][16];
    transpose(bytes_square{square, dst, dst_ld, src, src_ld, size}, rows, cols);
}
JK_KERNEL(jk_k_transpose_bytes)

static cudaError_t transpose_bytes(void *dst, int64_t dst_ld, const void *src, int64_t src_ld,
                                   int64_t rows, int64_t cols, size_t size, cudaStream_t stream)
{
    return JK_LAUNCH(jk_k_transpose_bytes, tile_blocks(rows, cols), dim3(side, side_rows), 0,
                     stream, TRANSPOSE_ACCESS(size), (unsigned char *)dst, dst_ld,
                     (const unsigned char *)src, src_ld, rows, cols, (int)size);
}

cudaError_t jk_cuda_transpose(void *dst, int64_t dst_ld, const void *src, int64_t src_ld,
                              int64_t rows, int64_t cols, size_t size, cudaStream_t stream)
{
    if (rows < 1 || cols < 1)
        return cudaSuccess;
    if (size < 1 || size > 16)
        return cudaErrorInvalidValue;
    if (((uintptr_t)dst | (uintptr_t)src) % size != 0)
        return transpose_bytes(dst, dst_ld, src, src_ld, rows, cols, size, stream);
    switch (size) {
    case 1:
        return transpose_1(dst, dst_ld, src, src_ld, rows, cols, stream);
    case 2:
        return transpose_2(dst, dst_ld, src, src_ld, rows, cols, stream);
    case 4:
        return transpose_4(dst, dst_ld, src, src_ld, rows, cols, stream);
    case 8:
        return transpose_8(dst, dst_ld, src, src_ld, rows, cols, stream);
    case 16:
        return transpose_16(dst, dst_ld, src, src_ld, rows, cols, stream);
    default:
        return transpose_bytes(dst, dst_ld, src, src_ld, rows, cols, size, stream);
    }
}
