#include "runtime/resume.h"

#include "runtime/journal.h"
#include "runtime/system.h"
#include "runtime/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Finished tiles are made durable and recorded when this much has gathered or this long has passed:
 * what a kill can cost. The time is as short as keeps the disk free for the product itself. */
#define BATCH_BYTES ((uint64_t)64 << 20)
#define BATCH_SECONDS_MIN 0.1
#define BATCH_SECONDS_MAX 1.0
#define BATCH_COSTS 20 /* batches take at most one part of so many */

#define RECORDS_AT_ONCE 64
#define OPEN_TRIES 100

struct jk_resume {
    jk_file file; /* the journal */
    char *journal_path, *partial_path;
    const jk_file *partial; /* the result; borrowed */
    jk_journal journal;     /* its facts are not kept */
    int64_t resumed, tiles;
    uint64_t tile_bytes;
    bool mine; /* what the journal and the partial result hold is this product's */
    bool finished;
    char note[256];

    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by lock. */
    bool stop;
    jask_error error; /* of the thread */
    int64_t done, recorded;
    double since; /* the first tile that is not recorded was done */
    double pause; /* seconds from then on until the next batch */
};

/* ---- recording ---- */

static jask_status sync_data(const jk_file *file, jask_error *err)
{
    int failed;
    do
        failed = fdatasync(file->fd);
    while (failed && errno == EINTR);
    return failed ? jk_fail_errno(err, "sync '%s'", file->name) : JASK_OK;
}

static jask_status append_records(const jk_resume *r, int64_t from, int64_t to, jask_error *err)
{
    unsigned char bytes[RECORDS_AT_ONCE * JK_JOURNAL_RECORD_BYTES];
    jask_status st = JASK_OK;
    while (!st && from < to) {
        int64_t count = jk_min(to - from, RECORDS_AT_ONCE);
        uint64_t at = r->journal.header_bytes + (uint64_t)from * JK_JOURNAL_RECORD_BYTES;
        for (int64_t i = 0; i < count; i++)
            jk_journal_record(&r->journal, from + i, bytes + (size_t)i * JK_JOURNAL_RECORD_BYTES);
        st = jk_file_write(&r->file, at, bytes, (size_t)count * JK_JOURNAL_RECORD_BYTES, err);
        from += count;
    }
    return st;
}

/* A record must never be on the disk before its tile. That holds without `sync` as well: a result
 * that lacks its last writes is known to be young, a journal that lies would be believed. */
static jask_status record(const jk_resume *r, int64_t from, int64_t to, jask_error *err)
{
    jask_status st = sync_data(r->partial, err);
    if (!st)
        st = append_records(r, from, to, err);
    return st ? st : sync_data(&r->file, err);
}

/* With the lock held: wait until a batch is due. False at the end. */
static bool wait_batch(jk_resume *r)
{
    while (!r->stop) {
        double due = r->since + r->pause;
        struct timespec at = {.tv_sec = (time_t)due, .tv_nsec = (long)((due - floor(due)) * 1e9)};
        if (r->done == r->recorded)
            pthread_cond_wait(&r->changed, &r->lock);
        else if ((uint64_t)(r->done - r->recorded) * r->tile_bytes >= BATCH_BYTES ||
                 jk_clock_seconds() >= due)
            return true;
        else
            pthread_cond_timedwait(&r->changed, &r->lock, &at);
    }
    return false;
}

