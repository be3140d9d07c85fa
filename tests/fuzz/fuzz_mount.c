/* Lines of /proc/self/mountinfo. */
#include "fuzz.h"

#include "runtime/system.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = fuzz_text(data, size);
    jk_mount mount;
    if (jk_mount_parse(line, &mount)) {
        const char *fields[] = {mount.root, mount.point, mount.type, mount.options};
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            fuzz_must(fields[i] >= line && fields[i] + strlen(fields[i]) <= line + size,
                      "a field lies in its line");
        fuzz_must(mount.root[0] == '/' && mount.point[0] == '/', "paths are absolute");
        fuzz_must(jk_path_within(mount.point, mount.point), "a path lies in itself");
        fuzz_must(jk_path_within(mount.point, "/"), "and in the root");
    }
    free(line);
    return 0;
}
