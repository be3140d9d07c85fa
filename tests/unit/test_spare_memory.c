/* What the host has spare of the memory that it was given back, and for how long. */
#include "runtime/device.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static bool no_lazy_free;  /* an old kernel */
static _Atomic int offers; /* to the system */
static _Atomic size_t offered_bytes;
static _Atomic bool offer_blocks;
static _Atomic pid_t offered_by;

int __real_madvise(void *ptr, size_t bytes, int advice);
int __wrap_madvise(void *ptr, size_t bytes, int advice);

int __wrap_madvise(void *ptr, size_t bytes, int advice)
{
    if (advice == MADV_FREE) {
        offered_by = gettid();
        offered_bytes += bytes;
        offers++;
        while (offer_blocks)
            usleep(1000);
    }
    if (no_lazy_free && advice == MADV_FREE) {
        errno = EINVAL;
        return -1;
    }
    return __real_madvise(ptr, bytes, advice);
}

static jk_device_ref host;

static void open_host(void)
{
    jask_error err;
    no_lazy_free = false;
    offers = 0;
    offered_bytes = 0;
    offer_blocks = false;
    cr_assert_eq(jk_device_select("host", NULL, &host, &err), JASK_OK, "%s", err.msg);
}

static void close_host(void)
{
    jk_device_release(&host);
}

TestSuite(spare_memory, .init = open_host, .fini = close_host);

static char *take(size_t bytes)
{
    void *mem;
    jask_error err;
    cr_assert_eq(host.table->mem_alloc(host.dev, bytes, &mem, &err), JASK_OK, "%s", err.msg);
    return mem;
}

static char *take_and_fill(size_t bytes)
{
    char *mem = take(bytes);
    memset(mem, 1, bytes);
    return mem;
}

static void give(char *mem, size_t bytes)
{
    host.table->mem_free(host.dev, mem, bytes);
}

/* Pages of these bytes that are in memory; -1: it is not mapped. */
static long resident(const char *mem, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static unsigned char is[64 * MIB / 4096];
    long count = 0;
    cr_assert_leq(bytes / page, sizeof is);
    if (mincore((void *)(uintptr_t)mem, bytes, is) != 0)
        return -1;
    for (size_t i = 0; i < bytes / page; i++)
        count += is[i] & 1;
    return count;
}

Test(spare_memory, as_much_is_had_again_without_new_pages)
{
    char *mem = take_and_fill(32 * MIB);
    long pages = (long)(32 * MIB / (size_t)sysconf(_SC_PAGESIZE));
    give(mem, 32 * MIB);
    cr_assert_eq(take(32 * MIB), mem);
    cr_assert_eq(resident(mem, 32 * MIB), pages);
    /* And is not given to a second one. */
    cr_assert_neq(take(32 * MIB), mem);
}

Test(spare_memory, goes_before_memory_of_another_size_comes)
{
    char *mem = take_and_fill(32 * MIB), *other;
    give(mem, 32 * MIB);
    other = take(8 * MIB);
    /* The other may lie where the first did, but nothing of that is left. */
    for (size_t at = 0; at < 32 * MIB; at += 4 * MIB)
        cr_assert_leq(resident(mem + at, 4 * MIB), 0);
    give(other, 8 * MIB);
}

Test(spare_memory, is_one_block)
{
    char *first = take_and_fill(8 * MIB), *second = take_and_fill(8 * MIB);
    give(first, 8 * MIB);
    give(second, 8 * MIB);
    cr_assert_eq(resident(second, 8 * MIB), -1);
    cr_assert_eq(take(8 * MIB), first);
}

Test(spare_memory, goes_with_the_device)
{
    char *mem = take_and_fill(8 * MIB);
    give(mem, 8 * MIB);
    jk_device_release(&host);
    cr_assert_eq(resident(mem, 8 * MIB), -1);
}

static void *let_go_on(void *arg)
{
    (void)arg;
    usleep(100000);
    offer_blocks = false;
    return NULL;
}

/* The offer that blocks ends a moment later. */
static void wanted_soon(void)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, let_go_on, NULL), 0);
    pthread_detach(thread);
}

/* Until it was offered to the system, in so many calls. */
static void await_offers(int count)
{
    for (int ms = 0; ms < 20000 && offers < count; ms++)
        usleep(1000);
    cr_assert_eq(offers, count);
}

Test(spare_memory, the_system_may_take_it, .timeout = 60)
{
    char *mem = take_and_fill(8 * MIB);
    give(mem, 8 * MIB);
    await_offers(1);
    cr_assert_neq(offered_by, gettid(), "an operation does not wait for it");
    cr_assert_eq(__real_madvise(mem, 8 * MIB, MADV_DONTNEED), 0);
    cr_assert_eq(take_and_fill(8 * MIB), mem);
    for (size_t i = 0; i < 8 * MIB; i += 4096)
        cr_assert_eq(mem[i], 1);
    cr_assert_eq(offers, 1);
}

Test(spare_memory, is_offered_again_after_each_use, .timeout = 60)
{
    for (int i = 0; i < 2; i++) {
        char *mem = take_and_fill(8 * MIB);
        offers = 0;
        give(mem, 8 * MIB);
        await_offers(1);
    }
}

/* An operation that comes meanwhile waits for a part, not for all, and finds all of it. */
Test(spare_memory, is_offered_in_parts, .timeout = 60)
{
    char *mem = take_and_fill(160 * MIB);
    give(mem, 160 * MIB);
    await_offers(3);
    cr_assert_eq(offered_bytes, 160 * MIB);
    offer_blocks = true; /* until the test says so */
    offers = 0;
    cr_assert_eq(take(160 * MIB), mem);
    memset(mem, 1, 160 * MIB);
    give(mem, 160 * MIB);
    await_offers(1);
    wanted_soon();
    cr_assert_eq(take(160 * MIB), mem);
    cr_assert_eq(offers, 1);
}

Test(spare_memory, none_where_the_system_could_not_take_it, .timeout = 60)
{
    char *mem = take_and_fill(8 * MIB);
    no_lazy_free = true;
    give(mem, 8 * MIB);
    await_offers(1);
    /* Which waits for the offer to fail. Memory of that size may lie there as well. */
    cr_assert_not_null(take(16 * MIB));
    cr_assert_leq(resident(mem, 8 * MIB), 0);
}

/* Its threads are the parent's alone; what it takes, gives and closes is its own. */
Test(spare_memory, a_child_process_goes_on, .timeout = 60)
{
    char *mem = take_and_fill(8 * MIB);
    pid_t child;
    int status;
    give(mem, 8 * MIB);
    child = fork();
    if (child == 0) {
        bool same = take(8 * MIB) == mem;
        memset(mem, 2, 8 * MIB);
        offers = 0;
        give(mem, 8 * MIB);
        await_offers(1);
        jk_device_release(&host);
        _exit(same ? 0 : 1);
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_eq(take(8 * MIB), mem);
    cr_assert_eq(*mem, 1);
}

Test(spare_memory, none_without_a_device)
{
    void *mem;
    jask_error err;
    cr_assert_eq(jk_device_host.mem_alloc(NULL, 8 * MIB, &mem, &err), JASK_OK, "%s", err.msg);
    memset(mem, 1, 8 * MIB);
    jk_device_host.mem_free(NULL, mem, 8 * MIB);
    cr_assert_eq(resident(mem, 8 * MIB), -1);
}
