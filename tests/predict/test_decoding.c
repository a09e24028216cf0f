/* Decoding: with a cache of keys and values, every token's logits have the bits that they have when the whole sequence
 * is predicted at once, however the sequence is cut into runs, and whichever sequences share a run. */
#include "pass/decoding.h"

#include "anneal/models.h"
#include "ir/graph.h"
#include "support/own_ops.h"

/* LENGTH: more than a tile of keys has in any kernel of attention. */
enum { SEQUENCES = 3, LENGTH = 290, CONTEXT = 300, VOCABULARY = 67, LAYERS = 2, HEADS = 4, KV_HEADS = 2, WIDTH = 32 };
enum { HIDDEN = 48, LOGITS = SEQUENCES * LENGTH * VOCABULARY };

typedef struct {
    const char *name;
    an_dtype precision;
    bool f32_storage;
    an_isa isa;
    int threads;
} setting;

typedef struct {
    an_context *ctx;
    an_graph *model, *graph; /* as it is, and for decoding */
    an_params *params;
    an_plan *plan, *decoding_plan;
    an_program *whole, *decoding;
    an_decoding facts;
    int32_t tokens[SEQUENCES][LENGTH];
    float logits[LOGITS]; /* of the whole sequences */
} decoder;

static an_status make_gpt2(an_graph **graph, an_context *ctx) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.layers = LAYERS;
    o.heads = HEADS;
    o.width = WIDTH;
    o.context = CONTEXT;
    o.vocabulary = VOCABULARY;
    o.dropout = 0.1;
    o.documents = true;
    return an_model_gpt2(graph, ctx, &o);
}

static an_status make_llama(an_graph **graph, an_context *ctx) {
    an_llama_options o;
    an_llama_options_init(&o, sizeof o);
    o.layers = LAYERS;
    o.heads = HEADS;
    o.kv_heads = KV_HEADS;
    o.width = WIDTH;
    o.hidden = HIDDEN;
    o.context = CONTEXT;
    o.vocabulary = VOCABULARY;
    return an_model_llama(graph, ctx, &o);
}

/* ---- ops of a program: what a row is without its mean ---- */

static an_status run_centered(const an_call *call) {
    const int64_t width = call->dst[0].dims[call->dst[0].ndims - 1];
    const float *src = call->src[0].data;
    float *dst = call->dst[0].data;
    for (int64_t row = 0; row < own_elements(&call->dst[0]); row += width) {
        float sum = 0;
        for (int64_t i = row; i < row + width; i++) sum += src[i];
        for (int64_t i = row; i < row + width; i++) dst[i] = src[i] - sum / (float)width;
    }
    return AN_OK;
}

static const char *infer_centered(const an_own_node *node, an_own_output *outputs) {
    own_like(node, node->inputs[0], &outputs[0]);
    return NULL;
}

static void add_centered(an_context *ctx, const char *name, an_reach reach) {
    static const an_kernel kernels[] = {{.name = "plain", .applies = own_is_f32, .run = run_centered}, {0}};
    const an_own_op op = {.size = sizeof op,
                          .name = name,
                          .inputs_min = 1,
                          .inputs_max = 1,
                          .outputs = 1,
                          .infer = infer_centered,
                          .kernels = kernels,
                          .reach = reach,
                          .autocast = AN_AUTOCAST_F32,
                          .dense = 1};
    OK(ctx, an_context_add_op(ctx, &op));
}

/* Ops that no model of the library has: over the elements of each token, and one of the program. */
static an_status make_gated(an_graph **graph, an_context *ctx) {
    static const char text[] = "ang 1\ngraph \"gated\"\nsymbol batch\nsymbol tokens\n"
                               "%t = input(name=\"tokens\") : i32[batch,tokens]\n"
                               "%w = param(name=\"w\", initializer=2, scale=1) : f32[67,32]\n"
                               "%v = param(name=\"v\", initializer=2, scale=1) : f32[67,64]\n"
                               "%x = embedding(%t, %w)\n"
                               "%h = reshape(%x, dims=[batch,tokens,4,8])\n"
                               "%q = transpose(%h, axes=[0,2,1,3])\n"
                               "%a, %s = attention(%q, %q, %q, scale=0.3, causal=true)\n"
                               "%b = transpose(%a, axes=[0,2,1,3])\n"
                               "%c = reshape(%b, dims=[batch,tokens,32])\n"
                               "%g = softmax(%c, axis=2)\n"
                               "%m = reduce_mean(%c, axes=[2], keep=true)\n"
                               "%d = multiply(%c, %g)\n"
                               "%e = subtract(%d, %m)\n"
                               "%f = concat(%e, %c, axis=2)\n"
                               "%k = centered(%f)\n"
                               "%y = matmul(%k, %v, transpose_b=true)\n"
                               "output(%y, name=\"logits\", prediction=true)\n";
    add_centered(ctx, "centered", AN_REACH_ROW);
    const an_status status = an_graph_parse(graph, ctx, text, sizeof text - 1);
    return status == AN_OK ? an_graph_verify(*graph) : status;
}

