/* A program outside the tree. It is compiled as C11 and, unchanged and without a cast, as C++17: it builds a model,
 * plans it, trains it a little and predicts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <anneal/anneal.h>
#include <anneal/experimental.h>
#include <anneal/models.h>
#include <anneal/plan.h>
#include <anneal/version.h>

enum { BATCH = 8, INPUTS = 2, STEPS = 300 };

static const float rate = 0.5f;

/* w ← w − rate · gradient, for every parameter. */
static int descend(an_params *params) {
    float weight[64], gradient[64];
    int ok = 1;
    for (int64_t i = 0; ok && i < an_params_count(params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        an_array array;
        memset(&array, 0, sizeof array);
        ok = an_params_info(params, i, &info) == AN_OK && info.elements <= 64;
        if (!ok) break;
        array.dtype = info.dtype;
        array.ndims = info.ndims;
        memcpy(array.dims, info.dims, sizeof array.dims);
        array.data = weight;
        ok = an_params_get(params, info.name, AN_PART_WEIGHT, &array) == AN_OK;
        array.data = gradient;
        ok = ok && an_params_get(params, info.name, AN_PART_GRADIENT, &array) == AN_OK;
        for (int64_t k = 0; k < info.elements; k++) weight[k] -= rate * gradient[k];
        array.data = weight;
        ok = ok && an_params_set(params, info.name, AN_PART_WEIGHT, &array) == AN_OK;
    }
    return ok;
}

int main(void) {
    an_context *ctx = NULL;
    an_graph *graph = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    an_array x, y;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    float inputs[BATCH * INPUTS], targets[BATCH];
    double loss = 0, first = 0;
    const char *symbols[] = {"batch"};
    int64_t maxima[] = {BATCH};

    for (int i = 0; i < BATCH; i++) { /* exclusive or */
        inputs[2 * i] = i & 1 ? 1.0f : -1.0f;
        inputs[2 * i + 1] = i & 2 ? 1.0f : -1.0f;
        targets[i] = (i & 1) != (i >> 1 & 1) ? 1.0f : 0.0f;
    }
    x.data = inputs;
    y.data = targets;
    x.dtype = y.dtype = AN_DTYPE_F32;
    x.ndims = y.ndims = 2;
    x.dims[0] = y.dims[0] = BATCH;
    x.dims[1] = INPUTS;
    y.dims[1] = 1;
    options.symbol_count = 1;
    options.symbols = symbols;
    options.maxima = maxima;

    int ok = an_context_create(&ctx, NULL) == AN_OK && an_graph_create(&graph, ctx, "xor") == AN_OK;
    if (ok) {
        an_dim batch = an_symbol_dim(graph, "batch");
        an_value in = an_input(graph, "x", AN_DTYPE_F32, AN_DIMS(batch, INPUTS));
        an_value want = an_input(graph, "y", AN_DTYPE_F32, AN_DIMS(batch, 1));
        an_value out = an_linear(graph, an_tanh(graph, an_linear(graph, in, "hidden", 8)), "out", 1);
        an_graph_set_output(graph, out, "y");
        an_graph_set_loss(graph, an_binary_cross_entropy(graph, out, want), want);
    }
    ok = ok && an_graph_verify(graph) == AN_OK && an_params_create(&params, ctx, graph, NULL) == AN_OK &&
         an_params_reset(params, 1) == AN_OK && an_plan_create(&plan, ctx, graph, &options) == AN_OK &&
         an_plan_memory_get(plan, &memory) == AN_OK && an_program_create(&program, plan, params) == AN_OK &&
         an_program_set_input(program, "x", &x) == AN_OK && an_program_set_input(program, "y", &y) == AN_OK &&
         an_program_set_scalar(program, "loss_gradient", 1.0 / BATCH) == AN_OK;
    for (int step = 0; ok && step < STEPS; step++) {
        ok = an_program_run(program, AN_FORM_TRAIN_FIRST) == AN_OK && an_program_loss(program, &loss) == AN_OK &&
             descend(params);
        if (step == 0) first = loss;
    }
    if (ok)
        printf("headers %s, library %s; planned %" PRId64 " bytes; loss %.3f, then %.3f\n", AN_VERSION_STRING,
               an_version(), memory.peak, first / BATCH, loss / BATCH);
    else
        fprintf(stderr, "%s\n", an_last_error(ctx));
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return !ok || strcmp(AN_VERSION_STRING, an_version()) != 0 || loss > 0.1 * first;
}
