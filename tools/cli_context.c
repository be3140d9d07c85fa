#include "cli_context.h"

#include "cli_output.h"
#include "cli_signals.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *in_environment(const char *name)
{
    for (int i = 0; i < jask_setting_count(); i++) {
        if (strcmp(jask_setting_get(i)->name, name) == 0)
            return jask_setting_environment(i);
    }
    return NULL;
}

/* `name` is what the device option takes; "cuda" is cuda:0. */
static bool names_device(const char *name, const char *device)
{
    size_t len = strlen(name);
    return strcmp(name, "auto") == 0 || strcmp(name, device) == 0 ||
           (strncmp(name, device, len) == 0 && strcmp(device + len, ":0") == 0);
}

/* Free memory of the device that the options will choose, when that is not the host's. */
static bool device_memory(const cli_options *options, uint64_t *out_bytes, char *source,
                          size_t source_size)
{
    const char *name = options->device ? options->device : in_environment("device");
    jask_device_info d;
    for (int i = 0; jask_device_get(i, &d, sizeof d, NULL) == JASK_OK; i++) {
        if (!d.usable || !names_device(name ? name : "auto", d.name))
            continue;
        *out_bytes = d.free_bytes;
        snprintf(source, source_size, "free memory of %s", d.name);
        return strcmp(d.name, "host") != 0;
    }
    return false;
}

/* Nobody named a budget: half of what there is leaves room for the page cache, which the files
 * need, and for others on a card. */
static jask_status default_budget(const cli_options *options, uint64_t *out_bytes, jask_error *err)
{
    char text[CLI_SIZE_TEXT];
    char source[256];
    uint64_t available = 0;
    jask_status st = JASK_OK;
    if (!device_memory(options, &available, source, sizeof source))
        st = jask_available_memory(&available, source, sizeof source, err);
    if (st != JASK_OK)
        return st;
    *out_bytes = jask_align_to_os_page(available / 2);
    cli_note(options, "no budget given: taking %s, half of the memory available (%s)",
             cli_size_text(*out_bytes, text, sizeof text), source);
    return JASK_OK;
}

static void log_line(jask_log_level level, const char *message, void *user)
{
    const char *name = level == JASK_LOG_WARN ? "warning" : jask_log_level_name(level);
    /* What failed is said when it has come back, once. */
    if (level > JASK_LOG_ERROR)
        cli_note(user, "%s: %s", name, message);
}

/* Options before the environment: -v and -vv. */
static void set_log(const cli_options *options, jask_options *out)
{
    static const char *const levels[] = {NULL, "info", "debug"};
    out->log = log_line;
    out->log_user = (void *)(uintptr_t)options;
    out->log_level = levels[options->verbose];
}

jask_status cli_context_open(const cli_options *options, cli_progress *progress, jask_context **out,
                             jask_error *err)
{
    jask_options o;
    jask_options_init(&o, sizeof o);
    o.memory_budget_bytes = options->budget_bytes;
    o.host_budget_bytes = options->host_budget_bytes;
    o.scratch_dir = options->scratch;
    o.allow_tmpfs = options->allow_tmpfs;
    o.device = options->device;
    o.planner = options->planner;
    o.machine = options->machine;
    o.pipeline = options->no_pipeline ? -1 : 0;
    o.sync = options->no_sync ? -1 : 0;
    o.io_threads = options->io_threads;
    o.io = options->io;
    o.precision = options->precision;
    o.deterministic = options->deterministic;
    set_log(options, &o);
    if (progress) {
        o.progress = cli_progress_step;
        o.progress_user = progress;
    }
    if (o.memory_budget_bytes == 0 && !in_environment("memory_budget")) {
        jask_status st = default_budget(options, &o.memory_budget_bytes, err);
        if (st != JASK_OK)
            return st;
    }
    return jask_context_open(&o, out, err);
}

