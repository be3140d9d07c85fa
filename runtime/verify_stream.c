/* Reading four matrices once, in bounded memory. The row sums of a block of rows are built up over
 * chunks of k: a chunk of y = Bx and of the norms of B's rows is made, then meets its columns of A.
 */
#include "runtime/verify.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MEMORY_MAX ((uint64_t)64 << 20)
#define MEMORY_MIN ((uint64_t)4096)

/* Larger windows leave the cache before they are used. */
#define WINDOW_MAX ((int64_t)4 << 20)
/* A window has at least this many rows of the stored form, so that components of the random vector
 * are used many times once made; they may be as short as 256 KiB. */
#define WINDOW_ROWS 16

/* 2^EXPONENT_MAX and its inverse are normal numbers. */
#define EXPONENT_MAX 1000

/* Doubles for each k index of a chunk (y, norm, sampled columns of B) and each row of a block. */
#define CHUNK_ARRAYS (2 + JK_PROBE_COLS)
#define BLOCK_ARRAYS 4
#define BLOCK_ARRAYS_C 6

typedef struct operand {
    const jk_verify_source *source;
    int exponent;
    bool scaled; /* exponent is known */
} operand;

/* s_i += sum over j of M_ij u_j, t_i += sum over j of (M_ij v_j 2^exponent)^2, for rows i and
 * columns j of what is wanted of M. u NULL is the random vector, v NULL all ones; both begin with
 * column `col`, s and t with row `row`. */
typedef struct pass {
    operand *m;
    int64_t row, rows, col, cols;
    const double *u, *v;
    double *s, *t;
    void (*look)(jk_probe *probe, const jk_verify_view *view); /* may be NULL */
} pass;

typedef struct stream {
    const jk_verify_job *job;
    operand a, b, c, d;
    jk_probe probe;
    void *memory;
    size_t memory_bytes;
    void *window;
    int64_t window_elems;
    int64_t chunk, held; /* k indices at a time; first one of the chunk in y, -1: none */
    int64_t block;       /* rows at a time */
    double *y, *norm;    /* chunk */
    double *ab, *ab2, *d1, *d2, *c1, *c2; /* block */
    double done, total;
} stream;

/* The power of two that brings the largest finite element near 1. Squares of f32 need none. */
static int exponent_of(const jk_verify_view *view)
{
    const double *x = view->data;
    double most = 0;
    int exponent = 0;
    if (view->dtype == JASK_F32)
        return 0;
    for (int64_t e = 0; e < view->rows * view->cols; e++)
        if (isfinite(x[e]))
            most = fmax(most, fabs(x[e]));
    if (most > 0)
        (void)frexp(most, &exponent);
    return exponent < -EXPONENT_MAX  ? EXPONENT_MAX
           : exponent > EXPONENT_MAX ? -EXPONENT_MAX
                                     : -exponent;
}

/* Elements [at, at + n) of the window in f64; `room` is used for f32. */
static const double *in_f64(const jk_verify_view *view, int64_t at, int64_t n, double *room)
{
    if (view->dtype == JASK_F64)
        return (const double *)view->data + at;
    jk_verify_widen((const float *)view->data + at, n, room);
    return room;
}

/* Weights of columns [col, col + n), n <= JK_VERIFY_TILE. */
static void fill_weights(const pass *p, int64_t col, int64_t n, double *u, double *v)
{
    double scale = ldexp(1, p->m->exponent);
    if (p->u)
        memcpy(u, p->u + (col - p->col), (size_t)n * sizeof *u);
    else
        jk_verify_vector(col, n, u);
    for (int64_t e = 0; e < n; e++)
        v[e] = p->v ? p->v[col - p->col + e] * scale : scale;
}

/* Rows of M lie one after the other. */
static void add_rows(const pass *p, const jk_verify_view *view)
{
    double room[JK_VERIFY_TILE], u[JK_VERIFY_TILE], v[JK_VERIFY_TILE];
    for (int64_t c = 0; c < view->cols; c += JK_VERIFY_TILE) {
        int64_t n = jk_min(view->cols - c, JK_VERIFY_TILE);
        fill_weights(p, view->col + c, n, u, v);
        for (int64_t r = 0; r < view->rows; r++) {
            const double *a = in_f64(view, r * view->row_step + c, n, room);
            int64_t i = view->row + r - p->row;
            jk_verify_row(a, u, v, n, &p->s[i], &p->t[i]);
        }
    }
}

/* One tile of rows [r, r + n) and columns [c, c + w) of M, its columns lying one after the other.
 * Sums of a tile are made apart: that keeps chains of roundings short. */
