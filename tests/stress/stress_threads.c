/* What jask.h promises of threads: several share one context and its input arrays, and work with
 * the default context while one more replaces it again and again. A plain program, because
 * Criterion does not start under TSan. Exits 0 when all is right. usage: stress_threads [ROUNDS] */
#include <jask.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, M = 150, K = 130, N = 110 };

typedef struct shared {
    jask_context *ctx;
    jask_array *a, *b, *c;
    int rounds;
    pthread_mutex_t lock; /* guards what follows */
    int working;          /* threads that multiply */
} shared;

typedef struct worker {
    pthread_t thread;
    shared *all;
    int index;
} worker;

static int messages; /* calls of the log are one at a time */

static void must(jask_status st, const jask_error *err)
{
    if (st) {
        fprintf(stderr, "stress_threads: %s\n", err->msg);
        exit(1);
    }
}

static void on_log(jask_log_level level, const char *message, void *user)
{
    (void)message;
    *(int *)user += level == JASK_LOG_INFO;
}

static int on_progress(const jask_progress *progress, void *user)
{
    (void)user;
    return progress->fraction < 0;
}

static jask_array *make(jask_context *ctx, int64_t rows, int64_t cols, float value)
{
    int64_t shape[2] = {rows, cols};
    size_t count = (size_t)(rows * cols);
    float *data = malloc(count * sizeof *data);
    jask_array *array;
    jask_error err;
    if (!data)
        abort();
    for (size_t i = 0; i < count; i++)
        data[i] = value;
    must(jask_array_create(ctx, NULL, JASK_F32, 2, shape, &array, &err), &err);
    must(jask_array_write(array, 0, count, data, &err), &err);
    free(data);
    return array;
}

static void check_all(const jask_array *d, float value)
{
    float got[M * N];
    jask_error err;
    must(jask_array_read(d, 0, M * N, got, &err), &err);
    for (int i = 0; i < M * N; i++) {
        if (got[i] != value) {
            fprintf(stderr, "stress_threads: element %d is %g, not %g\n", i, (double)got[i],
                    (double)value);
            exit(1);
        }
    }
}

/* One product, every other time with the default context, and all that may be asked meanwhile. */
static void work(const shared *all, int index, int round)
{
    jask_context *ctx = round % 2 ? all->ctx : NULL;
    jask_report report = {.struct_size = sizeof report};
    jask_verification found = {.struct_size = sizeof found};
    jask_config config = {.struct_size = sizeof config};
    jask_io_cost cost = {.struct_size = sizeof cost};
    jask_dot_args args;
    jask_array_info info;
    jask_array *d = NULL;
    jask_error err;
    char name[64];
    int factor = index + round % 3;
    jask_dot_args_init(&args, sizeof args);
    args.alpha = factor;
    args.beta = round % 3 == 0;
    args.c = all->c;
    snprintf(name, sizeof name, "stress-%d.npy", index);
    args.output = round % 4 == 3 ? name : NULL;
    must(jask_dot(ctx, all->a, all->b, &args, &d, &report, &err), &err);
    check_all(d, (float)(factor * K * 2 + (round % 3 == 0) * 5));
    if (round % 5 == 0) {
        must(jask_dot_verify(ctx, all->a, all->b, d, &args, &found, sizeof found, &err), &err);
        if (!found.passed)
            exit(1);
    }
    jask_array_get_info(all->a, &info, sizeof info);
    must(jask_get_config(all->ctx, &config, sizeof config, &err), &err);
    must(jask_context_io_cost(all->ctx, &cost, sizeof cost, &err), &err);
    if (info.shape[0] != M || !strstr(config.scratch_dir, ".jask_scratch"))
        exit(1);
    jask_array_close(d);
    if (args.output)
        remove(name);
}

static void *work_on(void *arg)
{
    worker *w = arg;
    for (int round = 0; round < w->all->rounds; round++)
        work(w->all, w->index, round);
    pthread_mutex_lock(&w->all->lock);
    w->all->working--;
    pthread_mutex_unlock(&w->all->lock);
    return NULL;
}

static void replace_default(shared *all)
{
    static const char *const budgets[] = {"300KiB", "1MiB", "200KiB"};
    const struct timespec pause = {.tv_nsec = 2000000};
    jask_error err;
    bool working = true;
    for (int i = 0; working; i++) {
        must(jask_set_memory_budget(budgets[i % 3], NULL, 1, &err), &err);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&all->lock);
        working = all->working > 0;
        pthread_mutex_unlock(&all->lock);
    }
}

int main(int argc, char **argv)
{
    shared all = {.rounds = argc > 1 ? atoi(argv[1]) : 20, .working = THREADS};
    worker workers[THREADS];
    jask_options options;
    jask_error err;
    setenv("JASK_SYNC", "0", 1); /* the default context's: nothing here outlives the program */
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 256 << 10;
    options.device = "host";
    options.allow_tmpfs = 1;
    options.sync = -1;
    options.progress = on_progress;
    options.log = on_log;
    options.log_user = &messages;
    options.log_level = "info";
    must(jask_context_open(&options, &all.ctx, &err), &err);
    must(jask_set_memory_budget("300KiB", NULL, 1, &err), &err);
    all.a = make(all.ctx, M, K, 1);
    all.b = make(all.ctx, K, N, 2);
    all.c = make(all.ctx, M, N, 5);
    pthread_mutex_init(&all.lock, NULL);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.all = &all, .index = i};
        if (pthread_create(&workers[i].thread, NULL, work_on, &workers[i]) != 0)
            abort();
    }
    replace_default(&all);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_mutex_destroy(&all.lock);
    jask_array_close(all.c);
    jask_array_close(all.b);
    jask_array_close(all.a);
    jask_context_close(all.ctx);
    /* At least the plan of every product with the shared context. */
    if (messages < THREADS * (all.rounds / 2)) {
        fprintf(stderr, "stress_threads: only %d messages\n", messages);
        return 1;
    }
    printf("%d products, %d messages\n", THREADS * all.rounds, messages);
    return 0;
}
