/* anneal graph: a model as a graph, as a picture or as text. */
#include <stdio.h>

#include "cli/plan/report.h"

enum { DOT, ANG, PRECISION };
enum { WHAT = 1 };
static const cli_option options[] = {
    [DOT] = {.name = "dot",
             .group = WHAT,
             .help = "write a drawing for Graphviz: anneal graph small.ang --dot | dot -Tsvg"},
    [ANG] = {.name = "ang", .group = WHAT, .help = "write the text form, which 'anneal plan' can read (default)"},
    [PRECISION] = {.name = "precision",
                   .argument = "f32|f64",
                   .help = "number type of a preset's parameters (default f32)"},
    {0},
};

static int write_graph(const cli_call *call, an_context *ctx, const an_graph *graph) {
    char *text = NULL;
    const an_status status = call->values[DOT] ? an_graph_dot(graph, &text) : an_graph_print(graph, &text);
    if (status != AN_OK) return cli_failure(call, ctx, status);
    fputs(text, stdout);
    an_string_release(ctx, &text);
    return cli_finish(call);
}

/* The model of a config, as its data makes it. */
static int run_config(const cli_call *call) {
    cli_training training;
    const cli_opening opening = {.file = call->argument, .planned = true};
    if (call->values[PRECISION])
        return cli_misuse(call, "--precision works with presets only; in a config, set train.precision");
    int code = cli_training_open(call, &opening, &training);
    if (code == CLI_DONE) code = write_graph(call, training.ctx, an_trainer_graph(training.trainer));
    cli_training_close(&training);
    return code;
}

static int run(const cli_call *call) {
    if (cli_is_config(call->argument)) return run_config(call);
    an_context *ctx = NULL;
    an_graph *graph = NULL;
    an_dtype dtype, precision;
    int code = cli_precision(call, PRECISION, &dtype, &precision);
    if (code != CLI_DONE) return code;
    if (precision != AN_DTYPE_NONE)
        return cli_misuse(call, "--precision %s is for 'anneal plan'; the parameters of a model are f32 or f64",
                          an_dtype_name(precision));
    an_status status = an_context_create(&ctx, NULL);
    if (status != AN_OK) return cli_failure(call, NULL, status);

    an_gpt2_options model;
    an_gpt2_options_init(&model, sizeof model);
    const bool is_preset = !cli_is_file(call->argument);
    if (is_preset) code = cli_preset(call, ctx, &model);
    model.dtype = dtype;
    if (code == CLI_DONE) code = cli_load_model(call, ctx, is_preset ? &model : NULL, &graph);
    if (code == CLI_DONE) code = write_graph(call, ctx, graph);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return code;
}

const cli_command cli_graph = {
    .name = "graph",
    .argument = "CONFIG|PRESET|FILE.ang",
    .summary = "show a model as a graph",
    .text = "Writes a model's graph to standard output.",
    .options = options,
    .run = run,
};
