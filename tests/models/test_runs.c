/* Every model runs, survives every failing allocation, and can be drawn. */
#include "models/small_models.h"

/* ---- runs ---- */

enum { BATCH = 3, TOKENS = 7 };

/* One training run and one of prediction; the loss of one target must be about `loss`. */
static void run_model(an_graph *g, const an_array *input, const char *name, const an_array *targets, bool has_samples,
                      int64_t target_count, double loss, double tolerance) {
    const char *symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {BATCH + 1, TOKENS + 2};
    int64_t samples[BATCH] = {5, 6, 7}, count = 0, dims[] = {BATCH};
    an_array sample_array = array_of(samples, AN_DTYPE_I64, 1, dims);
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    double found;
    options.symbols = symbols;
    options.maxima = maxima;
    while (an_graph_symbol_name(g, options.symbol_count)) options.symbol_count++;
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_params_reset(params, 1));
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
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
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
    FAILS(ctx, an_plan_dot(plan, AN_FORM_PREDICT, &text), AN_ERR_ARGUMENT,
          "the plan does not have this form: add it to an_plan_options.programs");
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
        cmocka_unit_test(language_models_run), cmocka_unit_test(classifiers_run),
        cmocka_unit_test(out_of_memory),       cmocka_unit_test(dot),
        cmocka_unit_test(dot_quotes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
