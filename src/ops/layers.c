/* Layers: a parameter or two and the op that uses them, under one name.
 *
 * Weights of linear layers are [features, inputs], as in PyTorch, and start as PyTorch's do: uniform within
 * 1 / sqrt(inputs), the bias too.
 */
#include "ops/layers.h"

#include "base/guard.h"
#include "ops/structs.h"

static const an_start ones = {AN_INITIALIZER_CONSTANT, 1}, zeros = {AN_INITIALIZER_CONSTANT, 0};

static void layer_begin(an_graph *g, const char *name) {
    an_builder_begin(g);
    if (name) an_scope_begin(g, name);
}

static an_value layer_end(an_graph *g, const char *name, an_value value) {
    if (name) an_scope_end(g);
    return an_builder_end(g, value);
}

static an_value param(an_graph *g, const char *name, an_dtype dtype, const an_start *start, int ndims,
                      const an_dim *dims) {
    return an_param(g, name, dtype, start->initializer, start->scale, ndims, dims);
}

/* The type of the parameters of a layer on `src`: masters are f32 or f64. 0, with a mistake, if it is no number. */
static an_dtype param_dtype(an_graph *g, an_value src) {
    an_dtype dtype = an_value_dtype(g, src);
    if (g->status != AN_OK) return AN_DTYPE_NONE;
    if (an_dtype_is_float(dtype)) return an_compute_dtype(dtype);
    an_graph_mistake(g, AN_ERR_DTYPE, "src is %s; a layer takes floating-point numbers%s",
                     AN_DESCRIBE(g, an_graph_result(g, src)),
                     an_dtype_is_index(dtype) ? ": cast it, or use an_embedding_layer for indices" : "");
    return AN_DTYPE_NONE;
}

/* A dimension of src that sizes a parameter; 0, with a mistake, where it has a symbol in it. */
static int64_t fixed_dim(an_graph *g, an_value src, int dimension) {
    an_dim dim = an_value_dim(g, src, dimension);
    if (dim >= 0 || g->status != AN_OK) return dim;
    an_graph_mistake(g, AN_ERR_SHAPE,
                     "dimension %d of %s contains a symbol, but this layer's parameters take their size from it, so it "
                     "must be a constant",
                     dimension, AN_DESCRIBE(g, an_graph_result(g, src)));
    return 0;
}

static an_start uniform_by_fan(double fan) {
    return (an_start){AN_INITIALIZER_UNIFORM, fan > 0 ? 1 / __builtin_sqrt(fan) : 0};
}

/* ---- linear ---- */

an_value an_linear_with(an_graph *g, an_value src, const char *name, an_dim features, const an_start *weight,
                        const an_start *bias) {
    layer_begin(g, name);
    an_dtype dtype = param_dtype(g, src);
    int64_t inputs = fixed_dim(g, src, -1);
    an_value dst = an_matmul(g, src, param(g, "weight", dtype, weight, AN_DIMS(features, inputs)), false, true);
    if (bias) dst = an_bias(g, dst, param(g, "bias", dtype, bias, AN_DIMS(features)), -1);
    return layer_end(g, name, dst);
}

static an_value linear(an_graph *g, an_value src, const char *name, an_dim features, bool has_bias) {
    an_builder_begin(g);
    an_start start = uniform_by_fan((double)fixed_dim(g, src, -1));
    return an_builder_end(g, an_linear_with(g, src, name, features, &start, has_bias ? &start : NULL));
}

an_value an_linear(an_graph *graph, an_value src, const char *name, an_dim features) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    return linear(graph, src, name, features, true);
}

an_value an_linear_plain(an_graph *graph, an_value src, const char *name, an_dim features) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    return linear(graph, src, name, features, false);
}

/* ---- convolution and embedding ---- */

an_value an_convolution_layer(an_graph *graph, an_value src, const char *name, int64_t filters, int64_t window,
                              const an_convolution_options *options) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    return an_convolution_layer_with(graph, src, name, filters, window, options, true);
}

an_value an_convolution_layer_with(an_graph *graph, an_value src, const char *name, int64_t filters, int64_t window,
                                   const an_convolution_options *options, bool bias) {
    an_convolution_options o;
    layer_begin(graph, name);
    if (!an_builder_took(graph, an_convolution_options_read(graph->ctx, &o, options))) return layer_end(graph, name, 0);
    const int64_t groups = o.groups > 0 ? o.groups : 1; /* an_convolution refuses others */
    an_dtype dtype = param_dtype(graph, src);
    int64_t channels = fixed_dim(graph, src, 1);
    if (graph->status == AN_OK && channels % groups != 0)
        an_graph_mistake(graph, AN_ERR_SHAPE, "%s has %lld channels, which cannot be cut into %lld groups",
                         AN_DESCRIBE(graph, an_graph_result(graph, src)), (long long)channels, (long long)groups);
    int64_t part = channels / groups;
    an_start start = uniform_by_fan((double)part * (double)window * (double)window);
    an_value weight = param(graph, "weight", dtype, &start, AN_DIMS(filters, part, window, window));
    an_value dst = an_convolution(graph, src, weight, &o);
    if (bias) dst = an_bias(graph, dst, param(graph, "bias", dtype, &start, AN_DIMS(filters)), 1);
    return layer_end(graph, name, dst);
}

an_value an_embedding_layer(an_graph *graph, an_value indices, const char *name, an_dtype dtype, an_dim entries,
                            an_dim width) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    const an_start start = {AN_INITIALIZER_NORMAL, 1};
    layer_begin(graph, name);
    an_value table = param(graph, "weight", dtype, &start, AN_DIMS(entries, width));
    return layer_end(graph, name, an_embedding(graph, indices, table));
}

/* ---- norms ---- */

an_value an_layer_norm_layer(an_graph *graph, an_value src, const char *name, double epsilon) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    layer_begin(graph, name);
    an_dtype dtype = param_dtype(graph, src);
    int64_t width = fixed_dim(graph, src, -1);
    an_value weight = param(graph, "weight", dtype, &ones, AN_DIMS(width));
    an_value bias = param(graph, "bias", dtype, &zeros, AN_DIMS(width));
    return layer_end(graph, name, an_layer_norm(graph, src, weight, bias, epsilon));
}

an_value an_rms_norm_layer(an_graph *graph, an_value src, const char *name, double epsilon) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    layer_begin(graph, name);
    an_dtype dtype = param_dtype(graph, src);
    an_value weight = param(graph, "weight", dtype, &ones, AN_DIMS(fixed_dim(graph, src, -1)));
    return layer_end(graph, name, an_rms_norm(graph, src, weight, epsilon));
}

an_value an_batch_norm_layer(an_graph *graph, an_value src, const char *name, double momentum, double epsilon) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    layer_begin(graph, name);
    an_dtype dtype = param_dtype(graph, src);
    int64_t channels = fixed_dim(graph, src, 1);
    an_value weight = param(graph, "weight", dtype, &ones, AN_DIMS(channels));
    an_value bias = param(graph, "bias", dtype, &zeros, AN_DIMS(channels));
    an_value mean = an_run_state(graph, "running_mean", dtype, 0, AN_DIMS(channels));
    an_value variance = an_run_state(graph, "running_var", dtype, 1, AN_DIMS(channels));
    return layer_end(graph, name, an_batch_norm(graph, src, weight, bias, mean, variance, momentum, epsilon));
}
