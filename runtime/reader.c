/* Readers: bring panels of A and B, and tiles of C, from files to their slots. They take pieces in
 * plan order, so the piece that the products need next is never behind one they need later. */
#include "kernels/host_kernels.h"
#include "runtime/run.h"
#include "runtime/system.h"

/* To pass where nothing has to be waited for takes less. */
#define WAIT_SECONDS_MIN 1e-6

typedef struct jk_piece {
    int op;
    jk_step step;
    jk_slot *slot;
    int64_t load, load_pieces; /* of which it is one, and how many that has */
    int64_t serial;
    int64_t release_step; /* the slot is free once this step's product is done; -1: always was */
    jk_window part;       /* of the slot's rows x cols */
    int64_t slot_ld;
    bool from_file;
    char *kept;    /* its place in host memory; NULL: none */
    int64_t after; /* which pieces up to this one used before; -1: none did */
} jk_piece;

/* The window of operand `op`'s matrix, in its stored form, that the step uses; `trans`: that is the
 * transpose. */
static jk_window stored_window(int op, bool trans, const jk_step *step)
{
    jk_window w =
        op == JK_OPERAND_A   ? (jk_window){step->row, step->depth_start, step->rows, step->depth}
        : op == JK_OPERAND_B ? (jk_window){step->depth_start, step->col, step->depth, step->cols}
                             : (jk_window){step->row, step->col, step->rows, step->cols};
    return trans ? (jk_window){w.col, w.row, w.cols, w.rows} : w;
}

void jk_run_slot_shape(const jk_run *run, int op, const jk_step *step, int64_t *rows, int64_t *cols)
{
    const jk_product *job = jk_run_product_of(run, step)->job;
    bool trans = op == JK_OPERAND_A ? job->a.trans : op == JK_OPERAND_B && job->b.trans;
    jk_window w = stored_window(op, trans, step);
    *rows = w.rows;
    *cols = w.cols;
}

/* One that no edge cuts off. */
static jk_step whole_step(const jk_product *product)
{
    const jk_plan *plan = product->plan;
    int which = product->other ? JK_ROWS : JK_COLS;
    return product->joint ? jk_joint_step(product->joint, which == product->joint->stays)
                          : (jk_step){.rows = plan->bm, .cols = plan->bn, .depth = plan->bk};
}

size_t jk_product_run_bytes(const jk_product *product, int input)
{
    const jk_step step = whole_step(product);
    const jk_matrix *m = input == JK_OPERAND_A   ? &product->a
                         : input == JK_OPERAND_B ? &product->b
                                                 : &product->c;
    if (product->joint && input != JK_OPERAND_C && !jk_step_loads(&step, input))
        return 0;
    if (product->plan && input == JK_OPERAND_B && product->plan->b_slots == 0)
        return 0;
    int64_t across = input == JK_OPERAND_A ? step.depth : step.cols;
    int64_t down = input == JK_OPERAND_B ? step.depth : step.rows;
    int64_t cols = m->trans ? down : across, rows = m->trans ? across : down;
    size_t bytes = (size_t)cols * jask_dtype_size(m->dtype);
    if (cols >= m->cols)
        bytes *= (size_t)rows;
    return bytes < product->block_bytes ? bytes : product->block_bytes;
}

jk_pieces jk_run_pieces(const jk_run *run, size_t elem_bytes, int64_t rows, int64_t cols)
{
    int64_t block = (int64_t)(run->block_bytes / elem_bytes);
    jk_pieces p = {.rows = rows, .cols = cols};
    p.piece_cols = jk_min(cols, block);
    p.piece_rows = jk_min(rows, block / p.piece_cols);
    p.count = jk_ceil_div(rows, p.piece_rows) * jk_ceil_div(cols, p.piece_cols);
    return p;
}

jk_window jk_piece_window(const jk_pieces *p, int64_t index)
{
    int64_t across = jk_ceil_div(p->cols, p->piece_cols);
    int64_t row = index / across * p->piece_rows, col = index % across * p->piece_cols;
    return (jk_window){row, col, jk_min(p->piece_rows, p->rows - row),
                       jk_min(p->piece_cols, p->cols - col)};
}

/* With the lock held: move run->next to the next load there is. False at the end of the plan. */
static bool find_load(jk_run *run, jk_step *step)
{
    while (run->next.step < run->steps) {
        *step = jk_run_step(run, run->next.step);
        for (; run->next.operand < JK_OPERANDS; run->next.operand++)
            if (jk_step_loads(step, run->next.operand))
                return true;
        jk_run_slot(run, step, JK_OPERAND_A)->last_use = run->next.step;
        jk_run_slot(run, step, JK_OPERAND_B)->last_use = run->next.step;
        run->next.operand = 0;
        run->next.step++;
    }
    return false;
}

