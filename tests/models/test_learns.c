/* A small GPT learns tinyshakespeare, in f32 and in bf16.
 *
 * Its first steps are compared with PyTorch's, from the same weights on the same batches (tests/golden/autocast.py has
 * the same model, batches and optimizer, and makes what is expected here); then the two precisions with each other,
 * over as many steps as it takes to learn something. The optimizer is a plain loop over parameters that are copied out
 * and in.
 *
 *     test_models_learns
 *     test_models_learns --dump FILE     writes the weights that it starts from
 */
#include "models/small_models.h"

enum { STEPS = 300, LAST = 50, GOLDEN_STEPS = 50, BATCH = 12, TOKENS = 64, STRIDE = 7919, SEED = 1337, BYTES = 256 };
static const double rate = 1e-3, beta_1 = 0.9, beta_2 = 0.99, epsilon = 1e-8, decay = 0.1;

/* How far a loss may be from PyTorch's: in bf16 both round, in different places. */
static const double tolerance_f32 = 1e-4, tolerance_bf16 = 1e-2;
/* How far the means of the last losses of the two precisions may be from each other. */
static const double tolerance_of_means = 0.01;

/* ---- the text ---- */

static int32_t *text; /* as numbers of characters */
static int64_t length;
static int32_t characters;

static void read_text(void) {
    int32_t numbers[BYTES] = {0};
    FILE *file = fopen(ANNEAL_SOURCE_DIR "/examples/shakespeare/tinyshakespeare.txt", "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    length = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)length);
    text = malloc((size_t)length * sizeof *text);
    assert_true(bytes && text);
    assert_int_equal(fread(bytes, 1, (size_t)length, file), length);
    fclose(file);
    for (int64_t i = 0; i < length; i++) numbers[bytes[i]] = 1;
    characters = 0;
    for (int i = 0; i < BYTES; i++) { /* in the order of their codes */
        const int32_t number = characters;
        characters += numbers[i];
        numbers[i] = number;
    }
    for (int64_t i = 0; i < length; i++) text[i] = numbers[bytes[i]];
    free(bytes);
}

static void set_batch(an_program *program, int step) {
    int32_t tokens[BATCH * TOKENS], targets[BATCH * TOKENS];
    const int64_t dims[] = {BATCH, TOKENS};
    const an_array token_array = array_of(tokens, AN_DTYPE_I32, 2, dims);
    const an_array target_array = array_of(targets, AN_DTYPE_I32, 2, dims);
    for (int64_t i = 0; i < BATCH; i++) {
        const int32_t *begin = text + ((int64_t)step * BATCH + i) * STRIDE % (length - TOKENS - 1);
        memcpy(tokens + i * TOKENS, begin, TOKENS * sizeof *tokens);
        memcpy(targets + i * TOKENS, begin + 1, TOKENS * sizeof *targets);
    }
    OK(ctx, an_program_set_input(program, "tokens", &token_array));
    OK(ctx, an_program_set_input(program, "targets", &target_array));
}

/* ---- training ---- */

typedef struct {
    an_graph *graph;
    an_plan *plan;
    an_params *params;
    an_program *program;
    float **moments[2]; /* of each parameter */
} training;

static an_status make_gpt(an_graph **graph) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.layers = 4;
    o.heads = 4;
    o.width = 128;
    o.context = TOKENS;
    o.vocabulary = characters;
    return an_model_gpt2(graph, ctx, &o);
}

