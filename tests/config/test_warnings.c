/* What a config is warned of: values that are hardly meant, and old names. */
#include "config/config.h"
#include "config/support.h"

#define BOTH                                                             \
    "model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}\n" \
    "data: {train: {type: text, path: a.txt}}\n"

static void test_what_is_hardly_meant_warns(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {BOTH "run: {steps: 50}\nschedule: {warmup: 100 steps}\n",
         "folder/run.yaml:4:20: schedule.warmup.steps is 100 steps, which is longer than the run of 50"},
        {BOTH "run: {epochs: 2}\nsave: {every: 3 epochs}\n",
         "folder/run.yaml:4:15: save.every is 3 epochs, which is longer than the run of 2"},
        {BOTH "run: {steps: 5}\nschedule: {type: sequence, parts: [constant, linear], milestones: [10]}\n",
         "folder/run.yaml:4:68: the milestone 10 is after the end of the run of 5"},
        {BOTH "optimizer: {layer_decay: 0.3}\n",
         "folder/run.yaml:3:13: optimizer.layer_decay is 0.3; 0.85 to 0.95 is usual"},
        {BOTH "optimizer: {type: sgd}\nschedule: {type: one_cycle}\n",
         "folder/run.yaml:4:18: one_cycle changes the momentum of sgd, but optimizer.momentum is 0 and stays 0; set "
         "optimizer.momentum, for example to 0.9, or set schedule.momentum to off"},
        {BOTH "optimizer: {type: sgd}\nschedule: {type: sequence, milestones: [3], parts: [constant, one_cycle]}\n",
         "folder/run.yaml:4:63: one_cycle changes the momentum of sgd, but optimizer.momentum is 0 and stays 0; set "
         "optimizer.momentum, for example to 0.9, or set schedule.momentum to off"},
        {BOTH "batch: {global: 4, micro: 8}\n",
         "folder/run.yaml:3:20: batch.micro is 8, but a step has 4 samples, so every step is a single micro-batch"},
        {"model: {type: mlp, batch_norm: on}\ndata: {train: stream}\nbatch: {micro: 4}\n",
         "folder/run.yaml:3:9: batch norm over micro-batches of 4 samples is noisy; 16 or more samples are usual"},
        {"model: {type: gpt2}\ndata: {train: {type: tokens, path: a, border_targets: off}}\n",
         "folder/run.yaml:2:39: data.train.border_targets has no effect while data.train.documents is join; set "
         "documents to apart"},
        {"model: {type: mlp}\ndata: {train: {type: jsonl, path: a}, missing: mean}\n",
         "folder/run.yaml:2:48: data.missing.method has no effect: only tables (csv) have missing cells"},
        {"model: {type: mlp}\ndata: {train: {type: csv, path: a}, missing: {method: mean, value: 3}}\n",
         "folder/run.yaml:2:61: data.missing.value has no effect: data.missing.method is not constant"},
        {"model: {type: mlp}\ndata: {train: {type: csv, path: a}, normalize: {fit: first 50 samples}}\n",
         "folder/run.yaml:2:49: data.normalize.fit has no effect: data.normalize.inputs and data.normalize.targets are "
         "off"},
        {BOTH "schedule: {warmup: {start_factor: 0.1}}\n",
         "folder/run.yaml:3:21: schedule.warmup.start_factor has no effect: the warm-up has no steps"},
        {BOTH "train: {precision: bf16, matmul_precision: medium}\n",
         "folder/run.yaml:3:26: train.matmul_precision affects only f32 and has no effect with precision bf16"},
    };
    an_context *ctx = make_context();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_config *c = config_of(ctx, cases[i][0]);
        assert_int_equal(an_config_warning_count(c), 1);
        assert_string_equal(an_config_warning(c, 0), cases[i][1]);
        assert_string_equal(an_config_warning(c, 1), "");
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

static void test_what_has_an_effect_is_not_warned_of(void **state) {
    (void)state;
    static const char *const cases[] = {
        "model: {type: mlp}\ndata: {train: {type: csv, path: a}, missing: {method: constant, value: 3}}\n",
        "model: {type: mlp}\ndata: {missing: mean, mixtures: [{type: csv, path: a}, {type: csv, path: b}]}\n",
        "model: {type: mlp}\ndata: {train: {type: jsonl, path: a}, missing: {method: error, value: 0}}\n",
        "model: {type: mlp}\ndata: {train: {type: csv, path: a}, normalize: {targets: range, fit: first 50 samples}}\n",
        (BOTH "schedule: {warmup: {steps: 10%, start_factor: 0.1}}\n"),
    };
    an_context *ctx = make_context();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_config *c = config_of(ctx, cases[i]);
        if (an_config_warning_count(c) != 0) fail_msg("%s", an_config_warning(c, 0));
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

static void test_one_cycle_has_a_momentum_to_move(void **state) {
    (void)state;
    static const char *const cases[] = {
        BOTH "optimizer: {type: sgd, momentum: 0.9}\nschedule: {type: one_cycle}\n",
        BOTH "optimizer: {type: sgd}\nschedule: {type: one_cycle, momentum: off}\n",
        BOTH "schedule: {type: one_cycle}\n",
    };
    an_context *ctx = make_context();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_config *c = config_of(ctx, cases[i]);
        assert_int_equal(an_config_warning_count(c), 0);
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

static void test_old_names_are_read_with_a_note(void **state) {
    (void)state;
    static const an_rename renames[] = {{"optimizer.rate", "lr", "0.2"}, {NULL, NULL, NULL}};
    static const char text[] = BOTH "optimizer: {rate: 2e-3}\n", both[] = BOTH "optimizer: {rate: 2e-3, lr: 1}\n";
    an_context *ctx = make_context();
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_config *c = NULL;
    options.text = text;
    options.length = sizeof text - 1;
    OK(ctx, an_config_create_renamed(&c, ctx, &options, renames));
    ASSERT_STRING(ctx, c, "optimizer.lr", "2e-3");
    assert_int_equal(an_config_warning_count(c), 1);
    assert_string_equal(an_config_warning(c, 0),
                        "config:3:13: 'optimizer.rate' is deprecated: it is called 'lr' since 0.2");
    OK(ctx, an_config_set(c, "optimizer.rate=5"));
    ASSERT_STRING(ctx, c, "optimizer.lr", "5");
    assert_int_equal(an_config_warning_count(c), 1);
    an_config_destroy(&c);
    options.text = both;
    options.length = sizeof both - 1;
    FAILS(ctx, an_config_create_renamed(&c, ctx, &options, renames), AN_ERR_ARGUMENT,
          "config:3:13: 'optimizer.rate' is the old name of 'lr', which is also set; remove the old one");
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_hardly_meant_warns),
        cmocka_unit_test(test_what_has_an_effect_is_not_warned_of),
        cmocka_unit_test(test_one_cycle_has_a_momentum_to_move),
        cmocka_unit_test(test_old_names_are_read_with_a_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
