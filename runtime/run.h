/* The state of one pipeline run, shared by its threads. */
#ifndef JK_RUNTIME_RUN_H
#define JK_RUNTIME_RUN_H

#include "runtime/pipeline.h"
#include "runtime/waits.h"

#include <pthread.h>
#include <stdatomic.h>

/* What is loaded, in the order of the arrays of a product. */
enum {
    JK_OPERAND_A = JK_ARRAY_A,
    JK_OPERAND_B = JK_ARRAY_B,
    JK_OPERAND_C = JK_ARRAY_C,
    JK_OPERANDS
};

/* A place on the device for a panel or a tile. Owned in turn by the reader that fills it, and by
 * the products from the step it was filled for to its last use. */
typedef struct jk_slot {
    char *mem;
    int64_t last_use;    /* readers' view: last step, of those looked at, whose product uses it */
    jk_event *filled;    /* upload queue: what was last loaded into it is complete */
    jk_event *released;  /* A and B, compute queue: products queued so far have read it */
    jk_event **computed; /* D, compute queue: a band of the tile is; for each band of a tile */
    /* The last panel or tile of which a piece has come. Loads are numbered in plan order. */
    int64_t load;
    int64_t pieces_left; /* 0: all are queued on (or, with host memory, in) the device */
} jk_slot;

/* The slots of one array. */
typedef struct jk_pool {
    jk_slot *slots;
    int64_t count;
} jk_pool;

enum { JK_RUN_PRODUCTS = 2, JK_POOLS = JK_JOINT_POOLS };

/* One of the products that a run makes. */
typedef struct jk_run_product {
    const jk_product *job;
    size_t elem_bytes[JK_OPERANDS]; /* on the device; C's are D's, too */
    jk_pool *pools[JK_OPERANDS];    /* B's may be A's, or another product's */
    int64_t rows, cols;             /* of a tile of D that no edge cuts off */
    int64_t band_rows;              /* it is stored in bands of so many */
} jk_run_product;

/* A staging block beside a device with memory of its own. */
typedef struct jk_block {
    char *mem;
    jk_event *free; /* the copy out of (upload) or into (download) it is done */
    int64_t piece;  /* upload ring: the last piece that was queued from it; -1 */
} jk_block;

/* Strips of A, or of B, or sums in host memory; none: all NULL and 0. */
typedef struct jk_kept {
    char *mem;
    size_t bytes;
    int64_t *last_piece; /* that fills or copies the place of a panel of A or B; -1 */
} jk_kept;

typedef struct jk_run {
    const jk_product *job; /* the first, or only one: what all products of the run have in common */
    const jk_plan *plan;   /* NULL: joint */
    const jk_joint *joint;
    const jk_device_table *dev;
    bool staged;
    size_t block_bytes; /* job->block_bytes, or less where so much pinned memory was refused */
    jk_run_product products[JK_RUN_PRODUCTS];
    int product_count;
    int64_t steps, tiles; /* of the plan */
    int64_t bands;        /* of a tile of D, the most that there are */

    char *arena; /* one device allocation for all slots, and the workspace of products */
    size_t arena_bytes;
    char *workspace;
    size_t workspace_bytes;
    jk_pool pools[JK_POOLS];
    jk_queue *up, *compute, *down;
    jk_block *ring; /* staged: io_threads * 2 blocks for uploads, then 2 for downloads */
    int ring_up, ring_down;
    char *pinned;
    size_t pinned_bytes;
    bool pageable; /* the ring is ordinary memory: pinning was refused */
    char note[256];
    jk_kept kept[JK_OPERANDS];
    char *bounce; /* one block a reader, when C has to be transposed */
    size_t bounce_bytes;
    struct jk_reader *readers;
    pthread_t writer;
    bool writer_started;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* All below is guarded by lock, except the atomic counters. */
    bool stop;
    jask_error error; /* the first; valid once stop is set for a failure */
    int64_t steps_issued;
    int64_t bands_posted; /* computed and waiting to be stored */
    int64_t bands_taken;  /* off their slots: written, or copied to the host */
    struct {              /* the next piece to read */
        int64_t step;
        int operand;
        int64_t piece; /* of the load */
        int64_t load;
        int64_t serial; /* of all pieces */
        int64_t after;  /* the load's panel was used in host memory up to this piece; -1 */
    } next;
    double read_seconds, read_stall_seconds, write_seconds, write_stall_seconds;

    uint64_t h2d_bytes, d2h_bytes;
    int64_t h2d_pages, d2h_pages;
    _Atomic uint64_t file_read_bytes, file_write_bytes;
} jk_run;

