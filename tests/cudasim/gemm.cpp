// The arithmetic of products. Inputs are widened (or, for TF32, rounded) into dense copies where
// their type is not the inner one; sums are f32 or f64.
#include "blas.h"

#include "config.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#if JK_HAVE_CBLAS
#include <cblas.h>
#endif

namespace cusim
{

size_t element_bytes(cudaDataType type)
{
    return type == CUDA_C_64F                          ? 16
           : type == CUDA_R_64F || type == CUDA_C_32F  ? 8
           : type == CUDA_R_32F                        ? 4
           : type == CUDA_R_16F || type == CUDA_R_16BF ? 2
                                                       : 0;
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

// Keep the upper bits, nearest, ties to even. NaN stays NaN, infinity infinity.
static float drop_bits(float f, unsigned count)
{
    uint32_t bits = to_bits(f);
    if (!std::isfinite(f))
        return f;
    bits += (1u << (count - 1)) - 1 + (bits >> count & 1);
    return from_bits(bits >> count << count);
}

static float from_half(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    float magnitude = exponent == 31 ? fraction ? NAN : INFINITY
                      : exponent == 0
                          ? std::ldexp(static_cast<float>(fraction), -24)
                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

static uint16_t to_half(float f)
{
    uint32_t sign = to_bits(f) >> 16 & 0x8000;
    float magnitude = std::fabs(f);
    if (std::isnan(f))
        return static_cast<uint16_t>(sign | 0x7e00);
    if (magnitude >= 65520.0f)
        return static_cast<uint16_t>(sign | 0x7c00);
    if (magnitude < 0x1p-14f) // subnormal: units of 2^-24, rounded by the default mode
        return static_cast<uint16_t>(sign |
                                     static_cast<uint32_t>(std::nearbyint(magnitude * 0x1p24f)));
    uint32_t bits = to_bits(drop_bits(magnitude, 13));
    return static_cast<uint16_t>(sign | ((bits >> 13) - (112u << 10)));
}

double load_element(const char *at, cudaDataType type, size_t index)
{
    double f64;
    float f32;
    uint16_t bits;
    const char *element = at + index * element_bytes(type);
    switch (type) { // of a complex element the real part
    case CUDA_C_64F:
    case CUDA_R_64F:
        memcpy(&f64, element, sizeof f64);
        return f64;
    case CUDA_C_32F:
    case CUDA_R_32F:
        memcpy(&f32, element, sizeof f32);
        return static_cast<double>(f32);
    case CUDA_R_16F:
        memcpy(&bits, element, sizeof bits);
        return static_cast<double>(from_half(bits));
    default:
        memcpy(&bits, element, sizeof bits);
        return static_cast<double>(from_bits(static_cast<uint32_t>(bits) << 16));
    }
}

void store_element(char *at, cudaDataType type, size_t index, double value)
{
    float f32 = static_cast<float>(value);
    uint16_t bits;
    char *element = at + index * element_bytes(type);
    switch (type) {
    case CUDA_R_64F:
        memcpy(element, &value, sizeof value);
        break;
    case CUDA_R_32F:
        memcpy(element, &f32, sizeof f32);
        break;
    case CUDA_R_16F:
        bits = to_half(f32);
        memcpy(element, &bits, sizeof bits);
        break;
    default:
        bits = std::isnan(f32) ? 0x7fff : static_cast<uint16_t>(to_bits(drop_bits(f32, 16)) >> 16);
        memcpy(element, &bits, sizeof bits);
        break;
    }
}

#if JK_HAVE_CBLAS
static CBLAS_TRANSPOSE turned(bool trans)
{
    return trans ? CblasTrans : CblasNoTrans;
}

static void multiply_dense(const Product &p, const float *a, int lda, const float *b, int ldb,
                           float *c, int ldc)
{
    cblas_sgemm(CblasColMajor, turned(p.trans_a), turned(p.trans_b), p.m, p.n, p.k,
                static_cast<float>(p.alpha), a, lda, b, ldb, static_cast<float>(p.beta), c, ldc);
}

static void multiply_dense(const Product &p, const double *a, int lda, const double *b, int ldb,
                           double *c, int ldc)
{
    cblas_dgemm(CblasColMajor, turned(p.trans_a), turned(p.trans_b), p.m, p.n, p.k, p.alpha, a, lda,
                b, ldb, p.beta, c, ldc);
}
#else
template <class T>
static void multiply_dense(const Product &p, const T *a, int lda, const T *b, int ldb, T *c,
                           int ldc)
{
    auto at = [](const T *x, int ld, bool trans, int row, int col) {
        return x[trans
                     ? static_cast<size_t>(row) * static_cast<size_t>(ld) + static_cast<size_t>(col)
                     : static_cast<size_t>(col) * static_cast<size_t>(ld) +
                           static_cast<size_t>(row)];
    };
    for (int j = 0; j < p.n; j++)
        for (int i = 0; i < p.m; i++) {
            T sum = 0,
              *out = &c[static_cast<size_t>(j) * static_cast<size_t>(ldc) + static_cast<size_t>(i)];
            for (int t = 0; t < p.k; t++)
                sum += at(a, lda, p.trans_a, i, t) * at(b, ldb, p.trans_b, t, j);
            // beta 0: C is not read, it may be NaN
            *out = static_cast<T>(p.alpha) * sum +
                   (p.beta != 0 ? static_cast<T>(p.beta) * *out : static_cast<T>(0));
        }
}
#endif

// A matrix as the inner type; in place if it has that type and is not to be rounded.
template <class T> class Operand
{
  public:
    Operand(const char *data, cudaDataType type, int rows, int cols, int ld, bool tf32)
        : ld_(ld), data_(reinterpret_cast<const T *>(data))
    {
        if (element_bytes(type) == sizeof(T) && !tf32)
            return;
        copy_.reserve(static_cast<size_t>(rows) * static_cast<size_t>(cols));
        for (int col = 0; col < cols; col++)
            for (int row = 0; row < rows; row++) {
                size_t index =
                    static_cast<size_t>(col) * static_cast<size_t>(ld) + static_cast<size_t>(row);
                T value = static_cast<T>(load_element(data, type, index));
                copy_.push_back(tf32 ? static_cast<T>(drop_bits(static_cast<float>(value), 13))
                                     : value);
            }
        data_ = copy_.data();
        ld_ = rows > 0 ? rows : 1;
    }
    const T *data() const { return data_; }
    int ld() const { return ld_; }

  private:
    int ld_;
    const T *data_;
    std::vector<T> copy_;
};

template <class T> static void multiply_as(const Product &p)
{
    bool tf32 = p.inner == Inner::tf32;
    Operand<T> a(p.a, p.type_a, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, p.lda, tf32);
    Operand<T> b(p.b, p.type_b, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, p.ldb, tf32);
    if (element_bytes(p.type_c) == sizeof(T)) {
        multiply_dense(p, a.data(), a.ld(), b.data(), b.ld(), reinterpret_cast<T *>(p.c), p.ldc);
        return;
    }
    Product inner = p;
    std::vector<T> sums(static_cast<size_t>(p.m) * static_cast<size_t>(p.n));
    inner.alpha = 1;
    inner.beta = 0;
    multiply_dense(inner, a.data(), a.ld(), b.data(), b.ld(), sums.data(), p.m);
    for (int j = 0; j < p.n; j++)
        for (int i = 0; i < p.m; i++) {
            size_t at =
                static_cast<size_t>(j) * static_cast<size_t>(p.ldc) + static_cast<size_t>(i);
            double old = p.beta != 0 ? p.beta * load_element(p.c, p.type_c, at) : 0;
            T sum =
                sums[static_cast<size_t>(j) * static_cast<size_t>(p.m) + static_cast<size_t>(i)];
            store_element(p.c, p.type_c, at, p.alpha * static_cast<double>(sum) + old);
        }
}

// Complex products with real factors, in T.
template <class T> static void multiply_complex(const Product &p)
{
    const T *a = reinterpret_cast<const T *>(p.a), *b = reinterpret_cast<const T *>(p.b);
    T *c = reinterpret_cast<T *>(p.c);
    auto index = [](int ld, bool trans, int row, int col) {
        return static_cast<size_t>(trans ? row : col) * static_cast<size_t>(ld) +
               static_cast<size_t>(trans ? col : row);
    };
    for (int j = 0; j < p.n; j++)
        for (int i = 0; i < p.m; i++) {
            T sum = 0, &out = c[index(p.ldc, false, i, j)];
            for (int t = 0; t < p.k; t++)
                sum += a[index(p.lda, p.trans_a, i, t)] * b[index(p.ldb, p.trans_b, t, j)];
            sum *= static_cast<typename T::value_type>(p.alpha);
            out = p.beta != 0 ? sum + static_cast<typename T::value_type>(p.beta) * out : sum;
        }
}

void multiply(const Product &product)
{
    if (product.inner == Inner::complex) {
        if (product.type_c == CUDA_C_64F)
            multiply_complex<std::complex<double>>(product);
        else
            multiply_complex<std::complex<float>>(product);
        return;
    }
    if (product.inner == Inner::f64)
        multiply_as<double>(product);
    else
        multiply_as<float>(product);
}

} // namespace cusim
