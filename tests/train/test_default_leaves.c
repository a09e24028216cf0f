/* batch.leaves: auto. The number follows from model, precision and samples of a step, and is at least the ranks. */
#include "support/support.h"

#include "anneal/optimizer.h"
#include "train/trainer.h"

#include "train/array_trainer.h"

enum { SAMPLES = 4096, SIDE = 6, TOKENS = 16, FEATURES = 3 };

static float pictures[SAMPLES][SIDE * SIDE], numbers[SAMPLES][FEATURES];
static int32_t classes[SAMPLES], tokens[SAMPLES][TOKENS];

static void make_data(void) {
    for (int i = 0; i < SAMPLES; i++) {
        classes[i] = class_of(i);
        for (int k = 0; k < FEATURES; k++) numbers[i][k] = (float)((i * 7 + k * 5) % 11);
        for (int k = 0; k < SIDE * SIDE; k++) pictures[i][k] = (float)((i * 31 + k * 17) % 29);
        for (int k = 0; k < TOKENS; k++) tokens[i][k] = (i * 5 + k * k * 3) % 11;
    }
}

/* ---- models ---- */

static an_graph *make_mlp(void) {
    an_mlp_options model = small_mlp_options();
    an_graph *g = NULL;
    model.inputs = FEATURES;
    OK(ctx, an_model_mlp(&g, ctx, &model));
    return g;
}

static an_graph *cnn(int64_t side, int64_t filters, bool batch_norm) {
    an_cnn_options model;
    an_graph *g = NULL;
    an_cnn_options_init(&model, sizeof model);
    model.height = model.width = side;
    model.channels = 1;
    model.classes = 3;
    model.filters = &filters;
    model.filter_count = 1;
    model.hidden = 7;
    model.batch_norm = batch_norm;
    OK(ctx, an_model_cnn(&g, ctx, &model));
    return g;
}

static an_graph *make_cnn(void) {
    return cnn(SIDE, 4, false);
}

static an_graph *make_batch_norm(void) {
    return cnn(SIDE, 4, true);
}

static an_graph *make_llama(void) {
    const an_llama_options model = small_llama();
    an_graph *g = NULL;
    OK(ctx, an_model_llama(&g, ctx, &model));
    return g;
}

static an_graph *make_lora(void) {
    static const char *const targets[] = {"q_proj"};
    an_graph *g = make_llama();
    an_lora_options lora;
    an_lora_options_init(&lora, sizeof lora);
    lora.targets = targets;
    lora.target_count = 1;
    lora.rank = 2;
    OK(ctx, an_graph_add_lora(g, &lora));
    return g;
}

typedef enum { MLP, CNN, BATCH_NORM, LLAMA, LORA } kind;

static an_trainer *open_trainer(array_trainer *a, kind k, const an_trainer_options *options) {
    static an_graph *(*const make[])(void) = {make_mlp, make_cnn, make_batch_norm, make_llama, make_lora};
    an_array inputs = array_of(tokens, AN_DTYPE_I32, 2, (const int64_t[]){SAMPLES, TOKENS}), targets = inputs;
    if (k < LLAMA) targets = array_of(classes, AN_DTYPE_I32, 1, (const int64_t[]){SAMPLES});
    if (k == MLP) inputs = array_of(numbers, AN_DTYPE_F32, 2, (const int64_t[]){SAMPLES, FEATURES});
    if (k == CNN || k == BATCH_NORM)
        inputs = array_of(pictures, AN_DTYPE_F32, 4, (const int64_t[]){SAMPLES, 1, SIDE, SIDE});
    *a = array_trainer_create(make[k](), inputs, targets, options);
    return a->trainer;
}

/* ---- the rule ---- */

