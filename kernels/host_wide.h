/* Loops over elements that are compiled twice: for every processor of the kind, and for those with
 * AVX2, FMA and F16C, whose registers are wider. Both give the same bits: nothing is contracted. */
#ifndef JK_KERNELS_HOST_WIDE_H
#define JK_KERNELS_HOST_WIDE_H

#include <stdbool.h>

#define JK_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)

#define JK_WIDE __attribute__((target("avx2,fma,f16c")))

/* There is no processor with the first two and without F16C. */
static inline bool jk_has_wide(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* Defines `name` by its body `name##_loop`, which is JK_INLINE and returns nothing. */
#define JK_DEFINE_WIDE(name, parameters, arguments)                                                \
    JK_WIDE static void name##_wide parameters                                                     \
    {                                                                                              \
        name##_loop arguments;                                                                     \
    }                                                                                              \
    void name parameters                                                                           \
    {                                                                                              \
        if (jk_has_wide())                                                                         \
            name##_wide arguments;                                                                 \
        else                                                                                       \
            name##_loop arguments;                                                                 \
    }

#else

#define JK_DEFINE_WIDE(name, parameters, arguments)                                                \
    void name parameters                                                                           \
    {                                                                                              \
        name##_loop arguments;                                                                     \
    }

#endif
#endif
