/* Evaluation: sums of a batch begin at 0 and are added from left to right, so that any rank may compute any batch. */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "train/trainer.h"

#include "models/small_models.h" /* last, as its ctx would be shadowed */

enum { SAMPLES = 9, BATCHES = 5, MICRO = 2 };

/* The model's numbers are 0, so these are the errors. A 1 is lost beside 2^53 and a 2 is not: the sum
 * tells which were added first. */
static double targets[SAMPLES] = {0x1p53, 0, 1, 0, 1, 0, 1, 1, 0};
static double inputs[SAMPLES];

static an_dataset *make_dataset(void) {
    const int64_t dims[] = {SAMPLES, 1};
    const an_array arrays[] = {array_of(inputs, AN_DTYPE_F64, 2, dims), array_of(targets, AN_DTYPE_F64, 2, dims)};
    an_dataset *dataset = NULL;
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 2;
    source.arrays = arrays;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

typedef struct {
    an_graph *graph;
    an_dataset *training, *evaluation;
    an_trainer *trainer;
} run;

/* With so many threads that read, and samples that are evaluated at a time; 0: as many as in a micro-batch. */
static void run_create_with(run *r, int threads, int64_t micro) {
    static const an_batch_options batch = {.size = sizeof batch, .global = MICRO};
    an_mlp_options model = small_mlp_options();
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    model.inputs = model.outputs = 1;
    model.dtype = AN_DTYPE_F64;
    model.loss = AN_LOSS_SQUARED;
    options.batch = &batch;
    options.loader_threads = threads;
    options.evaluation_micro = micro;
    r->training = make_dataset();
    r->evaluation = make_dataset();
    OK(ctx, an_model_mlp(&r->graph, ctx, &model));
    OK(ctx, an_trainer_create(&r->trainer, r->graph, r->training, r->evaluation, &options));
    const an_params *p = r->trainer->params;
    for (size_t i = 0; i < p->entry_count; i++) {
        static double zeros[64];
        assert_true(p->entries[i].elements <= 64);
        const an_array array = array_of(zeros, AN_DTYPE_F64, p->entries[i].ndims, p->entries[i].dims);
        OK(ctx, an_params_set(r->trainer->params, p->entries[i].name, AN_PART_WEIGHT, &array));
    }
}

static void run_create(run *r) {
    run_create_with(r, 0, 0);
}

static void run_destroy(run *r) {
    an_trainer_destroy(&r->trainer);
    an_graph_destroy(&r->graph);
    an_dataset_destroy(&r->training);
    an_dataset_destroy(&r->evaluation);
}

static void test_batches_are_added_from_left_to_right(void **state) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    run r;
    (void)state;
    run_create(&r);
    OK(ctx, an_trainer_evaluate(r.trainer, &evaluation));
    assert_true(evaluation.measures);
    assert_int_equal(evaluation.samples, SAMPLES);
    /* all in one row: 2^53; batches from right to left: 2^53 + 4 */
    assert_true(evaluation.mean_absolute_error == (0x1p53 + 2) / SAMPLES);
    run_destroy(&r);
}

/* Targets that vary by 2 around 1e9: their squares, and the square of their sum, do not show it. */
static void test_r2_of_targets_far_from_zero(void **state) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    double kept[SAMPLES], spread = 0, errors = 0;
    run r;
    (void)state;
    memcpy(kept, targets, sizeof kept);
    for (int i = 0; i < SAMPLES; i++) {
        targets[i] = 1e9 + i % 5;
        const double from_mean = i % 5 - (10 + 6) / 9.0;
        spread += from_mean * from_mean;
        errors += targets[i] * targets[i];
    }
    run_create(&r);
    OK(ctx, an_trainer_evaluate(r.trainer, &evaluation));
    const double expected = 1 - errors / spread;
    if (!(fabs(evaluation.r2 / expected - 1) < 1e-12)) fail_msg("%.17g instead of %.17g", evaluation.r2, expected);
    run_destroy(&r);
    memcpy(targets, kept, sizeof kept);
}

/* Ranks take all batches, one after another, and have room for theirs. */
static void test_every_batch_has_a_rank(void **state) {
    run r;
    (void)state;
    run_create(&r);
    const int64_t batches = an_evaluation_batches(r.trainer);
    assert_int_equal(batches, BATCHES);
    for (int ranks = 1; ranks <= 8; ranks++) {
        r.trainer->ranks = ranks;
        assert_int_equal(an_evaluation_first_batch(r.trainer, 0), 0);
        assert_int_equal(an_evaluation_first_batch(r.trainer, ranks), batches);
        for (int rank = 0; rank < ranks; rank++) {
            const int64_t first = an_evaluation_first_batch(r.trainer, rank),
                          end = an_evaluation_first_batch(r.trainer, rank + 1);
            /* one process adds its batches as they come */
            if (ranks > 1) assert_in_range(end - first, 0, an_evaluation_most_batches(r.trainer));
        }
    }
    run_destroy(&r);
}

