/* The trainer: epochs and leftovers, evaluation that leaves no trace, bits that depend on nothing but the run. */
#include "anneal/models.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "models/small_models.h"

enum { INPUTS = 4, CLASSES = 3, TRAINING = 103, EVALUATION = 29 };

/* ---- data: class c lies around a point of its own ---- */

static float inputs[TRAINING + EVALUATION][INPUTS];
static int32_t classes[TRAINING + EVALUATION];

static void make_data(void) {
    for (int i = 0; i < TRAINING + EVALUATION; i++) {
        classes[i] = i * 7 % CLASSES;
        for (int k = 0; k < INPUTS; k++)
            inputs[i][k] = (float)(((classes[i] + k) % CLASSES) - 1) + (float)(i * (k + 3) % 11 - 5) / 10;
    }
}

static an_dataset *make_dataset(int begin, int count) {
    const int64_t dims[] = {count, INPUTS};
    an_dataset *dataset = NULL;
    const an_array arrays[] = {array_of(inputs[begin], AN_DTYPE_F32, 2, dims),
                               array_of(classes + begin, AN_DTYPE_I32, 1, dims)};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 2;
    source.arrays = arrays;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

/* ---- a run ---- */

typedef struct {
    an_graph *graph;
    an_dataset *training, *evaluation;
    an_trainer *trainer;
} run;

static const an_batch_options usual_batch = {.size = sizeof usual_batch, .global = 16};

static an_trainer_options usual_options(void) {
    an_trainer_options o;
    an_trainer_options_init(&o, sizeof o);
    o.seed = 11;
    o.epochs = 3;
    o.batch = &usual_batch;
    o.rate = 1e-2;
    return o;
}

static void run_create(run *r, const an_trainer_options *options, double dropout) {
    an_mlp_options model = small_mlp_options();
    model.dropout = dropout;
    r->training = make_dataset(0, TRAINING);
    r->evaluation = make_dataset(TRAINING, EVALUATION);
    OK(ctx, an_model_mlp(&r->graph, ctx, &model));
    OK(ctx, an_trainer_create(&r->trainer, r->graph, r->training, r->evaluation, options));
}

static void run_destroy(run *r) {
    an_trainer_destroy(&r->trainer);
    an_graph_destroy(&r->graph);
    an_dataset_destroy(&r->training);
    an_dataset_destroy(&r->evaluation);
}

typedef struct {
    char text[AN_HASH_TEXT];
} hash;

/* All steps, with an evaluation after every `every` of them. */
static hash train(const an_trainer_options *options, double dropout, int64_t every, double *last_loss) {
    run r;
    hash h;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    run_create(&r, options, dropout);
    while (an_trainer_next_step(r.trainer) < an_trainer_steps(r.trainer)) {
        OK(ctx, an_trainer_step(r.trainer, &metrics));
        if (every && metrics.step % every == 0) OK(ctx, an_trainer_evaluate(r.trainer, &evaluation));
    }
    if (last_loss) *last_loss = metrics.loss;
    OK(ctx, an_trainer_weights_hash(r.trainer, h.text));
    run_destroy(&r);
    return h;
}

/* ---- tests ---- */

static void test_epoch_ends_with_a_short_step(void **state) {
    an_trainer_options o = usual_options();
    run r;
    int64_t samples = 0;
    (void)state;
    o.epochs = 1;
    run_create(&r, &o, 0);
    assert_int_equal(an_trainer_steps(r.trainer), 7);
    for (int i = 0; i < 7; i++) {
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        OK(ctx, an_trainer_step(r.trainer, &metrics));
        assert_int_equal(metrics.step, i + 1);
        assert_int_equal(metrics.targets, i < 6 ? 16 : 7);
        samples += metrics.samples;
    }
    assert_int_equal(samples, TRAINING);
    assert_int_equal(an_trainer_step(r.trainer, NULL), AN_ERR_STATE);
    run_destroy(&r);
}

static void test_it_learns(void **state) {
    an_trainer_options o = usual_options();
    an_schedule_options schedule;
    an_schedule_options_init(&schedule, sizeof schedule);
    an_evaluation before, after;
    an_evaluation_init(&before, sizeof before);
    an_evaluation_init(&after, sizeof after);
    run r;
    (void)state;
    schedule.type = AN_SCHEDULE_COSINE;
    schedule.warmup = 5;
    o.schedule = &schedule;
    o.epochs = 40;
    o.rate = 3e-2;
    run_create(&r, &o, 0);
    OK(ctx, an_trainer_evaluate(r.trainer, &before));
    while (an_trainer_next_step(r.trainer) < an_trainer_steps(r.trainer)) OK(ctx, an_trainer_step(r.trainer, NULL));
    OK(ctx, an_trainer_evaluate(r.trainer, &after));
    assert_int_equal(after.samples, EVALUATION);
    assert_int_equal(after.targets, EVALUATION);
    assert_true(after.classifies && !after.measures);
    assert_true(after.loss < before.loss / 4 && after.accuracy > 0.95 && after.top5 == 1);
    assert_true(fabs(after.perplexity - exp(after.loss)) < 1e-12);
    run_destroy(&r);
}

static void test_evaluation_leaves_no_trace(void **state) {
    const an_trainer_options o = usual_options();
    (void)state;
    const hash never = train(&o, 0.2, 0, NULL), always = train(&o, 0.2, 1, NULL), sometimes = train(&o, 0.2, 5, NULL);
    assert_string_equal(never.text, always.text);
    assert_string_equal(never.text, sometimes.text);
}

static void test_loader_threads_change_no_bit(void **state) {
    an_trainer_options o = usual_options();
    (void)state;
    const hash none = train(&o, 0.2, 0, NULL);
    for (int threads = 1; threads <= 4; threads++) {
        o.loader_threads = threads;
        assert_string_equal(none.text, train(&o, 0.2, 0, NULL).text);
    }
}

static void test_threads_change_no_bit(void **state) {
    const an_trainer_options o = usual_options();
    an_context *usual = ctx;
    hash first = {""};
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        an_context_options options;
        an_context_options_init(&options, sizeof options);
        options.threads = threads;
        ctx = NULL;
        assert_int_equal(an_context_create(&ctx, &options), AN_OK);
        const hash h = train(&o, 0.2, 3, NULL);
        if (threads == 1) first = h;
        assert_string_equal(first.text, h.text);
        an_context_destroy(&ctx);
    }
    ctx = usual;
}