static void plan(an_plan **made, const decoder *d, const an_graph *graph, const setting *s) {
    static const char *const symbols[] = {"batch", "tokens"};
    static const int64_t maxima[] = {SEQUENCES, LENGTH};
    an_plan_options o;
    an_plan_options_init(&o, sizeof o);
    o.symbols = symbols;
    o.maxima = maxima;
    o.symbol_count = 2;
    o.moments = 0;
    o.precision = s->precision;
    o.f32_storage = s->f32_storage;
    o.programs = AN_PROGRAM_PREDICTION;
    OK(d->ctx, an_plan_create(made, d->ctx, graph, &o));
}

static void set(const decoder *d, an_program *p, const char *name, int ndims, int64_t rows, int64_t columns,
                const int32_t *numbers) {
    an_array array = {
        .data = (void *)(uintptr_t)numbers, .dtype = AN_DTYPE_I32, .ndims = ndims, .dims = {rows, columns}};
    OK(d->ctx, an_program_set_input(p, name, &array));
}

static void bind(const decoder *d, an_program *p, int64_t batch, int64_t tokens) {
    OK(d->ctx, an_program_bind(p, "batch", batch));
    OK(d->ctx, an_program_bind(p, "tokens", tokens));
}

static void get(const decoder *d, an_program *p, float *logits) {
    an_array array = {.data = logits};
    OK(d->ctx, an_program_run(p, AN_FORM_PREDICT));
    OK(d->ctx, an_program_get_output(p, "logits", &array));
    assert_int_equal(array.dtype, AN_DTYPE_F32);
}

static decoder *decoder_make(an_status (*make)(an_graph **, an_context *), const setting *s) {
    decoder *d = calloc(1, sizeof *d);
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    context.threads = s->threads;
    context.isa = s->isa;
    assert_int_equal(an_context_create(&d->ctx, &context), AN_OK);
    OK(d->ctx, make(&d->model, d->ctx));
    OK(d->ctx, an_graph_clone(&d->graph, d->model));
    const an_decoding_options o = {
        .slots = SEQUENCES, .context = CONTEXT, .cache = s->f32_storage ? AN_DTYPE_NONE : s->precision};
    OK(d->ctx, an_graph_make_decoding(d->graph, &o, &d->facts));
    an_params_options params;
    an_params_options_init(&params, sizeof params);
    params.gradients = false;
    OK(d->ctx, an_params_create(&d->params, d->ctx, d->model, &params));
    OK(d->ctx, an_params_reset(d->params, 7));
    plan(&d->plan, d, d->model, s);
    plan(&d->decoding_plan, d, d->graph, s);
    OK(d->ctx, an_program_create(&d->whole, d->plan, d->params));
    OK(d->ctx, an_program_create(&d->decoding, d->decoding_plan, d->params));
    for (int i = 0; i < SEQUENCES * LENGTH; i++)
        d->tokens[i / LENGTH][i % LENGTH] = (int32_t)(((unsigned)i * 2654435761u >> 7) % VOCABULARY);
    bind(d, d->whole, SEQUENCES, LENGTH);
    set(d, d->whole, "tokens", 2, SEQUENCES, LENGTH, d->tokens[0]);
    get(d, d->whole, d->logits);
    return d;
}

static void decoder_destroy(decoder *d) {
    an_program_destroy(&d->decoding);
    an_program_destroy(&d->whole);
    an_plan_destroy(&d->decoding_plan);
    an_plan_destroy(&d->plan);
    an_params_destroy(&d->params);
    an_graph_destroy(&d->graph);
    an_graph_destroy(&d->model);
    an_context_destroy(&d->ctx);
    free(d);
}

