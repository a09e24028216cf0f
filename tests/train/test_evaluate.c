/* Evaluation: sums of a batch begin at 0 and are added from left to right, so that any rank may compute any batch. */
#include "train/trainer.h"

#include "models/small_models.h" /* last, as its ctx would be shadowed */

enum { SAMPLES = 9, BATCHES = 5, MICRO = 2 };

/* The model's numbers are 0, so these are the errors. A 1 is lost beside 2^53 and a 2 is not: the sum tells which were added first. */
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

static void run_create(run *r) {
    static const an_batch_options batch = {.size = sizeof batch, .global = MICRO};
    an_mlp_options model = small_mlp_options();
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    model.inputs = model.outputs = 1;
    model.dtype = AN_DTYPE_F64;
    model.loss = AN_LOSS_SQUARED;
    options.batch = &batch;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_are_added_from_left_to_right),
        cmocka_unit_test(test_every_batch_has_a_rank),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
