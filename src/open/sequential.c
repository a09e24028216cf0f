/* Models of type sequential: layers of a config, one after another. A layer with parameters begins a block, which what follows
 * belongs to; a linear layer or a convolution is one deeper than the one before it. */
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "models/model.h"
#include "open/open.h"

typedef struct {
    const an_model_opening *o;
    an_graph *g;
    an_dim batch;
    an_value x, samples; /* what the next layer reads; AN_NONE: no layer drops anything */
    int64_t outputs;     /* that the targets need; 0: not known */
    int last_linear;     /* -1: there is none */
    int weighted;        /* linear layers and convolutions so far */
    bool in_block;
    int index; /* of the layer, and its path */
    char path[AN_PATH_TEXT];
} building;

/* ---- options of a layer ---- */

static const char *place_of(const building *b) {
    return an_config_place(b->o->config, b->path);
}

static an_status get_count(const building *b, const char *key, int64_t *value) {
    return an_open_count(b->o->config, AN_KEY(b->path, key), value);
}

static an_status get_real(const building *b, const char *key, double *value) {
    return an_config_real(b->o->config, AN_KEY(b->path, key), value);
}

/* Rows of features, or images: `ndims` with the sample. */
static an_status expect(const building *b, int ndims, const char *takes, const char *remedy) {
    if (b->g->status != AN_OK || an_value_ndims(b->g, b->x) == ndims) return AN_OK;
    return AN_ERROR(b->o->ctx, AN_ERR_SHAPE, "%s: this layer takes %s, but what comes to it is %s; %s", place_of(b),
                    takes, AN_DESCRIBE(b->g, an_graph_result(b->g, b->x)), remedy);
}

static an_status expect_images(const building *b) {
    return expect(b, 4, "images, [batch,channels,height,width]",
                  "give model.inputs as [channels, height, width], and put it before any flatten");
}

/* ---- one function a layer ---- */

static an_status add_linear(building *b) {
    an_context *ctx = b->o->ctx;
    int64_t size = 0;
    bool bias;
    AN_TRY_RETURN(expect(b, 2, "rows of features, [batch,features]", "put {type: flatten} before it"));
    AN_TRY_RETURN(an_config_bool(b->o->config, AN_KEY(b->path, "bias"), &bias));
    AN_TRY_RETURN(get_count(b, "size", &size));
    if (size == 0 && b->index != b->last_linear)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: only the last linear layer can have the size that targets need; give %s.size", place_of(b),
                        b->path);
    if (size == 0) size = b->outputs;
    if (size == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the data does not say what its targets need; give %s.size",
                        place_of(b), b->path);
    b->x = bias ? an_linear(b->g, b->x, NULL, size) : an_linear_plain(b->g, b->x, NULL, size);
    return AN_OK;
}

static an_status add_convolution(building *b) {
    an_context *ctx = b->o->ctx;
    an_convolution_options c = AN_INIT(c);
    int64_t filters, window, padding = -1;
    bool bias;
    AN_TRY_RETURN(expect_images(b));
    AN_TRY_RETURN(get_count(b, "filters", &filters));
    AN_TRY_RETURN(get_count(b, "window", &window));
    AN_TRY_RETURN(get_count(b, "stride", &c.stride[0]));
    AN_TRY_RETURN(get_count(b, "padding", &padding));
    AN_TRY_RETURN(an_config_bool(b->o->config, AN_KEY(b->path, "bias"), &bias));
    if (padding < 0 && window % 2 == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: no padding keeps the size of an image under a window of %lld; give %s.padding, or take an "
                        "odd window",
                        place_of(b), (long long)window, b->path);
    c.padding[0] = c.padding[1] = padding < 0 ? window / 2 : padding;
    c.stride[1] = c.stride[0];
    b->x = an_convolution_layer_with(b->g, b->x, NULL, filters, window, &c, bias);
    return AN_OK;
}

