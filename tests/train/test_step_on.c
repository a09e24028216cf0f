/* Steps on the caller's own samples, compared to the bit with a step by its parts on the same graph. */
#include "anneal/models.h"
#include "anneal/train.h"
#include "open/support.h"

enum { INPUTS = 3, OUTPUTS = 2, MOST = 12 };

static float x[MOST][INPUTS], y[MOST][OUTPUTS];
static double wide_x[MOST][INPUTS], wide_y[MOST][OUTPUTS];

static void make_samples(void) {
    for (int i = 0; i < MOST; i++) {
        for (int k = 0; k < INPUTS; k++) wide_x[i][k] = x[i][k] = (float)noise((uint64_t)i * INPUTS + (uint64_t)k);
        for (int k = 0; k < OUTPUTS; k++) wide_y[i][k] = y[i][k] = (float)(x[i][k] * 0.5 - x[i][2]);
    }
}

#define MODEL "model: {type: mlp, inputs: 3, outputs: 2, hidden: [8]}\n"
#define REST "data: {source: stream}\noptimizer: {lr: 1e-2}\n"

static void hash_of(an_trainer *trainer, char hash[AN_HASH_TEXT]) {
    OK(ctx, an_trainer_weights_hash(trainer, hash));
}

/* ---- by its parts ---- */

typedef struct by_parts {
    an_graph *graph;
    an_groups *groups;
    an_params *params;
    an_plan *plan;
    an_program *program;
    an_optimizer *optimizer;
    an_stepper *stepper;
} by_parts;

static by_parts make_parts(int64_t micro, int64_t leaves) {
    static const int64_t hidden[] = {8};
    by_parts b = {0};
    an_mlp_options model;
    an_mlp_options_init(&model, sizeof model);
    an_params_options params;
    an_params_options_init(&params, sizeof params);
    an_plan_options plan;
    an_plan_options_init(&plan, sizeof plan);
    an_stepper_options step;
    an_stepper_options_init(&step, sizeof step);
    const char *symbol = "batch";
    model.inputs = INPUTS;
    model.outputs = OUTPUTS;
    model.hidden = hidden;
    model.hidden_count = 1;
    model.loss = AN_LOSS_SQUARED;
    OK(ctx, an_model_mlp(&b.graph, ctx, &model));
    OK(ctx, an_groups_create(&b.groups, b.graph, NULL));
    OK(ctx, an_graph_verify(b.graph));
    plan.symbol_count = 1;
    plan.symbols = &symbol;
    plan.maxima = &micro;
    plan.moments = params.moments = an_optimizer_moments(NULL);
    plan.programs = AN_PROGRAM_TRAINING;
    OK(ctx, an_plan_create(&b.plan, ctx, b.graph, &plan));
    OK(ctx, an_params_create(&b.params, ctx, b.graph, &params));
    OK(ctx, an_params_reset(b.params, 0));
    OK(ctx, an_program_create(&b.program, b.plan, b.params));
    OK(ctx, an_optimizer_create(&b.optimizer, b.params, b.groups, NULL));
    step.rate = 1e-2;
    step.leaves = leaves;
    OK(ctx, an_stepper_create(&b.stepper, b.program, b.optimizer, NULL, &step));
    return b;
}

static void destroy_parts(by_parts *b) {
    an_stepper_destroy(&b->stepper);
    an_optimizer_destroy(&b->optimizer);
    an_program_destroy(&b->program);
    an_params_destroy(&b->params);
    an_plan_destroy(&b->plan);
    an_groups_destroy(&b->groups);
    an_graph_destroy(&b->graph);
}

static double step_by_parts(by_parts *b, int64_t n, int64_t micro, int64_t leaves) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_step_begin(b->stepper, n * OUTPUTS));
    for (int64_t leaf = 0; leaf < leaves; leaf++)
        for (int64_t at = leaf * n / leaves, end = (leaf + 1) * n / leaves; at < end; at += micro) {
            const int64_t count = end - at < micro ? end - at : micro;
            const an_array in = array_of(x[at], AN_DTYPE_F32, 2, (int64_t[]){count, INPUTS}),
                           out = array_of(y[at], AN_DTYPE_F32, 2, (int64_t[]){count, OUTPUTS});
            OK(ctx, an_program_bind(b->program, "batch", count));
            OK(ctx, an_program_set_input(b->program, "x", &in));
            OK(ctx, an_program_set_input(b->program, "targets", &out));
            OK(ctx, an_step_micro_batch(b->stepper, leaf, count));
        }
    OK(ctx, an_step_reduce(b->stepper));
    OK(ctx, an_step_unscale(b->stepper));
    OK(ctx, an_step_clip(b->stepper));
    OK(ctx, an_step_update(b->stepper));
    OK(ctx, an_step_schedule(b->stepper));
    OK(ctx, an_step_end(b->stepper, &metrics));
    return metrics.loss;
}

