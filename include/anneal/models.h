/* Ready-made models: functions that build graphs. Each creates its inputs, outputs and loss; verify and plan them like
 * any other graph. The graph is the caller's. None of these functions is collective.
 *
 * With normalize_inputs, the layers get (x - mean) ÷ scale of every feature, or of every channel of images. With
 * normalize_targets, the loss compares normalized numbers, and the output y is the layers' result · scale + mean. So
 * the model takes and gives physical units. Mean and scale are run states, normalize.input.mean, normalize.target.scale
 * and so on. They have no values until an_trainer_normalize, a checkpoint or an_trainer_load_weights sets them; a step
 * before that is refused.
 */
#ifndef ANNEAL_MODELS_H
#define ANNEAL_MODELS_H

#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

typedef enum an_loss_kind {
    AN_LOSS_CROSS_ENTROPY = 0,
    AN_LOSS_SQUARED = 1,
    AN_LOSS_BINARY = 2, /* binary cross entropy: each output is the logit of a label that is present (1) or not (0) */
    AN_LOSS_LIMIT = 0x7fffffff
} an_loss_kind;

typedef enum an_activation {
    AN_ACTIVATION_RELU = 0,
    AN_ACTIVATION_GELU = 1,
    AN_ACTIVATION_TANH = 2,
    AN_ACTIVATION_SILU = 3,
    AN_ACTIVATION_LIMIT = 0x7fffffff
} an_activation;

/* A column of categories (an_category_info), inputs begin to begin + count - 1 of a sample: 1 for the sample's category
 * and 0 for all others. A model that embeds the column gives its layers the category's row of a learned table, count ×
 * width, in place of these numbers. A sample with none of the categories gets zeros. The tables are named
 * embedding.0.weight, embedding.1.weight and so on. Normalization does not change these columns. */
typedef struct an_embedded_column {
    size_t size;
    int64_t begin, count, width;
} an_embedded_column;
AN_API void an_embedded_column_init(an_embedded_column *column, size_t size);

/* A multilayer perceptron: x (batch, inputs) → hidden layers → y (batch, outputs). Inputs: x; targets, i32 (batch) for
 * cross entropy, otherwise like y; with dropout also samples, i64 (batch). Symbol: batch. */
typedef struct an_mlp_options {
    size_t size;
    int64_t inputs, outputs;
    const int64_t *hidden;
    double dropout;
    const an_embedded_column *embedded; /* in the order of the inputs; NULL: none */
    int hidden_count;
    an_dtype dtype; /* NONE: f32 */
    an_activation activation;
    an_loss_kind loss;
    int embedded_count; /* at most 256 */
    bool batch_norm;
    bool normalize_inputs;  /* see the top of this file */
    bool normalize_targets; /* the same; for AN_LOSS_SQUARED */
    uint8_t reserved[1];
} an_mlp_options;
AN_API void an_mlp_options_init(an_mlp_options *options, size_t size);
AN_API an_status an_model_mlp(an_graph **graph, an_context *ctx, const an_mlp_options *options);

/* A convolutional network: image (batch, channels, height, width) → 3×3 convolutions, each followed by the activation
 * and 2×2 max pooling → one hidden layer → logits (batch, classes). Inputs: image; targets, i32 (batch); with dropout
 * also samples. Symbol: batch. */
typedef struct an_cnn_options {
    size_t size;
    int64_t channels, height, width, classes;
    const int64_t *filters;
    int64_t hidden;
    double dropout;
    int filter_count;
    an_dtype dtype; /* NONE: f32 */
    an_activation activation;
    bool batch_norm;
    bool normalize_inputs; /* see the top of this file */
    uint8_t reserved[2];
} an_cnn_options;
AN_API void an_cnn_options_init(an_cnn_options *options, size_t size);
AN_API an_status an_model_cnn(an_graph **graph, an_context *ctx, const an_cnn_options *options);

/* GPT-2: learned positions, pre-layer-norm, tanh gelu, output layer tied to the token table. Inputs: tokens and
 * targets, i32 (batch, tokens); with dropout also samples. Symbols: batch, tokens. */
typedef struct an_gpt2_options {
    size_t size;
    int64_t layers, heads, width, context, vocabulary;
    double dropout;
    an_dtype dtype; /* NONE: f32 */
    bool documents; /* one more input documents, i32 (batch, tokens): attention stays inside each document */
    uint8_t reserved[3];
} an_gpt2_options;
AN_API void an_gpt2_options_init(an_gpt2_options *options, size_t size);
AN_API an_status an_model_gpt2(an_graph **graph, an_context *ctx, const an_gpt2_options *options);

/* Builds a model by its name: gpt2-124m, gpt2-355m, gpt2-774m or gpt2-1.5b. dtype NONE: f32. AN_ERR_UNKNOWN: the
 * message lists the names. */
AN_API an_status an_model_preset(an_graph **graph, an_context *ctx, const char *name, an_dtype dtype);
/* Gives the options of such a model, to change some of them before an_model_gpt2. `ctx` may be NULL. */
AN_API an_status an_model_preset_options(an_context *ctx, const char *name, an_gpt2_options *options);
AN_API const char *an_model_preset_name(int index); /* NULL after the last */

/* ==== details ==== the rest of the interface */

/* ---- language models and sentences ---- */

/* Llama, and models that differ only in details: Mistral, Qwen2, Qwen3. Rotary positions, RMS norm, grouped key and
 * value heads, SwiGLU. Inputs as GPT-2. Rotary positions need no table, so `context` does not limit anything. */
