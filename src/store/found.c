#include "store/found.h"

#include <stdlib.h>
#include <string.h>

#include "store/chosen_weights.h"
#include "store/inspect.h"

enum { MOST_LISTED = 8 };

/* How many tensors of the checkpoint are to be found in the model. */
static size_t count_wanted(const an_manifest *m, an_load_extent extent) {
    size_t count = 0;
    for (size_t i = 0; i < m->tensor_count; i++)
        count += extent == AN_LOAD_STATE || an_checkpoint_role(m->tensors[i].name) == AN_SAVED_WEIGHT;
    return count;
}

typedef struct {
    an_found *found;
    size_t tensor;
} placing;

static an_status place_slice(void *user, const an_manifest_slice *slice) {
    const placing *p = user;
    an_found *f = p->found;
    an_context *ctx = f->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&f->pieces, &f->capacity, f->count + 1, sizeof *f->pieces));
    f->pieces[f->count++] = (an_saved_piece){.tensor = p->tensor,
                                             .file = (size_t)slice->file,
                                             .begin = slice->begin,
                                             .end = slice->end,
                                             .offset = slice->offset};
    return AN_OK;
}

/* The tensor that goes to the place of this name; -1: there is none. */
static int64_t find(const an_manifest *m, const char *name, an_load_extent extent) {
    const int64_t average = extent == AN_LOAD_AVERAGE ? an_manifest_find_average(m, name) : -1;
    return average >= 0 ? average : an_manifest_find(m, name);
}

/* All that does not fit, in one message. */
static an_status match(an_found *f, const an_manifest *m, const char *folder, an_load_extent extent) {
    an_status status;
    an_context *ctx = f->ctx;
    an_text text;
    const size_t wanted = count_wanted(m, extent);
    size_t bad = 0, found = 0;
    an_text_init(&text, ctx);
    for (size_t i = 0; i < f->layout->tensor_count; i++) {
        const an_saved_tensor *s = &f->layout->tensors[i];
        const int64_t index = find(m, s->name, extent);
        int64_t dims[AN_MAX_DIMS] = {0};
        found += index >= 0;
        if (index >= 0) an_manifest_shape(m, (size_t)index, dims);
        const bool fits = index >= 0 && m->tensors[index].ndims == s->ndims && m->tensors[index].dtype == s->dtype &&
                          !memcmp(dims, s->dims, (size_t)s->ndims * sizeof *dims);
        if (!fits && bad++ < MOST_LISTED)
            an_text_add(&text, "\n  '%s' %s", s->name, index < 0 ? "is missing" : "has a different shape or type");
        if (fits) AN_TRY(an_manifest_slices(m, (size_t)index, place_slice, &(placing){f, i}));
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

static int compare(const void *a, const void *b) {
    const an_saved_piece *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static an_status check_order(const an_found *f, const an_manifest *m, const char *folder) {
    for (size_t i = 1; i < f->count; i++) {
        const an_saved_piece *p = &f->pieces[i - 1], *next = &f->pieces[i];
        const int64_t size = (int64_t)an_dtype_size(f->layout->tensors[p->tensor].dtype);
        if (next->file == p->file && next->offset < p->offset + (p->end - p->begin) * size)
            return AN_ERROR(f->ctx, AN_ERR_DAMAGED, "%s/%s: two tensors overlap in this file", folder,
                            m->files[p->file].name);
    }
    return AN_OK;
}

an_status an_found_create(an_found *found, an_context *ctx, const an_graph *graph, an_kept kept,
                          const an_manifest *manifest, const char *folder, an_load_extent extent) {
    an_status status;
    *found = (an_found){.ctx = ctx};
    AN_TRY(an_save_layout_create(&found->layout, ctx, graph, kept, 1));
    AN_TRY(match(found, manifest, folder, extent));
    if (found->count) qsort(found->pieces, found->count, sizeof *found->pieces, compare);
    AN_TRY(check_order(found, manifest, folder));
    return AN_OK;
fail:
    an_found_destroy(found);
    return status;
}

void an_found_destroy(an_found *f) {
    if (!f->ctx) return;
    an_release(f->ctx, (void **)&f->pieces, f->capacity, sizeof *f->pieces);
    an_save_layout_destroy(&f->layout);
}