/* Runs tokens first to first + count - 1 of some sequences, and compares the last one's logits. */
static void run_some(decoder *d, int samples, const int32_t *sequences, const int32_t *slots, int first, int count) {
    int32_t tokens[SEQUENCES * LENGTH], positions[SEQUENCES * LENGTH];
    float logits[SEQUENCES * VOCABULARY];
    for (int i = 0; i < samples * count; i++) {
        positions[i] = first + i % count;
        tokens[i] = d->tokens[sequences[i / count]][positions[i]];
    }
    bind(d, d->decoding, samples, count);
    set(d, d->decoding, "tokens", 2, samples, count, tokens);
    set(d, d->decoding, AN_DECODING_POSITIONS, 2, samples, count, positions);
    set(d, d->decoding, AN_DECODING_SLOTS, 1, samples, 0, slots);
    get(d, d->decoding, logits);
    for (int i = 0; i < samples; i++)
        assert_memory_equal(logits + i * VOCABULARY,
                            d->logits + (sequences[i] * LENGTH + first + count - 1) * VOCABULARY,
                            VOCABULARY * sizeof *logits);
}

static void same_bits(an_status (*make)(an_graph **, an_context *), const setting *s) {
    static const int32_t all[] = {0, 1, 2}, slots[] = {2, 0, 1}, other[] = {1};
    decoder *d = decoder_make(make, s);
    for (int t = 0; t < LENGTH; t++) run_some(d, SEQUENCES, all, slots, t, 1); /* token by token, together */
    for (int t = 0; t < LENGTH; t++) run_some(d, 1, other, slots, t, 1);       /* one alone, in another slot */
    run_some(d, 1, all + 2, slots, 0, LENGTH);                                 /* all at once */
    run_some(d, 1, other, other, 0, 9);                                        /* in parts */
    run_some(d, 1, other, other, 9, 257);
    run_some(d, 1, other, other, 266, 1);
    run_some(d, 1, other, other, 20, 8); /* back to an earlier position: what was after it is not seen */
    decoder_destroy(d);
}

static const setting settings[] = {
    {"f32", AN_DTYPE_NONE, false, AN_ISA_AUTO, 2},
    {"f32 on one thread", AN_DTYPE_NONE, false, AN_ISA_AUTO, 1},
    {"f32 at the base level", AN_DTYPE_NONE, false, AN_ISA_BASE, 2},
    {"bf16", AN_DTYPE_BF16, false, AN_ISA_AUTO, 2},
    {"bf16 with f32 storage", AN_DTYPE_BF16, true, AN_ISA_AUTO, 2},
    {"bf16 at the base level", AN_DTYPE_BF16, false, AN_ISA_BASE, 2},
};

static void test_gpt2_has_the_bits_of_prediction(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) same_bits(make_gpt2, &settings[i]);
}

static void test_llama_has_the_bits_of_prediction(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) same_bits(make_llama, &settings[i]);
}

static void test_other_ops_have_the_bits_of_prediction(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) same_bits(make_gated, &settings[i]);
}

