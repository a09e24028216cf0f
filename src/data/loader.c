#include "data/loader.h"

#include <inttypes.h>
#include <string.h>

#include "base/heartbeat.h"
#include "base/span.h"
#include "base/system/thread.h"

enum { NOTE_BYTES = 512, AHEAD_PER_THREAD = 2, MOST_THREADS = 256, MOST_AHEAD = 4096 };

static const int64_t NOTHING = INT64_MAX; /* to load */

/* Batch b lies in slot b mod slots: loaded once the batch before it there was given back. */
typedef struct {
    bool ready;
    an_batch_part part; /* n negative: no such batch */
    an_status status;
    int64_t *indices, *partners;
    void **fields, **partner_fields;
    void *scratch;
    char note[NOTE_BYTES];
} slot;

struct an_loader {
    an_context *ctx;
    an_loader_options options;
    slot *slots;
    void **fields; /* of all slots */
    int64_t slot_count;

    pthread_mutex_t mutex;
    pthread_cond_t work, done; /* a batch may be loaded; one was */
    bool has_mutex, has_work, has_done;
    pthread_t *threads;
    int started;

    /* Under the mutex. */
    bool stop;
    int64_t next;     /* batch to give */
    int64_t held;     /* batches from here on have their slots: next - 1 while the caller has one */
    int64_t to_load;  /* batch to load */
    int loading;      /* threads that load */
    int64_t numbered; /* threads that have their numbers */
};

static an_batch batch_of(const slot *s, int64_t number) {
    return (an_batch){number, s->part, s->indices, s->fields, s->partners, s->partner_fields};
}

static void load(const an_loader *l, int64_t batch, slot *s) {
    const an_loader_options *o = &l->options;
    const an_note note = {s->note, sizeof s->note};
    s->note[0] = 0;
    s->status = AN_OK;
    s->part = o->indices(o->user, batch, s->indices);
    if (s->part.n > o->maximum)
        s->status = AN_NOTE(note, AN_ERR_ARGUMENT,
                            "batch %" PRId64 " has %" PRId64 " samples, but the loader has room for %" PRId64, batch,
                            s->part.n, o->maximum);
    else if (s->part.n > 0)
        s->status = an_dataset_fetch(o->dataset, s->part.n, s->indices, s->fields, note);
    if (s->status != AN_OK || s->part.n <= 0) return;
    if (o->partners) {
        o->partners(o->user, batch, s->part.n, s->indices, s->partners);
        s->status = an_dataset_fetch(o->dataset, s->part.n, s->partners, s->partner_fields, note);
    }
    if (s->status != AN_OK || !o->change) return;
    const an_batch loaded = batch_of(s, batch);
    o->change(o->user, &loaded, s->scratch);
}

/* ---- threads ---- */

static void *run(void *user) {
    an_loader *l = user;
    const int place = an_heartbeat_slot_take(l->ctx);
    const bool evaluates = l->options.evaluates;
    pthread_mutex_lock(&l->mutex);
    const int64_t number = l->numbered++;
    while (!l->stop) {
        if (l->to_load >= l->held + l->slot_count) {
            if (l->to_load == NOTHING)
                an_heartbeat_say(l->ctx, place, "waits for the next evaluation");
            else
                an_heartbeat_say_number(l->ctx, place, "waits until batch ", l->held, " was used");
            pthread_cond_wait(&l->work, &l->mutex);
            continue;
        }
        const int64_t batch = l->to_load++;
        slot *s = &l->slots[batch % l->slot_count];
        l->loading++;
        pthread_mutex_unlock(&l->mutex);
        an_heartbeat_say_number(l->ctx, place, "loading batch ", batch, evaluates ? " of the evaluation" : "");
        const double begin = an_span_begin(l->ctx);
        load(l, batch, s);
        if (s->part.n > 0)
            an_span_end_in(l->ctx, evaluates ? "evaluation loader" : "loader", number, "load", batch, begin);
        pthread_mutex_lock(&l->mutex);
        s->ready = true;
        l->loading--;
        pthread_cond_broadcast(&l->done);
    }
    pthread_mutex_unlock(&l->mutex);
    an_heartbeat_slot_give(l->ctx, place);
    return NULL;
}

/* The host's signals are for the host's threads. */
static an_status start_threads(an_loader *l) {
    an_context *ctx = l->ctx;
    int error = 0;
    if (pthread_mutex_init(&l->mutex, NULL)) return AN_ERROR(ctx, AN_ERR_MEMORY, "the loader could not create a mutex");
    l->has_mutex = true;
    l->has_work = pthread_cond_init(&l->work, NULL) == 0;
    l->has_done = pthread_cond_init(&l->done, NULL) == 0;
    if (!l->has_work || !l->has_done)
        return AN_ERROR(ctx, AN_ERR_MEMORY, "the loader could not create a condition variable");
    while (l->started < l->options.threads && error == 0) {
        error = an_thread_start(&l->threads[l->started], run, l);
        if (error == 0) l->started++;
    }
    if (error)
        return AN_ERROR(
            ctx, AN_ERR_MEMORY,
            "the loader could start only %d of %d threads: %s. Raise the limit on processes (ulimit -u, or pids.max of "
            "the cgroup) or on memory (ulimit -v), or load without threads by setting data.threads to 0",
            l->started, l->options.threads, strerror(error));
    return AN_OK;
}

