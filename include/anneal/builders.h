/* Builders of ops and layers. Part of graph.h: including this header includes graph.h. Every builder returns the new
 * value, which belongs to the graph. None of these functions is collective. */
#ifndef ANNEAL_GRAPH_H
#include "anneal/graph.h"
#elif !defined(ANNEAL_BUILDERS_H)
#define ANNEAL_BUILDERS_H

/* ==== simple ==== what most programs need */

/* ---- layers ---- Parameters are named name.weight, name.bias, … in the open scope. If the name is NULL, they are
 * named weight, bias, … */

typedef struct an_convolution_options {
    size_t size;
    int64_t stride[2];   /* 1 by default */
    int64_t padding[2];  /* on both sides */
    int64_t dilation[2]; /* 1 by default */
    int64_t groups;      /* 1 by default */
} an_convolution_options;
AN_API void an_convolution_options_init(an_convolution_options *options, size_t size);

AN_API an_value an_linear(an_graph *graph, an_value src, const char *name, an_dim features);
AN_API an_value an_linear_plain(an_graph *graph, an_value src, const char *name, an_dim features); /* no bias */
AN_API an_value an_convolution_layer(an_graph *graph, an_value src, const char *name, int64_t filters, int64_t window,
                                     const an_convolution_options *options);
AN_API an_value an_embedding_layer(an_graph *graph, an_value indices, const char *name, an_dtype dtype, an_dim entries,
                                   an_dim width);
AN_API an_value an_layer_norm_layer(an_graph *graph, an_value src, const char *name, double epsilon);
AN_API an_value an_rms_norm_layer(an_graph *graph, an_value src, const char *name, double epsilon);
AN_API an_value an_batch_norm_layer(an_graph *graph, an_value src, const char *name, double momentum, double epsilon);

/* ---- losses ---- Each is a sum over its targets. A step divides by its number of targets. */

typedef struct an_cross_entropy_options {
    size_t size;
    int64_t ignored; /* target that does not count; -100 by default */
    double label_smoothing;
} an_cross_entropy_options;
AN_API void an_cross_entropy_options_init(an_cross_entropy_options *options, size_t size);
/* logits (…, classes), targets i32 or i64 (…). `options` may be NULL. */
AN_API an_value an_cross_entropy(an_graph *graph, an_value logits, an_value targets,
                                 const an_cross_entropy_options *options);
AN_API an_value an_squared_error(an_graph *graph, an_value src, an_value targets);
AN_API an_value an_absolute_error(an_graph *graph, an_value src, an_value targets);
AN_API an_value an_huber_error(an_graph *graph, an_value src, an_value targets, double delta);
AN_API an_value an_binary_cross_entropy(an_graph *graph, an_value logits, an_value targets);
/* The same loss, with each target's loss multiplied by a weight before the sum. The dimensions of the weights are the
 * leading ones of the targets: one weight for each sample, or one for each target. Weights get no gradient, and the
 * number of targets does not change. */
AN_API an_value an_weigh_loss(an_graph *graph, an_value loss, an_value weights);

/* ---- elementwise ---- */

