/* The registry of devices, and the choice among them. */
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/system.h"

#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A smaller workspace makes some products of cuBLAS fail. */
#define WORKSPACE_LEAST ((uint64_t)16 << 10)
#define WORKSPACE_ALIGN ((uint64_t)256)

const jk_device_table *const jk_device_tables[] = {
#if JK_HAVE_CUDA
    &jk_device_cuda,
#endif
    &jk_device_host, NULL};

size_t jk_device_workspace(const jk_device_info *info, uint64_t budget_bytes)
{
    uint64_t share = budget_bytes / 16 / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    if (share < WORKSPACE_LEAST)
        share = WORKSPACE_LEAST;
    return share < info->workspace_bytes ? (size_t)share : info->workspace_bytes;
}

void jk_device_release(jk_device_ref *ref)
{
    if (ref->table)
        ref->table->close(ref->dev);
    memset(ref, 0, sizeof *ref);
}

static jask_status open_one(const jk_device_table *table, int index,
                            const jk_device_options *options, jk_device_ref *out, jask_error *err)
{
    jk_device_ref ref = {.table = table};
    jask_status st = table->open(index, options, &ref.dev, err);
    if (st)
        return st;
    st = table->info(ref.dev, &ref.info, err);
    if (st)
        jk_device_release(&ref);
    else
        *out = ref;
    return st;
}

/* "host", "cuda:1": the kind's length, and the index (0 when absent). False for anything else. */
static bool split_name(const char *name, size_t *kind_len, int *index)
{
    const char *colon = strchr(name, ':');
    long value = 0;
    *kind_len = colon ? (size_t)(colon - name) : strlen(name);
    if (colon) {
        char *end;
        if (colon[1] < '0' || colon[1] > '9')
            return false;
        value = strtol(colon + 1, &end, 10);
        if (*end || value > INT_MAX)
            return false;
    }
    *index = (int)value;
    return *kind_len > 0;
}

/* "auto, host": what can be named, for messages. */
static void list_names(char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "auto");
    for (int i = 0; jk_device_tables[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, ", %s", jk_device_tables[i]->kind);
}

/* The first device that works. Why those before it do not is its note. */
static jask_status open_first(const jk_device_options *options, jk_device_ref *out, jask_error *err)
{
    char note[sizeof out->note] = "";
    jk_device_options complete = {.cublas = options ? options->cublas : NULL, .complete = true};
    jask_error why;
    for (int i = 0; jk_device_tables[i]; i++) {
        const jk_device_table *table = jk_device_tables[i];
        if (table->count(why.msg, sizeof why.msg) > 0 &&
            open_one(table, 0, &complete, out, &why) == JASK_OK) {
            memcpy(out->note, note, sizeof note);
            return JASK_OK;
        }
        snprintf(note, sizeof note, "%s is not used: %.200s", table->kind, why.msg);
    }
    return jk_fail(err, JASK_ERR_DEVICE, "no device can be used: %s", note);
}

jask_status jk_device_select(const char *name, const jk_device_options *options, jk_device_ref *out,
                             jask_error *err)
{
    char names[128];
    size_t kind_len;
    int index;
    if (strcmp(name, "auto") == 0)
        return open_first(options, out, err);
    list_names(names, sizeof names);
    if (split_name(name, &kind_len, &index)) {
        for (int i = 0; jk_device_tables[i]; i++) {
            const char *kind = jk_device_tables[i]->kind;
            if (strlen(kind) == kind_len && strncmp(kind, name, kind_len) == 0)
                return open_one(jk_device_tables[i], index, options, out, err);
        }
    }
    return jk_fail(err, JASK_ERR_DEVICE, "there is no device '%s'; there are: %s", name, names);
}

/* Row `index` of all there is: which device of which kind. A kind without devices has a row too,
 * whose reason is in `note`. */
static bool find_row(int *index, const jk_device_table **table, int *device, char *note,
                     size_t note_size)
{
    for (int i = 0; jk_device_tables[i]; i++) {
        int count = jk_device_tables[i]->count(note, note_size);
        int device_rows = count > 0 ? count : 1;
        if (*index < device_rows) {
            *table = jk_device_tables[i];
            *device = count > 0 ? *index : -1;
            return true;
        }
        *index -= device_rows;
    }
    return false;
}

static jask_status describe_device(const jk_device_table *table, int device, jask_device_info *info,
                                   jask_error *err)
{
    /* Nobody's options: those of the environment. */
    jk_device_options options = {.cublas = jask_setting_environment(JK_SET_CUBLAS),
                                 .complete = true};
    jk_device_ref ref;
    char source[256];
    jask_error why;
    jask_status st = JASK_OK;
    if (open_one(table, device, &options, &ref, &why)) {
        snprintf(info->name, sizeof info->name, "%s:%d", table->kind, device);
        snprintf(info->note, sizeof info->note, "%.250s", why.msg);
        return JASK_OK;
    }
    info->usable = 1;
    memcpy(info->name, ref.info.name, sizeof info->name);
    memcpy(info->description, ref.info.description, sizeof info->description);
    memcpy(info->note, ref.info.advice, sizeof info->note);
    info->total_bytes = ref.info.total_bytes;
    info->free_bytes = ref.info.free_bytes;
    if (ref.info.host_memory)
        st = jk_memory_available("", &info->free_bytes, source, sizeof source, err);
    jk_device_release(&ref);
    return st;
}

jask_status jask_device_get(int index, jask_device_info *out, size_t struct_size, jask_error *err)
{
    jask_device_info info = {0};
    const jk_device_table *table;
    int left = index, device;
    jask_status st = JASK_OK;
    if (index < 0 || !find_row(&left, &table, &device, info.note, sizeof info.note))
        return jk_fail(err, JASK_ERR_ARG, "there is no device number %d", index);
    snprintf(info.name, sizeof info.name, "%s", table->kind);
    if (device >= 0)
        st = describe_device(table, device, &info, err);
    if (!st)
        jk_struct_out(out, struct_size, &info, sizeof info);
    return st;
}
