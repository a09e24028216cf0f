#include "store/load.h"

#include <stdlib.h>
#include <string.h>

#include "store/inspect.h"
#include "store/layout.h"
#include "store/read.h"

enum { MOST_LISTED = 8 };

/* Where the slices of a tensor go, in the order of files. */
typedef struct {
    an_file_segment segment;
    int64_t file;
} placed;

typedef struct {
    an_context *ctx;
    placed *items;
    size_t count, capacity;
    char *base;
    size_t size;
} placing;

static an_status place_slice(void *user, const an_manifest_slice *slice) {
    placing *p = user;
    an_context *ctx = p->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&p->items, &p->capacity, p->count + 1, sizeof *p->items));
    p->items[p->count++] = (placed){.segment = {.offset = slice->offset,
                                                .bytes = (slice->end - slice->begin) * (int64_t)p->size,
                                                .dst = p->base + (size_t)slice->begin * p->size},
                                    .file = slice->file};
    return AN_OK;
}

static int compare_placed(const void *a, const void *b) {
    const placed *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->segment.offset < y->segment.offset ? -1 : x->segment.offset > y->segment.offset;
}

/* How many tensors of the checkpoint are to be found in the model. */
static size_t count_wanted(const an_manifest *m, an_load_extent extent) {
    size_t count = 0;
    for (size_t i = 0; i < m->tensor_count; i++)
        count += extent == AN_LOAD_STATE || an_checkpoint_role(m->tensors[i].name) == AN_SAVED_WEIGHT;
    return count;
}

/* All that does not fit, in one message. */
static an_status match(an_params *params, const an_manifest *m, const an_save_layout *layout, const char *folder,
                       size_t wanted, placing *p) {
    an_status status;
    an_context *ctx = p->ctx;
    an_text text;
    size_t bad = 0, found = 0;
    an_text_init(&text, ctx);
    for (size_t i = 0; i < layout->tensor_count; i++) {
        const an_saved_tensor *s = &layout->tensors[i];
        const int64_t index = an_manifest_find(m, s->name);
        int64_t dims[AN_MAX_DIMS] = {0};
        found += index >= 0;
        if (index >= 0) an_manifest_shape(m, (size_t)index, dims);
        const bool fits = index >= 0 && m->tensors[index].ndims == s->ndims && m->tensors[index].dtype == s->dtype &&
                          !memcmp(dims, s->dims, (size_t)s->ndims * sizeof *dims);
        if (!fits && bad++ < MOST_LISTED)
            an_text_add(&text, "\n  '%s' %s", s->name, index < 0 ? "is missing" : "has a different shape or type");
        if (!fits) continue;
        const an_stored *e = &params->entries[s->entry];
        p->base = s->moment ? params->moments[s->moment - 1] : an_params_base(params, e->storage);
        p->base += e->offset;
        p->size = an_dtype_size(s->dtype);
        AN_TRY(an_manifest_slices(m, (size_t)index, place_slice, p));
    }
    if (found < wanted) an_text_add(&text, "\n  it has %zu tensors that the model does not have", wanted - found);
    AN_TRY(text.status);
    AN_CHECK(ctx, bad == 0 && found == wanted, AN_ERR_SHAPE, "%s belongs to a different model:%s%s", folder, text.bytes,
             bad > MOST_LISTED ? "\n  and more" : "");
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

/* The segments of a file with what lies between them: what is no tensor is read for its hash. */
static an_status load_part(an_context *ctx, const an_device *device, const an_manifest *m, int64_t file,
                           const char *folder, const placed *items, size_t count) {
    an_status status;
    an_file_segment *segments = NULL;
    size_t used = 0;
    int64_t at = 0;
    AN_TRY(an_alloc(ctx, (void **)&segments, 2 * count + 1, sizeof *segments));
    for (size_t i = 0; i < count; i++) {
        const an_file_segment *s = &items[i].segment;
        AN_CHECK(ctx, s->offset >= at, AN_ERR_DAMAGED, "%s/%s: two tensors overlap in this file", folder,
                 m->files[file].name);
        if (s->offset > at) segments[used++] = (an_file_segment){.offset = at, .bytes = s->offset - at};
        segments[used++] = *s;
        at = s->offset + s->bytes;
    }
    if (at < m->files[file].bytes)
        segments[used++] = (an_file_segment){.offset = at, .bytes = m->files[file].bytes - at};
    AN_TRY(an_checkpoint_load_file(ctx, device, &m->files[file], folder, segments, used));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&segments, 2 * count + 1, sizeof *segments);
    return status;
}

an_status an_checkpoint_load(an_context *ctx, an_params *params, const an_graph *graph, const an_manifest *m,
                             const char *folder, an_load_extent extent) {
    an_status status;
    an_save_layout *layout = NULL;
    placing p = {.ctx = ctx};
    AN_TRY(an_save_layout_create(&layout, ctx, graph, params->moment_count, 1));
    AN_TRY(match(params, m, layout, folder, count_wanted(m, extent), &p));
    if (p.count) qsort(p.items, p.count, sizeof *p.items, compare_placed);
    size_t first = 0;
    for (size_t file = 0; file < m->file_count; file++) {
        size_t count = 0;
        while (first + count < p.count && p.items[first + count].file == (int64_t)file) count++;
        if (count > 0 || extent == AN_LOAD_STATE)
            AN_TRY(load_part(ctx, params->device, m, (int64_t)file, folder, p.items + first, count));
        first += count;
    }
    params->version++;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&p.items, p.capacity, sizeof *p.items);
    an_save_layout_destroy(&layout);
    return status;
}
