/* Where a model comes from: a preset, or the text of a graph. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/models.h"
#include "base/word.h"
#include "cli/main/cli.h"

bool cli_is_file(const char *argument) {
    return an_ends_in(argument, ".ang");
}

int cli_precision(const cli_call *call, int option, an_dtype *dtype, an_dtype *precision) {
    static const char *const names[] = {"f32", "f64", "bf16", "f16", NULL};
    static const struct {
        an_dtype dtype, precision;
    } choices[] = {{AN_DTYPE_F32, AN_DTYPE_NONE},
                   {AN_DTYPE_F64, AN_DTYPE_NONE},
                   {AN_DTYPE_F32, AN_DTYPE_BF16},
                   {AN_DTYPE_F32, AN_DTYPE_F16}};
    const bool is_file = cli_is_file(call->argument);
    int choice = 0;
    if (cli_choice(call, option, names, &choice) != CLI_DONE) return CLI_MISUSED;
    if (call->values[option] && is_file && choices[choice].precision == AN_DTYPE_NONE)
        return cli_misuse(call, "--precision %s works with presets only; a graph in a file states its own types",
                          names[choice]);
    *dtype = is_file ? AN_DTYPE_NONE : choices[choice].dtype;
    *precision = choices[choice].precision;
    return CLI_DONE;
}

/* Reads a file whole; what it returns is freed by the caller. NULL, with errno: it could not be read. */
static char *read_file(const char *path, size_t *length) {
    enum { AT_FIRST = 65536 }; /* most graphs */
    size_t capacity = AT_FIRST, used = 0, got;
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(capacity) : NULL;
    while (text && (got = fread(text + used, 1, capacity - used, file)) > 0) {
        used += got;
        if (used < capacity) continue;
        char *larger = realloc(text, capacity *= 2);
        if (!larger) free(text);
        text = larger;
    }
    if (text && ferror(file)) {
        free(text);
        text = NULL;
    }
    const int error = errno; /* fclose may set it too */
    if (file) fclose(file);
    errno = error;
    *length = used;
    return text;
}

static int load_file(const cli_call *call, an_context *ctx, an_graph **graph) {
    size_t length;
    char *text = read_file(call->argument, &length);
    if (!text) return cli_misuse(call, "'%s' cannot be read: %s", call->argument, strerror(errno));
    an_status status = an_graph_parse(graph, ctx, text, length);
    free(text);
    if (status == AN_OK) status = an_graph_verify(*graph);
    if (status == AN_OK) return CLI_DONE;
    an_graph_destroy(graph);
    return cli_failure(call, ctx, status);
}

int cli_preset(const cli_call *call, an_context *ctx, an_gpt2_options *model) {
    an_status status = an_model_preset_options(ctx, call->argument, model);
    if (status == AN_OK) return CLI_DONE;
    const int code = cli_failure(call, ctx, status);
    if (status == AN_ERR_UNKNOWN) fprintf(stderr, "(file names of configs end in .yaml, those of graphs in .ang)\n");
    return code;
}

int cli_load_model(const cli_call *call, an_context *ctx, const an_gpt2_options *model, an_graph **graph) {
    if (!model) return load_file(call, ctx, graph);
    an_status status = an_model_gpt2(graph, ctx, model);
    return status == AN_OK ? CLI_DONE : cli_failure(call, ctx, status);
}
