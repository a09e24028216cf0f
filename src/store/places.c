#include "store/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

static const char *const prefixes[AN_CHECKPOINT_KINDS] = {[AN_CHECKPOINT_FINISHED] = "step-",
                                                          [AN_CHECKPOINT_UNFINISHED] = "unfinished-",
                                                          [AN_CHECKPOINT_REMOVED] = "removed-"};

void an_checkpoint_name(char name[AN_CHECKPOINT_NAME], an_checkpoint_kind kind, int64_t step, int64_t generation,
                        const int64_t *user_step) {
    const int length = snprintf(name, AN_CHECKPOINT_NAME, "%s%08" PRId64 "-%" PRId64, prefixes[kind], step, generation);
    if (user_step) snprintf(name + length, (size_t)(AN_CHECKPOINT_NAME - length), "-at-%" PRId64, *user_step);
}

void an_checkpoint_rename(char name[AN_CHECKPOINT_NAME], an_checkpoint_kind kind, const char *other) {
    const char *rest = strchr(other, '-');
    snprintf(name, AN_CHECKPOINT_NAME, "%s%s", prefixes[kind], rest ? rest + 1 : other);
}

static bool read_number(const char **at, int64_t *number) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

bool an_checkpoint_parse(const char *name, an_checkpoint_kind *kind, an_checkpoint_place *place) {
    for (int k = 0; k < AN_CHECKPOINT_KINDS; k++) {
        const char *at = name + strlen(prefixes[k]);
        if (strncmp(name, prefixes[k], strlen(prefixes[k])) != 0 || strlen(name) >= AN_CHECKPOINT_NAME) continue;
        if (!read_number(&at, &place->step) || *at++ != '-' || !read_number(&at, &place->generation)) return false;
        place->named = !strncmp(at, "-at-", 4);
        place->user_step = 0;
        if (place->named) {
            at += 4;
            const bool negative = *at == '-';
            at += negative;
            if (!read_number(&at, &place->user_step)) return false;
            if (negative) place->user_step = -place->user_step;
        }
        if (*at) return false;
        memcpy(place->name, name, strlen(name) + 1);
        *kind = (an_checkpoint_kind)k;
        return true;
    }
    return false;
}

/* ---- which there are ---- */

static int compare_places(const void *a, const void *b) {
    const an_checkpoint_place *x = a, *y = b;
    if (x->generation != y->generation) return x->generation < y->generation ? -1 : 1;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return strcmp(x->name, y->name);
}

an_status an_checkpoints_list(an_context *ctx, const char *folder, an_checkpoint_place **places, size_t *count,
                              size_t *capacity) {
    an_status status;
    const struct dirent *entry;
    char text[AN_MESSAGE_BYTES] = "";
    const an_note note = {text, sizeof text};
    *places = NULL;
    *count = *capacity = 0;
    DIR *stream = opendir(folder);
    if (!stream) {
        if (errno == ENOENT || errno == ENOTDIR) return AN_OK;
        return AN_ERROR(ctx, AN_ERR_FILE, "%s: cannot be opened: %s", folder, strerror(errno));
    }
    for (;;) {
        an_checkpoint_kind kind;
        an_checkpoint_place place;
        AN_TRY(an_note_raise(ctx, an_folder_next(stream, folder, &entry, note), note));
        if (!entry) break;
        if (!an_checkpoint_parse(entry->d_name, &kind, &place) || kind != AN_CHECKPOINT_FINISHED) continue;
        AN_TRY(an_grow(ctx, (void **)places, capacity, *count + 1, sizeof **places));
        (*places)[(*count)++] = place;
    }
    closedir(stream);
    if (*count > 0) qsort(*places, *count, sizeof **places, compare_places);
    return AN_OK;
fail:
    closedir(stream);
    an_release(ctx, (void **)places, *capacity, sizeof **places);
    *count = *capacity = 0;
    return status;
}

/* ---- removing ---- */

/* A link in the place of the folder is not followed: it would lead out of the run. */
void an_checkpoint_remove(const char *folder, const char *name) {
    char path[AN_FILE_PATH];
    const struct dirent *entry;
    if (!an_path_join(path, folder, name)) return;
    const int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = opened >= 0 ? fdopendir(opened) : NULL;
    while (stream && (entry = readdir(stream))) /* NOLINT(concurrency-mt-unsafe) */
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(opened, entry->d_name, 0);
    if (stream)
        closedir(stream);
    else if (opened >= 0)
        close(opened);
    rmdir(path);
}

void an_checkpoints_tidy(const char *folder, int64_t generation, const char *but) {
    const struct dirent *entry;
    DIR *stream = opendir(folder);
    while (stream && (entry = readdir(stream))) { /* NOLINT(concurrency-mt-unsafe) */
        an_checkpoint_kind kind;
        an_checkpoint_place place;
        if (an_checkpoint_parse(entry->d_name, &kind, &place) && kind != AN_CHECKPOINT_FINISHED &&
            place.generation <= generation && strcmp(entry->d_name, but) != 0)
            an_checkpoint_remove(folder, entry->d_name);
    }
    if (stream) closedir(stream);
}