static void training_create(training *t, an_dtype precision) {
    const char *symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {BATCH, TOKENS};
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.symbol_count = 2;
    options.symbols = symbols;
    options.maxima = maxima;
    options.programs = AN_PROGRAM_TRAINING;
    options.precision = precision;
    memset(t, 0, sizeof *t);
    OK(ctx, make_gpt(&t->graph));
    OK(ctx, an_plan_create(&t->plan, ctx, t->graph, &options));
    OK(ctx, an_params_create(&t->params, ctx, t->graph, NULL));
    OK(ctx, an_params_reset(t->params, SEED));
    OK(ctx, an_program_create(&t->program, t->plan, t->params));
    OK(ctx, an_program_set_scalar(t->program, "loss_gradient", 1.0 / (BATCH * TOKENS)));
    const int64_t count = an_params_count(t->params);
    for (int m = 0; m < 2; m++) {
        t->moments[m] = calloc((size_t)count, sizeof *t->moments[m]);
        assert_non_null(t->moments[m]);
        for (int64_t i = 0; i < count; i++) {
            an_param_info info;
            an_param_info_init(&info, sizeof info);
            OK(ctx, an_params_info(t->params, i, &info));
            t->moments[m][i] = calloc((size_t)info.elements, sizeof(float));
            assert_non_null(t->moments[m][i]);
        }
    }
}

static void training_destroy(training *t) {
    for (int m = 0; m < 2; m++) {
        for (int64_t i = 0; i < an_params_count(t->params); i++) free(t->moments[m][i]);
        free(t->moments[m]);
    }
    an_program_destroy(&t->program);
    an_params_destroy(&t->params);
    an_plan_destroy(&t->plan);
    an_graph_destroy(&t->graph);
}

/* AdamW, as PyTorch computes it: weights decay by themselves, and only those of two dimensions and more. */
static void update(int64_t n, float *w, const float *g, float *m, float *v, int step, bool decays) {
    const double correction_1 = 1 - pow(beta_1, step + 1), correction_2 = sqrt(1 - pow(beta_2, step + 1));
    const float kept = (float)(1 - (decays ? rate * decay : 0)), move = (float)(rate / correction_1);
    for (int64_t i = 0; i < n; i++) {
        m[i] += (g[i] - m[i]) * (float)(1 - beta_1);
        v[i] = v[i] * (float)beta_2 + g[i] * g[i] * (float)(1 - beta_2);
        w[i] = w[i] * kept - move * (m[i] / (sqrtf(v[i]) / (float)correction_2 + (float)epsilon));
    }
}

static void update_all(training *t, int step) {
    for (int64_t i = 0; i < an_params_count(t->params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(t->params, i, &info));
        float *weights = malloc((size_t)info.elements * sizeof(float));
        float *gradient = malloc((size_t)info.elements * sizeof(float));
        assert_true(weights && gradient);
        an_array weights_array = array_of(weights, AN_DTYPE_F32, info.ndims, info.dims);
        an_array gradient_array = array_of(gradient, AN_DTYPE_F32, info.ndims, info.dims);
        OK(ctx, an_params_get(t->params, info.name, AN_PART_WEIGHT, &weights_array));
        OK(ctx, an_params_get(t->params, info.name, AN_PART_GRADIENT, &gradient_array));
        update(info.elements, weights, gradient, t->moments[0][i], t->moments[1][i], step, info.ndims > 1);
        OK(ctx, an_params_set(t->params, info.name, AN_PART_WEIGHT, &weights_array));
        free(weights);
        free(gradient);
    }
}

/* The loss of a target before each step. */
static void train(an_dtype precision, int steps, double *losses) {
    training t;
    training_create(&t, precision);
    for (int step = 0; step < steps; step++) {
        set_batch(t.program, step);
        OK(ctx, an_program_run(t.program, AN_FORM_TRAIN_FIRST));
        OK(ctx, an_program_loss(t.program, &losses[step]));
        losses[step] /= BATCH * TOKENS;
        update_all(&t, step);
    }
    training_destroy(&t);
}

/* ---- tests ---- */

static double losses_f32[STEPS], losses_bf16[STEPS];

static void train_both(void **state) {
    (void)state;
    train(AN_DTYPE_NONE, STEPS, losses_f32);
    train(AN_DTYPE_BF16, STEPS, losses_bf16);
}

