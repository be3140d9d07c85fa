/* Arrays as the runtime sees them: a file, a layout, and 2-D windows of it. */
#ifndef JK_RUNTIME_ARRAY_H
#define JK_RUNTIME_ARRAY_H

#include "common/base.h"
#include "runtime/drop_behind.h"
#include "runtime/file.h"

#include <pthread.h>
#include <stdatomic.h>

/* How elements lie in a file. Strides in bytes; shape and strides hold ndim entries. */
typedef struct jk_layout {
    jask_dtype dtype;
    bool big_endian;
    bool fortran_order;
    int ndim;
    int64_t shape[JASK_MAX_DIMS];
    int64_t strides[JASK_MAX_DIMS];
    uint64_t elements;
    uint64_t data_offset;
    uint64_t data_bytes;
    char format[16];
} jk_layout;

/* Set shape, strides (dense, C or Fortran order), elements and data_bytes; dtype must be set. ARG
 * when an extent is negative or the bytes do not fit 2^62. */
jask_status jk_layout_dense(jk_layout *layout, int ndim, const int64_t *shape, bool fortran_order,
                            jask_error *err);

struct jask_array {
    char *path; /* as the user named it */
    jk_layout layout;
    jk_file file;
    jk_output
        *output;   /* a result: its file is in here. NULL for the others, whose file is `file` */
    bool writable; /* made here and not committed */
    bool sync;     /* commit makes it durable */
    pthread_mutex_t map_lock;
    jk_mapping map;
};

/* Matrices of equal extents that are one, side by side or one above the other. */
typedef struct jk_parts {
    bool beside;
    int64_t extent; /* columns, or rows, of one */
    int ndim;       /* they are counted as batches are, the last dimension fastest */
    const int64_t *extents;
    const uint64_t *steps; /* bytes */
} jk_parts;

/* A matrix in a file, stored row after row: element (r, c) lies at offset + r*row_bytes + c*size.
 * `trans` says that what is wanted is its transpose; rows and cols are of the stored form. */
typedef struct jk_matrix {
    const jk_file *file;
    const char *path;
    uint64_t offset;
    int64_t rows, cols;
    uint64_t row_bytes;
    jask_dtype dtype;
    bool swap; /* not this machine's byte order */
    bool trans;
    jask_dtype memory; /* the type of its elements in memory, one that holds them; NONE: dtype */
    bool conj;         /* they are conjugated on the way */
    const jk_parts *parts;  /* where it is several: offset is that of the first. NULL: it is one */
    jk_direct *direct;      /* reads, of D writes, go around the page cache; NULL: through it */
    jk_drop_behind *behind; /* hears of what is read; may be NULL */
    /* What is announced of a row, where short runs of it are read one soon after the other: so many bytes that
     * begin at a multiple of as many, with the run in them. 0: the run alone. */
    uint64_t ahead_bytes;
} jk_matrix;

/* Whether a C, which may be none, is turned on its way to the tile: that takes a buffer. */
static inline bool jk_matrix_is_turned(const jk_matrix *c)
{
    return c->file && c->trans;
}

/* Where the array's bytes are, for as long as it is open. */
const jk_file *jk_array_file(const jask_array *array);

/* A 2-D array, or its transpose, as a matrix; a Fortran-order file is stored as its transpose.
 * ARG naming `what` and the array when it is not 2-D. */
jask_status jk_matrix_of(const jask_array *array, bool transpose, const char *what, jk_matrix *out,
                         jask_error *err);

/* Whether b is the transpose of a, element for element in one file: a panel of one is a panel of the
 * other as it lies there. */
bool jk_matrix_is_transpose(const jk_matrix *a, const jk_matrix *b);

typedef struct jk_window {
    int64_t row, col, rows, cols;
} jk_window;

static inline jask_dtype jk_memory_type(const jk_matrix *matrix)
{
    return matrix->memory ? matrix->memory : matrix->dtype;
}

/* Read a window of the stored form into dst (leading dimension ld_elems), in this machine's byte
 * order and the type that it has in memory; adds the bytes asked of the file to *bytes. */
jask_status jk_matrix_read(const jk_matrix *matrix, const jk_window *window, void *dst,
                           int64_t ld_elems, _Atomic uint64_t *bytes, jask_error *err);

/* Turn rows x cols finished elements at data into the type of the file, in place: side by side where
 * the rows are (ld_elems == cols), else each row at its own beginning. UNSUPPORTED naming an element
 * that is outside of an integer type. */
jask_status jk_matrix_narrow(const jk_matrix *matrix, const jk_window *window, void *data,
                             int64_t ld_elems, jask_error *err);

/* Write a window, narrowed where the types differ; the matrix is in this machine's byte order. */
jask_status jk_matrix_write(const jk_matrix *matrix, const jk_window *window, const void *src,
                            int64_t ld_elems, _Atomic uint64_t *bytes, jask_error *err);

/* FORMAT when an input's file is no longer what it was when it was opened. Arrays that this process
 * made are not checked: it wrote them itself. */
jask_status jk_array_check_unchanged(const jask_array *array, jask_error *err);

/* A result as jask_array_create makes it, but in a file that has a name of its own until it is
 * committed; see jk_output_open_partial. */
jask_status jk_array_create_partial(jask_context *ctx, const char *path, jask_dtype dtype, int ndim,
                                    const int64_t *shape, bool continues, jask_array **out,
                                    jask_error *err);

/* The halves of jask_array_commit, for an array under a name; see jk_output_commit. */
jask_status jk_array_flush(const jask_array *array, jask_error *err);
jask_status jk_array_publish(jask_array *array, jask_error *err);

/* The files of two arrays are the same (device and inode). */
bool jk_array_same_file(const jask_array *a, const jask_array *b);

/* Parse `FILE@DTYPE:D0xD1...[+OFFSET]`. *is_raw false when `spec` has no '@' followed by a type and
 * ':'; then *said is BF16 for `FILE@bf16`, which names what an .npy file cannot say, else NONE.
 * `path` receives the file's name in both cases of '@'. Pure. */
jask_status jk_raw_parse(const char *spec, bool *is_raw, jask_dtype *said, char *path,
                         size_t path_size, jk_layout *out, jask_error *err);

#endif
