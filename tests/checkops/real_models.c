/* Models of real sizes: checkops takes the nodes of their training steps, that is what kernels are really called
 * with. */
#include "checkops/real_models.h"

#include <string.h>

#include "anneal/models.h"
#include "anneal/plan.h"
#include "models.h" /* of bench: what is measured is checked */

/* GPT-2 124M of another number of layers: they are all alike. */
static an_status gpt2(an_graph **graph, an_context *ctx, an_dtype dtype, int64_t vocabulary) {
    an_gpt2_options options;
    an_gpt2_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.layers = 1;
    options.heads = 12;
    options.width = 768;
    options.context = 1024;
    options.vocabulary = vocabulary;
    return an_model_gpt2(graph, ctx, &options);
}

static an_status gpt2_padded(an_graph **graph, an_context *ctx, an_dtype dtype) {
    return gpt2(graph, ctx, dtype, 50304);
}

static an_status gpt2_logical(an_graph **graph, an_context *ctx, an_dtype dtype) {
    return gpt2(graph, ctx, dtype, 50257);
}

/* With a vocabulary that leaves something for f64. */
static an_status gpt2_little(an_graph **graph, an_context *ctx, an_dtype dtype) {
    return gpt2(graph, ctx, dtype, 1000);
}

static an_status digits(an_graph **graph, an_context *ctx, an_dtype dtype) {
    static const int64_t hidden[] = {256, 128};
    an_mlp_options options;
    an_mlp_options_init(&options, sizeof options);
    options.dtype = dtype;
    options.inputs = 784; /* pixels */
    options.outputs = 10;
    options.hidden_count = 2;
    options.hidden = hidden;
    return an_model_mlp(graph, ctx, &options);
}

static an_status mlp(an_graph **graph, an_context *ctx, an_dtype dtype) {
    return bench_model(graph, ctx, "mlp", dtype);
}
static an_status lenet(an_graph **graph, an_context *ctx, an_dtype dtype) {
    return bench_model(graph, ctx, "lenet", dtype);
}
static an_status resnet18(an_graph **graph, an_context *ctx, an_dtype dtype) {
    return bench_model(graph, ctx, "resnet18", dtype);
}
static an_status product(an_graph **graph, an_context *ctx, an_dtype dtype) {
    return bench_model(graph, ctx, "product", dtype);
}

#define LANGUAGE(batch, tokens) \
    {                           \
        {"batch", batch}, {     \
            "tokens", tokens    \
        }                       \
    }
#define PRODUCT(m, n, k)      \
    {                         \
        {"m", m}, {"n", n}, { \
            "k", k            \
        }                     \
    }

/* In --mode=rows a model's batch is bound to fewer samples, so there samples have few rows. */
const real_model real_models[] = {
    {"gpt2-124m-b4-t256", gpt2_padded, LANGUAGE(4, 256), .in_f64 = false},
    {"gpt2-124m-b4-t256-v50257", gpt2_logical, LANGUAGE(4, 256), .in_f64 = false},
    {"gpt2-124m-b4-t1024", gpt2_padded, LANGUAGE(4, 1024), .in_f64 = false},
    {"gpt2-124m-b4-t1024-v50257", gpt2_logical, LANGUAGE(4, 1024), .in_f64 = false},
    {"gpt2-124m-b2-t100-v1000", gpt2_little, LANGUAGE(2, 100), .in_f64 = true},
    {"gpt2-124m-b64-t1", gpt2_padded, LANGUAGE(64, 1), .for_rows = true},
    {"gpt2-124m-b64-t3-v1000", gpt2_little, LANGUAGE(64, 3), .in_f64 = true, .for_rows = true},
    {"mlp-32-128-128-8-b64", mlp, {{"batch", 64}}, .in_f64 = true, .for_rows = true},
    {"mlp-32-128-128-8-b4096", mlp, {{"batch", 4096}}, .in_f64 = true, .for_rows = true},
    {"mlp-784-256-128-10-b64", digits, {{"batch", 64}}, .in_f64 = true, .for_rows = true},
    {"mlp-784-256-128-10-b4096", digits, {{"batch", 4096}}, .in_f64 = true, .for_rows = true},
    {"lenet-b64", lenet, {{"batch", 64}}, .in_f64 = true, .for_rows = true},
    {"resnet18-b64", resnet18, {{"batch", 64}}, .for_rows = true},
    /* small results of long sums, which libraries like to cut by the number of threads */
    {"product-64x64x8192", product, PRODUCT(64, 64, 8192), .in_f64 = true},
    {"product-784x128x4096", product, PRODUCT(784, 128, 4096), .in_f64 = true},
    {"product-16x16x65536", product, PRODUCT(16, 16, 65536), .in_f64 = true},
    {0},
};

const real_model *real_model_find(const char *name) {
    for (const real_model *model = real_models; model->name; model++)
        if (!strcmp(model->name, name)) return model;
    return NULL;
}

an_status real_model_plan(an_plan **plan, an_context *ctx, const real_model *model, an_dtype dtype, bool unfused) {
    const char *symbols[REAL_MODEL_SYMBOLS];
    int64_t maxima[REAL_MODEL_SYMBOLS];
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_graph *graph = NULL;
    options.symbols = symbols;
    options.maxima = maxima;
    for (; options.symbol_count < REAL_MODEL_SYMBOLS && model->sizes[options.symbol_count].symbol;
         options.symbol_count++) {
        symbols[options.symbol_count] = model->sizes[options.symbol_count].symbol;
        maxima[options.symbol_count] = model->sizes[options.symbol_count].value;
    }
    options.precision = dtype == AN_DTYPE_BF16 ? AN_DTYPE_BF16 : AN_DTYPE_NONE;
    options.fused = !unfused;
    *plan = NULL;
    an_status status = model->build(&graph, ctx, dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32);
    if (status == AN_OK) status = an_plan_create(plan, ctx, graph, &options);
    an_graph_destroy(&graph);
    return status;
}