static void add_tile(const pass *p, const jk_verify_view *view, int64_t r, int64_t n, int64_t c,
                     int64_t w, const double *u, const double *v)
{
    double room[4 * JK_VERIFY_TILE], s[JK_VERIFY_TILE] = {0}, t[JK_VERIFY_TILE] = {0};
    int64_t i = view->row + r - p->row;
    for (int64_t q = 0; q < w; q += 4) {
        for (int64_t e = 0; e < jk_min(4, w - q); e++) {
            double *to = room + e * JK_VERIFY_TILE;
            const double *from = in_f64(view, (c + q + e) * view->col_step + r, n, to);
            if (from != to)
                memcpy(to, from, (size_t)n * sizeof *to);
        }
        /* What lacks of four columns: no weight alone would not do, Inf times 0 is NaN. */
        if (w - q < 4)
            memset(room + (w - q) * JK_VERIFY_TILE, 0,
                   (size_t)(4 - (w - q)) * JK_VERIFY_TILE * sizeof *room);
        jk_verify_columns(room, u + q, v + q, n, s, t);
    }
    for (int64_t e = 0; e < n; e++) {
        p->s[i + e] += s[e];
        p->t[i + e] += t[e];
    }
}

/* Columns of M lie one after the other. */
static void add_columns(const pass *p, const jk_verify_view *view)
{
    double u[JK_VERIFY_TILE + 3], v[JK_VERIFY_TILE + 3];
    for (int64_t c = 0; c < view->cols; c += JK_VERIFY_TILE) {
        int64_t w = jk_min(view->cols - c, JK_VERIFY_TILE);
        fill_weights(p, view->col + c, w, u, v);
        memset(u + w, 0, 3 * sizeof *u);
        memset(v + w, 0, 3 * sizeof *v);
        for (int64_t r = 0; r < view->rows; r += JK_VERIFY_TILE)
            add_tile(p, view, r, jk_min(view->rows - r, JK_VERIFY_TILE), c, w, u, v);
    }
}

/* `at` is in the stored form of the whole matrix. */
static jask_status add_window(stream *s, const pass *p, const jk_window *at, jask_error *err)
{
    const jk_verify_source *source = p->m->source;
    bool trans = source->trans;
    jk_verify_view view = {
        .data = s->window,
        .dtype = s->job->dtype,
        .row = trans ? at->col : at->row,
        .col = trans ? at->row : at->col,
        .rows = trans ? at->cols : at->rows,
        .cols = trans ? at->rows : at->cols,
        .row_step = trans ? 1 : at->cols,
        .col_step = trans ? at->cols : 1,
    };
    jask_status st = source->read(source->user, at, s->window, at->cols, err);
    if (st)
        return st;
    if (!p->m->scaled) {
        p->m->exponent = exponent_of(&view);
        p->m->scaled = true;
    }
    if (p->look)
        p->look(&s->probe, &view);
    if (trans)
        add_columns(p, &view);
    else
        add_rows(p, &view);
    s->done += (double)at->rows * (double)at->cols;
    return s->job->tick(s->job->tick_user, s->done, s->total, err);
}

/* So that what lies in pairs is not cut between. */
static int64_t whole_pairs(int64_t count)
{
    return count > 1 ? count / 2 * 2 : count;
}

/* Windows follow one another so that every row meets its columns in ascending order. */
static jask_status run_pass(stream *s, const pass *p, jask_error *err)
{
    bool trans = p->m->source->trans;
    int64_t first_row = trans ? p->col : p->row, rows = trans ? p->cols : p->rows;
    int64_t first_col = trans ? p->row : p->col, cols = trans ? p->rows : p->cols;
    int64_t width = jk_min(cols, whole_pairs(jk_max(1, s->window_elems / WINDOW_ROWS)));
    int64_t height = width > 0 ? whole_pairs(s->window_elems / width) : 0;
    for (int64_t r = 0; r < rows; r += height)
        for (int64_t c = 0; c < cols; c += width) {
            jk_window at = {first_row + r, first_col + c, jk_min(rows - r, height),
                            jk_min(cols - c, width)};
            jask_status st = add_window(s, p, &at, err);
            if (st)
                return st;
        }
    return JASK_OK;
}

static jask_status load_chunk(stream *s, int64_t first, int64_t count, jask_error *err)
{
    pass p = {&s->b, first, count, 0, s->job->n, NULL, NULL, s->y, s->norm, jk_probe_take_b};
    jask_status st;
    if (s->held == first)
        return JASK_OK;
    s->held = -1;
    s->probe.first = first;
    memset(s->y, 0, (size_t)count * sizeof *s->y);
    memset(s->norm, 0, (size_t)count * sizeof *s->norm);
    st = run_pass(s, &p, err);
    if (st)
        return st;
    for (int64_t l = 0; l < count; l++)
        s->norm[l] = sqrt(s->norm[l]);
    s->held = first;
    return JASK_OK;
}

static jask_status add_product(stream *s, int64_t row, int64_t rows, jask_error *err)
{
    jask_status st = JASK_OK;
    for (int64_t l = 0; !st && l < s->job->k; l += s->chunk) {
        int64_t count = jk_min(s->job->k - l, s->chunk);
        pass p = {&s->a, row, rows, l, count, s->y, s->norm, s->ab, s->ab2, jk_probe_take_a};
        st = load_chunk(s, l, count, err);
        if (!st)
            st = run_pass(s, &p, err);
    }
    return st;
}

