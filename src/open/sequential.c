/* Models of type sequential: layers of a config, one after another. */
#include <stdio.h>
#include <string.h>

#include "anneal/config.h"
#include "anneal/models.h"
#include "open/open.h"

enum { PLACE = 256 };

/* One layer, as it is read. */
typedef struct {
    an_model_opening *o;
    an_layer *layer;
    const char *path; /* "model.layers[3]" */
} reading;

static an_status get_count(const reading *r, const char *key, int64_t *value) {
    return an_open_count(r->o->config, AN_KEY(r->path, key), value);
}

static an_status get_real(const reading *r, const char *key, double *value) {
    return an_config_real(r->o->config, AN_KEY(r->path, key), value);
}

static an_status get_bias(const reading *r) {
    return an_config_bool(r->o->config, AN_KEY(r->path, "bias"), &r->layer->bias);
}

static an_status get_linear(const reading *r) {
    an_context *ctx = r->o->ctx;
    AN_TRY_RETURN(get_bias(r));
    return get_count(r, "size", &r->layer->features);
}

static an_status get_window(const reading *r) {
    an_context *ctx = r->o->ctx;
    AN_TRY_RETURN(get_count(r, "window", &r->layer->window));
    AN_TRY_RETURN(get_count(r, "stride", &r->layer->stride));
    return get_count(r, "padding", &r->layer->padding);
}

static an_status get_convolution(const reading *r) {
    an_context *ctx = r->o->ctx;
    AN_TRY_RETURN(get_bias(r));
    AN_TRY_RETURN(get_count(r, "filters", &r->layer->filters));
    r->layer->same = an_config_is(r->o->config, AN_KEY(r->path, "padding"), "auto");
    return get_window(r);
}

static an_status get_dropout(const reading *r) {
    return get_real(r, "rate", &r->layer->rate);
}

static an_status get_norm(const reading *r) {
    return get_real(r, "epsilon", &r->layer->epsilon);
}

static an_status get_batch_norm(const reading *r) {
    an_context *ctx = r->o->ctx;
    AN_TRY_RETURN(get_real(r, "momentum", &r->layer->momentum));
    return get_norm(r);
}

static const struct {
    const char *name;
    an_status (*get)(const reading *r); /* NULL: it has no options */
} types[] = {
    [AN_LAYER_LINEAR] = {"linear", get_linear},
    [AN_LAYER_CONVOLUTION] = {"convolution", get_convolution},
    [AN_LAYER_MAX_POOL] = {"max_pool", get_window},
    [AN_LAYER_AVERAGE_POOL] = {"average_pool", get_window},
    [AN_LAYER_FLATTEN] = {"flatten", NULL},
    [AN_LAYER_RELU] = {"relu", NULL},
    [AN_LAYER_GELU] = {"gelu", NULL},
    [AN_LAYER_TANH] = {"tanh", NULL},
    [AN_LAYER_SILU] = {"silu", NULL},
    [AN_LAYER_SIGMOID] = {"sigmoid", NULL},
    [AN_LAYER_DROPOUT] = {"dropout", get_dropout},
    [AN_LAYER_BATCH_NORM] = {"batch_norm", get_batch_norm},
    [AN_LAYER_LAYER_NORM] = {"layer_norm", get_norm},
    [AN_LAYER_RMS_NORM] = {"rms_norm", get_norm},
};
enum { TYPES = sizeof types / sizeof *types };

static an_status get_layer(const reading *r, char place[PLACE]) {
    an_context *ctx = r->o->ctx;
    an_config *config = r->o->config;
    int type = 0;
    while (type < TYPES && !an_config_is(config, AN_KEY(r->path, "type"), types[type].name)) type++;
    snprintf(place, PLACE, "%s", an_config_place(config, r->path));
    if (type == TYPES) return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: layers of this type are not supported yet", place);
    an_layer_init(r->layer, sizeof *r->layer);
    r->layer->type = (an_layer_type)type;
    r->layer->place = place;
    if (an_config_origin_of(config, AN_KEY(r->path, "name")) != AN_ORIGIN_NONE)
        AN_TRY_RETURN(an_config_string(config, AN_KEY(r->path, "name"), &r->layer->name));
    return types[type].get ? types[type].get(r) : AN_OK;
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
    if (o->dataset && an_open_elements(given) != an_open_elements(&o->inputs))
        return AN_ERROR(ctx, AN_ERR_SHAPE,
                        "%s: model.inputs is %s, but a sample of the data is %s; remove model.inputs",
                        an_config_place(o->config, path), AN_FIELD_SIZES(given), AN_FIELD_SIZES(&o->inputs));
    return AN_OK;
}

/* Classes are counted only if a layer asks for as many: O(samples). */
static an_status find_classes(an_model_opening *o, const an_layer *layers, int count) {
    bool asked = false;
    for (int i = 0; i < count; i++) asked = asked || (layers[i].type == AN_LAYER_LINEAR && layers[i].features == 0);
    return asked && o->dataset && an_open_wants_classes(o) ? an_open_classes(o) : AN_OK;
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
    AN_TRY_RETURN(an_open_loss_kind(o, &s.loss));
    s.input_ndims = inputs->ndims;
    s.inputs = inputs->dims;
    s.shape_ndims = shape.ndims;
    s.shape = shape.ndims > 0 ? shape.dims : NULL;
    s.target_ndims = o->targets.ndims;
    s.targets = o->dataset ? o->targets.dims : NULL;
    s.classes = o->classes;
    s.normalize_inputs = an_open_normalizes(o->config, "data.normalize.inputs");
    s.normalize_targets = an_open_normalizes(o->config, "data.normalize.targets");
    s.layer_count = count;
    s.layers = layers;
    an_embedded_column embedded[AN_OPEN_MOST_EMBEDDED];
    AN_TRY_RETURN(an_open_embedded(o, embedded, &s.embedded_count));
    s.embedded = embedded;
    const an_status status = an_model_sequential(o->graph, ctx, &s);
    bool placed = status == AN_OK; /* a layer's message begins with its place */
    for (int i = 0; i < count && !placed; i++) placed = !strncmp(an_last_error(ctx), places[i], strlen(places[i]));
    if (placed) return status;
    return AN_ERROR(ctx, status, "%s: %s", an_config_place(o->config, "model.layers"), an_last_error(ctx));
}

an_status an_open_sequential(an_model_opening *o) {
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