typedef struct an_llama_options {
    size_t size;
    int64_t layers, heads, kv_heads, width, hidden, context, vocabulary;
    double rotary_base;     /* 10,000 by default */
    double epsilon;         /* 1e-5 by default */
    int64_t head_size;      /* 0: width ÷ heads */
    int64_t window;         /* maximum number of tokens that a token sees, itself and those before it; 0: all */
    double rotary_factor;   /* the rotary scaling of Llama 3.1, as in an_rotary_options; 0: none */
    double rotary_low;      /* its low_factor */
    double rotary_high;     /* its high_factor */
    int64_t rotary_context; /* its original_context */
    an_dtype dtype;         /* NONE: f32 */
    bool tied;              /* the output layer is the token table */
    bool documents;         /* as in an_gpt2_options */
    bool attention_bias;    /* q, k and v have a bias */
    bool output_bias;       /* the layer after attention has a bias */
    bool feed_forward_bias;
    bool query_key_norm; /* an RMS norm over every head of q and of k, before the rotation */
    uint8_t reserved[6];
} an_llama_options;
AN_API void an_llama_options_init(an_llama_options *options, size_t size);
AN_API an_status an_model_llama(an_graph **graph, an_context *ctx, const an_llama_options *options);

/* How the hidden states of a sample's tokens become one row. */
typedef enum an_bert_pooling {
    AN_BERT_POOLING_POOLER = 0, /* first token, through pooler.dense and tanh */
    AN_BERT_POOLING_MEAN = 1,   /* mean over the tokens, without padding */
    AN_BERT_POOLING_FIRST = 2,  /* first token as it is */
    AN_BERT_POOLING_LIMIT = 0x7fffffff
} an_bert_pooling;

/* Only a model with a classifier has a loss and can be trained; the others predict. */
typedef enum an_bert_head {
    AN_BERT_HEAD_CLASSES = 0, /* logits (batch, classes): a linear layer on the pooled row; the loss is cross entropy */
    AN_BERT_HEAD_EMBEDDING = 1, /* embedding (batch, width): the pooled row, with length 1 */
    AN_BERT_HEAD_NONE = 2,      /* hidden (batch, tokens, width) */
    AN_BERT_HEAD_LIMIT = 0x7fffffff
} an_bert_head;

/* BERT: learned positions, norms after the residual sums, gelu by erf, attention in both directions. Inputs,
 * i32 (batch, tokens): tokens; token_types, 0 for a sentence and 1 for a second one beside it; mask, 1 for
 * tokens and 0 for padding, which no token sees. With a classifier also targets, i32 (batch); with dropout
 * also samples. Symbols: batch, tokens. */
typedef struct an_bert_options {
    size_t size;
    int64_t layers, heads, width, context, vocabulary;
    int64_t hidden;      /* of the feed-forward layers */
    int64_t token_types; /* 2 by default */
    int64_t classes;     /* with a classifier */
    double dropout;      /* of hidden states, attention weights and the pooled row */
    double epsilon;      /* 1e-12 by default */
    an_dtype dtype;      /* NONE: f32 */
    an_bert_head head;
    an_bert_pooling pooling;
    uint32_t reserved;
} an_bert_options;
AN_API void an_bert_options_init(an_bert_options *options, size_t size);
AN_API an_status an_model_bert(an_graph **graph, an_context *ctx, const an_bert_options *options);

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
    AN_LAYER_RMS_NORM = 13,
    AN_LAYER_LIMIT = 0x7fffffff
} an_layer_type;

typedef struct an_layer {
    size_t size;
    const char *name;  /* of its parameters; NULL: its number */
    const char *place; /* text that messages about it begin with; NULL: "layer N" */
    int64_t features;  /* linear; 0: the number that the targets need; allowed for the last linear layer */
    int64_t filters;   /* convolution */
    int64_t window;    /* convolution and pools */
    int64_t stride;    /* convolution and pools; 0: 1 for a convolution, the window for a pool */
    int64_t padding;   /* convolution and pools */
    double rate;       /* dropout */
    double momentum;   /* batch norm; 0.1 by default */
    double epsilon;    /* norms; 1e-5 by default */
    an_layer_type type;
    bool same; /* convolution: the padding that keeps the size of an image, instead of `padding` */
    bool bias; /* linear and convolution; true by default */
    uint8_t reserved[2];
} an_layer;
AN_API void an_layer_init(an_layer *layer, size_t size);

/* Layers one after another, from x (batch, …) to y (batch, …). A layer with parameters begins a block, which
 * contains the layers after it up to the next block. The depth rises with each linear layer or convolution. Inputs:
 * x; targets, i32 (batch) for cross entropy, otherwise with the targets' dimensions; with dropout also samples,
 * i64 (batch). Symbol: batch. */
typedef struct an_sequential_options {
    size_t size;
    const int64_t *inputs;  /* dimensions of a sample in the data */
    const int64_t *shape;   /* dimensions of a sample for the first layer; NULL: as in the data */
    const int64_t *targets; /* dimensions of a sample's targets, for AN_LOSS_SQUARED; NULL: those of the last layer */
    int64_t classes;        /* for AN_LOSS_CROSS_ENTROPY; 0: unknown, the last layer decides */
    const an_layer *layers;
    const an_embedded_column *embedded; /* in the order of the inputs, which have one dimension; NULL: none */
    int input_ndims;
    int shape_ndims;
    int target_ndims;
    int layer_count;
    an_dtype dtype; /* NONE: f32 */
    an_loss_kind loss;
    int embedded_count;     /* at most 256 */
    bool normalize_inputs;  /* see the top of this file */
    bool normalize_targets; /* the same; for AN_LOSS_SQUARED */
    uint8_t reserved[2];
} an_sequential_options;
AN_API void an_sequential_options_init(an_sequential_options *options, size_t size);
AN_API an_status an_model_sequential(an_graph **graph, an_context *ctx, const an_sequential_options *options);

#ifdef __cplusplus
}
#endif
#endif