/* With the lock held: whether the piece, of rows of `cols`, is read or copied, and where it is kept. */
static void place_piece(jk_run *run, jk_piece *p, int64_t cols)
{
    char *kept = jk_kept_place(run, p->op, &p->step);
    bool sums = p->op == JK_OPERAND_C;
    p->from_file = true;
    p->kept = NULL;
    p->after = -1;
    if (!kept || (sums && !p->step.from_partial))
        return;
    p->kept = kept + (size_t)(p->part.row * cols + p->part.col) *
                         jk_run_product_of(run, &p->step)->elem_bytes[p->op];
    p->from_file = sums ? false : p->op == JK_OPERAND_A ? p->step.read_a : p->step.read_b;
    if (sums)
        return;
    int64_t *last = jk_kept_last_piece(run, p->op, &p->step);
    if (run->next.piece == 0)
        run->next.after = *last;
    *last = p->serial;
    p->after = run->next.after;
}

/* With the lock held: take the next piece. False when there is none, or the run stops. */
static bool take_piece(jk_reader *reader, jk_piece *out)
{
    jk_run *run = reader->run;
    jk_step step;
    jk_pieces pieces;
    int64_t rows, cols;
    int op;
    if (run->stop || !find_load(run, &step))
        return false;
    op = run->next.operand;
    jk_run_slot_shape(run, op, &step, &rows, &cols);
    pieces = jk_run_pieces(run, jk_run_product_of(run, &step)->elem_bytes[op], rows, cols);
    out->op = op;
    out->step = step;
    out->slot = jk_run_slot(run, &step, op);
    out->load = run->next.load;
    out->load_pieces = pieces.count;
    out->serial = run->next.serial++;
    out->release_step = out->slot->last_use;
    out->part = jk_piece_window(&pieces, run->next.piece);
    out->slot_ld = jk_run_slot_ld(run, &step, op, cols);
    place_piece(run, out, cols);
    reader->serial = out->serial;
    if (++run->next.piece == pieces.count) {
        run->next.piece = 0;
        run->next.load++;
        run->next.operand++;
    }
    return true;
}

static void note_wait(jk_reader *reader, const jk_piece *p, double start)
{
    double end = jk_clock_seconds();
    if (end - start < WAIT_SECONDS_MIN)
        return;
    reader->stall_seconds += end - start;
    jk_trace_span(reader->run->job->trace, JK_TRACK_READERS + reader->index, "wait", "load",
                  p->load, start, end);
}

static int64_t last_band(const jk_run *run, const jk_piece *p)
{
    return (p->part.row + p->part.rows - 1) / jk_run_product_of(run, &p->step)->band_rows;
}

/* With the lock held: until the bands of a tile down to the piece's last have left their slot and are in
 * the file. False when the run stops. */
static bool wait_band_taken(jk_run *run, jk_wait wait, const jk_piece *p, int64_t tile)
{
    bool go = true;
    while (jk_must_wait(wait) && go &&
           run->bands_taken <= jk_run_band_number(run, tile, last_band(run, p)))
        go = jk_run_wait(run);
    jk_take(wait, &run->bands_taken);
    return go;
}

/* Hazard: overwriting a slot that products still read, or a tile that is still to be stored. False
 * when the run stops. */
static bool wait_slot_free(jk_reader *reader, const jk_piece *p)
{
    jk_run *run = reader->run;
    double start = jk_clock_seconds();
    bool go = true;
    pthread_mutex_lock(&run->lock);
    if (p->op == JK_OPERAND_C) {
        int64_t before = jk_run_tile_before(run, p->step.tile);
        if (before >= 0)
            go = wait_band_taken(run, JK_WAIT_TILE_STORED, p, before);
    } else {
        while (jk_must_wait(JK_WAIT_STEP_ISSUED) && go && run->steps_issued <= p->release_step)
            go = jk_run_wait(run);
        if (p->release_step >= 0)
            jk_take(JK_WAIT_STEP_ISSUED, &run->steps_issued);
    }
    go = go && !run->stop;
    pthread_mutex_unlock(&run->lock);
    note_wait(reader, p, start);
    return go;
}

static bool all_done(const jk_run *run, int64_t serial)
{
    for (int i = 0; i < run->job->io_threads; i++)
        if (run->readers[i].serial <= serial)
            return false;
    return true;
}

/* Hazard: copying a panel that is not all in host memory, or overwriting one that is still copied. Pieces are
 * taken in order, and this one waits for earlier ones only. False when the run stops. */
