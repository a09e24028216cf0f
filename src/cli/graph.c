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
    an_dtype dtype;
    int code = cli_precision(call, PRECISION, &dtype);
    if (code != CLI_DONE) return code;
    an_status status = an_context_create(&ctx, NULL);
    if (status != AN_OK) return cli_failure(call, NULL, status);

    code = cli_load_model(call, ctx, dtype, &graph);
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
