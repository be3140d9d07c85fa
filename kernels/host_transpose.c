#include "kernels/host_kernels.h"
#include "kernels/host_wide.h"

#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* A tile is turned into memory of its own and copied from there, whole lines of a cache at once: rows of
 * src and of dst may all lie in the same few places of it. */
enum { TILE = 32, VECTOR = 16, ELEMENT_MOST = 16 };

/* With a size that the compiler knows, an element is a load and a store. */
#define DEFINE_EDGE(bytes)                                                                         \
    static void edge_##bytes(char *dst, size_t dst_pitch, const char *src, size_t src_pitch,       \
                             int64_t rows, int64_t cols)                                           \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t c = 0; c < cols; c++)                                                     \
                memcpy(dst + (size_t)c * dst_pitch + (size_t)r * (bytes),                          \
                       src + (size_t)r * src_pitch + (size_t)c * (bytes), bytes);                  \
    }

DEFINE_EDGE(1)
DEFINE_EDGE(2)
DEFINE_EDGE(4)
DEFINE_EDGE(8)
DEFINE_EDGE(16)

#if defined(__x86_64__)

/* A square of as many elements as a register holds. When rows i and i + half are interleaved to rows 2 i
 * and 2 i + 1, and that as often as the side can be halved, rows have become columns. */
#define DEFINE_SQUARE(bytes, low, high)                                                            \
    JK_INLINE void square_##bytes(char *dst, size_t dst_pitch, const char *src, size_t src_pitch)  \
    {                                                                                              \
        enum { SIDE = VECTOR / (bytes) };                                                          \
        __m128i x[SIDE], y[SIDE];                                                                  \
        for (int i = 0; i < SIDE; i++)                                                             \
            x[i] = _mm_loadu_si128((const __m128i *)(const void *)(src + (size_t)i * src_pitch));  \
        for (int turn = 1; turn < SIDE; turn *= 2) {                                               \
            for (int i = 0; i < SIDE / 2; i++) {                                                   \
                y[2 * i] = low(x[i], x[i + SIDE / 2]);                                             \
                y[2 * i + 1] = high(x[i], x[i + SIDE / 2]);                                        \
            }                                                                                      \
            memcpy(x, y, sizeof x);                                                                \
        }                                                                                          \
        for (int i = 0; i < SIDE; i++)                                                             \
            _mm_storeu_si128((__m128i *)(void *)(dst + (size_t)i * dst_pitch), x[i]);              \
    }

DEFINE_SQUARE(1, _mm_unpacklo_epi8, _mm_unpackhi_epi8)
DEFINE_SQUARE(2, _mm_unpacklo_epi16, _mm_unpackhi_epi16)
DEFINE_SQUARE(4, _mm_unpacklo_epi32, _mm_unpackhi_epi32)
DEFINE_SQUARE(8, _mm_unpacklo_epi64, _mm_unpackhi_epi64)

#define DEFINE_TILE(bytes)                                                                         \
    static void tile_##bytes(char *dst, size_t dst_pitch, const char *src, size_t src_pitch)       \
    {                                                                                              \
        for (size_t r = 0; r < TILE; r += VECTOR / (bytes))                                        \
            for (size_t c = 0; c < TILE; c += VECTOR / (bytes))                                    \
                square_##bytes(dst + c * dst_pitch + r * (bytes), dst_pitch,                       \
                               src + r * src_pitch + c * (bytes), src_pitch);                      \
    }

#else

#define DEFINE_TILE(bytes)                                                                         \
    static void tile_##bytes(char *dst, size_t dst_pitch, const char *src, size_t src_pitch)       \
    {                                                                                              \
        edge_##bytes(dst, dst_pitch, src, src_pitch, TILE, TILE);                                  \
    }

#endif

DEFINE_TILE(1)
DEFINE_TILE(2)
DEFINE_TILE(4)
DEFINE_TILE(8)

static void tile_16(char *dst, size_t dst_pitch, const char *src, size_t src_pitch)
{
    edge_16(dst, dst_pitch, src, src_pitch, TILE, TILE);
}

typedef struct way {
    void (*tile)(char *dst, size_t dst_pitch, const char *src, size_t src_pitch);
    void (*edge)(char *dst, size_t dst_pitch, const char *src, size_t src_pitch, int64_t rows,
                 int64_t cols);
} way;

static way way_of(size_t size)
{
    switch (size) {
    case 1:
        return (way){tile_1, edge_1};
    case 2:
        return (way){tile_2, edge_2};
    case 4:
        return (way){tile_4, edge_4};
    case 8:
        return (way){tile_8, edge_8};
    default:
        return (way){tile_16, edge_16};
    }
}

/* Of a size that no element has. */
static void transpose_bytes(char *dst, size_t dst_pitch, const char *src, size_t src_pitch,
                            int64_t rows, int64_t cols, size_t size)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            memcpy(dst + (size_t)c * dst_pitch + (size_t)r * size,
                   src + (size_t)r * src_pitch + (size_t)c * size, size);
}

void jk_transpose(void *dst, int64_t dst_ld, const void *src, int64_t src_ld, int64_t rows,
                  int64_t cols, size_t size)
{
    size_t dst_pitch = (size_t)dst_ld * size, src_pitch = (size_t)src_ld * size;
    way w = way_of(size);
    if ((size & (size - 1)) != 0) {
        transpose_bytes(dst, dst_pitch, src, src_pitch, rows, cols, size);
        return;
    }
    for (int64_t r = 0; r < rows; r += TILE)
        for (int64_t c = 0; c < cols; c += TILE) {
            _Alignas(64) char turned[TILE * TILE * ELEMENT_MOST];
            char *to = (char *)dst + (size_t)c * dst_pitch + (size_t)r * size;
            const char *from = (const char *)src + (size_t)r * src_pitch + (size_t)c * size;
            int64_t m = jk_min(TILE, rows - r), n = jk_min(TILE, cols - c);
            if (m < TILE || n < TILE) {
                w.edge(to, dst_pitch, from, src_pitch, m, n);
                continue;
            }
            w.tile(turned, TILE * size, from, src_pitch);
            for (size_t i = 0; i < TILE; i++)
                memcpy(to + i * dst_pitch, turned + i * TILE * size, TILE * size);
        }
}
