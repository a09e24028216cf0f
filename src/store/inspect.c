/* Reads a checkpoint: lists its tensors, describes them, and checks that it is intact. */
#include "store/inspect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/guard.h"
#include "store/chosen_weights.h"
#include "store/hold.h"
#include "store/layout.h"
#include "store/places.h"
#include "store/read.h"
#include "store/structs.h"

/* ---- opening ---- */

bool an_checkpoint_has_manifest(const char *folder) {
    char path[AN_FILE_PATH];
    struct stat found;
    return an_path_join(path, folder, AN_MANIFEST_NAME) && lstat(path, &found) == 0;
}

typedef struct {
    an_manifest *manifest; /* NULL: none was found */
    int hold;
    char path[AN_FILE_PATH];
    char first[AN_CHECKPOINT_NAME]; /* the newest name; "": there is none */
} newest;

static void try_place(newest *n, an_context *ctx, const char *checkpoints, const char *name) {
    if (!an_path_join(n->path, checkpoints, name) || !an_hold_begin(&n->hold, n->path)) return;
    if (an_manifest_read(&n->manifest, ctx, n->path) != AN_OK) an_hold_end(&n->hold);
}

/* One pass over those that are there. */
static an_status find_newest(newest *n, an_context *ctx, const char *checkpoints) {
    an_checkpoint_place *places = NULL;
    size_t count = 0, capacity = 0;
    AN_TRY_RETURN(an_checkpoints_list(ctx, checkpoints, &places, &count, &capacity));
    snprintf(n->first, sizeof n->first, "%s", count > 0 ? places[count - 1].name : "");
    while (count-- > 0 && !n->manifest) try_place(n, ctx, checkpoints, places[count].name);
    an_release(ctx, (void **)&places, capacity, sizeof *places);
    return AN_OK;
}

/* A run that is under way may remove what was listed before it is held. Then there is a newer one, which damage does
 * not bring. */
an_status an_checkpoint_newest(an_context *ctx, const char *folder, char path[AN_FILE_PATH], an_manifest **manifest,
                               int *hold) {
    enum { TRIES = 100 };
    char checkpoints[AN_FILE_PATH], before[AN_CHECKPOINT_NAME] = "";
    newest n = {.hold = AN_HOLD_NONE};
    if (!an_path_join(checkpoints, folder, AN_CHECKPOINTS))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %s", folder);
    for (int i = 0; i < TRIES && !n.manifest; i++) {
        AN_TRY_RETURN(find_newest(&n, ctx, checkpoints));
        if (!strcmp(n.first, before)) break;
        memcpy(before, n.first, sizeof before);
    }
    snprintf(path, AN_FILE_PATH, "%s", n.manifest ? n.path : "");
    *manifest = n.manifest;
    *hold = n.hold;
    return AN_OK;
}

an_status an_checkpoint_open(an_checkpoint **checkpoint, an_context *ctx, const char *path) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, checkpoint, path);
    an_status status;
    an_checkpoint *c = NULL;
    char chosen[AN_FILE_PATH] = "";
    *checkpoint = NULL;
    AN_TRY(an_alloc(ctx, (void **)&c, 1, sizeof *c));
    c->ctx = ctx;
    c->hold = AN_HOLD_NONE;
    const bool is_checkpoint = an_checkpoint_has_manifest(path);
    if (is_checkpoint)
        an_hold_begin(&c->hold, path);
    else
        AN_TRY(an_checkpoint_newest(ctx, path, chosen, &c->manifest, &c->hold));
    const char *taken = *chosen ? chosen : path;
    AN_TRY(an_alloc(ctx, (void **)&c->path, strlen(taken) + 1, 1));
    memcpy(c->path, taken, strlen(taken) + 1);
    if (is_checkpoint) AN_TRY(an_manifest_read(&c->manifest, ctx, taken));
    if (!c->manifest) AN_TRY(an_weights_open_files(&c->weights, ctx, taken));
    *checkpoint = c;
    return AN_OK;
fail:
    an_checkpoint_close(&c);
    return status;
}

void an_checkpoint_close(an_checkpoint **checkpoint) {
    an_checkpoint *c = checkpoint ? *checkpoint : NULL;
    if (!c) return;
    an_context *ctx = c->ctx;
    an_manifest_destroy(&c->manifest);
    an_hold_end(&c->hold);
    if (c->weights.close) an_weights_close(&c->weights);
    an_string_release(ctx, &c->path);
    an_release(ctx, (void **)checkpoint, 1, sizeof *c);
}

