#include "train/load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/device.h"
#include "base/file.h"
#include "base/heartbeat.h"
#include "train/save_layout.h"

enum { CHUNK = 4 << 20, MOST_LISTED = 8 };
enum { TRIES = 5 }; /* of opening: a shared file system may have lost sight of a file for a moment */

/* Bytes of a file that go to one place of memory; NULL: only their hash is of use. */
typedef struct {
    int64_t offset, bytes;
    char *dst;
} segment;

/* A file on its way in: one thread reads, another hashes what is there, so that it takes as long as the slower of the two. */
typedef struct {
    an_context *ctx;
    const an_device *device;
    const char *path;
    int file;
    const segment *segments;
    size_t count;
    char *bounce; /* two chunks, for what goes nowhere, or to a device */
    XXH3_state_t *state;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    int64_t read, hashed; /* chunks */
    bool failed, threaded;
} reading;

/* ---- chunks ---- */

/* The memory of chunk number `chunk`, counted over all segments, and how much of it there is. */
typedef struct {
    size_t segment;
    int64_t at, chunk;
} cursor;

static bool next_chunk(const reading *r, cursor *c, int64_t *offset, size_t *bytes, char **memory) {
    while (c->segment < r->count && c->at >= r->segments[c->segment].bytes) {
        c->segment++;
        c->at = 0;
    }
    if (c->segment == r->count) return false;
    const segment *s = &r->segments[c->segment];
    const int64_t rest = s->bytes - c->at;
    *bytes = (size_t)(rest < CHUNK ? rest : CHUNK);
    *offset = s->offset + c->at;
    *memory =
        s->dst && r->device == &an_device_host ? s->dst + c->at : r->bounce + (r->threaded ? c->chunk % 2 * CHUNK : 0);
    c->at += (int64_t)*bytes;
    c->chunk++;
    return true;
}

static void *hash_chunks(void *user) {
    reading *r = user;
    cursor c = {0};
    int64_t offset;
    size_t bytes;
    char *memory;
    while (next_chunk(r, &c, &offset, &bytes, &memory)) {
        pthread_mutex_lock(&r->mutex);
        while (r->read < c.chunk && !r->failed) pthread_cond_wait(&r->moved, &r->mutex);
        const bool failed = r->failed;
        pthread_mutex_unlock(&r->mutex);
        if (failed) break;
        XXH3_128bits_update(r->state, memory, bytes);
        pthread_mutex_lock(&r->mutex);
        r->hashed = c.chunk;
        pthread_cond_broadcast(&r->moved);
        pthread_mutex_unlock(&r->mutex);
    }
    return NULL;
}

static an_status read_bytes(reading *r, char *memory, size_t bytes, int64_t offset) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(r->file, memory + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: cannot be read: %s", r->path, strerror(errno));
        if (got == 0) return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: became shorter while it was read", r->path);
        done += (size_t)got;
    }
    return AN_OK;
}

/* A chunk of the bounce buffer is read over only when it was hashed. */
static void wait_for_room(reading *r, int64_t chunk) {
    pthread_mutex_lock(&r->mutex);
    while (r->hashed + 2 < chunk) pthread_cond_wait(&r->moved, &r->mutex);
    pthread_mutex_unlock(&r->mutex);
}

static void hand_over(reading *r, int64_t chunk, bool failed) {
    pthread_mutex_lock(&r->mutex);
    r->read = chunk;
    r->failed = failed;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->mutex);
}

static an_status read_chunks(reading *r) {
    an_context *ctx = r->ctx;
    cursor c = {0};
    int64_t offset;
    size_t bytes;
    char *memory;
    while (next_chunk(r, &c, &offset, &bytes, &memory)) {
        const segment *s = &r->segments[c.segment];
        const bool bounces = !s->dst || r->device != &an_device_host;
        if (r->threaded && bounces) wait_for_room(r, c.chunk);
        an_status status = read_bytes(r, memory, bytes, offset);
        an_heartbeat_beat(ctx, AN_HEARTBEAT_OWNER);
        if (status == AN_OK && s->dst && bounces)
            status =
                r->device->copy(r->device, ctx, s->dst + (c.at - (int64_t)bytes), memory, bytes, AN_COPY_TO_DEVICE);
        if (r->threaded)
            hand_over(r, c.chunk, status != AN_OK);
        else if (status == AN_OK)
            XXH3_128bits_update(r->state, memory, bytes);
        if (status != AN_OK) return status;
    }
    return r->device->synchronize(r->device, ctx);
}

