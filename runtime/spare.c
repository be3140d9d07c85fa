#include "runtime/spare.h"

#include "runtime/system.h"
#include "runtime/thread.h"

#include <sys/mman.h>
#include <unistd.h>

/* So long memory is kept for one operation right behind another. To offer it to the system interrupts the other
 * cores of the process for every huge page, on a virtual machine a tenth of a second for 256 MiB: nothing for an
 * operation to wait for, and nothing to do at all where the memory is asked for again. */
#define OFFER_SECONDS 1.0
/* At a time, so that an operation that comes meanwhile waits for little. */
#define OFFER_BYTES ((size_t)64 << 20)

static bool offerer_runs(const jk_spare *spare)
{
    return spare->process == getpid();
}

static void unmap(jk_spare *spare)
{
    munmap(spare->mem, spare->bytes);
    spare->mem = NULL;
}

/* With the lock held, but let go meanwhile: whoever forks then shall not leave it locked to the child. */
static void offer_some(jk_spare *spare)
{
    char *mem = spare->mem;
    size_t left = spare->bytes - spare->offered, some = left < OFFER_BYTES ? left : OFFER_BYTES;
    bool offered;
    spare->mem = NULL;
    spare->offering = true;
    pthread_mutex_unlock(&spare->lock);
    offered = madvise(mem + spare->offered, some, MADV_FREE) == 0;
    pthread_mutex_lock(&spare->lock);
    spare->mem = mem;
    spare->offered += some;
    spare->offering = false;
    if (!offered) /* an old kernel does not know memory that it may take: then none is spare */
        unmap(spare);
    pthread_cond_broadcast(&spare->changed);
}

static void *offerer_main(void *arg)
{
    jk_spare *spare = arg;
    pthread_mutex_lock(&spare->lock);
    while (!spare->closing) {
        double left = spare->due - jk_clock_seconds();
        if (!spare->mem || spare->offered == spare->bytes || spare->wanted)
            pthread_cond_wait(&spare->changed, &spare->lock);
        else if (left > 0)
            jk_cond_wait(&spare->changed, &spare->lock, left);
        else
            offer_some(spare);
    }
    pthread_mutex_unlock(&spare->lock);
    return NULL;
}

void jk_spare_open(jk_spare *spare)
{
    *spare = (jk_spare){.mem = NULL};
    pthread_mutex_init(&spare->lock, NULL);
}

void jk_spare_close(jk_spare *spare)
{
    if (offerer_runs(spare)) {
        pthread_mutex_lock(&spare->lock);
        spare->closing = true;
        pthread_cond_broadcast(&spare->changed);
        pthread_mutex_unlock(&spare->lock);
        pthread_join(spare->offerer, NULL);
        pthread_cond_destroy(&spare->changed);
    }
    if (spare->mem)
        unmap(spare);
    pthread_mutex_destroy(&spare->lock);
}

void *jk_spare_take(jk_spare *spare, size_t bytes)
{
    void *mem;
    pthread_mutex_lock(&spare->lock);
    spare->wanted = true;
    while (spare->offering && offerer_runs(spare))
        pthread_cond_wait(&spare->changed, &spare->lock);
    spare->wanted = false;
    if (spare->mem && spare->bytes != bytes)
        unmap(spare);
    mem = spare->mem;
    spare->mem = NULL;
    pthread_mutex_unlock(&spare->lock);
    return mem;
}

size_t jk_spare_bytes(jk_spare *spare)
{
    size_t bytes;
    pthread_mutex_lock(&spare->lock);
    bytes = spare->mem || spare->offering ? spare->bytes - spare->offered : 0;
    pthread_mutex_unlock(&spare->lock);
    return bytes;
}

/* With the lock held: one is started where none runs. */
static bool have_offerer(jk_spare *spare)
{
    bool started = offerer_runs(spare);
    if (started)
        return true;
    spare->offering = spare->wanted = false; /* by a parent */
    jk_cond_init(&spare->changed);
    if (jk_thread_start(&spare->offerer, "jask-spare", offerer_main, spare, &started, NULL))
        return false;
    spare->process = getpid();
    return true;
}

void jk_spare_give(jk_spare *spare, void *mem, size_t bytes)
{
    pthread_mutex_lock(&spare->lock);
    if (!have_offerer(spare) || spare->mem || spare->offering) {
        munmap(mem, bytes);
    } else {
        spare->mem = mem;
        spare->bytes = bytes;
        spare->offered = 0;
        spare->due = jk_clock_seconds() + OFFER_SECONDS;
        pthread_cond_broadcast(&spare->changed);
    }
    pthread_mutex_unlock(&spare->lock);
}
