/* Strips and sums in host memory, in memory that the simulator watches. For programs linked with --wrap of these
 * calls. */
#include "cusim.h"
#include "runtime/run.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

jask_status __real_jk_kept_open(jk_run *run, jask_error *err);
jask_status __wrap_jk_kept_open(jk_run *run, jask_error *err);
jask_status __wrap_jk_kept_open(jk_run *run, jask_error *err)
{
    jask_status st = __real_jk_kept_open(run, err);
    for (int op = 0; !st && op < JK_OPERANDS; op++) {
        free(run->kept[op].mem);
        run->kept[op].mem = NULL;
        if (run->kept[op].bytes > 0 &&
            cudaHostAlloc((void **)&run->kept[op].mem, run->kept[op].bytes, 0) != cudaSuccess)
            st = jk_fail(err, JASK_ERR_NOMEM, "the simulator has no memory for strips and sums");
    }
    return st;
}

void __real_jk_kept_close(jk_run *run);
void __wrap_jk_kept_close(jk_run *run);
void __wrap_jk_kept_close(jk_run *run)
{
    for (int op = 0; op < JK_OPERANDS; op++) {
        if (run->kept[op].mem)
            cudaFreeHost(run->kept[op].mem);
        run->kept[op].mem = NULL;
    }
    __real_jk_kept_close(run);
}

void __real_jk_kept_copy(void *dst, const void *src, size_t bytes);
void __wrap_jk_kept_copy(void *dst, const void *src, size_t bytes);
void __wrap_jk_kept_copy(void *dst, const void *src, size_t bytes)
{
    cusim_host_read(src, bytes, "copying a panel");
    cusim_host_write(dst, bytes, "copying a panel");
    __real_jk_kept_copy(dst, src, bytes);
}
