/* Sentence embeddings of a published BERT, for compare-minilm.
 *
 *     sentences FOLDER INPUT OUTPUT
 *
 * INPUT is i32: samples, tokens; then the tokens of every sample, then the mask of every sample. OUTPUT
 * is f32: samples × width. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/anneal.h"
#include "anneal/plan.h"
#include "anneal/pretrained.h"
#include "interchange/load_model.h"

enum { SIZES = 2, BATCH = 16 };

static an_context *ctx;

static void need(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "sentences: %s: %s\n", what, ctx ? an_last_error(ctx) : "");
    exit(1);
}
#define OK(call) need((call) == AN_OK, #call)

static void *room(int64_t count, size_t size) {
    void *memory = calloc((size_t)count, size);
    need(memory != NULL, "out of memory");
    return memory;
}

static void set_input(an_program *program, const char *name, int32_t *data, int64_t samples, int64_t tokens) {
    const an_array array = {.data = data, .dtype = AN_DTYPE_I32, .ndims = 2, .dims = {samples, tokens}};
    OK(an_program_set_input(program, name, &array));
}

int main(int argc, char **argv) {
    int32_t sizes[SIZES];
    an_graph *graph = NULL;
    an_plan *plan = NULL;
    an_pretrained *published = NULL;
    an_pretrained_info info;
    an_params *params = NULL;
    an_program *program = NULL;
    an_plan_options planned;
    an_params_options stored;
    need(argc == 4, "usage: sentences FOLDER INPUT OUTPUT");
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    need(in && out, "a file cannot be opened");
    need(fread(sizes, sizeof *sizes, SIZES, in) == SIZES, "the input is too short");
    const int64_t samples = sizes[0], tokens = sizes[1], all = samples * tokens;
    int32_t *ids = room(all, sizeof *ids), *mask = room(all, sizeof *mask), *types = room(all, sizeof *types);
    need(fread(ids, sizeof *ids, (size_t)all, in) == (size_t)all, "the input is too short");
    need(fread(mask, sizeof *mask, (size_t)all, in) == (size_t)all, "the input is too short");

    OK(an_context_create(&ctx, NULL));
    an_pretrained_info_init(&info, sizeof info);
    OK(an_pretrained_open(&published, ctx, argv[1]));
    OK(an_pretrained_info_get(published, &info));
    OK(an_pretrained_graph(published, &graph, NULL));
    const int64_t width = info.width;
    an_plan_options_init(&planned, sizeof planned);
    planned.programs = AN_PROGRAM_PREDICTION;
    planned.symbol_count = 2;
    planned.symbols = (const char *const[]){"batch", "tokens"};
    planned.maxima = (const int64_t[]){BATCH, tokens};
    an_params_options_init(&stored, sizeof stored);
    stored.gradients = false;
    OK(an_plan_create(&plan, ctx, graph, &planned));
    OK(an_params_create(&params, ctx, graph, &stored));
    OK(an_params_reset(params, 0));
    OK(an_weights_load(params, argv[1], AN_MODEL_WEIGHTS_AUTO));
    OK(an_program_create(&program, plan, params));
    an_array output = {.data = room(BATCH * width, sizeof(float)), .dtype = AN_DTYPE_F32};
    for (int64_t i = 0; i < samples; i += BATCH) {
        const int64_t n = samples - i < BATCH ? samples - i : BATCH;
        OK(an_program_bind(program, "batch", n));
        set_input(program, "tokens", ids + i * tokens, n, tokens);
        set_input(program, "token_types", types + i * tokens, n, tokens);
        set_input(program, "mask", mask + i * tokens, n, tokens);
        OK(an_program_run(program, AN_FORM_PREDICT));
        output.ndims = 2;
        output.dims[0] = n;
        output.dims[1] = width;
        OK(an_program_get_output(program, "embedding", &output));
        need(fwrite(output.data, sizeof(float), (size_t)(n * width), out) == (size_t)(n * width), "cannot write");
    }
    need(fclose(out) == 0, "cannot write");
    fclose(in);
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&graph);
    an_pretrained_close(&published);
    an_context_destroy(&ctx);
    free(output.data), free(ids), free(mask), free(types);
    return 0;
}