/* Seeds, micro-batches that dropout must not notice, leaves. */
static void test_what_changes_a_run_and_what_does_not(void **state) {
    an_trainer_options o = usual_options();
    double loss, other;
    (void)state;
    const hash usual = train(&o, 0.2, 0, &loss);
    o.seed = 12;
    assert_string_not_equal(usual.text, train(&o, 0.2, 0, NULL).text);
    o = usual_options();
    an_batch_options batch = usual_batch;
    o.batch = &batch;
    batch.micro = 3;
    train(&o, 0.2, 0, &other);
    assert_true(fabs(other - loss) < 1e-5); /* the same samples are dropped, added in another order */
    batch.micro = 0;
    batch.leaves = 4;
    train(&o, 0.2, 0, &other);
    assert_true(fabs(other - loss) < 1e-5);
}

/* A label that the model has no class for is found when it is read, and names itself. */
static void test_label_out_of_range_is_refused(void **state) {
    const an_trainer_options o = usual_options();
    run r;
    (void)state;
    classes[5] = CLASSES;
    run_create(&r, &o, 0);
    an_status status = AN_OK;
    while (status == AN_OK && an_trainer_next_step(r.trainer) < 7) status = an_trainer_step(r.trainer, NULL);
    assert_int_not_equal(status, AN_OK);
    assert_non_null(strstr(an_last_error(ctx), "3"));
    print_message("%s\n", an_last_error(ctx));
    classes[5] = 5 * 7 % CLASSES;
    run_destroy(&r);
}