/* Adds a bias of one dimension along an axis (negative: from the end). */
AN_API an_value an_bias(an_graph *graph, an_value src, an_value bias, int axis);
AN_API an_value an_relu(an_graph *graph, an_value src);
AN_API an_value an_gelu(an_graph *graph, an_value src);      /* by erf */
AN_API an_value an_gelu_tanh(an_graph *graph, an_value src); /* gelu_new of GPT-2 */
AN_API an_value an_silu(an_graph *graph, an_value src);
AN_API an_value an_sigmoid(an_graph *graph, an_value src);
AN_API an_value an_tanh(an_graph *graph, an_value src);
AN_API an_value an_exp(an_graph *graph, an_value src);
AN_API an_value an_log(an_graph *graph, an_value src);
AN_API an_value an_sqrt(an_graph *graph, an_value src);
AN_API an_value an_softplus(an_graph *graph, an_value src);
AN_API an_value an_mish(an_graph *graph, an_value src);       /* src · tanh(softplus(src)) */
AN_API an_value an_hard_swish(an_graph *graph, an_value src); /* src · min(max(src + 3, 0), 6) ÷ 6 */
AN_API an_value an_sin(an_graph *graph, an_value src);
AN_API an_value an_cos(an_graph *graph, an_value src);
AN_API an_value an_abs(an_graph *graph, an_value src);
AN_API an_value an_negate(an_graph *graph, an_value src);
AN_API an_value an_scale(an_graph *graph, an_value src, double factor);
/* min(max(src, low), high); a bound may be infinite. */
AN_API an_value an_clamp(an_graph *graph, an_value src, double low, double high);
/* Shapes broadcast as in NumPy. */
AN_API an_value an_add(an_graph *graph, an_value a, an_value b);
AN_API an_value an_subtract(an_graph *graph, an_value a, an_value b);
AN_API an_value an_multiply(an_graph *graph, an_value a, an_value b);
AN_API an_value an_divide(an_graph *graph, an_value a, an_value b);
AN_API an_value an_maximum(an_graph *graph, an_value a, an_value b);
AN_API an_value an_minimum(an_graph *graph, an_value a, an_value b);
AN_API an_value an_power(an_graph *graph, an_value a, an_value b);
AN_API an_value an_cast(an_graph *graph, an_value src, an_dtype dtype);

/* ---- shape ---- These are views where possible. */

/* In an_reshape: the dimension that takes the remaining elements. */
#define AN_REST INT64_MIN

AN_API an_value an_reshape(an_graph *graph, an_value src, int ndims, const an_dim *dims);
AN_API an_value an_transpose(an_graph *graph, an_value src, int a, int b); /* swaps two axes */
AN_API an_value an_permute(an_graph *graph, an_value src, int axis_count, const int *axes);
AN_API an_value an_slice(an_graph *graph, an_value src, int axis, an_dim begin, an_dim end);
/* Equal parts along an axis; part i is an_value_output(value, i). */
AN_API an_value an_split(an_graph *graph, an_value src, int axis, int parts);
AN_API an_value an_expand(an_graph *graph, an_value src, int ndims, const an_dim *dims);
AN_API an_value an_contiguous(an_graph *graph, an_value src);
AN_API an_value an_concat(an_graph *graph, int axis, int count, const an_value *values);
AN_API an_value an_pad(an_graph *graph, an_value src, int axis, an_dim before, an_dim after); /* zeros */
/* dst[…,j,…] = src[…,indices[…,j,…],…] along the axis. indices has as many dimensions as src. */
AN_API an_value an_gather(an_graph *graph, an_value src, an_value indices, int axis);

/* ==== details ==== the rest of the interface */

/* ---- products ---- */

/* Matrix product a·b over the last two dimensions. The leading dimensions broadcast. */
AN_API an_value an_matmul(an_graph *graph, an_value a, an_value b, bool transpose_a, bool transpose_b);

/* src (batch, channels, height, width), weights (filters, channels / groups, height, width). `options` may be NULL. */
AN_API an_value an_convolution(an_graph *graph, an_value src, an_value weights, const an_convolution_options *options);

typedef struct an_pool_options {
    size_t size;
    int64_t window[2];
    int64_t stride[2]; /* 0: the size of the window */
    int64_t padding[2];
    /* average pooling divides by all elements of the window, including the padding; true by default */
    bool count_padding;
    uint8_t reserved[7];
} an_pool_options;
AN_API void an_pool_options_init(an_pool_options *options, size_t size);
AN_API an_value an_max_pool(an_graph *graph, an_value src, const an_pool_options *options);
AN_API an_value an_average_pool(an_graph *graph, an_value src, const an_pool_options *options);

/* ---- reductions and norms ---- */