static double compare(const char *name, const double *losses, const double *expected, double tolerance) {
    double worst = 0;
    for (int i = 0; i < GOLDEN_STEPS; i++) {
        const double error = fabs(losses[i] - expected[i]);
        if (!(error <= tolerance))
            fail_msg("%s, step %d: the loss is %.6f, PyTorch's is %.6f", name, i, losses[i], expected[i]);
        worst = fmax(worst, error);
    }
    return worst;
}

static void as_pytorch(void **state) {
    double f32[GOLDEN_STEPS], bf16[GOLDEN_STEPS];
    char line[128];
    int count = 0;
    FILE *file = fopen(ANNEAL_SOURCE_DIR "/tests/golden/data/gpt-losses.txt", "r");
    (void)state;
    assert_non_null(file);
    while (count < GOLDEN_STEPS && fgets(line, sizeof line, file)) {
        char *at;
        if (line[0] == '#') continue;
        assert_int_equal(strtol(line, &at, 10), count);
        f32[count] = strtod(at, &at);
        bf16[count] = strtod(at, &at);
        assert_true(*at == '\n'); /* three numbers, and no more */
        count++;
    }
    fclose(file);
    assert_int_equal(count, GOLDEN_STEPS);
    print_message("losses of %d steps differ from PyTorch's by at most %.2g in f32,", GOLDEN_STEPS,
                  compare("f32", losses_f32, f32, tolerance_f32));
    print_message(" %.2g in bf16\n", compare("bf16", losses_bf16, bf16, tolerance_bf16));
}

static double mean_of_last(const double *losses) {
    double sum = 0;
    for (int i = STEPS - LAST; i < STEPS; i++) sum += losses[i];
    return sum / LAST;
}

static void learns_alike(void **state) {
    const double f32 = mean_of_last(losses_f32), bf16 = mean_of_last(losses_bf16);
    (void)state;
    print_message("mean loss of steps %d to %d: %.4f in f32, %.4f in bf16\n", STEPS - LAST, STEPS - 1, f32, bf16);
    assert_true(f32 < losses_f32[0] / 1.5); /* it has learned */
    if (!(fabs(bf16 / f32 - 1) < tolerance_of_means))
        fail_msg("the last losses are %.4f in f32, %.4f in bf16", f32, bf16);
}

/* ---- the weights to start from ---- */

static void dump(const char *path) {
    training t;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    training_create(&t, AN_DTYPE_NONE);
    const int64_t count = an_params_count(t.params);
    for (int64_t i = 0; i < 2 * count; i++) { /* all lines, then all numbers */
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(t.params, i % count, &info));
        if (i == count) fprintf(file, "end\n");
        if (i < count) {
            fprintf(file, "%s", info.name);
            for (int d = 0; d < info.ndims; d++) fprintf(file, " %d", (int)info.dims[d]);
            fprintf(file, "\n");
            continue;
        }
        float *weights = malloc((size_t)info.elements * sizeof(float));
        assert_non_null(weights);
        an_array array = array_of(weights, AN_DTYPE_F32, info.ndims, info.dims);
        OK(ctx, an_params_get(t.params, info.name, AN_PART_WEIGHT, &array));
        assert_int_equal(fwrite(weights, sizeof(float), (size_t)info.elements, file), info.elements);
        free(weights);
    }
    fclose(file);
    training_destroy(&t);
}

static int setup_text(void **state) {
    read_text();
    return setup(state);
}

static int teardown_text(void **state) {
    free(text);
    return teardown(state);
}

static const char *dump_path;
static void dump_test(void **state) {
    (void)state;
    dump(dump_path);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_both),
        cmocka_unit_test(as_pytorch),
        cmocka_unit_test(learns_alike),
    };
    const struct CMUnitTest dumps[] = {cmocka_unit_test(dump_test)};
    dump_path = argc == 3 && !strcmp(argv[1], "--dump") ? argv[2] : NULL;
    return dump_path ? cmocka_run_group_tests(dumps, setup_text, teardown_text)
                     : cmocka_run_group_tests(tests, setup_text, teardown_text);
}
