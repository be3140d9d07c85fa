#include "example.h"

#include "cusim.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <string.h>

#define TILES 7
#define SIDE 16
#define TILE (SIDE * SIDE)
#define TILE_BYTES (TILE * sizeof(float))
#define SLOTS 2
#define WORKSPACE ((size_t)16 << 10)

typedef struct example {
    example_wait skipped;
    int error; /* the first */
    cudaStream_t up, compute, down;
    cublasHandle_t blas;
    float *staged_in[SLOTS], *staged_out[SLOTS]; /* pinned */
    float *in[SLOTS], *out[SLOTS], *matrix;      /* device */
    void *workspace;
    cudaEvent_t filled[SLOTS], computed[SLOTS], emptied[SLOTS];
} example;

const char *example_wait_name(example_wait wait)
{
    static const char *const names[EXAMPLE_WAITS] = {
        "none",
        "the host before it refills staging memory",
        "uploads before they overwrite a slot",
        "products before they read a slot",
        "products before they overwrite a result",
        "downloads before they read a result",
        "the host before it reads a result",
        "the host before it reads the last results",
        "a record after the copy",
    };
    return names[wait];
}

static bool cuda(example *x, cudaError_t error)
{
    if (error && !x->error)
        x->error = (int)error;
    return !x->error;
}

static bool cublas(example *x, cublasStatus_t status)
{
    if (status && !x->error)
        x->error = 1000 + (int)status;
    return !x->error;
}

static bool open_slot(example *x, int s)
{
    return cuda(x, cudaHostAlloc((void **)&x->staged_in[s], TILE_BYTES, cudaHostAllocDefault)) &&
           cuda(x, cudaHostAlloc((void **)&x->staged_out[s], TILE_BYTES, cudaHostAllocDefault)) &&
           cuda(x, cudaMalloc((void **)&x->in[s], TILE_BYTES)) &&
           cuda(x, cudaMalloc((void **)&x->out[s], TILE_BYTES)) &&
           cuda(x, cudaEventCreateWithFlags(&x->filled[s], cudaEventDisableTiming)) &&
           cuda(x, cudaEventCreateWithFlags(&x->computed[s], cudaEventDisableTiming)) &&
           cuda(x, cudaEventCreateWithFlags(&x->emptied[s], cudaEventDisableTiming));
}

static bool open_all(example *x)
{
    int count = 0;
    bool ok = cuda(x, cudaGetDeviceCount(&count)) && cuda(x, cudaSetDevice(0)) &&
              cuda(x, cudaStreamCreateWithFlags(&x->up, cudaStreamNonBlocking)) &&
              cuda(x, cudaStreamCreateWithFlags(&x->compute, cudaStreamNonBlocking)) &&
              cuda(x, cudaStreamCreateWithFlags(&x->down, cudaStreamNonBlocking)) &&
              cuda(x, cudaMalloc((void **)&x->matrix, TILE_BYTES)) &&
              cuda(x, cudaMalloc(&x->workspace, WORKSPACE)) && cublas(x, cublasCreate(&x->blas)) &&
              cublas(x, cublasSetStream(x->blas, x->compute)) &&
              cublas(x, cublasSetWorkspace(x->blas, x->workspace, WORKSPACE));
    for (int s = 0; ok && s < SLOTS; s++)
        ok = open_slot(x, s);
    return ok;
}

static void close_all(example *x)
{
    if (x->up)
        cuda(x, cudaStreamSynchronize(x->up));
    if (x->compute)
        cuda(x, cudaStreamSynchronize(x->compute));
    if (x->down)
        cuda(x, cudaStreamSynchronize(x->down));
    for (int s = 0; s < SLOTS; s++) {
        cuda(x, cudaFreeHost(x->staged_in[s]));
        cuda(x, cudaFreeHost(x->staged_out[s]));
        cuda(x, cudaFree(x->in[s]));
        cuda(x, cudaFree(x->out[s]));
        if (x->filled[s])
            cuda(x, cudaEventDestroy(x->filled[s]));
        if (x->computed[s])
            cuda(x, cudaEventDestroy(x->computed[s]));
        if (x->emptied[s])
            cuda(x, cudaEventDestroy(x->emptied[s]));
    }
    if (x->blas)
        cublas(x, cublasDestroy(x->blas));
    cuda(x, cudaFree(x->matrix));
    cuda(x, cudaFree(x->workspace));
    if (x->up)
        cuda(x, cudaStreamDestroy(x->up));
    if (x->compute)
        cuda(x, cudaStreamDestroy(x->compute));
    if (x->down)
        cuda(x, cudaStreamDestroy(x->down));
}

static bool host_waits(example *x, example_wait which, cudaEvent_t event)
{
    return x->skipped == which || cuda(x, cudaEventSynchronize(event));
}

