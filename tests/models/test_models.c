/* Models: names, counts, depths, shapes that stay views, refusals; and each of them runs. */
#include "anneal/models.h"

#include "ir/graph.h"
#include "support/support.h"

static an_context *ctx;

static int setup(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return 0;
}

static an_gpt2_options small_gpt2(void) {
    an_gpt2_options o = AN_INIT(o);
    o.layers = 2;
    o.heads = 2;
    o.width = 8;
    o.context = 16;
    o.vocabulary = 11;
    return o;
}

static an_llama_options small_llama(void) {
    an_llama_options o = AN_INIT(o);
    o.layers = 2;
    o.heads = 4;
    o.kv_heads = 2;
    o.width = 16;
    o.hidden = 24;
    o.context = 16;
    o.vocabulary = 11;
    return o;
}

static const int64_t widths[] = {6, 5};

static an_mlp_options small_mlp_options(void) {
    an_mlp_options o = AN_INIT(o);
    o.inputs = 4;
    o.outputs = 3;
    o.hidden_count = 2;
    o.hidden = widths;
    return o;
}

static an_cnn_options small_cnn(void) {
    an_cnn_options o = AN_INIT(o);
    o.channels = 3;
    o.height = 9;
    o.width = 8;
    o.classes = 4;
    o.filter_count = 2;
    o.filters = widths;
    o.hidden = 7;
    return o;
}

/* ---- names ---- */

typedef struct {
    const char *name, *type;
    int depth;
} expected;

/* The parameters, in order, with their types and depths; the list ends with NULL. */
static void check_parameters(const an_graph *g, const expected *list) {
    size_t i = 0;
    for (; list[i].name; i++) {
        if (i >= g->parameter_count) fail_msg("'%s' is missing", list[i].name);
        const an_parameter *p = &g->parameters[i];
        assert_string_equal(p->name, list[i].name);
        assert_string_equal(AN_DESCRIBE(g, &p->node->outputs[0]), list[i].type);
        assert_int_equal(p->depth, list[i].depth);
    }
    if (i < g->parameter_count) fail_msg("'%s' is too many", g->parameters[i].name);
}