/* ---- one file ---- */

/* Small files are not worth a thread, and a system that gives none gets one thing done after the other. */
static an_status read_and_hash(reading *r, int64_t bytes) {
    an_context *ctx = r->ctx;
    pthread_t thread;
    sigset_t all, before;
    if (bytes <= CHUNK || pthread_mutex_init(&r->mutex, NULL) != 0) return read_chunks(r);
    if (pthread_cond_init(&r->moved, NULL) != 0) {
        pthread_mutex_destroy(&r->mutex);
        return AN_ERROR(ctx, AN_ERR_MEMORY, "no memory for a lock");
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the host's signals are for the host's threads */
    r->threaded = true;
    if (pthread_create(&thread, NULL, hash_chunks, r) != 0) r->threaded = false;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    const bool threaded = r->threaded;
    const an_status status = read_chunks(r);
    if (threaded) pthread_join(thread, NULL);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->mutex);
    return status;
}

/* The whole file, in the order of its bytes, which the segments cover. */
static an_status load_file(an_context *ctx, const an_device *device, const an_manifest_file *file, const char *folder,
                           const segment *segments, size_t count) {
    an_status status;
    char path[AN_FILE_PATH];
    struct stat found;
    size_t bounce = 0;
    reading r = {.ctx = ctx, .device = device, .path = path, .file = -1, .segments = segments, .count = count};
    AN_CHECK(ctx, an_path_join(path, folder, file->name), AN_ERR_ARGUMENT, "the path is too long: %s", folder);
    for (int i = 0; i < TRIES && r.file < 0 && (i == 0 || errno == ESTALE || errno == EINTR); i++)
        r.file = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    AN_CHECK(ctx, r.file >= 0, AN_ERR_DAMAGED, "%s: cannot be opened: %s", path, strerror(errno));
    AN_CHECK(ctx, fstat(r.file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == file->bytes, AN_ERR_DAMAGED,
             "%s: is no regular file of %lld bytes", path, (long long)file->bytes);
    posix_fadvise(r.file, 0, 0, POSIX_FADV_SEQUENTIAL);
    r.state = XXH3_createState();
    AN_CHECK(ctx, r.state, AN_ERR_MEMORY, "no memory for a hash");
    XXH3_128bits_reset(r.state);
    bounce = (size_t)(file->bytes < 2 * CHUNK ? file->bytes : 2 * CHUNK);
    AN_TRY(an_alloc_raw(ctx, (void **)&r.bounce, bounce));
    AN_TRY(read_and_hash(&r, file->bytes));
    const XXH128_hash_t hash = XXH3_128bits_digest(r.state);
    AN_CHECK(ctx, hash.low64 == file->hash[0] && hash.high64 == file->hash[1], AN_ERR_DAMAGED,
             "%s: is damaged: its bytes are not those that were written (their hash differs)", path);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&r.bounce, bounce, 1);
    XXH3_freeState(r.state);
    if (r.file >= 0) close(r.file);
    return status;
}

an_status an_load_check_file(an_context *ctx, const an_manifest_file *file, const char *folder) {
    const segment whole = {.offset = 0, .bytes = file->bytes};
    return load_file(ctx, &an_device_host, file, folder, &whole, 1);
}

/* ---- what goes where ---- */

/* Where the slices of a tensor go, in the order of files. */
typedef struct {
    segment segment;
    int64_t file;
} placed;

typedef struct {
    an_context *ctx;
    placed *items;
    size_t count, capacity;
    char *base;
    size_t size;
} placing;

static an_status place_slice(void *user, const an_manifest_slice *slice) {
    placing *p = user;
    an_context *ctx = p->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&p->items, &p->capacity, p->count + 1, sizeof *p->items));
    p->items[p->count++] = (placed){.segment = {.offset = slice->offset,
                                                .bytes = (slice->end - slice->begin) * (int64_t)p->size,
                                                .dst = p->base + (size_t)slice->begin * p->size},
                                    .file = slice->file};
    return AN_OK;
}

