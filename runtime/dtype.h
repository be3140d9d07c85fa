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

/* Read the 'descr' of an .npy header, such as <f4: NumPy's spelling and nothing else. */
bool jk_dtype_read_descr(const char *text, size_t len, jask_dtype *dtype, bool *big_endian);

/* Kind and bytes as NumPy spells them, "f4"; NULL for a type that NumPy has no spelling for. */
const char *jk_dtype_descr(jask_dtype dtype);

/* Turn elements into the other byte order, in place; of a complex element each half by itself. */
void jk_dtype_swap(void *data, uint64_t elements, jask_dtype dtype);

#endif
