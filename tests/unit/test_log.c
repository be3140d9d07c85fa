#include "runtime/context.h"

#include "tree.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct heard {
    char text[16384]; /* "level: message" a line */
    int lines;
    int inside, overlapped;
} heard;

static void hear(jask_log_level level, const char *message, void *user)
{
    heard *h = user;
    size_t used = strlen(h->text);
    h->overlapped += h->inside++;
    cr_assert_null(strchr(message, '\n'), "%s", message);
    snprintf(h->text + used, sizeof h->text - used, "%s: %s\n", jask_log_level_name(level),
             message);
    h->lines++;
    h->inside--;
}

static void must(jask_status st, const jask_error *err)
{
    cr_assert_eq(st, JASK_OK, "%s", err->msg);
}

static void setup(void)
{
    for (int i = 0; i < jask_setting_count(); i++)
        unsetenv(jask_setting_get(i)->environment);
    /* What jask has to say of OpenBLAS's choice is heard in test_blas_advice.c. */
    setenv("OPENBLAS_CORETYPE", "chosen", 1);
    tree_enter();
}

TestSuite(log, .init = setup, .fini = tree_leave);

static jask_context *open_context(heard *h, const char *level, uint64_t budget)
{
    jask_options options;
    jask_context *ctx;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = budget;
    options.device = "host";
    options.allow_tmpfs = 1;
    options.log = hear;
    options.log_user = h;
    options.log_level = level;
    must(jask_context_open(&options, &ctx, &err), &err);
    return ctx;
}

static void multiply(jask_context *ctx, const char *output, jask_status expected)
{
    const int64_t shape[2] = {3, 3};
    jask_array *a, *d = NULL;
    jask_dot_args args;
    jask_error err;
    must(jask_array_create(ctx, NULL, JASK_F32, 2, shape, &a, &err), &err);
    jask_dot_args_init(&args, sizeof args);
    args.output = output;
    cr_assert_eq(jask_dot(ctx, a, a, &args, output ? NULL : &d, NULL, &err), expected, "%s",
                 err.msg);
    jask_array_close(d);
    jask_array_close(a);
}

static void has(const heard *h, const char *part, bool expected)
{
    cr_assert_eq(strstr(h->text, part) != NULL, expected, "'%s' in:\n%s", part, h->text);
}

Test(log, names_levels)
{
    cr_assert_str_eq(jask_log_level_name(JASK_LOG_ERROR), "error");
    cr_assert_str_eq(jask_log_level_name(JASK_LOG_WARN), "warn");
    cr_assert_str_eq(jask_log_level_name(JASK_LOG_INFO), "info");
    cr_assert_str_eq(jask_log_level_name(JASK_LOG_DEBUG), "debug");
    cr_assert_str_eq(jask_log_level_name((jask_log_level)0), "none");
    cr_assert_str_eq(jask_log_level_name((jask_log_level)5), "none");
    cr_assert_str_eq(jask_log_level_name((jask_log_level)-1), "none");
}

Test(log, says_what_was_decided_and_why)
{
    heard h = {0};
    jask_context *ctx = open_context(&h, "info", 1 << 20);
    has(&h, "info: memory budget 1MiB (option); ", true);
    has(&h, " available (", true);
    has(&h, "info: device host (option): ", true);
    has(&h, "scratch", false);
    multiply(ctx, NULL, JASK_OK);
    has(&h, "info: scratch directory '/", true);
    has(&h, "/.jask_scratch' (default)", true);
    has(&h, "info: plan c-stationary (auto): 3 x 3 x 3 in tiles of ", true);
    has(&h, "debug:", false);
    has(&h, "warn:", false);
    jask_context_close(ctx);
}

Test(log, keeps_to_its_level)
{
    heard quiet = {0}, all = {0}, from_environment = {0};
    jask_context *ctx = open_context(&quiet, NULL, 1 << 20);
    multiply(ctx, "d.npy", JASK_OK);
    cr_assert_eq(quiet.lines, 0, "%s", quiet.text);
    jask_context_close(ctx);

    ctx = open_context(&all, "debug", 1 << 20);
    multiply(ctx, "d.npy", JASK_OK);
    for (int i = 0; i < jask_setting_count(); i++) {
        char part[64];
        snprintf(part, sizeof part, "debug: setting %s: ", jask_setting_get(i)->name);
        has(&all, part, true);
    }
    has(&all, "debug: product 'd.npy' is complete: 72 bytes read, 36 written", true);
    has(&all, "info: plan ", true);
    jask_context_close(ctx);

    setenv("JASK_LOG_LEVEL", "info", 1);
    ctx = open_context(&from_environment, NULL, 1 << 20);
    has(&from_environment, "info: memory budget", true);
    jask_context_close(ctx);
}

