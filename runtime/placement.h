/* Which processors and memory lie next to a card: on a machine with several NUMA nodes, staging
 * memory and the threads that fill it belong there. Only a help: nothing here fails. */
#ifndef JK_RUNTIME_PLACEMENT_H
#define JK_RUNTIME_PLACEMENT_H

typedef struct jk_placement jk_placement;

/* The surroundings of the device with this PCI bus id, "0000:3b:00.0". NULL where it makes no
 * difference or is not known; the functions below take that. */
jk_placement *jk_placement_open(const char *pci_bus_id);
void jk_placement_close(jk_placement *near);

/* Keep the calling thread on the processors that are near, as far as it may use them. */
void jk_placement_bind_thread(const jk_placement *near);

/* Memory that this thread touches first comes from near, until it is restored. */
typedef struct jk_placement_memory {
    void *nodes;
    int policy;
} jk_placement_memory;
void jk_placement_prefer(const jk_placement *near, jk_placement_memory *before);
void jk_placement_restore(const jk_placement *near, jk_placement_memory *before);

#endif
