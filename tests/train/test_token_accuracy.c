/* Accuracy of models that do not store their logits: the count of the program is that of logits which are stored, fused
 * or not, and it is a part of the chain of hashes in runs that ask for it. */
#include <math.h>

#include "anneal/metric.h"
#include "anneal/run.h"
#include "train/evaluation/metrics.h"
#include "train/trainer.h"

#include "train/array_trainer.h"

enum { SAMPLES = 150, TOKENS = 5, WORDS = 37, WIDTH = 8 }; /* 750 targets: more than a chunk of the fused loss */

static int32_t tokens[SAMPLES][TOKENS], targets[SAMPLES][TOKENS];

typedef struct {
    bool stored; /* logits are an output, and compared by the host */
    bool unfused;
    an_dtype dtype, precision;
    double table, head; /* all weights, where it is constant */
    bool constant;
    unsigned details;
} setting;

static an_graph *make_graph(const setting *s) {
    an_graph *g = NULL;
    const an_dtype dtype = s->dtype ? s->dtype : AN_DTYPE_F32;
    const an_initializer how = s->constant ? AN_INITIALIZER_CONSTANT : AN_INITIALIZER_NORMAL;
    OK(ctx, an_graph_create(&g, ctx, "words"));
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value x = an_input(g, "tokens", AN_DTYPE_I32, AN_DIMS(batch, TOKENS)),
                   y = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(batch, TOKENS)),
                   table = an_param(g, "table", dtype, how, s->constant ? s->table : 1, AN_DIMS(WORDS, WIDTH)),
                   head = an_param(g, "head", dtype, how, s->constant ? s->head : 1, AN_DIMS(WORDS, WIDTH)),
                   logits = an_matmul(g, an_embedding(g, x, table), head, false, true);
    if (s->stored) an_graph_set_output(g, logits, "logits");
    an_graph_set_loss(g, an_cross_entropy(g, logits, y, NULL), y);
    OK(ctx, an_graph_verify(g));
    return g;
}

/* Every seventh target is masked. */
static array_trainer make(const setting *s) {
    static const an_batch_options batch = {.size = sizeof batch, .global = SAMPLES};
    const int64_t dims[] = {SAMPLES, TOKENS};
    an_trainer_options options = few_steps(4, &batch);
    for (int i = 0; i < SAMPLES * TOKENS; i++) {
        tokens[i / TOKENS][i % TOKENS] = i * i % WORDS;
        targets[i / TOKENS][i % TOKENS] = i % 7 ? (i * i * 2 + i % 2) % WORDS : AN_TARGET_IGNORED;
    }
    options.fused = !s->unfused;
    options.precision = s->precision;
    options.details = s->details;
    options.rate = 0.1;
    return array_trainer_create(make_graph(s), array_of(tokens, AN_DTYPE_I32, 2, dims),
                                array_of(targets, AN_DTYPE_I32, 2, dims), &options);
}

static an_evaluation evaluate(setting s, int steps) {
    array_trainer a = make(&s);
    for (int i = 0; i < steps; i++) array_trainer_step(&a);
    const an_evaluation e = array_trainer_evaluate(&a);
    array_trainer_destroy(&a);
    assert_true(e.classifies == s.stored && e.counts_right == !s.stored);
    return e;
}

static void test_count_is_that_of_stored_logits(void **state) {
    (void)state;
    static const setting kinds[] = {{0}, {.dtype = AN_DTYPE_F64}, {.precision = AN_DTYPE_BF16}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int steps = 0; steps < 4; steps += 3) {
            setting stored = kinds[k], unfused = kinds[k];
            stored.stored = unfused.unfused = true;
            const an_evaluation a = evaluate(kinds[k], steps), b = evaluate(stored, steps),
                                c = evaluate(unfused, steps);
            assert_true(a.loss == b.loss && a.loss == c.loss);
            if (a.accuracy != b.accuracy || a.accuracy != c.accuracy)
                fail_msg("kind %zu: accuracy %.17g, with stored logits %.17g, unfused %.17g", k, a.accuracy, b.accuracy,
                         c.accuracy);
            assert_true((steps == 0 || a.accuracy > 0.1) && a.accuracy < 1);
        }
}