/* ---- asking ---- */

an_status an_checkpoint_info_get(const an_checkpoint *checkpoint, an_checkpoint_info *info) {
    AN_GUARD;
    AN_NEED(checkpoint, info);
    const an_checkpoint *c = checkpoint;
    const an_manifest *m = c->manifest;
    const double none = __builtin_nan("");
    an_checkpoint_info own = {.path = c->path,
                              .is_run = m != NULL,
                              .tensors = m ? (int64_t)m->tensor_count : c->weights.count,
                              .kernels = "",
                              .loss = none,
                              .rate = none,
                              .norm = none,
                              .best_value = none};
    if (!m) return an_checkpoint_info_write(c->ctx, info, &own);
    const an_progress *p = &m->progress;
    own.step = m->step;
    own.steps = p->steps;
    own.generation = m->generation;
    own.kept = m->kept;
    own.user_step = p->has_user_step ? p->user_step : 0;
    own.isa = m->bits.isa;
    own.onednn = m->bits.onednn;
    own.anneal = m->bits.anneal;
    own.precision = m->bits.precision;
    own.leaves = m->bits.leaves;
    own.bits_since = m->bits.since;
    own.kernels = m->bits.kernels;
    own.files = (int64_t)m->file_count;
    own.origin = m->origin.path;
    own.origin_step = m->origin.step;
    if (m->origin.path) an_hash_write(own.origin_hash, m->origin.hash);
    for (size_t i = 0; i < m->file_count; i++) own.bytes += m->files[i].bytes;
    if (p->last.step) {
        own.loss = p->last.loss;
        own.rate = p->last.rate;
        own.norm = p->last.norm;
    }
    if (p->has_best) {
        own.best_value = p->best_value;
        own.best_step = p->best_step;
    }
    return an_checkpoint_info_write(c->ctx, info, &own);
}

an_saved_role an_checkpoint_role(const char *name) {
    const an_param_part part = an_part_of(name);
    return part == AN_PART_WEIGHT ? AN_SAVED_WEIGHT : part == AN_PART_AVERAGE ? AN_SAVED_AVERAGE : AN_SAVED_MOMENT;
}

static an_status check_index(const an_checkpoint *c, int64_t index) {
    const int64_t count = c->manifest ? (int64_t)c->manifest->tensor_count : c->weights.count;
    if (index >= 0 && index < count) return AN_OK;
    return AN_ERROR(c->ctx, AN_ERR_ARGUMENT, "tensor %lld does not exist; there are %lld", (long long)index,
                    (long long)count);
}

an_status an_checkpoint_tensor_get(const an_checkpoint *checkpoint, int64_t index, an_checkpoint_tensor *tensor) {
    AN_NEED(checkpoint, tensor);
    const an_checkpoint *c = checkpoint;
    an_context *ctx = c->ctx;
    an_safetensor found = {0};
    AN_TRY_RETURN(an_checkpoint_tensor_check(ctx, tensor));
    AN_TRY_RETURN(check_index(c, index));
    an_checkpoint_tensor own = {.slices = 1, .elements = 1};
    if (c->manifest) {
        const an_manifest_tensor *t = &c->manifest->tensors[index];
        own.name = t->name;
        own.role = an_checkpoint_role(t->name);
        own.dtype = (an_dtype)t->dtype;
        own.ndims = t->ndims;
        own.elements = an_manifest_shape(c->manifest, (size_t)index, own.dims);
        own.slices = an_manifest_slice_count(c->manifest, (size_t)index);
        own.type = own.stored = an_safetensors_type_of(own.dtype)->name;
        own.element_bytes = an_dtype_size(own.dtype);
        return an_checkpoint_tensor_write(ctx, tensor, &own);
    }
    AN_TRY_RETURN(c->weights.get(&c->weights, index, &found));
    own.name = found.name;
    own.dtype = found.type->dtype;
    own.stored = found.type->name;
    own.type = own.dtype != AN_DTYPE_NONE ? an_safetensors_type_of(own.dtype)->name : own.stored;
    own.element_bytes = found.type->size;
    own.ndims = found.ndims;
    memcpy(own.dims, found.dims, sizeof own.dims);
    for (int d = 0; d < found.ndims; d++) own.elements *= found.dims[d];
    return an_checkpoint_tensor_write(ctx, tensor, &own);
}

