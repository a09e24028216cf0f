#include "golden/model.h"

#include <string.h>

#include "anneal/models.h"

/* An option that the case does not give is 0, the library's default. */
static double number(const golden_case *c, const char *name) {
    const golden_array *option = golden_find(c, "option", name);
    return option && option->count > 0 ? option->values[0] : 0;
}

static int64_t integer(const golden_case *c, const char *name) {
    return (int64_t)number(c, name);
}

enum { MOST_LAYERS = 16 };

static int integers(const golden_case *c, const char *name, int64_t *values) {
    const golden_array *option = golden_find(c, "option", name);
    int count = option ? (int)option->count : 0;
    for (int i = 0; i < count && i < MOST_LAYERS; i++) values[i] = (int64_t)option->values[i];
    return count < MOST_LAYERS ? count : MOST_LAYERS;
}

static an_status mlp(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype) {
    int64_t hidden[MOST_LAYERS];
    an_mlp_options options;
    an_mlp_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.inputs = integer(c, "inputs");
    options.outputs = integer(c, "outputs");
    options.hidden_count = integers(c, "hidden", hidden);
    options.hidden = hidden;
    options.activation = (an_activation)integer(c, "activation");
    options.batch_norm = integer(c, "batch_norm") != 0;
    options.loss = (an_loss_kind)integer(c, "loss");
    return an_model_mlp(graph, ctx, &options);
}

static an_status cnn(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype) {
    int64_t filters[MOST_LAYERS];
    an_cnn_options options;
    an_cnn_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.channels = integer(c, "channels");
    options.height = integer(c, "height");
    options.width = integer(c, "width");
    options.classes = integer(c, "classes");
    options.filter_count = integers(c, "filters", filters);
    options.filters = filters;
    options.hidden = integer(c, "hidden");
    options.activation = (an_activation)integer(c, "activation");
    options.batch_norm = integer(c, "batch_norm") != 0;
    return an_model_cnn(graph, ctx, &options);
}

static an_status gpt2(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype) {
    an_gpt2_options options;
    an_gpt2_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.layers = integer(c, "layers");
    options.heads = integer(c, "heads");
    options.width = integer(c, "width");
    options.context = integer(c, "context");
    options.vocabulary = integer(c, "vocabulary");
    return an_model_gpt2(graph, ctx, &options);
}

static an_status llama(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype) {
    an_llama_options options;
    an_llama_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.layers = integer(c, "layers");
    options.heads = integer(c, "heads");
    options.kv_heads = integer(c, "kv_heads");
    options.width = integer(c, "width");
    options.hidden = integer(c, "hidden");
    options.context = integer(c, "context");
    options.vocabulary = integer(c, "vocabulary");
    options.rotary_base = number(c, "rotary_base");
    options.epsilon = number(c, "epsilon");
    options.tied = integer(c, "tied") != 0;
    return an_model_llama(graph, ctx, &options);
}

static an_status bert(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype) {
    an_bert_options options;
    an_bert_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.layers = integer(c, "layers");
    options.heads = integer(c, "heads");
    options.width = integer(c, "width");
    options.hidden = integer(c, "hidden");
    options.context = integer(c, "context");
    options.vocabulary = integer(c, "vocabulary");
    options.token_types = integer(c, "token_types");
    options.classes = integer(c, "classes");
    options.pooling = (an_bert_pooling)integer(c, "pooling");
    return an_model_bert(graph, ctx, &options);
}

an_status golden_model(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype) {
    static const struct {
        const char *prefix;
        an_status (*build)(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype);
    } models[] = {{"mlp.", mlp}, {"cnn.", cnn}, {"gpt2.", gpt2}, {"llama.", llama}, {"bert.", bert}};
    *graph = NULL;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (!strncmp(c->name, models[i].prefix, strlen(models[i].prefix))) return models[i].build(graph, ctx, c, dtype);
    return AN_ERR_UNKNOWN;
}