/* All logits are equal: the first class is predicted. */
static void test_the_first_of_equal_logits_is_the_largest(void **state) {
    (void)state;
    int64_t first = 0;
    const setting equal = {.constant = true, .table = 1, .head = 0.5};
    setting stored = equal, unfused = equal;
    stored.stored = unfused.unfused = true;
    const an_evaluation e = evaluate(equal, 0);
    for (int i = 0; i < SAMPLES * TOKENS; i++) first += targets[i / TOKENS][i % TOKENS] == 0;
    assert_true(first > 0 && e.accuracy == (double)first / (double)e.targets);
    assert_true(evaluate(stored, 0).accuracy == e.accuracy && evaluate(unfused, 0).accuracy == e.accuracy);
}

static void test_nothing_is_right_if_logits_are_no_numbers(void **state) {
    (void)state;
    const setting none = {.constant = true, .table = INFINITY, .head = 0};
    setting stored = none;
    stored.stored = true;
    assert_true(isnan(evaluate(none, 0).loss));
    assert_true(evaluate(none, 0).accuracy == 0);
    assert_true(evaluate(stored, 0).accuracy == 0 && evaluate(stored, 0).top5 == 0);
}

static void test_names(void **state) {
    (void)state;
    array_trainer a = make(&(setting){0});
    const char *const top5 = "val_top5";
    const an_evaluation e = array_trainer_evaluate(&a);
    double value = -1;
    assert_string_equal(an_trainer_metric(a.trainer, 0), "val_loss");
    assert_string_equal(an_trainer_metric(a.trainer, 1), "val_perplexity");
    assert_string_equal(an_trainer_metric(a.trainer, 2), "val_accuracy");
    assert_null(an_trainer_metric(a.trainer, 3));
    assert_true(an_evaluation_metric(&e, "val_accuracy", &value) && value == e.accuracy);
    assert_false(an_evaluation_metric(&e, top5, &value));
    OK(ctx, an_trainer_check_metric(a.trainer, "val_accuracy"));
    FAILS(ctx, an_trainer_set_metrics(a.trainer, 1, &top5), AN_ERR_ARGUMENT,
          "cannot compute 'val_top5': it does not store its logits");
    array_trainer_destroy(&a);
}

/* A model whose own output has the name of the count has no count. */
static void test_an_own_output_of_that_name(void **state) {
    (void)state;
    static const an_batch_options batch = {.size = sizeof batch, .global = SAMPLES};
    const int64_t dims[] = {SAMPLES, TOKENS};
    const an_trainer_options options = few_steps(1, &batch);
    an_graph *g = make_graph(&(setting){0});
    an_graph_set_output(g, g->loss, "right_targets");
    OK(ctx, an_graph_verify(g));
    array_trainer a = array_trainer_create(g, array_of(tokens, AN_DTYPE_I32, 2, dims),
                                           array_of(targets, AN_DTYPE_I32, 2, dims), &options);
    assert_false(array_trainer_evaluate(&a).counts_right);
    array_trainer_destroy(&a);
}

/* The hash of a run is that of 0.1, whose evaluations had a loss and a perplexity, unless the run asks for more. */
static void test_hashes(void **state) {
    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        array_trainer a = make(&(setting){.details = asks ? AN_DETAIL_TOKENS : 0});
        const an_evaluation e = array_trainer_evaluate(&a);
        double values[AN_MOST_METRICS];
        a.trainer->record.progress.evaluation = e;
        assert_int_equal(an_metrics_chained(a.trainer, values), asks ? 3 : 2);
        assert_true(values[0] == e.loss && values[1] == e.perplexity && (!asks || values[2] == e.accuracy));
        array_trainer_destroy(&a);
    }
    /* logits that are stored had an accuracy and a top 5 then */
    array_trainer a = make(&(setting){.stored = true});
    double values[AN_MOST_METRICS];
    a.trainer->record.progress.evaluation = array_trainer_evaluate(&a);
    assert_int_equal(an_metrics_chained(a.trainer, values), 4);
    array_trainer_destroy(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_is_that_of_stored_logits),
        cmocka_unit_test(test_the_first_of_equal_logits_is_the_largest),
        cmocka_unit_test(test_nothing_is_right_if_logits_are_no_numbers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_an_own_output_of_that_name),
        cmocka_unit_test(test_hashes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
