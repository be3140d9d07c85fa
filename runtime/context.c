#include "runtime/context.h"

#include "runtime/calibration.h"
#include "runtime/system.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Enough staging to keep a card and a disk busy; little enough to pin anywhere. */
#define HOST_BUDGET ((uint64_t)256 << 20)

#define VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define VERSION_TEXT(a, b, c) VERSION_TEXT_(a, b, c)

struct jask_context {
    _Atomic int references;
    jk_settings settings;
    jk_log log;
    jask_progress_fn progress;
    void *progress_user;
    uint64_t budget_bytes;
    uint64_t
        host_budget_bytes; /* for staging and kept inputs; 0 where device memory is host memory */
    uint64_t available_bytes;
    char available_source[256];
    jk_planner planner;
    jk_machine_said machine; /* what the settings say of it */
    jk_device_ref device;

    char *scratch_named;  /* absolute, not examined */
    pthread_mutex_t lock; /* guards what follows */
    char *scratch_real;   /* resolved, once it has been examined */
    jask_io_cost io;
};

static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static jask_context *default_context; /* holds one reference */

const char *jask_version(void)
{
    return VERSION_TEXT(JASK_VERSION_MAJOR, JASK_VERSION_MINOR, JASK_VERSION_PATCH);
}

void jk_struct_out(void *out, size_t out_size, const void *value, size_t value_size)
{
    size_t head = sizeof(size_t);
    if (out_size < head)
        return;
    memset(out, 0, out_size);
    memcpy((char *)out + head, (const char *)value + head,
           (out_size < value_size ? out_size : value_size) - head);
    memcpy(out, &out_size, head);
}

void jk_struct_in(void *value, size_t value_size, const void *given)
{
    size_t head = sizeof(size_t), given_size = 0;
    if (given)
        memcpy(&given_size, given, head);
    if (given_size > head)
        memcpy((char *)value + head, (const char *)given + head,
               (given_size < value_size ? given_size : value_size) - head);
}

void jk_context_put(jask_context *ctx)
{
    if (!ctx || atomic_fetch_sub(&ctx->references, 1) > 1)
        return;
    jk_device_release(&ctx->device);
    jk_settings_fini(&ctx->settings);
    jk_log_fini(&ctx->log);
    free(ctx->scratch_named);
    free(ctx->scratch_real);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

/* The scratch directory as an absolute path, not yet looked at. */
static jask_status name_scratch(jask_context *ctx, jask_error *err)
{
    const char *dir = ctx->settings.value[JK_SET_SCRATCH_DIR].text;
    char *cwd = NULL;
    int len;
    if (dir[0] != '/') {
        cwd = getcwd(NULL, 0);
        if (!cwd)
            return jk_fail_errno(err, "scratch directory '%s': the working directory has no path",
                                 dir);
    }
    len = asprintf(&ctx->scratch_named, "%s%s%s", cwd ? cwd : "", cwd ? "/" : "", dir);
    free(cwd);
    if (len < 0) {
        ctx->scratch_named = NULL;
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for the path of scratch directory '%s'",
                       dir);
    }
    return JASK_OK;
}

/* With ctx->lock held, or before anyone else knows the context. */
static jask_status prepare_scratch(jask_context *ctx, jask_error *err)
{
    const jk_setting_value *dir = &ctx->settings.value[JK_SET_SCRATCH_DIR];
    jask_status st;
    if (ctx->scratch_real)
        return JASK_OK;
    st = jk_scratch_prepare(ctx->scratch_named, dir->source, jk_context_allows_tmpfs(ctx),
                            &ctx->scratch_real, err);
    if (!st)
        jk_log_write(&ctx->log, JASK_LOG_INFO, "scratch directory '%s' (%s)", ctx->scratch_real,
                     dir->source);
    return st;
}

static jask_status check_budget(const jask_context *ctx, jask_error *err)
{
    if (ctx->settings.value[JK_SET_MEMORY_BUDGET].text)
        return JASK_OK;
    return jk_fail(err, JASK_ERR_CONFIG,
                   "no memory budget is set: call jask_set_memory_budget(\"4GB\", ...), set the "
                   "option memory_budget_bytes, or set JASK_MEMORY_BUDGET");
}

uint64_t jk_context_clamp(uint64_t asked, uint64_t available)
{
    uint64_t most = available / 5 * 4;
    return asked < most ? asked : most;
}

