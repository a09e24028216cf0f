/* Metrics that a program adds: where they are reported, that best and early stop can use them, that they belong to the
 * state of a run, and what is refused. */
#include <fenv.h>
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "open/support.h"

#define DATA                                                                                      \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], part: 0%..70%},\n" \
    "       eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], part: 70%..100%}, threads: 0}\n"
#define MLP "model: {type: mlp, hidden: [5]}\n" DATA
#define RUN(folder, rest) "run: {dir: " folder ", steps: 12, seed: 4}\noptimizer: {lr: 1e-2}\n" rest MLP

/* ---- metrics ---- */

/* What they saw, and what they are to say. */
typedef struct {
    int calls;
    int64_t steps[64];
    const double *values; /* by call; NULL: the step itself */
    int fail_at;          /* the call that fails, from 1; 0: none */
    int rounding;         /* that the function found */
} script;

static an_status follow(void *user, an_trainer *trainer, double *value) {
    script *s = user;
    s->steps[s->calls] = an_trainer_next_step(trainer);
    *value = s->values ? s->values[s->calls] : (double)an_trainer_next_step(trainer);
    s->rounding = fegetround();
    return ++s->calls == s->fail_at ? AN_ERR_FILE : AN_OK;
}

static void add(const char *name, an_metric_better better, script *s) {
    const an_metric_options options = {
        .size = sizeof options, .name = name, .better = better, .measure = follow, .user = s};
    OK(ctx, an_context_add_metric(ctx, &options));
}

/* The largest of the model's outputs for a few samples, by a predictor: a metric as a program would have it. */
static an_status measure_largest(void *user, an_trainer *trainer, double *value) {
    static const float inputs[] = {0, 0, 0.5F, 0.5F, 1, 0, 0, 1};
    float outputs[4];
    an_predictor *predictor = NULL;
    an_predictor_options options = {DEFAULTS(an_predictor_options), .max_samples = 4};
    (void)user;
    an_status status = an_predictor_create(&predictor, trainer, &options);
    if (status == AN_OK) status = an_predictor_run_f32(predictor, 4, inputs, outputs);
    an_predictor_destroy(&predictor);
    *value = -1e30;
    for (int i = 0; status == AN_OK && i < 4; i++) *value = fmax(*value, (double)outputs[i]);
    return status;
}

static void remove_folder(const char *name) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", name);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static const char *read_text(const char *path) {
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be read", path);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void has_words(const char *path, const char *words) {
    const char *text = read_text(path);
    if (!strstr(text, words)) fail_msg("'%s' is not in %s: %s", words, path, text);
}

/* ---- whole runs ---- */

static an_status log_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    (void)best;
    OK(ctx, an_trainer_evaluation(trainer, &evaluation));
    return an_folder_evaluation(*(an_folder **)user, step, &evaluation);
}

static an_status stop_at_six(void *user, an_trainer *trainer) {
    (void)user;
    return an_trainer_next_step(trainer) == 6 ? AN_ERR_STATE : AN_OK;
}

typedef struct {
    an_status status;
    char hash[AN_HASH_TEXT];
    an_run_outcome outcome;
} ended;

/* Opens and runs a config with its folder; `breaks`: it dies in step 6. */
static ended run_config(const char *text, bool breaks) {
    ended e = {.outcome = {.size = sizeof e.outcome}};
    an_config_options options = {.size = sizeof options, .file = "run.yaml"};
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_folder *folder = NULL;
    write_sums();
    write_text("run.yaml", text);
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
    OK(ctx, an_folder_create(&folder, trainer, config, NULL));
    OK(ctx, an_trainer_run_options(trainer, &run));
    run.callbacks = &(const an_run_callbacks){.size = sizeof(an_run_callbacks),
                                              .after_step = breaks ? stop_at_six : NULL,
                                              .after_evaluation = log_evaluation,
                                              .user = &folder};
    e.status = an_trainer_run(trainer, &run, &e.outcome);
    if (e.status == AN_OK) {
        OK(ctx, an_folder_finish(folder, &e.outcome, NULL));
    } else if (!breaks) {
        char message[1024];
        snprintf(message, sizeof message, "%s", an_last_error(ctx));
        OK(ctx, an_folder_finish(folder, NULL, message));
    }
    OK(ctx, an_trainer_state_hash(trainer, e.hash));
    an_folder_destroy(&folder);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    return e;
}

static ended run_fresh(const char *folder, const char *text) {
    remove_folder(folder);
    return run_config(text, false);
}

/* ---- where it is reported ---- */

