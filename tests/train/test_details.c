/* Details of evaluations: counts of classes, scores and their curve, errors by output; which trainers keep
 * them, and what is refused. */
#include "train/trainer.h"

#include <math.h>

#include "train/trainer_support.h" /* last, as its ctx would be shadowed */

/* ---- scores ---- */

enum { ROOM = 64 };

typedef struct {
    an_scores scores;
    double values[ROOM];
} kept;

static void keep(kept *k, int positive, const double *high, int negative, const double *low) {
    k->scores = (an_scores){.values = k->values, .room = ROOM};
    an_scores_clear(&k->scores);
    for (int i = 0; i < positive; i++) an_scores_add(&k->scores, true, high[i]);
    for (int i = 0; i < negative; i++) an_scores_add(&k->scores, false, low[i]);
    an_scores_sort(&k->scores);
}

/* The share of pairs in the right order, by looking at all of them. */
static double area_of_pairs(int positive, const double *high, int negative, const double *low) {
    double sum = 0;
    for (int i = 0; i < positive; i++)
        for (int k = 0; k < negative; k++) sum += high[i] > low[k] ? 1 : high[i] == low[k] ? 0.5 : 0;
    return sum / positive / negative;
}

static void test_area_is_that_of_all_pairs(void **state) {
    (void)state;
    double high[ROOM / 2], low[ROOM / 2];
    uint64_t random = 1;
    for (int round = 0; round < 500; round++) {
        const int positive = 1 + round % (ROOM / 2), negative = 1 + round * 7 % (ROOM / 2);
        const uint64_t kinds = round % 3 ? 1000 : 4; /* few: many are equal */
        for (int i = 0; i < ROOM; i++) {
            random = random * 48271 % 2147483647;
            (i < ROOM / 2 ? high : low)[i % (ROOM / 2)] = (double)(random % kinds) - 1;
        }
        kept k;
        keep(&k, positive, high, negative, low);
        const double area = an_scores_area(&k.scores), pairs = area_of_pairs(positive, high, negative, low);
        if (!(fabs(area - pairs) < 1e-14)) fail_msg("round %d: %.17g is not %.17g", round, area, pairs);
    }
}

static void test_area_of_nothing_is_not_a_number(void **state) {
    (void)state;
    const double one = 1, none = NAN;
    kept k;
    keep(&k, 1, &one, 0, NULL);
    assert_true(isnan(an_scores_area(&k.scores)));
    keep(&k, 0, NULL, 1, &one);
    assert_true(isnan(an_scores_area(&k.scores)));
    keep(&k, 1, &none, 1, &one);
    assert_true(isnan(an_scores_area(&k.scores)));
}

/* The trapezoids under the curve are the area, whatever its number of points is if none is left out. */
static void test_curve_ends_in_its_corners(void **state) {
    (void)state;
    const double high[] = {3, 2, 2, 1, -1}, low[] = {2, 0, 0, -2};
    an_roc_point points[ROOM];
    kept k;
    keep(&k, 5, high, 4, low);
    const int64_t count = an_scores_curve(&k.scores, ROOM, points);
    assert_int_equal(count, 7); /* the scores that there are, and the first point */
    double area = 0;
    for (int64_t i = 1; i < count; i++)
        area += (points[i].false_rate - points[i - 1].false_rate) * (points[i].true_rate + points[i - 1].true_rate) / 2;
    assert_true(fabs(area - area_of_pairs(5, high, 4, low)) < 1e-15);
    assert_true(isinf(points[0].threshold) && points[0].false_rate == 0 && points[0].true_rate == 0);
    assert_true(points[2].threshold == 2 && points[2].true_rate == 0.6 && points[2].false_rate == 0.25);
    for (int64_t capacity = 2; capacity < ROOM; capacity++) {
        const int64_t some = an_scores_curve(&k.scores, capacity, points);
        assert_in_range(some, 2, capacity < count ? capacity : count);
        assert_true(points[some - 1].false_rate == 1 && points[some - 1].true_rate == 1);
    }
}

/* ---- a trainer ---- */

static an_trainer_options with_details(unsigned details) {
    an_trainer_options o = usual_options();
    o.details = details;
    return o;
}

