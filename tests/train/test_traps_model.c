/* Mistakes of training loops that docs/traps.md tells of: what a model is under every way to train it, and
 * calls that there are not. */
#include <dirent.h>

#include "anneal/models.h"
#include "anneal/train.h"
#include "models/small_models.h"

/* ---- names ---- */

enum { SAMPLES = 20, TOKENS = 8, VOCABULARY = 11 };

static an_dataset *make_sequences(void) {
    static int32_t tokens[SAMPLES * TOKENS], targets[SAMPLES * TOKENS];
    const int64_t dims[] = {SAMPLES, TOKENS};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_dataset *dataset = NULL;
    for (int i = 0; i < SAMPLES * TOKENS; i++) tokens[i] = i * 7 % VOCABULARY, targets[i] = (i + 1) * 7 % VOCABULARY;
    const an_array arrays[] = {array_of(tokens, AN_DTYPE_I32, 2, dims), array_of(targets, AN_DTYPE_I32, 2, dims)};
    source.array_count = 2;
    source.arrays = arrays;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

/* Low precision, recompute, leaves, frozen parameters, a step: nothing puts anything before a name or after it. */
static void test_names_are_the_models(void **state) {
    static const an_group_rule rule = {DEFAULTS(an_group_rule), .match = "^wpe", .freeze = true};
    const an_group_options freezes = {DEFAULTS(an_group_options), .rules = &rule, .rule_count = 1};
    const an_batch_options batch = {.size = sizeof batch, .global = 4},
                           leaves = {.size = sizeof leaves, .global = 4, .leaves = 4};
    an_trainer_options ways[] = {
        {DEFAULTS(an_trainer_options)},
        {DEFAULTS(an_trainer_options), .precision = AN_DTYPE_BF16},
        {DEFAULTS(an_trainer_options), .precision = AN_DTYPE_F16},
        {DEFAULTS(an_trainer_options), .recompute = AN_RECOMPUTE_BLOCK},
        {DEFAULTS(an_trainer_options), .precision = AN_DTYPE_BF16, .recompute = AN_RECOMPUTE_FULL},
        {DEFAULTS(an_trainer_options), .batch = &leaves},
        {DEFAULTS(an_trainer_options), .groups = &freezes},
    };
    an_dataset *dataset = make_sequences();
    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        const an_gpt2_options options = small_gpt2();
        an_graph *model = NULL, *trained = NULL;
        an_trainer *trainer = NULL;
        if (!ways[w].batch) ways[w].batch = &batch;
        OK(ctx, an_model_gpt2(&model, ctx, &options));
        OK(ctx, an_model_gpt2(&trained, ctx, &options));
        OK(ctx, an_trainer_create(&trainer, trained, dataset, NULL, &ways[w]));
        OK(ctx, an_trainer_step(trainer, NULL));
        const an_params *params = an_trainer_params(trainer);
        assert_int_equal(an_params_count(params), model->parameter_count);
        for (size_t i = 0; i < model->parameter_count; i++) {
            an_param_info info;
            an_param_info_init(&info, sizeof info);
            int group = -1;
            OK(ctx, an_params_info(params, (int64_t)i, &info));
            assert_string_equal(info.name, model->parameters[i].name);
            OK(ctx, an_groups_find(an_trainer_groups(trainer), model->parameters[i].name, &group));
        }
        an_trainer_destroy(&trainer);
        an_graph_destroy(&trained);
        an_graph_destroy(&model);
    }
    an_dataset_destroy(&dataset);
}

/* ---- shapes ---- */

typedef an_value (*loss_builder)(an_graph *graph, an_value src, an_value targets);

static an_value huber(an_graph *graph, an_value src, an_value targets) {
    return an_huber_error(graph, src, targets, 1);
}

/* Numbers (batch, 1) and targets (batch): NumPy would make (batch, batch) of them. */
static void test_loss_does_not_broadcast(void **state) {
    static const loss_builder losses[] = {an_squared_error, an_absolute_error, huber, an_binary_cross_entropy};
    (void)state;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        for (int fits = 0; fits < 2; fits++) {
            an_graph *g = NULL;
            OK(ctx, an_graph_create(&g, ctx, "shapes"));
            const an_dim batch = an_symbol_dim(g, "batch");
            an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 4));
            an_value y = fits ? an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 1))
                              : an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch));
            an_graph_set_loss(g, losses[i](g, an_linear(g, x, "fc", 1), y), y);
            if (fits) OK(ctx, an_graph_verify(g));
            if (!fits) FAILS(ctx, an_graph_verify(g), AN_ERR_SHAPE, "f32[batch,1]");
            an_graph_destroy(&g);
        }
}

/* ---- vocabularies ---- */

/* With all weights 0 every token is as likely as any other: the loss says how many the softmax has. */
static void test_vocabulary_is_not_padded(void **state) {
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16};
    static const int64_t counts[] = {VOCABULARY, 13, 63, 65};
    const char *symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {1, TOKENS}, dims[] = {1, TOKENS};
    int32_t tokens[TOKENS] = {0};
    const an_array array = array_of(tokens, AN_DTYPE_I32, 2, dims);
    (void)state;
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            an_gpt2_options options = small_gpt2();
            an_plan_options planned;
            an_plan_options_init(&planned, sizeof planned);
            an_graph *g = NULL;
            an_plan *plan = NULL;
            an_params *params = NULL;
            an_program *program = NULL;
            double loss;
            options.vocabulary = counts[i];
            planned.symbol_count = 2;
            planned.symbols = symbols;
            planned.maxima = maxima;
            planned.precision = precisions[p];
            OK(ctx, an_model_gpt2(&g, ctx, &options));
            OK(ctx, an_graph_verify(g));
            OK(ctx, an_plan_create(&plan, ctx, g, &planned));
            OK(ctx, an_params_create(&params, ctx, g, NULL));
            OK(ctx, an_program_create(&program, plan, params));
            OK(ctx, an_program_set_input(program, "tokens", &array));
            OK(ctx, an_program_set_input(program, "targets", &array));
            OK(ctx, an_program_run(program, AN_FORM_EVALUATE));
            OK(ctx, an_program_loss(program, &loss));
            assert_true(fabs(loss / TOKENS - log((double)counts[i])) < 1e-6);
            an_program_destroy(&program);
            an_params_destroy(&params);
            an_plan_destroy(&plan);
            an_graph_destroy(&g);
        }
}

