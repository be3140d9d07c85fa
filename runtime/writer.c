/* The writer: takes finished bands of D off the device and into the file, or into host memory where
 * their sums are not finished, in the order they were computed. */
#include "runtime/resume.h"
#include "runtime/run.h"
#include "runtime/system.h"
#include "runtime/write_behind.h"

typedef struct jk_band {
    jk_step step; /* one of its tile */
    const jk_run_product *product;
    size_t elem_bytes;
    int64_t row, rows; /* within the tile; rows 0 when a short tile has fewer bands */
    char *mem;
    char *kept; /* where its tile's sums stay in host memory; NULL: it goes to the file */
    jk_event *computed;
} jk_band;

static jk_band describe_band(const jk_run *run, int64_t number)
{
    jk_band band = {.step = jk_run_tile(run, number / run->bands)};
    const jk_slot *slot = jk_run_slot(run, &band.step, JK_OPERAND_C);
    int64_t nth = number % run->bands;
    band.product = jk_run_product_of(run, &band.step);
    band.elem_bytes = band.product->elem_bytes[JK_OPERAND_C];
    band.row = nth * band.product->band_rows;
    band.rows = jk_max(0, jk_min(band.product->band_rows, band.step.rows - band.row));
    band.mem = slot->mem + (size_t)(band.row * band.product->cols) * band.elem_bytes;
    band.computed = slot->computed[nth];
    band.kept = band.step.to_partial ? jk_kept_place(run, JK_OPERAND_C, &band.step) : NULL;
    return band;
}

/* Write one piece of the band from src, whose rows are ld elements apart: to host memory, where sums stay there
 * (ld is part->cols then), or to the file. Where the file's elements are narrower src is used up: nobody reads a
 * finished band again. */
static jask_status write_part(jk_run *run, const jk_band *band, const jk_window *part, char *src,
                              int64_t ld, jask_error *err)
{
    if (band->kept) {
        int64_t at = (band->row + part->row) * band->step.cols + part->col;
        jk_kept_copy(band->kept + (size_t)at * band->elem_bytes, src,
                     (size_t)(part->rows * part->cols) * band->elem_bytes);
        return JASK_OK;
    }
    jk_window w = {band->step.row + band->row + part->row, band->step.col + part->col, part->rows,
                   part->cols};
    const jk_matrix d = jk_run_matrix(run, &band->step, JK_ARRAY_D);
    jask_status st = jk_matrix_narrow(&d, &w, src, ld, err);
    return st ? st : jk_matrix_write(&d, &w, src, ld, &run->file_write_bytes, err);
}

/* Queue the copy of one piece to a staging block. */
static jask_status fetch_part(jk_run *run, const jk_band *band, const jk_window *part,
                              jk_block *block, jask_error *err)
{
    size_t pitch = (size_t)band->product->cols * band->elem_bytes;
    size_t row_bytes = (size_t)part->cols * band->elem_bytes;
    jk_copy copy = {
        .dst = block->mem,
        .src = band->mem + (size_t)part->row * pitch + (size_t)part->col * band->elem_bytes,
        .dst_pitch = row_bytes,
        .src_pitch = pitch,
        .row_bytes = row_bytes,
        .rows = (size_t)part->rows,
    };
    jask_status st = run->dev->download(run->down, &copy, err);
    return st ? st : run->dev->event_record(block->free, run->down, err);
}

