#include "pretrained/joints.h"

#include <string.h>

#include "base/status.h"
#include "formats/weights_view.h"

static int count_layers(const an_family_joint *joint) {
    int count = 0;
    while (count < AN_VIEW_JOINED && joint->layers[count]) count++;
    return count;
}

static an_status keep_name(an_arena *names, const char *name, const char **kept) {
    return an_arena_string(names, kept, name, strlen(name));
}

/* ---- apart ---- */

/* The joint of a tensor whose layers the model has instead of it. */
static const an_family_joint *find_apart(const an_family *family, const an_safetensor *tensor, an_rows_of *rows,
                                         const void *model) {
    char layer[AN_LAYER_NAME];
    for (const an_family_joint *joint = family->joints; joint && joint->tensor; joint++) {
        int64_t sum = 0;
        bool all = an_layer_rename(joint->tensor, NULL, tensor->name, NULL) && rows(model, tensor->name) == 0;
        for (int i = 0; all && i < count_layers(joint); i++) {
            an_layer_rename(joint->tensor, joint->layers[i], tensor->name, layer);
            const int64_t own = rows(model, layer);
            all = own > 0;
            sum += own;
        }
        if (all && tensor->ndims > 0 && tensor->dims[0] == sum) return joint;
    }
    return NULL;
}

an_status an_weights_part(an_weights *weights, an_rows_of *rows, const void *model, const an_family **family) {
    an_status status;
    an_context *ctx = weights->ctx;
    const an_weights before = *weights;
    const size_t maximum = (size_t)weights->count * AN_VIEW_JOINED + 1;
    size_t count = 0, parted = 0;
    char layer[AN_LAYER_NAME];
    an_view_tensor *tensors = NULL;
    an_arena names;
    an_arena_init(&names, ctx);
    AN_TRY(an_alloc(ctx, (void **)&tensors, maximum, sizeof *tensors));
    for (int64_t i = 0; i < weights->count; i++) {
        const an_family_joint *joint = NULL;
        const an_family *f;
        an_safetensor tensor;
        AN_TRY(weights->get(weights, i, &tensor));
        for (int k = 0; !joint && (f = an_family_at(k)); k++) {
            joint = find_apart(f, &tensor, rows, model);
            if (joint && family) *family = f;
        }
        if (!joint) tensors[count++] = (an_view_tensor){.index = i, .name = tensor.name};
        for (int64_t k = 0, first = 0; joint && k < count_layers(joint); k++) {
            an_view_tensor *t = &tensors[count++];
            an_layer_rename(joint->tensor, joint->layers[k], tensor.name, layer);
            *t = (an_view_tensor){.index = i, .first_row = first, .rows = rows(model, layer)};
            AN_TRY(keep_name(&names, layer, &t->name));
            first += t->rows;
            parted++;
        }
    }
    if (parted > 0) {
        AN_TRY(an_weights_view(weights, tensors, count));
        weights->is_saved = before.is_saved;
        weights->is_folder = before.is_folder;
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&tensors, maximum, sizeof *tensors);
    an_arena_destroy(&names);
    return status;
}

/* ---- together ---- */

static const an_family_joint *find_joint(const an_family *family, const char *parameter, char tensor[AN_LAYER_NAME],
                                         int *place) {
    for (const an_family_joint *joint = family ? family->joints : NULL; joint && joint->tensor; joint++)
        for (*place = 0; *place < count_layers(joint); ++*place)
            if (an_layer_rename(joint->layers[*place], joint->tensor, parameter, tensor)) return joint;
    *place = -1;
    return NULL;
}

int an_joint_find(const an_family *family, const char *parameter, char tensor[AN_LAYER_NAME]) {
    int place;
    find_joint(family, parameter, tensor, &place);
    return place;
}

static an_status find_layer(const an_weights *weights, const char *name, int64_t *index) {
    an_context *ctx = weights->ctx;
    an_safetensor tensor;
    for (*index = 0; *index < weights->count; ++*index) {
        AN_TRY_RETURN(weights->get(weights, *index, &tensor));
        if (!strcmp(tensor.name, name)) return AN_OK;
    }
    return AN_ERROR(ctx, AN_ERR_DAMAGED, "'%s' is not there, which is part of a tensor of the file", name);
}

an_status an_weights_join(an_weights *weights, const an_family *family) {
    an_status status;
    an_context *ctx = weights->ctx;
    const size_t maximum = (size_t)weights->count + 1;
    size_t count = 0;
    char name[AN_LAYER_NAME], layer[AN_LAYER_NAME];
    an_view_tensor *tensors = NULL;
    an_arena names;
    an_arena_init(&names, ctx);
    if (!family->joints) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&tensors, maximum, sizeof *tensors));
    for (int64_t i = 0; i < weights->count; i++) {
        int place;
        an_safetensor tensor;
        AN_TRY(weights->get(weights, i, &tensor));
        const an_family_joint *joint = find_joint(family, tensor.name, name, &place);
        if (place > 0) continue; /* behind the first */
        an_view_tensor *t = &tensors[count++];
        *t = (an_view_tensor){.index = i, .name = tensor.name};
        if (joint) AN_TRY(keep_name(&names, name, &t->name));
        for (int k = 1; joint && k < count_layers(joint); k++) {
            an_layer_rename(joint->layers[0], joint->layers[k], tensor.name, layer);
            AN_TRY(find_layer(weights, layer, &t->joined[t->joined_count++]));
        }
    }
    AN_TRY(an_weights_view(weights, tensors, count));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&tensors, maximum, sizeof *tensors);
    an_arena_destroy(&names);
    return status;
}
