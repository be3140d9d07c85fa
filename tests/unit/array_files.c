#include "array_files.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void put_file(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(name, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(data, 1, bytes, file), bytes);
    cr_assert_eq(fclose(file), 0);
}

void put_npy(const char *name, const char *dictionary, size_t data_at, const void *data,
             size_t bytes)
{
    unsigned char *file = malloc(data_at + bytes);
    memset(file, ' ', data_at);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (unsigned char)((data_at - 10) & 255);
    file[9] = (unsigned char)((data_at - 10) >> 8);
    memcpy(file + 10, dictionary, strlen(dictionary));
    file[data_at - 1] = '\n';
    memcpy(file + data_at, data, bytes);
    put_file(name, file, data_at + bytes);
    free(file);
}