static bool stream_waits(example *x, example_wait which, cudaStream_t stream, cudaEvent_t event)
{
    return x->skipped == which || cuda(x, cudaStreamWaitEvent(stream, event, 0));
}

/* Small integers: products are exact, whatever the order of sums. */
static float element(int tile, int i)
{
    return (float)((tile * 31 + i * 7) % 9 - 4);
}

/* Column-major, with a one right of and below the diagonal too. */
static void fill_matrix(float *matrix)
{
    for (int i = 0; i < TILE; i++)
        matrix[i] = i / SIDE == i % SIDE ? 2.0f : i / SIDE == i % SIDE + 1 ? 1.0f : 0.0f;
}

static void read_result(example *x, int tile, float *results)
{
    int s = tile % SLOTS;
    cusim_host_read(x->staged_out[s], TILE_BYTES, "reading a result");
    memcpy(results + tile * TILE, x->staged_out[s], TILE_BYTES);
}

static bool upload(example *x, int tile)
{
    int s = tile % SLOTS;
    bool early = x->skipped == RECORD_TOO_EARLY;
    if (!host_waits(x, SKIP_HOST_BEFORE_REFILL, x->filled[s]))
        return false;
    cusim_host_write(x->staged_in[s], TILE_BYTES, "filling staging memory");
    for (int i = 0; i < TILE; i++)
        x->staged_in[s][i] = element(tile, i);
    return stream_waits(x, SKIP_UP_BEFORE_SLOT, x->up, x->computed[s]) &&
           (!early || cuda(x, cudaEventRecord(x->filled[s], x->up))) &&
           cuda(x, cudaMemcpy2DAsync(x->in[s], SIDE * sizeof(float), x->staged_in[s],
                                     SIDE * sizeof(float), SIDE * sizeof(float), SIDE,
                                     cudaMemcpyHostToDevice, x->up)) &&
           (early || cuda(x, cudaEventRecord(x->filled[s], x->up)));
}

static bool multiply(example *x, int tile)
{
    const float one = 1, zero = 0;
    int s = tile % SLOTS;
    return stream_waits(x, SKIP_PRODUCT_BEFORE_IN, x->compute, x->filled[s]) &&
           stream_waits(x, SKIP_PRODUCT_BEFORE_OUT, x->compute, x->emptied[s]) &&
           cublas(x, cublasSgemm(x->blas, CUBLAS_OP_N, CUBLAS_OP_N, SIDE, SIDE, SIDE, &one,
                                 x->matrix, SIDE, x->in[s], SIDE, &zero, x->out[s], SIDE)) &&
           cuda(x, cudaEventRecord(x->computed[s], x->compute));
}

static bool download(example *x, int tile, float *results)
{
    int s = tile % SLOTS;
    if (tile >= SLOTS) {
        if (!host_waits(x, SKIP_HOST_BEFORE_RESULT, x->emptied[s]))
            return false;
        read_result(x, tile - SLOTS, results);
    }
    return stream_waits(x, SKIP_DOWN, x->down, x->computed[s]) &&
           cuda(x, cudaMemcpyAsync(x->staged_out[s], x->out[s], TILE_BYTES, cudaMemcpyDeviceToHost,
                                   x->down)) &&
           cuda(x, cudaEventRecord(x->emptied[s], x->down));
}

static bool results_are_right(const float *matrix, const float *results)
{
    for (int tile = 0; tile < TILES; tile++)
        for (int col = 0; col < SIDE; col++)
            for (int row = 0; row < SIDE; row++) {
                float sum = 0;
                for (int t = 0; t < SIDE; t++)
                    sum += matrix[t * SIDE + row] * element(tile, col * SIDE + t);
                if (results[tile * TILE + col * SIDE + row] != sum)
                    return false;
            }
    return true;
}

static bool run_tiles(example *x, const float *matrix, float *results)
{
    bool ok = cuda(x, cudaMemcpy(x->matrix, matrix, TILE_BYTES, cudaMemcpyHostToDevice)) &&
              cuda(x, cudaDeviceSynchronize());
    for (int tile = 0; ok && tile < TILES; tile++)
        ok = upload(x, tile) && multiply(x, tile) && download(x, tile, results);
    for (int tile = TILES - SLOTS; ok && tile < TILES; tile++) {
        ok = host_waits(x, SKIP_LAST_RESULTS, x->emptied[tile % SLOTS]);
        if (ok)
            read_result(x, tile, results);
    }
    return ok;
}

int example_run(example_wait skipped, bool *right)
{
    example x = {.skipped = skipped};
    float matrix[TILE], results[TILES * TILE];
    memset(results, 0, sizeof results);
    fill_matrix(matrix);
    if (open_all(&x))
        run_tiles(&x, matrix, results);
    close_all(&x);
    *right = results_are_right(matrix, results);
    return x.error;
}