static bool wait_kept(jk_reader *reader, const jk_piece *p)
{
    jk_run *run = reader->run;
    double start = jk_clock_seconds();
    bool go = true;
    pthread_mutex_lock(&run->lock);
    while (jk_must_wait(JK_WAIT_PANEL_KEPT) && go && !all_done(run, p->after))
        go = jk_run_wait(run);
    for (int i = 0; i < run->job->io_threads; i++)
        jk_take(JK_WAIT_PANEL_KEPT, &run->readers[i]);
    pthread_mutex_unlock(&run->lock);
    note_wait(reader, p, start);
    return go;
}

/* Hazard: reading sums that are still to be written, to a file or to host memory. (They are overwritten by a band
 * whose products were made with them.) False when the run stops. */
static bool wait_sums_stored(jk_reader *reader, const jk_piece *p)
{
    jk_run *run = reader->run;
    double start = jk_clock_seconds();
    bool go;
    if (p->op != JK_OPERAND_C || !p->step.from_partial)
        return true;
    pthread_mutex_lock(&run->lock);
    go = wait_band_taken(run, JK_WAIT_SUMS_STORED, p, jk_run_tile_continued(run, p->step.tile));
    pthread_mutex_unlock(&run->lock);
    note_wait(reader, p, start);
    return go;
}

/* A piece of a C stored as its transpose: read as it lies, turned on the way to dst. */
static jask_status read_turned(jk_reader *reader, const jk_piece *p, const jk_matrix *m, char *dst,
                               int64_t ld, jask_error *err)
{
    jk_run *run = reader->run;
    char *bounce = run->bounce + (size_t)reader->index * run->block_bytes;
    jk_window w = stored_window(p->op, true, &p->step);
    jask_status st;
    w = (jk_window){w.row + p->part.col, w.col + p->part.row, p->part.cols, p->part.rows};
    st = jk_matrix_read(m, &w, bounce, p->part.rows, &run->file_read_bytes, err);
    if (!st)
        jk_transpose(dst, ld, bounce, p->part.rows, p->part.cols, p->part.rows,
                     jk_run_product_of(run, &p->step)->elem_bytes[p->op]);
    return st;
}

/* Read the piece into dst, leading dimension ld. */
static jask_status read_piece(jk_reader *reader, const jk_piece *p, char *dst, int64_t ld,
                              jask_error *err)
{
    static const char *const names[JK_OPERANDS] = {"read A", "read B", "read C"};
    const jk_matrix m = jk_run_matrix(reader->run, &p->step, p->op);
    double start = jk_clock_seconds(), end;
    jask_status st;
    if (p->op == JK_OPERAND_C && m.trans) {
        st = read_turned(reader, p, &m, dst, ld, err);
    } else {
        jk_window w = stored_window(p->op, m.trans, &p->step);
        w = (jk_window){w.row + p->part.row, w.col + p->part.col, p->part.rows, p->part.cols};
        st = jk_matrix_read(&m, &w, dst, ld, &reader->run->file_read_bytes, err);
    }
    end = jk_clock_seconds();
    reader->busy_seconds += end - start;
    jk_trace_span(reader->run->job->trace, JK_TRACK_READERS + reader->index, names[p->op], "load",
                  p->load, start, end);
    return st;
}

/* Bring the piece into a block: from its file, keeping it where it is to be kept, or from there. */
static jask_status fill_block(jk_reader *reader, const jk_piece *p, char *block, jask_error *err)
{
    static const char *const names[JK_OPERANDS] = {"copy A", "copy B", "copy C"};
    size_t bytes = (size_t)(p->part.rows * p->part.cols) *
                   jk_run_product_of(reader->run, &p->step)->elem_bytes[p->op];
    double start, end;
    if (p->from_file) {
        jask_status st = read_piece(reader, p, block, p->part.cols, err);
        if (!st && p->kept)
            jk_kept_copy(p->kept, block, bytes);
        return st;
    }
    start = jk_clock_seconds();
    jk_kept_copy(block, p->kept, bytes);
    end = jk_clock_seconds();
    reader->busy_seconds += end - start;
    jk_trace_span(reader->run->job->trace, JK_TRACK_READERS + reader->index, names[p->op], "load",
                  p->load, start, end);
    return JASK_OK;
}

/* Queue the copy of a staged piece to its slot. With the lock held, so that uploads and the events
 * between them stay in order. */
static jask_status queue_upload(jk_run *run, const jk_piece *p, jk_block *block, jask_error *err)
{
    size_t size = jk_run_product_of(run, &p->step)->elem_bytes[p->op],
           pitch = (size_t)p->slot_ld * size;
    size_t row_bytes = (size_t)p->part.cols * size;
    jk_copy copy = {
        .dst = p->slot->mem + (size_t)p->part.row * pitch + (size_t)p->part.col * size,
        .src = block->mem,
        .dst_pitch = pitch,
        .src_pitch = row_bytes,
        .row_bytes = row_bytes,
        .rows = (size_t)p->part.rows,
    };
    jask_status st = JASK_OK;
    /* Hazard: products queued earlier still use the slot. (A tile of D has left its slot: the
     * writer waited for its copy before it said so.) */
    if (p->op != JK_OPERAND_C && jk_must_wait(JK_WAIT_SLOT_RELEASED))
        st = run->dev->queue_await(run->up, p->slot->released, err);
    if (!st)
        st = run->dev->upload(run->up, &copy, err);
    if (!st)
        st = run->dev->event_record(block->free, run->up, err);
    return st;
}