/* One budget where the device's memory is the host's; else one for each. */
static jask_status settle_budgets(jask_context *ctx, jask_error *err)
{
    const jk_device_info *info = &ctx->device.info;
    const jk_setting_value *host = &ctx->settings.value[JK_SET_HOST_BUDGET];
    uint64_t available;
    jask_status st = jk_memory_available("", &available, ctx->available_source,
                                         sizeof ctx->available_source, err);
    if (st)
        return st;
    if (!info->host_memory) {
        ctx->host_budget_bytes =
            jk_context_clamp(host->text ? host->number : HOST_BUDGET, available);
        available = info->free_bytes;
        snprintf(ctx->available_source, sizeof ctx->available_source, "free memory of %s",
                 info->name);
    }
    ctx->available_bytes = available;
    ctx->budget_bytes =
        jk_context_clamp(ctx->settings.value[JK_SET_MEMORY_BUDGET].number, available);
    return JASK_OK;
}

const char *jk_context_about(uint64_t bytes, char text[32])
{
    if (bytes >= (uint64_t)1 << 30)
        bytes &= ~(((uint64_t)1 << 20) - 1);
    else if (bytes >= (uint64_t)1 << 20)
        bytes &= ~(((uint64_t)1 << 10) - 1);
    return jask_format_size(bytes, text, 32);
}

static void log_budget(jask_context *ctx)
{
    const jk_setting_value *budget = &ctx->settings.value[JK_SET_MEMORY_BUDGET];
    char got[32], asked[32], available[32];
    jk_context_about(ctx->available_bytes, available);
    if (ctx->budget_bytes < budget->number)
        jk_log_write(&ctx->log, JASK_LOG_WARN,
                     "memory budget cut from %s to %s: 0.8 of the %s available (%s)",
                     jk_context_about(budget->number, asked),
                     jk_context_about(ctx->budget_bytes, got), available, ctx->available_source);
    jk_log_write(&ctx->log, JASK_LOG_INFO, "memory budget %s (%s); %s available (%s)",
                 jk_context_about(ctx->budget_bytes, got), budget->source, available,
                 ctx->available_source);
    if (ctx->host_budget_bytes > 0)
        jk_log_write(&ctx->log, JASK_LOG_INFO, "host budget %s (%s), for staging and inputs",
                     jk_context_about(ctx->host_budget_bytes, got),
                     ctx->settings.value[JK_SET_HOST_BUDGET].source);
}

static void log_settings(jask_context *ctx)
{
    for (int i = 0; i < JK_SET_COUNT; i++) {
        const jk_setting_value *value = &ctx->settings.value[i];
        jk_log_write(&ctx->log, JASK_LOG_DEBUG, "setting %s: %s (%s)", jask_setting_get(i)->name,
                     value->text ? value->text : "not set", value->source);
    }
}

static void log_device(jask_context *ctx)
{
    const jk_device_ref *device = &ctx->device;
    jk_log_write(&ctx->log, JASK_LOG_INFO, "device %s (%s): %s%s%s", device->info.name,
                 ctx->settings.value[JK_SET_DEVICE].source, device->info.description,
                 device->note[0] ? "; " : "", device->note);
}

static jask_status select_device(jask_context *ctx, jask_error *err)
{
    const jk_device_options options = {.cublas = ctx->settings.value[JK_SET_CUBLAS].text};
    return jk_device_select(ctx->settings.value[JK_SET_DEVICE].text, &options, &ctx->device, err);
}

static void copy_callbacks(jask_context *ctx, const jask_options *options)
{
    jask_options mine;
    jask_options_init(&mine, sizeof mine);
    jk_struct_in(&mine, sizeof mine, options);
    ctx->progress = mine.progress;
    ctx->progress_user = mine.progress_user;
    jk_log_init(&ctx->log, mine.log, mine.log_user);
}