static an_status get_pool(building *b, an_pool_options *p) {
    an_context *ctx = b->o->ctx;
    AN_TRY_RETURN(expect_images(b));
    AN_TRY_RETURN(get_count(b, "window", &p->window[0]));
    AN_TRY_RETURN(get_count(b, "stride", &p->stride[0]));
    AN_TRY_RETURN(get_count(b, "padding", &p->padding[0]));
    p->window[1] = p->window[0];
    p->stride[1] = p->stride[0];
    p->padding[1] = p->padding[0];
    return AN_OK;
}

static an_status add_max_pool(building *b) {
    an_context *ctx = b->o->ctx;
    an_pool_options p = AN_INIT(p);
    AN_TRY_RETURN(get_pool(b, &p));
    b->x = an_max_pool(b->g, b->x, &p);
    return AN_OK;
}

static an_status add_average_pool(building *b) {
    an_context *ctx = b->o->ctx;
    an_pool_options p = AN_INIT(p);
    AN_TRY_RETURN(get_pool(b, &p));
    b->x = an_average_pool(b->g, b->x, &p);
    return AN_OK;
}

static an_status add_flatten(building *b) {
    b->x = an_reshape(b->g, b->x, AN_DIMS(b->batch, AN_REST));
    return AN_OK;
}

static an_status add_dropout(building *b) {
    an_context *ctx = b->o->ctx;
    double rate;
    AN_TRY_RETURN(get_real(b, "rate", &rate));
    if (rate > 0) b->x = an_dropout(b->g, b->x, b->samples, rate);
    return AN_OK;
}

static an_status add_batch_norm(building *b) {
    an_context *ctx = b->o->ctx;
    double momentum, epsilon;
    AN_TRY_RETURN(get_real(b, "momentum", &momentum));
    AN_TRY_RETURN(get_real(b, "epsilon", &epsilon));
    b->x = an_batch_norm_layer(b->g, b->x, NULL, momentum, epsilon);
    return AN_OK;
}

static an_status add_layer_norm(building *b) {
    an_context *ctx = b->o->ctx;
    double epsilon;
    AN_TRY_RETURN(get_real(b, "epsilon", &epsilon));
    b->x = an_layer_norm_layer(b->g, b->x, NULL, epsilon);
    return AN_OK;
}

static an_status add_rms_norm(building *b) {
    an_context *ctx = b->o->ctx;
    double epsilon;
    AN_TRY_RETURN(get_real(b, "epsilon", &epsilon));
    b->x = an_rms_norm_layer(b->g, b->x, NULL, epsilon);
    return AN_OK;
}

/* ---- the table ---- */

static const struct layer {
    const char *type;
    an_status (*add)(building *b);                       /* NULL: */
    an_value (*activate)(an_graph *graph, an_value src); /* … it is an activation */
    bool is_weighted, has_parameters;
} layers[] = {
    {"linear", add_linear, NULL, true, true},
    {"convolution", add_convolution, NULL, true, true},
    {"max_pool", add_max_pool, NULL, false, false},
    {"average_pool", add_average_pool, NULL, false, false},
    {"flatten", add_flatten, NULL, false, false},
    {"relu", NULL, an_relu, false, false},
    {"gelu", NULL, an_gelu, false, false},
    {"tanh", NULL, an_tanh, false, false},
    {"silu", NULL, an_silu, false, false},
    {"sigmoid", NULL, an_sigmoid, false, false},
    {"dropout", add_dropout, NULL, false, false},
    {"batch_norm", add_batch_norm, NULL, false, true},
    {"layer_norm", add_layer_norm, NULL, false, true},
    {"rms_norm", add_rms_norm, NULL, false, true},
};
enum { LAYERS = sizeof layers / sizeof *layers };

static void go_to(building *b, int index) {
    b->index = index;
    snprintf(b->path, sizeof b->path, "model.layers[%d]", index);
}

static const struct layer *layer_of(const building *b) {
    for (int i = 0; i < LAYERS; i++)
        if (an_config_is(b->o->config, AN_KEY(b->path, "type"), layers[i].type)) return &layers[i];
    return NULL;
}