static double evaluate(run *r) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    OK(ctx, an_trainer_evaluate(r->trainer, &evaluation));
    assert_int_equal(evaluation.samples, SAMPLES);
    return evaluation.mean_absolute_error;
}

/* Any number of threads reads the same batches; and what the caller changes between two evaluations is seen by the
 * second. */
static void test_threads_that_read(void **state) {
    static const int threads[] = {0, 1, 3, 16};
    (void)state;
    for (int i = 0; i < 4; i++) {
        run r;
        run_create_with(&r, threads[i], 0);
        for (int again = 0; again < 20; again++) {
            assert_true(evaluate(&r) == (0x1p53 + 2) / SAMPLES);
            const double kept = targets[0];
            targets[0] = again;
            assert_true(evaluate(&r) == (again + 4.) / SAMPLES);
            targets[0] = kept;
        }
        OK(ctx, an_trainer_step(r.trainer, NULL)); /* which has a loader of its own */
        run_destroy(&r);
    }
}

/* Sums are grouped by how many samples are evaluated at a time, whatever a micro-batch of training has. */
static void test_samples_at_a_time(void **state) {
    static const struct {
        int64_t micro, batches;
        double sum;
    } cases[] = {{0, 5, 0x1p53 + 2}, {1, 9, 0x1p53},       {2, 5, 0x1p53 + 2}, {4, 3, 0x1p53 + 4},
                 {8, 2, 0x1p53},     {SAMPLES, 1, 0x1p53}, {1000, 1, 0x1p53}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 0; threads < 3; threads++) {
            run r;
            an_trainer_info info;
            an_trainer_info_init(&info, sizeof info);
            run_create_with(&r, threads, cases[i].micro);
            OK(ctx, an_trainer_info_get(r.trainer, &info));
            const int64_t micro = cases[i].micro ? cases[i].micro : MICRO;
            assert_int_equal(info.micro, MICRO);
            assert_int_equal(info.evaluation_micro, micro < SAMPLES ? micro : SAMPLES);
            assert_int_equal(an_evaluation_batches(r.trainer), cases[i].batches);
            assert_true(evaluate(&r) == cases[i].sum / SAMPLES);
            OK(ctx, an_trainer_step(r.trainer, NULL)); /* with the sizes of training again */
            run_destroy(&r);
        }
}

typedef struct {
    int evaluations, reads, passes, steps, rounding;
    double end;
} seen;

static void see(void *user, const an_span *span) {
    seen *s = user;
    if (strcmp(span->thread, "training") != 0) return;
    assert_true(span->begin <= span->end);
    s->evaluations += !strcmp(span->name, "evaluation");
    s->reads += !strcmp(span->name, "evaluation data");
    s->passes += !strcmp(span->name, "evaluation forward");
    s->steps += !strcmp(span->name, "step");
    assert_true(span->end >= s->end); /* they are told when they end */
    s->end = span->end;
    s->rounding = fegetround();
}

/* A host that asks is told what takes how long, in its own floating-point environment. */
static void test_spans(void **state) {
    seen s = {0};
    run r;
    (void)state;
    an_context_set_span(ctx, see, &s);
    run_create_with(&r, 2, 0);
    fesetround(FE_UPWARD);
    OK(ctx, an_trainer_step(r.trainer, NULL));
    const double found = evaluate(&r);
    fesetround(FE_TONEAREST);
    assert_true(found == (0x1p53 + 2) / SAMPLES);
    assert_int_equal(s.rounding, FE_UPWARD);
    assert_int_equal(s.steps, 1);
    assert_int_equal(s.evaluations, 1);
    assert_int_equal(s.reads, BATCHES);
    assert_int_equal(s.passes, BATCHES);
    run_destroy(&r);
    an_context_set_span(ctx, NULL, NULL);
}

static void test_what_cannot_be(void **state) {
    run r;
    an_trainer *none = NULL;
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    (void)state;
    run_create(&r);
    options.evaluation_micro = -1;
    FAILS(ctx, an_trainer_create(&none, r.graph, r.training, r.evaluation, &options), AN_ERR_ARGUMENT,
          "evaluation_micro is -1; it must be 1 or more, or 0 for the default");
    options.evaluation_micro = 4;
    FAILS(ctx, an_trainer_create(&none, r.graph, r.training, NULL, &options), AN_ERR_ARGUMENT,
          "evaluation_micro is 4, but there is no data to evaluate");
    run_destroy(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_are_added_from_left_to_right),
        cmocka_unit_test(test_r2_of_targets_far_from_zero),
        cmocka_unit_test(test_every_batch_has_a_rank),
        cmocka_unit_test(test_threads_that_read),
        cmocka_unit_test(test_samples_at_a_time),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_spans),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