jask_status jask_context_open(const jask_options *options, jask_context **out, jask_error *err)
{
    jask_status st;
    jask_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a context");
    atomic_init(&ctx->references, 1);
    pthread_mutex_init(&ctx->lock, NULL);
    copy_callbacks(ctx, options);
    st = jk_settings_init(&ctx->settings, options, err);
    if (!st) {
        jk_log_begin(&ctx->log, ctx->settings.value[JK_SET_LOG_LEVEL].text);
        log_settings(ctx);
        st = check_budget(ctx, err);
    }
    if (!st)
        st = jk_planner_parse(ctx->settings.value[JK_SET_PLANNER].text, &ctx->planner, err);
    if (!st && ctx->settings.value[JK_SET_MACHINE].text)
        st = jk_machine_parse(ctx->settings.value[JK_SET_MACHINE].text, &ctx->machine, err);
    if (!st)
        st = name_scratch(ctx, err);
    if (!st && strcmp(ctx->settings.value[JK_SET_SCRATCH_DIR].source, "default") != 0)
        st = prepare_scratch(ctx, err);
    if (!st)
        st = select_device(ctx, err);
    if (!st)
        st = settle_budgets(ctx, err);
    if (st) {
        jk_context_put(ctx);
        return st;
    }
    log_device(ctx);
    log_budget(ctx);
    jk_calibration_take(&ctx->device.info, &ctx->settings, &ctx->machine, &ctx->log);
    *out = ctx;
    return JASK_OK;
}

void jask_context_close(jask_context *ctx)
{
    jk_context_put(ctx);
}

jask_status jk_context_get(jask_context *ctx, jask_context **out, jask_error *err)
{
    jask_status st = JASK_OK;
    if (ctx) {
        atomic_fetch_add(&ctx->references, 1);
        *out = ctx;
        return JASK_OK;
    }
    pthread_mutex_lock(&default_lock);
    if (!default_context)
        st = jask_context_open(NULL, &default_context, err);
    if (!st) {
        atomic_fetch_add(&default_context->references, 1);
        *out = default_context;
    }
    pthread_mutex_unlock(&default_lock);
    return st;
}

jask_status jask_set_memory_budget(const char *budget, const char *scratch_dir, int allow_tmpfs,
                                   jask_error *err)
{
    jask_options options;
    jask_context *fresh, *old;
    jask_status st;
    jask_options_init(&options, sizeof options);
    if (!budget)
        return jk_fail(err, JASK_ERR_ARG, "the memory budget is NULL; give a size such as \"4GB\"");
    if (jask_parse_size(budget, &options.memory_budget_bytes, err))
        return jk_fail_in(err, err ? (err->code = JASK_ERR_CONFIG) : JASK_ERR_CONFIG,
                          "memory budget");
    options.scratch_dir = scratch_dir;
    options.allow_tmpfs = allow_tmpfs;
    st = jask_context_open(&options, &fresh, err);
    if (!st && !scratch_dir) {
        /* The reference makes and examines its default directory here as well. */
        const char *dir;
        st = jk_context_scratch(fresh, &dir, err);
        if (st)
            jk_context_put(fresh);
    }
    if (st)
        return st;
    pthread_mutex_lock(&default_lock);
    old = default_context;
    default_context = fresh;
    pthread_mutex_unlock(&default_lock);
    jk_context_put(old);
    return JASK_OK;
}

jask_status jask_get_config(jask_context *ctx, jask_config *out, size_t struct_size,
                            jask_error *err)
{
    jask_context *held;
    jask_config config = {0};
    jask_status st = jk_context_get(ctx, &held, err);
    if (st)
        return st;
    config.memory_budget_bytes = held->budget_bytes;
    config.asked_budget_bytes = held->settings.value[JK_SET_MEMORY_BUDGET].number;
    config.available_bytes = held->available_bytes;
    config.available_source = held->available_source;
    pthread_mutex_lock(&held->lock);
    config.scratch_dir = held->scratch_real ? held->scratch_real : held->scratch_named;
    pthread_mutex_unlock(&held->lock);
    config.device = held->device.info.name;
    config.host_budget_bytes = held->host_budget_bytes;
    config.device_note = held->device.note;
    jk_struct_out(out, struct_size, &config, sizeof config);
    jk_context_put(held);
    return JASK_OK;
}

jask_status jask_context_setting(jask_context *ctx, int index, const char **out_value,
                                 const char **out_source, jask_error *err)
{
    jask_context *held;
    jask_status st;
    if (index < 0 || index >= JK_SET_COUNT)
        return jk_fail(err, JASK_ERR_ARG, "there is no setting %d; there are %d", index,
                       JK_SET_COUNT);
    st = jk_context_get(ctx, &held, err);
    if (st)
        return st;
    *out_value = held->settings.value[index].text ? held->settings.value[index].text : "";
    *out_source = held->settings.value[index].source;
    jk_context_put(held);
    return JASK_OK;
}

