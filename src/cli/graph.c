/* anneal graph: a model as a graph, as a picture or as text. */
#include <stdio.h>

#include "cli/cli.h"

enum { DOT, ANG, PRECISION };
enum { WHAT = 1 };
static const cli_option options[] = {
    [DOT] = {.name = "dot", .group = WHAT, .help = "for Graphviz: 'anneal graph small.ang --dot | dot -Tsvg' draws it"},
    [ANG] = {.name = "ang", .group = WHAT, .help = "the text form, which 'anneal plan' reads again (default)"},
    [PRECISION] = {.name = "precision", .argument = "f32|f64", .help = "of a preset's parameters (default f32)"},
    {0},
};

static int run(const cli_call *call) {
    an_context *ctx = NULL;
    an_graph *graph = NULL;
    char *text = NULL;
    an_dtype dtype, precision;
    int code = cli_precision(call, PRECISION, &dtype, &precision);
    if (code != CLI_DONE) return code;
    if (precision != AN_DTYPE_NONE)
        return cli_misuse(call, "--precision %s: a plan computes in it ('anneal plan'); a model is f32 or f64",
                          an_dtype_name(precision));
    an_status status = an_context_create(&ctx, NULL);
    if (status != AN_OK) return cli_failure(call, NULL, status);

    an_gpt2_options model = AN_INIT(model);
    const bool is_preset = !cli_is_file(call->argument);
    if (is_preset) code = cli_preset(call, ctx, &model);
    model.dtype = dtype;
    if (code == CLI_DONE) code = cli_load_model(call, ctx, is_preset ? &model : NULL, &graph);
    if (code == CLI_DONE) {
        status = call->values[DOT] ? an_graph_dot(graph, &text) : an_graph_print(graph, &text);
        if (status != AN_OK) code = cli_failure(call, ctx, status);
    }
    if (text) fputs(text, stdout);
    an_string_release(ctx, &text);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return code == CLI_DONE ? cli_finish(call) : code;
}

const cli_command cli_graph = {
    .name = "graph",
    .argument = "PRESET|FILE.ang",
    .summary = "show a model as a graph",
    .text = "Writes a model's graph to standard output.",
    .options = options,
    .run = run,
};