static void gpt2_names(void **state) {
    static const expected list[] = {{"wte.weight", "f32[11,8]", 0},
                                    {"wpe.weight", "f32[16,8]", 0},
                                    {"h.0.ln_1.weight", "f32[8]", 1},
                                    {"h.0.ln_1.bias", "f32[8]", 1},
                                    {"h.0.attn.c_attn.weight", "f32[24,8]", 1},
                                    {"h.0.attn.c_attn.bias", "f32[24]", 1},
                                    {"h.0.attn.c_proj.weight", "f32[8,8]", 1},
                                    {"h.0.attn.c_proj.bias", "f32[8]", 1},
                                    {"h.0.ln_2.weight", "f32[8]", 1},
                                    {"h.0.ln_2.bias", "f32[8]", 1},
                                    {"h.0.mlp.c_fc.weight", "f32[32,8]", 1},
                                    {"h.0.mlp.c_fc.bias", "f32[32]", 1},
                                    {"h.0.mlp.c_proj.weight", "f32[8,32]", 1},
                                    {"h.0.mlp.c_proj.bias", "f32[8]", 1},
                                    {"ln_f.weight", "f32[8]", 2},
                                    {"ln_f.bias", "f32[8]", 2},
                                    {0}};
    an_gpt2_options o = small_gpt2();
    an_graph *g = NULL;
    (void)state;
    o.layers = 1;
    OK(ctx, an_model_gpt2(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

static void llama_names(void **state) {
    static const expected list[] = {{"model.embed_tokens.weight", "f64[11,16]", 0},
                                    {"model.layers.0.input_layernorm.weight", "f64[16]", 1},
                                    {"model.layers.0.self_attn.q_proj.weight", "f64[16,16]", 1},
                                    {"model.layers.0.self_attn.k_proj.weight", "f64[8,16]", 1},
                                    {"model.layers.0.self_attn.v_proj.weight", "f64[8,16]", 1},
                                    {"model.layers.0.self_attn.o_proj.weight", "f64[16,16]", 1},
                                    {"model.layers.0.post_attention_layernorm.weight", "f64[16]", 1},
                                    {"model.layers.0.mlp.gate_proj.weight", "f64[24,16]", 1},
                                    {"model.layers.0.mlp.up_proj.weight", "f64[24,16]", 1},
                                    {"model.layers.0.mlp.down_proj.weight", "f64[16,24]", 1},
                                    {"model.norm.weight", "f64[16]", 2},
                                    {"lm_head.weight", "f64[11,16]", 2},
                                    {0}};
    an_llama_options o = small_llama();
    an_graph *g = NULL;
    (void)state;
    o.layers = 1;
    o.dtype = AN_DTYPE_F64;
    OK(ctx, an_model_llama(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

static void mlp_names(void **state) {
    static const expected list[] = {
        {"hidden.0.weight", "f32[6,4]", 1}, {"hidden.0.norm.weight", "f32[6]", 1}, {"hidden.0.norm.bias", "f32[6]", 1},
        {"hidden.1.weight", "f32[5,6]", 2}, {"hidden.1.norm.weight", "f32[5]", 2}, {"hidden.1.norm.bias", "f32[5]", 2},
        {"output.weight", "f32[3,5]", 3},   {"output.bias", "f32[3]", 3},          {0}};
    an_mlp_options o = small_mlp_options();
    an_graph *g = NULL;
    (void)state;
    o.batch_norm = true;
    OK(ctx, an_model_mlp(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

static void cnn_names(void **state) {
    static const expected list[] = {{"convolution.0.weight", "f32[6,3,3,3]", 1},
                                    {"convolution.0.bias", "f32[6]", 1},
                                    {"convolution.1.weight", "f32[5,6,3,3]", 2},
                                    {"convolution.1.bias", "f32[5]", 2},
                                    {"hidden.weight", "f32[7,20]", 3}, /* 9 × 8 is halved twice: 2 × 2 of 5 channels */
                                    {"hidden.bias", "f32[7]", 3},
                                    {"output.weight", "f32[4,7]", 4},
                                    {"output.bias", "f32[4]", 4},
                                    {0}};
    an_cnn_options o = small_cnn();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_cnn(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

/* ---- counts ---- */

static void preset_counts(void **state) {
    static const struct {
        const char *name;
        int64_t parameters;
    } published[] = {
        {"gpt2-124m", 124439808}, {"gpt2-355m", 354823168}, {"gpt2-774m", 774030080}, {"gpt2-1.5b", 1557611200}};
    int i = 0;
    (void)state;
    for (; an_model_preset_name(i); i++) {
        an_graph *g = NULL;
        assert_string_equal(an_model_preset_name(i), published[i].name);
        OK(ctx, an_model_preset(&g, ctx, published[i].name, AN_DTYPE_NONE));
        assert_int_equal(an_graph_parameter_elements(g), published[i].parameters);
        an_graph_destroy(&g);
    }
    assert_int_equal(i, sizeof published / sizeof published[0]);
    assert_null(an_model_preset_name(-1));
}

static void llama_count(void **state) {
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        an_llama_options o = small_llama();
        const int64_t kv = o.width / o.heads * o.kv_heads;
        const int64_t block = 2 * o.width * o.width + 2 * o.width * kv + 3 * o.width * o.hidden + 2 * o.width;
        an_graph *g = NULL;
        o.tied = tied;
        OK(ctx, an_model_llama(&g, ctx, &o));
        assert_int_equal(an_graph_parameter_elements(g),
                         o.layers * block + o.width + (tied ? 1 : 2) * o.vocabulary * o.width);
        an_graph_destroy(&g);
    }
}

/* ---- structure ---- */

static int count_ops(const an_graph *g, const char *name) {
    int count = 0;
    for (const an_node *n = g->first; n; n = n->next) count += !strcmp(n->op->name, name);
    return count;
}

/* Heads are cut out and put together again without a copy. */
static void heads_are_views(void **state) {
    an_gpt2_options gpt2 = small_gpt2();
    an_llama_options llama = small_llama();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    assert_int_equal(count_ops(g, "contiguous"), 0);
    assert_int_equal(count_ops(g, "attention"), gpt2.layers);
    an_graph_destroy(&g);
    OK(ctx, an_model_llama(&g, ctx, &llama));
    assert_int_equal(count_ops(g, "contiguous"), 0);
    assert_int_equal(count_ops(g, "rotary"), 2 * llama.layers);
    an_graph_destroy(&g);
}

static bool has_input(const an_graph *g, const char *name, const char *type) {
    for (size_t i = 0; i < g->source_count; i++) {
        const char **found = an_node_attribute(g->sources[i], "name", AN_ATTRIBUTE_STRING);
        if (!strcmp(*found, name)) return !strcmp(AN_DESCRIBE(g, &g->sources[i]->outputs[0]), type);
    }
    return false;
}

static void dropout_adds_samples(void **state) {
    an_gpt2_options gpt2 = small_gpt2();
    an_mlp_options mlp = small_mlp_options();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    assert_false(has_input(g, "samples", "i64[batch]"));
    assert_true(has_input(g, "tokens", "i32[batch,tokens]"));
    assert_true(has_input(g, "targets", "i32[batch,tokens]"));
    an_graph_destroy(&g);
    gpt2.dropout = mlp.dropout = 0.1;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    assert_true(has_input(g, "samples", "i64[batch]"));
    assert_int_equal(count_ops(g, "dropout"), 1 + 2 * gpt2.layers);
    an_graph_destroy(&g);
    OK(ctx, an_model_mlp(&g, ctx, &mlp));
    assert_true(has_input(g, "samples", "i64[batch]"));
    an_graph_destroy(&g);
}

static void mlp_targets_follow_loss(void **state) {
    an_mlp_options o = small_mlp_options();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_mlp(&g, ctx, &o));
    assert_true(has_input(g, "targets", "i32[batch]"));
    an_graph_destroy(&g);
    o.loss = AN_LOSS_SQUARED;
    o.dtype = AN_DTYPE_F64;
    OK(ctx, an_model_mlp(&g, ctx, &o));
    assert_true(has_input(g, "x", "f64[batch,4]"));
    assert_true(has_input(g, "targets", "f64[batch,3]"));
    an_graph_destroy(&g);
}

/* ---- refusals ---- */

#define REFUSES(model, options, member, wrong, words)             \
    do {                                                          \
        an_graph *g_ = NULL;                                      \
        an_##model##_options o_ = (options);                      \
        o_.member = (wrong);                                      \
        FAILS(ctx, an_model_##model(&g_, ctx, &o_), code, words); \
        assert_null(g_);                                          \
    } while (0)

static void wrong_options(void **state) {
    an_status code = AN_ERR_ARGUMENT;
    an_graph *g = NULL;
    (void)state;
    REFUSES(gpt2, small_gpt2(), size, 8, "set it with AN_INIT");
    REFUSES(gpt2, small_gpt2(), layers, 0, "gpt2: layers is 0; it must be from 1");
    REFUSES(gpt2, small_gpt2(), vocabulary, INT64_MAX, "vocabulary is 9223372036854775807");
    REFUSES(gpt2, small_gpt2(), heads, 3,
            "3 heads cannot share a width of 8: it must be a multiple of the heads, such as 9");
    REFUSES(gpt2, small_gpt2(), dropout, 1.0, "dropout is 1; it is the share");
    REFUSES(gpt2, small_gpt2(), dropout, (double)NAN, "dropout is");
    REFUSES(llama, small_llama(), kv_heads, 3, "4 heads cannot share 3 key and value heads");
    REFUSES(llama, small_llama(), width, 12, "an odd size of 3: rotary positions turn pairs");
    REFUSES(llama, small_llama(), epsilon, -1.0, "epsilon -1");
    REFUSES(mlp, small_mlp_options(), hidden, NULL, "hidden is NULL; it must point to the widths of 2 hidden layers");
    REFUSES(mlp, small_mlp_options(), hidden_count, -1, "hidden_count is -1");
    REFUSES(mlp, small_mlp_options(), outputs, 0, "mlp: outputs is 0");
    REFUSES(mlp, small_mlp_options(), activation, (an_activation)9, "activation 9 does not exist");
    REFUSES(mlp, small_mlp_options(), loss, (an_loss_kind)9, "loss 9 does not exist");
    REFUSES(cnn, small_cnn(), filters, NULL, "filters is NULL");
    REFUSES(cnn, small_cnn(), filter_count, 0, "at least one convolution");
    REFUSES(cnn, small_cnn(), height, 3,
            "an image of 3 × 8 is too small for 2 convolutions, each of which halves it; 1 are");
    FAILS(ctx, an_model_gpt2(&g, ctx, NULL), AN_ERR_ARGUMENT, "options are missing");
    code = AN_ERR_DTYPE;
    REFUSES(gpt2, small_gpt2(), dtype, AN_DTYPE_BF16, "its parameters are f32 or f64, not bf16");
    FAILS(ctx, an_model_preset(&g, ctx, "gpt2-124", AN_DTYPE_NONE), AN_ERR_UNKNOWN, "the nearest is 'gpt2-124m'");
    FAILS(ctx, an_model_preset(&g, ctx, NULL, AN_DTYPE_NONE), AN_ERR_ARGUMENT, "NULL");
}

/* Layers that cannot be sized say so, with the line of the call. */
static void wrong_layers(void **state) {
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_graph_create(&g, ctx, "wrong"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4, an_symbol_dim(g, "batch")));
    an_linear(g, x, "fc", 8);
    FAILS(ctx, an_graph_verify(g), AN_ERR_SHAPE, "f32[4,batch] has a symbol in it");
    assert_non_null(strstr(an_last_error(ctx), "test_models.c:"));
    an_graph_destroy(&g);
    OK(ctx, an_graph_create(&g, ctx, "wrong"));
    x = an_input(g, "x", AN_DTYPE_I32, AN_DIMS(4, 4));
    an_linear(g, x, "fc", 8);
    FAILS(ctx, an_graph_verify(g), AN_ERR_DTYPE, "look it up with an_embedding_layer");
    an_graph_destroy(&g);
}

/* The start of PyTorch's layers: uniform within 1 / sqrt(fan in). */
static void layers_start(void **state) {
    an_convolution_options grouped = AN_INIT(grouped);
    an_graph *g = NULL;
    (void)state;
    grouped.groups = 2;
    OK(ctx, an_graph_create(&g, ctx, "layers"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(an_symbol_dim(g, "batch"), 8, 10, 16));
    an_linear(g, x, "linear", 3);
    an_linear_plain(g, x, "plain", 3);
    an_convolution_layer(g, x, "convolution", 6, 2, &grouped);
    an_scope_begin(g, "norms");
    an_layer_norm_layer(g, x, "layer", 1e-5);
    an_rms_norm_layer(g, x, "rms", 1e-5);
    an_batch_norm_layer(g, x, "batch", 0.1, 1e-5);
    an_scope_end(g);
    OK(ctx, an_graph_verify(g));
    static const expected list[] = {{"linear.weight", "f32[3,16]", 0},
                                    {"linear.bias", "f32[3]", 0},
                                    {"plain.weight", "f32[3,16]", 0},
                                    {"convolution.weight", "f32[6,4,2,2]", 0},
                                    {"convolution.bias", "f32[6]", 0},
                                    {"norms.layer.weight", "f32[16]", 0},
                                    {"norms.layer.bias", "f32[16]", 0},
                                    {"norms.rms.weight", "f32[16]", 0},
                                    {"norms.batch.weight", "f32[8]", 0},
                                    {"norms.batch.bias", "f32[8]", 0},
                                    {0}};
    static const double scales[] = {0.25, 0.25, 0.25, 0.25, 0.25, 1, 0, 1, 1, 0}; /* 16 inputs, or 4 · 2 · 2 */
    check_parameters(g, list);
    for (size_t i = 0; i < g->parameter_count; i++) {
        const double *scale = an_node_attribute(g->parameters[i].node, "scale", AN_ATTRIBUTE_FLOAT);
        assert_true(*scale == scales[i]);
    }
    assert_true(has_input(g, "norms.batch.running_mean", "f32[8]"));
    assert_true(has_input(g, "norms.batch.running_var", "f32[8]"));
    an_graph_destroy(&g);
}

/* ---- runs ---- */

enum { BATCH = 3, TOKENS = 7 };

/* One training run and one of prediction; the loss of one target must be about `loss`. */
static void run_model(an_graph *g, const an_array *input, const char *name, const an_array *targets, bool has_samples,
                      int64_t target_count, double loss, double tolerance) {
    const char *symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {BATCH + 1, TOKENS + 2};
    int64_t samples[BATCH] = {5, 6, 7}, count = 0, dims[] = {BATCH};
    an_array sample_array = array_of(samples, AN_DTYPE_I64, 1, dims);
    an_plan_options options = AN_INIT(options);
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    double found;
    options.symbols = symbols;
    options.maxima = maxima;
    while (an_graph_symbol_name(g, options.symbol_count)) options.symbol_count++;
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_params_init(params, 1));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "batch", BATCH));
    if (options.symbol_count > 1) OK(ctx, an_program_bind(program, "tokens", TOKENS));
    OK(ctx, an_program_set_input(program, name, input));
    OK(ctx, an_program_set_input(program, "targets", targets));
    if (has_samples) OK(ctx, an_program_set_input(program, "samples", &sample_array));
    OK(ctx, an_program_count_targets(program, targets, &count));
    assert_int_equal(count, target_count);
    OK(ctx, an_program_run(program, AN_FORM_TRAIN_FIRST));
    OK(ctx, an_program_run(program, AN_FORM_EVALUATE));
    OK(ctx, an_program_loss(program, &found));
    if (!(fabs(found / (double)target_count - loss) < tolerance))
        fail_msg("the loss of a target is %g, expected about %g", found / (double)target_count, loss);
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
}

/* Before training every token is as likely as any other. */
static void language_models_run(void **state) {
    int32_t tokens[BATCH * TOKENS], targets[BATCH * TOKENS];
    const int64_t dims[] = {BATCH, TOKENS};
    an_array input = array_of(tokens, AN_DTYPE_I32, 2, dims), target = array_of(targets, AN_DTYPE_I32, 2, dims);
    an_gpt2_options gpt2 = small_gpt2();
    an_llama_options llama = small_llama();
    an_graph *g = NULL;
    (void)state;
    for (int i = 0; i < BATCH * TOKENS; i++) {
        tokens[i] = 3 * i % 11;
        targets[i] = i % 5 ? 7 * i % 11 : -100; /* some are ignored */
    }
    const int64_t count = BATCH * TOKENS - (BATCH * TOKENS + 4) / 5;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    run_model(g, &input, "tokens", &target, false, count, log(11), 0.1);
    gpt2.dropout = 0.2;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    run_model(g, &input, "tokens", &target, true, count, log(11), 0.1);
    OK(ctx, an_model_llama(&g, ctx, &llama));
    run_model(g, &input, "tokens", &target, false, count, log(11), 0.1);
    llama.tied = true;
    llama.dtype = AN_DTYPE_F64;
    OK(ctx, an_model_llama(&g, ctx, &llama));
    run_model(g, &input, "tokens", &target, false, count, log(11), 0.1);
}

static void classifiers_run(void **state) {
    enum { INPUTS = 4, IMAGE = 3 * 9 * 8 };
    float x[BATCH * INPUTS], image[BATCH * IMAGE];
    int32_t targets[BATCH] = {0, 2, 1};
    const int64_t x_dims[] = {BATCH, INPUTS}, image_dims[] = {BATCH, 3, 9, 8};
    an_array x_array = array_of(x, AN_DTYPE_F32, 2, x_dims), image_array = array_of(image, AN_DTYPE_F32, 4, image_dims);
    an_array target = array_of(targets, AN_DTYPE_I32, 1, x_dims);
    an_graph *g = NULL;
    (void)state;
    for (int i = 0; i < BATCH * INPUTS; i++) x[i] = (float)noise((uint64_t)i);
    for (int i = 0; i < BATCH * IMAGE; i++) image[i] = (float)noise((uint64_t)i);
    for (int activation = AN_ACTIVATION_RELU; activation <= AN_ACTIVATION_SILU; activation++) {
        an_mlp_options mlp = small_mlp_options();
        an_cnn_options cnn = small_cnn();
        mlp.activation = cnn.activation = (an_activation)activation;
        mlp.batch_norm = cnn.batch_norm = activation % 2;
        mlp.dropout = cnn.dropout = activation > 1 ? 0.3 : 0;
        OK(ctx, an_model_mlp(&g, ctx, &mlp));
        run_model(g, &x_array, "x", &target, mlp.dropout > 0, BATCH, log(3), 0.7);
        OK(ctx, an_model_cnn(&g, ctx, &cnn));
        run_model(g, &image_array, "image", &target, cnn.dropout > 0, BATCH, log(4), 0.7);
    }
}

/* ---- faults ---- */

/* Whichever allocation fails, the model says so and leaves nothing behind. */
static void out_of_memory(void **state) {
    ledger l = {0};
    an_context *poor = NULL;
    an_gpt2_options o = small_gpt2();
    an_status status = AN_ERR_MEMORY;
    (void)state;
    assert_int_equal(context_with_ledger(&poor, &l, 1), AN_OK);
    const size_t held = l.held;
    for (long n = 1; status != AN_OK; n++) {
        an_graph *g = NULL;
        l.calls = 0;
        l.fail_at = n;
        status = an_model_gpt2(&g, poor, &o);
        if (status != AN_OK) {
            assert_int_equal(status, AN_ERR_MEMORY);
            assert_null(g);
        }
        an_graph_destroy(&g);
        assert_int_equal(l.held, held);
    }
    assert_true(l.calls > 10);
    assert_false(l.mismatch);
    an_context_destroy(&poor);
    assert_int_equal(l.held, 0);
}

/* ---- pictures ---- */

static int count_words(const char *text, const char *words) {
    int count = 0;
    while ((text = strstr(text, words))) count++, text += strlen(words);
    return count;
}

static void dot(void **state) {
    an_gpt2_options o = small_gpt2();
    an_graph *g = NULL;
    an_plan *plan = NULL;
    char *text = NULL;
    const char *symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {2, 16};
    an_plan_options options = AN_INIT(options);
    (void)state;
    OK(ctx, an_model_gpt2(&g, ctx, &o));
    OK(ctx, an_graph_dot(g, &text));
    assert_int_equal(strncmp(text, "digraph \"gpt2\" {", 16), 0);
    assert_int_equal(count_words(text, "subgraph"), o.layers + 1);
    assert_int_equal(count_words(text, " [label=\"c_attn"), 0); /* names are inside their blocks: attn.c_attn */
    assert_int_equal(count_words(text, "[label=\"attn.c_attn.weight\\nf32[24,8]\""), o.layers);
    assert_int_equal(count_words(text, "{"), count_words(text, "}"));
    assert_non_null(strstr(text, "f32[batch,tokens,8]"));
    an_string_release(ctx, &text);

    options.symbol_count = 2;
    options.symbols = symbols;
    options.maxima = maxima;
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    OK(ctx, an_plan_dot(plan, AN_FORM_TRAIN_FIRST, &text));
    assert_non_null(strstr(text, "attention_diff"));
    assert_int_equal(count_words(text, "{"), count_words(text, "}"));
    an_string_release(ctx, &text);
    FAILS(ctx, an_plan_dot(plan, AN_FORM_PREDICT, &text), AN_ERR_ARGUMENT, "no such form");
    assert_null(text);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
}

static void dot_quotes(void **state) {
    an_graph *g = NULL;
    char *text = NULL;
    (void)state;
    OK(ctx, an_graph_create(&g, ctx, "a \"quoted\" \\ name\n"));
    an_graph_set_output(g, an_input(g, "x\"y", AN_DTYPE_F32, AN_DIMS(2)), "z\\");
    OK(ctx, an_graph_dot(g, &text));
    assert_non_null(strstr(text, "digraph \"a \\\"quoted\\\" \\\\ name?\""));
    assert_non_null(strstr(text, "label=\"x\\\"y\\nf32[2]\""));
    assert_non_null(strstr(text, "label=\"z\\\\\""));
    an_string_release(ctx, &text);
    an_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_names),
        cmocka_unit_test(llama_names),
        cmocka_unit_test(mlp_names),
        cmocka_unit_test(cnn_names),
        cmocka_unit_test(preset_counts),
        cmocka_unit_test(llama_count),
        cmocka_unit_test(heads_are_views),
        cmocka_unit_test(dropout_adds_samples),
        cmocka_unit_test(mlp_targets_follow_loss),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(wrong_layers),
        cmocka_unit_test(layers_start),
        cmocka_unit_test(language_models_run),
        cmocka_unit_test(classifiers_run),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(dot),
        cmocka_unit_test(dot_quotes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
