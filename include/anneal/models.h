/* Ready-made models: functions that build graphs. Each makes its inputs, its outputs and its loss; verify and plan
 * them like any other. None is collective. */
#ifndef ANNEAL_MODELS_H
#define ANNEAL_MODELS_H

#include "anneal/anneal.h"
#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum an_loss_kind { AN_LOSS_CROSS_ENTROPY = 0, AN_LOSS_SQUARED = 1 } an_loss_kind;
typedef enum an_activation {
    AN_ACTIVATION_RELU = 0,
    AN_ACTIVATION_GELU = 1,
    AN_ACTIVATION_TANH = 2,
    AN_ACTIVATION_SILU = 3
} an_activation;

/* x (batch, inputs) → hidden layers → y (batch, outputs). Inputs x, targets (i32 (batch) for cross entropy, else like y; and
 * samples, i64 (batch), if dropout is given); symbol batch. */
typedef struct an_mlp_options {
    size_t size;
    an_dtype dtype; /* NONE: f32 */
    int64_t inputs, outputs;
    int hidden_count;
    const int64_t *hidden;
    an_activation activation;
    bool batch_norm;
    double dropout;
    an_loss_kind loss;
} an_mlp_options;
AN_API an_status an_model_mlp(an_graph **graph, an_context *ctx, const an_mlp_options *options);

/* image (batch, channels, height, width) → 3×3 convolutions, each followed by the activation and 2×2 max pooling → one hidden
 * layer → logits (batch, classes). Inputs image, targets i32 (batch) (and samples if dropout is given); symbol batch. */
typedef struct an_cnn_options {
    size_t size;
    an_dtype dtype;
    int64_t channels, height, width, classes;
    int filter_count;
    const int64_t *filters;
    int64_t hidden;
    an_activation activation;
    bool batch_norm;
    double dropout;
} an_cnn_options;
AN_API an_status an_model_cnn(an_graph **graph, an_context *ctx, const an_cnn_options *options);

/* GPT-2: learned positions, layer norm first, gelu in the tanh form, head tied to the token table. Inputs tokens and targets
 * (batch, tokens) i32 (and samples if dropout is given); symbols batch, tokens. */
typedef struct an_gpt2_options {
    size_t size;
    an_dtype dtype;
    int64_t layers, heads, width, context, vocabulary;
    double dropout;
    bool documents; /* a further input documents (batch, tokens) i32: attention stays inside of each */
} an_gpt2_options;
AN_API an_status an_model_gpt2(an_graph **graph, an_context *ctx, const an_gpt2_options *options);

/* Llama: rotary positions, RMS norm, grouped key and value heads, SwiGLU. Inputs as GPT-2; rotary
 * positions need no table, so that context limits nothing yet. */
typedef struct an_llama_options {
    size_t size;
    an_dtype dtype;
    int64_t layers, heads, kv_heads, width, hidden, context, vocabulary;
    double rotary_base; /* 0: 10000 */
    double epsilon;     /* 0: 1e-5 */
    bool tied;          /* the head is the token table */
    bool documents;     /* as GPT-2's */
} an_llama_options;
AN_API an_status an_model_llama(an_graph **graph, an_context *ctx, const an_llama_options *options);

/* ---- layers one after another ---- */

typedef enum an_layer_type {
    AN_LAYER_LINEAR = 0,
    AN_LAYER_CONVOLUTION = 1,
    AN_LAYER_MAX_POOL = 2,
    AN_LAYER_AVERAGE_POOL = 3,
    AN_LAYER_FLATTEN = 4,
    AN_LAYER_RELU = 5,
    AN_LAYER_GELU = 6,
    AN_LAYER_TANH = 7,
    AN_LAYER_SILU = 8,
    AN_LAYER_SIGMOID = 9,
    AN_LAYER_DROPOUT = 10,
    AN_LAYER_BATCH_NORM = 11,
    AN_LAYER_LAYER_NORM = 12,
    AN_LAYER_RMS_NORM = 13
} an_layer_type;

typedef struct an_layer {
    size_t size;
    an_layer_type type;
    const char *name;  /* of its parameters; NULL: its number */
    const char *place; /* what a message about it begins with; NULL: "layer N" */
    int64_t features;  /* linear; 0: as many as targets need, which only the last linear layer can have */
    int64_t filters;   /* convolution */
    int64_t window;    /* convolution and pools */
    int64_t stride;    /* the same; 0: 1 for a convolution, the window for a pool */
    int64_t padding;   /* the same */
    bool same;         /* convolution: the padding that keeps the size of an image, instead */
    bool plain;        /* linear and convolution: no bias */
    double rate;       /* dropout */
    double momentum;   /* batch norm */
    double epsilon;    /* norms */
} an_layer;

/* Layers one after another, from x (batch, …) to y (batch, …). A layer with parameters begins a block, which what follows belongs to; a
 * linear layer or a convolution is one deeper than the one before it. Inputs x, targets (i32 (batch) for cross entropy, else like the
 * targets' dimensions; and samples, i64 (batch), if a layer drops something); symbol batch. */
typedef struct an_sequential_options {
    size_t size;
    an_dtype dtype; /* NONE: f32 */
    an_loss_kind loss;
    int input_ndims; /* of a sample, as the data has it */
    const int64_t *inputs;
    int shape_ndims; /* of a sample, as the first layer sees it; 0: as the data has it */
    const int64_t *shape;
    int target_ndims; /* of a sample's targets, for AN_LOSS_SQUARED; -1: those of the last layer */
    const int64_t *targets;
    int64_t classes; /* for AN_LOSS_CROSS_ENTROPY; 0: not known, and the last layer says */
    int layer_count;
    const an_layer *layers;
} an_sequential_options;
AN_API an_status an_model_sequential(an_graph **graph, an_context *ctx, const an_sequential_options *options);

/* Sizes by name: gpt2-124m, gpt2-355m, gpt2-774m, gpt2-1.5b. AN_ERR_UNKNOWN lists them. dtype NONE: f32. */
AN_API an_status an_model_preset(an_graph **graph, an_context *ctx, const char *name, an_dtype dtype);
/* The sizes of a preset, to change some of them before an_model_gpt2. `ctx` may be NULL. */
AN_API an_status an_model_preset_options(an_context *ctx, const char *name, an_gpt2_options *options);
AN_API const char *an_model_preset_name(int index); /* NULL after the last */

#ifdef __cplusplus
}
#endif
#endif
