/* Plans: which tiles visit the device in which order, and what that moves. Everything here is pure:
 * it depends on its arguments alone and touches neither files nor clocks nor the environment. */
#ifndef JK_PLANNER_PLAN_H
#define JK_PLANNER_PLAN_H

#include "common/base.h"

/* A product to plan: op(A) m x k, op(B) k x n, D m x n. Element sizes in bytes, as they are on the
 * device; c_bytes of C and of D. */
typedef struct jk_problem {
    int64_t m, n, k;
    int a_bytes, b_bytes, c_bytes;
    bool read_c; /* beta != 0: C is read once, tile by tile */
    bool gram;   /* op(B) is the transpose of op(A), out of the same file: X'X or XX' */
    /* Stored as their transposes: what lies together in the file is a column of what is multiplied. */
    bool a_turned, b_turned, c_turned;
    /* In files, where elements are converted on the way; 0: as on the device. */
    int a_file_bytes, b_file_bytes, c_file_bytes, d_file_bytes;
    /* Sums are made in slabs of so many indices of k, ascending: panels hold whole slabs (the last one,
     * what is left) and every tile meets them in ascending order. 0: as moves the fewest bytes. */
    int64_t slab;
    bool resumes;     /* a run may begin at any tile: none is stored before it is finished */
    int64_t batches;  /* products of these extents, one after the other; 0 is 1 */
    jask_phase phase; /* how many blocks the reference's pages share the memory with */
} jk_problem;

static inline int64_t jk_problem_batches(const jk_problem *problem)
{
    return problem->batches > 1 ? problem->batches : 1;
}

/* What the planner is told about the machine. Rates are bytes or floating point operations a
 * second. */
typedef struct jk_machine {
    uint64_t device_bytes;  /* the budget: all that the plan may hold on the device at once */
    uint64_t reserve_bytes; /* of it, set aside for the runtime (workspace, transposing buffers) */
    double flops;           /* for the problem's type */
    double h2d, d2h;
    double disk_read, disk_write;
    /* Runs, bytes that lie together in a file, that can be read of one that is not in the page cache, many
     * asked for at once. 0: not counted. */
    double runs;
    double device_memory; /* the device's own memory: a product re-reads and re-writes its C tile */
    double step_seconds;  /* fixed cost of one step */
    /* Beside a device with memory of its own: host memory for staging and for strips of A and B that
     * stay there, and what of it staging takes. 0: nothing stays. */
    uint64_t host_bytes, host_reserve_bytes;
    bool shared_cores; /* host device: copies and products compete for the same cores */
} jk_machine;

typedef enum jk_planner { JK_PLANNER_AUTO, JK_PLANNER_BYTES, JK_PLANNER_PAGE } jk_planner;

/* EMPTY: an extent is 0, nothing is multiplied, and D is zero or a multiple of C. */
typedef enum jk_schedule {
    JK_SCHEDULE_EMPTY,
    JK_SCHEDULE_PAGE,
    JK_SCHEDULE_C_STATIONARY
} jk_schedule;

/* The two operands: A, which runs along the rows of D, and B along its columns. What holds for one
 * holds for the other with the roles exchanged, so most of the planner says `side` for either. */
enum { JK_ROWS, JK_COLS };

/* Tiles of D are visited row of tiles by row of tiles (IJ) or column by column (JI). */
typedef enum jk_order { JK_ORDER_IJ, JK_ORDER_JI } jk_order;

/* What takes time, each at its own rate. PRODUCTS on a device with shared cores are the copies as
 * well. */
typedef enum jk_stage {
    JK_STAGE_PRODUCTS,
    JK_STAGE_UP,
    JK_STAGE_DOWN,
    JK_STAGE_READ, /* files */
    JK_STAGE_WRITE,
    JK_STAGES
} jk_stage;