static void test_counts_add_up(void **state) {
    (void)state;
    const an_trainer_options options = with_details(AN_DETAIL_CLASSES);
    run r;
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    an_class_metrics m;
    an_class_metrics_init(&m, sizeof m);
    double precision = 0, recall = 0, f1 = 0, value;
    int64_t count, all = 0, right = 0;
    run_create(&r, &options, 0);
    FAILS(ctx, an_trainer_class_metrics(r.trainer, 0, &m), AN_ERR_STATE, "");
    for (int i = 0; i < 9; i++) OK(ctx, an_trainer_step(r.trainer, NULL));
    for (int twice = 0; twice < 2; twice++) OK(ctx, an_trainer_evaluate(r.trainer, &e)); /* begins anew */
    assert_int_equal(an_trainer_class_count(r.trainer), CLASSES);
    for (int64_t c = 0; c < CLASSES; c++) {
        int64_t row = 0, column = 0;
        for (int64_t k = 0; k < CLASSES; k++) {
            OK(ctx, an_trainer_confusion(r.trainer, c, k, &count));
            row += count;
            OK(ctx, an_trainer_confusion(r.trainer, k, c, &count));
            column += count;
        }
        OK(ctx, an_trainer_confusion(r.trainer, c, c, &count));
        OK(ctx, an_trainer_class_metrics(r.trainer, c, &m));
        assert_int_equal(m.targets, row);
        assert_int_equal(m.predicted, column);
        assert_int_equal(m.right, count);
        int64_t targets = 0;
        for (int i = TRAINING; i < TRAINING + EVALUATION; i++) targets += classes[i] == c;
        assert_int_equal(m.targets, targets);
        all += row;
        right += count;
        precision += m.precision / CLASSES;
        recall += m.recall / CLASSES;
        f1 += m.f1 / CLASSES;
    }
    assert_int_equal(all, EVALUATION);
    assert_true((double)right / EVALUATION == e.accuracy);
    assert_true(right > EVALUATION / 3 && right < EVALUATION); /* so that there is something to count */
    assert_true(fabs(e.precision - precision) < 1e-14 && fabs(e.recall - recall) < 1e-14 && fabs(e.f1 - f1) < 1e-14);
    assert_true(an_evaluation_metric(&e, "val_f1", &value) && value == e.f1);
    assert_true(!an_evaluation_metric(&e, "val_auc", &value));
    FAILS(ctx, an_trainer_class_metrics(r.trainer, CLASSES, &m), AN_ERR_ARGUMENT, "");
    FAILS(ctx, an_trainer_confusion(r.trainer, -1, 0, &count), AN_ERR_ARGUMENT, "");
    run_destroy(&r);
}

static void set_confusion(an_trainer *t, const int64_t counts[CLASSES * CLASSES], an_evaluation *e) {
    *e = (an_evaluation){.size = sizeof *e};
    an_details_begin(t);
    memcpy(t->evaluator.details.confusion, counts, CLASSES * CLASSES * sizeof *counts);
    OK(ctx, an_details_end(t, e));
}

/* Shares of nothing are 0, and a class that was neither there nor predicted does not count. */
static void test_classes_without_targets(void **state) {
    (void)state;
    const an_trainer_options options = with_details(AN_DETAIL_CLASSES);
    const double close = 1e-15;
    run r;
    an_evaluation e;
    run_create(&r, &options, 0);
    set_confusion(r.trainer, (const int64_t[]){3, 0, 1, 2, 0, 0, 0, 0, 0},
                  &e); /* 1 is never predicted, 2 is never there */
    assert_true(fabs(e.precision - (3.0 / 5 + 0 + 0) / 3) < close);
    assert_true(fabs(e.recall - (3.0 / 4 + 0 + 0) / 3) < close);
    assert_true(fabs(e.f1 - (6.0 / 9) / 3) < close);
    set_confusion(r.trainer, (const int64_t[]){3, 1, 0, 0, 4, 0, 0, 0, 0}, &e); /* 2 is nowhere */
    assert_true(fabs(e.recall - (0.75 + 1) / 2) < close);
    run_destroy(&r);
}

