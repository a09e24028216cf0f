#include "store/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "base/system/process.h"
#include "store/places.h"

#define FOLDER "launches"

/* ---- generations ---- */

static int64_t number_of(const char *name) {
    char *end;
    if (*name < '1' || *name > '9') return 0;
    errno = 0;
    const long long number = strtoll(name, &end, 10);
    return *end || errno ? 0 : number;
}

/* The highest there is; 0: none. */
static an_status find_last(const char *launches, int64_t *last, an_note note) {
    *last = 0;
    DIR *folder = opendir(launches);
    if (!folder) return an_file_failed(launches, "cannot be opened", note);
    const struct dirent *entry;
    an_status status;
    while ((status = an_folder_next(folder, launches, &entry, note)) == AN_OK && entry)
        if (number_of(entry->d_name) > *last) *last = number_of(entry->d_name);
    closedir(folder);
    return status;
}

/* Where `launches` was lost, the names of checkpoints say which numbers were used. */
static an_status look_at_checkpoints(const char *folder, int64_t *last, an_note note) {
    char path[AN_FILE_PATH];
    const struct dirent *entry;
    an_checkpoint_kind kind;
    an_checkpoint_place place;
    an_status status;
    DIR *checkpoints = an_path_join(path, folder, AN_CHECKPOINTS) ? opendir(path) : NULL;
    if (!checkpoints) return AN_OK;
    while ((status = an_folder_next(checkpoints, path, &entry, note)) == AN_OK && entry)
        if (an_checkpoint_parse(entry->d_name, &kind, &place) && place.generation > *last) *last = place.generation;
    closedir(checkpoints);
    return status;
}

/* Those before ours have nothing more to say. */
static void tidy(const char *launches, int64_t before) {
    char path[AN_FILE_PATH];
    const struct dirent *entry;
    DIR *folder = opendir(launches);
    while (folder && (entry = readdir(folder))) { /* NOLINT(concurrency-mt-unsafe) */
        const int64_t number = number_of(entry->d_name);
        if (number > 0 && number < before && an_path_join(path, launches, entry->d_name)) unlink(path);
    }
    if (folder) closedir(folder);
}

static an_status check_free(const char *folder, const char *launches, int64_t last, an_note note) {
    char path[AN_FILE_PATH], name[32], identity[AN_PROCESS_IDENTITY];
    long process;
    snprintf(name, sizeof name, "%" PRId64, last);
    if (last == 0 || !an_path_join(path, launches, name)) return AN_OK;
    an_process_read(path, identity, sizeof identity);
    /* One that is stopped may wake up, and will then find that it is no longer wanted. */
    if (an_process_look(identity, &process) != AN_PROCESS_AT_WORK || process == (long)getpid()) return AN_OK;
    return AN_NOTE(note, AN_ERR_STATE,
                   "%s: process %ld is already training in this folder; wait for it, stop it (kill %ld), or set "
                   "run.dir to another name",
                   folder, process, process);
}

static an_status claim(const char *folder, int64_t *generation, an_note note) {
    char launches[AN_FILE_PATH], path[AN_FILE_PATH], name[32], identity[AN_PROCESS_IDENTITY];
    int64_t last;
    if (!an_path_join(launches, folder, FOLDER))
        return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    an_status status = an_folders_make(launches, note);
    if (status == AN_OK) status = find_last(launches, &last, note);
    if (status == AN_OK) status = check_free(folder, launches, last, note);
    if (status == AN_OK) status = look_at_checkpoints(folder, &last, note);
    an_process_identify(identity);
    /* Another one may take the same number first, or a higher one while ours is made: then the next is tried. */
    int64_t mine = -1;
    while (status == AN_OK && mine != last) {
        mine = last + 1;
        snprintf(name, sizeof name, "%" PRId64, mine);
        if (!an_path_join(path, launches, name))
            return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
        struct stat found;
        status = an_file_put(path, identity, strlen(identity), note);
        if (status != AN_OK && lstat(path, &found) == 0) status = AN_OK, mine = -1; /* somebody else's */
        if (status == AN_OK) status = find_last(launches, &last, note);
    }
    if (status == AN_OK) status = an_folder_sync(launches, note);
    if (status != AN_OK) return status;
    *generation = last;
    tidy(launches, last);
    return AN_OK;
}

an_status an_launch_claim(an_context *ctx, const char *folder, int64_t *generation) {
    char text[512] = "";
    const an_note note = {text, sizeof text};
    return an_note_raise(ctx, claim(folder, generation, note), note);
}

/* A folder without launches is free, and so is one whose launches cannot be read: who takes it is told. */
an_status an_launch_check_free(an_context *ctx, const char *folder) {
    char launches[AN_FILE_PATH], text[512] = "";
    const an_note note = {text, sizeof text};
    int64_t last;
    if (!an_path_join(launches, folder, FOLDER) || find_last(launches, &last, note) != AN_OK) return AN_OK;
    return an_note_raise(ctx, check_free(folder, launches, last, note), note);
}

an_status an_launch_check(const char *folder, int64_t generation, an_note note) {
    char launches[AN_FILE_PATH];
    int64_t last;
    if (!an_path_join(launches, folder, FOLDER)) return AN_OK;
    const an_status status = find_last(launches, &last, note);
    if (status != AN_OK || last <= generation) return status;
    return AN_NOTE(note, AN_ERR_TAKEN_OVER,
                   "%s: launch %" PRId64 " has taken over this run, so this process, launch %" PRId64 ", stops", folder,
                   last, generation);
}

/* ---- requests ---- */

int an_launch_requests(const char *folder, int64_t generation) {
    enum { MOST = 4096 };
    char launches[AN_FILE_PATH], path[AN_FILE_PATH], name[32], text[MOST + 1];
    int count = 0;
    snprintf(name, sizeof name, "%" PRId64, generation);
    if (!an_path_join(launches, folder, FOLDER) || !an_path_join(path, launches, name)) return 0;
    const int file = an_regular_open(path, O_RDONLY);
    if (file < 0) return 0;
    const ssize_t length = read(file, text, MOST);
    close(file);
    text[length > 0 ? length : 0] = 0;
    for (const char *at = text; (at = strstr(at, "\n" AN_LAUNCH_STOP "\n")); at++) count++;
    return count;
}
