#include "runtime/array.h"
#include "runtime/context.h"
#include "runtime/dtype.h"
#include "runtime/npy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Holds nearly every header; longer ones are read in a second go. */
#define FIRST_READ 4096

static jask_array *new_array(const char *path)
{
    jask_array *array = calloc(1, sizeof *array);
    if (!array)
        return NULL;
    array->file = JK_FILE_NONE;
    pthread_mutex_init(&array->map_lock, NULL);
    array->path = strdup(path);
    if (!array->path) {
        jask_array_close(array);
        return NULL;
    }
    return array;
}

const jk_file *jk_array_file(const jask_array *array)
{
    return array->output ? &array->output->file : &array->file;
}

/* ---- opening ---- */

static jask_status read_npy_header(const jk_file *file, jask_dtype said, jk_layout *layout,
                                   jask_error *err)
{
    unsigned char first[FIRST_READ];
    unsigned char *all = NULL;
    size_t need, have = file->bytes < sizeof first ? (size_t)file->bytes : sizeof first;
    bool done;
    jask_status st = jk_file_read(file, 0, first, have, err);
    if (!st)
        st = jk_npy_parse(first, have, file->bytes, file->name, said, &need, &done, layout, err);
    if (st || done)
        return st;
    all = malloc(need); /* the file has that many, and the parser a limit */
    if (!all)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for the header of '%s' (%zu bytes)",
                       file->name, need);
    st = jk_file_read(file, 0, all, need, err);
    if (!st)
        st = jk_npy_parse(all, need, file->bytes, file->name, said, &need, &done, layout, err);
    free(all);
    return st;
}

static jask_status check_raw_size(const char *spec, const jk_layout *layout, const jk_file *file,
                                  jask_error *err)
{
    uint64_t need = layout->data_offset + layout->data_bytes;
    if (file->bytes == need)
        return JASK_OK;
    return jk_fail(err, JASK_ERR_FORMAT,
                   "'%s': need exactly %llu bytes (%llu of data after %llu), have %llu", spec,
                   (unsigned long long)need, (unsigned long long)layout->data_bytes,
                   (unsigned long long)layout->data_offset, (unsigned long long)file->bytes);
}

/* Where a name with '@' is no raw specification and no file either, say both. */
static jask_status open_file(const char *spec, const char *path, jk_file *out, jask_error *err)
{
    jask_error mine;
    jask_status st = jk_file_open(path, out, &mine);
    if (!st)
        return JASK_OK;
    if (path == spec && mine.sys_errno == ENOENT && strchr(spec, '@'))
        jk_fail_in(&mine, st,
                   "'%s' is no raw specification that jask knows (FILE@DTYPE:D0xD1x...[+OFFSET]), "
                   "and as a file",
                   spec);
    if (err)
        *err = mine;
    return st;
}

jask_status jask_array_open(const char *spec, jask_array **out, jask_error *err)
{
    char path[PATH_MAX];
    jask_dtype said;
    jask_array *array;
    bool is_raw;
    jask_status st;
    if (!spec || !out)
        return jk_fail(err, JASK_ERR_ARG, "jask_array_open needs a name and a place for the array");
    if (spec[0] == '\0')
        return jk_fail(err, JASK_ERR_ARG, "an array has an empty name");
    array = new_array(spec);
    if (!array)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to open '%s'", spec);
    st = jk_raw_parse(spec, &is_raw, &said, path, sizeof path, &array->layout, err);
    if (!st)
        st = open_file(spec, is_raw || said ? path : spec, &array->file, err);
    if (!st)
        st = is_raw ? check_raw_size(spec, &array->layout, &array->file, err)
                    : read_npy_header(&array->file, said, &array->layout, err);
    if (!st) {
        *out = array;
        array = NULL;
    }
    jask_array_close(array);
    return st;
}

/* ---- making ---- */

/* How a result is made: see jk_output_open_partial. */
typedef enum keeping { KEEP_NOTHING, KEEP_PARTIAL, KEEP_AND_CONTINUE } keeping;

static jask_status create_named(jask_array *array, const char *path, keeping keep, jask_error *err)
{
    unsigned char header[JK_NPY_HEADER_MAX];
    size_t header_bytes;
    uint64_t bytes;
    jask_status st;
    header_bytes = jk_npy_write(header, &array->layout);
    bytes = header_bytes + array->layout.data_bytes;
    st = keep == KEEP_NOTHING
             ? jk_output_open(path, bytes, &array->output, err)
             : jk_output_open_partial(path, bytes, keep == KEEP_AND_CONTINUE, &array->output, err);
    return st ? st : jk_file_write(&array->output->file, 0, header, header_bytes, err);
}

static jask_status create_scratch(jask_array *array, jask_context *ctx, jask_error *err)
{
    jask_context *held;
    const char *dir;
    jask_status st = jk_context_get(ctx, &held, err);
    if (st)
        return st;
    strcpy(array->layout.format, "raw");
    st = jk_context_scratch(held, &dir, err);
    if (!st)
        st = jk_file_scratch(dir, array->layout.data_bytes, &array->file, err);
    jk_context_put(held);
    return st;
}