/* AN_AXES(0, 2) expands to two arguments: the number of axes and a pointer to them. Negative axes count from the
 * end. */
#ifdef __cplusplus
#define AN_AXES(...) \
    static_cast<int>(std::initializer_list<int>{__VA_ARGS__}.size()), std::initializer_list<int>{__VA_ARGS__}.begin()
#else
#define AN_AXES(...)                                                         \
    (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)), (const int[]) { \
        __VA_ARGS__                                                          \
    }
#endif
#define AN_ALL_AXES 0, NULL
AN_API an_value an_reduce_sum(an_graph *graph, an_value src, int axis_count, const int *axes, bool keep);
AN_API an_value an_reduce_mean(an_graph *graph, an_value src, int axis_count, const int *axes, bool keep);
AN_API an_value an_reduce_max(an_graph *graph, an_value src, int axis_count, const int *axes, bool keep);
AN_API an_value an_softmax(an_graph *graph, an_value src, int axis);
AN_API an_value an_log_softmax(an_graph *graph, an_value src, int axis);
/* Normalizes over the last dimension. `bias` may be AN_NONE. */
AN_API an_value an_layer_norm(an_graph *graph, an_value src, an_value weight, an_value bias, double epsilon);
AN_API an_value an_rms_norm(an_graph *graph, an_value src, an_value weight, double epsilon);
/* Normalizes over all dimensions except dimension 1. Training uses the statistics of the micro-batch and returns them
 * as outputs of the program. Evaluation uses the running statistics, which are run states. */
AN_API an_value an_batch_norm(an_graph *graph, an_value src, an_value weight, an_value bias, an_value running_mean,
                              an_value running_variance, double momentum, double epsilon);

/* ---- sequences ---- */

AN_API an_value an_embedding(an_graph *graph, an_value indices, an_value table);

typedef struct an_rotary_options {
    size_t size;
    double base;     /* 10,000 by default */
    int64_t rotated; /* leading elements of the head that are rotated; 0: all */
    /* i32 or i64: a scalar, the position of token 0, or (batch, tokens), that of each token; AN_NONE by default: 0 */
    an_value position;
    double factor; /* scaling as in Llama 3, with low_factor, high_factor and original_context; 0: none */
    double low_factor, high_factor;
    int64_t original_context;
} an_rotary_options;
AN_API void an_rotary_options_init(an_rotary_options *options, size_t size);
/* src (batch, heads, tokens, head size); rotates the two halves of a head, as Llama does. `options` may be NULL. */
AN_API an_value an_rotary(an_graph *graph, an_value src, const an_rotary_options *options);

typedef struct an_attention_options {
    size_t size;
    double scale;          /* 0: 1 / sqrt(head size) */
    int64_t window;        /* maximum number of keys that a query sees, its own and those before it; 0: all */
    an_value query_offset; /* scalar i64; AN_NONE by default: 0 */
    an_value documents; /* i32 or i64 (batch, tokens): a query sees only keys of its own document; AN_NONE by default */
    an_value mask;      /* added to the scores; broadcasts to (batch, heads, queries, keys); AN_NONE by default */
    double dropout;     /* in training only; needs samples */
    an_value samples;   /* i64 (batch): global sample numbers; AN_NONE by default */
    bool causal;        /* query i sees keys up to query_offset + i */
    uint8_t reserved[7];
} an_attention_options;
AN_API void an_attention_options_init(an_attention_options *options, size_t size);
/* q (batch, heads, queries, size), k and v (batch, kv heads, keys, size); heads is a multiple of kv
 * heads. `options` may be NULL. */
AN_API an_value an_attention(an_graph *graph, an_value q, an_value k, an_value v, const an_attention_options *options);

/* Drops elements, in training only. `samples` is an i64 input (batch) of global sample numbers, for dimension 0 of
 * src. */
AN_API an_value an_dropout(an_graph *graph, an_value src, an_value samples, double rate);

#endif
