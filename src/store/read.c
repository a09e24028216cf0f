/* Reading files of a checkpoint: every byte is checked against the file's hash, whether it goes to memory or not. */
#include "store/read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/device.h"
#include "base/files/file.h"
#include "base/heartbeat.h"
#include "base/system/thread.h"

enum { CHUNK = 4 << 20 };
enum { TRIES = 5 }; /* of opening: a shared file system may have lost sight of a file for a moment */

/* ---- bytes of a file ---- */

an_status an_file_reader_open(an_file_reader *r, an_context *ctx, const an_manifest_file *file, const char *folder) {
    an_status status;
    struct stat found;
    *r = (an_file_reader){.ctx = ctx, .file = file, .descriptor = -1};
    AN_CHECK(ctx, an_path_join(r->path, folder, file->name), AN_ERR_ARGUMENT, "the path is too long: %s", folder);
    for (int i = 0; i < TRIES && r->descriptor < 0 && (i == 0 || errno == ESTALE || errno == EINTR); i++)
        r->descriptor = open(r->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    AN_CHECK(ctx, r->descriptor >= 0, AN_ERR_DAMAGED, "%s: cannot be opened: %s", r->path, strerror(errno));
    AN_CHECK(ctx, fstat(r->descriptor, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == file->bytes,
             AN_ERR_DAMAGED, "%s: is not a regular file of %lld bytes", r->path, (long long)file->bytes);
    posix_fadvise(r->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
    r->hash = XXH3_createState();
    AN_CHECK(ctx, r->hash, AN_ERR_MEMORY, "out of memory: a hash cannot be computed");
    XXH3_128bits_reset(r->hash);
    return AN_OK;
fail:
    an_file_reader_close(r);
    return status;
}

void an_file_reader_close(an_file_reader *r) {
    if (!r->file) return;
    XXH3_freeState(r->hash);
    if (r->descriptor >= 0) close(r->descriptor);
    *r = (an_file_reader){.descriptor = -1};
}

static an_status read_bytes(const an_file_reader *r, char *memory, size_t bytes, int64_t offset) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(r->descriptor, memory + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: cannot be read: %s", r->path, strerror(errno));
        if (got == 0) return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: was truncated while it was being read", r->path);
        done += (size_t)got;
    }
    return AN_OK;
}

an_status an_file_reader_read(an_file_reader *r, char *memory, size_t bytes) {
    const an_status status = read_bytes(r, memory, bytes, r->at);
    if (status != AN_OK) return status;
    XXH3_128bits_update(r->hash, memory, bytes);
    r->at += (int64_t)bytes;
    return AN_OK;
}

an_status an_file_reader_check(const an_file_reader *r) {
    const XXH128_hash_t hash = XXH3_128bits_digest(r->hash);
    if (hash.low64 == r->file->hash[0] && hash.high64 == r->file->hash[1]) return AN_OK;
    return AN_ERROR(r->ctx, AN_ERR_DAMAGED,
                    "%s: is damaged: its contents have changed since it was written (the hash differs)", r->path);
}

/* A file on its way in: one thread reads, another hashes what is there, so that it takes as long as the slower of
 * the two. */
typedef struct {
    an_context *ctx;
    const an_device *device;
    an_file_reader file;
    const an_file_segment *segments;
    size_t count;
    char *bounce; /* two chunks, for what goes nowhere, or to a device */
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
    const an_file_segment *s = &r->segments[c->segment];
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
        XXH3_128bits_update(r->file.hash, memory, bytes);
        pthread_mutex_lock(&r->mutex);
        r->hashed = c.chunk;
        pthread_cond_broadcast(&r->moved);
        pthread_mutex_unlock(&r->mutex);
    }
    return NULL;
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
        const an_file_segment *s = &r->segments[c.segment];
        const bool bounces = !s->dst || r->device != &an_device_host;
        if (r->threaded && bounces) wait_for_room(r, c.chunk);
        an_status status = read_bytes(&r->file, memory, bytes, offset);
        an_heartbeat_beat(ctx, AN_HEARTBEAT_OWNER);
        if (status == AN_OK && s->dst && bounces)
            status =
                r->device->copy(r->device, ctx, s->dst + (c.at - (int64_t)bytes), memory, bytes, AN_COPY_TO_DEVICE);
        if (r->threaded)
            hand_over(r, c.chunk, status != AN_OK);
        else if (status == AN_OK)
            XXH3_128bits_update(r->file.hash, memory, bytes);
        if (status != AN_OK) return status;
    }
    return r->device->synchronize(r->device, ctx);
}

/* ---- one file ---- */

/* Small files are not worth a thread, and a system that gives none gets one thing done after the other. */
static an_status read_and_hash(reading *r, int64_t bytes) {
    an_context *ctx = r->ctx;
    pthread_t thread;
    if (bytes <= CHUNK || pthread_mutex_init(&r->mutex, NULL) != 0) return read_chunks(r);
    if (pthread_cond_init(&r->moved, NULL) != 0) {
        pthread_mutex_destroy(&r->mutex);
        return AN_ERROR(ctx, AN_ERR_MEMORY, "out of memory: a lock cannot be created");
    }
    r->threaded = true;
    if (an_thread_start(&thread, hash_chunks, r) != 0) r->threaded = false;
    const bool threaded = r->threaded;
    const an_status status = read_chunks(r);
    if (threaded) pthread_join(thread, NULL);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->mutex);
    return status;
}

/* The whole file, in the order of its bytes, which the segments cover. */
an_status an_checkpoint_load_file(an_context *ctx, const an_device *device, const an_manifest_file *file,
                                  const char *folder, const an_file_segment *segments, size_t count) {
    an_status status;
    size_t bounce = 0;
    reading r = {.ctx = ctx, .device = device, .segments = segments, .count = count};
    AN_TRY(an_file_reader_open(&r.file, ctx, file, folder));
    bounce = (size_t)(file->bytes < 2 * CHUNK ? file->bytes : 2 * CHUNK);
    AN_TRY(an_alloc_raw(ctx, (void **)&r.bounce, bounce));
    AN_TRY(read_and_hash(&r, file->bytes));
    AN_TRY(an_file_reader_check(&r.file));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&r.bounce, bounce, 1);
    an_file_reader_close(&r.file);
    return status;
}

an_status an_checkpoint_check_file(an_context *ctx, const an_manifest_file *file, const char *folder) {
    const an_file_segment whole = {.offset = 0, .bytes = file->bytes};
    return an_checkpoint_load_file(ctx, &an_device_host, file, folder, &whole, 1);
}
