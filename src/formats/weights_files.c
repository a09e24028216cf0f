/* Weights in safetensors files: one file, or several files with an index. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/reader.h"
#include "base/text/json.h"
#include "formats/gguf.h"
#include "formats/weights.h"

enum { MOST_FILES = 512, MOST_INDEX = 100000000 }; /* files are open at once; bytes of an index, as of a header */

typedef struct {
    int count;
    struct {
        an_safetensors *file;
        an_json_string name; /* in the index's text */
    } files[MOST_FILES];
} shards;

static int64_t shard_of(const shards *s, int64_t index, int *file) {
    for (*file = 0; index >= an_safetensors_count(s->files[*file].file); ++*file)
        index -= an_safetensors_count(s->files[*file].file);
    return index;
}

static an_status shards_get(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const shards *s = w->state;
    int file;
    const int64_t inside = shard_of(s, index, &file);
    return an_safetensors_get(s->files[file].file, (int)inside, tensor);
}

static an_status shards_read(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                             int64_t count, void *to) {
    const shards *s = w->state;
    const int64_t size = (int64_t)tensor->type->size;
    int file;
    shard_of(s, index, &file);
    return an_safetensors_read(s->files[file].file, tensor, first * size, (size_t)(count * size), to);
}

static void shards_close(an_weights *w) {
    shards *s = w->state;
    for (int i = 0; i < s->count; i++) an_safetensors_close(&s->files[i].file);
    an_release(w->ctx, &w->state, 1, sizeof *s);
}

static an_status open_file(an_weights *w, const char *path) {
    an_context *ctx = w->ctx;
    shards *s = w->state;
    AN_TRY_RETURN(an_safetensors_open(&s->files[0].file, ctx, path));
    s->count = 1;
    w->count = an_safetensors_count(s->files[0].file);
    return AN_OK;
}

enum { SHARD_FLAGS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY }; /* a pipe would be waited for */

/* Whether a folder is called …/snapshots/REVISION. */
static bool is_snapshot(const char *folder) {
    char above[AN_FILE_PATH], named[AN_FILE_PATH];
    struct stat a, b;
    return an_path_join(above, folder, "..") && an_path_join(named, folder, "../../snapshots") && !stat(above, &a) &&
           !stat(named, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Opens what a link leads to in Hugging Face's cache, in which snapshots/REVISION/NAME is a link to ../../blobs/HASH;
 * -1: it leads anywhere else. */
static int open_in_cache(const char *link) {
    static const char blobs[] = "../../blobs/";
    char folder[AN_FILE_PATH], target[AN_FILE_PATH], path[AN_FILE_PATH];
    const size_t slash = (size_t)(strrchr(link, '/') - link);
    const ssize_t length = readlink(link, target, sizeof target - 1);
    if (slash >= sizeof folder || length < 0) return -1;
    memcpy(folder, link, slash);
    folder[slash] = target[length] = 0;
    const char *hash = target + strlen(blobs);
    if (strncmp(target, blobs, strlen(blobs)) != 0 || !*hash || strchr(hash, '/') || !strcmp(hash, "..")) return -1;
    return is_snapshot(folder) && an_path_join(path, folder, target) ? open(path, SHARD_FLAGS) : -1;
}

/* The number of a file that an index names, which is opened when it is named first. */
static an_status open_shard(an_weights *w, const char *index, an_json_string name, int *number) {
    an_status status;
    an_context *ctx = w->ctx;
    shards *s = w->state;
    an_text path;
    an_text_init(&path, ctx);
    for (*number = 0; *number < s->count; ++*number)
        if (!strcmp(s->files[*number].name.bytes, name.bytes)) return AN_OK;
    AN_CHECK(ctx,
             *name.bytes && !strchr(name.bytes, '/') && strcmp(name.bytes, ".") != 0 && strcmp(name.bytes, "..") != 0,
             AN_ERR_DAMAGED, "%s: names the file '%s', but the files of an index must be in the same folder", index,
             AN_QUOTE(name.bytes));
    AN_CHECK(ctx, s->count < MOST_FILES, AN_ERR_UNSUPPORTED, "%s: names more than %d files", index, MOST_FILES);
    const int folder = (int)(strrchr(index, '/') - index) + 1;
    an_text_bytes(&path, index, (size_t)folder);
    an_text_add(&path, "%s", name.bytes);
    AN_TRY(path.status);
    /* a file that leads out of the folder could be any */
    int descriptor = open(path.bytes, SHARD_FLAGS);
    const bool is_link = descriptor < 0 && errno == ELOOP;
    if (is_link) descriptor = open_in_cache(path.bytes);
    AN_CHECK(ctx, descriptor >= 0, AN_ERR_FILE, "%.*s%s: cannot be opened: %s", folder, index, AN_QUOTE(name.bytes),
             is_link
                 ? "it is a link, but the files of an index must be in the same folder, or in the blobs of the same "
                   "cache folder: copy it there"
                 : strerror(errno));
    AN_TRY(an_safetensors_open_file(&s->files[s->count].file, ctx, path.bytes, descriptor));
    s->files[s->count].name = name;
    w->count += an_safetensors_count(s->files[s->count++].file);
fail:
    an_text_destroy(&path);
    return status;
}

/* {"metadata": …, "weight_map": {TENSOR: FILE, …}} */
static an_status read_index(an_weights *w, const char *path, an_json *json) {
    an_context *ctx = w->ctx;
    const shards *s = w->state;
    an_json_string key, tensor, file;
    bool mapped = false;
    an_json_object(json);
    while (an_json_member(json, &key)) {
        const size_t at = json->at;
        if (strcmp(key.bytes, "weight_map") != 0) {
            an_json_skip(json);
            continue;
        }
        if (mapped) an_json_refuse(json, at, "weight_map appears twice");
        mapped = true;
        an_json_object(json);
        while (an_json_member(json, &tensor) && an_json_string_value(json, &file)) {
            int number;
            AN_TRY_RETURN(open_shard(w, path, file, &number));
            if (an_safetensors_find(s->files[number].file, tensor.bytes) < 0)
                return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: says that '%s' is in %s, but that file does not have it",
                                path, AN_QUOTE(tensor.bytes), AN_QUOTE(file.bytes));
        }
    }
    if (!an_json_end(json)) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: %s", path, json->at, json->problem);
    if (!mapped)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has no weight_map, the list of tensors and their files", path);
    return AN_OK;
}

static an_status open_index(an_weights *w, const char *path) {
    an_status status;
    an_context *ctx = w->ctx;
    shards *s = w->state;
    char message[AN_MESSAGE_BYTES], *text = NULL;
    size_t bytes = 0;
    const an_note note = {message, sizeof message};
    an_reader file;
    an_json json;
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&file, path, note), note));
    AN_CHECK(ctx, file.size <= MOST_INDEX, AN_ERR_UNSUPPORTED,
             "%s: has %lld bytes, but an index of tensors has at most %d", path, (long long)file.size, MOST_INDEX);
    bytes = (size_t)file.size;
    AN_TRY(an_alloc_raw(ctx, (void **)&text, bytes));
    AN_TRY(an_note_raise(ctx, an_reader_read(&file, 0, text, bytes, note), note));
    an_json_init(&json, text, bytes);
    AN_TRY(read_index(w, path, &json));
