#include "runtime/blas_advice.h"

#include <stdio.h>
#include <strings.h>

#if defined(__x86_64__) || defined(__i386__)

jk_cpu jk_cpu_here(void)
{
    return (jk_cpu){
        .avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
        .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl"),
        .amd = __builtin_cpu_is("amd"),
    };
}

#else

jk_cpu jk_cpu_here(void)
{
    return (jk_cpu){0};
}

#endif

/* Kernels of before AVX2. Those of the line of Bulldozer are not among them: their vectors are as wide as
 * the last processors of that line compute, which have AVX2. Nor is Haswell where there is AVX-512, which
 * helps on some processors and not on others. */
static bool is_old(const char *core)
{
    static const char *const names[] = {
        "Katmai",  "Coppermine",   "Northwood",  "Prescott", "Banias",      "Atom",
        "Core2",   "Penryn",       "Dunnington", "Nehalem",  "Sandybridge", "Athlon",
        "Opteron", "Opteron_SSE3", "Barcelona",  "Bobcat",   "Nano",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(core, names[i]) == 0)
            return true;
    return false;
}

void jk_blas_advise(const char *core, bool choosable, const jk_cpu *cpu, char text[JK_BLAS_ADVICE])
{
    const char *best = cpu->avx512 ? "SkylakeX" : cpu->amd ? "Zen" : "Haswell";
    text[0] = '\0';
    if (!cpu->avx2 || !is_old(core))
        return;
    if (choosable)
        snprintf(text, JK_BLAS_ADVICE,
                 "OpenBLAS does not know this processor: its %s kernels make no use of AVX2, and "
                 "products take several times as long as they could; set OPENBLAS_CORETYPE=%s in "
                 "the environment, or use a newer OpenBLAS",
                 core, best);
    else
        snprintf(text, JK_BLAS_ADVICE,
                 "this OpenBLAS was built for an older processor: its %s kernels make no use of "
                 "AVX2, and products take several times as long as they could; use one that was "
                 "built with DYNAMIC_ARCH",
                 core);
}