static int compare_placed(const void *a, const void *b) {
    const placed *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->segment.offset < y->segment.offset ? -1 : x->segment.offset > y->segment.offset;
}

/* All that does not fit, in one message. */
static an_status match(an_trainer *t, const an_manifest *m, const an_save_layout *layout, const char *folder,
                       placing *p) {
    an_status status;
    an_context *ctx = t->ctx;
    an_text text;
    size_t bad = 0, found = 0;
    an_text_init(&text, ctx);
    for (size_t i = 0; i < layout->tensor_count; i++) {
        const an_saved_tensor *s = &layout->tensors[i];
        const int64_t index = an_manifest_find(m, s->name);
        int64_t dims[AN_MAX_DIMS] = {0};
        found += index >= 0;
        if (index >= 0) an_manifest_shape(m, (size_t)index, dims);
        const bool fits = index >= 0 && m->tensors[index].ndims == s->ndims && m->tensors[index].dtype == s->dtype &&
                          !memcmp(dims, s->dims, (size_t)s->ndims * sizeof *dims);
        if (!fits && bad++ < MOST_LISTED)
            an_text_add(&text, "\n  '%s' %s", s->name, index < 0 ? "is missing" : "has another shape or type");
        if (!fits) continue;
        const an_stored *e = &t->params->entries[s->entry];
        p->base = s->moment ? t->params->moments[s->moment - 1] : an_params_base(t->params, e->storage);
        p->base += e->offset;
        p->size = an_dtype_size(s->dtype);
        AN_TRY(an_manifest_slices(m, (size_t)index, place_slice, p));
    }
    if (found < m->tensor_count)
        an_text_add(&text, "\n  it has %zu tensors that the model has not", m->tensor_count - found);
    AN_TRY(text.status);
    AN_CHECK(ctx, bad == 0 && found == m->tensor_count, AN_ERR_SHAPE, "%s is of another model:%s%s", folder, text.bytes,
             bad > MOST_LISTED ? "\n  and more" : "");
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

/* The segments of a file with what lies between them: what is no tensor is read for its hash. */
static an_status load_part(an_trainer *t, const an_manifest *m, int64_t file, const char *folder, const placed *items,
                           size_t count) {
    an_status status;
    an_context *ctx = t->ctx;
    segment *segments = NULL;
    size_t used = 0;
    int64_t at = 0;
    AN_TRY(an_alloc(ctx, (void **)&segments, 2 * count + 1, sizeof *segments));
    for (size_t i = 0; i < count; i++) {
        const segment *s = &items[i].segment;
        AN_CHECK(ctx, s->offset >= at, AN_ERR_DAMAGED, "%s/%s: two tensors have the same bytes of it", folder,
                 m->files[file].name);
        if (s->offset > at) segments[used++] = (segment){.offset = at, .bytes = s->offset - at};
        segments[used++] = *s;
        at = s->offset + s->bytes;
    }
    if (at < m->files[file].bytes) segments[used++] = (segment){.offset = at, .bytes = m->files[file].bytes - at};
    AN_TRY(load_file(ctx, t->params->device, &m->files[file], folder, segments, used));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&segments, 2 * count + 1, sizeof *segments);
    return status;
}

an_status an_load(an_trainer *t, const an_manifest *m, const char *folder) {
    an_status status;
    an_context *ctx = t->ctx;
    an_save_layout *layout = NULL;
    placing p = {.ctx = ctx};
    an_heartbeat_enter(ctx, AN_HEARTBEAT_START, "reads the checkpoint");
    AN_TRY(an_save_layout_create(&layout, ctx, t->graph, t->params->moment_count, 1));
    AN_TRY(match(t, m, layout, folder, &p));
    if (p.count) qsort(p.items, p.count, sizeof *p.items, compare_placed);
    size_t first = 0;
    for (size_t file = 0; file < m->file_count; file++) {
        size_t count = 0;
        while (first + count < p.count && p.items[first + count].file == (int64_t)file) count++;
        AN_TRY(load_part(t, m, (int64_t)file, folder, p.items + first, count));
        first += count;
    }
    t->params->version++;
    an_progress_restore(t, &m->progress);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&p.items, p.capacity, sizeof *p.items);
    an_save_layout_destroy(&layout);
    return status;
}