/* O(log tensors) in a checkpoint, O(tensors) in other files. */
int64_t an_checkpoint_find(const an_checkpoint *checkpoint, const char *name) {
    AN_NEED_OR(-1, checkpoint, name);
    const an_checkpoint *c = checkpoint;
    if (c->manifest) return an_manifest_find(c->manifest, name);
    for (int64_t i = 0; i < c->weights.count; i++) {
        an_safetensor found = {0};
        if (c->weights.get(&c->weights, i, &found) == AN_OK && !strcmp(found.name, name)) return i;
    }
    return -1;
}

/* ---- reading ---- */

typedef struct {
    const an_checkpoint *checkpoint;
    int64_t begin, end;
    size_t size;
    char *to;
} wanted;

static an_status read_slice(void *user, const an_manifest_slice *s) {
    const wanted *w = user;
    an_context *ctx = w->checkpoint->ctx;
    char path[AN_FILE_PATH];
    const int64_t begin = w->begin > s->begin ? w->begin : s->begin, end = w->end < s->end ? w->end : s->end;
    if (begin >= end) return AN_OK;
    if (!an_path_join(path, w->checkpoint->path, w->checkpoint->manifest->files[s->file].name))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %s", w->checkpoint->path);
    char message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    int file;
    AN_TRY_RETURN(an_note_raise(ctx, an_file_open(&file, path, O_RDONLY | O_NOFOLLOW, note), note));
    const size_t bytes = (size_t)(end - begin) * w->size;
    char *to = w->to + (size_t)(begin - w->begin) * w->size;
    an_status status = AN_OK;
    for (size_t done = 0; done < bytes && status == AN_OK;) {
        const off_t at = (off_t)(s->offset + (begin - s->begin) * (int64_t)w->size + (int64_t)done);
        const ssize_t got = pread(file, to + done, bytes - done, at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            status = AN_ERROR(ctx, got < 0 ? AN_ERR_FILE : AN_ERR_DAMAGED, "%s: cannot be read: %s", path,
                              got < 0 ? strerror(errno) : "it was truncated");
        else
            done += (size_t)got;
    }
    close(file);
    return status;
}

an_status an_checkpoint_read(const an_checkpoint *checkpoint, int64_t index, int64_t begin, int64_t count,
                             void *elements) {
    AN_GUARD;
    AN_NEED(checkpoint);
    if (count > 0) AN_NEED(checkpoint, elements);
    const an_checkpoint *c = checkpoint;
    an_context *ctx = c->ctx;
    an_checkpoint_tensor t;
    an_checkpoint_tensor_init(&t, sizeof t);
    an_safetensor found = {0};
    AN_TRY_RETURN(an_checkpoint_tensor_get(c, index, &t));
    if (begin < 0 || count < 0 || begin > t.elements || count > t.elements - begin)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "the range that begins at element %lld and has %lld elements is not inside '%s', which has %lld",
            (long long)begin, (long long)count, t.name, (long long)t.elements);
    if (!c->manifest) {
        AN_TRY_RETURN(c->weights.get(&c->weights, index, &found));
        return c->weights.read(&c->weights, index, &found, begin, count, elements);
    }
    wanted w = {.checkpoint = c, .begin = begin, .end = begin + count, .size = t.element_bytes, .to = elements};
    return an_manifest_slices(c->manifest, (size_t)index, read_slice, &w);
}

an_status an_checkpoint_text(const an_checkpoint *checkpoint, const char *name, char **text) {
    AN_GUARD;
    AN_NEED(checkpoint, name, text);
    enum { MOST = 1 << 30 };
    an_status status;
    const an_checkpoint *c = checkpoint;
    an_context *ctx = c->ctx;
    char path[AN_FILE_PATH], *bytes = NULL;
    size_t length = 0;
    *text = NULL;
    const int64_t file = c->manifest ? an_manifest_find_file(c->manifest, name) : -1;
    const bool is_manifest = c->manifest && !strcmp(name, AN_MANIFEST_NAME);
    AN_CHECK(ctx, file >= 0 || is_manifest, AN_ERR_UNKNOWN, "%s has no file '%s'", c->path, name);
    AN_CHECK(ctx, an_path_join(path, c->path, name), AN_ERR_ARGUMENT, "the path is too long: %s", c->path);
    if (!is_manifest) AN_TRY(an_checkpoint_check_file(ctx, &c->manifest->files[file], c->path));
    AN_TRY(an_file_read(ctx, path, MOST, &bytes, &length));
    AN_CHECK(ctx, !memchr(bytes, 0, length), AN_ERR_DAMAGED, "%s: is not a text", path);
    *text = bytes;
    return AN_OK;
fail:
    an_release(ctx, (void **)&bytes, length + 1, 1);
    return status;
}

