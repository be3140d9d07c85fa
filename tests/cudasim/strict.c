/* A program that leaves memory behind, to see what the environment makes of it. Ends with the error
 * of its only call. */
#include <cuda_runtime_api.h>

int main(void)
{
    void *ptr;
    return (int)cudaMalloc(&ptr, 16);
}
