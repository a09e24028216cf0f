/* Whole runs of a trainer: when it evaluates and calls back, why it ends, what is best. */
#include "anneal/predict.h"
#include "anneal/run.h"
#include "train/trainer_support.h"

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
    OK(ctx, an_trainer_step_metrics(trainer, &metrics));
    assert_int_equal(metrics.step, ++w->after);
    if (metrics.step == w->stop_at) an_trainer_request_stop(w->trainer);
    return w->answer;
}

static an_status watch_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    watcher *w = user;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    OK(ctx, an_trainer_evaluation(trainer, &evaluation));
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
    OK(ctx, an_trainer_step_metrics(r.trainer, &metrics));
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
    OK(ctx, an_trainer_evaluation(r.trainer, &last));
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
    an_predictor_options maximum;
    an_predictor_options_init(&maximum, sizeof maximum);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_predictor *predictor = NULL;
    float y[EVALUATION][CLASSES];
    int right = 0;
    run r;
    (void)state;
    run_create(&r, &options, 0);
    maximum.max_samples = EVALUATION;
    OK(ctx, an_predictor_create(&predictor, r.trainer, &maximum));
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_calls_back_in_order),
        cmocka_unit_test(test_run_evaluates_by_epochs),
        cmocka_unit_test(test_run_stops_on_request_and_goes_on),
        cmocka_unit_test(test_run_stops_early),
        cmocka_unit_test(test_callback_can_end_a_run),
        cmocka_unit_test(test_unknown_metrics_are_refused_at_the_start),
        cmocka_unit_test(test_nan_is_never_best),
        cmocka_unit_test(test_accuracy_counts_the_largest),
    };
    make_data();
    return cmocka_run_group_tests(tests, setup, teardown);
}
