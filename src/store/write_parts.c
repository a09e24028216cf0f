/* Writes the parts of a save. Runs on its own thread, allocates nothing and uses no context. */
#define _GNU_SOURCE /* O_DIRECT; NOLINT(bugprone-reserved-identifier) */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/heartbeat.h"
#include "base/system/clock.h"
#include "base/system/thread.h"
#include "store/write_inside.h"

/* Past the system's cache a write costs a seventh of the CPU's time (0.2 s instead of 1.5 s for each GB, measured);
 * small files are not worth its calls. Chunks are large because after each one this thread waits for a core that
 * training has: with 8 MiB a save took half as long again as with nothing beside it. */
enum { CHUNK = 64 << 20, DIRECT_LEAST = 4 << 20 };

static char *image_of(const an_save_job *job, size_t file) {
    return job->image + an_save_image_offset(job->layout, job->files, file);
}

static bool set_direct(int file, bool direct) {
    const int flags = fcntl(file, F_GETFL);
    return flags >= 0 && fcntl(file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/* Some bytes, past the cache as long as the system likes their addresses and lengths. */
static an_status write_chunk(int file, bool *direct, const char *bytes, size_t length, const char *path, an_note note) {
    while (length > 0 && *direct) {
        const ssize_t written = write(file, bytes, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EINVAL) {
            if (!set_direct(file, false)) return an_file_failed(path, "cannot be written", note);
            *direct = false;
            break;
        }
        if (written == 0) errno = ENOSPC;
        if (written <= 0) return an_file_failed(path, "cannot be written", note);
        bytes += written;
        length -= (size_t)written;
        if (length % AN_SAVE_ALIGNMENT) *direct = !set_direct(file, false); /* the rest begins anywhere */
    }
    return length ? an_file_write(file, bytes, length, path, note) : AN_OK;
}

/* ---- hashes ---- Over the image, beside the writing: a save takes as long as the slower of the two. */

typedef struct {
    an_save_job *job;
    const char *image;
    size_t bytes;
    uint64_t hash[2];
    pthread_t thread;
    bool is_running;
} hashing;

/* The time that a thread of a save has worked, at its end. */
static void add_work(an_save_job *job) {
    atomic_fetch_add(&job->work, (long long)(1e9 * an_clock_read(CLOCK_THREAD_CPUTIME_ID)));
}

static void hash_image(hashing *h) {
    const XXH128_hash_t hash = XXH3_128bits(h->image, h->bytes);
    h->hash[0] = hash.low64;
    h->hash[1] = hash.high64;
}

static void *run_hashing(void *user) {
    hashing *h = user;
    hash_image(h);
    add_work(h->job);
    return NULL;
}

/* ---- bytes ---- */

/* Takes off what was written only because writes past the cache have whole blocks. */
static an_status cut_file(int file, size_t bytes, const char *path, an_note note) {
    int cut;
    do cut = ftruncate(file, (off_t)bytes);
    while (cut != 0 && errno == EINTR);
    return cut == 0 ? AN_OK : an_file_failed(path, "cannot be truncated to its length", note);
}

an_status an_save_part_open(an_part_file *out, const an_writing *w, size_t part) {
    const an_saved_file *f = &w->job->layout->files[part];
    out->file = -1;
    out->padded = false;
    out->bytes = 0;
    if (!an_path_join(out->path, w->unfinished, f->name))
        return AN_NOTE(w->note, AN_ERR_ARGUMENT, "the path is too long");
    an_heartbeat_say(w->job->ctx, w->slot, "save: writes %s", f->name);
    do out->file = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    while (out->file < 0 && errno == EINTR);
    if (out->file < 0) return an_file_failed(out->path, "cannot be opened", w->note);
    out->direct = f->bytes >= DIRECT_LEAST && set_direct(out->file, true);
    return AN_OK;
}

an_status an_save_part_put(an_part_file *out, const an_writing *w, const char *bytes, size_t length) {
    out->padded = out->direct && length % AN_SAVE_ALIGNMENT;
    const size_t whole = out->padded ? an_round_up(length, AN_SAVE_ALIGNMENT) : length;
    const an_status status = write_chunk(out->file, &out->direct, bytes, whole, out->path, w->note);
    out->bytes += length;
    an_heartbeat_beat(w->job->ctx, w->slot);
    return status;
}

an_status an_save_part_close(an_part_file *out, const an_writing *w, an_status status) {
    const int file = out->file;
    if (status == AN_OK && out->padded) status = cut_file(file, out->bytes, out->path, w->note);
    an_heartbeat_say(w->job->ctx, w->slot, "save: syncs %s", strrchr(out->path, '/') + 1);
    if (status == AN_OK) status = an_file_sync(file, out->path, w->note);
    if (status == AN_OK) return an_file_close(&out->file, out->path, w->note);
    close(file);
    out->file = -1;
    return status;
}

static an_status write_image(const an_writing *w, an_part_file *out, const char *image, size_t bytes) {
    an_status status = AN_OK;
    for (size_t at = 0; at < bytes && status == AN_OK; at += CHUNK)
        status = an_save_part_put(out, w, image + at, bytes - at < CHUNK ? bytes - at : CHUNK);
    return status;
}

static an_status write_bytes(const an_writing *w, an_part_file *out, size_t part) {
    an_save_job *job = w->job;
    hashing h = {.job = job, .image = image_of(job, part), .bytes = job->layout->files[part].bytes};
    const bool wanted = !job->hashed;
    if (wanted && h.bytes >= DIRECT_LEAST) h.is_running = an_thread_start(&h.thread, run_hashing, &h) == 0;
    if (wanted && !h.is_running) hash_image(&h);
    const an_status status = write_image(w, out, h.image, h.bytes);
    if (h.is_running) pthread_join(h.thread, NULL);
    if (wanted) memcpy(job->hashes[part], h.hash, sizeof h.hash);
    return status;
}

static an_status write_part(const an_writing *w, size_t part) {
    an_part_file out;
    const an_status status = an_save_part_open(&out, w, part);
    return out.file < 0 ? status : an_save_part_close(&out, w, write_bytes(w, &out, part));
}

/* ---- parts at the same time ---- */

typedef struct {
    an_writing writing;
    size_t part;
    pthread_t thread;
    bool is_running;
    an_status status;
    char note[AN_SAVE_NOTE];
} part_task;

static void *run_part(void *user) {
    part_task *t = user;
    t->status = write_part(&t->writing, t->part);
    if (t->is_running) add_work(t->writing.job);
    return NULL;
}

/* As many at a time as there is room for here; a system that gives no thread gets its parts one after another. */
an_status an_save_write_parts(const an_writing *w) {
    enum { AT_ONCE = 8 };
    const an_file_range files = w->job->files;
    if (files.end - files.begin == 1) return write_part(w, files.begin);
    static const size_t maximum = AT_ONCE;
    part_task tasks[AT_ONCE];
    an_status status = AN_OK;
    for (size_t begin = files.begin; begin < files.end && status == AN_OK; begin += maximum) {
        const size_t some = files.end - begin < maximum ? files.end - begin : maximum;
        for (size_t i = 0; i < some; i++) {
            tasks[i] = (part_task){.writing = *w, .part = begin + i};
            tasks[i].writing.note = (an_note){tasks[i].note, sizeof tasks[i].note};
            tasks[i].is_running = i + 1 < some;
            if (tasks[i].is_running && an_thread_start(&tasks[i].thread, run_part, &tasks[i]) == 0) continue;
            tasks[i].is_running = false;
            run_part(&tasks[i]);
        }
        for (size_t i = 0; i < some; i++) {
            if (tasks[i].is_running) pthread_join(tasks[i].thread, NULL);
            if (tasks[i].status != AN_OK && status == AN_OK)
                status = AN_NOTE(w->note, tasks[i].status, "%s", tasks[i].note);
        }
    }
    return status;
}
