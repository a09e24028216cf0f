/* Layers one after another. */
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/guard.h"
#include "models/embed.h"
#include "models/model.h"
#include "models/normalize.h"

typedef struct {
    const an_sequential_options *o;
    const an_layer *layers; /* of the options, as this library knows them */
    an_context *ctx;
    an_graph *g;
    an_dtype dtype;
    an_dim batch;
    an_value x, samples; /* what the next layer reads; AN_NONE: no layer drops anything */
    int last_linear;     /* -1: there is none */
    int weighted;        /* linear layers and convolutions so far */
    bool in_block;
    const an_layer *layer; /* that is being added */
    char place[256];       /* what its messages begin with */
} building;

/* [1, 28, 28] */
typedef struct {
    char text[128];
} sizes_text;

static sizes_text describe(int ndims, const int64_t *dims) {
    sizes_text sizes = {"["};
    for (int d = 0; d < ndims; d++) {
        const size_t used = strlen(sizes.text);
        snprintf(sizes.text + used, sizeof sizes.text - used, "%s%lld", d ? ", " : "", (long long)dims[d]);
    }
    const size_t used = strlen(sizes.text);
    snprintf(sizes.text + used, sizeof sizes.text - used, "]");
    return sizes;
}

static int64_t count_elements(int ndims, const int64_t *dims) {
    int64_t elements = 1;
    for (int d = 0; d < ndims; d++)
        if (!an_multiply_i64(elements, dims[d], &elements)) return INT64_MAX; /* no data has as many */
    return elements;
}

/* Rows of features, or images: `ndims` with the sample. */
static an_status expect(const building *b, int ndims, const char *takes, const char *remedy) {
    if (b->g->status != AN_OK || an_value_ndims(b->g, b->x) == ndims) return AN_OK;
    return AN_ERROR(b->ctx, AN_ERR_SHAPE, "%s: this layer takes %s, but its input is %s; %s", b->place, takes,
                    AN_DESCRIBE(b->g, an_graph_result(b->g, b->x)), remedy);
}

static an_status expect_images(const building *b) {
    return expect(b, 4, "images, [batch,channels,height,width]",
                  "set model.inputs to [channels, height, width], and put this layer before any flatten");
}

/* ---- one function a layer ---- */

/* What targets need; 0: not known. */
static int64_t wanted_features(const an_sequential_options *o) {
    if (o->loss == AN_LOSS_CROSS_ENTROPY) return o->classes;
    return !o->targets ? 0 : count_elements(o->target_ndims, o->targets);
}

static an_status add_linear(building *b) {
    an_context *ctx = b->ctx;
    int64_t features = b->layer->features;
    AN_TRY_RETURN(expect(b, 2, "rows of features, [batch,features]", "put {type: flatten} before it"));
    if (features == 0 && b->layer - b->layers != b->last_linear)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: only the last linear layer can take its size from the targets; set the size of this one",
                        b->place);
    if (features == 0) features = wanted_features(b->o);
    if (features == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the size cannot be taken from the targets of this data; set it",
                        b->place);
    b->x = b->layer->bias ? an_linear(b->g, b->x, NULL, features) : an_linear_plain(b->g, b->x, NULL, features);
    return AN_OK;
}

static an_status add_convolution(building *b) {
    an_context *ctx = b->ctx;
    const an_layer *l = b->layer;
    an_convolution_options c;
    an_convolution_options_init(&c, sizeof c);
    AN_TRY_RETURN(expect_images(b));
    if (l->same && l->window % 2 == 0)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: no padding keeps the image size with a window of %lld; set the padding, or use an odd window",
            b->place, (long long)l->window);
    if (l->stride) c.stride[0] = c.stride[1] = l->stride;
    c.padding[0] = c.padding[1] = l->same ? l->window / 2 : l->padding;
    b->x = an_convolution_layer_with(b->g, b->x, NULL, l->filters, l->window, &c, l->bias);
    return AN_OK;
}

