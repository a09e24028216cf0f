/* What is told of a run: evaluations of some samples, which metrics, norms of parts. */
#include "anneal/open.h"
#include "open/support.h"

#define SUMS(part) "{type: csv, path: sums.csv, inputs: [a, b], targets: [sum]" part "}"
#define CLASSES "{type: csv, path: sums.csv, inputs: [a, b], targets: [class], classes: on}"
#define REST "run: {steps: 4, seed: 2}\nbatch: {global: 7}\ntrain: {precision: f32}\n"

/* The first 24 of 96 samples are the first quarter. */
static void test_first_samples_only(void **state) {
    an_evaluation some, quarter;
    an_evaluation_init(&some, sizeof some);
    an_evaluation_init(&quarter, sizeof quarter);
    (void)state;
    write_sums();
    an_trainer *trainer =
        open_run("model: {type: mlp}\ndata: {train: " SUMS("") ", eval: " SUMS("") "}\n" REST "eval: {samples: 24}\n");
    OK(ctx, an_trainer_evaluate(trainer, &some));
    an_trainer_destroy(&trainer);
    trainer = open_run("model: {type: mlp}\ndata: {train: " SUMS("") ", eval: " SUMS(", part: 0%..25%") "}\n" REST);
    OK(ctx, an_trainer_evaluate(trainer, &quarter));
    an_trainer_destroy(&trainer);
    assert_int_equal(some.samples, 24);
    assert_true(some.loss == quarter.loss && some.mean_absolute_error == quarter.mean_absolute_error);
    assert_true(some.r2 == quarter.r2 && quarter.samples == 24);
    /* more than there are is all of them */
    trainer = open_run("model: {type: mlp}\ndata: {train: " SUMS("") ", eval: " SUMS("") "}\n" REST
                                                                                         "eval: {samples: 1000}\n");
    OK(ctx, an_trainer_evaluate(trainer, &some));
    assert_int_equal(some.samples, 96);
    an_trainer_destroy(&trainer);
}

static void expect_metrics(an_trainer *trainer, const char *expected) {
    char names[128] = "";
    for (int i = 0; an_trainer_metric(trainer, i); i++) {
        const size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i ? " " : "", an_trainer_metric(trainer, i));
    }
    assert_string_equal(names, expected);
    an_trainer_destroy(&trainer);
}

/* With several targets, R² is around one mean of all: it is for who asks. */
static void test_r2_of_several_targets_is_asked_for(void **state) {
    (void)state;
#define PAIRS "{type: csv, path: pairs.csv, targets: [y, z]}"
#define PAIRS_RUN(more) "model: {type: mlp}\ndata: {train: " PAIRS ", eval: " PAIRS "}\n" REST more
    write_text("pairs.csv", "x,y,z\n1,1000,1\n2,1001,0\n3,1002,1\n4,1003,0\n");
    expect_metrics(open_run(PAIRS_RUN("")), "val_loss val_mae");
    expect_metrics(open_run(PAIRS_RUN("eval: {metrics: [loss, r2]}\n")), "val_loss val_r2");
    expect_metrics(open_run(PAIRS_RUN("eval: {best: val_r2}\n")), "val_loss val_mae");
}

static void test_metrics_fit_the_model(void **state) {
    (void)state;
    write_sums();
    write_text("poem.txt", "a line and a line and one more line, and so it goes on and on, line by line\n");
    expect_metrics(open_run("model: {type: mlp}\ndata: {train: " SUMS("") ", eval: " SUMS("") "}\n" REST),
                   "val_loss val_mae val_r2");
    expect_metrics(open_run("model: {type: mlp}\ndata: {train: " CLASSES ", eval: " CLASSES "}\n" REST),
                   "val_loss val_accuracy");
    expect_metrics(open_run("model: {type: gpt2, layers: 1, heads: 1, width: 8, context: 4}\n"
                            "data: {train: {type: text, path: poem.txt}, eval: {type: text, path: poem.txt}}\n" REST),
                   "val_loss val_perplexity val_accuracy");
    expect_metrics(open_run("model: {type: mlp}\ndata: {train: " SUMS("") "}\n" REST), "");
    expect_metrics(open_run("model: {type: mlp}\ndata: {train: " SUMS("") ", eval: " SUMS(
                       "") "}\n" REST "eval: {metrics: [r2, loss, perplexity]}\n"),
                   "val_loss val_perplexity val_r2");
    expect_metrics(
        open_run("model: {type: mlp}\ndata: {train: " SUMS("") ", eval: " SUMS("") "}\n" REST "eval: {metrics: r2}\n"),
        "val_r2");
    refused("model: {type: mlp}\ndata: {train: " SUMS("") ", eval: " SUMS("") "}\neval: {metrics: [accuracy]}\n",
            AN_ERR_ARGUMENT, "run.yaml:3:17: eval.metrics: this model cannot compute 'val_accuracy'");
}