static void test_who_keeps_what(void **state) {
    (void)state;
    run r;
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    an_roc_point points[4];
    an_output_metrics output;
    an_output_metrics_init(&output, sizeof output);
    int64_t count;
    const char *const auc = "val_auc", *const f1 = "val_f1";
    an_trainer_options options = with_details(0);
    run_create(&r, &options, 0);
    FAILS(ctx, an_trainer_set_metrics(r.trainer, 1, &f1), AN_ERR_ARGUMENT, "create the trainer with AN_DETAIL_CLASSES");
    OK(ctx, an_trainer_evaluate(r.trainer, &e));
    assert_true(!e.counts_classes && !e.scores_classes);
    FAILS(ctx, an_trainer_confusion(r.trainer, 0, 0, &count), AN_ERR_STATE, "the trainer keeps no counts of classes");
    run_destroy(&r);

    options = with_details(AN_DETAIL_CLASSES | AN_DETAIL_SCORES | AN_DETAIL_OUTPUTS);
    run_create(&r, &options, 0);
    FAILS(ctx, an_trainer_set_metrics(r.trainer, 1, &auc), AN_ERR_ARGUMENT, "does not tell exactly two classes apart");
    OK(ctx, an_trainer_set_metrics(r.trainer, 1, &f1));
    assert_string_equal(an_trainer_metric(r.trainer, 0), f1);
    OK(ctx, an_trainer_evaluate(r.trainer, &e));
    FAILS(ctx, an_trainer_roc(r.trainer, 4, points, &count), AN_ERR_STATE, "");
    assert_int_equal(an_trainer_output_count(r.trainer), 0);
    FAILS(ctx, an_trainer_output_metrics(r.trainer, 0, &output), AN_ERR_STATE, "");
    run_destroy(&r);
}

/* ---- outputs ---- */

/* A model whose numbers are 0, and targets far from 0, whose squares would hide how they vary. */
static void test_outputs(void **state) {
    (void)state;
    enum { SAMPLES = 5, OUTPUTS = 2 };
    static double features[SAMPLES], targets[SAMPLES][OUTPUTS];
    const int64_t dims[] = {SAMPLES, 1}, target_dims[] = {SAMPLES, OUTPUTS};
    const an_array arrays[] = {array_of(features, AN_DTYPE_F64, 2, dims),
                               array_of(targets, AN_DTYPE_F64, 2, target_dims)};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 2;
    source.arrays = arrays;
    an_mlp_options model = small_mlp_options();
    model.inputs = 1;
    model.outputs = OUTPUTS;
    model.dtype = AN_DTYPE_F64;
    model.loss = AN_LOSS_SQUARED;
    an_trainer_options options = with_details(AN_DETAIL_OUTPUTS | AN_DETAIL_CLASSES);
    const an_batch_options batch = {.size = sizeof batch, .global = 2};
    options.batch = &batch;
    run r;
    for (int i = 0; i < SAMPLES; i++) {
        targets[i][0] = 1e9 + i;
        targets[i][1] = 7;
    }
    OK(ctx, an_dataset_create_arrays(&r.training, ctx, &source));
    OK(ctx, an_dataset_create_arrays(&r.evaluation, ctx, &source));
    OK(ctx, an_model_mlp(&r.graph, ctx, &model));
    OK(ctx, an_trainer_create(&r.trainer, r.graph, r.training, r.evaluation, &options));
    const an_params *p = r.trainer->params;
    for (size_t i = 0; i < p->entry_count; i++) {
        static double zeros[64];
        const an_array array = array_of(zeros, AN_DTYPE_F64, p->entries[i].ndims, p->entries[i].dims);
        OK(ctx, an_params_set(r.trainer->params, p->entries[i].name, AN_PART_WEIGHT, &array));
    }
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    an_output_metrics m;
    an_output_metrics_init(&m, sizeof m);
    OK(ctx, an_trainer_evaluate(r.trainer, &e));
    assert_int_equal(an_trainer_output_count(r.trainer), OUTPUTS);
    OK(ctx, an_trainer_output_metrics(r.trainer, 0, &m));
    assert_true(m.mean_absolute_error == 1e9 + 2);
    assert_true(fabs(m.r2 / (1 - ((1e9 + 2) * (1e9 + 2) + 2) / 2) - 1) < 1e-12); /* targets vary by 2 */
    OK(ctx, an_trainer_output_metrics(r.trainer, 1, &m));
    assert_true(m.mean_absolute_error == 7 && m.root_mean_squared_error == 7 && m.r2 == 0);
    FAILS(ctx, an_trainer_output_metrics(r.trainer, OUTPUTS, &m), AN_ERR_ARGUMENT, "");
    run_destroy(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_area_is_that_of_all_pairs),
        cmocka_unit_test(test_area_of_nothing_is_not_a_number),
        cmocka_unit_test(test_curve_ends_in_its_corners),
        cmocka_unit_test(test_counts_add_up),
        cmocka_unit_test(test_classes_without_targets),
        cmocka_unit_test(test_who_keeps_what),
        cmocka_unit_test(test_outputs),
    };
    make_data();
    return cmocka_run_group_tests(tests, setup, teardown);
}