/* A model of one layer, whose lines are given. */
static void refused(const char *lines, const char *words) {
    static const char head[] = "ang 1\ngraph \"m\"\nsymbol batch\nsymbol tokens\n"
                               "%t = input(name=\"tokens\") : i32[batch,tokens]\n"
                               "%w = param(name=\"w\") : f32[9,8]\n%x = embedding(%t, %w)\n";
    char text[2048];
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_decoding facts;
    const an_decoding_options o = {.slots = 1, .context = 8};
    snprintf(text, sizeof text, "%s%s", head, lines);
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    add_centered(ctx, "unknown_reach", AN_REACH_ALL);
    add_centered(ctx, "of_sample", AN_REACH_SAMPLE);
    OK(ctx, an_graph_parse(&g, ctx, text, strlen(text)));
    OK(ctx, an_graph_verify(g));
    FAILS(ctx, an_graph_make_decoding(g, &o, &facts), AN_ERR_UNSUPPORTED, words);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

#define HEADS_OF(x) "%h = reshape(%" x ", dims=[batch,tokens,2,4])\n%q = transpose(%h, axes=[0,2,1,3])\n"
#define LOGITS_OF(x) "%y = matmul(%" x ", %w, transpose_b=true)\noutput(%y, name=\"logits\", prediction=true)\n"
#define BACK "%b = transpose(%a, axes=[0,2,1,3])\n%c = reshape(%b, dims=[batch,tokens,8])\n"

static void test_models_that_cannot_generate_are_refused(void **state) {
    (void)state;
    refused(LOGITS_OF("x"), "it has no attention");
    refused(HEADS_OF("x") "%a, %s = attention(%q, %q, %q, scale=1)\n" BACK LOGITS_OF("c"), "is not causal");
    refused(HEADS_OF("x") "%a, %s = attention(%q, %q, %q, scale=1, causal=true)\n" BACK
                          "%m = reduce_mean(%c, axes=[1], keep=true)\n%n = add(%c, %m)\n" LOGITS_OF("n"),
            "may compute a token from others");
    refused(HEADS_OF("x") "%a, %s = attention(%q, %q, %q, scale=1, causal=true)\n" BACK
                          "%m = slice(%c, axis=1, begin=0, end=1)\n%n = add(%c, %m)\n" LOGITS_OF("n"),
            "takes a part of the tokens");
    static const char *const mixing[] = {
        "%n = unknown_reach(%c)\n",
        "%n = of_sample(%c)\n",
        "%n = softmax(%c, axis=1)\n",
        "%p = matmul(%c, %c, transpose_b=true)\n%u = exp(%p)\n%n = matmul(%u, %c)\n",
    };
    for (size_t i = 0; i < sizeof mixing / sizeof *mixing; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s%s",
                 HEADS_OF("x") "%a, %s = attention(%q, %q, %q, scale=1, causal=true)\n" BACK, mixing[i],
                 LOGITS_OF("n"));
        refused(text, "may compute a token from others");
    }
    refused("%p = input(name=\"p\") : f32[batch,tokens,8]\n%z = add(%x, %p)\n" LOGITS_OF("z"), "it reads 'p'");
}

/* Positions and slots come from callers: what is not in the cache is never touched. */
static void test_positions_and_slots_are_checked(void **state) {
    static const int32_t zeros[2] = {0}, far[] = {0, CONTEXT}, apart[] = {0, 2}, below[] = {0, -1}, both[] = {1, 1};
    decoder *d = decoder_make(make_llama, &settings[0]);
    (void)state;
    bind(d, d->decoding, 2, 1);
    set(d, d->decoding, "tokens", 2, 2, 1, zeros);
    set(d, d->decoding, AN_DECODING_POSITIONS, 2, 2, 1, far);
    set(d, d->decoding, AN_DECODING_SLOTS, 1, 2, 0, apart);
    FAILS(d->ctx, an_program_run(d->decoding, AN_FORM_PREDICT), AN_ERR_KERNEL, "begin at position 300");
    set(d, d->decoding, AN_DECODING_POSITIONS, 2, 2, 1, zeros);
    set(d, d->decoding, AN_DECODING_SLOTS, 1, 2, 0, below);
    FAILS(d->ctx, an_program_run(d->decoding, AN_FORM_PREDICT), AN_ERR_KERNEL, "slot -1");
    set(d, d->decoding, AN_DECODING_SLOTS, 1, 2, 0, both);
    FAILS(d->ctx, an_program_run(d->decoding, AN_FORM_PREDICT), AN_ERR_KERNEL, "both have slot 1");
    bind(d, d->decoding, 1, 2);
    set(d, d->decoding, AN_DECODING_POSITIONS, 2, 1, 2, apart);
    set(d, d->decoding, AN_DECODING_SLOTS, 1, 1, 0, zeros);
    FAILS(d->ctx, an_program_run(d->decoding, AN_FORM_PREDICT), AN_ERR_KERNEL, "do not follow one another");
    decoder_destroy(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_has_the_bits_of_prediction),
        cmocka_unit_test(test_llama_has_the_bits_of_prediction),
        cmocka_unit_test(test_other_ops_have_the_bits_of_prediction),
        cmocka_unit_test(test_models_that_cannot_generate_are_refused),
        cmocka_unit_test(test_positions_and_slots_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