/* ---- norms ---- */

static void check_norms(const char *kind, int count, const char *first, const char *last) {
    char text[512];
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    const char *name = NULL;
    double norm, sum = 0;
    snprintf(text, sizeof text,
             "model: {type: mlp, hidden: [5, 4]}\ndata: {train: " SUMS(
                 "") "}\n" REST "optimizer: {groups: [{match: hidden.1.bias, freeze: on}]}\nlog: {grad_norms: %s}\n",
             kind);
    an_trainer *trainer = open_run(text);
    assert_int_equal(an_trainer_norm_count(trainer), count);
    if (count) FAILS(ctx, an_trainer_norm(trainer, 0, &name, &norm), AN_ERR_STATE, "after the first step");
    OK(ctx, an_trainer_step(trainer, &metrics));
    for (int i = 0; i < count; i++) {
        OK(ctx, an_trainer_norm(trainer, i, &name, &norm));
        if (i == 0) assert_string_equal(name, first);
        assert_true(norm > 0);
        sum += norm * norm;
    }
    if (count) {
        assert_string_equal(name, last);
        assert_true(fabs(sqrt(sum) - metrics.norm) < 1e-12 * metrics.norm);
    }
    FAILS(ctx, an_trainer_norm(trainer, count, &name, &norm), AN_ERR_ARGUMENT, "does not exist");
    an_trainer_destroy(&trainer);
}

/* Squares of the parts add up to that of the whole, which the step tells. */
static void test_norms_add_up(void **state) {
    (void)state;
    write_sums();
    check_norms("global", 0, "", "");
    check_norms("block", 3, "hidden.0", "output");
    check_norms("parameter", 5, "hidden.0.weight", "output.bias");
}

/* Layers outside of blocks have a norm of their own. */
static void test_norms_of_a_language_model(void **state) {
    const char *names[8] = {NULL};
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    double norm;
    (void)state;
    write_text("poem.txt", "a line and a line and one more line, and so it goes on and on, line by line\n");
    an_trainer *trainer = open_run("model: {type: gpt2, layers: 2, heads: 1, width: 8, context: 4}\n"
                                   "data: {train: {type: text, path: poem.txt}}\nlog: {grad_norms: block}\n" REST);
    OK(ctx, an_trainer_step(trainer, &metrics));
    const int count = an_trainer_norm_count(trainer);
    assert_int_equal(count, 5);
    for (int i = 0; i < count; i++) OK(ctx, an_trainer_norm(trainer, i, &names[i], &norm));
    assert_string_equal(names[2], "h.0");
    assert_string_equal(names[4], "ln_f");
    an_trainer_destroy(&trainer);
}

/* A class that is in the file and not in the part that is trained on; one label that makes many classes. */
static void test_classes_that_training_never_sees(void **state) {
    static const struct {
        const char *text, *part, *warning;
    } cases[] = {
        {"a,k\n1,0\n2,0\n3,1\n4,1\n5,2\n6,2\n", "34%..100%",
         "run.yaml:2:15: data.train has no samples of class 0, of 3 classes; if the file is sorted by class, shuffle "
         "its lines before splitting it"},
        {"a,k\n1,0\n2,1\n3,500\n", "0%..100%",
         "run.yaml:2:15: the largest class is 500, so there are 501 classes, but data.train has samples of only 3; "
         "check the labels, and number classes from 0 without gaps"},
        {"a,k\n1,0\n2,1\n3,2\n", "0%..100%", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_config_options options;
        an_config_options_init(&options, sizeof options);
        an_config *config = NULL;
        an_trainer *trainer = NULL;
        char text[256];
        write_text("classes.csv", cases[i].text);
        snprintf(text, sizeof text,
                 "model: {type: mlp}\ndata: {train: {type: csv, path: classes.csv, classes: on, part: %s}}\n"
                 "run: {steps: 1}\n",
                 cases[i].part);
        options.file = "run.yaml";
        options.text = text;
        options.length = strlen(text);
        OK(ctx, an_config_create(&config, ctx, &options));
        OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
        assert_int_equal(an_config_warning_count(config), cases[i].warning != NULL);
        if (cases[i].warning) assert_string_equal(an_config_warning(config, 0), cases[i].warning);
        an_trainer_destroy(&trainer);
        an_config_destroy(&config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_that_training_never_sees),
        cmocka_unit_test(test_first_samples_only),
        cmocka_unit_test(test_metrics_fit_the_model),
        cmocka_unit_test(test_r2_of_several_targets_is_asked_for),
        cmocka_unit_test(test_norms_add_up),
        cmocka_unit_test(test_norms_of_a_language_model),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