fail:
    for (int i = 0; i < s->count; i++) s->files[i].name = (an_json_string){0}; /* the text goes */
    an_release(ctx, (void **)&text, bytes, 1);
    an_reader_close(&file);
    return status;
}

/* What a folder is known by, best first. */
static const struct {
    const char *file;
    an_status (*open)(an_weights *weights, const char *path);
} folders[] = {{"model.safetensors", open_file}, {"model.safetensors.index.json", open_index}};

static an_status open_folder(an_weights *w, const char *path) {
    an_status status = AN_OK;
    an_context *ctx = w->ctx;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        an_text inside;
        an_text_init(&inside, ctx);
        an_text_add(&inside, "%s/%s", path, folders[i].file);
        status = inside.status;
        const bool there = status == AN_OK && access(inside.bytes, F_OK) == 0;
        if (there) status = folders[i].open(w, inside.bytes);
        an_text_destroy(&inside);
        if (there || status != AN_OK) return status;
    }
    return AN_ERROR(ctx, AN_ERR_FILE,
                    "%s: has neither %s nor %s, and is not a run with checkpoints; give the folder of a model or of a "
                    "run, or a safetensors or GGUF file",
                    path, folders[0].file, folders[1].file);
}

an_status an_weights_open_files(an_weights *weights, an_context *ctx, const char *path) {
    an_status status;
    struct stat about;
    if (an_gguf_is(path)) return an_weights_open_gguf(weights, ctx, path);
    *weights = (an_weights){.ctx = ctx, .get = shards_get, .read = shards_read, .close = shards_close};
    AN_TRY_RETURN(an_alloc(ctx, &weights->state, 1, sizeof(shards)));
    weights->is_folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    AN_TRY(weights->is_folder ? open_folder(weights, path) : open_file(weights, path));
    return AN_OK;
fail:
    an_weights_close(weights);
    return status;
}

void an_weights_close(an_weights *weights) {
    if (weights->state) weights->close(weights);
}