static void expect_same_weights(an_params *a, an_params *b) {
    for (int64_t i = 0;; i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        float first[64], second[64];
        if (an_params_info(a, i, &info) != AN_OK) break;
        an_array array = array_of(first, AN_DTYPE_F32, info.ndims, info.dims);
        OK(ctx, an_params_get(a, info.name, AN_PART_WEIGHT, &array));
        array.data = second;
        OK(ctx, an_params_get(b, info.name, AN_PART_WEIGHT, &array));
        int64_t elements = 1;
        for (int d = 0; d < info.ndims; d++) elements *= info.dims[d];
        assert_memory_equal(first, second, (size_t)elements * sizeof *first);
    }
}

/* Steps of different sizes, larger than a micro-batch and than batch.global, with leaves that are empty. */
static void test_steps_are_those_of_their_parts(void **state) {
    static const int64_t sizes[] = {4, 12, 1, 7};
    static const struct {
        const char *batch;
        int64_t micro, leaves;
    } cuts[] = {{"batch: {global: 12}\n", 12, 8},
                {"batch: {global: 4}\n", 4, 4},
                {"batch: {global: 12, leaves: 1}\n", 12, 1},
                {"batch: {global: 4, leaves: 1}\n", 4, 1},
                {"batch: {global: 6, leaves: 3, micro: 2}\n", 2, 3}};
    (void)state;
    make_samples();
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        char text[512];
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        by_parts b = make_parts(cuts[c].micro, cuts[c].leaves);
        snprintf(text, sizeof text, MODEL REST "train: {precision: f32}\n%s", cuts[c].batch);
        an_trainer *trainer = open_run(text);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            OK(ctx, an_trainer_step_on_f32(trainer, sizes[s], &x[0][0], &y[0][0], &metrics));
            const double loss = step_by_parts(&b, sizes[s], cuts[c].micro, cuts[c].leaves);
            if (metrics.loss != loss)
                fail_msg("%s, step %zu: %.17g, by parts %.17g", cuts[c].batch, s, metrics.loss, loss);
            assert_int_equal(metrics.samples, sizes[s]);
            assert_int_equal(metrics.targets, sizes[s] * OUTPUTS);
            assert_int_equal(metrics.step, s + 1);
        }
        expect_same_weights(an_trainer_params(trainer), b.params);
        an_trainer_destroy(&trainer);
        destroy_parts(&b);
    }
}

/* ---- arrays ---- */

/* The same numbers in f64, backwards in memory, or with gaps: the same bits. */
static void test_arrays_of_any_kind(void **state) {
    float spread[MOST][OUTPUTS][2], turned[INPUTS][MOST];
    char hashes[3][AN_HASH_TEXT];
    (void)state;
    make_samples();
    for (int i = 0; i < MOST; i++) {
        for (int k = 0; k < OUTPUTS; k++) spread[i][k][0] = y[i][k];
        for (int k = 0; k < INPUTS; k++) turned[k][i] = x[i][k];
    }
    an_array a = array_of(turned, AN_DTYPE_F32, 2, (int64_t[]){MOST, INPUTS}),
             b = array_of(spread, AN_DTYPE_F32, 2, (int64_t[]){MOST, OUTPUTS});
    a.strides[0] = 1;
    a.strides[1] = MOST;
    b.strides[0] = OUTPUTS * 2;
    b.strides[1] = 2;
    for (int i = 0; i < 3; i++) {
        an_trainer *trainer = open_run(MODEL REST);
        for (int s = 0; s < 2; s++) {
            if (i == 0) OK(ctx, an_trainer_step_on_f32(trainer, MOST, &x[0][0], &y[0][0], NULL));
            if (i == 1) OK(ctx, an_trainer_step_on_f64(trainer, MOST, &wide_x[0][0], &wide_y[0][0], NULL));
            if (i == 2) OK(ctx, an_trainer_step_on(trainer, MOST, &a, &b, NULL));
        }
        hash_of(trainer, hashes[i]);
        an_trainer_destroy(&trainer);
    }
    assert_string_equal(hashes[0], hashes[1]);
    assert_string_equal(hashes[0], hashes[2]);
}