/* ---- making one ---- */

static an_status check(an_context *ctx, const an_loader_options *o) {
    an_status status;
    AN_CHECK(ctx, o->dataset && o->indices, AN_ERR_ARGUMENT, "a loader needs a dataset and a batch function");
    AN_CHECK(ctx, o->threads >= 0 && o->threads <= MOST_THREADS, AN_ERR_ARGUMENT,
             "%d loader threads were requested; 0 to %d are possible", o->threads, MOST_THREADS);
    AN_CHECK(ctx, o->ahead >= 0 && o->ahead <= MOST_AHEAD, AN_ERR_ARGUMENT,
             "%d batches ahead were requested; 0 to %d are possible", o->ahead, MOST_AHEAD);
    AN_CHECK(ctx, o->maximum > 0 && o->first >= 0, AN_ERR_ARGUMENT,
             "batches of %" PRId64 " samples starting at batch %" PRId64 " are not possible", o->maximum, o->first);
    return AN_OK;
fail:
    return status;
}

/* Batches that are loaded ahead, and the one that the caller has. */
static int64_t count_slots(const an_loader_options *o) {
    return 1 + (o->threads == 0 ? 0 : o->ahead ? o->ahead : o->threads * AHEAD_PER_THREAD);
}

/* Fields of the samples, and of their partners. */
static size_t count_sets(const an_loader_options *o) {
    return o->partners ? 2 : 1;
}

bool an_loader_bytes(const an_loader_options *options, size_t *bytes) {
    const an_loader *l = NULL; /* for its members' sizes */
    const an_dataset *d = options->dataset;
    const size_t slots = (size_t)count_slots(options), sets = count_sets(options);
    const size_t fields = sets * (size_t)d->record.field_count;
    size_t sample = sets * sizeof *l->slots->indices, samples;
    for (int f = 0; f < d->record.field_count; f++)
        if (!an_add_elements(&sample, d->bytes[f], sets)) return false;
    return an_multiply_sizes(slots, (size_t)options->maximum, &samples) && an_add_elements(bytes, samples, sample) &&
           an_add_elements(bytes, slots, options->scratch_bytes) &&
           an_add_elements(bytes, slots, sizeof *l->slots + fields * sizeof *l->fields) &&
           an_add_elements(bytes, (size_t)options->threads, sizeof *l->threads) && an_add_elements(bytes, 1, sizeof *l);
}

static size_t field_count(const an_loader *l) {
    return (size_t)l->slot_count * count_sets(&l->options) * (size_t)l->options.dataset->record.field_count;
}

static an_status make_set(an_loader *l, int64_t **indices, void **fields) {
    an_context *ctx = l->ctx;
    const an_dataset *d = l->options.dataset;
    const size_t maximum = (size_t)l->options.maximum;
    AN_TRY_RETURN(an_alloc(ctx, (void **)indices, maximum, sizeof **indices));
    for (int f = 0; f < d->record.field_count; f++) {
        size_t bytes;
        if (!an_multiply_sizes(maximum, d->bytes[f], &bytes) || bytes > PTRDIFF_MAX)
            return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%zu samples of field '%s' do not fit in memory", maximum,
                            d->fields[f].name);
        AN_TRY_RETURN(an_alloc_raw(ctx, &fields[f], bytes));
    }
    return AN_OK;
}

static an_status make_slot(an_loader *l, slot *s) {
    an_context *ctx = l->ctx;
    const size_t fields = (size_t)l->options.dataset->record.field_count;
    s->fields = l->fields + (size_t)(s - l->slots) * count_sets(&l->options) * fields;
    AN_TRY_RETURN(make_set(l, &s->indices, s->fields));
    if (l->options.partners) {
        s->partner_fields = s->fields + fields;
        AN_TRY_RETURN(make_set(l, &s->partners, s->partner_fields));
    }
    return l->options.scratch_bytes > 0 ? an_alloc_raw(ctx, &s->scratch, l->options.scratch_bytes) : AN_OK;
}

an_status an_loader_create(an_loader **loader, an_context *ctx, const an_loader_options *options) {
    an_status status;
    an_loader *l = NULL;
    *loader = NULL;
    AN_TRY(check(ctx, options));
    AN_TRY(an_alloc(ctx, (void **)&l, 1, sizeof *l));
    l->ctx = ctx;
    l->options = *options;
    l->next = l->held = l->to_load = options->first;
    if (options->evaluates) l->to_load = NOTHING;
    l->slot_count = count_slots(options);
    AN_TRY(an_alloc(ctx, (void **)&l->slots, (size_t)l->slot_count, sizeof *l->slots));
    AN_TRY(an_alloc(ctx, (void **)&l->fields, field_count(l), sizeof *l->fields));
    AN_TRY(an_alloc(ctx, (void **)&l->threads, (size_t)options->threads, sizeof *l->threads));
    for (int64_t i = 0; i < l->slot_count; i++) AN_TRY(make_slot(l, &l->slots[i]));
    if (options->threads > 0) AN_TRY(start_threads(l));
    *loader = l;
    return AN_OK;
fail:
    an_loader_destroy(&l);
    return status;
}

