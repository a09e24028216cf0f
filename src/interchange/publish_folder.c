/* A folder as Hugging Face has them: config.json, weights in one safetensors file or several with an index, and what
 * the tokenizer needs. config.json comes last, so a folder that has one is complete. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/status.h"
#include "formats/conv1d.h"
#include "formats/weights_view.h"
#include "interchange/export_weights.h"
#include "interchange/publish.h"
#include "pretrained/joints.h"

enum { ALIGNMENT = 64, FILE_NAME = 48 };

typedef struct {
    const an_publication *publication;
    an_context *ctx;
    const char *folder;
    an_safetensor *entries; /* `begin` counts from 0 in each file */
    int *files;             /* of each, the number of its file */
    size_t count;
    int file_count;
    int64_t bytes; /* of all */
} writing;

/* ---- names and layout ---- */

static an_status view_weights(const an_publication *p) {
    an_status status;
    an_context *ctx = p->ctx;
    const size_t count = (size_t)p->weights->count;
    const an_family *family = p->description->family;
    an_view_tensor *tensors = NULL;
    an_arena arena;
    an_arena_init(&arena, ctx);
    AN_TRY(an_alloc(ctx, (void **)&tensors, count + 1, sizeof *tensors));
    for (size_t i = 0; i < count; i++) {
        an_safetensor tensor;
        char *name = NULL;
        AN_TRY(p->weights->get(p->weights, (int64_t)i, &tensor));
        const bool bare = !family->prefix || (family->prefixed && !family->prefixed(p->description, tensor.name));
        const char *prefix = bare ? "" : family->prefix;
        const size_t length = strlen(tensor.name) + strlen(prefix) + 1;
        AN_TRY(an_arena_alloc(&arena, (void **)&name, length, 1));
        snprintf(name, length, "%s%s", prefix, tensor.name);
        tensors[i] = (an_view_tensor){
            .index = (int64_t)i, .name = name, .transposed = tensor.ndims == 2 && an_conv1d_has(tensor.name)};
    }
    AN_TRY(an_weights_view(p->weights, tensors, count));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&tensors, count + 1, sizeof *tensors);
    an_arena_destroy(&arena);
    return status;
}

/* ---- weights ---- */

/* Which tensor goes into which file: a file is full when the next would not fit. */
static an_status lay_out(writing *w) {
    an_context *ctx = w->ctx;
    const an_publication *p = w->publication;
    const an_safetensors_type *type = an_safetensors_type_named(p->type->shown.name);
    int64_t at = 0;
    for (size_t i = 0; i < w->count; i++) {
        an_safetensor *e = &w->entries[i];
        AN_TRY_RETURN(p->weights->get(p->weights, (int64_t)i, e));
        e->type = type;
        if (!an_safetensor_measure(e, &e->bytes))
            return AN_ERROR(ctx, AN_ERR_OVERFLOW, "'%s' has more bytes than 63 bits can count", e->name);
        if (at > 0 && e->bytes > p->max_bytes - at) {
            w->file_count++;
            at = 0;
        }
        e->begin = at;
        w->files[i] = w->file_count;
        at += e->bytes;
        w->bytes += e->bytes;
    }
    w->file_count++;
    return AN_OK;
}

static void name_file(const writing *w, int number, char name[FILE_NAME]) {
    if (w->file_count == 1)
        snprintf(name, FILE_NAME, "model.safetensors");
    else
        snprintf(name, FILE_NAME, "model-%05d-of-%05d.safetensors", number + 1, w->file_count);
}

