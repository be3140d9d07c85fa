/* Whether OpenBLAS makes use of the processor. A version older than the processor may not know it, and then
 * takes, without a word, the oldest kernels that it has. */
#ifndef JK_RUNTIME_BLAS_ADVICE_H
#define JK_RUNTIME_BLAS_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#define JK_BLAS_ADVICE 256

/* What of a processor decides over kernels. */
typedef struct jk_cpu {
    bool avx2;   /* and FMA */
    bool avx512; /* all of it that the kernels SkylakeX take: F, BW, CD, DQ and VL */
    bool amd;
} jk_cpu;

/* This one; nothing of it where it is no x86. */
jk_cpu jk_cpu_here(void);

/* What a user should know and do, one line: that OpenBLAS, whose kernels are called `core`, leaves AVX2
 * unused where the processor has it. "" where there is nothing to say, also of a name that is not known
 * here. `choosable`: the library has kernels for many processors, of which OPENBLAS_CORETYPE takes one. */
void jk_blas_advise(const char *core, bool choosable, const jk_cpu *cpu, char text[JK_BLAS_ADVICE]);

#endif
