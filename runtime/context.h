/* The context behind jask_context: settings in force, the device, counters. Counted references, so
 * that replacing the default context never pulls it from under a running operation. */
#ifndef JK_RUNTIME_CONTEXT_H
#define JK_RUNTIME_CONTEXT_H

#include "common/base.h"
#include "planner/plan.h"
#include "runtime/device.h"
#include "runtime/log.h"
#include "runtime/machine_text.h"
#include "runtime/settings.h"

/* The context to work in: `ctx`, or the process-wide default when NULL (made from the environment
 * when that sets a budget; CONFIG otherwise). Give every one back with jk_context_put. */
jask_status jk_context_get(jask_context *ctx, jask_context **out, jask_error *err);
void jk_context_put(jask_context *ctx); /* NULL allowed */

uint64_t jk_context_budget(const jask_context *ctx);
/* What was asked, but never more than 0.8 of what can be had. */
uint64_t jk_context_clamp(uint64_t asked, uint64_t available);
/* A size near enough for people, whatever the locale, and read back by jask_parse_size. */
const char *jk_context_about(uint64_t bytes, char text[32]);
/* Where a budget that was cut turned out too small, put that in front of err's message. Returns
 * BUDGET. */
jask_status jk_context_explain_budget(const jask_context *ctx, jask_error *err);
/* For staging beside a device with memory of its own; 0 on the others. */
uint64_t jk_context_host_budget(const jask_context *ctx);
/* For work on the CPU, whichever device multiplies. */
uint64_t jk_context_cpu_budget(const jask_context *ctx);
bool jk_context_allows_tmpfs(const jask_context *ctx); /* for scratch */
bool jk_context_tf32(const jask_context *ctx);         /* asked for */
bool jk_context_sync(const jask_context *ctx);         /* NULL: the default, true */
bool jk_context_pipelined(const jask_context *ctx);
bool jk_context_deterministic(const jask_context *ctx);
int jk_context_io_threads(const jask_context *ctx);
const char *jk_context_io(const jask_context *ctx); /* "auto", "pread", "direct" */
jk_planner jk_context_planner(const jask_context *ctx);
const jk_machine_said *jk_context_machine(const jask_context *ctx);
const jk_device_ref *jk_context_device(const jask_context *ctx);
/* For memory of the host: its device, which may have some spare from the last operation; NULL beside a card, where
 * there is none. */
jk_device *jk_context_host(const jask_context *ctx);

/* The directory for files without a name, made and examined at the first call. The text lives as
 * long as the context. */
jask_status jk_context_scratch(jask_context *ctx, const char **out_dir, jask_error *err);

/* Where to tell what happens in the context; ctx NULL gives NULL. */
jk_log *jk_context_log(jask_context *ctx);

/* Tell the user's callback; CANCELED when it asks to stop. */
jask_status jk_context_progress(const jask_context *ctx, const jask_progress *progress,
                                jask_error *err);

void jk_io_cost_add(jask_io_cost *sum, const jask_io_cost *cost);
void jk_context_add_io(jask_context *ctx, const jask_io_cost *cost);

/* Copy what both sides know of a struct that begins with struct_size; keeps the caller's size. */
void jk_struct_out(void *out, size_t out_size, const void *value, size_t value_size);

/* The other way: take what the caller's struct says, which may be NULL; fields that an older caller does not have keep their
 * value. */
void jk_struct_in(void *value, size_t value_size, const void *given);

#endif