static an_status begin_block(building *b) {
    an_context *ctx = b->o->ctx;
    char number[16];
    const char *name = number;
    snprintf(number, sizeof number, "%d", b->index);
    if (an_config_origin_of(b->o->config, AN_KEY(b->path, "name")) != AN_ORIGIN_NONE)
        AN_TRY_RETURN(an_config_string(b->o->config, AN_KEY(b->path, "name"), &name));
    if (b->in_block) an_block_end(b->g);
    an_block_begin(b->g, name, b->weighted > 0 ? b->weighted : 1); /* 0 is the depth of embeddings */
    b->in_block = true;
    return AN_OK;
}

static an_status add_layers(building *b, int count) {
    an_context *ctx = b->o->ctx;
    for (int i = 0; i < count; i++) {
        go_to(b, i);
        const struct layer *layer = layer_of(b);
        if (!layer)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: this type of layer cannot be opened yet", place_of(b));
        b->weighted += layer->is_weighted;
        if (layer->has_parameters) AN_TRY_RETURN(begin_block(b));
        if (layer->activate)
            b->x = layer->activate(b->g, b->x);
        else
            AN_TRY_RETURN(layer->add(b));
        if (b->g->status != AN_OK) return AN_ERROR(ctx, b->g->status, "%s: %s", place_of(b), b->g->message);
    }
    if (b->in_block) an_block_end(b->g);
    return AN_OK;
}

/* What must be known before the first layer: the last linear one, and whether sample numbers are needed. */
static an_status look_ahead(building *b, int count) {
    an_context *ctx = b->o->ctx;
    b->last_linear = -1;
    b->samples = AN_NONE;
    for (int i = 0; i < count; i++) {
        double rate = 0;
        go_to(b, i);
        if (an_config_is(b->o->config, AN_KEY(b->path, "type"), "linear")) b->last_linear = i;
        if (!an_config_is(b->o->config, AN_KEY(b->path, "type"), "dropout")) continue;
        AN_TRY_RETURN(get_real(b, "rate", &rate));
        if (rate > 0 && b->samples == AN_NONE) b->samples = an_input(b->g, "samples", AN_DTYPE_I64, AN_DIMS(b->batch));
    }
    return AN_OK;
}

/* ---- both ends ---- */

static an_value input_like(const building *b, const char *name, an_dtype dtype, int ndims, const int64_t *dims) {
    an_dim all[AN_MAX_DIMS] = {b->batch};
    memcpy(all + 1, dims, (size_t)ndims * sizeof *dims);
    return an_input(b->g, name, dtype, ndims + 1, all);
}

static an_value reshape_to(const building *b, an_value src, int ndims, const int64_t *dims) {
    an_dim all[AN_MAX_DIMS] = {b->batch};
    memcpy(all + 1, dims, (size_t)ndims * sizeof *dims);
    return an_reshape(b->g, src, ndims + 1, all);
}

/* A sample is as the data has it; the layers see it with the sizes of model.inputs. */
static an_status add_input(building *b) {
    const an_model_opening *o = b->o;
    an_context *ctx = o->ctx;
    int64_t dims[AN_MAX_DIMS] = {0};
    const an_field *field = &o->inputs;
    int ndims = 0;
    an_field given = {.size = sizeof given};
    if (!an_config_is(o->config, "model.inputs", "auto")) {
        AN_TRY_RETURN(an_config_counts(o->config, "model.inputs", AN_MAX_DIMS, dims, &ndims));
        if (ndims >= AN_MAX_DIMS)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a sample of %d dimensions; at most %d",
                            an_config_place(o->config, "model.inputs"), ndims, AN_MAX_DIMS - 1);
        given.ndims = ndims;
        memcpy(given.dims, dims, sizeof given.dims);
        if (o->dataset && an_open_elements(&given) != an_open_elements(field))
            return AN_ERROR(ctx, AN_ERR_SHAPE,
                            "%s: model.inputs is %s, but a sample of the data is %s; leave model.inputs out",
                            an_config_place(o->config, "model.inputs"), AN_FIELD_SIZES(&given), AN_FIELD_SIZES(field));
    } else if (!o->dataset) {
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a stream does not say what a sample is like; give model.inputs",
                        an_config_place(o->config, "model"));
    }
    if (!o->dataset) field = &given;
    b->x = input_like(b, "x", o->dtype, field->ndims, field->dims);
    if (given.ndims > 0) b->x = reshape_to(b, b->x, given.ndims, given.dims);
    return AN_OK;
}

