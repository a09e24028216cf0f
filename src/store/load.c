#include "store/load.h"

#include "store/found.h"
#include "store/read.h"

/* Where elements `begin` and following of a tensor are in the store. */
static char *memory_of(const an_params *params, const an_saved_tensor *t, int64_t begin) {
    const an_stored *e = &params->entries[t->entry];
    char *base = an_params_part(params, e, t->part);
    return base + e->offset + begin * (int64_t)an_dtype_size(t->dtype);
}

/* The pieces in a file with what lies between them: what is no tensor is read for its hash. */
static an_status load_part(an_params *params, const an_found *found, const an_manifest_file *file, const char *folder,
                           const an_saved_piece *pieces, size_t count) {
    an_status status;
    an_context *ctx = found->ctx;
    an_file_segment *segments = NULL;
    size_t used = 0;
    int64_t at = 0;
    AN_TRY(an_alloc(ctx, (void **)&segments, 2 * count + 1, sizeof *segments));
    for (size_t i = 0; i < count; i++) {
        const an_saved_piece *p = &pieces[i];
        const an_saved_tensor *t = &found->layout->tensors[p->tensor];
        if (p->offset > at) segments[used++] = (an_file_segment){.offset = at, .bytes = p->offset - at};
        segments[used] = (an_file_segment){.offset = p->offset,
                                           .bytes = (p->end - p->begin) * (int64_t)an_dtype_size(t->dtype),
                                           .dst = memory_of(params, t, p->begin)};
        at = p->offset + segments[used++].bytes;
    }
    if (at < file->bytes) segments[used++] = (an_file_segment){.offset = at, .bytes = file->bytes - at};
    AN_TRY(an_checkpoint_load_file(ctx, params->device, file, folder, segments, used));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&segments, 2 * count + 1, sizeof *segments);
    return status;
}

an_status an_checkpoint_load(an_context *ctx, an_params *params, const an_graph *graph, const an_manifest *m,
                             const char *folder, an_load_extent extent) {
    an_status status;
    an_found found;
    AN_TRY(an_found_create(&found, ctx, graph, an_params_kept(params), m, folder, extent));
    params->average.begun = params->average.flat != NULL; /* the tensors of an average go to its own memory */
    size_t first = 0;
    for (size_t file = 0; file < m->file_count; file++) {
        size_t count = 0;
        while (first + count < found.count && found.pieces[first + count].file == file) count++;
        if (count > 0 || extent == AN_LOAD_STATE)
            AN_TRY(load_part(params, &found, &m->files[file], folder, found.pieces + first, count));
        first += count;
    }
    params->version++;
    status = AN_OK;
fail:
    an_found_destroy(&found);
    return status;
}