static void log_lacks(jk_log *log, const jk_file *file)
{
    static const struct {
        unsigned lack;
        jk_log_topic topic;
        jask_log_level level;
        const char *text;
    } notes[] = {
        {JK_FILE_NAMED, JK_LOG_NAMED, JASK_LOG_INFO,
         "the file system makes no files without a name: a kill can leave a hidden one there"},
        {JK_FILE_UNRESERVED, JK_LOG_UNRESERVED, JASK_LOG_INFO,
         "the file system reserves no blocks: a full disk will show only while writing"},
        {JK_FILE_IN_RAM, JK_LOG_IN_RAM, JASK_LOG_WARN,
         "it lies in RAM and takes memory beside the budget"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (file->lacks & notes[i].lack)
            jk_log_once(log, notes[i].topic, notes[i].level, "'%s': %s", file->name, notes[i].text);
}

static jask_status create(jask_context *ctx, const char *path, keeping keep, jask_dtype dtype,
                          int ndim, const int64_t *shape, jask_array **out, jask_error *err)
{
    const char *name = path ? path : "(scratch)";
    jask_array *array;
    jask_status st;
    if (!out || (ndim > 0 && !shape))
        return jk_fail(err, JASK_ERR_ARG,
                       "jask_array_create needs a shape and a place for the array");
    if (jask_dtype_size(dtype) == 0)
        return jk_fail(err, JASK_ERR_ARG, "'%s': %d is no element type", name, (int)dtype);
    array = new_array(name);
    if (!array)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to make '%s'", name);
    array->layout.dtype = dtype;
    array->layout.big_endian = JK_HOST_BIG_ENDIAN; /* what is written needs no swapping anywhere */
    array->sync = jk_context_sync(ctx);
    array->writable = true;
    st = jk_layout_dense(&array->layout, ndim, shape, false, err);
    if (st)
        jk_fail_in(err, st, "'%s'", name);
    else
        st = path ? create_named(array, path, keep, err) : create_scratch(array, ctx, err);
    if (!st) {
        log_lacks(jk_context_log(ctx), jk_array_file(array));
        *out = array;
        array = NULL;
    }
    jask_array_close(array);
    return st;
}

jask_status jask_array_create(jask_context *ctx, const char *path, jask_dtype dtype, int ndim,
                              const int64_t *shape, jask_array **out, jask_error *err)
{
    return create(ctx, path, KEEP_NOTHING, dtype, ndim, shape, out, err);
}

jask_status jk_array_create_partial(jask_context *ctx, const char *path, jask_dtype dtype, int ndim,
                                    const int64_t *shape, bool continues, jask_array **out,
                                    jask_error *err)
{
    return create(ctx, path, continues ? KEEP_AND_CONTINUE : KEEP_PARTIAL, dtype, ndim, shape, out,
                  err);
}

jask_status jask_array_commit(jask_array *array, jask_error *err)
{
    jask_status st;
    if (!array)
        return jk_fail(err, JASK_ERR_ARG, "there is no array to commit");
    if (!array->output)
        return jk_fail(err, JASK_ERR_ARG,
                       "'%s' cannot be committed: only an array created under a name can",
                       array->path);
    if (!array->writable)
        return jk_fail(err, JASK_ERR_ARG, "'%s' has been committed already", array->path);
    st = jk_array_flush(array, err);
    return st ? st : jk_array_publish(array, err);
}

jask_status jk_array_flush(const jask_array *array, jask_error *err)
{
    return jk_output_flush(array->output, array->sync, err);
}

jask_status jk_array_publish(jask_array *array, jask_error *err)
{
    jask_status st = jk_output_publish(array->output, array->sync, err);
    if (!st)
        array->writable = false;
    return st;
}

void jask_array_close(jask_array *array)
{
    if (!array)
        return;
    jk_file_unmap(&array->map);
    pthread_mutex_destroy(&array->map_lock);
    jk_output_close(array->output);
    jk_file_close(&array->file);
    free(array->path);
    free(array);
}

/* ---- asking ---- */

void jask_array_get_info(const jask_array *array, jask_array_info *out, size_t struct_size)
{
    jask_array_info info = {0};
    if (!out)
        return;
    if (array) {
        const jk_layout *layout = &array->layout;
        info.path = array->path;
        info.dtype = layout->dtype;
        info.big_endian = layout->big_endian;
        info.fortran_order = layout->fortran_order;
        info.ndim = layout->ndim;
        memcpy(info.shape, layout->shape, sizeof info.shape);
        memcpy(info.stride_bytes, layout->strides, sizeof info.stride_bytes);
        info.data_offset = layout->data_offset;
        info.data_bytes = layout->data_bytes;
        info.elements = layout->elements;
        memcpy(info.format, layout->format, sizeof info.format);
    }
    jk_struct_out(out, struct_size, &info, sizeof info);
}

jask_status jask_array_map(jask_array *array, void **out, jask_error *err)
{
    jask_status st = JASK_OK;
    if (!array || !out)
        return jk_fail(err, JASK_ERR_ARG, "jask_array_map needs an array and a place for it");
    pthread_mutex_lock(&array->map_lock);
    if (!array->map.base && array->layout.data_bytes > 0)
        st = jk_file_map(jk_array_file(array), array->layout.data_offset,
                         (size_t)array->layout.data_bytes, array->writable, &array->map, err);
    if (!st)
        *out = array->map.data;
    pthread_mutex_unlock(&array->map_lock);
    return st;
}

jask_status jk_array_check_unchanged(const jask_array *array, jask_error *err)
{
    return jk_file_check_unchanged(jk_array_file(array), err);
}

bool jk_array_same_file(const jask_array *a, const jask_array *b)
{
    const jk_file *x = jk_array_file(a), *y = jk_array_file(b);
    return jk_file_same(x, y);
}
