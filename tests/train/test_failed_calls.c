/* Calls that train, with every argument wrong in turn: one that fails leaves the whole state of the run as it was. */
#include "anneal/run.h"
#include "train/trainer.h" /* its parts */

#include "open/support.h"

enum { INPUTS = 3, OUTPUTS = 2, SAMPLES = 8, STEPS = 4 };

static float x[SAMPLES][INPUTS], y[SAMPLES][OUTPUTS];
static double wide_x[SAMPLES][INPUTS], wide_y[SAMPLES][OUTPUTS];

static void make_samples(void) {
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < INPUTS; k++) wide_x[i][k] = x[i][k] = (float)noise((uint64_t)i * INPUTS + (uint64_t)k);
        for (int k = 0; k < OUTPUTS; k++) wide_y[i][k] = y[i][k] = (float)(x[i][k] * 0.5 - x[i][2]);
    }
}

/* A call that must fail. Weights, moments, running statistics, position and history of the run are in the hash. */
#define CHANGES_NOTHING(trainer, call)                                                                                 \
    do {                                                                                                               \
        char before_[AN_HASH_TEXT], after_[AN_HASH_TEXT];                                                              \
        OK(ctx, an_trainer_state_hash((trainer), before_));                                                            \
        if ((call) == AN_OK) fail_msg("%s did not fail", #call);                                                       \
        OK(ctx, an_trainer_state_hash((trainer), after_));                                                             \
        if (strcmp(before_, after_) != 0) fail_msg("%s failed and changed the run: %s -> %s", #call, before_, after_); \
    } while (0)

/* Batch norm has running statistics, dropout and momentum have state too. */
static an_trainer *open_stream(void) {
    make_samples();
    return open_run("model: {type: mlp, inputs: 3, outputs: 2, hidden: [8], batch_norm: on}\n"
                    "data: {source: stream}\noptimizer: {lr: 1e-2}\nrun: {steps: 4}\n");
}

static an_trainer *open_table(void) {
    write_sums();
    return open_run("model: {type: mlp, inputs: 2, outputs: 1, hidden: [8], batch_norm: on}\n"
                    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]},\n"
                    "       eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\n"
                    "batch: {global: 16}\nrun: {steps: 4}\n");
}

/* ---- the trainer's steps ---- */

static void test_failed_trainer_step(void **state) {
    an_step_metrics good, unset = {0}, old;
    an_step_metrics_init(&good, sizeof good);
    an_step_metrics_init(&old, sizeof old);
    (void)state;
    old.size = offsetof(an_step_metrics, epoch) - 1; /* what the first version of the struct had, and a byte less */
    an_trainer *trainer = open_table();
    for (int i = 0; i < STEPS; i++) {
        CHANGES_NOTHING(trainer, an_trainer_step(trainer, &unset));
        CHANGES_NOTHING(trainer, an_trainer_step(trainer, &old));
        OK(ctx, an_trainer_step(trainer, &good));
        assert_int_equal(good.step, i + 1);
    }
    CHANGES_NOTHING(trainer, an_trainer_step(trainer, &good));
    an_trainer_destroy(&trainer);
}

/* Failing calls between the steps of a run leave the bits of a run without them. */
static void test_run_after_failed_steps_has_the_same_bits(void **state) {
    char hashes[2][AN_HASH_TEXT];
    an_step_metrics unset = {0};
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        an_trainer *trainer = open_table();
        for (int i = 0; i < STEPS; i++) {
            if (fails) FAILS(ctx, an_trainer_step(trainer, &unset), AN_ERR_ARGUMENT, "_init first");
            OK(ctx, an_trainer_step(trainer, NULL));
        }
        OK(ctx, an_trainer_state_hash(trainer, hashes[fails]));
        an_trainer_destroy(&trainer);
    }
    assert_string_equal(hashes[0], hashes[1]);
}