static void test_shapes_that_do_not_fit_are_told(void **state) {
    const an_trainer_options o = usual_options();
    an_mlp_options model = small_mlp_options();
    an_graph *graph = NULL;
    an_trainer *trainer = NULL;
    an_dataset *dataset = make_dataset(0, TRAINING);
    (void)state;
    model.inputs = INPUTS + 1;
    OK(ctx, an_model_mlp(&graph, ctx, &model));
    assert_int_equal(an_trainer_create(&trainer, graph, dataset, NULL, &o), AN_ERR_SHAPE);
    assert_non_null(strstr(an_last_error(ctx), "the model's input 'x'"));
    assert_non_null(strstr(an_last_error(ctx), "'inputs' is f32[4] for each sample"));
    an_graph_destroy(&graph);
    an_dataset_destroy(&dataset);
}

/* L2 is asked for, not given; the trainer tells the groups which optimizer it has. */
static void test_default_weight_decay(void **state) {
    static const double expected[] = {[AN_OPTIMIZER_ADAMW] = 0.01, [AN_OPTIMIZER_ADAM] = 0, [AN_OPTIMIZER_SGD] = 0};
    (void)state;
    for (int type = AN_OPTIMIZER_ADAMW; type <= AN_OPTIMIZER_SGD; type++)
        for (int given = 0; given < 2; given++) {
            const an_optimizer_options optimizer = {DEFAULTS(an_optimizer_options), .type = (an_optimizer_type)type};
            const an_group_options groups = {DEFAULTS(an_group_options), .decay = AN_DECAY_NAMES};
            an_trainer_options o = usual_options();
            an_trainer_info info;
            an_trainer_info_init(&info, sizeof info);
            an_group_info group;
            an_group_info_init(&group, sizeof group);
            run r;
            o.optimizer = &optimizer;
            o.groups = given ? &groups : NULL;
            run_create(&r, &o, 0);
            OK(ctx, an_group_info_get(an_trainer_groups(r.trainer), 0, &group));
            assert_true(group.weight_decay == expected[type]);
            OK(ctx, an_trainer_info_get(r.trainer, &info));
            assert_true(info.rate == o.rate);
            run_destroy(&r);
        }
}

/* ---- whole runs ---- */

typedef struct {
    an_trainer *trainer;
    int64_t before, after, evaluations, stop_at;
    int64_t bests[64], evaluated[64];
    int best_count;
    an_status answer;
    an_run_callbacks callbacks;
} watcher;

static an_status watch_before(void *user, an_trainer *trainer, int64_t step) {
    watcher *w = user;
    assert_ptr_equal(trainer, w->trainer);
    assert_int_equal(step, ++w->before);
    return AN_OK;
}

static an_status watch_after(void *user, an_trainer *trainer) {
    watcher *w = user;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_step_metrics_get(trainer, &metrics));
    assert_int_equal(metrics.step, ++w->after);
    if (metrics.step == w->stop_at) an_trainer_request_stop(w->trainer);
    return w->answer;
}

static an_status watch_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    watcher *w = user;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    OK(ctx, an_evaluation_get(trainer, &evaluation));
    assert_int_equal(step, w->after);
    assert_int_equal(evaluation.samples, EVALUATION);
    w->evaluated[w->evaluations++] = step;
    if (best) w->bests[w->best_count++] = step;
    return AN_OK;
}

static an_run_options watched(watcher *w, run *r) {
    an_run_options o;
    an_run_options_init(&o, sizeof o);
    *w = (watcher){.trainer = r->trainer};
    w->callbacks = (an_run_callbacks){.size = sizeof w->callbacks,
                                      .before_step = watch_before,
                                      .after_step = watch_after,
                                      .after_evaluation = watch_evaluation,
                                      .user = w};
    o.callbacks = &w->callbacks;
    return o;
}

