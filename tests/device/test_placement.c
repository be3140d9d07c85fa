/* Staging memory and the threads that fill it lie next to the card: on a described machine of two
 * nodes, with the card on one of them. Its processors and its first node are real, so that binding
 * to them can be seen. */
#include "../e2e/e2e.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES 2
#define POLICY_DEFAULT 0

/* What the calls of a run saw. */
static struct {
    pthread_mutex_t lock;
    int node;             /* the card's, and the number of its processor */
    int threads, strayed; /* bound; not to that processor alone */
    int pins, elsewhere;  /* pinned allocations; with memory not from that node alone */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

void __real_jk_placement_bind_thread(const jk_placement *near);
void __wrap_jk_placement_bind_thread(const jk_placement *near);
cudaError_t __real_cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostAlloc(void **out, size_t bytes, unsigned flags);

void __wrap_jk_placement_bind_thread(const jk_placement *near)
{
    cpu_set_t set;
    __real_jk_placement_bind_thread(near);
    sched_getaffinity(0, sizeof set, &set);
    pthread_mutex_lock(&seen.lock);
    seen.threads++;
    seen.strayed += CPU_COUNT(&set) != 1 || !CPU_ISSET((size_t)seen.node, &set);
    pthread_mutex_unlock(&seen.lock);
}

/* Where the thread's memory comes from; false where the system does not say. */
static bool memory_policy(int *policy, unsigned long *nodes)
{
    unsigned long mask[16] = {0};
    if (syscall(SYS_get_mempolicy, policy, mask, 8 * sizeof mask, NULL, 0) != 0)
        return false;
    *nodes = mask[0];
    return true;
}

cudaError_t __wrap_cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    int policy;
    unsigned long nodes;
    seen.pins++;
    if (seen.node >= 0 && memory_policy(&policy, &nodes))
        seen.elsewhere += nodes != 1UL << seen.node;
    return __real_cudaHostAlloc(out, bytes, flags);
}

/* A package with one node, one processor, and perhaps the card. */
static void write_package(FILE *f, int i, bool card)
{
    char sets[160];
    snprintf(sets, sizeof sets,
             "cpuset=\"0x%x\" complete_cpuset=\"0x%x\" nodeset=\"0x%x\" complete_nodeset=\"0x%x\"",
             1 << i, 1 << i, 1 << i, 1 << i);
    fprintf(f, "<object type=\"Package\" os_index=\"%d\" %s gp_index=\"%d\">\n", i, sets,
            10 * i + 2);
    fprintf(f, "<object type=\"NUMANode\" os_index=\"%d\" %s gp_index=\"%d\"/>\n", i, sets,
            10 * i + 3);
    fprintf(f, "<object type=\"PU\" os_index=\"%d\" %s gp_index=\"%d\"/>\n", i, sets, 10 * i + 4);
    if (card)
        fputs("<object type=\"Bridge\" gp_index=\"50\" bridge_type=\"0-1\" depth=\"0\" "
              "bridge_pci=\"0000:[00-ff]\">\n<object type=\"PCIDev\" gp_index=\"51\" "
              "pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] a1\" "
              "pci_link_speed=\"0.000000\"/>\n</object>\n",
              f);
    fputs("</object>\n", f);
}

/* The machine, as hwloc is to see it. Node -1: the card is not known. */
static void describe_machine(int node)
{
    const char *path = e2e_path("machine.xml");
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
          "<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" "
          "complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" nodeset=\"0x3\" "
          "complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">\n",
          f);
    for (int i = 0; i < NODES; i++)
        write_package(f, i, i == node);
    fputs("</object>\n</topology>\n", f);
    cr_assert_eq(fclose(f), 0);
    setenv("HWLOC_XMLFILE", path, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
}

static void begin(void)
{
    cpu_set_t set;
    e2e_init();
    setenv("JASK_DEVICE", "cuda", 1);
    setenv("JASK_IO_THREADS", "3", 1);
    sched_getaffinity(0, sizeof set, &set);
    for (size_t i = 0; i < NODES; i++)
        if (!CPU_ISSET(i, &set))
            cr_skip_test("processors 0 and 1 are not both ours");
}

TestSuite(placement, .init = begin, .fini = e2e_cleanup);

/* A product on the card at `node`. */
static void run(int node)
{
    cusim_config config = sim_config(1);
    cpu_set_t before, after;
    int policy;
    unsigned long nodes;
    jask_context *ctx;
    jask_array *a, *b;
    cusim_reset(&config);
    describe_machine(node);
    seen.node = node;
    seen.threads = seen.strayed = seen.pins = seen.elsewhere = 0;
    sched_getaffinity(0, sizeof before, &before);
    e2e_write(e2e_path("a.npy"), (e2e_form){.dtype = JASK_F32}, 70, 50, 1, NULL);
    e2e_write(e2e_path("b.npy"), (e2e_form){.dtype = JASK_F32}, 50, 90, 2, NULL);
    a = e2e_open(e2e_path("a.npy"));
    b = e2e_open(e2e_path("b.npy"));
    ctx = e2e_context(64 << 10, "auto", true);
    jask_array_close(e2e_dot(ctx, a, b, NULL, NULL));
    jask_array_close(a);
    jask_array_close(b);
    jask_context_close(ctx);
    sim_check_clean("node", (uint64_t)node);
    /* The caller's own thread and memory are as they were. */
    sched_getaffinity(0, sizeof after, &after);
    cr_assert(CPU_EQUAL(&before, &after));
    if (memory_policy(&policy, &nodes))
        cr_assert_eq(policy, POLICY_DEFAULT, "policy %d, nodes %lx", policy, nodes);
}

/* Three that read, one that writes. */
Test(placement, threads_run_next_to_the_card)
{
    for (int node = 0; node < NODES; node++) {
        run(node);
        cr_assert_eq(seen.threads, 4);
        cr_assert_eq(seen.strayed, 0, "node %d: %d threads", node, seen.strayed);
    }
}

Test(placement, staging_memory_comes_from_next_to_the_card)
{
    int policy;
    unsigned long nodes;
    if (!memory_policy(&policy, &nodes))
        cr_skip_test("the system does not say where memory comes from");
    run(0); /* the one node that every machine has */
    cr_assert_gt(seen.pins, 0);
    cr_assert_eq(seen.elsewhere, 0);
}

Test(placement, a_card_that_is_not_in_the_description_is_near_everything)
{
    run(-1);
    cr_assert_eq(seen.threads, 4);
    cr_assert_eq(seen.strayed, 4);
    cr_assert_gt(seen.pins, 0);
}