static an_status add_pool(building *b) {
    const an_layer *l = b->layer;
    an_pool_options p;
    an_pool_options_init(&p, sizeof p);
    AN_TRY_RETURN(expect_images(b));
    p.window[0] = p.window[1] = l->window;
    p.stride[0] = p.stride[1] = l->stride;
    p.padding[0] = p.padding[1] = l->padding;
    b->x = l->type == AN_LAYER_MAX_POOL ? an_max_pool(b->g, b->x, &p) : an_average_pool(b->g, b->x, &p);
    return AN_OK;
}

static an_status add_flatten(building *b) {
    b->x = an_reshape(b->g, b->x, AN_DIMS(b->batch, AN_REST));
    return AN_OK;
}

static an_status add_dropout(building *b) {
    if (b->layer->rate > 0) b->x = an_dropout(b->g, b->x, b->samples, b->layer->rate);
    return AN_OK;
}

static an_status add_batch_norm(building *b) {
    b->x = an_batch_norm_layer(b->g, b->x, NULL, b->layer->momentum, b->layer->epsilon);
    return AN_OK;
}

static an_status add_layer_norm(building *b) {
    b->x = an_layer_norm_layer(b->g, b->x, NULL, b->layer->epsilon);
    return AN_OK;
}

static an_status add_rms_norm(building *b) {
    b->x = an_rms_norm_layer(b->g, b->x, NULL, b->layer->epsilon);
    return AN_OK;
}

/* ---- the table ---- */

static const struct layer {
    an_status (*add)(building *b);                       /* NULL: */
    an_value (*activate)(an_graph *graph, an_value src); /* … it is an activation */
    bool is_weighted, has_parameters;
} layers[] = {
    [AN_LAYER_LINEAR] = {add_linear, NULL, true, true},
    [AN_LAYER_CONVOLUTION] = {add_convolution, NULL, true, true},
    [AN_LAYER_MAX_POOL] = {add_pool, NULL, false, false},
    [AN_LAYER_AVERAGE_POOL] = {add_pool, NULL, false, false},
    [AN_LAYER_FLATTEN] = {add_flatten, NULL, false, false},
    [AN_LAYER_RELU] = {NULL, an_relu, false, false},
    [AN_LAYER_GELU] = {NULL, an_gelu, false, false},
    [AN_LAYER_TANH] = {NULL, an_tanh, false, false},
    [AN_LAYER_SILU] = {NULL, an_silu, false, false},
    [AN_LAYER_SIGMOID] = {NULL, an_sigmoid, false, false},
    [AN_LAYER_DROPOUT] = {add_dropout, NULL, false, false},
    [AN_LAYER_BATCH_NORM] = {add_batch_norm, NULL, false, true},
    [AN_LAYER_LAYER_NORM] = {add_layer_norm, NULL, false, true},
    [AN_LAYER_RMS_NORM] = {add_rms_norm, NULL, false, true},
};
enum { LAYERS = sizeof layers / sizeof *layers };

static void begin_block(building *b, int index) {
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    if (b->in_block) an_block_end(b->g);
    /* 0 is the depth of embeddings */
    an_block_begin(b->g, b->layer->name ? b->layer->name : number, b->weighted > 0 ? b->weighted : 1);
    b->in_block = true;
}

static an_status add_layer(building *b, int index) {
    an_context *ctx = b->ctx;
    const struct layer *layer = &layers[b->layer->type];
    b->weighted += layer->is_weighted;
    if (layer->has_parameters) begin_block(b, index);
    if (layer->activate)
        b->x = layer->activate(b->g, b->x);
    else
        AN_TRY_RETURN(layer->add(b));
    if (b->g->status != AN_OK) return AN_ERROR(ctx, b->g->status, "%s: %s", b->place, b->g->message);
    return AN_OK;
}

