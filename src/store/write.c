/* Writes the files of a save: a temporary folder, everything in it synced, then one rename to a name that never
 * existed. Runs on its own thread, allocates nothing and uses no context. */
#define _GNU_SOURCE /* O_DIRECT; NOLINT(bugprone-reserved-identifier) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "base/thread.h"
#include "store/launch.h"
#include "store/write.h"

/* Past the system's cache a write costs a seventh of the CPU's time (0.2 s instead of 1.5 s for each GB, measured); small files are not
 * worth its calls. Chunks are large because after each one this thread waits for a core that training has: with 8 MiB a save took half as
 * long again as with nothing beside it. */
enum { CHUNK = 64 << 20, DIRECT_LEAST = 4 << 20 };

typedef struct {
    an_save_job *job;
    int slot;         /* of the heartbeat */
    const char *base; /* folder of checkpoints */
    const char *unfinished, *finished;
    an_note note;
} writing; /* small: each thread that writes a part has a copy, on the stack of the one that starts them */

/* ---- parts ---- */

static char *image_of(const an_save_job *job, size_t file) {
    char *image = job->image;
    for (size_t i = 0; i < file; i++) image += an_round_up(job->layout->files[i].bytes, AN_SAVE_ALIGNMENT);
    return image;
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

static an_status write_image(const writing *w, int file, const char *image, size_t bytes, const char *path) {
    bool direct = bytes >= DIRECT_LEAST && set_direct(file, true), padded = false;
    for (size_t at = 0; at < bytes; at += CHUNK) {
        const size_t length = bytes - at < CHUNK ? bytes - at : CHUNK;
        padded = direct && length % AN_SAVE_ALIGNMENT; /* the image has room behind it */
        const an_status status = write_chunk(file, &direct, image + at,
                                             padded ? an_round_up(length, AN_SAVE_ALIGNMENT) : length, path, w->note);
        if (status != AN_OK) return status;
        an_heartbeat_beat(w->job->ctx, w->slot);
    }
    return padded ? cut_file(file, bytes, path, w->note) : AN_OK;
}

static an_status write_bytes(const writing *w, int file, size_t part, const char *path) {
    an_save_job *job = w->job;
    hashing h = {.job = job, .image = image_of(job, part), .bytes = job->layout->files[part].bytes};
    const bool wanted = !job->hashed;
    if (wanted && h.bytes >= DIRECT_LEAST) h.is_running = an_thread_start(&h.thread, run_hashing, &h) == 0;
    if (wanted && !h.is_running) hash_image(&h);
    const an_status status = write_image(w, file, h.image, h.bytes, path);
    if (h.is_running) pthread_join(h.thread, NULL);
    if (wanted) an_manifest_set_hash(&job->manifest, job->first_part + part, h.hash);
    return status;
}

static an_status write_part(const writing *w, size_t part) {
    const char *name = w->job->layout->files[part].name;
    char path[AN_FILE_PATH];
    if (!an_path_join(path, w->unfinished, name)) return AN_NOTE(w->note, AN_ERR_ARGUMENT, "the path is too long");
    an_heartbeat_say(w->job->ctx, w->slot, "save: writes %s", name);
    int file;
    do file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    while (file < 0 && errno == EINTR);
    if (file < 0) return an_file_failed(path, "cannot be opened", w->note);
    an_status status = write_bytes(w, file, part, path);
    an_heartbeat_say(w->job->ctx, w->slot, "save: syncs %s", name);
    if (status == AN_OK) status = an_file_sync(file, path, w->note);
    if (status == AN_OK) return an_file_close(&file, path, w->note);
    close(file);
    return status;
}

/* ---- parts at the same time ---- */

typedef struct {
    writing writing;
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
static an_status write_parts(const writing *w) {
    enum { AT_ONCE = 8 };
    const size_t count = w->job->layout->file_count;
    if (count == 1) return write_part(w, 0);
    static const size_t most = AT_ONCE;
    part_task tasks[AT_ONCE];
    an_status status = AN_OK;
    for (size_t begin = 0; begin < count && status == AN_OK; begin += most) {
        const size_t some = count - begin < most ? count - begin : most;
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

/* ---- the folder ---- */

static an_status write_extra(const writing *w, const char *name, const char *text, size_t bytes) {
    char path[AN_FILE_PATH];
    if (!an_path_join(path, w->unfinished, name)) return AN_NOTE(w->note, AN_ERR_ARGUMENT, "the path is too long");
    an_heartbeat_say(w->job->ctx, w->slot, "save: writes %s", name);
    return an_file_put(path, text, bytes, w->note);
}

/* What an earlier try at the same step left is in the way. */
static an_status make_folder(const writing *w) {
    const char *name = strrchr(w->unfinished, '/') + 1;
    for (int attempt = 0;; attempt++) {
        if (mkdir(w->unfinished, 0777) == 0) return AN_OK;
        if (errno == EINTR) continue;
        if (errno != EEXIST || attempt > 0)
            return an_file_failed(w->unfinished, "the folder cannot be created", w->note);
        an_checkpoint_remove(w->base, name);
    }
}

/* A name that never existed: nothing is ever replaced. */
static an_status rename_folder(const writing *w) {
    if (an_file_exists(w->finished)) return AN_NOTE(w->note, AN_ERR_FILE, "%s: already exists", w->finished);
    return an_file_rename(w->unfinished, w->finished, w->note);
}

static an_status fill_folder(const writing *w) {
    an_save_job *job = w->job;
    an_status status = write_parts(w);
    for (int i = 0; i < AN_SAVE_EXTRAS && status == AN_OK; i++)
        if (job->extras[i].text)
            status = write_extra(w, job->extras[i].name, job->extras[i].text, strlen(job->extras[i].text));
    if (status != AN_OK) return status;
    if (!job->hashed) an_manifest_seal(&job->manifest);
    job->hashed = true;
    status = write_extra(w, AN_MANIFEST_NAME, job->manifest.text.bytes, job->manifest.text.length);
    an_heartbeat_say(job->ctx, w->slot, "save: syncs the folder");
    return status == AN_OK ? an_folder_sync(w->unfinished, w->note) : status;
}

/* The whole checkpoint in a folder of them. `fenced`: the run's own, which a later launch may have taken over. */
static an_status write_folder(an_save_job *job, int slot, const char *base, bool fenced) {
    char name[AN_CHECKPOINT_NAME], unfinished[AN_FILE_PATH], finished[AN_FILE_PATH];
    const writing w = {.job = job,
                       .slot = slot,
                       .base = base,
                       .unfinished = unfinished,
                       .finished = finished,
                       .note = {job->note, sizeof job->note}};
    an_checkpoint_rename(name, AN_CHECKPOINT_UNFINISHED, job->place.name);
    if (!an_path_join(unfinished, base, name) || !an_path_join(finished, base, job->place.name))
        return AN_NOTE(w.note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", base);
    an_heartbeat_say(job->ctx, slot, "save: makes %s", name);
    an_status status = an_folders_make(base, w.note);
    if (status == AN_OK && fenced) status = an_launch_check(job->folder, job->generation, w.note);
    if (status == AN_OK) status = make_folder(&w);
    if (status != AN_OK) return status;
    status = fill_folder(&w);
    if (status == AN_OK && fenced) status = an_launch_check(job->folder, job->generation, w.note);
    an_heartbeat_say(job->ctx, slot, "save: renames %s", name);
    if (status == AN_OK) status = rename_folder(&w);
    if (status == AN_OK) return an_folder_sync(base, w.note);
    an_checkpoint_remove(base, name);
    return status;
}

/* ---- the link to the best, and what may go ---- */

/* Whether the link is there after all, though making it was said to have failed. */
static bool is_link_to(const char *path, const char *target) {
    char found[AN_FILE_PATH];
    const ssize_t length = readlink(path, found, sizeof found);
    return length >= 0 && (size_t)length == strlen(target) && !memcmp(found, target, (size_t)length);
}

an_status an_save_link_best(const char *folder, const char *name, an_note note) {
    char target[AN_CHECKPOINT_NAME + sizeof AN_CHECKPOINTS + 1], path[AN_FILE_PATH], beside[AN_FILE_PATH];
    snprintf(target, sizeof target, "%s/%s", AN_CHECKPOINTS, name);
    if (!an_path_join(path, folder, "best") || !an_path_join(beside, folder, "best.new"))
        return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    unlink(beside);
    int done;
    do done = symlink(target, beside);
    while (done != 0 && errno == EINTR);
    const int reason = errno;
    if (done != 0 && !is_link_to(beside, target)) {
        errno = reason;
        return an_file_failed(beside, "the link to the best checkpoint cannot be created", note);
    }
    const an_status status = an_file_rename(beside, path, note);
    return status == AN_OK ? an_folder_sync(folder, note) : status;
}

static void remove_old(const an_save_job *job, int slot, const char *base) {
    char gone[AN_CHECKPOINT_NAME], from[AN_FILE_PATH], to[AN_FILE_PATH];
    for (size_t i = 0; i < job->removal_count; i++) {
        const char *name = job->removals[i].name;
        if (job->best && !job->is_linked && !strcmp(name, job->linked)) continue; /* the link still points to it */
        an_heartbeat_say(job->ctx, slot, "save: removes %s", name);
        an_checkpoint_rename(gone, AN_CHECKPOINT_REMOVED, name);
        /* Half of one must never look like a good one. */
        if (an_path_join(from, base, name) && an_path_join(to, base, gone) && rename(from, to) == 0)
            an_checkpoint_remove(base, gone);
    }
    an_checkpoints_tidy(base, job->generation, "");
}

/* A fast folder holds the last one only: those before it are where they belong. */
static void remove_staged(const an_save_job *job) {
    const struct dirent *entry;
    DIR *stream = opendir(job->stage);
    while (stream && (entry = readdir(stream))) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
        an_checkpoint_kind kind;
        an_checkpoint_place place;
        if (an_checkpoint_parse(entry->d_name, &kind, &place) && strcmp(entry->d_name, job->place.name) != 0)
            an_checkpoint_remove(job->stage, entry->d_name);
    }
    if (stream) closedir(stream);
}

/* That the fast folder fails is a pity and no more: the checkpoint still gets to where it belongs. */
static an_status write_all(an_save_job *job, int slot) {
    char base[AN_FILE_PATH];
    const an_note note = {job->note, sizeof job->note};
    if (job->stage && write_folder(job, slot, job->stage, false) == AN_OK) remove_staged(job);
    if (!an_path_join(base, job->folder, AN_CHECKPOINTS))
        return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", job->folder);
    an_status status = write_folder(job, slot, base, true);
    job->safe = status == AN_OK;
    job->seconds = an_clock_seconds() - job->begin; /* what follows is tidying */
    if (status == AN_OK) status = an_launch_check(job->folder, job->generation, note);
    if (status == AN_OK && job->best) {
        an_heartbeat_say(job->ctx, slot, "save: links the best checkpoint");
        status = an_save_link_best(job->folder, job->place.name, note);
        job->is_linked = status == AN_OK;
    }
    if (job->safe && status != AN_ERR_TAKEN_OVER) remove_old(job, slot, base);
    return status;
}

void an_save_job_run(an_save_job *job) {
    const double work = an_clock_read(CLOCK_THREAD_CPUTIME_ID);
    job->begin = an_clock_seconds();
    atomic_store(&job->work, 0);
    const int slot = an_heartbeat_slot_take(job->ctx);
    job->status = write_all(job, slot);
    an_heartbeat_slot_give(job->ctx, slot);
    job->cpu_seconds = an_clock_read(CLOCK_THREAD_CPUTIME_ID) - work + 1e-9 * (double)atomic_load(&job->work);
    atomic_store(&job->done, true);
}
