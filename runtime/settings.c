#include "runtime/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a setting's text is read, and the type of its field in jask_options. */
typedef enum kind {
    KIND_SIZE,   /* uint64_t */
    KIND_BOOL,   /* int: 1, -1 for no */
    KIND_COUNT,  /* int */
    KIND_CHOICE, /* const char * */
    KIND_TEXT    /* const char *, examined by who uses it */
} kind;

typedef struct setting_row {
    jask_setting setting;
    kind kind;
    size_t field; /* offset in jask_options; there, zero is "not set" */
    const char *accepted;
    const char *words;    /* KIND_CHOICE, parted by blanks */
    uint64_t least, most; /* KIND_COUNT */
} setting_row;

#define BOOL_ACCEPTED "1, yes, true, on or 0, no, false, off (in jask_options: 1 or -1)"

static const setting_row rows[JK_SET_COUNT] = {
    [JK_SET_MEMORY_BUDGET] = {{"memory_budget", "JASK_MEMORY_BUDGET", "size", "",
                               "bytes resident at once where the work is done"},
                              .kind = KIND_SIZE,
                              .field = offsetof(jask_options, memory_budget_bytes)},
    [JK_SET_HOST_BUDGET] = {{"host_budget", "JASK_HOST_BUDGET", "size", "",
                             "bytes of host memory beside a GPU: pinned staging, "
                             "inputs kept there, and sums"},
                            .kind = KIND_SIZE,
                            .field = offsetof(jask_options, host_budget_bytes)},
    [JK_SET_SCRATCH_DIR] = {{"scratch_dir", "JASK_SCRATCH_DIR", "path", ".jask_scratch",
                             "directory for files without a name; made when missing"},
                            .kind = KIND_TEXT,
                            .field = offsetof(jask_options, scratch_dir),
                            .accepted = "the path of a directory on a disk"},
    [JK_SET_ALLOW_TMPFS] = {{"allow_tmpfs", "JASK_ALLOW_TMPFS", "bool", "0",
                             "accept a scratch directory that lies in RAM"},
                            .kind = KIND_BOOL,
                            .field = offsetof(jask_options, allow_tmpfs),
                            .accepted = BOOL_ACCEPTED},
    [JK_SET_DEVICE] = {{"device", "JASK_DEVICE", "choice", "auto",
                        "what computes: auto, host, or a name that jask-info lists"},
                       .kind = KIND_TEXT,
                       .field = offsetof(jask_options, device),
                       .accepted = "auto, host, or a name that jask-info lists"},
    [JK_SET_PLANNER] = {{"planner", "JASK_PLANNER", "choice", "auto",
                         "auto (least predicted time), bytes (fewest bytes moved) or page "
                         "(square pages)"},
                        .kind = KIND_CHOICE,
                        .field = offsetof(jask_options, planner),
                        .accepted = "auto, bytes or page",
                        .words = "auto bytes page"},
    [JK_SET_MACHINE] = {{"machine", "JASK_MACHINE", "text", "",
                         "rates to plan with, as flops=51T,h2d=55G,disk=2G; with gpu=80G or "
                         "host=64G, another machine to plan for"},
                        .kind = KIND_TEXT,
                        .field = offsetof(jask_options, machine),
                        .accepted = "a machine as flops=51T,h2d=55G,disk=2G"},
    [JK_SET_PIPELINE] = {{"pipeline", "JASK_PIPELINE", "bool", "1",
                          "overlap reading, computing and writing"},
                         .kind = KIND_BOOL,
                         .field = offsetof(jask_options, pipeline),
                         .accepted = BOOL_ACCEPTED},
    [JK_SET_SYNC] = {{"sync", "JASK_SYNC", "bool", "1",
                      "make a result durable before it gets its name"},
                     .kind = KIND_BOOL,
                     .field = offsetof(jask_options, sync),
                     .accepted = BOOL_ACCEPTED},
    [JK_SET_IO_THREADS] = {{"io_threads", "JASK_IO_THREADS", "count", "4",
                            "threads that read files, 1 to 64"},
                           .kind = KIND_COUNT,
                           .field = offsetof(jask_options, io_threads),
                           .accepted = "a whole number from 1 to 64",
                           .least = 1,
                           .most = 64},
    [JK_SET_IO] =
        {{"io", "JASK_IO", "choice", "auto",
          "how inputs are read and products written: pread (through the page cache), "
          "direct (around it), or auto (around it what does not fit, synced results, and what is "
          "large and passes once, behind products)"},
         .kind = KIND_CHOICE,
         .field = offsetof(jask_options, io),
         .accepted = "auto, pread or direct",
         .words = "auto pread direct"},
    [JK_SET_PRECISION] =
        {{"precision", "JASK_PRECISION", "choice", "f32",
          "f32 (IEEE) or tf32 (rounds the inputs of f32 products, where the device "
          "can)"},
         .kind = KIND_CHOICE,
         .field = offsetof(jask_options, precision),
         .accepted = "f32 or tf32",
         .words = "f32 tf32"},
    [JK_SET_DETERMINISTIC] =
        {{"deterministic", "JASK_DETERMINISTIC", "bool", "0",
          "products whose bits depend on the inputs alone: not on budget, planner, threads, device "
          "or BLAS"},
         .kind = KIND_BOOL,
         .field = offsetof(jask_options, deterministic),
         .accepted = BOOL_ACCEPTED},
    [JK_SET_CUBLAS] = {{"cublas", "JASK_CUBLAS", "path", "",
                        "the file to load cuBLAS from; without, it is searched for"},
                       .kind = KIND_TEXT,
                       .field = offsetof(jask_options, cublas),
                       .accepted = "the path of a shared library"},
    [JK_SET_LOG_LEVEL] = {{"log_level", "JASK_LOG_LEVEL", "choice", "warn",
                           "what is logged: error, warn, info or debug, each with those before it"},
                          .kind = KIND_CHOICE,
                          .field = offsetof(jask_options, log_level),
                          .accepted = "error, warn, info or debug",
                          .words = "error warn info debug"},
};