static an_status add_cross_entropy(building *b) {
    an_context *ctx = b->o->ctx;
    AN_TRY_RETURN(expect(b, 2, "a number for each class, [batch,classes]; the loss follows it",
                         "end with {type: flatten} and a linear layer"));
    an_value targets = an_input(b->g, "targets", AN_DTYPE_I32, AN_DIMS(b->batch));
    an_graph_set_output(b->g, b->x, "y");
    an_graph_set_loss(b->g, an_cross_entropy(b->g, b->x, targets, NULL), targets);
    return AN_OK;
}

static an_status add_squared_error(building *b) {
    const an_model_opening *o = b->o;
    an_field given = {.size = sizeof given}, field = o->targets;
    given.ndims = an_value_ndims(b->g, b->x) - 1;
    for (int d = 0; d < given.ndims; d++) given.dims[d] = an_value_dim(b->g, b->x, d + 1);
    if (!o->dataset) field = given;
    if (an_open_elements(&given) != an_open_elements(&field))
        return AN_ERROR(o->ctx, AN_ERR_SHAPE,
                        "%s: the last layer gives %s for a sample, but a target of the data is %s; a last linear layer "
                        "of size auto gives as many",
                        an_config_place(o->config, "model.layers"), AN_FIELD_SIZES(&given), AN_FIELD_SIZES(&field));
    const bool same = given.ndims == field.ndims && !memcmp(given.dims, field.dims, sizeof field.dims);
    if (!same) b->x = reshape_to(b, b->x, field.ndims, field.dims);
    an_value targets = input_like(b, "targets", o->dtype, field.ndims, field.dims);
    an_graph_set_output(b->g, b->x, "y");
    an_graph_set_loss(b->g, an_squared_error(b->g, b->x, targets), targets);
    return AN_OK;
}

static an_status build(building *b) {
    an_context *ctx = b->o->ctx;
    const int count = an_config_size(b->o->config, "model.layers");
    const bool classes = an_open_wants_classes(b->o);
    b->batch = an_symbol_dim(b->g, "batch");
    AN_TRY_RETURN(add_input(b));
    if (b->g->status != AN_OK)
        return AN_ERROR(ctx, b->g->status, "%s: %s", an_config_place(b->o->config, "model.inputs"), b->g->message);
    AN_TRY_RETURN(look_ahead(b, count));
    AN_TRY_RETURN(add_layers(b, count));
    return classes ? add_cross_entropy(b) : add_squared_error(b);
}

/* Classes are counted only if a layer asks for as many. */
static an_status find_outputs(building *b, an_model_opening *o) {
    an_context *ctx = o->ctx;
    const int count = an_config_size(o->config, "model.layers");
    bool asked = false;
    for (int i = 0; i < count && !asked; i++) {
        go_to(b, i);
        asked = an_config_is(o->config, AN_KEY(b->path, "type"), "linear") &&
                an_config_is(o->config, AN_KEY(b->path, "size"), "auto");
    }
    if (!asked || !o->dataset) return AN_OK;
    const bool classes = an_open_wants_classes(o);
    if (classes) AN_TRY_RETURN(an_open_classes(o));
    b->outputs = classes ? o->classes : an_open_elements(&o->targets);
    return AN_OK;
}

an_status an_open_sequential(an_model_opening *o) {
    an_status status;
    an_context *ctx = o->ctx;
    building b = {.o = o};
    AN_TRY(find_outputs(&b, o));
    AN_TRY(an_graph_create(&b.g, ctx, "sequential"));
    AN_TRY(build(&b));
    status = an_model_finish(o->graph, b.g); /* which takes it, or destroys it */
    b.g = NULL;
    if (status != AN_OK) AN_FAIL(ctx, status, "%s: %s", an_config_place(o->config, "model.layers"), ctx->error.message);
    return AN_OK;
fail:
    an_graph_destroy(&b.g);
    return status;
}
