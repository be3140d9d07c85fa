/* Element types as files spell them. */
#ifndef JK_RUNTIME_DTYPE_H
#define JK_RUNTIME_DTYPE_H

#include "common/base.h"

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define JK_HOST_BIG_ENDIAN true
#else
#define JK_HOST_BIG_ENDIAN false
#endif

/* Read a type's name with an optional mark in front: '<', '>', '=' (this machine's order) or '|'
 * (one-byte types only). *mark is 0 without one. Without a mark jask's names win (i8 has 8 bits),
 * with one NumPy's do (<i8 has 8 bytes). False, and nothing set, when there is no such type. */
bool jk_dtype_read(const char *text, size_t len, jask_dtype *dtype, char *mark);

/* Read the 'descr' of an .npy header, such as <f4: NumPy's spelling and nothing else. With
 * bare_is_bf16 two bytes without a type (V2) are bfloat16. */
bool jk_dtype_read_descr(const char *text, size_t len, bool bare_is_bf16, jask_dtype *dtype,
                         bool *big_endian);

/* Kind and bytes as an .npy header spells them, "f4"; "V2" for bfloat16, which NumPy does not know.
 */
const char *jk_dtype_descr(jask_dtype dtype);

typedef enum jk_kind { JK_UNSIGNED, JK_SIGNED, JK_REAL, JK_COMPLEX } jk_kind;

jk_kind jk_dtype_kind(jask_dtype dtype);

/* Whether every value of type `value` is one of type `dtype`. */
bool jk_dtype_holds(jask_dtype dtype, jask_dtype value);

/* Turn elements into the other byte order, in place; of a complex element each half by itself. */
void jk_dtype_swap(void *data, uint64_t elements, jask_dtype dtype);

#endif
