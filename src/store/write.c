/* Writes the files of a save: a temporary folder, everything in it synced, then one rename to a name that never
 * existed. Runs on its own thread, allocates nothing and uses no context. */
#include "store/write.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/heartbeat.h"
#include "base/span.h"
#include "base/system/clock.h"
#include "store/hold.h"
#include "store/launch.h"
#include "store/stream.h"

/* ---- the folder ---- */

static an_status write_extra(const an_writing *w, const char *name, const char *text, size_t bytes) {
    char path[AN_FILE_PATH];
    if (!an_path_join(path, w->unfinished, name)) return AN_NOTE(w->note, AN_ERR_ARGUMENT, "the path is too long");
    an_heartbeat_say(w->job->ctx, w->slot, "save: writes %s", name);
    return an_file_put(path, text, bytes, w->note);
}

/* What an earlier try at the same step left is in the way. */
static an_status make_folder(const an_writing *w) {
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
static an_status rename_folder(const an_writing *w) {
    if (an_file_exists(w->finished)) return AN_NOTE(w->note, AN_ERR_FILE, "%s: already exists", w->finished);
    return an_file_rename(w->unfinished, w->finished, w->note);
}

/* ---- the whole checkpoint in a folder of them ---- */

/* Paths of one writing. */
typedef struct {
    char name[AN_CHECKPOINT_NAME], unfinished[AN_FILE_PATH], finished[AN_FILE_PATH];
} writing_paths;

static an_status begin_writing(an_writing *w, writing_paths *paths, an_save_job *job, int slot, const char *base) {
    *w = (an_writing){.job = job,
                      .slot = slot,
                      .base = base,
                      .unfinished = paths->unfinished,
                      .finished = paths->finished,
                      .note = {job->note, sizeof job->note}};
    an_checkpoint_rename(paths->name, AN_CHECKPOINT_UNFINISHED, job->place.name);
    if (!an_path_join(paths->unfinished, base, paths->name) || !an_path_join(paths->finished, base, job->place.name))
        return AN_NOTE(w->note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", base);
    return AN_OK;
}

/* `fenced`: the run's own folder, which a later launch may have taken over. */
static an_status check_launch(const an_writing *w, bool fenced) {
    return fenced ? an_launch_check(w->job->folder, w->job->generation, w->note) : AN_OK;
}

static an_status open_folder(const an_writing *w, bool fenced) {
    an_heartbeat_say(w->job->ctx, w->slot, "save: makes %s", strrchr(w->unfinished, '/') + 1);
    an_status status = an_folders_make(w->base, w->note);
    if (status == AN_OK) status = check_launch(w, fenced);
    return status == AN_OK ? make_folder(w) : status;
}

static void seal_manifest(an_save_job *job) {
    for (size_t i = 0; i < job->layout->file_count; i++)
        an_manifest_set_hash(&job->manifest, job->first_part + i, job->hashes[i]);
    an_manifest_seal(&job->manifest);
}

/* All parts are there. */
static an_status close_folder(const an_writing *w, bool fenced) {
    an_save_job *job = w->job;
    an_status status = AN_OK;
    for (int i = 0; i < AN_SAVE_EXTRAS && status == AN_OK; i++)
        if (job->extras[i].text)
            status = write_extra(w, job->extras[i].name, job->extras[i].text, strlen(job->extras[i].text));
    if (status != AN_OK) return status;
    if (!job->hashed) seal_manifest(job);
    job->hashed = true;
    status = write_extra(w, AN_MANIFEST_NAME, job->manifest.text.bytes, job->manifest.text.length);
    an_heartbeat_say(job->ctx, w->slot, "save: syncs the folder");
    if (status == AN_OK) status = an_folder_sync(w->unfinished, w->note);
    if (status == AN_OK) status = check_launch(w, fenced);
    an_heartbeat_say(job->ctx, w->slot, "save: renames %s", strrchr(w->unfinished, '/') + 1);
    if (status == AN_OK) status = rename_folder(w);
    return status == AN_OK ? an_folder_sync(w->base, w->note) : status;
}

static void drop_folder(const an_writing *w) {
    an_checkpoint_remove(w->base, strrchr(w->unfinished, '/') + 1);
}

static an_status write_parts(const an_writing *w) {
    return w->job->params ? an_save_stream_parts(w) : an_save_write_parts(w);
}

static an_status write_folder(an_save_job *job, int slot, const char *base, bool fenced) {
    writing_paths paths;
    an_writing w;
    an_status status = begin_writing(&w, &paths, job, slot, base);
    if (status == AN_OK) status = open_folder(&w, fenced);
    if (status != AN_OK) return status;
    status = write_parts(&w);
    if (status == AN_OK) status = close_folder(&w, fenced);
    if (status != AN_OK) drop_folder(&w);
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

/* Half of one must never look like a good one. One that somebody reads stays: a later save removes it. */
static void remove_one(const char *base, const char *name) {
    char gone[AN_CHECKPOINT_NAME], from[AN_FILE_PATH], to[AN_FILE_PATH];
    int hold;
    an_checkpoint_rename(gone, AN_CHECKPOINT_REMOVED, name);
    if (!an_path_join(from, base, name) || !an_path_join(to, base, gone) || !an_hold_take(&hold, from)) return;
    const bool is_renamed = rename(from, to) == 0;
    an_hold_end(&hold); /* NFS removes no file that is open */
    if (is_renamed) an_checkpoint_remove(base, gone);
}

static void remove_old(const an_save_job *job, int slot, const char *base) {
    for (size_t i = 0; i < job->removal_count; i++) {
        const char *name = job->removals[i].name;
        if (job->best && !job->is_linked && !strcmp(name, job->linked)) continue; /* the link still points to it */
        an_heartbeat_say(job->ctx, slot, "save: removes %s", name);
        remove_one(base, name);
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

/* ---- jobs ---- */

static an_status find_base(const an_save_job *job, char base[AN_FILE_PATH], an_note note) {
    const char *folder = job->staging ? job->stage : job->folder;
    const bool fits = job->staging ? snprintf(base, AN_FILE_PATH, "%s", folder) < AN_FILE_PATH
                                   : an_path_join(base, folder, AN_CHECKPOINTS);
    return fits ? AN_OK : AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
}

/* The checkpoint is there or not; what follows is tidying. */
static an_status tidy(an_save_job *job, int slot, const char *base, an_status status) {
    const an_note note = {job->note, sizeof job->note};
    job->safe = status == AN_OK;
    job->seconds = an_clock_seconds() - job->begin;
    if (status == AN_OK) status = an_launch_check(job->folder, job->generation, note);
    if (status == AN_OK && job->best) {
        an_heartbeat_say(job->ctx, slot, "save: links the best checkpoint");
        status = an_save_link_best(job->folder, job->place.name, note);
        job->is_linked = status == AN_OK;
    }
    if (job->safe && status != AN_ERR_TAKEN_OVER) remove_old(job, slot, base);
    return status;
}

/* That the fast folder fails is a pity and no more: the checkpoint still gets to where it belongs. */
static an_status write_all(an_save_job *job, int slot, const char *base) {
    if (job->stage && write_folder(job, slot, job->stage, false) == AN_OK) remove_staged(job);
    return tidy(job, slot, base, write_folder(job, slot, base, true));
}

static an_status begin_all(an_save_job *job, int slot, const char *base) {
    writing_paths paths;
    an_writing w;
    const an_status status = begin_writing(&w, &paths, job, slot, base);
    return status == AN_OK ? open_folder(&w, !job->staging) : status;
}

static an_status write_own(an_save_job *job, int slot, const char *base) {
    writing_paths paths;
    an_writing w;
    const an_status status = begin_writing(&w, &paths, job, slot, base);
    return status == AN_OK ? write_parts(&w) : status;
}

static an_status end_all(an_save_job *job, int slot, const char *base) {
    writing_paths paths;
    an_writing w;
    an_status status = begin_writing(&w, &paths, job, slot, base);
    if (status == AN_OK) {
        status = close_folder(&w, !job->staging);
        if (status != AN_OK) drop_folder(&w);
    }
    if (!job->staging) return tidy(job, slot, base, status);
    if (status == AN_OK) remove_staged(job);
    return status;
}

static an_status drop_all(an_save_job *job, int slot, const char *base) {
    writing_paths paths;
    an_writing w;
    const an_status status = begin_writing(&w, &paths, job, slot, base);
    if (status == AN_OK) drop_folder(&w);
    return status;
}

/* A step of a job, with the time that it takes. */
static void run_step(an_save_job *job, const char *name,
                     an_status (*step)(an_save_job *job, int slot, const char *base)) {
    char base[AN_FILE_PATH];
    const double begin = an_span_begin(job->ctx);
    const double work = an_clock_read(CLOCK_THREAD_CPUTIME_ID);
    const int slot = an_heartbeat_slot_take(job->ctx);
    atomic_store(&job->work, 0);
    job->status = find_base(job, base, (an_note){job->note, sizeof job->note});
    if (job->status == AN_OK) job->status = step(job, slot, base);
    an_heartbeat_slot_give(job->ctx, slot);
    job->cpu_seconds += an_clock_read(CLOCK_THREAD_CPUTIME_ID) - work + 1e-9 * (double)atomic_load(&job->work);
    an_span_end_in(job->ctx, AN_SPAN_SAVE, 0, name, job->place.step, begin);
    atomic_store(&job->done, true);
}

void an_save_job_run(an_save_job *job) {
    run_step(job, "write", write_all);
}

void an_save_job_begin(an_save_job *job) {
    run_step(job, "begin", begin_all);
}

void an_save_job_write(an_save_job *job) {
    run_step(job, "write", write_own);
}

void an_save_job_end(an_save_job *job) {
    run_step(job, "end", end_all);
}

void an_save_job_drop(an_save_job *job) {
    run_step(job, "drop", drop_all);
}
