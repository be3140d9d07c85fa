/* What binds a journal to a product. */
#include "runtime/blas.h"
#include "runtime/resume.h"

#include "runtime/journal.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of an input's content this is looked at: so many pieces, spread evenly from the first byte to the
 * last; all of a file that is no longer than they are together. */
#define SAMPLES 64
#define SAMPLE_BYTES 4096

typedef struct facts {
    char *text;
    size_t used;
    bool too_long;
} facts;

static void add(facts *f, const char *fmt, ...) JK_PRINTF(2, 3);

static void add(facts *f, const char *fmt, ...)
{
    size_t room = JK_JOURNAL_FACTS_MAX - f->used;
    va_list args;
    int len;
    va_start(args, fmt);
    len = vsnprintf(f->text + f->used, room, fmt, args);
    va_end(args);
    f->too_long = f->too_long || len < 0 || (size_t)len >= room;
    if (!f->too_long)
        f->used += (size_t)len;
}

/* Names of files may hold anything but NUL; a fact is one line. */
static void add_name(facts *f, const char *fact, const char *name)
{
    add(f, "%s: ", fact);
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (c < 0x20 || c == 0x7f || c == '%')
            add(f, "%%%02x", c);
        else
            add(f, "%c", c);
    }
    add(f, "\n");
}

/* Exact, and the same in every locale: 1.5 is "3*2^-1". */
static void add_real(facts *f, const char *fact, double value)
{
    int exponent = 0;
    int64_t mantissa = (int64_t)ldexp(frexp(value, &exponent), 53);
    exponent -= 53;
    while (mantissa != 0 && mantissa % 2 == 0) {
        mantissa /= 2;
        exponent++;
    }
    if (mantissa == 0 || exponent >= 0)
        add(f, "%s: %.0f\n", fact, value);
    else
        add(f, "%s: %" PRId64 "*2^%d\n", fact, mantissa, exponent);
}

static jask_status hash_samples(const jk_file *file, uint64_t *out, jask_error *err)
{
    unsigned char bytes[SAMPLE_BYTES];
    uint64_t hash = JK_HASH_BEGIN;
    size_t len = file->bytes < SAMPLE_BYTES ? (size_t)file->bytes : SAMPLE_BYTES;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        /* 63 parts of what lies before the last sample, without overflow. */
        uint64_t rest = file->bytes - len, part = rest / (SAMPLES - 1);
        uint64_t at = part * i + rest % (SAMPLES - 1) * i / (SAMPLES - 1);
        jask_status st = jk_file_read(file, at, bytes, len, err);
        if (st)
            return st;
        hash = jk_hash(hash, bytes, len);
    }
    *out = hash;
    return JASK_OK;
}

/* The path of the file that is open, whatever has become of the working directory. */
static void path_of(const jk_file *file, char path[PATH_MAX])
{
    char link[40];
    ssize_t len;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->fd);
    len = readlink(link, path, PATH_MAX - 1);
    if (len < 0)
        snprintf(path, PATH_MAX, "%s", file->name);
    else
        path[len] = '\0';
}

static jask_status add_input(facts *f, const char *what, const jk_matrix *matrix, jask_error *err)
{
    const jk_file *file = matrix->file;
    char path[PATH_MAX];
    uint64_t hash;
    struct stat at;
    jask_status st;
    if (fstat(file->fd, &at) != 0)
        return jk_fail_errno(err, "look at '%s'", matrix->path);
    st = hash_samples(file, &hash, err);
    if (st)
        return st;
    path_of(file, path);
    /* A file without a name is made anew for each run: what it holds is all that can be compared.
     */
    add_name(f, what, at.st_nlink == 0 ? "(scratch)" : path);
    add(f, "size of %s: %" PRIu64 " bytes\n", what, file->bytes);
    if (at.st_nlink > 0)
        add(f, "modification time of %s: %lld.%09ld\n", what, (long long)at.st_mtim.tv_sec,
            at.st_mtim.tv_nsec);
    add(f, "layout of %s: %" PRId64 " x %" PRId64 " %s at %" PRIu64 "%s%s\n", what, matrix->rows,
        matrix->cols, jask_dtype_name(matrix->dtype), matrix->offset,
        matrix->swap ? ", swapped" : "", matrix->trans ? ", transposed" : "");
    add(f, "content of %s: %016" PRIx64 "\n", what, hash);
    return JASK_OK;
}

/* Tiles are mostly another budget's, so that is said beside them. */
static void add_plan(facts *f, const jk_plan *plan)
{
    const jk_problem *p = &plan->problem;
    add(f, "shape: %" PRId64 " x %" PRId64 ", k %" PRId64 "\n", p->m, p->n, p->k);
    add(f,
        "tile (it follows planner and memory budget): %" PRId64 " x %" PRId64 ", k %" PRId64 "\n",
        plan->bm, plan->bn, plan->bk);
    add(f, "schedule: %s, %s%s", jk_schedule_name(plan->schedule),
        plan->order == JK_ORDER_IJ ? "row by row" : "column by column",
        plan->serpentine ? ", serpentine" : "");
    if (plan->group > 0)
        add(f, ", in groups of %" PRId64 " (they follow the host budget)", plan->group);
    add(f, "\n");
    if (p->slab > 0)
        add(f, "sums: in ascending slabs of %" PRId64 "\n", p->slab);
    add(f, "slots: %" PRId64 ", %" PRId64 ", %" PRId64 "\n", plan->a_slots, plan->b_slots,
        plan->c_slots);
}

/* Libraries choose another way to add up with another workspace, processor or number of threads. */
static void add_device(facts *f, const jk_product *product)
{
    const jk_device_info *info = &product->device->info;
    char blas[256];
    add_name(f, "device", info->name);
    add_name(f, "device's description", info->description);
    if (info->host_memory) {
        jk_blas_describe(blas, sizeof blas);
        add_name(f, "BLAS", blas);
    } else {
        add(f, "workspace: %" PRIu64 " bytes\n", product->plan->reserve_bytes);
    }
    add(f, "precision: %s\n", product->tf32 ? "tf32" : "as the type");
}

/* Each dimension's extent and the bytes from one matrix to the next. */
static void add_batches(facts *f, const jk_batches *batches)
{
    for (int d = 0; batches && d < batches->ndim; d++)
        add(f, "batch dimension %d: %" PRId64 ", of A %" PRIu64 ", of B %" PRIu64 "\n", d,
            batches->extents[d], batches->steps[JK_ARRAY_A][d], batches->steps[JK_ARRAY_B][d]);
}

static jask_status add_all(facts *f, const jk_product *product, jask_error *err)
{
    jask_status st = add_input(f, "A", &product->a, err);
    if (!st)
        st = add_input(f, "B", &product->b, err);
    if (!st && product->c.file)
        st = add_input(f, "C", &product->c, err);
    if (st)
        return st;
    add_real(f, "alpha", product->alpha);
    add_real(f, "beta", product->beta);
    add_plan(f, product->plan);
    add_batches(f, product->batches);
    add_device(f, product);
    add(f, "version of jask: %s\n", jask_version());
    return f->too_long ? jk_fail(err, JASK_ERR_ARG, "paths of the inputs are too long to resume")
                       : JASK_OK;
}

jask_status jk_resume_facts(const jk_product *product, char **out, jask_error *err)
{
    facts f = {.text = malloc(JK_JOURNAL_FACTS_MAX)};
    jask_status st;
    if (!f.text)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a journal");
    st = add_all(&f, product, err);
    if (st)
        free(f.text);
    else
        *out = f.text;
    return st;
}
