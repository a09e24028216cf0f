#include "run/restore.h"

#include <stdlib.h>
#include <string.h>

#include "base/heartbeat.h"
#include "store/layout.h"
#include "store/read.h"
#include "train/optimizer_records.h"

enum { MOST_LISTED = 8 };

/* ---- the optimizer ---- */

an_status an_load_check_known(an_context *ctx, const an_manifest *m, const char *folder) {
    const an_saved_optimizer *saved = &m->optimizer;
    if (!*saved->name) return AN_OK;
    const an_optimizer_record *record = an_optimizer_record_find(ctx, saved->name);
    if (!record)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: the run was trained with the optimizer '%s' of another program; this one has %s. Resume "
                        "it with the program that "
                        "adds '%s' (an_context_add_optimizer)",
                        folder, saved->name, an_optimizer_names_list(ctx).text, saved->name);
    if (record->version == saved->version) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_UNSUPPORTED,
        "%s: the run was trained with version %lld of the optimizer '%s', and this program has version %d, which "
        "gives other weights. Resume it with the program that has version %lld, or start a new run",
        folder, (long long)saved->version, saved->name, record->version, (long long)saved->version);
}

an_status an_load_check_optimizer(const an_trainer *t, const an_manifest *m, const char *folder) {
    an_context *ctx = t->ctx;
    const char *now = t->optimizer->record->name;
    AN_TRY_RETURN(an_load_check_known(ctx, m, folder));
    if (!*m->optimizer.name || !strcmp(m->optimizer.name, now)) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_UNSUPPORTED,
        "%s: the run was trained with the optimizer '%s', and this trainer has '%s', to which the saved moments "
        "mean nothing. Take '%s', or start a new run",
        folder, m->optimizer.name, now, m->optimizer.name);
}

/* ---- what goes where ---- */

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

/* All that does not fit, in one message. */
static an_status match(an_trainer *t, const an_manifest *m, const an_save_layout *layout, const char *folder,
                       placing *p) {
    an_status status;
    an_context *ctx = t->ctx;
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
        const an_stored *e = &t->params->entries[s->entry];
        p->base = s->moment ? t->params->moments[s->moment - 1] : an_params_base(t->params, e->storage);
        p->base += e->offset;
        p->size = an_dtype_size(s->dtype);
        AN_TRY(an_manifest_slices(m, (size_t)index, place_slice, p));
    }
    if (found < m->tensor_count)
        an_text_add(&text, "\n  it has %zu tensors that the model does not have", m->tensor_count - found);
    AN_TRY(text.status);
    AN_CHECK(ctx, bad == 0 && found == m->tensor_count, AN_ERR_SHAPE, "%s belongs to a different model:%s%s", folder,
             text.bytes, bad > MOST_LISTED ? "\n  and more" : "");
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

/* The segments of a file with what lies between them: what is no tensor is read for its hash. */
static an_status load_part(an_trainer *t, const an_manifest *m, int64_t file, const char *folder, const placed *items,
                           size_t count) {
    an_status status;
    an_context *ctx = t->ctx;
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
    AN_TRY(an_checkpoint_load_file(ctx, t->params->device, &m->files[file], folder, segments, used));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&segments, 2 * count + 1, sizeof *segments);
    return status;
}

an_status an_load(an_trainer *t, const an_manifest *m, const char *folder) {
    an_status status;
    an_context *ctx = t->ctx;
    an_save_layout *layout = NULL;
    placing p = {.ctx = ctx};
    an_heartbeat_enter(ctx, AN_HEARTBEAT_START, "reads the checkpoint");
    AN_TRY(an_save_layout_create(&layout, ctx, t->graph, t->params->moment_count, 1));
    AN_TRY(match(t, m, layout, folder, &p));
    if (p.count) qsort(p.items, p.count, sizeof *p.items, compare_placed);
    size_t first = 0;
    for (size_t file = 0; file < m->file_count; file++) {
        size_t count = 0;
        while (first + count < p.count && p.items[first + count].file == (int64_t)file) count++;
        AN_TRY(load_part(t, m, (int64_t)file, folder, p.items + first, count));
        first += count;
    }
    t->params->version++;
    an_progress_restore(t, &m->progress);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&p.items, p.capacity, sizeof *p.items);
    an_save_layout_destroy(&layout);
    return status;
}