static void test_failed_step_on(void **state) {
    an_step_metrics good, unset = {0};
    an_step_metrics_init(&good, sizeof good);
    const an_array in = array_of(x, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, INPUTS}),
                   out = array_of(y, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, OUTPUTS});
    (void)state;
    an_trainer *t = open_stream();
    OK(ctx, an_trainer_step_on(t, SAMPLES, &in, &out, &good));
    for (int end = 0; end < 2; end++) {
        an_array wrong[10];
        for (int i = 0; i < 10; i++) wrong[i] = end ? out : in;
        wrong[0].strides[1] = wrong[0].strides[0] = wrong[0].dims[0] = 0;
        wrong[1].data = NULL;
        wrong[2].dtype = AN_DTYPE_NONE;
        wrong[3].dtype = AN_DTYPE_I32;
        wrong[4].dtype = (an_dtype)99;
        wrong[5].ndims = -1;
        wrong[6].ndims = AN_MAX_DIMS + 1;
        wrong[7].dims[0] = SAMPLES - 1;
        wrong[8].dims[1]++;
        wrong[9].dims[1] = -1;
        for (int i = 0; i < 10; i++)
            CHANGES_NOTHING(t, an_trainer_step_on(t, SAMPLES, end ? &in : &wrong[i], end ? &wrong[i] : &out, &good));
    }
    static const int64_t counts[] = {0, -1, SAMPLES - 1, SAMPLES + 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        CHANGES_NOTHING(t, an_trainer_step_on(t, counts[i], &in, &out, &good));
    CHANGES_NOTHING(t, an_trainer_step_on(t, SAMPLES, NULL, &out, &good));
    CHANGES_NOTHING(t, an_trainer_step_on(t, SAMPLES, &in, NULL, &good));
    CHANGES_NOTHING(t, an_trainer_step_on(t, SAMPLES, &in, &out, &unset));
    x[3][1] = NAN;
    CHANGES_NOTHING(t, an_trainer_step_on(t, SAMPLES, &in, &out, &good));
    an_trainer_destroy(&t);
}

static void test_failed_step_on_dense(void **state) {
    static const int64_t counts[] = {0, -1, INT64_MAX, INT64_MIN};
    an_step_metrics good, unset = {0};
    an_step_metrics_init(&good, sizeof good);
    (void)state;
    an_trainer *t = open_stream();
    OK(ctx, an_trainer_step_on_f32(t, SAMPLES, &x[0][0], &y[0][0], &good));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        CHANGES_NOTHING(t, an_trainer_step_on_f32(t, counts[i], &x[0][0], &y[0][0], &good));
        CHANGES_NOTHING(t, an_trainer_step_on_f64(t, counts[i], &wide_x[0][0], &wide_y[0][0], &good));
    }
    CHANGES_NOTHING(t, an_trainer_step_on_f32(t, SAMPLES, NULL, &y[0][0], &good));
    CHANGES_NOTHING(t, an_trainer_step_on_f32(t, SAMPLES, &x[0][0], NULL, &good));
    CHANGES_NOTHING(t, an_trainer_step_on_f32(t, SAMPLES, &x[0][0], &y[0][0], &unset));
    CHANGES_NOTHING(t, an_trainer_step_on_f64(t, SAMPLES, NULL, &wide_y[0][0], &good));
    CHANGES_NOTHING(t, an_trainer_step_on_f64(t, SAMPLES, &wide_x[0][0], NULL, &good));
    CHANGES_NOTHING(t, an_trainer_step_on_f64(t, SAMPLES, &wide_x[0][0], &wide_y[0][0], &unset));
    an_trainer_destroy(&t);
}

/* ---- a whole run ---- */

static an_status never_called(void *user, an_trainer *trainer, int64_t step) {
    (void)user, (void)trainer, (void)step;
    fail_msg("the run began");
    return AN_OK;
}

static void test_failed_run(void **state) {
    enum { WRONG = 15 };
    const an_run_callbacks callbacks = {.size = sizeof callbacks, .before_step = never_called}, unsized = {0};
    an_run_options wrong[WRONG];
    an_run_outcome good, unset = {0};
    an_run_outcome_init(&good, sizeof good);
    (void)state;
    an_trainer *t = open_table();
    OK(ctx, an_trainer_step(t, NULL));
    for (int i = 0; i < WRONG; i++) {
        wrong[i] = (an_run_options){DEFAULTS(an_run_options), .evaluate_every = 2};
        wrong[i].callbacks = &callbacks;
    }
    wrong[0].size = 0;
    wrong[1].size--;
    wrong[2].evaluate_every = -1;
    wrong[3].evaluate_seconds = -1;
    wrong[4].evaluate_seconds = NAN;
    wrong[5].max_seconds = -1;
    wrong[6].max_seconds = NAN;
    wrong[7].best = "accuracy";
    wrong[8].best_mode = (an_metric_better)9;
    wrong[9].early_stop = "accuracy";
    wrong[10].patience = -1;
    wrong[11].min_delta = -1;
    wrong[12].min_delta = NAN;
    wrong[13].callbacks = &unsized;
    wrong[14].early_stop = "val_loss", wrong[14].evaluate_every = 0;
    for (int i = 0; i < WRONG; i++) CHANGES_NOTHING(t, an_trainer_run(t, &wrong[i], &good));
    CHANGES_NOTHING(t, an_trainer_run(t, NULL, &unset));
    an_trainer_destroy(&t);
}

/* ---- a step by its parts, the trainer's own, so that the state has a hash ---- */

