#include "kernels/device_kernels.h"
#include "kernels/device_loops.h"

/* A block of threads makes a square of the result; each thread so many rows and columns of it, a stride
 * apart, so that neighbours read neighbours. Nothing is shared: the caches serve a square's threads. */
enum { across = 16, rows_each = 4 };

static_assert(across * across == JK_THREADS, "a block of threads");

__device__ static inline float multiply_add(float x, float y, float z)
{
    return fmaf(x, y, z);
}

__device__ static inline double multiply_add(double x, double y, double z)
{
    return fma(x, y, z);
}

template <class T> struct ordered_product {
    bool trans_a, trans_b;
    int64_t m, n, k;
    T alpha, beta;
    int64_t lda, ldb, ldc;
};

/* One slab of a square: t[..][0] with the real parts of a, t[..][1] with the imaginary ones. */
template <class T, int parts, int cols_each> struct ordered_sums {
    T t[parts][rows_each][cols_each][parts];

    __device__ void make(const ordered_product<T> &g, const T *a, const T *b, const int64_t *row,
                         const int64_t *col, int64_t from, int64_t to)
    {
        int64_t a_row = g.trans_a ? 1 : g.lda, a_col = g.trans_a ? g.lda : 1;
        int64_t b_row = g.trans_b ? 1 : g.ldb, b_col = g.trans_b ? g.ldb : 1;
        for (int q = 0; q < parts; q++)
            for (int i = 0; i < rows_each; i++)
                for (int j = 0; j < cols_each; j++)
                    for (int r = 0; r < parts; r++)
                        t[q][i][j][r] = 0;
        for (int64_t p = from; p < to; p++)
            for (int i = 0; i < rows_each; i++)
                for (int j = 0; j < cols_each; j++)
                    for (int q = 0; q < parts; q++)
                        for (int r = 0; r < parts; r++)
                            t[q][i][j][r] = multiply_add(
                                a[(row[i] * a_row + p * a_col) * parts + q],
                                b[(p * b_row + col[j] * b_col) * parts + r], t[q][i][j][r]);
    }

    __device__ T sum(int i, int j, int r) const
    {
        if (parts == 1)
            return t[0][i][j][0];
        return r == 0 ? t[0][i][j][0] - t[parts - 1][i][j][parts - 1]
                      : t[0][i][j][parts - 1] + t[parts - 1][i][j][0];
    }
};

/* Rows and columns past the end are read as the last ones, and not stored. */
template <class T, int parts, int cols_each>
__device__ static inline void square(const ordered_product<T> &g, const T *a, const T *b, T *c,
                                     int64_t first_row, int64_t first_col)
{
    if (first_row + (int64_t)threadIdx.y >= g.m || first_col + (int64_t)threadIdx.x >= g.n)
        return;
    int64_t row[rows_each], col[cols_each];
    for (int i = 0; i < rows_each; i++) {
        int64_t at = first_row + (int64_t)threadIdx.y + across * i;
        row[i] = at < g.m ? at : g.m - 1;
    }
    for (int j = 0; j < cols_each; j++) {
        int64_t at = first_col + (int64_t)threadIdx.x + across * j;
        col[j] = at < g.n ? at : g.n - 1;
    }
    for (int64_t slab = 0; slab < g.k; slab += JK_SLAB) {
        ordered_sums<T, parts, cols_each> sums;
        sums.make(g, a, b, row, col, slab, slab + JK_SLAB < g.k ? slab + JK_SLAB : g.k);
        T beta = slab == 0 ? g.beta : 1;
        for (int i = 0; i < rows_each; i++)
            for (int j = 0; j < cols_each; j++)
                for (int r = 0; r < parts; r++) {
                    T *to = c + (row[i] * g.ldc + col[j]) * parts + r;
                    bool mine = row[i] == first_row + (int64_t)threadIdx.y + across * i &&
                                col[j] == first_col + (int64_t)threadIdx.x + across * j;
                    if (mine)
                        *to = multiply_add(g.alpha, sums.sum(i, j, r), beta == 0 ? 0 : beta * *to);
                }
    }
}

template <class T, int parts, int cols_each>
__device__ static inline void ordered(const ordered_product<T> &g, const T *a, const T *b, T *c)
{
    int64_t wide = jk_ceil(g.n, across * cols_each);
    int64_t squares = wide * jk_ceil(g.m, across * rows_each);
    for (int64_t s = blockIdx.x; s < squares; s += gridDim.x)
        square<T, parts, cols_each>(g, a, b, c, s / wide * across * rows_each,
                                    s % wide * across * cols_each);
}

#define ORDERED_ACCESS(size)                                                                       \
    JK_ACCESS(JK_READS_2D(g->a, (size_t)(g->trans_a ? g->m : g->k) * (size),                       \
                          (size_t)g->lda * (size), (size_t)(g->trans_a ? g->k : g->m)),            \
              JK_READS_2D(g->b, (size_t)(g->trans_b ? g->k : g->n) * (size),                       \
                          (size_t)g->ldb * (size), (size_t)(g->trans_b ? g->n : g->k)),            \
              JK_WRITES_2D(g->c, (size_t)g->n *(size), (size_t)g->ldc *(size), (size_t)g->m))

static unsigned square_blocks(const jk_ordered *g, int cols_each)
{
    int64_t squares = jk_ceil(g->n, across * cols_each) * jk_ceil(g->m, across * rows_each);
    return (unsigned)(squares < JK_MAX_BLOCKS ? squares : JK_MAX_BLOCKS);
}

/* Registers hold the sums of so many columns for each type. */
#define DEFINE_ORDERED(name, type, parts, cols_each)                                               \
    extern "C" __global__ void __launch_bounds__(JK_THREADS)                                       \
        jk_k_ordered_##name(ordered_product<type> g, const type *a, const type *b, type *c)        \
    {                                                                                              \
        ordered<type, parts, cols_each>(g, a, b, c);                                               \
    }                                                                                              \
    JK_KERNEL(jk_k_ordered_##name)                                                                 \
    cudaError_t jk_cuda_ordered_##name(const jk_ordered *g, cudaStream_t stream)                   \
    {                                                                                              \
        const ordered_product<type> product = {g->trans_a, g->trans_b,     g->m,          g->n,    \
                                               g->k,       (type)g->alpha, (type)g->beta, g->lda,  \
                                               g->ldb,     g->ldc};                                \
        return JK_LAUNCH(jk_k_ordered_##name, square_blocks(g, cols_each), dim3(across, across),   \
                         0, stream, ORDERED_ACCESS(parts * sizeof(type)), product,                 \
                         (const type *)g->a, (const type *)g->b, (type *)g->c);                    \
    }

DEFINE_ORDERED(f32, float, 1, 4)
DEFINE_ORDERED(f64, double, 1, 4)
DEFINE_ORDERED(c64, float, 2, 2)
DEFINE_ORDERED(c128, double, 2, 2)
