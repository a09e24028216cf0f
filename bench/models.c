#include "models.h"

#include <stdio.h>
#include <string.h>

#include <anneal/models.h>

static const double momentum = 0.1, epsilon = 1e-5; /* of batch norm, as usual */

/* ---- images ---- */

static an_value image(an_graph *g, an_dtype dtype, int64_t channels) {
    enum { SIDE = 32 };
    return an_input(g, "image", dtype, AN_DIMS(an_symbol_dim(g, "batch"), channels, SIDE, SIDE));
}

/* The head of a classifier: logits, and their cross entropy with the targets. */
static void classify(an_graph *g, an_value x, const char *name) {
    enum { CLASSES = 10 };
    an_value targets = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(an_value_dim(g, x, 0)));
    an_value logits = an_linear(g, x, name, CLASSES);
    an_graph_set_output(g, logits, "logits");
    an_graph_set_loss(g, an_cross_entropy(g, logits, targets, NULL), targets);
}

static void build_lenet(an_graph *g, an_dtype dtype) {
    enum { WINDOW = 5, FILTERS_1 = 6, FILTERS_2 = 16, HIDDEN_1 = 120, HIDDEN_2 = 84 }; /* LeCun 1998 */
    an_pool_options halve;
    an_pool_options_init(&halve, sizeof halve);
    halve.window[0] = halve.window[1] = 2;
    an_value x = image(g, dtype, 1);
    x = an_max_pool(g, an_relu(g, an_convolution_layer(g, x, "conv1", FILTERS_1, WINDOW, NULL)), &halve);
    x = an_max_pool(g, an_relu(g, an_convolution_layer(g, x, "conv2", FILTERS_2, WINDOW, NULL)), &halve);
    x = an_reshape(g, x, AN_DIMS(an_value_dim(g, x, 0), AN_REST));
    x = an_relu(g, an_linear(g, x, "fc1", HIDDEN_1));
    x = an_relu(g, an_linear(g, x, "fc2", HIDDEN_2));
    classify(g, x, "fc3");
}

/* A convolution without a bias, which the batch norm after it would take out again. */
static an_value convolution_norm(an_graph *g, an_value x, const char *name, int64_t filters, int64_t window,
                                 int64_t stride) {
    const int64_t channels = an_value_dim(g, x, 1);
    const double bound = 1 / __builtin_sqrt((double)(channels * window * window));
    an_convolution_options options;
    an_convolution_options_init(&options, sizeof options);
    options.stride[0] = options.stride[1] = stride;
    options.padding[0] = options.padding[1] = window / 2;
    an_scope_begin(g, name);
    an_value weight = an_param(g, "weight", an_value_dtype(g, x), AN_INITIALIZER_UNIFORM, bound,
                               AN_DIMS(filters, channels, window, window));
    x = an_batch_norm_layer(g, an_convolution(g, x, weight, &options), "norm", momentum, epsilon);
    an_scope_end(g);
    return x;
}

/* Two 3×3 convolutions beside a shortcut, which is a 1×1 convolution where the shape changes. */
static an_value basic_block(an_graph *g, an_value x, int depth, int64_t filters, int64_t stride) {
    enum { WINDOW = 3 };
    char name[32];
    snprintf(name, sizeof name, "block%d", depth);
    an_block_begin(g, name, depth);
    an_value y = an_relu(g, convolution_norm(g, x, "conv1", filters, WINDOW, stride));
    y = convolution_norm(g, y, "conv2", filters, WINDOW, 1);
    if (stride != 1 || an_value_dim(g, x, 1) != filters) x = convolution_norm(g, x, "shortcut", filters, 1, stride);
    x = an_relu(g, an_add(g, y, x));
    an_block_end(g);
    return x;
}

static void build_resnet18(an_graph *g, an_dtype dtype) {
    enum { CHANNELS = 3, WINDOW = 3, WIDTH = 64, STAGES = 4, BLOCKS = 2 }; /* He 2015, with the stem for small images */
    int depth = 1;
    an_value x = image(g, dtype, CHANNELS);
    x = an_relu(g, convolution_norm(g, x, "stem", WIDTH, WINDOW, 1));
    for (int stage = 0; stage < STAGES; stage++)
        for (int block = 0; block < BLOCKS; block++)
            x = basic_block(g, x, depth++, WIDTH << stage, stage > 0 && block == 0 ? 2 : 1);
    classify(g, an_reduce_mean(g, x, AN_AXES(2, 3), false), "fc");
}

/* ---- a product ---- */

static void build_product(an_graph *g, an_dtype dtype) {
    an_dim m = an_symbol_dim(g, "m"), n = an_symbol_dim(g, "n"), k = an_symbol_dim(g, "k");
    an_value a = an_input(g, "a", dtype, AN_DIMS(m, k)), b = an_input(g, "b", dtype, AN_DIMS(k, n));
    an_graph_set_output(g, an_matmul(g, a, b, false, false), "c");
}

/* ---- by name ---- */

static an_status make(an_graph **graph, an_context *ctx, const char *name, an_dtype dtype,
                      void (*build)(an_graph *g, an_dtype dtype)) {
    an_status status = an_graph_create(graph, ctx, name);
    if (status != AN_OK) return status;
    build(*graph, dtype);
    status = an_graph_verify(*graph);
    if (status != AN_OK) an_graph_destroy(graph);
    return status;
}

static an_status make_gpt2(an_graph **graph, an_context *ctx, an_dtype dtype) {
    an_gpt2_options options;
    an_gpt2_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.layers = 12;
    options.heads = 12;
    options.width = 768;
    options.context = 1024;
    options.vocabulary = 50304; /* 50,257, padded to a multiple of 128 */
    return an_model_gpt2(graph, ctx, &options);
}

static an_status make_mlp(an_graph **graph, an_context *ctx, an_dtype dtype) {
    static const int64_t hidden[] = {128, 128};
    an_mlp_options options;
    an_mlp_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.inputs = 32;
    options.outputs = 8;
    options.hidden_count = 2;
    options.hidden = hidden;
    options.activation = AN_ACTIVATION_TANH;
    options.loss = AN_LOSS_SQUARED;
    return an_model_mlp(graph, ctx, &options);
}

an_status bench_model(an_graph **graph, an_context *ctx, const char *name, an_dtype dtype) {
    *graph = NULL;
    if (!strcmp(name, "gpt2-124m")) return make_gpt2(graph, ctx, dtype);
    if (!strcmp(name, "mlp")) return make_mlp(graph, ctx, dtype);
    if (!strcmp(name, "lenet")) return make(graph, ctx, name, dtype, build_lenet);
    if (!strcmp(name, "resnet18")) return make(graph, ctx, name, dtype, build_resnet18);
    if (!strcmp(name, "product")) return make(graph, ctx, name, dtype, build_product);
    return AN_ERR_UNKNOWN;
}