static jask_status run_block(stream *s, int64_t row, int64_t rows, jk_verify_judge judge,
                             void *judge_user, jask_error *err)
{
    const jk_verify_job *job = s->job;
    pass d = {&s->d, row, rows, 0, job->n, NULL, NULL, s->d1, s->d2, NULL};
    pass c = {&s->c, row, rows, 0, job->n, NULL, NULL, s->c1, s->c2, NULL};
    int arrays = job->beta != 0 ? BLOCK_ARRAYS_C : BLOCK_ARRAYS;
    jask_status st = JASK_OK;
    memset(s->ab, 0, (size_t)arrays * (size_t)s->block * sizeof *s->ab);
    jk_probe_start(&s->probe, job, row, rows);
    /* As in BLAS, factors of 0 keep matrices from being read. */
    if (job->alpha != 0)
        st = add_product(s, row, rows, err);
    if (!st)
        st = run_pass(s, &d, err);
    if (!st && job->beta != 0)
        st = run_pass(s, &c, err);
    if (st)
        return st;
    jk_verify_exponents exponents = {s->a.exponent + s->b.exponent, s->d.exponent, s->c.exponent};
    double drift = jk_probe_drift(&s->probe);
    for (int64_t i = 0; i < rows; i++) {
        jk_verify_row_sums sums = {
            .ab = s->ab[i],
            .ab_squares = s->ab2[i],
            .d = s->d1[i],
            .d_squares = s->d2[i],
            .c = job->beta != 0 ? s->c1[i] : 0,
            .c_squares = job->beta != 0 ? s->c2[i] : 0,
        };
        judge(judge_user, row + i, &sums, &exponents, drift);
    }
    return JASK_OK;
}

/* At most a quarter for the window and one for the chunk, the rest for row sums: when there is more
 * than one chunk, every further block of rows reads B once more. */
static jask_status share_memory(stream *s, jask_error *err)
{
    const jk_verify_job *job = s->job;
    uint64_t memory = job->memory_bytes < MEMORY_MIN   ? MEMORY_MIN
                      : job->memory_bytes > MEMORY_MAX ? MEMORY_MAX
                                                       : job->memory_bytes;
    int64_t bytes = (int64_t)memory, quarter = bytes / 256 * 64;
    int64_t window = jk_min(quarter, WINDOW_MAX);
    int64_t chunk_bytes = CHUNK_ARRAYS * (int64_t)sizeof(double);
    int64_t block_bytes =
        (job->beta != 0 ? BLOCK_ARRAYS_C : BLOCK_ARRAYS) * (int64_t)sizeof(double);
    double *next;
    jask_status st;
    s->chunk = jk_max(1, jk_min(job->k, whole_pairs(quarter / chunk_bytes)));
    s->block = jk_min(job->m, (bytes - window - s->chunk * chunk_bytes) / block_bytes);
    bytes = window + s->chunk * chunk_bytes + s->block * block_bytes;
    st = jk_device_host.mem_alloc(job->host, (size_t)bytes, &s->memory, err);
    if (st)
        return st;
    s->memory_bytes = (size_t)bytes;
    s->window = s->memory;
    s->window_elems = window / (int64_t)jask_dtype_size(job->dtype);
    next = (double *)s->memory + window / (int64_t)sizeof(double);
    s->y = next;
    s->norm = s->y + s->chunk;
    s->probe.b = s->norm + s->chunk;
    s->probe.chunk = s->chunk;
    s->ab = s->probe.b + JK_PROBE_COLS * s->chunk;
    s->ab2 = s->ab + s->block;
    s->d1 = s->ab2 + s->block;
    s->d2 = s->d1 + s->block;
    if (job->beta != 0) {
        s->c1 = s->d2 + s->block;
        s->c2 = s->c1 + s->block;
    }
    return JASK_OK;
}

static void count_elements(stream *s)
{
    const jk_verify_job *job = s->job;
    double m = (double)job->m, n = (double)job->n, k = (double)job->k;
    double b_reads = s->chunk < job->k ? (double)jk_ceil_div(job->m, s->block) : 1;
    s->total = m * n * (job->beta != 0 ? 2 : 1);
    if (job->alpha != 0)
        s->total += m * k + b_reads * k * n;
}

jask_status jk_verify_stream(const jk_verify_job *job, jk_verify_judge judge, void *judge_user,
                             jask_error *err)
{
    stream s = {
        .job = job,
        .a.source = &job->a,
        .b.source = &job->b,
        .c.source = &job->c,
        .d.source = &job->d,
        .held = -1,
    };
    jask_status st;
    if (job->m == 0 || job->n == 0)
        return JASK_OK;
    st = share_memory(&s, err);
    count_elements(&s);
    for (int64_t row = 0; !st && row < job->m; row += s.block)
        st = run_block(&s, row, jk_min(job->m - row, s.block), judge, judge_user, err);
    jk_device_host.mem_free(job->host, s.memory, s.memory_bytes);
    return st;
}