jask_status jask_context_io_cost(jask_context *ctx, jask_io_cost *out, size_t struct_size,
                                 jask_error *err)
{
    jask_context *held;
    jask_status st = jk_context_get(ctx, &held, err);
    if (st)
        return st;
    pthread_mutex_lock(&held->lock);
    jk_struct_out(out, struct_size, &held->io, sizeof held->io);
    pthread_mutex_unlock(&held->lock);
    jk_context_put(held);
    return JASK_OK;
}

void jk_io_cost_add(jask_io_cost *sum, const jask_io_cost *cost)
{
    sum->h2d_pages += cost->h2d_pages;
    sum->h2d_bytes += cost->h2d_bytes;
    sum->d2h_pages += cost->d2h_pages;
    sum->d2h_bytes += cost->d2h_bytes;
    sum->file_read_bytes += cost->file_read_bytes;
    sum->file_write_bytes += cost->file_write_bytes;
    sum->disk_read_bytes += cost->disk_read_bytes;
    sum->disk_write_bytes += cost->disk_write_bytes;
}

void jk_context_add_io(jask_context *ctx, const jask_io_cost *cost)
{
    pthread_mutex_lock(&ctx->lock);
    jk_io_cost_add(&ctx->io, cost);
    pthread_mutex_unlock(&ctx->lock);
}

jask_status jk_context_scratch(jask_context *ctx, const char **out_dir, jask_error *err)
{
    jask_status st;
    pthread_mutex_lock(&ctx->lock);
    st = prepare_scratch(ctx, err);
    if (!st)
        *out_dir = ctx->scratch_real;
    pthread_mutex_unlock(&ctx->lock);
    return st;
}

jk_log *jk_context_log(jask_context *ctx)
{
    return ctx ? &ctx->log : NULL;
}

jask_status jk_context_progress(const jask_context *ctx, const jask_progress *progress,
                                jask_error *err)
{
    if (ctx->progress && ctx->progress(progress, ctx->progress_user) != 0)
        return jk_fail(err, JASK_ERR_CANCELED, "canceled");
    return JASK_OK;
}

uint64_t jk_context_budget(const jask_context *ctx)
{
    return ctx->budget_bytes;
}

jask_status jk_context_explain_budget(const jask_context *ctx, jask_error *err)
{
    uint64_t number = ctx->settings.value[JK_SET_MEMORY_BUDGET].number;
    char asked[32], available[32];
    if (ctx->budget_bytes == number)
        return JASK_ERR_BUDGET;
    return jk_fail_in(err, JASK_ERR_BUDGET, "budget of %s cut to 0.8 of the %s available (%s)",
                      jask_format_size(number, asked, sizeof asked),
                      jask_format_size(ctx->available_bytes, available, sizeof available),
                      ctx->available_source);
}

uint64_t jk_context_host_budget(const jask_context *ctx)
{
    return ctx->host_budget_bytes;
}

uint64_t jk_context_cpu_budget(const jask_context *ctx)
{
    return ctx->device.info.host_memory ? ctx->budget_bytes : ctx->host_budget_bytes;
}

bool jk_context_allows_tmpfs(const jask_context *ctx)
{
    return ctx->settings.value[JK_SET_ALLOW_TMPFS].number != 0;
}

bool jk_context_tf32(const jask_context *ctx)
{
    return strcmp(ctx->settings.value[JK_SET_PRECISION].text, "tf32") == 0;
}

bool jk_context_sync(const jask_context *ctx)
{
    return !ctx || ctx->settings.value[JK_SET_SYNC].number != 0;
}

bool jk_context_pipelined(const jask_context *ctx)
{
    return ctx->settings.value[JK_SET_PIPELINE].number != 0;
}

bool jk_context_deterministic(const jask_context *ctx)
{
    return ctx->settings.value[JK_SET_DETERMINISTIC].number != 0;
}

int jk_context_io_threads(const jask_context *ctx)
{
    return (int)ctx->settings.value[JK_SET_IO_THREADS].number;
}

const char *jk_context_io(const jask_context *ctx)
{
    return ctx->settings.value[JK_SET_IO].text;
}

const jk_machine_said *jk_context_machine(const jask_context *ctx)
{
    return &ctx->machine;
}

jk_planner jk_context_planner(const jask_context *ctx)
{
    return ctx->planner;
}

const jk_device_ref *jk_context_device(const jask_context *ctx)
{
    return &ctx->device;
}

jk_device *jk_context_host(const jask_context *ctx)
{
    return ctx->device.info.host_memory ? ctx->device.dev : NULL;
}
