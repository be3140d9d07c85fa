/* The waits of the pipeline, of the CUDA device and of operations in blocks. Each closes a hazard and has
 * a name here. On the simulated CUDA runtime a test leaves out one at a time, and every one must be
 * missed (tests/device/test_waits.c, test_waits_blocks.c). In the library all of this is nothing. */
#ifndef JK_RUNTIME_WAITS_H
#define JK_RUNTIME_WAITS_H

#include <stdbool.h>

typedef enum jk_wait {
    /* Queues and events: for work of the device. The first three in the order of operands. */
    JK_WAIT_A_FILLED, /* products: for the copy into their slot */
    JK_WAIT_B_FILLED,
    JK_WAIT_C_FILLED,
    JK_WAIT_SLOT_RELEASED,    /* copies into a slot: for the products that use it */
    JK_WAIT_BAND_COMPUTED,    /* the copy of a band of D: for its products */
    JK_WAIT_BLOCK_UPLOADED,   /* reading into a staging block: for the copy out of it */
    JK_WAIT_BLOCK_DOWNLOADED, /* writing from a staging block: for the copy into it */
    JK_WAIT_COMPUTE_DRAINED,  /* the end of a run: for errors of the last work */
    JK_WAIT_QUEUE_CLOSED,     /* freeing memory: for all that is queued */
    JK_WAIT_PROBE,            /* looking at what the first kernel wrote */

    /* Host threads: for another one. The first three in the order of operands. */
    JK_WAIT_A_DELIVERED, /* queuing a product: for the queuing of its copies */
    JK_WAIT_B_DELIVERED,
    JK_WAIT_C_DELIVERED,
    JK_WAIT_STEP_ISSUED,  /* queuing a copy to a slot: for the queuing of products that use it */
    JK_WAIT_TILE_STORED,  /* loading C into a slot: for the bands of the tile before */
    JK_WAIT_SUMS_STORED,  /* reading sums that are not finished: for the writing of them */
    JK_WAIT_BAND_STORED,  /* a product that overwrites a band: for the same band before */
    JK_WAIT_BLOCK_QUEUED, /* using a staging block: for the queuing of the copy out of it */
    JK_WAIT_PANEL_KEPT,   /* a piece of a panel in host memory: for all that used the panel there */
    JK_WAIT_BAND_POSTED,  /* storing a band: for the queuing of its products */
    JK_WAIT_ALL_STORED,   /* the end of a run: for errors of storing */

    /* Of operations in blocks; host threads, for another one. */
    JK_WAIT_WINDOW_LOADED,   /* computing a block: for the reading of its windows */
    JK_WAIT_WINDOW_USED,     /* reading into a window's place: for blocks that use the last one */
    JK_WAIT_WINDOW_COMPUTED, /* writing a window: for its blocks */
    JK_WAIT_WINDOW_STORED,   /* computing into a window's place: for the writing of the last one */
    JK_WAIT_ALL_WINDOWS_STORED, /* the end of all blocks: for errors of writing */
    JK_WAITS,
    JK_WAITS_OF_PRODUCTS = JK_WAIT_WINDOW_LOADED
} jk_wait;

/* Of host threads that wait: what a thread has done up to jk_give is in order before what another
 * does after jk_take of the same `what`, if the wait in front of it is not left out. */
#ifdef JK_CUSIM
bool jk_must_wait(jk_wait wait);
void jk_give(const void *what);
void jk_take(jk_wait wait, const void *what);
#else
static inline bool jk_must_wait(jk_wait wait)
{
    (void)wait;
    return true;
}

static inline void jk_give(const void *what)
{
    (void)what;
}

static inline void jk_take(jk_wait wait, const void *what)
{
    (void)wait, (void)what;
}
#endif

#endif