static void test_wide_streams_make_wide_models(void **state) {
    (void)state;
    make_samples();
    an_trainer *trainer = open_run(MODEL "data: {train: {type: stream, dtype: f64}}\n");
    an_param_info info;
    an_param_info_init(&info, sizeof info);
    OK(ctx, an_trainer_step_on_f64(trainer, MOST, &wide_x[0][0], &wide_y[0][0], NULL));
    OK(ctx, an_params_info(an_trainer_params(trainer), 0, &info));
    assert_int_equal(info.dtype, AN_DTYPE_F64);
    an_trainer_destroy(&trainer);
}

static void test_classes_are_held_against_their_number(void **state) {
    int64_t labels[] = {0, 2, 1, -100};
    char before[AN_HASH_TEXT], after[AN_HASH_TEXT];
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    make_samples();
    const an_array in = array_of(x, AN_DTYPE_F32, 2, (int64_t[]){4, INPUTS}),
                   out = array_of(labels, AN_DTYPE_I64, 1, (int64_t[]){4});
    an_trainer *trainer =
        open_run("model: {type: mlp, inputs: 3, outputs: 3, hidden: [8], loss: cross_entropy}\n" REST);
    OK(ctx, an_trainer_step_on(trainer, 4, &in, &out, &metrics));
    assert_int_equal(metrics.targets, 3);
    hash_of(trainer, before);
    labels[2] = 3;
    FAILS(ctx, an_trainer_step_on(trainer, 4, &in, &out, NULL), AN_ERR_ARGUMENT,
          "sample 2 has the value 3 in 'targets', but values must be 0 to 2");
    labels[2] = (int64_t)1 << 40;
    FAILS(ctx, an_trainer_step_on(trainer, 4, &in, &out, NULL), AN_ERR_ARGUMENT, "does not fit in i32");
    FAILS(ctx, an_trainer_step_on_f32(trainer, 4, &x[0][0], &y[0][0], NULL), AN_ERR_DTYPE,
          "'targets' of the model is i32");
    hash_of(trainer, after);
    assert_string_equal(before, after);
    an_trainer_destroy(&trainer);
}

/* ---- the run ---- */

static void test_mistakes_change_nothing(void **state) {
    an_array in = array_of(x, AN_DTYPE_F32, 2, (int64_t[]){4, INPUTS + 1}),
             out = array_of(y, AN_DTYPE_F32, 2, (int64_t[]){4, OUTPUTS});
    (void)state;
    make_samples();
    an_trainer *trainer = open_run(MODEL REST "run: {steps: 2}\n");
    FAILS(ctx, an_trainer_step(trainer, NULL), AN_ERR_STATE, "the data is a stream, and nothing was pushed to it");
    FAILS(ctx, an_trainer_step_on_f32(trainer, 0, &x[0][0], &y[0][0], NULL), AN_ERR_ARGUMENT,
          "a step needs at least one sample, because otherwise there is no gradient");
    FAILS(ctx, an_trainer_step_on_f32(trainer, -1, &x[0][0], &y[0][0], NULL), AN_ERR_ARGUMENT,
          "a step cannot have -1 samples");
    FAILS(ctx, an_trainer_step_on_f32(trainer, 2, NULL, &y[0][0], NULL), AN_ERR_ARGUMENT, "inputs is NULL");
    FAILS(ctx, an_trainer_step_on(trainer, 4, &in, &out, NULL), AN_ERR_SHAPE, "Fortran");
    in.dims[1] = INPUTS;
    FAILS(ctx, an_trainer_step_on(trainer, 3, &in, &out, NULL), AN_ERR_SHAPE, "3");
    assert_int_equal(an_trainer_next_step(trainer), 0);
    x[1][1] = NAN;
    FAILS(ctx, an_trainer_step_on_f32(trainer, 4, &x[0][0], &y[0][0], NULL), AN_ERR_NONFINITE,
          "input 'x' of sample 1, element 1");
    make_samples();
    OK(ctx, an_trainer_step_on(trainer, 4, &in, &out, NULL));
    OK(ctx, an_trainer_step_on(trainer, 4, &in, &out, NULL));
    FAILS(ctx, an_trainer_step_on(trainer, 4, &in, &out, NULL), AN_ERR_STATE,
          "the run has already taken all of its 2 steps");
    an_trainer_destroy(&trainer);
}