/* Two blocks: one is copied into while the other is written. */
static jask_status store_staged(jk_run *run, const jk_band *band, jask_error *err)
{
    jk_block *blocks = run->ring + run->ring_up;
    jk_pieces pieces = jk_run_pieces(run, band->elem_bytes, band->rows, band->step.cols);
    jask_status st = JASK_OK;
    /* Hazard: the products of this band are queued but not done. */
    if (jk_must_wait(JK_WAIT_BAND_COMPUTED))
        st = run->dev->queue_await(run->down, band->computed, err);
    for (int64_t i = 0; !st && i <= pieces.count; i++) {
        if (i < pieces.count) {
            jk_window part = jk_piece_window(&pieces, i);
            st = fetch_part(run, band, &part, &blocks[i % run->ring_down], err);
        }
        if (!st && i > 0) {
            jk_block *block = &blocks[(i - 1) % run->ring_down];
            jk_window part = jk_piece_window(&pieces, i - 1);
            /* Hazard: the copy into the block that is about to be written. */
            if (jk_must_wait(JK_WAIT_BLOCK_DOWNLOADED))
                st = run->dev->event_wait(block->free, err);
            if (!st)
                st = write_part(run, band, &part, block->mem, part.cols, err);
        }
    }
    return st;
}

static jask_status store_direct(jk_run *run, const jk_band *band, jask_error *err)
{
    jk_window whole = {0, 0, band->rows, band->step.cols};
    return write_part(run, band, &whole, band->mem, band->product->cols, err);
}

/* `behind` holds one for each product. */
static jask_status store_band(jk_run *run, const jk_band *band, jk_write_behind *behind,
                              jask_error *err)
{
    uint64_t bytes = (uint64_t)band->rows * (uint64_t)band->step.cols * band->elem_bytes;
    jask_status st;
    if (band->rows == 0)
        return JASK_OK;
    st = run->staged ? store_staged(run, band, err) : store_direct(run, band, err);
    if (st)
        return st;
    /* Sums that come again need not be on the disk. */
    if (!band->step.to_partial)
        st = jk_write_behind_add(&behind[band->step.product], bytes, err);
    if (st)
        return st;
    pthread_mutex_lock(&run->lock);
    run->d2h_bytes += bytes;
    run->d2h_pages += band->row == 0;
    pthread_mutex_unlock(&run->lock);
    return JASK_OK;
}

void *jk_writer_main(void *arg)
{
    jk_run *run = arg;
    int64_t total = run->tiles * run->bands;
    jk_write_behind behind[JK_RUN_PRODUCTS];
    double free_since = jk_clock_seconds();
    jask_error err;
    for (int i = 0; i < run->product_count; i++)
        behind[i] = jk_write_behind_of(run->products[i].job->d.file, run->job->ctx,
                                       run->job->resume != NULL);
    run->dev->begin_thread(run->job->device->dev);
    jk_placement_bind_thread(run->job->device->info.near);
    pthread_mutex_lock(&run->lock);
    while (!run->stop && run->bands_taken < total) {
        int64_t number = run->bands_taken;
        jk_band band;
        double start, end;
        jask_status st;
        /* Hazard: the products of this band are not queued yet. */
        if (jk_must_wait(JK_WAIT_BAND_POSTED) && number == run->bands_posted) {
            jk_run_wait(run);
            continue;
        }
        start = jk_clock_seconds();
        run->write_stall_seconds += start - free_since;
        jk_take(JK_WAIT_BAND_POSTED, &run->bands_posted);
        pthread_mutex_unlock(&run->lock);
        jk_trace_span(run->job->trace, JK_TRACK_WRITER, "wait", "band", number, free_since, start);
        band = describe_band(run, number);
        st = store_band(run, &band, behind, &err);
        if (!st && run->job->resume && (number + 1) % run->bands == 0)
            st = jk_resume_tile_done(run->job->resume, number / run->bands, &err);
        if (st)
            jk_run_fail(run, &err);
        free_since = end = jk_clock_seconds();
        jk_trace_span(run->job->trace, JK_TRACK_WRITER, "write", "band", number, start, end);
        pthread_mutex_lock(&run->lock);
        run->write_seconds += end - start;
        run->bands_taken += st == JASK_OK;
        jk_give(&run->bands_taken);
        pthread_cond_broadcast(&run->changed);
    }
    pthread_mutex_unlock(&run->lock);
    return NULL;
}
