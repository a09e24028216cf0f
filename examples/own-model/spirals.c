/* A model built in C, trained by the trainer: which of three spirals does a point belong to?
 *
 *     cmake -B build -DCMAKE_PREFIX_PATH=<where anneal is installed>
 *     cmake --build build && build/spirals
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <anneal/run.h>

enum { CLASSES = 3, SAMPLES = 3000, TESTS = 600, WIDTH = 64, BLOCKS = 2 };

/* Every call of the library can fail; the context keeps the message. */
#define TRY(call)                                   \
    do {                                            \
        if ((status = (call)) != AN_OK) goto ended; \
    } while (0)

/* x + its change: two linear layers around an activation, behind a norm. */
static an_value block(an_graph *g, an_value x, const char *name) {
    char part[64];
    snprintf(part, sizeof part, "%s.norm", name);
    an_value h = an_layer_norm_layer(g, x, part, 1e-5);
    snprintf(part, sizeof part, "%s.up", name);
    h = an_gelu(g, an_linear(g, h, part, 2 * WIDTH));
    snprintf(part, sizeof part, "%s.down", name);
    return an_add(g, x, an_linear(g, h, part, WIDTH));
}

/* Names of inputs are the dataset's names of fields. */
static void build(an_graph *g) {
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "inputs", AN_DTYPE_F32, AN_DIMS(batch, 2));
    an_value targets = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(batch));
    an_value h = an_linear(g, x, "in", WIDTH);
    for (int i = 0; i < BLOCKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "block.%d", i);
        h = block(g, h, name);
    }
    an_value logits = an_linear(g, h, "out", CLASSES);
    an_graph_set_output(g, logits, "logits");
    an_graph_set_loss(g, an_cross_entropy(g, logits, targets, NULL), targets); /* a sum over the targets */
}

/* Points of arms that wind twice around the middle, with a little noise; the same in every run. */
static void draw(float *points, int32_t *arms, int count) {
    unsigned state = 1;
    for (int i = 0; i < count; i++) {
        double u[2];
        for (int k = 0; k < 2; k++) u[k] = (double)((state = state * 1664525u + 1013904223u) >> 8) / (1 << 24);
        const double radius = 0.1 + 0.9 * u[0], angle = 9 * radius + 2.0944 * (i % CLASSES) + 0.2 * (u[1] - 0.5);
        points[2 * i] = (float)(radius * cos(angle));
        points[2 * i + 1] = (float)(radius * sin(angle));
        arms[i] = i % CLASSES;
    }
}

/* A dataset of two arrays, whose first dimension is the sample. */
static an_status make_data(an_dataset **data, an_context *ctx, float *points, int32_t *arms, int64_t count) {
    const an_array arrays[] = {
        {.data = points, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {count, 2}},
        {.data = arms, .dtype = AN_DTYPE_I32, .ndims = 1, .dims = {count}},
    };
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.arrays = arrays;
    source.array_count = 2;
    return an_dataset_create_arrays(data, ctx, &source);
}

static an_status tell(void *user, an_trainer *trainer, int64_t step, bool best) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    (void)user;
    const an_status status = an_trainer_evaluation(trainer, &evaluation);
    printf("step %4lld  loss %.4f  accuracy %.3f%s\n", (long long)step, evaluation.loss, evaluation.accuracy,
           best ? "  best" : "");
    return status;
}

int main(void) {
    static float points[2 * (SAMPLES + TESTS)];
    static int32_t arms[SAMPLES + TESTS];
    an_context *ctx = NULL;
    an_graph *graph = NULL;
    an_dataset *data = NULL, *tests = NULL;
    an_trainer *trainer = NULL;
    an_predictor *predictor = NULL;
    an_status status;

    draw(points, arms, SAMPLES + TESTS);
    TRY(an_context_create(&ctx, NULL));
    TRY(an_graph_create(&graph, ctx, "spirals"));
    build(graph); /* a mistake in it is reported by the trainer, with its line in this file */
    TRY(make_data(&data, ctx, points, arms, SAMPLES));
    TRY(make_data(&tests, ctx, points + 2 * SAMPLES, arms + SAMPLES, TESTS));

    /* AdamW with two groups, a warm-up and half a cosine: everything has a default, as in a config. */
    an_schedule_options schedule;
    an_schedule_options_init(&schedule, sizeof schedule);
    schedule.type = AN_SCHEDULE_COSINE;
    schedule.warmup = 20;
    schedule.min_ratio = 0.05;
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    options.epochs = 20;
    options.seed = 1;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = 100;
    options.batch = &batch;
    options.rate = 3e-3;
    options.schedule = &schedule;
    TRY(an_trainer_create(&trainer, graph, data, tests, &options));

    an_run_options run;
    an_run_options_init(&run, sizeof run);
    run.evaluate_every = 150;
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.after_evaluation = tell;
    run.callbacks = &callbacks;
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    TRY(an_trainer_run(trainer, &run, &outcome));

    /* One point, as a program in production would ask. */
    float logits[CLASSES];
    TRY(an_predictor_create(&predictor, trainer, NULL));
    if (an_predictor_run_f32(predictor, 1, points, logits) != AN_OK) {
        fprintf(stderr, "spirals: %s\n", an_last_error(NULL));
        status = AN_ERR_STATE;
        goto ended;
    }
    int arm = 0;
    for (int i = 1; i < CLASSES; i++)
        if (logits[i] > logits[arm]) arm = i;
    printf("\nthe point (%.2f, %.2f) belongs to arm %d; it is of arm %d\n", (double)points[0], (double)points[1], arm,
           arms[0]);

ended:
    if (status != AN_OK) fprintf(stderr, "spirals: %s\n", an_last_error(ctx));
    an_predictor_destroy(&predictor);
    an_trainer_destroy(&trainer);
    an_dataset_destroy(&tests);
    an_dataset_destroy(&data);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