Test(log, warns_of_a_budget_that_is_cut)
{
    heard h = {0};
    jask_context *ctx = open_context(&h, NULL, (uint64_t)1 << 60);
    has(&h, "warn: memory budget cut from 1048576TiB to ", true);
    cr_assert_eq(h.lines, 1, "%s", h.text);
    jask_context_close(ctx);
}

Test(log, has_the_error_that_the_caller_gets)
{
    heard h = {0};
    jask_context *ctx = open_context(&h, "error", 1 << 20);
    multiply(ctx, "no/such/directory/d.npy", JASK_ERR_IO);
    has(&h, "error: product 'no/such/directory/d.npy': ", true);
    has(&h, "No such file or directory", true);
    cr_assert_eq(h.lines, 1, "%s", h.text);
    jask_context_close(ctx);
}

Test(log, warns_once_of_a_result_in_ram)
{
    heard h = {0};
    char name[64];
    jask_context *ctx;
    if (access("/dev/shm", W_OK) != 0)
        cr_skip_test("no /dev/shm");
    snprintf(name, sizeof name, "/dev/shm/jask-log-%d.npy", (int)getpid());
    ctx = open_context(&h, NULL, 1 << 20);
    for (int round = 0; round < 3; round++)
        multiply(ctx, name, JASK_OK);
    unlink(name);
    has(&h, "lies in RAM", true);
    has(&h, name, true);
    cr_assert_eq(h.lines, 1, "%s", h.text);
    jask_context_close(ctx);
}

typedef struct talker {
    pthread_t thread;
    jk_log *log;
} talker;

static void *talk(void *arg)
{
    talker *t = arg;
    for (int i = 0; i < 200; i++) {
        jk_log_write(t->log, JASK_LOG_DEBUG, "x");
        jk_log_once(t->log, JK_LOG_STAGING, JASK_LOG_WARN, "y");
    }
    return NULL;
}

/* hear() has no lock of its own: a lost line or an overlap would show. */
Test(log, comes_one_message_at_a_time)
{
    heard h = {0};
    talker talkers[4];
    jk_log log;
    jk_log_init(&log, hear, &h);
    jk_log_write(&log, JASK_LOG_ERROR, "before a level is known");
    cr_assert_eq(h.lines, 0);
    jk_log_begin(&log, "debug");
    for (int i = 0; i < 4; i++) {
        talkers[i].log = &log;
        cr_assert_eq(pthread_create(&talkers[i].thread, NULL, talk, &talkers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(talkers[i].thread, NULL);
    cr_assert_eq(h.lines, 801);
    cr_assert_eq(h.overlapped, 0);
    jk_log_fini(&log);
}

Test(log, gives_back_the_scratch_path_it_gave_before)
{
    heard h = {0};
    jask_config before = {0}, after = {0};
    jask_error err;
    char kept[4096];
    jask_context *ctx = open_context(&h, NULL, 1 << 20);
    must(jask_get_config(ctx, &before, sizeof before, &err), &err);
    snprintf(kept, sizeof kept, "%s", before.scratch_dir);
    multiply(ctx, NULL, JASK_OK);
    cr_assert_str_eq(before.scratch_dir, kept, "the text lives as long as the context");
    must(jask_get_config(ctx, &after, sizeof after, &err), &err);
    cr_assert_neq(after.scratch_dir, before.scratch_dir);
    jask_context_close(ctx);
}

Test(log, explains_a_budget_that_was_cut_below_the_least)
{
    heard h = {0};
    jask_context *ctx = open_context(&h, NULL, (uint64_t)1 << 60);
    jask_error err;
    jk_fail(&err, JASK_ERR_BUDGET, "too small");
    cr_assert_eq(jk_context_explain_budget(ctx, &err), JASK_ERR_BUDGET);
    cr_assert_not_null(strstr(err.msg, "budget of 1048576TiB cut to 0.8 of the "), "%s", err.msg);
    cr_assert_not_null(strstr(err.msg, ": too small"), "%s", err.msg);
    jask_context_close(ctx);

    ctx = open_context(&h, NULL, 1 << 20);
    jk_fail(&err, JASK_ERR_BUDGET, "too small");
    cr_assert_eq(jk_context_explain_budget(ctx, &err), JASK_ERR_BUDGET);
    cr_assert_str_eq(err.msg, "too small");
    jask_context_close(ctx);
}