static void go_to(building *b, int index) {
    b->layer = &b->layers[index];
    if (b->layer->place)
        snprintf(b->place, sizeof b->place, "%s", b->layer->place);
    else
        snprintf(b->place, sizeof b->place, "layer %d", index);
}

static an_status add_layers(building *b) {
    for (int i = 0; i < b->o->layer_count; i++) {
        go_to(b, i);
        AN_TRY_RETURN(add_layer(b, i));
    }
    if (b->in_block) an_block_end(b->g);
    return AN_OK;
}

/* What must be known before the first layer: the last linear one, and whether sample numbers are needed. */
static void look_ahead(building *b) {
    b->last_linear = -1;
    b->samples = AN_NONE;
    for (int i = 0; i < b->o->layer_count; i++) {
        const an_layer *l = &b->layers[i];
        if (l->type == AN_LAYER_LINEAR) b->last_linear = i;
        if (l->type == AN_LAYER_DROPOUT && l->rate > 0 && b->samples == AN_NONE)
            b->samples = an_input(b->g, "samples", AN_DTYPE_I64, AN_DIMS(b->batch));
    }
}

/* ---- both ends ---- */

static an_value input_like(const building *b, const char *name, int ndims, const int64_t *dims) {
    an_dim all[AN_MAX_DIMS] = {b->batch};
    if (ndims > 0) memcpy(all + 1, dims, (size_t)ndims * sizeof *dims);
    return an_input(b->g, name, b->dtype, ndims + 1, all);
}

static an_value reshape_to(const building *b, an_value src, int ndims, const int64_t *dims) {
    an_dim all[AN_MAX_DIMS] = {b->batch};
    if (ndims > 0) memcpy(all + 1, dims, (size_t)ndims * sizeof *dims);
    return an_reshape(b->g, src, ndims + 1, all);
}

static an_status add_cross_entropy(building *b) {
    AN_TRY_RETURN(expect(b, 2, "one number for each class, [batch,classes], because the loss follows it",
                         "end with {type: flatten} and a linear layer"));
    an_value targets = an_input(b->g, "targets", AN_DTYPE_I32, AN_DIMS(b->batch));
    an_graph_set_output(b->g, b->x, "y");
    an_graph_set_loss(b->g, an_cross_entropy(b->g, b->x, targets, NULL), targets);
    return AN_OK;
}

/* A number for each element of a target: squared error, or binary cross entropy. */
static an_status add_errors(building *b) {
    const an_sequential_options *o = b->o;
    int64_t given[AN_MAX_DIMS] = {0};
    const int ndims = an_value_ndims(b->g, b->x) - 1;
    for (int d = 0; d < ndims; d++) given[d] = an_value_dim(b->g, b->x, d + 1);
    const int wanted = o->targets ? o->target_ndims : ndims;
    const int64_t *dims = o->targets ? o->targets : given;
    if (count_elements(ndims, given) != count_elements(wanted, dims))
        return AN_ERROR(b->ctx, AN_ERR_SHAPE,
                        "the last layer gives %s for each sample, but a target of the data is %s; a last linear layer "
                        "of size auto gives the right number",
                        describe(ndims, given).text, describe(wanted, dims).text);
    const bool same = ndims == wanted && (ndims <= 0 || !memcmp(given, dims, (size_t)ndims * sizeof *dims));
    if (!same) b->x = reshape_to(b, b->x, wanted, dims);
    an_value targets = input_like(b, "targets", wanted, dims);
    if (o->loss == AN_LOSS_SQUARED) {
        an_model_end_squared(b->g, b->x, targets, o->normalize_targets);
        return AN_OK;
    }
    an_graph_set_output(b->g, b->x, "y");
    an_graph_set_loss(b->g, an_binary_cross_entropy(b->g, b->x, targets), targets);
    return AN_OK;
}

