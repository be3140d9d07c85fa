#include "runtime/system.h"

void jk_process_disk_bytes(uint64_t *out_read, uint64_t *out_written)
{
    if (!jk_proc_number("/proc/self/io", "read_bytes", out_read))
        *out_read = 0;
    if (!jk_proc_number("/proc/self/io", "write_bytes", out_written))
        *out_written = 0;
}