int jask_setting_count(void)
{
    return JK_SET_COUNT;
}

const jask_setting *jask_setting_get(int index)
{
    return index >= 0 && index < JK_SET_COUNT ? &rows[index].setting : NULL;
}

const char *jask_setting_environment(int index)
{
    return index >= 0 && index < JK_SET_COUNT ? getenv(rows[index].setting.environment) : NULL;
}

static const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

jk_python_folders jk_settings_python_folders(void)
{
    return (jk_python_folders){.virtual_env = text_or_null(getenv("VIRTUAL_ENV")),
                               .home = text_or_null(getenv("HOME"))};
}

bool jk_settings_openblas_core(void)
{
    return text_or_null(getenv("OPENBLAS_CORETYPE")) != NULL;
}

/* As the XDG base directories have it: what is no absolute path does not count. */
jk_cache_folder jk_settings_cache_folder(void)
{
    const char *cache = text_or_null(getenv("XDG_CACHE_HOME"));
    const char *home = text_or_null(getenv("HOME"));
    if (cache && cache[0] == '/')
        return (jk_cache_folder){cache, ""};
    return (jk_cache_folder){home && home[0] == '/' ? home : NULL, "/.cache"};
}

void jask_options_init(jask_options *options, size_t struct_size)
{
    memset(options, 0, struct_size);
    options->struct_size = struct_size;
}

/* `text` is one of the blank-parted `words`. */
static bool among(const char *text, const char *words)
{
    size_t text_len = strlen(text);
    for (size_t len; *words; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        if (len == text_len && memcmp(text, words, len) == 0)
            return true;
    }
    return false;
}

static bool read_bool(const char *text, uint64_t *out)
{
    char folded[8] = "";
    /* By hand: tolower would follow the locale. */
    for (size_t i = 0; text[i]; i++) {
        if (i == sizeof folded - 1)
            return false;
        folded[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
    }
    *out = among(folded, "1 yes true on");
    return *out || among(folded, "0 no false off");
}

static bool read_count(const setting_row *row, const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (text[strspn(text, "0123456789")] != '\0')
        return false;
    for (; *text; text++) {
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > row->most)
            return false;
    }
    *out = value;
    return value >= row->least;
}

