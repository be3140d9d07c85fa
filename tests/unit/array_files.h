/* Files of arrays, byte by byte. Failures end the test. */
#ifndef JK_TEST_ARRAY_FILES_H
#define JK_TEST_ARRAY_FILES_H

#include <stddef.h>

void put_file(const char *name, const void *data, size_t bytes);

#define DICT(descr, order, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

/* An .npy 1.0 file: the dictionary, padded by blanks to `data_at`, and the data. */
void put_npy(const char *name, const char *dictionary, size_t data_at, const void *data,
             size_t bytes);

#endif