static void test_run_calls_back_in_order(void **state) {
    const an_trainer_options options = usual_options();
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    watcher w;
    run r;
    (void)state;
    run_create(&r, &options, 0);
    an_run_options o = watched(&w, &r);
    o.evaluate_every = 4;
    o.evaluate_at_start = true;
    OK(ctx, an_trainer_run(r.trainer, &o, &outcome));
    assert_int_equal(outcome.end, AN_RUN_DONE);
    assert_int_equal(outcome.steps, 21);
    assert_int_equal(w.after, 21);
    assert_int_equal(w.evaluations, 1 + 5 + 1); /* at the start, after 4 to 20, after the last */
    assert_int_equal(outcome.best_step, w.bests[w.best_count - 1]);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_step_metrics_get(r.trainer, &metrics));
    assert_int_equal(metrics.step, 21);
    run_destroy(&r);
}

/* 103 samples in steps of 40, then of 10: epochs of 3, 11 and 11 steps. */
static void test_run_evaluates_by_epochs(void **state) {
    static const an_accumulate_entry table[] = {{0, 8}, {1, 2}};
    an_trainer_options options = usual_options();
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    watcher w;
    run r;
    (void)state;
    const an_batch_options batch = {.size = sizeof batch, .micro = 5, .table = table, .table_count = 2};
    options.batch = &batch;
    run_create(&r, &options, 0);
    an_run_options o = watched(&w, &r);
    o.evaluate_epochs = -1;
    assert_int_equal(an_trainer_run(r.trainer, &o, &outcome), AN_ERR_ARGUMENT);
    o.evaluate_epochs = 1;
    o.evaluate_every = 4;
    assert_int_equal(an_trainer_run(r.trainer, &o, &outcome), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "set only one of them"));
    o.evaluate_every = 0;
    OK(ctx, an_trainer_run(r.trainer, &o, &outcome));
    assert_int_equal(outcome.steps, 25);
    assert_int_equal(w.evaluations, 3);
    assert_int_equal(w.evaluated[0], 3);
    assert_int_equal(w.evaluated[1], 14);
    assert_int_equal(w.evaluated[2], 25);
    run_destroy(&r);
}

static void test_run_stops_on_request_and_goes_on(void **state) {
    const an_trainer_options options = usual_options();
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    hash h;
    watcher w;
    run r;
    (void)state;
    run_create(&r, &options, 0.2);
    an_run_options o = watched(&w, &r);
    w.stop_at = 9;
    OK(ctx, an_trainer_run(r.trainer, &o, &outcome));
    assert_int_equal(outcome.end, AN_RUN_REQUESTED);
    assert_int_equal(outcome.steps, 9);
    OK(ctx, an_trainer_run(r.trainer, &o, &outcome));
    assert_int_equal(outcome.end, AN_RUN_DONE);
    OK(ctx, an_trainer_weights_hash(r.trainer, h.text));
    assert_string_equal(h.text, train(&options, 0.2, 0, NULL).text);
    run_destroy(&r);
}

static void test_run_stops_early(void **state) {
    an_trainer_options options = usual_options();
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    watcher w;
    run r;
    (void)state;
    options.rate = 1e-30; /* nothing gets better */
    run_create(&r, &options, 0);
    an_run_options o = watched(&w, &r);
    o.evaluate_every = 2;
    o.early_stop = "val_loss";
    o.patience = 3;
    OK(ctx, an_trainer_run(r.trainer, &o, &outcome));
    assert_int_equal(outcome.end, AN_RUN_STOPPED_EARLY);
    assert_int_equal(w.evaluations, 1 + 3); /* the first is the best by itself */
    assert_int_equal(outcome.steps, 8);
    assert_int_equal(outcome.best_step, 2);
    run_destroy(&r);
}