static void set_samples(const an_trainer *t) {
    const an_array in = array_of(x, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, INPUTS}),
                   out = array_of(y, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, OUTPUTS});
    OK(ctx, an_program_bind(t->program, "batch", SAMPLES));
    OK(ctx, an_program_set_input(t->program, "x", &in));
    OK(ctx, an_program_set_input(t->program, "targets", &out));
}

static void test_failed_parts_of_a_step(void **state) {
    an_step_metrics unset = {0};
    (void)state;
    an_trainer *t = open_stream();
    an_stepper *s = t->stepper;
    OK(ctx, an_trainer_step_on_f32(t, SAMPLES, &x[0][0], &y[0][0], NULL));
    CHANGES_NOTHING(t, an_step_begin(s, 0));
    CHANGES_NOTHING(t, an_step_begin(s, -1));
    CHANGES_NOTHING(t, an_step_micro_batch(s, 0, SAMPLES));
    CHANGES_NOTHING(t, an_step_reduce(s));
    CHANGES_NOTHING(t, an_step_update(s));
    OK(ctx, an_step_begin(s, SAMPLES * OUTPUTS));
    set_samples(t);
    CHANGES_NOTHING(t, an_step_micro_batch(s, -1, SAMPLES));
    CHANGES_NOTHING(t, an_step_micro_batch(s, 1, SAMPLES));
    CHANGES_NOTHING(t, an_step_micro_batch(s, 0, 0));
    CHANGES_NOTHING(t, an_step_micro_batch(s, 0, -1));
    CHANGES_NOTHING(t, an_step_begin(s, SAMPLES));
    OK(ctx, an_step_micro_batch(s, 0, SAMPLES));
    CHANGES_NOTHING(t, an_step_unscale(s));
    CHANGES_NOTHING(t, an_step_clip(s));
    OK(ctx, an_step_reduce(s));
    CHANGES_NOTHING(t, an_step_update(s));
    OK(ctx, an_step_unscale(s));
    OK(ctx, an_step_clip(s));
    CHANGES_NOTHING(t, an_step_schedule(s));
    OK(ctx, an_step_update(s));
    CHANGES_NOTHING(t, an_step_update(s));
    CHANGES_NOTHING(t, an_step_end(s, NULL));
    OK(ctx, an_step_schedule(s));
    CHANGES_NOTHING(t, an_step_end(s, &unset));
    OK(ctx, an_step_end(s, NULL));
    an_trainer_destroy(&t);
}

static void test_failed_optimizer(void **state) {
    enum { WRONG = 13 };
    an_update wrong[WRONG];
    double norm;
    (void)state;
    an_trainer *t = open_stream();
    an_optimizer *o = t->optimizer;
    OK(ctx, an_trainer_step_on_f32(t, SAMPLES, &x[0][0], &y[0][0], NULL));
    CHANGES_NOTHING(t, an_optimizer_norm(o, -1, &norm));
    CHANGES_NOTHING(t, an_optimizer_norm(o, NAN, &norm));
    CHANGES_NOTHING(t, an_optimizer_norm(o, INFINITY, &norm));
    CHANGES_NOTHING(t, an_optimizer_norm(o, 1, NULL));
    for (int i = 0; i < WRONG; i++) wrong[i] = (an_update){DEFAULTS(an_update), .rate = 1e-3};
    wrong[0].size = 0;
    wrong[1].rate = -1;
    wrong[2].rate = NAN;
    wrong[3].rate = INFINITY;
    wrong[4].beta_1 = 1;
    wrong[5].beta_1 = -1;
    wrong[6].scale = -1;
    wrong[7].scale = NAN;
    wrong[8].scale = INFINITY;
    wrong[9].clip_norm = -1;
    wrong[10].clip_norm = NAN;
    wrong[11].clip_value = -1;
    wrong[12].clip_value = NAN;
    for (int i = 0; i < WRONG; i++) CHANGES_NOTHING(t, an_optimizer_update(o, &wrong[i]));
    wrong[0] = (an_update){DEFAULTS(an_update), .rate = 1e-3, .clip_norm = 1};
    CHANGES_NOTHING(t, an_optimizer_update(o, &wrong[0])); /* no norm */
    CHANGES_NOTHING(t, an_optimizer_update(o, NULL));
    an_trainer_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_trainer_step), cmocka_unit_test(test_run_after_failed_steps_has_the_same_bits),
        cmocka_unit_test(test_failed_step_on),      cmocka_unit_test(test_failed_step_on_dense),
        cmocka_unit_test(test_failed_run),          cmocka_unit_test(test_failed_parts_of_a_step),
        cmocka_unit_test(test_failed_optimizer),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
