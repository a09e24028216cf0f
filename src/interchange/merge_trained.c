/* Layers that were trained whole beside an adapter. Its checkpoint has them, and the files of the
 * model have others, or none. */
#include <string.h>

#include "base/status.h"
#include "formats/conv1d.h"
#include "interchange/merge.h"
#include "ir/adapter.h"
#include "ir/published.h"
#include "pretrained/joints.h"
#include "store/open_weights.h"

typedef struct {
    an_weights base, saved;
    struct {
        bool is_saved;
        int64_t index;
        const char *name; /* of the base's tensor whose place it takes; NULL: its own */
    } * tensors;
    size_t capacity;
} joined;

static an_status get(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const joined *j = w->state;
    const an_weights *from = j->tensors[index].is_saved ? &j->saved : &j->base;
    AN_TRY_RETURN(from->get(from, j->tensors[index].index, tensor));
    if (j->tensors[index].name) tensor->name = j->tensors[index].name;
    return AN_OK;
}

static an_status read(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first, int64_t count,
                      void *to) {
    const joined *j = w->state;
    const an_weights *from = j->tensors[index].is_saved ? &j->saved : &j->base;
    return from->read(from, j->tensors[index].index, tensor, first, count, to);
}

static void close_all(an_weights *w) {
    joined *j = w->state;
    an_weights_close(&j->saved);
    an_weights_close(&j->base);
    an_release(w->ctx, (void **)&j->tensors, j->capacity, sizeof *j->tensors);
    an_release(w->ctx, &w->state, 1, sizeof *j);
}

/* The tensor of the base that has this name in the model; -1: none. */
static an_status find(const an_weights *base, const char *name, int64_t *found, const char **file_name) {
    an_safetensor tensor;
    *found = -1;
    for (int64_t i = 0; i < base->count && *found < 0; i++) {
        AN_TRY_RETURN(base->get(base, i, &tensor));
        if (strcmp(tensor.name, name) != 0 && strcmp(an_published_bare(tensor.name), name) != 0) continue;
        *found = i;
        *file_name = tensor.name;
    }
    return AN_OK;
}

/* Those of the base in their order, with the trained ones in their places, and then the new ones. */
static an_status list(joined *j, an_context *ctx, int64_t *count) {
    an_safetensor tensor;
    *count = j->base.count;
    for (int64_t i = 0; i < j->base.count; i++) j->tensors[i].index = i;
    for (int64_t i = 0; i < j->saved.count; i++) {
        const char *name = NULL;
        int64_t at;
        AN_TRY_RETURN(j->saved.get(&j->saved, i, &tensor));
        if (an_adapter_has(tensor.name)) continue;
        AN_TRY_RETURN(find(&j->base, tensor.name, &at, &name));
        if (an_conv1d_has(tensor.name) && !j->base.is_saved)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                            "'%s' was trained whole beside an adapter, and the files of the model have it as [in, "
                            "out]: it cannot be merged; train it with the adapter (lora.targets) instead",
                            tensor.name);
        if (at < 0) at = (*count)++;
        j->tensors[at].is_saved = true;
        j->tensors[at].index = i;
        j->tensors[at].name = name;
    }
    return AN_OK;
}

static int64_t rows_of(const void *merge, const char *name) {
    const int64_t *dims = an_merge_matrix(merge, name);
    return dims ? dims[0] : 0;
}

an_status an_weights_add_trained(an_weights *weights, an_merge *merge) {
    an_status status;
    an_context *ctx = weights->ctx;
    joined *j = NULL;
    int64_t count = 0;
    AN_TRY_RETURN(an_weights_part(weights, rows_of, merge, &merge->family));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&j, 1, sizeof *j));
    AN_TRY(an_weights_open(&j->saved, ctx, merge->checkpoint->path, merge->checkpoint->chosen));
    j->base = *weights;
    j->capacity = (size_t)(j->base.count + j->saved.count) + 1;
    AN_TRY(an_alloc(ctx, (void **)&j->tensors, j->capacity, sizeof *j->tensors));
    AN_TRY(list(j, ctx, &count));
    *weights = (an_weights){.ctx = ctx, .state = j, .count = count, .get = get, .read = read, .close = close_all};
    return AN_OK;
fail:
    if (j->tensors) an_release(ctx, (void **)&j->tensors, j->capacity, sizeof *j->tensors);
    if (j->saved.close) an_weights_close(&j->saved);
    an_release(ctx, (void **)&j, 1, sizeof *j);
    return status;
}
