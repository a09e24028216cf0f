/* BERT: the first steps of fine-tuning as transformers takes them, and padding that changes nothing. That a single step
 * has the loss and the gradients of transformers is tested in tests/golden. */
#include "anneal/train.h"
#include "models/small_models.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/huggingface/bert/"

enum { SAMPLES = 8, TOKENS = 12, CLASSES = 3, STEPS = 20, VOCABULARY = 24 };
static const double rate = 1e-3, decay = 0.01; /* of tests/golden/make-bert */

typedef struct {
    int32_t tokens[SAMPLES][TOKENS], types[SAMPLES][TOKENS], mask[SAMPLES][TOKENS], labels[SAMPLES];
    double losses[STEPS];
    int32_t padding; /* the token in places without one */
} golden;

/* ---- the samples of training.txt ---- */

static void read_golden(golden *g) {
    int sizes[4], length, number;
    FILE *file = fopen(GOLDEN "training.txt", "r");
    assert_non_null(file);
    /* NOLINTBEGIN(cert-err34-c): what is no number is seen by what follows */
    assert_int_equal(fscanf(file, "%d %d %d %d", &sizes[0], &sizes[1], &sizes[2], &sizes[3]), 4);
    assert_true(sizes[0] == SAMPLES && sizes[1] == TOKENS && sizes[2] == CLASSES && sizes[3] == STEPS);
    for (int i = 0; i < SAMPLES; i++) {
        assert_int_equal(fscanf(file, "%d %d", &number, &length), 2);
        assert_true(length <= TOKENS);
        g->labels[i] = number;
        for (int t = 0; t < TOKENS; t++) {
            g->tokens[i][t] = g->padding;
            g->mask[i][t] = t < length;
            g->types[i][t] = 0;
            if (t < length) assert_int_equal(fscanf(file, "%d", &g->tokens[i][t]), 1);
        }
        for (int t = 0; t < length; t++) assert_int_equal(fscanf(file, "%d", &g->types[i][t]), 1);
    }
    for (int i = 0; i < STEPS; i++) assert_int_equal(fscanf(file, "%lf", &g->losses[i]), 1);
    /* NOLINTEND(cert-err34-c) */
    fclose(file);
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t capacity) {
    const golden *g = user;
    (void)message, (void)capacity;
    for (int64_t i = 0; i < n; i++) {
        memcpy((int32_t *)fields[0] + i * TOKENS, g->tokens[indices[i]], sizeof g->tokens[0]);
        memcpy((int32_t *)fields[1] + i * TOKENS, g->types[indices[i]], sizeof g->types[0]);
        memcpy((int32_t *)fields[2] + i * TOKENS, g->mask[indices[i]], sizeof g->mask[0]);
        ((int32_t *)fields[3])[i] = g->labels[indices[i]];
    }
    return AN_OK;
}

static an_dataset *make_dataset(golden *g) {
    static const char *const names[] = {"tokens", "token_types", "mask", "targets"};
    an_field fields[4];
    an_dataset *dataset = NULL;
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    for (int i = 0; i < 4; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = names[i];
        fields[i].dtype = AN_DTYPE_I32;
        fields[i].ndims = i < 3;
        fields[i].dims[0] = TOKENS;
        fields[i].target = i == 3;
    }
    record.count = SAMPLES;
    record.fields = fields;
    record.field_count = 4;
    record.read = read_samples;
    record.user = g;
    OK(ctx, an_dataset_create(&dataset, ctx, &record));
    return dataset;
}

static an_graph *make_graph(void) {
    an_bert_options o = small_bert();
    an_graph *graph = NULL;
    o.heads = 4;
    o.width = 16;
    o.hidden = 40;
    o.context = TOKENS;
    o.vocabulary = VOCABULARY;
    o.classes = CLASSES;
    OK(ctx, an_model_bert(&graph, ctx, &o));
    return graph;
}

/* ---- training ---- */

static void train(golden *g, int64_t micro, double *losses) {
    const an_batch_options batch = {.size = sizeof batch, .global = SAMPLES, .micro = micro};
    const an_optimizer_options optimizer = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_ADAMW};
    const an_group_options groups = {DEFAULTS(an_group_options), .weight_decay = decay};
    an_trainer_options options;
    an_load_options init;
    an_trainer *trainer = NULL;
    an_graph *graph = make_graph();
    an_dataset *dataset = make_dataset(g);
    an_trainer_options_init(&options, sizeof options);
    options.batch = &batch;
    options.steps = STEPS;
    options.optimizer = &optimizer;
    options.groups = &groups;
    options.rate = rate;
    options.clip_norm = 0;
    OK(ctx, an_trainer_create(&trainer, graph, dataset, NULL, &options));
    an_load_options_init(&init, sizeof init);
    init.path = GOLDEN "model.safetensors"; /* "bert." is before every name but the classifier's */
    OK(ctx, an_trainer_load_weights(trainer, &init));
    for (int step = 0; step < STEPS; step++) {
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        OK(ctx, an_trainer_step(trainer, &metrics));
        losses[step] = metrics.loss;
    }
    an_trainer_destroy(&trainer);
    an_dataset_destroy(&dataset);
    an_graph_destroy(&graph);
}

static void steps_of_transformers(void **state) {
    static const int64_t micros[] = {SAMPLES, 3};
    golden g = {.padding = 0};
    double losses[STEPS], worst = 0;
    (void)state;
    read_golden(&g);
    for (int m = 0; m < 2; m++) {
        train(&g, micros[m], losses);
        for (int i = 0; i < STEPS; i++) {
            const double error = fabs(losses[i] - g.losses[i]);
            if (!(error <= 1e-4))
                fail_msg("step %d: the loss is %.9g, transformers has %.9g", i, losses[i], g.losses[i]);
            worst = fmax(worst, error);
        }
    }
    print_message("losses of %d steps differ by at most %.2g\n", STEPS, worst);
}

/* What stands in the place of padding changes no bit of training. */
static void padding_is_not_seen(void **state) {
    golden g = {.padding = 0};
    double losses[STEPS], others[STEPS];
    (void)state;
    read_golden(&g);
    train(&g, SAMPLES, losses);
    g.padding = VOCABULARY - 1;
    read_golden(&g);
    for (int i = 0; i < SAMPLES; i++)
        for (int t = 0; t < TOKENS; t++)
            if (!g.mask[i][t]) g.types[i][t] = 1;
    train(&g, SAMPLES, others);
    assert_memory_equal(losses, others, sizeof losses);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_of_transformers), cmocka_unit_test(padding_is_not_seen)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
