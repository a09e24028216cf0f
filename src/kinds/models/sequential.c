/* Models of type sequential: layers of a config, one after another. */
#include <stdio.h>
#include <string.h>

#include "anneal/config.h"
#include "anneal/models.h"
#include "kinds/fields.h"
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option options[] = {
    EMBEDDING_OPTION,
    OPTION_AT(390, "model.inputs", COUNTS, "auto", "auto", FROM(1), FIXED(MODEL), DERIVED,
              "shape of a sample, such as [1, 28, 28]; auto takes it from the data"),
    OPTION_AT(400, "model.layers", TABLES, REQUIRED, "", ANY, FIXED(MODEL), NO_MEMBER, "list of layers, in order"),
    OPTION_AT(400, "model.layers.type", CHOICE, REQUIRED, "", KINDS(LAYER, ANY), FIXED(MODEL), INTO(IN(an_layer, type)),
              "kind of layer"),
    OPTIONS_AT(400, LAYER, "model.layers"),
    OPTION_AT(400, "model.layers.name", STRING, NONE, "", ANY, FIXED(MODEL), INTO(IN(an_layer, name)),
              "name of the layer in parameter names; its number by default"),
    LOSS_OPTION,
    OPTIONS_END,
};

enum { PLACE = 256 };

/* One layer, as it is read. */
typedef struct {
    an_model_opening *o;
    an_layer *layer;
    const char *path; /* "model.layers[3]" */
} reading;

static an_status get_layer(const reading *r, char place[PLACE]) {
    const an_config *config = r->o->config;
    snprintf(place, PLACE, "%s", an_config_place(config, r->path));
    an_layer_init(r->layer, sizeof *r->layer);
    r->layer->place = place;
    AN_TRY_RETURN(an_config_fill(config, r->path, an_layer, r->layer));
    r->layer->same = r->layer->type == AN_LAYER_CONVOLUTION && an_config_is(config, AN_KEY(r->path, "padding"), "auto");
    return AN_OK;
}

/* Sizes of model.inputs, which must have as many numbers as the data's samples. */
static an_status get_shape(const an_model_opening *o, an_field *given) {
    an_context *ctx = o->ctx;
    static const char path[] = "model.inputs";
    if (an_config_is(o->config, path, "auto")) {
        if (o->dataset) return AN_OK;
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a stream does not describe its samples; set model.inputs",
                        an_config_place(o->config, "model"));
    }
    AN_TRY_RETURN(an_config_counts(o->config, path, AN_MAX_DIMS, given->dims, &given->ndims));
    if (given->ndims >= AN_MAX_DIMS)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a sample has %d dimensions; at most %d are possible",
                        an_config_place(o->config, path), given->ndims, AN_MAX_DIMS - 1);
    if (o->dataset && an_field_elements(given) != an_field_elements(&o->inputs))
        return AN_ERROR(ctx, AN_ERR_SHAPE,
                        "%s: model.inputs is %s, but a sample of the data is %s; remove model.inputs",
                        an_config_place(o->config, path), AN_FIELD_SIZES(given), AN_FIELD_SIZES(&o->inputs));
    return AN_OK;
}

/* Classes are counted only if a layer asks for as many: O(samples). */
static an_status find_classes(an_model_opening *o, const an_layer *layers, int count) {
    bool asked = false;
    for (int i = 0; i < count; i++) asked = asked || (layers[i].type == AN_LAYER_LINEAR && layers[i].features == 0);
    return asked && o->dataset && an_model_wants_classes(o) ? an_model_classes(o) : AN_OK;
}

static an_status build(an_model_opening *o, an_layer *layers, char (*places)[PLACE], int count) {
    an_context *ctx = o->ctx;
    an_sequential_options s;
    an_sequential_options_init(&s, sizeof s);
    an_field shape;
    an_field_init(&shape, sizeof shape);
    for (int i = 0; i < count; i++) {
        char path[32];
        snprintf(path, sizeof path, "model.layers[%d]", i);
        const reading r = {o, &layers[i], path};
        AN_TRY_RETURN(get_layer(&r, places[i]));
    }
    AN_TRY_RETURN(find_classes(o, layers, count));
    AN_TRY_RETURN(get_shape(o, &shape));
    const an_field *inputs = o->dataset ? &o->inputs : &shape;
    s.dtype = o->dtype;
    AN_TRY_RETURN(an_model_loss_kind(o, &s.loss));
    s.input_ndims = inputs->ndims;
    s.inputs = inputs->dims;
    s.shape_ndims = shape.ndims;
    s.shape = shape.ndims > 0 ? shape.dims : NULL;
    s.target_ndims = o->targets.ndims;
    s.targets = o->dataset ? o->targets.dims : NULL;
    s.classes = o->classes;
    s.normalize_inputs = an_model_normalizes(o->config, "data.normalize.inputs");
    s.normalize_targets = an_model_normalizes(o->config, "data.normalize.targets");
    s.layer_count = count;
    s.layers = layers;
    an_embedded_column embedded[AN_MODEL_MOST_EMBEDDED];
    AN_TRY_RETURN(an_model_embedded(o, embedded, &s.embedded_count));
    s.embedded = embedded;
    const an_status status = an_model_sequential(o->graph, ctx, &s);
    bool placed = status == AN_OK; /* a layer's message begins with its place */
    for (int i = 0; i < count && !placed; i++) placed = !strncmp(an_last_error(ctx), places[i], strlen(places[i]));
    if (placed) return status;
    return AN_ERROR(ctx, status, "%s: %s", an_config_place(o->config, "model.layers"), an_last_error(ctx));
}

static an_status open_model(an_model_opening *o) {
    an_status status;
    an_context *ctx = o->ctx;
    const int count = an_config_size(o->config, "model.layers");
    an_layer *layers = NULL;
    char(*places)[PLACE] = NULL;
    AN_TRY(an_alloc(ctx, (void **)&layers, (size_t)count, sizeof *layers));
    AN_TRY(an_alloc(ctx, (void **)&places, (size_t)count, sizeof *places));
    AN_TRY(build(o, layers, places, count));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&layers, (size_t)count, sizeof *layers);
    an_release(ctx, (void **)&places, (size_t)count, sizeof *places);
    return status;
}

const an_model_kind an_model_kind_sequential = {
    .kind = {.name = "sequential", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_model,
    .embeds = true,
};
