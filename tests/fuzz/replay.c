/* Gives every file in the named directories to a fuzz target, each in memory of exactly its size.
 * usage: fuzz_TARGET CORPUS-DIRECTORY... */
#include "fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static void replay(const char *path)
{
    static uint8_t content[1 << 17];
    FILE *file = fopen(path, "rb");
    uint8_t *data;
    size_t size;

    fuzz_must(file != NULL, path);
    size = fread(content, 1, sizeof content, file);
    fuzz_must(!ferror(file) && size < sizeof content, path);
    fclose(file);
    data = (uint8_t *)fuzz_text(content, size);
    data = realloc(data, size + !size); /* its NUL is not part of the input */
    fuzz_must(data != NULL, path);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        char path[PATH_MAX];
        const struct dirent *entry;
        DIR *dir = opendir(argv[i]);
        fuzz_must(dir != NULL, argv[i]);
        while ((entry = readdir(dir))) {
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            replay(path);
            count++;
        }
        closedir(dir);
    }
    printf("%d inputs\n", count);
    return count == 0;
}
