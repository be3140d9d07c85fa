#include "runtime/calibration.h"

#include "runtime/system.h"
#include "runtime/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "jask machine "
#define VERSION "1"

/* ---- the text ---- */

size_t jk_calibration_format(const char *identity, const char *where, const char *machine,
                             char text[JK_CALIBRATION_TEXT])
{
    return (size_t)snprintf(
        text, JK_CALIBRATION_TEXT,
        HEAD VERSION "\nof %s\nrates %s\n# measured by jask-info --calibrate, files in %.1024s\n",
        identity, machine, where);
}

/* The rest of the line that begins at *text with `word`, and go on to the next one; NULL for another
 * line. */
static const char *take_line(const char **text, const char *word, size_t *length)
{
    size_t word_length = strlen(word);
    const char *line = *text;
    if (strncmp(line, word, word_length) != 0)
        return NULL;
    line += word_length;
    *length = strcspn(line, "\n");
    *text = line + *length + (line[*length] == '\n');
    return line;
}

static bool is_text(const char *line, size_t length, const char *text)
{
    return strlen(text) == length && memcmp(line, text, length) == 0;
}

jask_status jk_calibration_parse(const char *text, const char *identity,
                                 char machine[JK_MACHINE_TEXT], jk_machine_said *out,
                                 jask_error *err)
{
    jk_machine_said said;
    char rates[JK_MACHINE_TEXT];
    size_t length = 0;
    const char *line = take_line(&text, HEAD, &length);
    jask_status st;
    if (!line)
        return jk_fail(err, JASK_ERR_FORMAT, "it does not begin as one of jask's");
    if (!is_text(line, length, VERSION))
        return jk_fail(err, JASK_ERR_FORMAT, "it is of version '%.*s', not " VERSION,
                       (int)(length < 20 ? length : 20), line);
    line = take_line(&text, "of ", &length);
    if (!line)
        return jk_fail(err, JASK_ERR_FORMAT, "it does not say what it was measured on");
    if (!is_text(line, length, identity))
        return jk_fail(err, JASK_ERR_FORMAT, "it was measured on '%.*s', and this is '%s'",
                       (int)(length < 200 ? length : 200), line, identity);
    line = take_line(&text, "rates ", &length);
    if (!line || length >= sizeof rates)
        return jk_fail(err, JASK_ERR_FORMAT, "it has no rates");
    memcpy(rates, line, length);
    rates[length] = '\0';
    st = jk_machine_parse(rates, &said, err);
    if (!st && (said.gpu_bytes > 0 || said.host_bytes > 0))
        st = jk_fail(err, JASK_ERR_FORMAT, "'%s' describes another machine", rates);
    if (st)
        return JASK_ERR_FORMAT;
    memcpy(machine, rates, length + 1);
    *out = said;
    return JASK_OK;
}

/* ---- the file ---- */

jask_status jk_calibration_identity(const jk_device_info *info, char out[JK_CALIBRATION_IDENTITY],
                                    jask_error *err)
{
    jk_topology topology;
    jask_status st;
    if (info->host_memory) {
        snprintf(out, JK_CALIBRATION_IDENTITY, "%s", info->description);
        return JASK_OK;
    }
    st = jk_topology_read(&topology, err);
    if (st)
        return st;
    snprintf(out, JK_CALIBRATION_IDENTITY, "%s, beside %s", info->description, topology.cpu_model);
    return JASK_OK;
}

/* Nothing that could not be in a file's name. */
static void tame(char *text)
{
    for (; *text; text++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *text))
            *text = '_';
}

jask_status jk_calibration_path(const jk_device_info *info, char **out, jask_error *err)
{
    jk_cache_folder cache = jk_settings_cache_folder();
    char host[128] = "", device[64];
    if (!cache.folder)
        return jk_fail(
            err, JASK_ERR_CONFIG,
            "there is no cache directory to keep a calibration in: set XDG_CACHE_HOME or "
            "HOME to an absolute path");
    (void)gethostname(host, sizeof host - 1);
    snprintf(device, sizeof device, "%s", info->pci_bus_id[0] ? info->pci_bus_id : info->name);
    tame(host);
    tame(device);
    if (asprintf(out, "%s%s/jask/machine-%s-%s", cache.folder, cache.below, host, device) < 0)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for the path of the calibration");
    return JASK_OK;
}

jask_status jk_calibration_open(const char *path, jk_output **out, jask_error *err)
{
    char *folder = strdup(path);
    size_t kept;
    jask_status st = JASK_OK;
    if (!folder)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for the path of '%s'", path);
    *strrchr(folder, '/') = '\0';
    if (!jk_directories_make(folder, &kept))
        st = jk_fail_errno(err, "make the directory '%s'", folder);
    free(folder);
    return st ? st : jk_output_open(path, 0, out, err);
}

jask_status jk_calibration_keep(jk_output *output, const char *text, jask_error *err)
{
    jask_status st = jk_file_write(&output->file, 0, text, strlen(text), err);
    return st ? st : jk_output_commit(output, true, err);
}

/* The text of the file, if there is one: NULL with OK where not. */
static jask_status read_text(const char *path, char **out, jask_error *err)
{
    jk_file file = JK_FILE_NONE;
    jask_error why;
    char *text = NULL;
    jask_status st = jk_file_open(path, &file, &why);
    if (st && (why.sys_errno == ENOENT || why.sys_errno == ENOTDIR))
        return JASK_OK;
    if (st)
        return jk_fail(err, st, "%s", why.msg);
    if (file.bytes >= JK_CALIBRATION_TEXT)
        st = jk_fail(err, JASK_ERR_FORMAT, "it is too long for one of jask's");
    else if (!(text = calloc(1, JK_CALIBRATION_TEXT)))
        st = jk_fail(err, JASK_ERR_NOMEM, "no memory for its text");
    else
        st = jk_file_read(&file, 0, text, (size_t)file.bytes, err);
    jk_file_close(&file);
    if (st)
        free(text);
    else
        *out = text;
    return st;
}

static jask_status read_machine(const jk_device_info *info, const char *path,
                                char machine[JK_MACHINE_TEXT], jk_machine_said *said, bool *found,
                                jask_error *err)
{
    char identity[JK_CALIBRATION_IDENTITY];
    char *text = NULL;
    jask_status st = read_text(path, &text, err);
    if (st || !text)
        return st;
    st = jk_calibration_identity(info, identity, err);
    if (!st)
        st = jk_calibration_parse(text, identity, machine, said, err);
    *found = !st;
    free(text);
    return st;
}

void jk_calibration_take(const jk_device_info *info, jk_settings *settings,
                         jk_machine_said *machine, jk_log *log)
{
    jk_setting_value *value = &settings->value[JK_SET_MACHINE];
    char text[JK_MACHINE_TEXT];
    char *path = NULL;
    bool found = false;
    jk_machine_said said;
    jask_error err;
    if (value->text || jk_calibration_path(info, &path, NULL))
        return;
    if (read_machine(info, path, text, &said, &found, &err))
        jk_log_write(log, JASK_LOG_WARN,
                     "the machine that was measured is not planned with: '%s': %s; jask-info "
                     "--calibrate measures anew",
                     path, err.msg);
    if (found)
        value->text = strdup(text);
    if (found && value->text) {
        value->source = "calibration";
        *machine = said;
        jk_log_write(log, JASK_LOG_INFO, "machine %s ('%s')", text, path);
    }
    free(path);
}