static void test_callback_can_end_a_run(void **state) {
    const an_trainer_options options = usual_options();
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    watcher w;
    run r;
    (void)state;
    run_create(&r, &options, 0);
    const an_run_options o = watched(&w, &r);
    w.answer = AN_ERR_HOOK;
    assert_int_equal(an_trainer_run(r.trainer, &o, &outcome), AN_ERR_HOOK);
    assert_non_null(strstr(an_last_error(ctx), "the callback after_step ended the run at step 1"));
    run_destroy(&r);
}

static void test_unknown_metrics_are_refused_at_the_start(void **state) {
    const an_trainer_options options = usual_options();
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_run_options o;
    an_run_options_init(&o, sizeof o);
    run r;
    (void)state;
    run_create(&r, &options, 0);
    o.best = "val_los";
    assert_int_equal(an_trainer_run(r.trainer, &o, &outcome), AN_ERR_UNKNOWN);
    o.best = "val_r2";
    assert_int_equal(an_trainer_run(r.trainer, &o, &outcome), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "this model cannot compute 'val_r2'"));
    o.best = NULL;
    o.early_stop = "val_loss";
    assert_int_equal(an_trainer_run(r.trainer, &o, &outcome), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "set evaluate_every or evaluate_epochs"));
    assert_int_equal(an_trainer_next_step(r.trainer), 0);
    run_destroy(&r);
}

/* Evaluations that are NaN, because a sample of theirs is, are never the best. */
static void test_nan_is_never_best(void **state) {
    const an_trainer_options options = usual_options();
    const float was = inputs[TRAINING + 3][0];
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    watcher w;
    run r;
    (void)state;
    inputs[TRAINING + 3][0] = NAN;
    run_create(&r, &options, 0);
    an_run_options o = watched(&w, &r);
    o.evaluate_every = 7;
    OK(ctx, an_trainer_run(r.trainer, &o, &outcome));
    an_evaluation last;
    an_evaluation_init(&last, sizeof last);
    OK(ctx, an_evaluation_get(r.trainer, &last));
    assert_true(isnan(last.loss));
    assert_int_equal(w.evaluations, 3);
    assert_int_equal(w.best_count, 0);
    assert_int_equal(outcome.best_step, 0);
    inputs[TRAINING + 3][0] = was;
    run_destroy(&r);
}

/* Against the classes that prediction gives the largest number to, while some are still wrong. */
static void test_accuracy_counts_the_largest(void **state) {
    const an_trainer_options options = usual_options();
    an_predictor_options most;
    an_predictor_options_init(&most, sizeof most);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_predictor *predictor = NULL;
    float y[EVALUATION][CLASSES];
    int right = 0;
    run r;
    (void)state;
    run_create(&r, &options, 0);
    most.most = EVALUATION;
    OK(ctx, an_predictor_create(&predictor, r.trainer, &most));
    OK(ctx, an_predictor_run_f32(predictor, EVALUATION, inputs[TRAINING], y[0]));
    for (int i = 0; i < EVALUATION; i++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++) best = y[i][c] > y[i][best] ? c : best;
        right += best == classes[TRAINING + i];
    }
    OK(ctx, an_trainer_evaluate(r.trainer, &evaluation));
    assert_in_range(right, 1, EVALUATION - 1);
    assert_true(evaluation.accuracy == (double)right / EVALUATION);
    an_predictor_destroy(&predictor);
    run_destroy(&r);
}

/* ---- what is not finite ---- */

/* Steps until one fails; its message must have these words. */
static void expect_nonfinite(run *r, const char *words) {
    an_status status = AN_OK;
    hash before = {""}, after;
    while (status == AN_OK && an_trainer_next_step(r->trainer) < an_trainer_steps(r->trainer)) {
        OK(ctx, an_trainer_weights_hash(r->trainer, before.text));
        status = an_trainer_step(r->trainer, NULL);
    }
    assert_int_equal(status, AN_ERR_NONFINITE);
    print_message("%s\n", an_last_error(ctx));
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    OK(ctx, an_trainer_weights_hash(r->trainer, after.text));
    assert_string_equal(before.text, after.text);
}