/* `name` is what the user knows the source by. */
static jask_status read_value(const setting_row *row, const char *name, const char *text,
                              uint64_t *out, jask_error *err)
{
    jask_error inner;
    bool good = false;

    switch (row->kind) {
    case KIND_SIZE:
        if (jask_parse_size(text, out, &inner))
            return jk_fail(err, JASK_ERR_CONFIG, "%s: %s", name, inner.msg);
        return JASK_OK;
    case KIND_BOOL:
        good = read_bool(text, out);
        break;
    case KIND_COUNT:
        good = read_count(row, text, out);
        break;
    case KIND_CHOICE:
        good = among(text, row->words);
        break;
    case KIND_TEXT:
        good = text[strspn(text, " \t\n\v\f\r")] != '\0';
        break;
    }
    if (!good)
        return jk_fail(err, JASK_ERR_CONFIG, "%s: '%s' is not accepted: it takes %s", name, text,
                       row->accepted);
    return JASK_OK;
}

/* What the option says as text, in `room` when it is a number there; NULL when it is not set. */
static const char *option_text(const setting_row *row, const jask_options *options, char *room,
                               size_t room_size)
{
    const char *field = (const char *)options + row->field;
    uint64_t bytes;
    int number;
    const char *text;

    switch (row->kind) {
    case KIND_SIZE:
        memcpy(&bytes, field, sizeof bytes);
        return bytes ? jask_format_size(bytes, room, room_size) : NULL;
    case KIND_BOOL:
    case KIND_COUNT:
        memcpy(&number, field, sizeof number);
        if (number == 0)
            return NULL;
        if (row->kind == KIND_BOOL && number == -1)
            number = 0;
        snprintf(room, room_size, "%d", number);
        return room;
    case KIND_CHOICE:
    case KIND_TEXT:
        break;
    }
    memcpy(&text, field, sizeof text);
    return text;
}

static jask_status resolve(const setting_row *row, const jask_options *options,
                           jk_setting_value *out, jask_error *err)
{
    char room[32];
    char name[64];
    const char *text = option_text(row, options, room, sizeof room);

    snprintf(name, sizeof name, "option %s", row->setting.name);
    out->source = "option";
    if (!text) {
        text = getenv(row->setting.environment);
        snprintf(name, sizeof name, "%s", row->setting.environment);
        out->source = "environment";
    }
    if (!text) {
        out->source = "default";
        if (!*row->setting.default_value)
            return JASK_OK;
        text = row->setting.default_value;
    }
    out->text = strdup(text);
    if (!out->text)
        return jk_fail(err, JASK_ERR_NOMEM, "%s: no memory for its value", name);
    return read_value(row, name, text, &out->number, err);
}

jask_status jk_settings_init(jk_settings *out, const jask_options *options, jask_error *err)
{
    jk_settings settings = {0};
    jask_options known = {0}; /* what the caller's version of the struct does not have is not set */
    jask_status st = JASK_OK;

    if (options) {
        size_t size = options->struct_size;
        if (size < sizeof options->struct_size)
            return jk_fail(err, JASK_ERR_ARG, "options were not filled by jask_options_init");
        memcpy(&known, options, size < sizeof known ? size : sizeof known);
    }
    for (int id = 0; id < JK_SET_COUNT && !st; id++)
        st = resolve(&rows[id], &known, &settings.value[id], err);
    if (!st) {
        *out = settings;
        settings = (jk_settings){0};
    }
    jk_settings_fini(&settings);
    return st;
}

void jk_settings_fini(jk_settings *settings)
{
    if (!settings)
        return;
    for (int id = 0; id < JK_SET_COUNT; id++) {
        free(settings->value[id].text);
        settings->value[id] = (jk_setting_value){0};
    }
}
