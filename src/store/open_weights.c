#include "store/open_weights.h"

#include <string.h>

#include "store/chosen_weights.h"
#include "store/hold.h"
#include "store/inspect.h"

typedef struct {
    an_checkpoint *checkpoint;
    int64_t *indices; /* of the weights among its tensors */
    int64_t *sources; /* the tensors that have their numbers */
    size_t capacity;
} saved;

static an_status saved_get(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const saved *s = w->state;
    an_checkpoint_tensor t;
    an_checkpoint_tensor_init(&t, sizeof t);
    AN_TRY_RETURN(an_checkpoint_tensor_get(s->checkpoint, s->indices[index], &t));
    *tensor = (an_safetensor){.name = t.name,
                              .type = an_safetensors_type_named(t.type),
                              .ndims = t.ndims,
                              .bytes = t.elements * (int64_t)t.element_bytes};
    memcpy(tensor->dims, t.dims, sizeof tensor->dims);
    return AN_OK;
}

static an_status saved_read(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                            int64_t count, void *to) {
    const saved *s = w->state;
    (void)tensor;
    return an_checkpoint_read(s->checkpoint, s->sources[index], first, count, to);
}

static void saved_close(an_weights *w) {
    saved *s = w->state;
    an_release(w->ctx, (void **)&s->sources, s->capacity, sizeof *s->sources);
    an_release(w->ctx, (void **)&s->indices, s->capacity, sizeof *s->indices);
    an_checkpoint_close(&s->checkpoint);
    an_release(w->ctx, &w->state, 1, sizeof *s);
}

static bool is_saved(an_context *ctx, const char *path) {
    char chosen[AN_FILE_PATH];
    an_manifest *manifest = NULL;
    int hold = AN_HOLD_NONE;
    const bool is_run = an_checkpoint_newest(ctx, path, chosen, &manifest, &hold) == AN_OK && *chosen;
    an_manifest_destroy(&manifest);
    an_hold_end(&hold);
    return is_run || an_checkpoint_has_manifest(path);
}

/* Its bytes are held against their hashes first: what another run starts from must be what was written. */
static an_status open_saved(an_weights *weights, an_context *ctx, const char *path, an_model_weights choice) {
    an_status status;
    saved *s = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    *weights = (an_weights){.ctx = ctx, .is_saved = true, .get = saved_get, .read = saved_read, .close = saved_close};
    AN_TRY_RETURN(an_alloc(ctx, &weights->state, 1, sizeof *s));
    s = weights->state;
    AN_TRY(an_checkpoint_open(&s->checkpoint, ctx, path));
    AN_TRY(an_checkpoint_info_get(s->checkpoint, &info));
    AN_TRY(an_checkpoint_verify(ctx, info.path));
    const an_manifest *m = s->checkpoint->manifest;
    bool average;
    AN_TRY(an_choose_weights(ctx, m, info.path, choice, &average));
    s->capacity = (size_t)info.tensors;
    AN_TRY(an_alloc(ctx, (void **)&s->indices, s->capacity, sizeof *s->indices));
    AN_TRY(an_alloc(ctx, (void **)&s->sources, s->capacity, sizeof *s->sources));
    for (int64_t i = 0; i < info.tensors; i++) {
        an_checkpoint_tensor t;
        an_checkpoint_tensor_init(&t, sizeof t);
        AN_TRY(an_checkpoint_tensor_get(s->checkpoint, i, &t));
        if (t.role != AN_SAVED_WEIGHT) continue;
        s->sources[weights->count] = m ? an_manifest_source(m, i, average) : i;
        s->indices[weights->count++] = i;
    }
    return AN_OK;
fail:
    an_weights_close(weights);
    return status;
}

an_status an_weights_open(an_weights *weights, an_context *ctx, const char *path, an_model_weights choice) {
    if (is_saved(ctx, path)) return open_saved(weights, ctx, path, choice);
    bool average;
    AN_TRY_RETURN(an_choose_weights(ctx, NULL, path, choice, &average));
    return an_weights_open_files(weights, ctx, path);
}
