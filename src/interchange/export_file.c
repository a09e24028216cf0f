#include "interchange/export_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/chosen_weights.h"

enum { PIECE = 4 << 20 };

an_status an_export_list_create(an_export_list *list, const an_checkpoint *checkpoint, const an_export_names *names) {
    an_context *ctx = checkpoint->ctx;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    bool average;
    *list = (an_export_list){.checkpoint = checkpoint};
    if (checkpoint->manifest) AN_TRY_RETURN(an_checkpoint_verify(ctx, checkpoint->path));
    AN_TRY_RETURN(an_checkpoint_info_get(checkpoint, &info));
    AN_TRY_RETURN(an_choose_weights(ctx, checkpoint->manifest, checkpoint->path, checkpoint->chosen, &average));
    list->capacity = (size_t)info.tensors;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&list->indices, list->capacity, sizeof *list->indices));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&list->entries, list->capacity, sizeof *list->entries));
    for (int64_t i = 0; i < info.tensors; i++) {
        an_checkpoint_tensor t;
        an_checkpoint_tensor_init(&t, sizeof t);
        AN_TRY_RETURN(an_checkpoint_tensor_get(checkpoint, i, &t));
        if (t.role != AN_SAVED_WEIGHT) continue;
        an_safetensor *entry = &list->entries[list->count];
        const char *name = t.name;
        if (names) AN_TRY_RETURN(names->rename(names, t.name, &name));
        *entry = (an_safetensor){.name = name,
                                 .type = an_safetensors_type_named(t.type),
                                 .ndims = t.ndims,
                                 .begin = list->bytes,
                                 .bytes = t.elements * (int64_t)t.element_bytes};
        memcpy(entry->dims, t.dims, sizeof entry->dims);
        list->indices[list->count++] = checkpoint->manifest ? an_manifest_source(checkpoint->manifest, i, average) : i;
        list->bytes += entry->bytes;
    }
    return AN_OK;
}

void an_export_list_destroy(an_export_list *list) {
    if (!list->checkpoint) return;
    an_context *ctx = list->checkpoint->ctx;
    an_release(ctx, (void **)&list->entries, list->capacity, sizeof *list->entries);
    an_release(ctx, (void **)&list->indices, list->capacity, sizeof *list->indices);
}

an_status an_export_file_open(an_export_file *f, an_context *ctx, const char *path) {
    char message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    *f = (an_export_file){.ctx = ctx, .path = path, .file = -1};
    if (snprintf(f->beside, sizeof f->beside, "%s.new", path) >= (int)sizeof f->beside)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", path);
    AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&f->piece, PIECE));
    return an_note_raise(ctx, an_file_open(&f->file, f->beside, O_WRONLY | O_CREAT | O_TRUNC, note), note);
}

an_status an_export_file_bytes(an_export_file *f, const void *bytes, size_t length) {
    char message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    return an_note_raise(f->ctx, an_file_write(f->file, bytes, length, f->beside, note), note);
}

an_status an_export_file_tensor(an_export_file *f, const an_export_list *list, size_t which) {
    const an_safetensor *entry = &list->entries[which];
    const int64_t size = (int64_t)entry->type->size, elements = entry->bytes / size, maximum = PIECE / size;
    for (int64_t begin = 0; begin < elements; begin += maximum) {
        const int64_t count = elements - begin < maximum ? elements - begin : maximum;
        AN_TRY_RETURN(an_checkpoint_read(list->checkpoint, list->indices[which], begin, count, f->piece));
        AN_TRY_RETURN(an_export_file_bytes(f, f->piece, (size_t)(count * size)));
    }
    return AN_OK;
}

an_status an_export_file_finish(an_export_file *f) {
    an_context *ctx = f->ctx;
    char message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    AN_TRY_RETURN(an_note_raise(ctx, an_file_sync(f->file, f->beside, note), note));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_close(&f->file, f->beside, note), note));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_rename(f->beside, f->path, note), note));
    *f->beside = 0; /* there is nothing to remove any more */
    return an_note_raise(ctx, an_parent_sync(f->path, note), note);
}

void an_export_file_close(an_export_file *f) {
    if (!f->ctx) return;
    if (f->file >= 0) close(f->file);
    if (f->piece && *f->beside) unlink(f->beside);
    f->file = -1;
    an_release(f->ctx, (void **)&f->piece, PIECE, 1);
}