jask_status jk_run_open(const jk_product *job, jk_run **out, jask_error *err);
/* Wait for the threads to end. */
void jk_run_join(jk_run *run);
/* Stop everything, wait for it, free it. NULL and half-built allowed. */
void jk_run_close(jk_run *run);

/* Keep the first error and make every stage stop. `err` holds the error; returns its code. */
jask_status jk_run_fail(jk_run *run, const jask_error *err);

/* With the lock held: wait for `changed`. False when the run is stopping. */
bool jk_run_wait(jk_run *run);

/* Thread bodies; `arg` is a jk_reader, or the run. */
typedef struct jk_reader {
    jk_run *run;
    int index;
    int64_t serial; /* of the piece in hand; INT64_MAX: none. Guarded by the run's lock */
    pthread_t thread;
    bool started;
    double busy_seconds, stall_seconds;
} jk_reader;

/* run_plan.c: what the plan says. */

/* Describe products and pools, without slots, by the job's plan. */
void jk_run_lay_out(jk_run *run);
/* Bytes of a slot of a pool, and how many there are. */
uint64_t jk_run_slot_bytes(const jk_run *run, int pool, int64_t *out_count);
jk_step jk_run_step(const jk_run *run, int64_t s);
/* Some step of a tile; and the tile that was in its slot before, -1 where none was. */
jk_step jk_run_tile(const jk_run *run, int64_t tile);
int64_t jk_run_tile_before(const jk_run *run, int64_t tile);
/* The tile that one which begins with partial sums goes on from. */
int64_t jk_run_tile_continued(const jk_run *run, int64_t tile);

static inline const jk_run_product *jk_run_product_of(const jk_run *run, const jk_step *step)
{
    return &run->products[step->product];
}

/* Whether a step loads operand `op`, and the slot it uses: B's may be A's. */
bool jk_step_loads(const jk_step *step, int op);
jk_slot *jk_run_slot(const jk_run *run, const jk_step *step, int op);

/* Memory for the strips and sums that the plan keeps. Closing is allowed half-built. */
jask_status jk_kept_open(jk_run *run, jask_error *err);
void jk_kept_close(jk_run *run);
size_t jk_kept_bytes(const jk_run *run);
/* Where the step's panel of `op` lies, or the sums of its tile, dense; NULL: `op` is not kept. */
char *jk_kept_place(const jk_run *run, int op, const jk_step *step);
/* Of A or B, kept. */
int64_t *jk_kept_last_piece(const jk_run *run, int op, const jk_step *step);
void jk_kept_copy(void *dst, const void *src, size_t bytes);

void *jk_reader_main(void *arg);
void *jk_writer_main(void *arg);

/* Where a step's panel or tile of an array (JK_ARRAY_A, ...) lies. */
jk_matrix jk_run_matrix(const jk_run *run, const jk_step *step, int array);

/* How the step's panel or tile of operand `op` lies in its slot: rows x cols, dense. A and B keep
 * their stored form, transposed or not; C and D are m x n. */
void jk_run_slot_shape(const jk_run *run, int op, const jk_step *step, int64_t *rows,
                       int64_t *cols);

/* Elements from row to row in a slot. Tiles of D all use that of the widest: then a band lies where
 * the same band of every other tile lies, and may be overwritten once that one is taken. */
static inline int64_t jk_run_slot_ld(const jk_run *run, const jk_step *step, int op, int64_t cols)
{
    return op == JK_OPERAND_C ? jk_run_product_of(run, step)->cols : cols;
}

/* How rows x cols elements are cut into pieces of at most one block: whole rows while a row fits,
 * parts of rows otherwise. */
typedef struct jk_pieces {
    int64_t rows, cols;             /* of the whole */
    int64_t piece_rows, piece_cols; /* of a piece that is not cut off at an edge */
    int64_t count;
} jk_pieces;

jk_pieces jk_run_pieces(const jk_run *run, size_t elem_bytes, int64_t rows, int64_t cols);
jk_window jk_piece_window(const jk_pieces *pieces, int64_t index);

/* Band `band` of tile `tile`, numbered over the whole run in the order of computing. */
static inline int64_t jk_run_band_number(const jk_run *run, int64_t tile, int64_t band)
{
    return tile * run->bands + band;
}

#endif
