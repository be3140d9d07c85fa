/* Every wait of the pipeline and of the CUDA device is needed, and the checks on the simulator
 * would miss none of them: with any single one left out, a run is reported or ends as it must not.
 */
#include "waits.h"

#include "../e2e/e2e.h"
#include "gradients.h"
#include "sim.h"
#include "staging.h"

#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What gives a missing wait away: a kind of report, a failure that the run does not tell, or numbers
 * that came out of a file too early. */
#define SILENCE "no error"
#define NUMBERS "wrong numbers"

static const struct {
    const char *name, *seen;
} waits[JK_WAITS_OF_PRODUCTS] = {
    [JK_WAIT_A_FILLED] = {"A_FILLED", "ORDER"},
    [JK_WAIT_B_FILLED] = {"B_FILLED", "ORDER"},
    [JK_WAIT_C_FILLED] = {"C_FILLED", "ORDER"},
    [JK_WAIT_SLOT_RELEASED] = {"SLOT_RELEASED", "ORDER"},
    [JK_WAIT_BAND_COMPUTED] = {"BAND_COMPUTED", "ORDER"},
    [JK_WAIT_BLOCK_UPLOADED] = {"BLOCK_UPLOADED", "ORDER"},
    [JK_WAIT_BLOCK_DOWNLOADED] = {"BLOCK_DOWNLOADED", "ORDER"},
    [JK_WAIT_COMPUTE_DRAINED] = {"COMPUTE_DRAINED", SILENCE},
    [JK_WAIT_QUEUE_CLOSED] = {"QUEUE_CLOSED", "FREE"},
    [JK_WAIT_PROBE] = {"PROBE", "ORDER"},
    [JK_WAIT_A_DELIVERED] = {"A_DELIVERED", "HANDOVER"},
    [JK_WAIT_B_DELIVERED] = {"B_DELIVERED", "HANDOVER"},
    [JK_WAIT_C_DELIVERED] = {"C_DELIVERED", "HANDOVER"},
    [JK_WAIT_STEP_ISSUED] = {"STEP_ISSUED", "HANDOVER"},
    [JK_WAIT_TILE_STORED] = {"TILE_STORED", "ORDER"},
    [JK_WAIT_SUMS_STORED] = {"SUMS_STORED", NUMBERS},
    [JK_WAIT_BAND_STORED] = {"BAND_STORED", "ORDER"},
    [JK_WAIT_BLOCK_QUEUED] = {"BLOCK_QUEUED", "HANDOVER"},
    [JK_WAIT_PANEL_KEPT] = {"PANEL_KEPT", "ORDER"},
    [JK_WAIT_BAND_POSTED] = {"BAND_POSTED", "HANDOVER"},
    [JK_WAIT_ALL_STORED] = {"ALL_STORED", SILENCE},
};

/* How a run is led. */
typedef enum course {
    COURSE_PLAIN,
    COURSE_CANCELED,  /* at the first chance */
    COURSE_DISK_FULL, /* the last write to the file fails */
    COURSE_CARD_LOST, /* the last thing that the products' queue is given fails, unseen by others */
    COURSES
} course;

static const jask_status outcomes[COURSES] = {JASK_OK, JASK_ERR_CANCELED, JASK_ERR_IO,
                                              JASK_ERR_DEVICE};

/* A run without a wait need not be finished once it is found out, or hangs. */
#define PATIENCE_SECONDS 10

static bool cancel, all_kept = true;

static int on_progress(const jask_progress *progress, void *user)
{
    (void)user;
    return cancel ||
           (!all_kept && (cusim_report_count(NULL) > 0 || progress->seconds > PATIENCE_SECONDS));
}

static jask_context *open_context(void)
{
    jask_context *ctx;
    jask_options options;
    jask_error err;
    jask_options_init(&options, sizeof options);
    options.memory_budget_bytes = 1 << 20;
    options.device = "host"; /* lends its scratch directory and its progress */
    options.allow_tmpfs = 1;
    options.scratch_dir = e2e_path("");
    options.progress = on_progress;
    cr_assert_eq(jask_context_open(&options, &ctx, &err), JASK_OK, "%s", err.msg);
    return ctx;
}

/* The CUDA device, with the records of events that the calling thread makes counted, and the one
 * with the number `lose_at` failing once it is reached. */
static struct {
    jk_device_table table;
    jask_status (*event_record)(jk_event *, jk_queue *, jask_error *);
    pthread_mutex_t lock;
    pthread_t driver;
    int count, lose_at;
} watched = {.lock = PTHREAD_MUTEX_INITIALIZER};

static jask_status record_watched(jk_event *event, jk_queue *queue, jask_error *err)
{
    static const struct timespec a_while = {.tv_nsec = 20000000};
    jask_status st;
    pthread_mutex_lock(&watched.lock);
    if (pthread_equal(pthread_self(), watched.driver) && ++watched.count == watched.lose_at) {
        pthread_mutex_unlock(&watched.lock);
        nanosleep(&a_while, NULL); /* until all bands are stored */
        pthread_mutex_lock(&watched.lock);
        cusim_fault("cudaEventRecord", 1, CUSIM_FAIL_LATER, cudaErrorUnknown);
    }
    st = watched.event_record(event, queue, err);
    pthread_mutex_unlock(&watched.lock);
    return st;
}

static void watch(jk_device_ref *device, int lose_at)
{
    watched.table = *device->table;
    watched.event_record = device->table->event_record;
    watched.table.event_record = record_watched;
    watched.driver = pthread_self();
    watched.count = 0;
    watched.lose_at = lose_at;
    device->table = &watched.table;
}

/* After products of many kinds come such with more readers than pieces under way, so that most of what these do is
 * ordered by nothing but the waits, gradients by joint plans, and products in layers. */