static void test_rows_decide(void **state) {
    static const struct {
        kind model;
        an_dtype precision;
        int64_t global, micro, leaves;
    } runs[] = {
        {MLP, AN_DTYPE_NONE, 31, 0, 1},
        {MLP, AN_DTYPE_NONE, 64, 0, 2},
        {MLP, AN_DTYPE_NONE, 127, 0, 2},
        {MLP, AN_DTYPE_NONE, 2048, 0, 64},
        {MLP, AN_DTYPE_NONE, 4096, 0, 64},
        {MLP, AN_DTYPE_BF16, 2048, 0, 4},
        {LLAMA, AN_DTYPE_NONE, 2, 0, 1},
        {LLAMA, AN_DTYPE_NONE, 64, 0, 32},
        {LLAMA, AN_DTYPE_BF16, 64, 0, 2},
        {LORA, AN_DTYPE_BF16, 64, 0, 4},
        {LORA, AN_DTYPE_NONE, 64, 0, 32},
        {CNN, AN_DTYPE_NONE, 64, 0, 16},
        {CNN, AN_DTYPE_BF16, 3, 0, 1},
        /* micro-batches do not matter */
        {MLP, AN_DTYPE_NONE, 2048, 32, 64},
        {MLP, AN_DTYPE_NONE, 2048, 1024, 64},
        /* but where statistics are theirs: a leaf is all samples, or what a micro-batch has */
        {BATCH_NORM, AN_DTYPE_NONE, 64, 0, 1},
        {BATCH_NORM, AN_DTYPE_NONE, 64, 16, 4},
        {BATCH_NORM, AN_DTYPE_NONE, 60, 16, 4},
        {BATCH_NORM, AN_DTYPE_NONE, 64, 64, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const an_batch_options batch = {.size = sizeof batch, .global = runs[i].global, .micro = runs[i].micro};
        an_trainer_options options = few_steps(1, &batch);
        array_trainer a;
        options.precision = runs[i].precision;
        const an_trainer *t = open_trainer(&a, runs[i].model, &options);
        if (t->samples.batches.leaves != runs[i].leaves)
            fail_msg("run %zu has %lld leaves", i, (long long)t->samples.batches.leaves);
        if (runs[i].micro == 0) assert_int_equal(t->cut.together, t->samples.batches.leaves); /* one pass */
        array_trainer_destroy(&a);
    }
}

static void test_ranks_are_a_least(void **state) {
    static const struct {
        kind model;
        int64_t micro;
        int32_t ranks;
        int64_t leaves;
        const char *note;
    } runs[] = {
        {MLP, 0, 2, 2, ""},
        {MLP, 0, 3, 4, "batch.leaves: auto is 4, because there are 3 ranks; with fewer it would be 2"},
        {BATCH_NORM, 0, 3, 4, "because a pass has one leaf (batch_norm"},
        {BATCH_NORM, 8, 3, 8, "because a pass has one leaf (batch_norm"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const an_batch_options batch = {.size = sizeof batch, .global = 64, .micro = runs[i].micro};
        an_trainer_options options = few_steps(1, &batch);
        array_trainer a;
        options.purpose = AN_OPEN_PLAN;
        options.ranks = runs[i].ranks;
        const an_trainer *t = open_trainer(&a, runs[i].model, &options);
        assert_int_equal(t->samples.batches.leaves, runs[i].leaves);
        const char *notes = t->room.notes ? t->room.notes : "";
        if (*runs[i].note ? !strstr(notes, runs[i].note) : strstr(notes, "batch.leaves") != NULL)
            fail_msg("run %zu: '%s'", i, notes);
        array_trainer_destroy(&a);
    }
}

/* Images whose convolutions would need much memory are evaluated few at a time. */
static void test_large_images_are_evaluated_by_few(void **state) {
    enum { LARGE = 512, IMAGES = 33 };
    static const struct { int64_t filters, together; } models[] = {{8, 32}, {16, 16}, {100, 2}, {300, 1}};
    float *images = calloc((size_t)IMAGES * LARGE * LARGE, sizeof *images);
    const an_array inputs = array_of(images, AN_DTYPE_F32, 4, (const int64_t[]){IMAGES, 1, LARGE, LARGE});
    const an_array targets = array_of(classes, AN_DTYPE_I32, 1, (const int64_t[]){IMAGES});
    (void)state;
    assert_non_null(images);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const an_batch_options batch = {.size = sizeof batch, .global = 32};
        an_trainer_options options = few_steps(1, &batch);
        options.purpose = AN_OPEN_PLAN;
        array_trainer a = array_trainer_create(cnn(LARGE, models[i].filters, false), inputs, targets, &options);
        assert_int_equal(a.trainer->evaluator.default_micro, models[i].together);
        array_trainer_destroy(&a);
    }
    free(images);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_decide, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks_are_a_least, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_images_are_evaluated_by_few, setup, teardown),
    };
    make_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