static void test_where_it_is_reported(void **state) {
    static const double values[] = {0.25, 3.5, 1e300, -2};
    script s = {.values = values};
    (void)state;
    add("mine", AN_METRIC_BETTER_LOWER, &s);
    const ended e = run_fresh("reported", RUN("reported", "eval: {every: 3 steps}\nsave: {every: 3 steps}\n"));
    assert_int_equal(e.status, AN_OK);
    assert_int_equal(s.calls, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(s.steps[i], 3 * (i + 1));
    has_words("reported/metrics.jsonl", "\"val_mine\": 0.25}");
    has_words("reported/metrics.jsonl", "\"val_mine\": 1e+300}");
    has_words("reported/summary.json", "\"val_mine\": -2}");
    has_words("reported/checkpoints/step-00000012-1/metrics.json", "\"val_mine\": -2}");
    has_words("reported/checkpoints/step-00000012-1/manifest.json", "\"own_metrics\": {\"val_mine\": -2}");
    assert_int_equal(system("cat reported/events.out.tfevents.* | grep -a -q val_mine"), 0); /* NOLINT(cert-env33-c) */
}

/* eval.metrics chooses what is reported; what is measured, and so the state, stays the same. */
static void test_the_choice_of_metrics(void **state) {
    script s = {0}, t = {0};
    (void)state;
    add("mine", AN_METRIC_BETTER_LOWER, &s);
    add("other", AN_METRIC_BETTER_LOWER, &t);
    const ended all = run_fresh("chosen", RUN("chosen", ""));
    s.calls = t.calls = 0;
    const ended some = run_fresh("chosen", RUN("chosen", "eval: {metrics: [loss, other]}\n"));
    assert_string_equal(all.hash, some.hash);
    assert_int_equal(s.calls, 1);
    has_words("chosen/metrics.jsonl", "\"val_other\": 12}");
    assert_null(strstr(read_text("chosen/metrics.jsonl"), "val_mine"));
    assert_null(strstr(read_text("chosen/metrics.jsonl"), "val_r2"));
    refused(RUN("chosen", "eval: {metrics: [loss, othr]}\n"), AN_ERR_PARSE,
            "or of this program mine, other; did you mean 'other'?");
}

/* ---- the state ---- */

/* A run without metrics of its own has the hash that it always had; with one, its values are part of the hash. */
static void test_the_hash(void **state) {
    static const double ones[] = {1, 1, 1, 1}, twos[] = {1, 1, 1, 2};
    script s = {.values = ones};
    (void)state;
    const ended without = run_fresh("hashed", RUN("hashed", "eval: {every: 3 steps}\n"));
    add("mine", AN_METRIC_BETTER_LOWER, &s);
    const ended one = run_fresh("hashed", RUN("hashed", "eval: {every: 3 steps}\n"));
    s.calls = 0;
    const ended again = run_fresh("hashed", RUN("hashed", "eval: {every: 3 steps}\n"));
    s = (script){.values = twos};
    const ended two = run_fresh("hashed", RUN("hashed", "eval: {every: 3 steps}\n"));
    assert_string_not_equal(without.hash, one.hash);
    assert_string_equal(one.hash, again.hash);
    assert_string_not_equal(one.hash, two.hash);
}

/* A run that dies and resumes ends as one that did not, with the best and the patience of a metric of its own. */
static void test_a_run_resumes(void **state) {
    static const char text[] =
        RUN("resumed", "eval: {every: 2 steps, best: val_largest, early_stop: {metric: largest, patience: 9}}\n"
                       "save: {every: 2 steps}\n");
    const an_metric_options largest = {
        .size = sizeof largest, .name = "largest", .better = AN_METRIC_BETTER_HIGHER, .measure = measure_largest};
    (void)state;
    OK(ctx, an_context_add_metric(ctx, &largest));
    const ended whole = run_fresh("resumed", text);
    assert_int_equal(whole.status, AN_OK);
    remove_folder("resumed");
    assert_int_equal(run_config(text, true).status, AN_ERR_STATE);
    const ended resumed = run_config(text, false);
    assert_int_equal(resumed.status, AN_OK);
    assert_string_equal(resumed.hash, whole.hash);
    assert_int_equal(resumed.outcome.best_step, whole.outcome.best_step);
    assert_true(resumed.outcome.best_value == whole.outcome.best_value);
    /* Its last evaluation is in the checkpoint: a run that has nothing left to do still reports it. */
    const ended done = run_config(text, false);
    assert_string_equal(done.hash, whole.hash);
    has_words("resumed/summary.json", "\"val_largest\": ");
}

/* A program that has other metrics than before is told. */
static void test_other_metrics_are_told(void **state) {
    static const char text[] = RUN("told", "eval: {every: 3 steps}\nsave: {every: 3 steps}\n");
    script s = {0};
    (void)state;
    add("mine", AN_METRIC_BETTER_HIGHER, &s);
    remove_folder("told");
    assert_int_equal(run_config(text, true).status, AN_ERR_STATE);
    an_trainer *trainer = open_run(text);
    assert_string_equal(an_trainer_notes(trainer), "");
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
    assert_int_equal(context_with_ledger(&ctx, &counted, 2), AN_OK);
    trainer = open_run(text);
    assert_non_null(
        strstr(an_trainer_notes(trainer), "the program's own metrics were val_mine, and now are none: state_hash"));
    an_trainer_destroy(&trainer);
    add("other", AN_METRIC_BETTER_HIGHER, &s);
    trainer = open_run(text);
    assert_non_null(strstr(an_trainer_notes(trainer), "were val_mine, and now are val_other: state_hash"));
    an_trainer_destroy(&trainer);
}

/* ---- best and early stop ---- */

static void test_the_best(void **state) {
    static const double values[] = {2, 5, NAN, 4};
    script s = {.values = values};
    (void)state;
    add("mine", AN_METRIC_BETTER_HIGHER, &s);
    const ended more = run_fresh("best", RUN("best", "eval: {every: 3 steps, best: val_mine}\n"));
    assert_int_equal(more.outcome.best_step, 6);
    assert_true(more.outcome.best_value == 5);
    has_words("best/metrics.jsonl", "\"val_mine\": null");
    s.calls = 0;
    assert_int_equal(run_fresh("best", RUN("best", "eval: {every: 3 steps, best: mine}\n")).outcome.best_step, 6);
    s.calls = 0;
    assert_int_equal(run_fresh("best", RUN("best", "eval: {every: 3 steps, best: {metric: val_mine, mode: min}}\n"))
                         .outcome.best_step,
                     3);
}

static void test_less_is_better(void **state) {
    static const double values[] = {2, 5, NAN, 1};
    script s = {.values = values};
    (void)state;
    add("mine", AN_METRIC_BETTER_AUTO, &s);
    assert_int_equal(run_fresh("less", RUN("less", "eval: {every: 3 steps, best: val_mine}\n")).outcome.best_step, 12);
}

static void test_early_stop(void **state) {
    static const double values[] = {1, 3, 2, NAN, 9};
    script s = {.values = values};
    (void)state;
    add("mine", AN_METRIC_BETTER_HIGHER, &s);
    const ended e =
        run_fresh("early", RUN("early", "eval: {every: 2 steps, early_stop: {metric: val_mine, patience: 2}}\n"));
    assert_int_equal(e.status, AN_OK);
    assert_int_equal(e.outcome.end, AN_RUN_STOPPED_EARLY);
    assert_int_equal(e.outcome.steps, 8);
    has_words("early/outcome.json", "\"stopped early\"");
}

/* ---- what is refused ---- */

static void test_unknown_metrics(void **state) {
    script s = {0};
    (void)state;
    write_sums();
    refused(RUN("unknown", "eval: {best: val_mine}\n"), AN_ERR_PARSE,
            "eval.best.metric is 'val_mine'; it takes val_loss, ");
    add("mine", AN_METRIC_BETTER_HIGHER, &s);
    refused(RUN("unknown", "eval: {best: val_min}\n"), AN_ERR_PARSE, "or of this program val_mine");
    refused(RUN("unknown", "eval: {early_stop: val_min}\n"), AN_ERR_PARSE, "or of this program val_mine");
    refused(RUN("unknown", "eval: {metrics: [loss], best: val_mine}\n"), AN_ERR_ARGUMENT,
            "eval.metrics does not include mine");
    an_trainer *trainer = open_run(RUN("unknown", ""));
    an_run_options run = {DEFAULTS(an_run_options), .best = "val_mien"};
    assert_int_equal(an_trainer_run(trainer, &run, NULL), AN_ERR_UNKNOWN);
    assert_non_null(strstr(
        an_last_error(ctx),
        "there is no metric 'val_mien'; the metrics are val_loss, val_perplexity, val_accuracy, val_top5, "
        "val_mae, val_r2, val_precision, val_recall, val_f1, val_auc, val_margin, val_mine; did you mean 'val_mine'?"));
    run = (an_run_options){DEFAULTS(an_run_options), .early_stop = "mine", .evaluate_every = 1};
    assert_int_equal(an_trainer_set_run_options(trainer, &run), AN_ERR_UNKNOWN);
    OK(ctx, an_trainer_check_metric(trainer, "val_mine"));
    an_trainer_destroy(&trainer);
}

static void refuses_metric(an_metric_options options, const char *words) {
    assert_int_equal(an_context_add_metric(ctx, &options), AN_ERR_ARGUMENT);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

static void test_metrics_that_are_refused(void **state) {
    static const char *const odd[] = {
        NULL, "", "F1", "f-1", "f 1", "val.f1", "1f", "f\"1", "a23456789012345678901234567890bc"};
    static const char *const taken[] = {"loss", "perplexity", "accuracy", "top5", "mae", "r2", "auto", "off", "val_x"};
    script s = {0};
    const an_metric_options good = {.size = sizeof good, .name = "mine", .measure = follow, .user = &s};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        an_metric_options o = good;
        o.name = odd[i];
        refuses_metric(o, "a metric cannot be called '");
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        an_metric_options o = good;
        o.name = taken[i];
        refuses_metric(o, "which has a meaning already");
    }
    OK(ctx, an_context_add_metric(ctx, &good));
    refuses_metric(good, "there already is a metric 'mine'");
    an_metric_options o = good;
    o.name = "other";
    o.measure = NULL;
    refuses_metric(o, "metric 'other' needs a function");
    o.measure = follow;
    o.better = (an_metric_better)3;
    refuses_metric(o, "is 3, which is no value of an_metric_better");
    o.better = AN_METRIC_BETTER_LOWER;
    o.size = 0;
    refuses_metric(o, "an_metric_options has size 0");
    o.size = sizeof o;
    for (int i = 1; i < 16; i++) {
        char name[32];
        snprintf(name, sizeof name, "metric_%d", i);
        o.name = name;
        OK(ctx, an_context_add_metric(ctx, &o));
    }
    o.name = "last";
    refuses_metric(o, "is one too many: a context has at most 16");
    const ended all = run_fresh("many", RUN("many", "eval: {every: 6 steps}\nsave: {every: 6 steps}\n"));
    assert_int_equal(all.status, AN_OK);
    assert_int_equal(s.calls, 2 * 16);
}

/* ---- a function that fails, or does what it must not ---- */

static void test_a_function_that_fails(void **state) {
    script s = {.fail_at = 2};
    (void)state;
    add("mine", AN_METRIC_BETTER_HIGHER, &s);
    const ended e = run_fresh("failed", RUN("failed", "eval: {every: 3 steps}\n"));
    assert_int_equal(e.status, AN_ERR_FILE);
    assert_int_equal(e.outcome.steps, 6);
    has_words("failed/outcome.json", "\"end\": \"failed\"");
    has_words("failed/outcome.json", "the program's metric 'val_mine' failed after step 6 with AN_ERR_FILE");
}

static an_status meddle(void *user, an_trainer *trainer, double *value) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    int *refusals = user;
    *refusals += an_trainer_step(trainer, NULL) == AN_ERR_ORDER;
    *refusals += an_trainer_evaluate(trainer, &evaluation) == AN_ERR_ORDER;
    *refusals += an_trainer_save(trainer, 3) == AN_ERR_ORDER;
    *refusals += an_trainer_run(trainer, NULL, NULL) == AN_ERR_ORDER;
    *value = 1;
    return AN_OK;
}