static an_status write_file(const writing *w, int number) {
    an_status status;
    an_context *ctx = w->ctx;
    char name[FILE_NAME], path[AN_FILE_PATH];
    size_t first = 0, count = 0;
    an_export_file f = {0};
    an_text header;
    an_text_init(&header, ctx);
    while (w->files[first] != number) first++;
    while (first + count < w->count && w->files[first + count] == number) count++;
    name_file(w, number, name);
    AN_CHECK(ctx, an_path_join(path, w->folder, name), AN_ERR_ARGUMENT, "the path is too long: %.100s…", w->folder);
    AN_TRY(an_safetensors_header(&header, w->entries + first, count, ALIGNMENT, NULL));
    AN_TRY(an_export_file_open(&f, ctx, path));
    AN_TRY(an_export_file_bytes(&f, header.bytes, header.length));
    for (size_t i = first; i < first + count; i++)
        AN_TRY(an_export_file_weights(&f, w->publication->weights, (int64_t)i, w->publication->type));
    AN_TRY(an_export_file_finish(&f));
    status = AN_OK;
fail:
    an_export_file_close(&f);
    an_text_destroy(&header);
    return status;
}

static an_status write_index(const writing *w) {
    an_status status;
    an_context *ctx = w->ctx;
    char name[FILE_NAME], path[AN_FILE_PATH], message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    an_text text;
    an_text_init(&text, ctx);
    an_json_writer json = an_text_json(&text, AN_JSON_LINES), *j = &json;
    an_json_write_object(j, NULL);
    an_json_write_object(j, "metadata");
    an_json_write_integer(j, "total_size", w->bytes);
    an_json_write_end(j);
    an_json_write_object(j, "weight_map");
    for (size_t i = 0; i < w->count; i++) {
        name_file(w, w->files[i], name);
        an_json_write_string(j, w->entries[i].name, name);
    }
    an_json_write_end(j);
    an_json_write_finish(j);
    AN_TRY(text.status);
    AN_CHECK(ctx, an_path_join(path, w->folder, "model.safetensors.index.json"), AN_ERR_ARGUMENT,
             "the path is too long: %.100s…", w->folder);
    AN_TRY(an_note_raise(ctx, an_file_replace(path, text.bytes, text.length, note), note));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

static an_status write_weights(writing *w) {
    an_status status;
    an_context *ctx = w->ctx;
    w->count = (size_t)w->publication->weights->count;
    AN_TRY(an_alloc(ctx, (void **)&w->entries, w->count + 1, sizeof *w->entries));
    AN_TRY(an_alloc(ctx, (void **)&w->files, w->count + 1, sizeof *w->files));
    AN_TRY(lay_out(w));
    for (int i = 0; i < w->file_count; i++) AN_TRY(write_file(w, i));
    if (w->file_count > 1) AN_TRY(write_index(w));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&w->files, w->count + 1, sizeof *w->files);
    an_release(ctx, (void **)&w->entries, w->count + 1, sizeof *w->entries);
    return status;
}

/* ---- all of it ---- */

/* Files of another model beside these would be read instead of them, or with them. */
static an_status check_folder(an_context *ctx, const char *folder) {
    static const char *const files[] = {"config.json", "model.safetensors", "model.safetensors.index.json"};
    char path[AN_FILE_PATH];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (an_path_join(path, folder, files[i]) && an_file_exists(path))
            return AN_ERROR(ctx, AN_ERR_FILE,
                            "%s: is there already, and a model is written into a folder that has none: remove that "
                            "folder, or name another",
                            path);
    return AN_OK;
}

an_status an_publish_folder(const an_publication *p, const char *folder) {
    an_context *ctx = p->ctx;
    char message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    writing w = {.publication = p, .ctx = ctx, .folder = folder};
    if (p->type->widen)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "safetensors has no type %s: write the folder in f32, f16 or bf16, or a GGUF file",
                        p->type->shown.name);
    AN_TRY_RETURN(check_folder(ctx, folder));
    AN_TRY_RETURN(an_note_raise(ctx, an_folders_make(folder, note), note));
    AN_TRY_RETURN(an_weights_join(p->weights, p->description->family));
    AN_TRY_RETURN(view_weights(p));
    AN_TRY_RETURN(write_weights(&w));
    AN_TRY_RETURN(an_publish_tokenizer(p, folder));
    AN_TRY_RETURN(an_publish_generation(p, folder));
    return an_publish_config(p, folder);
}