/* A plan is a value: copy it, compare it, keep it. Tile (i, j) of D is rows [i*bm, min(m,
 * (i+1)*bm)) and columns [j*bn, ...); panel p is k indices [p*bk, ...). A tile of D is finished in
 * kt steps, one a panel. Tile t of D (in visiting order) lives in C slot t % c_slots. A panel of A or
 * B goes to the slot of its operand that has not been used for longest (step.c has the rule): with
 * two slots or more, never to one that the step before it uses.
 *
 * With b_slots 0, which takes `gram` and one tile, panel p of B is panel p of A, in A's slot.
 *
 * With `serpentine` every second row of tiles is visited backwards, and every second tile runs over
 * its panels backwards, so that the panels met last are met first again and need no copy: as many as
 * there are slots, of A along a row of tiles and of B at the turn into the next (order IJ). With
 * problem.slab no tile runs backwards over its panels, and what is met again without a copy are whole blocks:
 * the kt panels of one row of tiles of A, and of columns of B at the turn, where there are slots for them.
 * An operand has fewer slots than kt then, or as many as make whole blocks.
 *
 * Host memory beside the device holds strips: of A, bm rows and all of k; of B, bn columns. A panel is
 * read from its file when its strip is not there, and is kept there; all later copies of it come
 * from host memory. To need fewer strips, tiles are visited in groups: with order IJ, `group`
 * columns of tiles at a time, all rows of each; so strips of B stay while a group is made, and
 * one or more of A while a row of it is. Groups find nothing on the device, but the strips of A in
 * host memory that the one before has left there last, because every second one visits rows backwards.
 * Order JI is the same with the roles exchanged.
 *
 * Or host memory holds a super-tile of sums: super_rows x super_cols tiles of D, which are made together, layer
 * by layer, `layer` panels of each (the last layer may have fewer). Within a layer tiles are visited as those of a
 * plan of their own, with strips that are as deep as the layer; each is stored at its end, to host memory but for
 * the last layer, and begins with what the layer before has stored. Nothing else is found from one layer
 * in the next. */
typedef struct jk_plan {
    jk_problem problem;
    jk_planner planner; /* as asked */
    jk_schedule schedule;
    jk_order order;
    bool serpentine;
    int64_t bm, bn, bk;
    int64_t mt, nt, kt; /* ceil(m/bm), ceil(n/bn), ceil(k/bk) */
    int64_t tiles;      /* that are stored: batches * mt * nt, which follow one another and share no
                           panels; with super-tiles each once a layer */
    int64_t a_slots, b_slots, c_slots;
    int64_t group;              /* 0: all tiles are one */
    int64_t a_strips, b_strips; /* places in host memory; 0: every copy comes from the file */
    int64_t super_rows, super_cols, layer; /* 0: no super-tiles */
    size_t slot_align;                     /* every slot begins at a multiple of this */

    int64_t steps; /* batches * mt * nt * kt */
    int64_t h2d_pages, d2h_pages;
    uint64_t h2d_bytes, d2h_bytes;
    uint64_t file_read_bytes, file_write_bytes;
    uint64_t peak_bytes; /* slots and reserve: never above budget_bytes */
    uint64_t reserve_bytes;
    uint64_t budget_bytes;
    uint64_t host_peak_bytes, host_reserve_bytes, host_budget_bytes; /* the same, of host memory */
    uint64_t lower_bound_bytes; /* of h2d + d2h, for memory of budget_bytes */
    double seconds;
    double stage_seconds[JK_STAGES];
    uint64_t compute_bound_budget; /* see jk_plan_find_cure; 0: none, or not looked for */
    uint64_t compute_bound_host_budget;
    int64_t considered; /* plans that it was chosen from */
} jk_plan;

/* Step s: D tile (i, j) += A panel (i, p) * B panel (p, j), in device memory. */
typedef struct jk_step {
    int64_t tile;  /* visiting number of the D tile, over all batches */
    int64_t batch; /* of which A, B, C and D are meant */
    int64_t i, j, p;
    int64_t row, col, depth_start; /* first row of A and D, column of B and D, index of k */
    int64_t rows, cols, depth;     /* true extents, short at the edges */
    int64_t a_slot, b_slot, c_slot;
    bool load_a, load_b; /* the panel is not resident: copy it first */
    /* The panel comes from the file, and is kept where the operand has strips; else from host memory. */
    bool read_a, read_b;
    int64_t a_strip, b_strip; /* the place of its strip there */
    bool load_c;              /* C's tile must be copied in before the first product */
    bool first, last;  /* of the tile: overwrite rather than accumulate; store it afterwards */
    int product;       /* of a joint plan (joint.h): the gradient that D stands for; else 0 */
    bool from_partial; /* C's tile is what an earlier tile of the same place in D was stored as */
    bool to_partial;   /* D's tile is added to later */
} jk_step;

/* Choose a plan. `pipelined` false asks for one slot an operand: nothing overlaps.
 * Returns BUDGET with the least budget that works, ARG for negative extents or beyond 2^62 bytes.
 * Takes under 10 ms for any sizes. */
jask_status jk_plan_make(const jk_problem *problem, const jk_machine *machine, jk_planner planner,
                         bool pipelined, jk_plan *out, jask_error *err);

/* The least device_bytes with which jk_plan_make succeeds for this problem and reserve. For products
 * whose bytes 64 bits could not count in less memory it may be up to a 64th more; UINT64_MAX when no
 * budget makes them few enough. */