enum {
    CROWDED_FROM = 4 * PRODUCT_SHAPES,
    GRADIENTS_FROM = CROWDED_FROM + PRODUCT_SHAPES,
    LAYERED_FROM = GRADIENTS_FROM + 8 * GRADIENTS_SHAPES,
    RUNS = LAYERED_FROM + 4 * PRODUCT_SHAPES
};

static product_setup setup_of(const jk_device_ref *device, jask_context *ctx, uint64_t number)
{
    if (number >= LAYERED_FROM)
        return product_layered_setup(device, ctx, number + number / PRODUCT_SHAPES);
    if (number < CROWDED_FROM || number >= GRADIENTS_FROM)
        return product_varied_setup(device, ctx, number + number / PRODUCT_SHAPES);
    return (product_setup){.device = *device,
                           .ctx = ctx,
                           .io_threads = 12,
                           .block_bytes = 1 << 16,
                           .budget = 40 << 10,
                           .host_budget = 1 << 20,
                           .planner = JK_PLANNER_BYTES};
}

static jask_status run_gradients(const product_setup *setup, uint64_t number, bool *out_right,
                                 jask_error *err)
{
    gradients g;
    jask_status st;
    gradients_open(setup, &gradients_shapes[number % GRADIENTS_SHAPES], number / 2, &g);
    st = jk_pipeline_run(&g.jobs[0], &g.stats, err);
    *out_right = st || gradients_are_right(&g);
    if (!st && all_kept)
        gradients_check(&g);
    gradients_close(&g);
    return st;
}

static jask_status run_product(const product_setup *setup, uint64_t number, jask_error *err)
{
    product p;
    jask_status st;
    product_open(setup, &product_shapes[number % PRODUCT_SHAPES], &p);
    st = jk_pipeline_run(&p.job, &p.stats, err);
    if (!st && all_kept)
        product_check(&p);
    product_close(&p);
    return st;
}

static bool right = true;

/* Number `number` of all shapes and set-ups. */
static jask_status run(jask_context *ctx, uint64_t number, course way, int lose_at)
{
    jk_device_options options = {.cublas = sim_cublas()};
    jk_device_ref device;
    product_setup setup;
    jask_error err;
    jask_status st;
    sim_separate(number);
    st = jk_device_select("cuda", &options, &device, &err);
    if (st)
        return st;
    watch(&device, lose_at);
    setup = setup_of(&device, ctx, number);
    cancel = way == COURSE_CANCELED;
    staging_fail_last_write(way == COURSE_DISK_FULL);
    right = true;
    if (number >= GRADIENTS_FROM && number < LAYERED_FROM)
        st = run_gradients(&setup, number - GRADIENTS_FROM, &right, &err);
    else
        st = run_product(&setup, number, &err);
    staging_fail_last_write(false);
    jk_device_release(&device);
    return st;
}

static jask_status run_course(jask_context *ctx, uint64_t number, course way)
{
    if (way != COURSE_CARD_LOST)
        return run(ctx, number, way, 0);
    cr_assert_eq(run(ctx, number, COURSE_PLAIN, 0), JASK_OK);
    return run(ctx, number, way, watched.count);
}

static bool given_away(jask_context *ctx, jk_wait wait, const char *seen, uint64_t number)
{
    course way = wait == JK_WAIT_QUEUE_CLOSED      ? COURSE_CANCELED
                 : wait == JK_WAIT_ALL_STORED      ? COURSE_DISK_FULL
                 : wait == JK_WAIT_COMPUTE_DRAINED ? COURSE_CARD_LOST
                                                   : COURSE_PLAIN;
    jask_status st;
    waits_leave_out(wait);
    all_kept = false;
    st = run_course(ctx, number, way);
    waits_leave_out(JK_WAITS);
    all_kept = true;
    if (strcmp(seen, NUMBERS) == 0)
        return !right;
    return strcmp(seen, SILENCE) == 0 ? st == JASK_OK : cusim_report_count(seen) > 0;
}

static void begin(void)
{
    alarm(600);
    e2e_init();
}

TestSuite(waits, .init = begin, .fini = e2e_cleanup);

Test(waits, all_kept_nothing_is_reported)
{
    jask_context *ctx = open_context();
    for (uint64_t number = 0; number < RUNS; number++)
        for (course way = 0; way < COURSES; way++) {
            jask_status st = run_course(ctx, number, way);
            cr_assert_eq(st, outcomes[way], "run %" PRIu64 ", course %d: status %d", number,
                         (int)way, (int)st);
            sim_check_clean("run", number);
        }
    jask_context_close(ctx);
}

Test(waits, none_can_be_left_out)
{
    jask_context *ctx = open_context();
    for (jk_wait wait = 0; wait < JK_WAITS_OF_PRODUCTS; wait++) {
        uint64_t number = 0;
        cr_assert_not_null(waits[wait].name, "wait %d", (int)wait);
        while (number < RUNS && !given_away(ctx, wait, waits[wait].seen, number))
            number++;
        cr_expect_lt(number, RUNS, "%s can be left out", waits[wait].name);
        printf("# without %s: %s in run %" PRIu64 "\n", waits[wait].name, waits[wait].seen, number);
    }
    jask_context_close(ctx);
}

/* Sums that are kept in a file are read as wrong numbers above; those in host memory are seen to be read early. */
Test(waits, none_can_be_left_out_of_layers)
{
    jask_context *ctx = open_context();
    uint64_t number = LAYERED_FROM;
    while (number < RUNS && !given_away(ctx, JK_WAIT_SUMS_STORED, "ORDER", number))
        number++;
    cr_assert_lt(number, RUNS, "SUMS_STORED can be left out");
    jask_context_close(ctx);
}