/* ---- documents ---- */

enum { HEADS = 2, LENGTH = 12, SIZE = 4, BORDER = 5, NUMBERS = HEADS * LENGTH * SIZE };

/* Attention over one sample of two documents; the first of them begins with `seed`. */
static void attend(float *out, bool apart, uint64_t seed) {
    const int64_t dims[] = {1, HEADS, LENGTH, SIZE}, document_dims[] = {1, LENGTH};
    an_attention_options options;
    an_attention_options_init(&options, sizeof options);
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    float x[NUMBERS];
    int32_t documents[LENGTH];
    for (int i = 0; i < NUMBERS; i++) x[i] = (float)noise((uint64_t)i + (i / SIZE % LENGTH < BORDER ? seed : 0));
    for (int i = 0; i < LENGTH; i++) documents[i] = i >= BORDER;
    OK(ctx, an_graph_create(&g, ctx, "packed"));
    an_value value = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(1, HEADS, LENGTH, SIZE));
    options.causal = true;
    if (apart) options.documents = an_input(g, "documents", AN_DTYPE_I32, AN_DIMS(1, LENGTH));
    an_graph_set_output(g, an_attention(g, value, value, value, &options), "out");
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_plan_create(&plan, ctx, g, NULL));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    an_array array = array_of(x, AN_DTYPE_F32, 4, dims);
    OK(ctx, an_program_set_input(program, "x", &array));
    array = array_of(documents, AN_DTYPE_I32, 2, document_dims);
    if (apart) OK(ctx, an_program_set_input(program, "documents", &array));
    OK(ctx, an_program_run(program, AN_FORM_PREDICT));
    array = array_of(out, AN_DTYPE_F32, 4, dims);
    OK(ctx, an_program_get_output(program, "out", &array));
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
}

/* Another first document changes no bit of the second, unless attention crosses the border. */
static void test_documents_do_not_see_each_other(void **state) {
    float a[NUMBERS], b[NUMBERS];
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        int same = 0;
        attend(a, apart, 0);
        attend(b, apart, 1000);
        for (int i = 0; i < NUMBERS; i++) same += i / SIZE % LENGTH >= BORDER && a[i] == b[i];
        assert_int_equal(same, apart ? HEADS * (LENGTH - BORDER) * SIZE : 0);
    }
}

/* ---- calls that there are not ---- */

/* Words of names of calls that a loop on a GPU must not forget. */
static const char *const unknown[] = {"pin",    "pinned", "cuda", "gpu",    "device", "cache",    "synchronize", "wrap",
                                      "unwrap", "module", "zero", "detach", "grad",   "autocast", "eval"};

static void check_name(const char *name, size_t length) {
    for (size_t begin = 0; begin < length;) {
        size_t end = begin;
        while (end < length && name[end] != '_') end++;
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
            if (strlen(unknown[i]) == end - begin && !strncmp(name + begin, unknown[i], end - begin))
                fail_msg("there is a public call '%.*s'", (int)length, name);
        begin = end + 1;
    }
}

/* The public calls of a header: the name before the first bracket after AN_API. */
static int check_header(const char *path, bool *has_step) {
    enum { MOST = 1 << 17 };
    static char text[MOST];
    int calls = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t length = fread(text, 1, MOST - 1, file);
    assert_true(length < MOST - 1);
    fclose(file);
    text[length] = 0;
    for (const char *at = text; (at = strstr(at, "AN_API ")); calls++) {
        at += strlen("AN_API ");
        const char *end = strchr(at, '('), *begin = end;
        assert_non_null(end);
        while (begin > at && strchr("abcdefghijklmnopqrstuvwxyz_0123456789", begin[-1])) begin--;
        check_name(begin, (size_t)(end - begin));
        *has_step = *has_step || !strncmp(begin, "an_trainer_step(", strlen("an_trainer_step("));
    }
    return calls;
}

static void test_there_is_nothing_to_pin_move_or_empty(void **state) {
    const char *folder = ANNEAL_SOURCE_DIR "/include/anneal";
    const struct dirent *entry;
    int calls = 0;
    bool has_step = false;
    DIR *files = opendir(folder);
    (void)state;
    assert_non_null(files);
    while ((entry = readdir(files))) {
        char path[1024];
        const size_t length = strlen(entry->d_name);
        if (length < 3 || strcmp(entry->d_name + length - 2, ".h") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        calls += check_header(path, &has_step);
    }
    closedir(files);
    assert_true(calls > 150 && has_step); /* it has looked at the right thing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_the_models),
        cmocka_unit_test(test_loss_does_not_broadcast),
        cmocka_unit_test(test_vocabulary_is_not_padded),
        cmocka_unit_test(test_documents_do_not_see_each_other),
        cmocka_unit_test(test_there_is_nothing_to_pin_move_or_empty),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