uint64_t jk_plan_least_budget(const jk_problem *problem, const jk_machine *machine,
                              jk_planner planner, bool pipelined);

/* Step s of the plan, 0 <= s < plan->steps. Pure and O(1). */
jk_step jk_plan_step(const jk_plan *plan, int64_t s);

/* Step s of a run that begins with tile `first_tile`: nothing is on the device yet, so tiles also load
 * the panels which tiles before that one would have left there. 0 where there are super-tiles. */
jk_step jk_plan_step_from(const jk_plan *plan, int64_t first_tile, int64_t s);

/* The first step of a tile. */
int64_t jk_plan_tile_step(const jk_plan *plan, int64_t tile);

/* The tile that a tile whose steps are `from_partial` goes on from. */
int64_t jk_plan_tile_continued(const jk_plan *plan, int64_t tile);

/* What a run moves that begins with tile `first_tile`, 0 <= first_tile <= tiles; 0 where there are
 * super-tiles. */
typedef struct jk_plan_counts {
    int64_t h2d_pages, d2h_pages;
    uint64_t h2d_bytes, d2h_bytes;
    uint64_t file_read_bytes, file_write_bytes;
} jk_plan_counts;

/* Added up tile by tile: time goes with the number of tiles left, some 20 ns each. From tile 0 it
 * gives the plan's own counts. */
jk_plan_counts jk_plan_rest(const jk_plan *plan, int64_t first_tile);

/* What a whole run moves. */
static inline jk_plan_counts jk_plan_all(const jk_plan *plan)
{
    return (jk_plan_counts){
        .h2d_pages = plan->h2d_pages,
        .d2h_pages = plan->d2h_pages,
        .h2d_bytes = plan->h2d_bytes,
        .d2h_bytes = plan->d2h_bytes,
        .file_read_bytes = plan->file_read_bytes,
        .file_write_bytes = plan->file_write_bytes,
    };
}

/* What of file_read_bytes is of A, of B and of C. */
void jk_plan_file_reads(const jk_plan *plan, uint64_t out[3]);

/* Bytes of one slot, alignment included. */
uint64_t jk_plan_a_slot_bytes(const jk_plan *plan);
uint64_t jk_plan_b_slot_bytes(const jk_plan *plan);
uint64_t jk_plan_c_slot_bytes(const jk_plan *plan);

/* Host memory for the strips of A, or of B, and where a step's panel begins there. */
uint64_t jk_plan_a_strips_bytes(const jk_plan *plan);
uint64_t jk_plan_b_strips_bytes(const jk_plan *plan);
uint64_t jk_plan_a_place(const jk_plan *plan, const jk_step *step);
uint64_t jk_plan_b_place(const jk_plan *plan, const jk_step *step);

/* Panels of a strip, one place after the other, and which of them a step's is. */
static inline int64_t jk_plan_strip_panels(const jk_plan *plan)
{
    return plan->layer > 0 ? plan->layer : plan->kt;
}

static inline int64_t jk_plan_strip_panel(const jk_plan *plan, const jk_step *step)
{
    return step->p % jk_plan_strip_panels(plan);
}

/* Host memory for the sums of a super-tile, and where those of a step's tile begin there. */
uint64_t jk_plan_sums_bytes(const jk_plan *plan);
uint64_t jk_plan_sums_place(const jk_plan *plan, const jk_step *step);

/* The stage that takes longest. */
jk_stage jk_plan_bottleneck(const jk_plan *plan);

/* Set compute_bound_budget: a budget with which products are what takes longest, the least one but
 * for an eighth; 0 when no budget of `most_bytes` at the most does that, or none is needed. Where reading
 * files takes longest, beside a device with memory of its own, compute_bound_host_budget is looked for
 * first, in the same way, and the other one only where there is none. Makes dozens of plans. */
void jk_plan_find_cure(jk_plan *plan, const jk_machine *machine, bool pipelined,
                       uint64_t most_bytes);

/* The plan as text (json false: several lines) or one JSON object, as snprintf writes: cut off at
 * text_size, the full length returned. */
size_t jk_plan_format(const jk_plan *plan, bool json, char *text, size_t text_size);

const char *jk_stage_name(jk_stage stage);
const char *jk_schedule_name(jk_schedule schedule);
const char *jk_planner_name(jk_planner planner);
/* ARG listing the planners there are. */
jask_status jk_planner_parse(const char *text, jk_planner *out, jask_error *err);

/* No schedule that keeps at most `memory_bytes` on the device moves fewer bytes between host and
 * device (up plus down). */
uint64_t jk_lower_bound(const jk_problem *problem, uint64_t memory_bytes);

#endif