static void test_it_cannot_change_the_run(void **state) {
    int refusals = 0;
    const an_metric_options options = {.size = sizeof options, .name = "mine", .measure = meddle, .user = &refusals};
    (void)state;
    OK(ctx, an_context_add_metric(ctx, &options));
    assert_int_equal(run_fresh("meddled", RUN("meddled", "")).status, AN_OK);
    assert_int_equal(refusals, 4);
}

/* By calls: a value is asked of the trainer, the function has the host's rounding, and later metrics are for later
 * trainers. */
static void test_by_calls(void **state) {
    script s = {0}, late = {0};
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    double value = 0;
    (void)state;
    write_sums();
    add("mine", AN_METRIC_BETTER_HIGHER, &s);
    remove_folder("calls");
    an_trainer *trainer = open_run(RUN("calls", ""));
    add("late", AN_METRIC_BETTER_HIGHER, &late);
    assert_false(an_trainer_metric_value(trainer, "val_mine", &value)); /* there was no evaluation yet */
    OK(ctx, an_trainer_step(trainer, NULL));
    assert_int_equal(fesetround(FE_UPWARD), 0);
    OK(ctx, an_trainer_evaluate(trainer, &evaluation));
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_int_equal(s.rounding, FE_UPWARD);
    assert_true(an_trainer_metric_value(trainer, "val_mine", &value) && value == 1);
    assert_true(an_trainer_metric_value(trainer, "val_loss", &value) && value == evaluation.loss);
    assert_false(an_trainer_metric_value(trainer, "val_late", &value));
    assert_string_equal(an_trainer_metric(trainer, 3), "val_mine");
    assert_null(an_trainer_metric(trainer, 4));
    assert_int_equal(late.calls, 0);
    an_trainer_destroy(&trainer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_where_it_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_choice_of_metrics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_run_resumes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_metrics_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_best, setup, teardown),
        cmocka_unit_test_setup_teardown(test_less_is_better, setup, teardown),
        cmocka_unit_test_setup_teardown(test_early_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_metrics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metrics_that_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_function_that_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_cannot_change_the_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_by_calls, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