/* ---- verifying ---- */

/* What lies in the folder and is named nowhere was not written by us. What a file system keeps for those who still have
 * a removed file open (.nfs…) is not ours to judge. */
static an_status check_others(an_context *ctx, const an_manifest *m, const char *folder) {
    const struct dirent *entry;
    an_status status;
    char text[AN_MESSAGE_BYTES] = "";
    const an_note note = {text, sizeof text};
    DIR *stream = opendir(folder);
    if (!stream) return AN_ERROR(ctx, AN_ERR_FILE, "%s: cannot be opened: %s", folder, strerror(errno));
    while ((status = an_note_raise(ctx, an_folder_next(stream, folder, &entry, note), note)) == AN_OK && entry) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || !strncmp(name, ".nfs", 4) || !strcmp(name, AN_MANIFEST_NAME) ||
            an_manifest_find_file(m, name) >= 0)
            continue;
        status = AN_ERROR(ctx, AN_ERR_DAMAGED, "%s/%s: is not part of the checkpoint", folder, name);
        break;
    }
    closedir(stream);
    return status;
}

static an_status verify_folder(an_context *ctx, const char *folder) {
    an_status status;
    an_manifest *m = NULL;
    AN_TRY(an_manifest_read(&m, ctx, folder));
    for (size_t i = 0; i < m->file_count; i++) AN_TRY(an_checkpoint_check_file(ctx, &m->files[i], folder));
    AN_TRY(check_others(ctx, m, folder));
    status = AN_OK;
fail:
    an_manifest_destroy(&m);
    return status;
}

/* A run that is under way may have removed it since it was listed, or while it was read. */
static an_status verify_place(an_context *ctx, const char *folder) {
    struct stat found;
    int hold;
    const bool is_held = an_hold_begin(&hold, folder);
    const an_status status = verify_folder(ctx, folder);
    an_hold_end(&hold);
    return is_held || lstat(folder, &found) == 0 || errno != ENOENT ? status : AN_OK;
}

static an_status verify_run(an_context *ctx, const char *checkpoints, const an_checkpoint_place *places, size_t count) {
    char path[AN_FILE_PATH];
    for (size_t i = 0; i < count; i++) {
        if (!an_path_join(path, checkpoints, places[i].name))
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %s", checkpoints);
        AN_TRY_RETURN(verify_place(ctx, path));
    }
    return AN_OK;
}

an_status an_checkpoint_verify(an_context *ctx, const char *path) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, path);
    an_status status;
    char checkpoints[AN_FILE_PATH];
    an_checkpoint_place *places = NULL;
    size_t count = 0, capacity = 0;
    an_weights weights = {0};
    AN_CHECK(ctx, an_path_join(checkpoints, path, AN_CHECKPOINTS), AN_ERR_ARGUMENT, "the path is too long: %s", path);
    AN_TRY(an_checkpoints_list(ctx, checkpoints, &places, &count, &capacity));
    an_checkpoint_kind kind;
    an_checkpoint_place place;
    const char *slash = strrchr(path, '/');
    const bool named = an_checkpoint_parse(slash ? slash + 1 : path, &kind, &place);
    if (an_checkpoint_has_manifest(path) || named) /* one that has lost its manifest is damaged */
        AN_TRY(verify_folder(ctx, path));
    else if (count > 0)
        AN_TRY(verify_run(ctx, checkpoints, places, count));
    else
        AN_TRY(an_weights_open_files(&weights, ctx, path));
    status = AN_OK;
fail:
    if (weights.close) an_weights_close(&weights);
    an_release(ctx, (void **)&places, capacity, sizeof *places);
    return status;
}
