/* The registry of devices, and the choice among them. */
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/system.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const jk_device_table *const jk_device_tables[] = {&jk_device_host, NULL};

void jk_device_release(jk_device_ref *ref)
{
    if (ref->table)
        ref->table->close(ref->dev);
    memset(ref, 0, sizeof *ref);
}

static jask_status open_one(const jk_device_table *table, int index, jk_device_ref *out,
                            jask_error *err)
{
    jk_device_ref ref = {.table = table};
    jask_status st = table->open(index, &ref.dev, err);
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

static jask_status open_first(jk_device_ref *out, jask_error *err)
{
    jask_status st = JASK_OK;
    for (int i = 0; jk_device_tables[i]; i++) {
        char note[256];
        if (jk_device_tables[i]->count(note, sizeof note) < 1)
            continue;
        st = open_one(jk_device_tables[i], 0, out, err);
        if (!st)
            return JASK_OK;
    }
    return st ? st : jk_fail(err, JASK_ERR_DEVICE, "no device can be used");
}

jask_status jk_device_select(const char *name, jk_device_ref *out, jask_error *err)
{
    char names[128];
    size_t kind_len;
    int index;
    if (strcmp(name, "auto") == 0)
        return open_first(out, err);
    list_names(names, sizeof names);
    if (split_name(name, &kind_len, &index)) {
        for (int i = 0; jk_device_tables[i]; i++) {
            const char *kind = jk_device_tables[i]->kind;
            if (strlen(kind) == kind_len && strncmp(kind, name, kind_len) == 0)
                return open_one(jk_device_tables[i], index, out, err);
        }
    }
    return jk_fail(err, JASK_ERR_DEVICE, "there is no device '%s'; there are: %s", name, names);
}

jask_status jask_device_get(int index, jask_device_info *out, size_t struct_size, jask_error *err)
{
    jask_device_info info = {0};
    jk_device_ref ref;
    char source[256];
    int count = 0;
    jask_status st;
    while (jk_device_tables[count])
        count++;
    if (index < 0 || index >= count)
        return jk_fail(err, JASK_ERR_ARG, "there is no device number %d; there are %d", index,
                       count);
    snprintf(info.name, sizeof info.name, "%s", jk_device_tables[index]->kind);
    if (jk_device_tables[index]->count(info.note, sizeof info.note) > 0) {
        st = open_one(jk_device_tables[index], 0, &ref, err);
        if (st)
            return st;
        info.usable = 1;
        snprintf(info.description, sizeof info.description, "%s", ref.info.description);
        info.total_bytes = ref.info.total_bytes;
        info.free_bytes = ref.info.free_bytes;
        if (ref.info.host_memory)
            st = jk_memory_available("", &info.free_bytes, source, sizeof source, err);
        jk_device_release(&ref);
        if (st)
            return st;
    }
    jk_struct_out(out, struct_size, &info, sizeof info);
    return JASK_OK;
}