static void release_set(an_loader *l, int64_t **indices, void **fields) {
    const an_dataset *d = l->options.dataset;
    const size_t maximum = (size_t)l->options.maximum;
    an_release(l->ctx, (void **)indices, maximum, sizeof **indices);
    for (int f = 0; fields && f < d->record.field_count; f++) an_release(l->ctx, &fields[f], maximum, d->bytes[f]);
}

static void release_slot(an_loader *l, slot *s) {
    release_set(l, &s->indices, s->fields);
    release_set(l, &s->partners, s->partner_fields);
    an_release(l->ctx, &s->scratch, l->options.scratch_bytes, 1);
}

void an_loader_destroy(an_loader **loader) {
    an_loader *l = loader ? *loader : NULL;
    if (!l) return;
    an_context *ctx = l->ctx;
    if (an_context_is_forked(ctx)) { /* its threads are not here: nobody would ever come, and a lock may be theirs */
        l->started = 0;
        l->has_done = l->has_work = l->has_mutex = false;
    }
    if (l->started > 0) {
        pthread_mutex_lock(&l->mutex);
        l->stop = true;
        pthread_cond_broadcast(&l->work);
        pthread_mutex_unlock(&l->mutex);
    }
    for (int i = 0; i < l->started; i++) pthread_join(l->threads[i], NULL);
    if (l->has_done) pthread_cond_destroy(&l->done);
    if (l->has_work) pthread_cond_destroy(&l->work);
    if (l->has_mutex) pthread_mutex_destroy(&l->mutex);
    for (int64_t i = 0; l->slots && i < l->slot_count; i++) release_slot(l, &l->slots[i]);
    an_release(ctx, (void **)&l->threads, (size_t)l->options.threads, sizeof *l->threads);
    an_release(ctx, (void **)&l->fields, field_count(l), sizeof *l->fields);
    an_release(ctx, (void **)&l->slots, (size_t)l->slot_count, sizeof *l->slots);
    an_release(ctx, (void **)loader, 1, sizeof *l);
}

/* ---- asking it ---- */

/* Gives the last batch back and waits for the next. */
static slot *take(an_loader *l, int64_t batch) {
    slot *s = &l->slots[batch % l->slot_count];
    const bool trains = !l->options.evaluates; /* an evaluation belongs to no step, and has said where it is */
    if (trains) an_heartbeat_step_set(l->ctx, batch + 1);
    if (l->options.threads == 0) {
        if (trains) an_heartbeat_enter_number(l->ctx, AN_HEARTBEAT_LOAD, "loading batch ", batch, "");
        load(l, batch, s);
        return s;
    }
    if (trains) an_heartbeat_enter(l->ctx, AN_HEARTBEAT_LOAD, "takes a batch of the loader");
    pthread_mutex_lock(&l->mutex);
    if (l->held != batch) {
        l->slots[l->held % l->slot_count].ready = false;
        l->held = batch;
        pthread_cond_signal(&l->work);
    }
    if (!s->ready) an_heartbeat_say_number(l->ctx, AN_HEARTBEAT_OWNER, "waits for batch ", batch, " of the loader");
    while (!s->ready) pthread_cond_wait(&l->done, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
    return s;
}

an_status an_loader_next(an_loader *l, an_batch *batch) {
    an_context *ctx = l->ctx;
    slot *s = take(l, l->next);
    *batch = batch_of(s, l->next);
    if (s->status == AN_OK && s->part.n < 0)
        return AN_ERROR(ctx, AN_ERR_STATE, "batch %" PRId64 " does not exist", l->next);
    l->next++;
    if (s->status != AN_OK) return AN_ERROR(ctx, s->status, "%s", s->note[0] ? s->note : an_status_text(s->status));
    return AN_OK;
}

/* Nobody begins anything, and what was begun is over. With the mutex. */
static void pause_loading(an_loader *l) {
    l->to_load = NOTHING;
    while (l->loading > 0) pthread_cond_wait(&l->done, &l->mutex);
}

void an_loader_seek(an_loader *l, int64_t batch) {
    if (l->options.threads > 0) {
        pthread_mutex_lock(&l->mutex);
        pause_loading(l);
        for (int64_t i = 0; i < l->slot_count; i++) l->slots[i].ready = false;
        l->held = l->to_load = batch;
        pthread_cond_broadcast(&l->work);
        pthread_mutex_unlock(&l->mutex);
    }
    l->next = batch;
}

void an_loader_rest(an_loader *l) {
    if (l->options.threads == 0) return;
    pthread_mutex_lock(&l->mutex);
    pause_loading(l);
    pthread_mutex_unlock(&l->mutex);
}