static void test_nan_in_a_weight_is_named(void **state) {
    const an_trainer_options o = usual_options();
    const int64_t dims[] = {5, 6};
    float weight[5 * 6];
    an_array array = array_of(weight, AN_DTYPE_F32, 2, dims);
    run r;
    (void)state;
    run_create(&r, &o, 0);
    OK(ctx, an_trainer_step(r.trainer, NULL));
    OK(ctx, an_params_get(an_trainer_params(r.trainer), "hidden.1.weight", AN_PART_WEIGHT, &array));
    weight[17] = NAN;
    OK(ctx, an_params_set(an_trainer_params(r.trainer), "hidden.1.weight", AN_PART_WEIGHT, &array));
    expect_nonfinite(&r, "a weight: 'hidden.1.weight', element 17");
    assert_non_null(strstr(an_last_error(ctx), "\n  1: "));
    run_destroy(&r);
}

static void test_nan_in_a_sample_is_named(void **state) {
    const an_trainer_options o = usual_options();
    const float was = inputs[40][2];
    run r;
    (void)state;
    inputs[40][2] = NAN;
    run_create(&r, &o, 0);
    expect_nonfinite(&r, "input 'x' of sample 40, element 2");
    inputs[40][2] = was;
    run_destroy(&r);
}

/* A norm without epsilon over constant input divides by zero. */
static void test_first_node_that_is_not_finite_is_named(void **state) {
    const an_trainer_options o = usual_options();
    run r;
    (void)state;
    r.training = make_dataset(0, TRAINING);
    r.evaluation = NULL;
    OK(ctx, an_graph_create(&r.graph, ctx, "norm"));
    const an_dim batch = an_symbol_dim(r.graph, "batch");
    an_value x = an_input(r.graph, "x", AN_DTYPE_F32, AN_DIMS(batch, INPUTS));
    an_value targets = an_input(r.graph, "targets", AN_DTYPE_I32, AN_DIMS(batch));
    x = an_scale(r.graph, x, 0); /* constant */
    x = an_layer_norm_layer(r.graph, x, "middle", 0);
    an_graph_set_loss(r.graph, an_cross_entropy(r.graph, an_linear(r.graph, x, "head", CLASSES), targets, NULL),
                      targets);
    OK(ctx, an_trainer_create(&r.trainer, r.graph, r.training, NULL, &o));
    expect_nonfinite(&r, "the first node whose output is not finite is layer_norm at 'middle'");
    run_destroy(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epoch_ends_with_a_short_step),
        cmocka_unit_test(test_it_learns),
        cmocka_unit_test(test_evaluation_leaves_no_trace),
        cmocka_unit_test(test_loader_threads_change_no_bit),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_what_changes_a_run_and_what_does_not),
        cmocka_unit_test(test_label_out_of_range_is_refused),
        cmocka_unit_test(test_shapes_that_do_not_fit_are_told),
        cmocka_unit_test(test_run_calls_back_in_order),
        cmocka_unit_test(test_default_weight_decay),
        cmocka_unit_test(test_run_evaluates_by_epochs),
        cmocka_unit_test(test_run_stops_on_request_and_goes_on),
        cmocka_unit_test(test_run_stops_early),
        cmocka_unit_test(test_callback_can_end_a_run),
        cmocka_unit_test(test_unknown_metrics_are_refused_at_the_start),
        cmocka_unit_test(test_nan_is_never_best),
        cmocka_unit_test(test_accuracy_counts_the_largest),
        cmocka_unit_test(test_nan_in_a_weight_is_named),
        cmocka_unit_test(test_nan_in_a_sample_is_named),
        cmocka_unit_test(test_first_node_that_is_not_finite_is_named),
    };
    make_data();
    return cmocka_run_group_tests(tests, setup, teardown);
}
