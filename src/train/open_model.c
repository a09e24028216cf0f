/* Models of a config. Sizes that it leaves open are those of the data. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "anneal/models.h"
#include "train/open.h"

enum { MOST_LAYERS = 256 };

typedef struct {
    an_graph **graph;
    an_config *config;
    an_context *ctx;
    an_dataset *dataset;
    an_dtype dtype;
    an_field inputs, targets; /* the first of each */
    int64_t classes;          /* 0: targets are numbers, or nobody knows how many classes there are */
} opening;

static an_status find_fields(opening *o) {
    an_context *ctx = o->ctx;
    o->inputs = (an_field)AN_INIT(o->inputs);
    o->targets = (an_field)AN_INIT(o->targets);
    AN_TRY_RETURN(an_dataset_field(o->dataset, 0, &o->inputs));
    for (int i = an_dataset_field_count(o->dataset) - 1; i >= 0; i--) {
        an_field field = AN_INIT(field);
        AN_TRY_RETURN(an_dataset_field(o->dataset, i, &field));
        if (field.target) o->targets = field;
    }
    return AN_OK;
}

static int64_t elements_of(const an_field *field) {
    int64_t elements = 1;
    for (int d = 0; d < field->ndims; d++) elements *= field->dims[d];
    return elements;
}

/* How many classes the targets name, the largest and one. Files of labels do not say: O(samples), all of them are read, once. */
static an_status count_classes(opening *o) {
    enum { AT_ONCE = 256 };
    an_status status;
    an_context *ctx = o->ctx;
    an_sample_buffer b;
    int field = 0;
    AN_TRY_RETURN(an_sample_buffer_create(&b, ctx, o->dataset, AT_ONCE));
    for (int i = 0; i < an_dataset_field_count(o->dataset); i++) {
        an_field f = AN_INIT(f);
        AN_TRY(an_dataset_field(o->dataset, i, &f));
        if (!strcmp(f.name, o->targets.name)) field = i;
    }
    AN_CHECK(ctx, o->targets.dtype == AN_DTYPE_I32, AN_ERR_ARGUMENT, "%s: the targets of the data are no classes",
             an_config_place(o->config, "model"));
    const int64_t samples = an_dataset_count(o->dataset), each = elements_of(&o->targets);
    for (int64_t begin = 0; begin < samples; begin += AT_ONCE) {
        const int64_t n = samples - begin < AT_ONCE ? samples - begin : AT_ONCE;
        for (int64_t i = 0; i < n; i++) b.indices[i] = begin + i;
        AN_TRY(an_dataset_read(o->dataset, n, b.indices, b.fields));
        for (int64_t i = 0; i < n * each; i++) {
            const int32_t target = ((const int32_t *)b.fields[field])[i];
            if (target >= o->classes) o->classes = (int64_t)target + 1;
        }
    }
    status = AN_OK;
fail:
    an_sample_buffer_destroy(&b, ctx);
    return status;
}

static an_status get_layers(const opening *o, const char *key, int64_t *layers, int *count) {
    an_context *ctx = o->ctx;
    AN_TRY_RETURN(an_config_counts(o->config, key, MOST_LAYERS, layers, count));
    if (*count <= MOST_LAYERS) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d layers; at most %d", an_config_place(o->config, key), *count,
                    MOST_LAYERS);
}

