/* One sample alone gives the bits that it gives in any batch, through whole models: in a program that was made for more
 * samples, and in one that was made for as many as there are. */
#include "models/small_models.h"

enum { MANY = 64, TOKENS = 21, IMAGE = 12, INPUTS = 33, CLASSES = 10, VOCABULARY = 131 };
static const int64_t few[] = {1, 2, 3, 7};
static const int64_t hidden[] = {48, 40};

/* ---- models: small, but with more than one tile or task of everything ---- */

static an_status make_gpt2(an_graph **g, an_dtype dtype) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.dtype = dtype;
    o.layers = 2;
    o.heads = 4;
    o.width = 64;
    o.context = 32;
    o.vocabulary = VOCABULARY;
    return an_model_gpt2(g, ctx, &o);
}

static an_status make_llama(an_graph **g, an_dtype dtype) {
    an_llama_options o;
    an_llama_options_init(&o, sizeof o);
    o.dtype = dtype;
    o.layers = 2;
    o.heads = 4;
    o.kv_heads = 2;
    o.width = 64;
    o.hidden = 96;
    o.context = 32;
    o.vocabulary = VOCABULARY;
    return an_model_llama(g, ctx, &o);
}

static an_status make_mlp(an_graph **g, an_dtype dtype) {
    an_mlp_options o;
    an_mlp_options_init(&o, sizeof o);
    o.dtype = dtype;
    o.inputs = INPUTS;
    o.outputs = CLASSES;
    o.hidden_count = 2;
    o.hidden = hidden;
    o.activation = AN_ACTIVATION_GELU;
    return an_model_mlp(g, ctx, &o);
}

static an_status make_cnn(an_graph **g, an_dtype dtype) {
    an_cnn_options o;
    an_cnn_options_init(&o, sizeof o);
    o.dtype = dtype;
    o.channels = 3;
    o.height = o.width = IMAGE;
    o.classes = CLASSES;
    o.filter_count = 2;
    o.filters = hidden;
    o.hidden = hidden[0];
    return an_model_cnn(g, ctx, &o);
}

typedef struct {
    const char *name;
    an_status (*make)(an_graph **g, an_dtype dtype);
    const char *input, *output;
    int ndims;
    int64_t dims[3], results; /* of the input of one sample, and how many numbers it gives */
} model;

static const model models[] = {
    {"gpt2", make_gpt2, "tokens", "logits", 1, {TOKENS}, TOKENS *VOCABULARY},
    {"llama", make_llama, "tokens", "logits", 1, {TOKENS}, TOKENS *VOCABULARY},
    {"mlp", make_mlp, "x", "y", 1, {INPUTS}, CLASSES},
    {"cnn", make_cnn, "image", "logits", 3, {3, IMAGE, IMAGE}, CLASSES},
};

static const struct {
    const char *name;
    an_dtype model, precision;
} precisions[] = {
    {"f32", AN_DTYPE_F32, AN_DTYPE_NONE},
    {"f64", AN_DTYPE_F64, AN_DTYPE_NONE},
    {"bf16", AN_DTYPE_F32, AN_DTYPE_BF16},
};

/* ---- running ---- */

typedef struct {
    an_plan *plan;
    an_params *params;
    an_program *program;
} runner;

static void runner_create(runner *r, an_graph *g, int64_t maximum, an_dtype precision) {
    const char *symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {maximum, TOKENS};
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_params_options stored;
    an_params_options_init(&stored, sizeof stored);
    options.symbols = symbols;
    options.maxima = maxima;
    while (an_graph_symbol_name(g, options.symbol_count)) options.symbol_count++;
    options.programs = AN_PROGRAM_PREDICTION;
    options.precision = precision;
    stored.gradients = false;
    OK(ctx, an_plan_create(&r->plan, ctx, g, &options));
    OK(ctx, an_params_create(&r->params, ctx, g, &stored));
    OK(ctx, an_params_reset(r->params, 1));
    OK(ctx, an_program_create(&r->program, r->plan, r->params));
}

static void runner_destroy(runner *r) {
    an_program_destroy(&r->program);
    an_params_destroy(&r->params);
    an_plan_destroy(&r->plan);
}

/* The input of sample s is a function of s alone. */
static void *make_input(const model *m, an_dtype dtype, int64_t samples, an_array *array) {
    int64_t dims[4] = {samples}, count = samples;
    for (int i = 0; i < m->ndims; i++) count *= dims[1 + i] = m->dims[i];
    void *data = calloc((size_t)count, an_dtype_size(dtype));
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) {
        const double number = noise((uint64_t)i);
        if (dtype == AN_DTYPE_I32) ((int32_t *)data)[i] = (int32_t)((number + 1) / 2 * VOCABULARY);
        if (dtype == AN_DTYPE_F32) ((float *)data)[i] = (float)number;
        if (dtype == AN_DTYPE_F64) ((double *)data)[i] = number;
    }
    *array = array_of(data, dtype, 1 + m->ndims, dims);
    return data;
}

/* The results of the first samples; the caller frees them. */
static void *run(const runner *r, const model *m, an_dtype dtype, int64_t samples) {
    an_array input, output = {0};
    void *data = make_input(m, m->dims[0] == TOKENS ? AN_DTYPE_I32 : dtype, samples, &input);
    output.data = calloc((size_t)(samples * m->results), sizeof(double));
    assert_non_null(output.data);
    OK(ctx, an_program_bind(r->program, "batch", samples));
    OK(ctx, an_program_set_input(r->program, m->input, &input));
    OK(ctx, an_program_run(r->program, AN_FORM_PREDICT));
    OK(ctx, an_program_get_output(r->program, m->output, &output));
    assert_int_equal(output.dtype, dtype);
    free(data);
    return output.data;
}

static void check_model(const model *m, int p) {
    const an_dtype dtype = precisions[p].model;
    const size_t sample = (size_t)m->results * an_dtype_size(dtype);
    an_graph *g = NULL;
    runner many;
    OK(ctx, m->make(&g, dtype));
    runner_create(&many, g, MANY, precisions[p].precision);
    char *whole = run(&many, m, dtype, MANY);
    assert_true(memcmp(whole, whole + sample, sample)); /* samples differ, or nothing would be shown */
    for (size_t k = 0; k < sizeof few / sizeof few[0]; k++) {
        runner own;
        runner_create(&own, g, few[k], precisions[p].precision);
        for (int i = 0; i < 2; i++) {
            void *part = run(i ? &own : &many, m, dtype, few[k]);
            if (memcmp(whole, part, (size_t)few[k] * sample))
                fail_msg("%s in %s: %d samples have other bits than among %d, in a program for %d", m->name,
                         precisions[p].name, (int)few[k], MANY, i ? (int)few[k] : MANY);
            free(part);
        }
        runner_destroy(&own);
    }
    free(whole);
    runner_destroy(&many);
    an_graph_destroy(&g);
}

static void alone_or_in_a_batch(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        for (int p = 0; p < (int)(sizeof precisions / sizeof precisions[0]); p++) check_model(&models[i], p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(alone_or_in_a_batch)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