static bool set_blas_threads(int threads)
{
    static const struct {
        const char *name;
        bool wide; /* takes a 64-bit count */
    } setters[] = {{"openblas_set_num_threads", false},
                   {"bli_thread_set_num_threads", true},
                   {"MKL_Set_Num_Threads", false}};
    for (size_t i = 0; i < sizeof setters / sizeof *setters; i++) {
        void (*set_int)(int) = NULL;
        void (*set_wide)(int64_t) = NULL;
        void *symbol = dlsym(RTLD_DEFAULT, setters[i].name);
        if (!symbol)
            continue;
        memcpy(&set_int, &symbol, sizeof symbol);
        memcpy(&set_wide, &symbol, sizeof symbol);
        if (setters[i].wide)
            set_wide(threads);
        else
            set_int(threads);
        return true;
    }
    return false;
}

/* The user has told the BLAS library itself. */
static bool threads_in_environment(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS",
                                        "GOTO_NUM_THREADS",     "BLIS_NUM_THREADS",
                                        "MKL_NUM_THREADS",      "OMP_NUM_THREADS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return true;
    }
    return false;
}

void cli_blas_threads(const cli_options *options)
{
    jask_cpus cpus = {.struct_size = sizeof cpus};
    int threads = options->threads;
    bool set;
    if (threads == 0 &&
        (threads_in_environment() || jask_get_cpus(&cpus, sizeof cpus, NULL) != JASK_OK))
        return;
    if (threads == 0)
        threads = cpus.threads;
    set = set_blas_threads(threads);
    if (!set && options->threads > 0)
        cli_note(options, "--threads %d has no effect: no BLAS that takes a thread count is loaded",
                 threads);
    if (!set || options->verbose == 0)
        return;
    if (options->threads > 0)
        cli_note(options, "info: BLAS threads: %d (option)", threads);
    else if (cpus.quota > 0)
        cli_note(options, "info: BLAS threads: %d (%d of %d cores allowed; a quota of %.2f, %s)",
                 threads, cpus.allowed, cpus.machine, cpus.quota, cpus.quota_source);
    else
        cli_note(options, "info: BLAS threads: %d (%d of %d cores allowed)", threads, cpus.allowed,
                 cpus.machine);
}

/* splitmix64: a good generator whose nth value needs no earlier one. */
static uint64_t random_bits(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* As many random bits as the significand holds, so that every value is exact and 1 never comes. */
static void fill_random(jask_dtype dtype, uint64_t seed, uint64_t first, size_t count, void *out)
{
    float *f32 = out;
    double *f64 = out;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(seed, first + i);
        if (dtype == JASK_F32)
            f32[i] = (float)(bits >> 40) * 0x1p-23F - 1.0F;
        else
            f64[i] = (double)(bits >> 11) * 0x1p-52 - 1.0;
    }
}

jask_status cli_random_array(jask_context *ctx, jask_dtype dtype, int64_t rows, int64_t cols,
                             uint64_t seed, jask_array **out, jask_error *err)
{
    enum { CHUNK = 1 << 16 };
    const int64_t shape[2] = {rows, cols};
    jask_array *array = NULL;
    jask_array_info info;
    double *chunk = malloc(CHUNK * sizeof *chunk);
    jask_status st = JASK_OK;
    if (!chunk) {
        *err = (jask_error){.code = JASK_ERR_NOMEM, .msg = "no memory for random numbers"};
        return JASK_ERR_NOMEM;
    }
    st = jask_array_create(ctx, NULL, dtype, 2, shape, &array, err);
    if (st != JASK_OK)
        goto out;
    jask_array_get_info(array, &info, sizeof info);
    for (uint64_t first = 0; first < info.elements && st == JASK_OK; first += CHUNK) {
        uint64_t left = info.elements - first;
        size_t count = left < CHUNK ? (size_t)left : CHUNK;
        fill_random(dtype, seed, first, count, chunk);
        st = jask_array_write(array, first, count, chunk, err);
        if (st == JASK_OK && cli_stop_signal()) {
            *err = (jask_error){.code = JASK_ERR_CANCELED, .msg = "stopped while making inputs"};
            st = err->code;
        }
    }
    if (st == JASK_OK) {
        *out = array;
        array = NULL;
    }
out:
    jask_array_close(array);
    free(chunk);
    return st;
}
