/* The trainer: epochs and leftovers, evaluation that leaves no trace, bits that depend on nothing but the run. */
#include "train/trainer_support.h"

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
            OK(ctx, an_groups_get(an_trainer_groups(r.trainer), 0, &group));
            assert_true(group.weight_decay == expected[type]);
            OK(ctx, an_trainer_info_get(r.trainer, &info));
            assert_true(info.rate == o.rate);
            run_destroy(&r);
        }
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
        cmocka_unit_test(test_default_weight_decay),
    };
    make_data();
    return cmocka_run_group_tests(tests, setup, teardown);
}