static an_activation get_activation(const opening *o) {
    static const char *const names[] = {[AN_ACTIVATION_RELU] = "relu",
                                        [AN_ACTIVATION_GELU] = "gelu",
                                        [AN_ACTIVATION_TANH] = "tanh",
                                        [AN_ACTIVATION_SILU] = "silu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (an_config_is(o->config, "model.activation", names[i])) return (an_activation)i;
    return AN_ACTIVATION_RELU;
}

static bool has_classes(const opening *o) {
    return o->targets.dtype == AN_DTYPE_I32 || o->targets.dtype == AN_DTYPE_I64;
}

/* ---- one function a type ---- */

static an_status open_mlp(opening *o) {
    an_context *ctx = o->ctx;
    an_mlp_options m = AN_INIT(m);
    int64_t hidden[MOST_LAYERS];
    m.dtype = o->dtype;
    m.loss = an_config_is(o->config, "model.loss", "cross_entropy") ||
                     (an_config_is(o->config, "model.loss", "auto") && has_classes(o))
                 ? AN_LOSS_CROSS_ENTROPY
                 : AN_LOSS_SQUARED;
    m.inputs = elements_of(&o->inputs);
    if (an_config_is(o->config, "model.outputs", "auto") && m.loss == AN_LOSS_CROSS_ENTROPY)
        AN_TRY_RETURN(count_classes(o));
    m.outputs = m.loss == AN_LOSS_CROSS_ENTROPY ? o->classes : elements_of(&o->targets);
    AN_TRY_RETURN(an_open_count(o->config, "model.inputs", &m.inputs));
    AN_TRY_RETURN(an_open_count(o->config, "model.outputs", &m.outputs));
    AN_TRY_RETURN(get_layers(o, "model.hidden", hidden, &m.hidden_count));
    m.hidden = hidden;
    m.activation = get_activation(o);
    AN_TRY_RETURN(an_config_bool(o->config, "model.batch_norm", &m.batch_norm));
    AN_TRY_RETURN(an_config_real(o->config, "model.dropout", &m.dropout));
    return an_model_mlp(o->graph, ctx, &m);
}

static an_status open_cnn(opening *o) {
    an_context *ctx = o->ctx;
    an_cnn_options m = AN_INIT(m);
    int64_t filters[MOST_LAYERS];
    if (o->inputs.ndims == 3) {
        m.channels = o->inputs.dims[0];
        m.height = o->inputs.dims[1];
        m.width = o->inputs.dims[2];
    }
    m.dtype = o->dtype;
    if (an_config_is(o->config, "model.classes", "auto")) AN_TRY_RETURN(count_classes(o));
    m.classes = o->classes;
    AN_TRY_RETURN(an_open_count(o->config, "model.channels", &m.channels));
    AN_TRY_RETURN(an_open_count(o->config, "model.height", &m.height));
    AN_TRY_RETURN(an_open_count(o->config, "model.width", &m.width));
    AN_TRY_RETURN(an_open_count(o->config, "model.classes", &m.classes));
    AN_TRY_RETURN(get_layers(o, "model.filters", filters, &m.filter_count));
    m.filters = filters;
    AN_TRY_RETURN(an_config_count(o->config, "model.hidden", &m.hidden));
    m.activation = get_activation(o);
    AN_TRY_RETURN(an_config_bool(o->config, "model.batch_norm", &m.batch_norm));
    AN_TRY_RETURN(an_config_real(o->config, "model.dropout", &m.dropout));
    return an_model_cnn(o->graph, ctx, &m);
}

/* Token files do not say how many tokens there are. */
static an_status get_vocabulary(const opening *o, int64_t *vocabulary) {
    an_context *ctx = o->ctx;
    if (!an_config_is(o->config, "model.vocabulary", "auto"))
        return an_config_count(o->config, "model.vocabulary", vocabulary);
    AN_TRY_RETURN(an_dataset_vocabulary(o->dataset, vocabulary));
    if (*vocabulary > 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the data does not say how many tokens there are: give model.vocabulary",
                    an_config_place(o->config, "model"));
}

static an_status open_gpt2(opening *o) {
    an_context *ctx = o->ctx;
    an_gpt2_options m = AN_INIT(m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_count(o->config, "model.layers", &m.layers));
    AN_TRY_RETURN(an_config_count(o->config, "model.heads", &m.heads));
    AN_TRY_RETURN(an_config_count(o->config, "model.width", &m.width));
    AN_TRY_RETURN(an_config_count(o->config, "model.context", &m.context));
    AN_TRY_RETURN(an_config_real(o->config, "model.dropout", &m.dropout));
    AN_TRY_RETURN(get_vocabulary(o, &m.vocabulary));
    return an_model_gpt2(o->graph, ctx, &m);
}

static an_status open_llama(opening *o) {
    enum { MULTIPLE = 64 };
    an_context *ctx = o->ctx;
    an_llama_options m = AN_INIT(m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_count(o->config, "model.layers", &m.layers));
    AN_TRY_RETURN(an_config_count(o->config, "model.heads", &m.heads));
    AN_TRY_RETURN(an_config_count(o->config, "model.width", &m.width));
    AN_TRY_RETURN(an_config_count(o->config, "model.context", &m.context));
    m.kv_heads = m.heads;
    m.hidden = (m.width * 8 / 3 + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    AN_TRY_RETURN(an_open_count(o->config, "model.kv_heads", &m.kv_heads));
    AN_TRY_RETURN(an_open_count(o->config, "model.hidden", &m.hidden));
    AN_TRY_RETURN(an_config_real(o->config, "model.rotary_base", &m.rotary_base));
    AN_TRY_RETURN(an_config_real(o->config, "model.epsilon", &m.epsilon));
    AN_TRY_RETURN(an_config_bool(o->config, "model.tied", &m.tied));
    AN_TRY_RETURN(get_vocabulary(o, &m.vocabulary));
    return an_model_llama(o->graph, ctx, &m);
}

static const struct {
    const char *type;
    an_status (*open)(opening *o);
} types[] = {{"mlp", open_mlp}, {"cnn", open_cnn}, {"gpt2", open_gpt2}, {"llama", open_llama}};

an_status an_open_model(an_graph **graph, an_config *config, an_context *ctx, an_dataset *dataset, an_dtype dtype) {
    opening o = {.graph = graph, .config = config, .ctx = ctx, .dataset = dataset, .dtype = dtype};
    *graph = NULL;
    AN_TRY_RETURN(find_fields(&o));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (an_config_is(config, "model.type", types[i].type)) return types[i].open(&o);
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: this type of model cannot be opened from a config yet",
                    an_config_place(config, "model.type"));
}
