/* Writes one safetensors file from a checkpoint, tensor by tensor in pieces of constant size, so that nothing is ever
 * gathered. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/guard.h"
#include "store/chosen_weights.h"
#include "store/inspect.h"

enum { PIECE = 4 << 20, ALIGNMENT = 64 };

typedef struct {
    const an_checkpoint *checkpoint;
    int64_t *indices; /* of what is written */
    an_safetensor *entries;
    size_t count, capacity;
    char *encoding; /* of the data's columns and classes; NULL: none */
    an_text header;
    char *piece;
    int file;
    char beside[AN_FILE_PATH];
} exporting;

static an_status choose(exporting *e) {
    const an_checkpoint *c = e->checkpoint;
    an_context *ctx = c->ctx;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    int64_t at = 0;
    bool average;
    AN_TRY_RETURN(an_checkpoint_info_get(c, &info));
    AN_TRY_RETURN(an_choose_weights(ctx, c->manifest, c->path, c->chosen, &average));
    e->capacity = (size_t)info.tensors;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&e->indices, e->capacity, sizeof *e->indices));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&e->entries, e->capacity, sizeof *e->entries));
    for (int64_t i = 0; i < info.tensors; i++) {
        an_checkpoint_tensor t;
        an_checkpoint_tensor_init(&t, sizeof t);
        AN_TRY_RETURN(an_checkpoint_tensor_get(c, i, &t));
        if (t.role != AN_SAVED_WEIGHT) continue;
        an_safetensor *entry = &e->entries[e->count];
        *entry = (an_safetensor){.name = t.name,
                                 .type = an_safetensors_type_named(t.type),
                                 .ndims = t.ndims,
                                 .begin = at,
                                 .bytes = t.elements * (int64_t)t.element_bytes};
        memcpy(entry->dims, t.dims, sizeof entry->dims);
        e->indices[e->count++] = c->manifest ? an_manifest_source(c->manifest, i, average) : i;
        at += entry->bytes;
    }
    /* What inputs and classes mean goes along: tensors alone do not say it. */
    if (c->manifest && an_manifest_find_file(c->manifest, "encoding.json") >= 0)
        AN_TRY_RETURN(an_checkpoint_text(c, "encoding.json", &e->encoding));
    return an_safetensors_header(&e->header, e->entries, e->count, ALIGNMENT, e->encoding);
}

static an_status write_tensor(exporting *e, size_t which, an_note note) {
    an_context *ctx = e->checkpoint->ctx;
    const an_safetensor *entry = &e->entries[which];
    const int64_t size = (int64_t)entry->type->size, elements = entry->bytes / size, most = PIECE / size;
    for (int64_t begin = 0; begin < elements; begin += most) {
        const int64_t count = elements - begin < most ? elements - begin : most;
        AN_TRY_RETURN(an_checkpoint_read(e->checkpoint, e->indices[which], begin, count, e->piece));
        AN_TRY_RETURN(
            an_note_raise(ctx, an_file_write(e->file, e->piece, (size_t)(count * size), e->beside, note), note));
    }
    return AN_OK;
}

static an_status write_file(exporting *e, const char *file) {
    an_context *ctx = e->checkpoint->ctx;
    char text[1024] = "";
    const an_note note = {text, sizeof text};
    AN_TRY_RETURN(an_note_raise(ctx, an_file_write(e->file, e->header.bytes, e->header.length, e->beside, note), note));
    for (size_t i = 0; i < e->count; i++) AN_TRY_RETURN(write_tensor(e, i, note));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_sync(e->file, e->beside, note), note));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_close(&e->file, e->beside, note), note));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_rename(e->beside, file, note), note));
    return an_note_raise(ctx, an_parent_sync(file, note), note);
}

/* What is exported was held against its hashes first: a damaged weight must not get a file in which nobody can see it. */
an_status an_checkpoint_export(const an_checkpoint *checkpoint, const char *file) {
    AN_GUARD;
    AN_NEED(checkpoint, file);
    an_status status;
    an_context *ctx = checkpoint->ctx;
    exporting e = {.checkpoint = checkpoint, .file = -1};
    char message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    an_text_init(&e.header, ctx);
    if (checkpoint->manifest) AN_TRY(an_checkpoint_verify(ctx, checkpoint->path));
    AN_TRY(choose(&e));
    AN_TRY(an_alloc_raw(ctx, (void **)&e.piece, PIECE));
    AN_CHECK(ctx, snprintf(e.beside, sizeof e.beside, "%s.new", file) < (int)sizeof e.beside, AN_ERR_ARGUMENT,
             "the path is too long: %.100s…", file);
    AN_TRY(an_note_raise(ctx, an_file_open(&e.file, e.beside, O_WRONLY | O_CREAT | O_TRUNC, note), note));
    status = write_file(&e, file);
    if (status != AN_OK) unlink(e.beside);
fail:
    if (e.file >= 0) close(e.file);
    an_release(ctx, (void **)&e.piece, PIECE, 1);
    an_release(ctx, (void **)&e.entries, e.capacity, sizeof *e.entries);
    an_release(ctx, (void **)&e.indices, e.capacity, sizeof *e.indices);
    an_string_release(ctx, &e.encoding);
    an_text_destroy(&e.header);
    return status;
}
