/* What the tests of recompute share: models that have everything it can meet, plans of them, and input for any. */
#ifndef TESTS_RECOMPUTE_MODELS_H
#define TESTS_RECOMPUTE_MODELS_H

#include "anneal/models.h"
#include "anneal/plan.h"
#include "support/support.h"

static const char *const symbols[] = {"batch", "tokens"};
enum { BATCH = 4, TOKENS = 16 };

static inline an_status build_gpt(an_graph **g, an_context *ctx) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.layers = 4;
    o.heads = 2;
    o.width = 32;
    o.context = TOKENS;
    o.vocabulary = 20;
    o.dropout = 0.1;
    return an_model_gpt2(g, ctx, &o);
}

static inline an_status build_llama(an_graph **g, an_context *ctx) {
    an_llama_options o;
    an_llama_options_init(&o, sizeof o);
    o.layers = 3;
    o.heads = 4;
    o.kv_heads = 2;
    o.width = 32;
    o.hidden = 48;
    o.context = TOKENS;
    o.vocabulary = 20;
    return an_model_llama(g, ctx, &o);
}

static inline an_status build_mlp(an_graph **g, an_context *ctx) {
    an_mlp_options o;
    an_mlp_options_init(&o, sizeof o);
    o.inputs = 12;
    o.outputs = 5;
    o.hidden_count = 5;
    o.hidden = (const int64_t[]){64, 64, 64, 64, 64};
    o.activation = AN_ACTIVATION_SILU;
    o.batch_norm = true;
    o.dropout = 0.2;
    return an_model_mlp(g, ctx, &o);
}

static inline an_status build_cnn(an_graph **g, an_context *ctx) {
    an_cnn_options o;
    an_cnn_options_init(&o, sizeof o);
    o.channels = 3;
    o.height = o.width = 16;
    o.classes = 5;
    o.filter_count = 3;
    o.filters = (const int64_t[]){8, 8, 16};
    o.hidden = 32;
    o.activation = AN_ACTIVATION_GELU;
    o.batch_norm = true;
    o.dropout = 0.2;
    return an_model_cnn(g, ctx, &o);
}

typedef struct choice {
    an_recompute mode;
    int segments;
    int64_t budget;
    an_dtype precision;
    int64_t tokens; /* 0: TOKENS */
} choice;

static inline an_status plan_choice(an_plan **plan, an_context *ctx, const an_graph *g, choice c) {
    an_plan_options o;
    an_plan_options_init(&o, sizeof o);
    while (an_graph_symbol_name(g, o.symbol_count)) o.symbol_count++;
    o.symbols = symbols;
    o.maxima = (const int64_t[]){BATCH, c.tokens ? c.tokens : TOKENS};
    o.recompute = c.mode;
    o.segments = c.segments;
    o.budget = c.budget;
    o.precision = c.precision;
    return an_plan_create(plan, ctx, g, &o);
}

static inline an_plan_memory memory_of(const an_plan *plan) {
    an_plan_memory m;
    an_plan_memory_init(&m, sizeof m);
    assert_int_equal(an_plan_memory_get(plan, &m), AN_OK);
    return m;
}

static inline int64_t arena_of(const an_plan *plan) {
    return memory_of(plan).activations + memory_of(plan).scratch;
}

/* Fills every input at the bound sizes. */
static inline void feed(an_context *ctx, an_program *program, uint64_t seed) {
    for (int64_t n = 0; n < an_program_input_count(program); n++) {
        an_input_info info;
        an_input_info_init(&info, sizeof info);
        int64_t elements = 1;
        OK(ctx, an_program_input(program, n, &info));
        for (int i = 0; i < info.ndims; i++) elements *= info.dims[i];
        void *data = calloc((size_t)elements, sizeof(int64_t));
        assert_non_null(data);
        for (int64_t i = 0; i < elements; i++) {
            double x = noise((uint64_t)i + 100000 * seed);
            if (info.dtype == AN_DTYPE_F32) ((float *)data)[i] = (float)x;
            if (info.dtype == AN_DTYPE_I32) ((int32_t *)data)[i] = (int32_t)((x + 1) / 2 * (double)info.limit);
            if (info.dtype == AN_DTYPE_I64) ((int64_t *)data)[i] = i + (int64_t)seed;
        }
        an_array array = array_of(data, info.dtype, info.ndims, info.dims);
        OK(ctx, an_program_set_input(program, info.name, &array));
        free(data);
    }
}

#endif
