/* How fast pinned memory is copied to the device, from it, and both at once. */
#include "gpu.h"

#include <stdio.h>

enum { ROUNDS = 5 };

typedef struct side {
    void *host, *device;
    cudaStream_t stream;
} side;

static void open_side(side *s, size_t bytes)
{
    s->host = gpu_pin(bytes);
    gpu_must(cudaMalloc(&s->device, bytes), "device memory for copies");
    gpu_must(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "stream");
}

static void close_side(side *s)
{
    gpu_must(cudaStreamDestroy(s->stream), "stream");
    gpu_must(cudaFree(s->device), "free");
    gpu_must(cudaFreeHost(s->host), "free");
}

static void queue(const side *s, size_t bytes, size_t piece, int up)
{
    for (size_t at = 0; at < bytes; at += piece) {
        size_t size = bytes - at < piece ? bytes - at : piece;
        char *host = (char *)s->host + at, *device = (char *)s->device + at;
        gpu_must(up ? cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, s->stream)
                    : cudaMemcpyAsync(host, device, size, cudaMemcpyDeviceToHost, s->stream),
                 "copy");
    }
}

static double seconds(const side *up, const side *down, size_t bytes, size_t piece)
{
    double start = bench_now();
    if (up)
        queue(up, bytes, piece, 1);
    if (down)
        queue(down, bytes, piece, 0);
    if (up)
        gpu_must(cudaStreamSynchronize(up->stream), "copy");
    if (down)
        gpu_must(cudaStreamSynchronize(down->stream), "copy");
    return bench_now() - start;
}

gpu_rates gpu_copy_rates(size_t bytes, size_t piece)
{
    side up, down;
    double times[3][ROUNDS];
    open_side(&up, bytes);
    open_side(&down, bytes);
    seconds(&up, NULL, bytes, piece);
    gpu_must(cudaMemsetAsync(down.device, 0, bytes, down.stream), "memset");
    seconds(NULL, &down, bytes, piece);
    for (int i = 0; i < ROUNDS; i++) {
        times[0][i] = seconds(&up, NULL, bytes, piece);
        times[1][i] = seconds(NULL, &down, bytes, piece);
        times[2][i] = seconds(&up, &down, bytes, piece);
    }
    close_side(&down);
    close_side(&up);
    return (gpu_rates){.up = (double)bytes / bench_median(times[0], ROUNDS),
                       .down = (double)bytes / bench_median(times[1], ROUNDS),
                       .both = 2 * (double)bytes / bench_median(times[2], ROUNDS)};
}

void gpu_copies(size_t bytes)
{
    /* As jask stages them, and all at once. */
    size_t pieces[] = {(size_t)4 << 20, bytes};
    for (int i = 0; i < 2; i++) {
        gpu_rates rates = gpu_copy_rates(bytes, pieces[i]);
        printf("{\"bench\": \"gpu_copies\", \"bytes\": %zu, \"piece_bytes\": %zu, "
               "\"h2d_bytes_per_second\": %.4g, \"d2h_bytes_per_second\": %.4g, "
               "\"duplex_bytes_per_second\": %.4g}\n",
               bytes, pieces[i] < bytes ? pieces[i] : bytes, rates.up, rates.down, rates.both);
    }
}