/* Count the piece as delivered; after the last one of a load the products may use it. */
static jask_status finish_piece(jk_reader *reader, const jk_piece *p, jask_error *err)
{
    jk_run *run = reader->run;
    jk_slot *slot = p->slot;
    jask_status st = JASK_OK;
    if (slot->load != p->load) {
        slot->load = p->load;
        slot->pieces_left = p->load_pieces;
    }
    run->h2d_bytes += (uint64_t)p->part.rows * (uint64_t)p->part.cols *
                      jk_run_product_of(run, &p->step)->elem_bytes[p->op];
    if (slot->pieces_left == 1) {
        run->h2d_pages++;
        st = run->dev->event_record(slot->filled, run->up, err);
    }
    /* Not before the event is recorded, which the products then wait for. */
    if (!st)
        slot->pieces_left--;
    jk_give(slot);
    reader->serial = INT64_MAX;
    jk_give(reader);
    pthread_cond_broadcast(&run->changed);
    return st;
}

/* With memory of its own: file -> staging block -> (queued) slot. */
static jask_status deliver_staged(jk_reader *reader, const jk_piece *p, jask_error *err)
{
    jk_run *run = reader->run;
    jk_block *block = &run->ring[p->serial % run->ring_up];
    double start = jk_clock_seconds();
    bool go = true;
    jask_status st = JASK_OK;
    /* Hazard: the block's previous piece has not been queued yet, or its copy is not done. */
    pthread_mutex_lock(&run->lock);
    while (jk_must_wait(JK_WAIT_BLOCK_QUEUED) && go && p->serial >= run->ring_up &&
           block->piece != p->serial - run->ring_up)
        go = jk_run_wait(run);
    if (p->serial >= run->ring_up)
        jk_take(JK_WAIT_BLOCK_QUEUED, block);
    pthread_mutex_unlock(&run->lock);
    if (!go)
        return JASK_OK;
    if (jk_must_wait(JK_WAIT_BLOCK_UPLOADED))
        st = run->dev->event_wait(block->free, err);
    note_wait(reader, p, start);
    if (!st && (!wait_sums_stored(reader, p) ||
                (p->kept && p->op != JK_OPERAND_C && !wait_kept(reader, p))))
        return JASK_OK;
    if (!st)
        st = fill_block(reader, p, block->mem, err);
    if (st || !wait_slot_free(reader, p))
        return st;
    pthread_mutex_lock(&run->lock);
    st = queue_upload(run, p, block, err);
    if (!st) {
        block->piece = p->serial;
        jk_give(block);
        st = finish_piece(reader, p, err);
    }
    pthread_mutex_unlock(&run->lock);
    return st;
}

/* Host memory: the file is read straight into the slot. */
static jask_status deliver_direct(jk_reader *reader, const jk_piece *p, jask_error *err)
{
    jk_run *run = reader->run;
    size_t at = ((size_t)p->part.row * (size_t)p->slot_ld + (size_t)p->part.col) *
                jk_run_product_of(run, &p->step)->elem_bytes[p->op];
    jask_status st;
    if (!wait_slot_free(reader, p) || !wait_sums_stored(reader, p))
        return JASK_OK;
    st = read_piece(reader, p, p->slot->mem + at, p->slot_ld, err);
    if (st)
        return st;
    pthread_mutex_lock(&run->lock);
    st = finish_piece(reader, p, err);
    pthread_mutex_unlock(&run->lock);
    return st;
}

void *jk_reader_main(void *arg)
{
    jk_reader *reader = arg;
    jk_run *run = reader->run;
    jask_error err;
    jk_piece p;
    run->dev->begin_thread(run->job->device->dev);
    jk_placement_bind_thread(run->job->device->info.near);
    pthread_mutex_lock(&run->lock);
    while (take_piece(reader, &p)) {
        jask_status st;
        pthread_mutex_unlock(&run->lock);
        st = run->staged ? deliver_staged(reader, &p, &err) : deliver_direct(reader, &p, &err);
        if (st)
            jk_run_fail(run, &err);
        pthread_mutex_lock(&run->lock);
    }
    run->read_seconds += reader->busy_seconds;
    run->read_stall_seconds += reader->stall_seconds;
    pthread_mutex_unlock(&run->lock);
    return NULL;
}