/* A step of one's own takes the place of the data's: what follows is what would have followed. */
static void test_steps_among_those_of_the_data(void **state) {
    an_step_metrics metrics, expected;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_step_metrics_init(&expected, sizeof expected);
    float own[] = {0.25F, 0.5F}, sums[] = {0.75F};
    (void)state;
    write_sums();
    static const char config[] =
        "model: {type: mlp, hidden: [4]}\nrun: {steps: 4}\n"
        "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 2}\n"
        "optimizer: {lr: 0, weight_decay: 0}\nbatch: {global: 7}\n";
    an_trainer *trainer = open_run(config), *other = open_run(config);
    for (int s = 0; s < 4; s++) {
        OK(ctx, an_trainer_step(other, &expected));
        if (s == 1) {
            OK(ctx, an_trainer_step_on_f32(trainer, 1, own, sums, &metrics));
            assert_int_equal(metrics.samples, 1);
            continue;
        }
        OK(ctx, an_trainer_step(trainer, &metrics));
        assert_true(metrics.loss == expected.loss); /* the rate is 0 */
    }
    an_trainer_destroy(&trainer);
    an_trainer_destroy(&other);
}

static void test_streams_need_what_data_would_say(void **state) {
    (void)state;
    refused("model: {type: mlp, outputs: 2}\n" REST, AN_ERR_ARGUMENT, "set model.inputs");
    refused("model: {type: cnn, channels: 1, height: 8, width: 8}\n" REST, AN_ERR_ARGUMENT, "set model.classes");
    refused("model: {type: sequential, layers: [{type: linear, size: 2}]}\n" REST, AN_ERR_ARGUMENT, "set model.inputs");
    refused("model: {type: sequential, inputs: [3], layers: [linear]}\n" REST, AN_ERR_ARGUMENT,
            "the size cannot be taken from the targets of this data");
    refused(MODEL REST "schedule: {type: cosine}\n", AN_ERR_ARGUMENT, "needs the number of steps of the run");
    refused(MODEL REST "schedule: {warmup: 10%}\n", AN_ERR_ARGUMENT,
            "this is a share of the run, but the length of the run is not known; use steps here, or set run.steps");
    refused(MODEL REST "schedule: {warmup: 1 epoch}\n", AN_ERR_ARGUMENT, "a stream has no epochs");
    refused(MODEL REST "schedule: {per: epoch}\n", AN_ERR_ARGUMENT, "a stream has no epochs");
    an_trainer *trainer = open_run(MODEL REST "run: {samples: 320}\nschedule: {type: cosine, warmup: 10%}\n");
    assert_int_equal(an_trainer_steps(trainer), 10);
    an_trainer_destroy(&trainer);
    trainer = open_run("model: {type: gpt2, layers: 1, heads: 1, width: 8, context: 4, vocabulary: 11}\n" REST);
    int32_t tokens[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 10}};
    const an_array in = array_of(tokens, AN_DTYPE_I32, 2, (int64_t[]){2, 4});
    OK(ctx, an_trainer_step_on(trainer, 2, &in, &in, NULL));
    assert_true(an_trainer_steps(trainer) == INT64_MAX);
    an_trainer_destroy(&trainer);
}

/* Every failure of memory on the way leaves a trainer that works. */
static void test_memory_may_fail(void **state) {
    char hash[AN_HASH_TEXT], expected[AN_HASH_TEXT];
    (void)state;
    make_samples();
    for (long fail = 0, done = 0; !done; fail++) {
        an_trainer *trainer = open_run(MODEL REST "batch: {global: 2}\n");
        counted.calls = 0;
        counted.fail_at = fail;
        counted.once = true;
        const an_status status = an_trainer_step_on_f64(trainer, 9, &wide_x[0][0], &wide_y[0][0], NULL);
        counted.fail_at = 0;
        if (status != AN_OK) {
            assert_int_equal(status, AN_ERR_MEMORY);
            OK(ctx, an_trainer_step_on_f64(trainer, 9, &wide_x[0][0], &wide_y[0][0], NULL));
        } else if (fail > 0) {
            assert_true(fail > 4);
            done = 1;
        }
        hash_of(trainer, fail ? hash : expected);
        if (fail) assert_string_equal(hash, expected);
        an_trainer_destroy(&trainer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_those_of_their_parts),
        cmocka_unit_test(test_arrays_of_any_kind),
        cmocka_unit_test(test_wide_streams_make_wide_models),
        cmocka_unit_test(test_classes_are_held_against_their_number),
        cmocka_unit_test(test_mistakes_change_nothing),
        cmocka_unit_test(test_steps_among_those_of_the_data),
        cmocka_unit_test(test_streams_need_what_data_would_say),
        cmocka_unit_test(test_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