/* A sample is as the data has it; the layers see it in the shape that is asked for. */
static an_status build(building *b) {
    an_context *ctx = b->ctx;
    const an_sequential_options *o = b->o;
    b->batch = an_symbol_dim(b->g, "batch");
    b->x = input_like(b, "x", o->input_ndims, o->inputs);
    if (o->shape) b->x = reshape_to(b, b->x, o->shape_ndims, o->shape);
    an_value numbers = o->normalize_inputs ? an_model_normalize(b->g, b->x) : b->x;
    b->x = o->embedded_count > 0 ? an_model_embed(b->g, b->x, numbers, o->embedded, o->embedded_count) : numbers;
    look_ahead(b);
    if (b->g->status != AN_OK) return AN_ERROR(ctx, b->g->status, "the input: %s", b->g->message);
    AN_TRY_RETURN(add_layers(b));
    return o->loss == AN_LOSS_CROSS_ENTROPY ? add_cross_entropy(b) : add_errors(b);
}

static bool are_dims(int ndims) {
    return ndims >= 0 && ndims < AN_MAX_DIMS;
}

static an_status check_options(an_context *ctx, const an_sequential_options *o) {
    an_status status;
    AN_TRY(an_model_check_loss(ctx, "sequential", o->loss));
    AN_CHECK(ctx,
             are_dims(o->input_ndims) && (o->inputs || o->input_ndims == 0) && are_dims(o->shape_ndims) &&
                 are_dims(o->target_ndims),
             AN_ERR_ARGUMENT, "sequential: a sample has %d, %d and %d dimensions; 0 to %d are possible", o->input_ndims,
             o->shape_ndims, o->target_ndims, AN_MAX_DIMS - 1);
    AN_CHECK(ctx, o->layer_count > 0 && o->layers, AN_ERR_ARGUMENT, "sequential: there are no layers");
    AN_TRY(an_model_check_normalize(ctx, "sequential", o->loss, o->normalize_targets));
    AN_CHECK(ctx, o->embedded_count == 0 || (o->input_ndims == 1 && !o->shape), AN_ERR_ARGUMENT,
             "sequential: only samples of one dimension have columns to embed");
    if (o->embedded_count != 0)
        AN_TRY(an_model_check_embedded(ctx, "sequential", o->embedded, o->embedded_count, o->inputs[0]));
    return AN_OK;
fail:
    return status;
}

static an_status read_layers(an_context *ctx, const an_sequential_options *o, an_layer *own) {
    for (int i = 0; i < o->layer_count; i++) {
        AN_TRY_RETURN(an_layer_read_at(ctx, &own[i], o->layers, i));
        if ((int)own[i].type < 0 || (int)own[i].type >= LAYERS)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "sequential: the type of layer %d is %d, which is not an an_layer_type", i,
                            (int)own[i].type);
    }
    return AN_OK;
}

an_status an_model_sequential(an_graph **graph, an_context *ctx, const an_sequential_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph);
    an_status status;
    an_sequential_options options;
    building *b = NULL;
    an_layer *own = NULL;
    size_t count = 0;
    *graph = NULL;
    AN_TRY(an_model_check_options(ctx, "sequential", given));
    AN_TRY(an_sequential_options_read(ctx, &options, given));
    AN_TRY(check_options(ctx, &options));
    AN_TRY(an_alloc(ctx, (void **)&b, 1, sizeof *b));
    count = (size_t)options.layer_count;
    AN_TRY(an_alloc(ctx, (void **)&own, count, sizeof *own));
    AN_TRY(read_layers(ctx, &options, own));
    b->o = &options;
    b->layers = own;
    b->ctx = ctx;
    AN_TRY(an_model_choose_dtype(ctx, "sequential", options.dtype, &b->dtype));
    AN_TRY(an_graph_create(&b->g, ctx, "sequential"));
    AN_TRY(build(b));
    status = an_model_finish(graph, b->g); /* which takes it, or destroys it */
    b->g = NULL;
fail:
    if (b) an_graph_destroy(&b->g);
    an_release(ctx, (void **)&own, count, sizeof *own);
    an_release(ctx, (void **)&b, 1, sizeof *b);
    return status;
}