static void *keep_journal(void *arg)
{
    jk_resume *r = arg;
    pthread_mutex_lock(&r->lock);
    while (r->error.code == JASK_OK && wait_batch(r)) {
        int64_t from = r->recorded, to = r->done;
        double start = jk_clock_seconds();
        jask_error err;
        jask_status st;
        pthread_mutex_unlock(&r->lock);
        st = record(r, from, to, &err);
        pthread_mutex_lock(&r->lock);
        if (st)
            r->error = err;
        else
            r->recorded = to;
        r->since = jk_clock_seconds();
        r->pause =
            fmin(fmax(BATCH_COSTS * (r->since - start), BATCH_SECONDS_MIN), BATCH_SECONDS_MAX);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

jask_status jk_resume_tile_done(jk_resume *r, int64_t tile, jask_error *err)
{
    jask_status st;
    pthread_mutex_lock(&r->lock);
    st = r->error.code;
    if (st && err)
        *err = r->error;
    if (r->done == r->recorded)
        r->since = jk_clock_seconds();
    r->done = tile + 1;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return st;
}

/* ---- the journal ---- */

/* Whether another run holds the journal. Where files cannot be locked, nobody can tell. */
static jask_status lock_journal(jk_resume *r, const char *target, jask_error *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int failed;
    do
        failed = fcntl(r->file.fd, F_OFD_SETLK, &whole);
    while (failed && errno == EINTR);
    if (failed && (errno == EAGAIN || errno == EACCES))
        return jk_fail(err, JASK_ERR_ARG,
                       "another run is making '%s': its journal '%s' is locked; wait for it, or "
                       "stop it and run this again",
                       target, r->journal_path);
    if (failed)
        snprintf(r->note, sizeof r->note,
                 "the journal cannot be locked (errno %d): start no second run for this output",
                 errno);
    return JASK_OK;
}

/* The journal's name may have gone to another file, or to none, before the lock was had. */
static bool still_named(const jk_resume *r)
{
    struct stat st;
    return stat(r->journal_path, &st) == 0 && (uint64_t)st.st_dev == r->file.dev &&
           (uint64_t)st.st_ino == r->file.ino;
}

static jask_status open_journal(jk_resume *r, const char *target, jask_error *err)
{
    for (int tries = 0; tries < OPEN_TRIES; tries++) {
        /* O_NONBLOCK: a FIFO is refused, not waited for. */
        int fd =
            open(r->journal_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        jask_status st;
        if (fd < 0 && errno == EINTR)
            continue;
        if (fd < 0)
            return jk_fail_errno(err, "open the journal '%s'", r->journal_path);
        st = jk_file_adopt(fd, r->journal_path, &r->file, err);
        if (!st)
            st = lock_journal(r, target, err);
        if (!st && still_named(r))
            return JASK_OK;
        jk_file_close(&r->file);
        if (st)
            return st;
    }
    return jk_fail(err, JASK_ERR_IO, "the journal '%s' is replaced again and again",
                   r->journal_path);
}

static jask_status refuse(const jk_resume *r, jask_status code, jask_error *err, const char *why)
{
    return jk_fail(err, code, "cannot resume: %s; to start over, remove '%s' and '%s'", why,
                   r->journal_path, r->partial_path);
}

/* At most 300 characters of it: two paths and what to do must fit a message. */
static const char *quote(jk_span s, char text[301])
{
    if (s.len == 0)
        return "nothing";
    snprintf(text, 301, "%.*s", (int)jk_min((int64_t)s.len, 300), s.at);
    return text;
}

static jask_status refuse_change(const jk_resume *r, const jk_fact_change *c, jask_error *err)
{
    char name[301], before[301], now[301], why[1000];
    snprintf(why, sizeof why, "%s was %s and is now %s", quote(c->name, name),
             quote(c->before, before), quote(c->now, now));
    return refuse(r, JASK_ERR_ARG, err, why);
}

/* Whether the journal lets this product go on. What holds no finished tile is no loss: it is begun
 * anew, whatever it was for. */
static jask_status judge(const jk_resume *r, const unsigned char *bytes, const char *facts,
                         bool partial_exists, jk_journal *found, bool *continues, jask_error *err)
{
    jk_fact_change change;
    *continues = false;
    switch (jk_journal_parse(bytes, (size_t)r->file.bytes, found)) {
    case JK_JOURNAL_GOOD:
        break;
    case JK_JOURNAL_UNBEGUN:
        return JASK_OK;
    case JK_JOURNAL_FOREIGN:
        return refuse(r, JASK_ERR_FORMAT, err, "the journal is none of jask's");
    case JK_JOURNAL_OTHER_VERSION:
        return refuse(r, JASK_ERR_FORMAT, err, "the journal is of another version of jask");
    case JK_JOURNAL_DAMAGED:
        return refuse(r, JASK_ERR_FORMAT, err, "the journal is damaged");
    }
    if (!partial_exists || found->tiles == 0)
        return JASK_OK;
    if (jk_journal_differs(found->facts, (jk_span){facts, strlen(facts)}, &change))
        return refuse_change(r, &change, err);
    if (found->tiles > r->tiles)
        return refuse(r, JASK_ERR_FORMAT, err, "the journal has more tiles than the result");
    *continues = true;
    return JASK_OK;
}

static jask_status read_journal(jk_resume *r, const char *facts, bool partial_exists,
                                bool *continues, jask_error *err)
{
    uint64_t most = JK_JOURNAL_HEADER_MAX + ((uint64_t)r->tiles + 1) * JK_JOURNAL_RECORD_BYTES;
    unsigned char *bytes;
    jask_status st;
    if (r->file.bytes > most)
        r->file.bytes = most; /* what lies beyond can be no record of this product */
    bytes = malloc((size_t)r->file.bytes + 1);
    if (!bytes)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to read the journal '%s'", r->journal_path);
    st = jk_file_read(&r->file, 0, bytes, (size_t)r->file.bytes, err);
    if (!st)
        st = judge(r, bytes, facts, partial_exists, &r->journal, continues, err);
    free(bytes);
    return st;
}

/* Both files are there, with their names, before the first tile is recorded. */
static jask_status begin_journal(jk_resume *r, const char *facts, int dir_fd, jask_error *err)
{
    unsigned char *bytes = malloc(JK_JOURNAL_HEADER_MAX);
    jask_status st;
    if (!bytes)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory for a journal");
    jk_journal_begin(facts, bytes, &r->journal);
    if (ftruncate(r->file.fd, 0) != 0)
        st = jk_fail_errno(err, "empty the journal '%s'", r->journal_path);
    else
        st = jk_file_write(&r->file, 0, bytes, r->journal.header_bytes, err);
    free(bytes);
    if (!st)
        st = sync_data(&r->file, err);
    /* Not every file system can; then names are durable with their files. */
    (void)fsync(dir_fd);
    return st;
}

static jask_status continue_journal(jk_resume *r, jask_error *err)
{
    uint64_t end = r->journal.header_bytes + (uint64_t)r->journal.tiles * JK_JOURNAL_RECORD_BYTES;
    r->resumed = r->done = r->recorded = r->journal.tiles;
    if (ftruncate(r->file.fd, (off_t)end) != 0)
        return jk_fail_errno(err, "cut the journal '%s' off after its last record",
                             r->journal_path);
    return JASK_OK;
}

/* ---- opening and closing ---- */

/* Were the target an input, a run that is killed between naming the result and removing the journal
 * could not be told from one that never began, and would multiply again. */
static jask_status check_target(const jk_product *product, const char *target, jask_error *err)
{
    const jk_matrix *inputs[] = {&product->a, &product->b, &product->c};
    struct stat st;
    if (stat(target, &st) != 0)
        return JASK_OK;
    for (int i = 0; i < 3; i++) {
        const jk_file *file = inputs[i]->file;
        if (file && file->dev == (uint64_t)st.st_dev && file->ino == (uint64_t)st.st_ino)
            return jk_fail(err, JASK_ERR_ARG,
                           "a product that can be resumed cannot replace its own input '%s': "
                           "name another output, or do without resume",
                           target);
    }
    return JASK_OK;
}

/* The facts, and which file holds the finished tiles. */
static jask_status add_partial(char *facts, uint64_t ino, jask_error *err)
{
    size_t used = strlen(facts), room = JK_JOURNAL_FACTS_MAX - used;
    int len =
        snprintf(facts + used, room, "file of the partial result: %llu\n", (unsigned long long)ino);
    if (len < 0 || (size_t)len >= room)
        return jk_fail(err, JASK_ERR_ARG, "paths of the inputs are too long to resume");
    return JASK_OK;
}

/* The result: the partial one where the journal lets it go on, else a new one. */
static jask_status open_result(jk_resume *r, jask_context *ctx, const jk_product *product,
                               const char *target, char *facts, jask_array **out, jask_error *err)
{
    size_t common = strlen(facts);
    struct stat old;
    bool exists = lstat(r->partial_path, &old) == 0 && S_ISREG(old.st_mode);
    bool continues;
    jask_array *d;
    jask_status st = add_partial(facts, exists ? (uint64_t)old.st_ino : 0, err);
    if (!st)
        st = read_journal(r, facts, exists, &continues, err);
    if (!st)
        st = jk_array_create_partial(ctx, target, product->a.dtype, product->ndim, product->shape,
                                     continues, &d, err);
    if (st)
        return st;
    r->mine = true;
    r->partial = jk_array_file(d);
    if (continues) {
        st = continue_journal(r, err);
    } else {
        facts[common] = '\0';
        st = add_partial(facts, r->partial->ino, err);
        if (!st)
            st = begin_journal(r, facts, d->output->dir_fd, err);
    }
    if (st)
        jask_array_close(d);
    else
        *out = d;
    return st;
}

static jask_status name_files(jk_resume *r, const char *target, jask_error *err)
{
    jask_status st = jk_output_beside(target, ".jask-journal", &r->journal_path, err);
    return st ? st : jk_output_beside(target, JK_PARTIAL_SUFFIX, &r->partial_path, err);
}

static void open_lock(jk_resume *r)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
}

jask_status jk_resume_open(jask_context *ctx, const jk_product *product, const char *target,
                           jask_array **out_d, jk_resume **out, jask_error *err)
{
    const jk_plan *plan = product->plan;
    jk_resume *r = calloc(1, sizeof *r);
    jask_array *d = NULL;
    char *facts = NULL;
    jask_status st;
    if (!r)
        return jk_fail(err, JASK_ERR_NOMEM, "no memory to resume '%s'", target);
    r->file = JK_FILE_NONE;
    r->pause = BATCH_SECONDS_MIN;
    r->tiles = plan->tiles;
    r->tile_bytes = (uint64_t)plan->bm * (uint64_t)plan->bn * (uint64_t)plan->problem.c_bytes;
    open_lock(r);
    st = check_target(product, target, err);
    if (!st)
        st = name_files(r, target, err);
    if (!st)
        st = open_journal(r, target, err);
    if (!st)
        st = jk_resume_facts(product, &facts, err);
    if (!st)
        st = open_result(r, ctx, product, target, facts, &d, err);
    if (!st)
        st = jk_thread_start(&r->thread, "jask-journal", keep_journal, r, &r->started, err);
    free(facts);
    if (st) {
        jk_resume_close(r, NULL);
        jask_array_close(d);
        return st;
    }
    if (r->note[0])
        jk_log_write(jk_context_log(ctx), JASK_LOG_WARN, "%s", r->note);
    *out_d = d;
    *out = r;
    return JASK_OK;
}

int64_t jk_resume_tiles(const jk_resume *resume)
{
    return resume->resumed;
}

const char *jk_resume_note(const jk_resume *resume)
{
    return resume->note;
}

static void stop_thread(jk_resume *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (r->started)
        pthread_join(r->thread, NULL);
    r->started = false;
}

jask_status jk_resume_settle(jk_resume *r, jask_error *err)
{
    stop_thread(r);
    if (r->error.code && err)
        *err = r->error;
    return r->error.code;
}

void jk_resume_finish(jk_resume *r)
{
    (void)unlink(r->journal_path); /* without a partial result beside it, it stands for nothing */
    r->finished = true;
}

/* What has been done since the last batch. */
static void record_rest(jk_resume *r)
{
    if (r->error.code == JASK_OK && r->done > r->recorded && !record(r, r->recorded, r->done, NULL))
        r->recorded = r->done;
}

/* What holds nothing is not left behind. That happens while the journal is still locked: another
 * run may follow at once. */
static void remove_empty(const jk_resume *r)
{
    bool empty = r->mine ? !r->finished && r->recorded == 0 : r->file.bytes == 0;
    if (r->file.fd < 0 || !empty)
        return;
    if (r->mine)
        (void)unlink(r->partial_path);
    (void)unlink(r->journal_path);
}

static void tell_kept(const jk_resume *r, jask_error *err)
{
    jask_error before = *err;
    jk_fail(
        err, before.code,
        "%s; %lld of %lld tiles are kept in '%s': the same run, with resume, goes on from there",
        before.msg, (long long)r->recorded, (long long)r->tiles, r->partial_path);
    err->sys_errno = before.sys_errno;
}

void jk_resume_close(jk_resume *r, jask_error *err)
{
    if (!r)
        return;
    stop_thread(r);
    if (r->mine && !r->finished)
        record_rest(r);
    if (r->mine && !r->finished && r->recorded > 0 && err)
        tell_kept(r, err);
    remove_empty(r);
    jk_file_close(&r->file);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r->journal_path);
    free(r->partial_path);
    free(r);
}
