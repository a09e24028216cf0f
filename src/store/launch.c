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
#include "store/places.h"

#define FOLDER "launches"
enum { IDENTITY = 512 };

/* ---- who a process is ---- */

static void read_word(const char *path, char *word, size_t capacity) {
    FILE *file = an_regular_read(path);
    word[0] = 0;
    if (file && fgets(word, (int)capacity, file)) word[strcspn(word, "\n")] = 0;
    if (file) fclose(file);
}

/* When a process started, and what it is doing ('T': it is stopped); false: there is none of that number. */
static bool look_at_process(long process, unsigned long long *start, char *state) {
    char path[64], line[1024];
    /* Its first thread's, which says the same; of the process's own file an emulator shows it a version with another time. */
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/stat", process, process);
    read_word(path, line, sizeof line);
    const char *after = strrchr(line, ')'); /* a name may have anything in it */
    static const char fields[] =
        " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu"; /* the 3rd and the 22nd */
    /* NOLINTNEXTLINE(cert-err34-c): what is no number is no process of ours */
    return after && sscanf(after + 1, fields, state, start) == 2;
}

/* The machine since its start, and the namespace that process numbers are of: elsewhere a number means nothing. */
static void write_machine(char text[IDENTITY / 2]) {
    char boot[64], names[64];
    read_word("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    const ssize_t length = readlink("/proc/self/ns/pid", names, sizeof names - 1);
    names[length > 0 ? length : 0] = 0;
    snprintf(text, IDENTITY / 2, "%s %s", boot, names);
}

static void write_identity(char text[IDENTITY]) {
    char machine[IDENTITY / 2], state;
    unsigned long long start = 0;
    write_machine(machine);
    look_at_process((long)getpid(), &start, &state);
    snprintf(text, IDENTITY, "%ld %llu %s\n", (long)getpid(), start, machine);
}

/* Whether the process that wrote this identity is at work, on this machine. One that is stopped is not: it may wake up, and will then
 * find that it is no longer wanted. */
static bool is_at_work(const char *identity, long *process) {
    char machine[IDENTITY / 2], state = 0;
    unsigned long long started = 0, starts = 0;
    int read = 0;
    write_machine(machine);
    /* NOLINTNEXTLINE(cert-err34-c): anything else is nobody */
    if (sscanf(identity, "%ld %llu %n", process, &started, &read) != 2 || strcmp(identity + read, machine) != 0)
        return false;
    if (*process == (long)getpid() || !look_at_process(*process, &starts, &state)) return false;
    return starts == started && !strchr("TtZX", state);
}

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
    char path[AN_FILE_PATH], name[32], identity[IDENTITY];
    long process;
    snprintf(name, sizeof name, "%" PRId64, last);
    if (last == 0 || !an_path_join(path, launches, name)) return AN_OK;
    read_word(path, identity, sizeof identity);
    if (!is_at_work(identity, &process)) return AN_OK;
    return AN_NOTE(note, AN_ERR_STATE,
                   "%s: process %ld is already training in this folder; wait for it, stop it (kill %ld), or set "
                   "run.dir to another name",
                   folder, process, process);
}

static an_status claim(const char *folder, int64_t *generation, an_note note) {
    char launches[AN_FILE_PATH], path[AN_FILE_PATH], name[32], identity[IDENTITY];
    int64_t last;
    if (!an_path_join(launches, folder, FOLDER))
        return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    an_status status = an_folders_make(launches, note);
    if (status == AN_OK) status = find_last(launches, &last, note);
    if (status == AN_OK) status = check_free(folder, launches, last, note);
    if (status == AN_OK) status = look_at_checkpoints(folder, &last, note);
    write_identity(identity);
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
