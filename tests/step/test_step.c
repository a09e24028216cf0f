/* A step by its parts: the order that it insists on, batches that are cut in any way, leaves, running statistics. */
#include "anneal/models.h"
#include "anneal/train.h"
#include "exec/params.h"
#include "models/small_models.h"

enum { SAMPLES = 16, TOKENS = 12, IGNORED = -100 };

/* ---- a model in training ---- */

typedef struct {
    an_graph *graph;
    an_groups *groups;
    an_plan *plan;
    an_params *params;
    an_program *program;
    an_optimizer *optimizer;
    an_stepper *stepper;
} training;

static void training_create(training *t, an_graph *graph, const an_stepper_options *options) {
    const char *symbols[2];
    const int64_t maxima[] = {SAMPLES, TOKENS};
    an_plan_options o;
    an_plan_options_init(&o, sizeof o);
    *t = (training){.graph = graph};
    while (o.symbol_count < 2 && (symbols[o.symbol_count] = an_graph_symbol_name(graph, o.symbol_count)))
        o.symbol_count++;
    o.symbols = symbols;
    o.maxima = maxima;
    o.programs = AN_PROGRAM_TRAINING;
    OK(ctx, an_groups_create(&t->groups, graph, NULL));
    OK(ctx, an_graph_verify(graph));
    OK(ctx, an_plan_create(&t->plan, ctx, graph, &o));
    OK(ctx, an_params_create(&t->params, ctx, graph, NULL));
    OK(ctx, an_params_reset(t->params, 7));
    OK(ctx, an_program_create(&t->program, t->plan, t->params));
    OK(ctx, an_optimizer_create(&t->optimizer, t->params, t->groups, NULL));
    OK(ctx, an_stepper_create(&t->stepper, t->program, t->optimizer, NULL, options));
}

static void training_destroy(training *t) {
    an_stepper_destroy(&t->stepper);
    an_optimizer_destroy(&t->optimizer);
    an_program_destroy(&t->program);
    an_params_destroy(&t->params);
    an_plan_destroy(&t->plan);
    an_groups_destroy(&t->groups);
    an_graph_destroy(&t->graph);
}

/* ---- ragged sequences: sample i has 1 + 5 i mod 12 targets ---- */

static int64_t targets_of(int64_t sample) {
    return 1 + sample * 5 % TOKENS;
}

static int64_t targets_in(int64_t samples) {
    int64_t count = 0;
    for (int64_t i = 0; i < samples; i++) count += targets_of(i);
    return count;
}

static void set_sequences(const training *t, int64_t begin, int64_t count) {
    int32_t tokens[SAMPLES * TOKENS], targets[SAMPLES * TOKENS];
    const int64_t dims[] = {count, TOKENS};
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < TOKENS; k++) {
            const int64_t sample = begin + i;
            tokens[i * TOKENS + k] = (int32_t)((sample * 7 + k * 3) % 11);
            targets[i * TOKENS + k] = k < targets_of(sample) ? (int32_t)((sample * 5 + k) % 11) : IGNORED;
        }
    const an_array token_array = array_of(tokens, AN_DTYPE_I32, 2, dims);
    const an_array target_array = array_of(targets, AN_DTYPE_I32, 2, dims);
    OK(ctx, an_program_bind(t->program, "batch", count));
    OK(ctx, an_program_set_input(t->program, "tokens", &token_array));
    OK(ctx, an_program_set_input(t->program, "targets", &target_array));
}

static an_graph *make_gpt(void) {
    an_graph *graph = NULL;
    const an_gpt2_options options = small_gpt2();
    OK(ctx, an_model_gpt2(&graph, ctx, &options));
    return graph;
}

/* Samples 0 … n - 1 in leaves of equal numbers, each leaf in micro-batches of at most `micro`; up to the reduction. */
static void accumulate(const training *t, int64_t n, int64_t leaves, int64_t micro) {
    OK(ctx, an_step_begin(t->stepper, targets_in(n)));
    for (int64_t leaf = 0; leaf < leaves; leaf++) {
        const int64_t end = (leaf + 1) * n / leaves;
        for (int64_t at = leaf * n / leaves; at < end; at += micro) {
            const int64_t count = end - at < micro ? end - at : micro;
            set_sequences(t, at, count);
            OK(ctx, an_step_micro_batch(t->stepper, leaf, count));
        }
    }
    OK(ctx, an_step_reduce(t->stepper));
}

static an_step_metrics finish(const training *t) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_step_unscale(t->stepper));
    OK(ctx, an_step_clip(t->stepper));
    OK(ctx, an_step_update(t->stepper));
    OK(ctx, an_step_schedule(t->stepper));
    OK(ctx, an_step_end(t->stepper, &metrics));
    return metrics;
}

/* All of one part of the parameters, one after another. The caller frees it. */
static float *read_part(const training *t, an_param_part part, int64_t *count) {
    *count = an_graph_parameter_elements(t->graph);
    float *all = malloc((size_t)*count * sizeof *all), *at = all;
    assert_non_null(all);
    for (int64_t i = 0; i < an_params_count(t->params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(t->params, i, &info));
        an_array array = array_of(at, AN_DTYPE_F32, info.ndims, info.dims);
        OK(ctx, an_params_get(t->params, info.name, part, &array));
        at += info.elements;
    }
    assert_int_equal(at - all, *count);
    return all;
}

/* ---- how a batch is cut ---- */

static void test_cuts_of_a_batch_agree(void **state) {
    static const int64_t sizes[] = {16, 8, 4, 1};
    float *whole = NULL;
    double loss = 0, norm = 0;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        training t;
        int64_t n;
        training_create(&t, make_gpt(), NULL);
        accumulate(&t, SAMPLES, 1, sizes[i]);
        float *gradients = read_part(&t, AN_PART_GRADIENT, &n);
        const an_step_metrics metrics = finish(&t);
        if (!whole) {
            whole = gradients;
            loss = metrics.loss;
            norm = metrics.norm;
        }
        for (int64_t k = 0; k < n; k++) assert_true(fabsf(gradients[k] - whole[k]) <= 1e-6F);
        assert_true(fabs(metrics.loss - loss) < 1e-6);
        assert_true(fabs(metrics.norm - norm) < 1e-6);
        assert_int_equal(metrics.targets, targets_in(SAMPLES));
        assert_int_equal(metrics.samples, SAMPLES);
        if (gradients != whole) free(gradients);
        training_destroy(&t);
    }
    free(whole);
}

/* The loss of a step is the mean over its targets, not the mean of its micro-batches' means, which is another
 * number. */
static void test_loss_is_a_mean_over_targets(void **state) {
    double sum = 0, mean_of_means = 0, loss;
    training t;
    (void)state;
    training_create(&t, make_gpt(), NULL);
    for (int64_t i = 0; i < SAMPLES; i++) {
        set_sequences(&t, i, 1);
        OK(ctx, an_program_run(t.program, AN_FORM_TRAIN_FIRST));
        OK(ctx, an_program_loss(t.program, &loss));
        sum += loss;
        mean_of_means += loss / (double)targets_of(i) / SAMPLES;
    }
    accumulate(&t, SAMPLES, 1, 4);
    const an_step_metrics metrics = finish(&t);
    assert_true(fabs(metrics.loss - sum / (double)targets_in(SAMPLES)) < 1e-6);
    assert_true(fabs(metrics.loss - mean_of_means) > 1e-4);
    training_destroy(&t);
}

/* ---- leaves ---- */

/* What the tree must give, from leaves that ran alone: the same recursion as in the design, nothing shared with the
 * code. */
static bool add_range(float *const *leaves, const bool *present, int64_t begin, int64_t end, int64_t n, float *out) {
    if (end - begin == 1) {
        if (present[begin]) memcpy(out, leaves[begin], (size_t)n * sizeof *out);
        return present[begin];
    }
    float *right = malloc((size_t)n * sizeof *right);
    assert_non_null(right);
    const int64_t middle = (begin + end) / 2;
    const bool has_left = add_range(leaves, present, begin, middle, n, out);
    const bool has_right = add_range(leaves, present, middle, end, n, right);
    for (int64_t k = 0; has_right && k < n; k++) out[k] = has_left ? out[k] + right[k] : right[k];
    free(right);
    return has_left || has_right;
}

enum { LEAVES = 8 };

static void check_leaves(int64_t n_samples) {
    an_stepper_options options;
    an_stepper_options_init(&options, sizeof options);
    training t;
    float *leaves[LEAVES] = {NULL};
    bool present[LEAVES] = {false};
    int64_t n;
    training_create(&t, make_gpt(), NULL);
    for (int64_t leaf = 0; leaf < LEAVES; leaf++) {
        const int64_t begin = leaf * n_samples / LEAVES, end = (leaf + 1) * n_samples / LEAVES;
        present[leaf] = end > begin;
        if (!present[leaf]) continue;
        OK(ctx, an_step_begin(t.stepper, targets_in(n_samples)));
        set_sequences(&t, begin, end - begin);
        OK(ctx, an_step_micro_batch(t.stepper, 0, end - begin));
        leaves[leaf] = read_part(&t, AN_PART_GRADIENT, &n);
        an_step_cancel(t.stepper);
    }
    training_destroy(&t);

    options.leaves = LEAVES;
    training_create(&t, make_gpt(), &options);
    accumulate(&t, n_samples, LEAVES, SAMPLES);
    float *got = read_part(&t, AN_PART_GRADIENT, &n), *expected = malloc((size_t)n * sizeof *expected);
    assert_non_null(expected);
    assert_true(add_range(leaves, present, 0, LEAVES, n, expected));
    assert_memory_equal(got, expected, (size_t)n * sizeof *got);
    finish(&t);
    accumulate(&t, n_samples, LEAVES, SAMPLES); /* a second step finds every buffer in order */
    finish(&t);
    training_destroy(&t);
    free(got);
    free(expected);
    for (int i = 0; i < LEAVES; i++) free(leaves[i]);
}

static void test_leaves_are_added_in_one_tree(void **state) {
    (void)state;
    check_leaves(16);
    check_leaves(8);
}

/* 5 samples in 8 leaves: three leaves have none. */
static void test_leaves_of_a_short_step_are_absent(void **state) {
    (void)state;
    for (int64_t n = 1; n < LEAVES; n++) check_leaves(n);
}

/* ---- the order ---- */

typedef enum { BEGIN, MICRO, REDUCE, UNSCALE, CLIP, UPDATE, SCHEDULE, END, CALLS } call;

static an_status make_call(const training *t, call c) {
    switch (c) {
    case BEGIN: return an_step_begin(t->stepper, targets_in(2));
    case MICRO: return an_step_micro_batch(t->stepper, 0, 2);
    case REDUCE: return an_step_reduce(t->stepper);
    case UNSCALE: return an_step_unscale(t->stepper);
    case CLIP: return an_step_clip(t->stepper);
    case UPDATE: return an_step_update(t->stepper);
    case SCHEDULE: return an_step_schedule(t->stepper);
    default: return an_step_end(t->stepper, NULL);
    }
}

/* From every place of a step, every call that does not come next is refused, and the step goes on as if nothing was
 * said. */
static void test_every_wrong_order_is_refused(void **state) {
    static const bool allowed[CALLS + 1][CALLS] = {
        /* after nothing */ {[BEGIN] = true},
        [BEGIN + 1] = {[MICRO] = true},
        [MICRO + 1] = {[MICRO] = true, [REDUCE] = true},
        [REDUCE + 1] = {[UNSCALE] = true},
        [UNSCALE + 1] = {[CLIP] = true, [UPDATE] = true},
        [CLIP + 1] = {[UPDATE] = true},
        [UPDATE + 1] = {[SCHEDULE] = true},
        [SCHEDULE + 1] = {[END] = true},
        [END + 1] = {[BEGIN] = true},
    };
    training t, alone;
    int64_t n;
    (void)state;
    training_create(&t, make_gpt(), NULL);
    training_create(&alone, make_gpt(), NULL);
    for (int after = 0; after <= CALLS; after++) {
        for (int c = 0; c < CALLS; c++)
            if (!allowed[after][c]) {
                assert_int_equal(make_call(&t, (call)c), AN_ERR_ORDER);
                assert_non_null(strstr(an_last_error(ctx), "an_step_"));
            }
        if (after == CALLS) break;
        set_sequences(&t, 0, 2);
        OK(ctx, make_call(&t, (call)after));
        set_sequences(&alone, 0, 2);
        OK(ctx, make_call(&alone, (call)after));
    }
    float *a = read_part(&t, AN_PART_WEIGHT, &n), *b = read_part(&alone, AN_PART_WEIGHT, &n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    free(a);
    free(b);
    training_destroy(&t);
    training_destroy(&alone);
}

#define MESSAGE(call_, words)                                 \
    do {                                                      \
        assert_int_equal(make_call(&t, call_), AN_ERR_ORDER); \
        assert_non_null(strstr(an_last_error(ctx), words));   \
    } while (0)

static void test_messages_of_wrong_orders(void **state) {
    training t;
    (void)state;
    training_create(&t, make_gpt(), NULL);
    MESSAGE(MICRO, "the divisor of the loss must be known before the first micro-batch: call an_step_begin first");
    OK(ctx, make_call(&t, BEGIN));
    MESSAGE(UPDATE, "complete and unscaled");
    MESSAGE(BEGIN, "has not ended");
    set_sequences(&t, 0, 2);
    OK(ctx, make_call(&t, MICRO));
    OK(ctx, make_call(&t, REDUCE));
    MESSAGE(CLIP, "clipping scaled gradients would use the wrong norm: call an_step_unscale first");
    MESSAGE(MICRO, "the gradients of this step are already reduced; another micro-batch would not be part of them");
    OK(ctx, make_call(&t, UNSCALE));
    MESSAGE(UNSCALE, "too small");
    MESSAGE(SCHEDULE, "the schedule advances after the update; otherwise the first learning rate would never be used");
    OK(ctx, make_call(&t, UPDATE));
    MESSAGE(UPDATE, "take the step twice");
    MESSAGE(CLIP, "this step is already clipped or updated, so clipping would change nothing");
    training_destroy(&t);
}

static void test_step_without_targets_is_refused(void **state) {
    training t;
    (void)state;
    training_create(&t, make_gpt(), NULL);
    assert_int_equal(an_step_begin(t.stepper, 0), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "every label of its batch is masked"));
    training_destroy(&t);
}

/* ---- running statistics ---- */

static an_graph *make_normed_mlp(void) {
    an_graph *graph = NULL;
    an_mlp_options options = small_mlp_options();
    options.batch_norm = true;
    OK(ctx, an_model_mlp(&graph, ctx, &options));
    return graph;
}

static void set_vectors(const training *t, int64_t begin, int64_t count) {
    float x[SAMPLES * 4];
    int32_t targets[SAMPLES];
    const int64_t dims[] = {count, 4};
    for (int64_t i = 0; i < count; i++) {
        targets[i] = (int32_t)((begin + i) % 3);
        for (int64_t k = 0; k < 4; k++) x[i * 4 + k] = (float)((begin + i) * 5 % 7 - k * (begin + i) % 3);
    }
    const an_array x_array = array_of(x, AN_DTYPE_F32, 2, dims);
    const an_array target_array = array_of(targets, AN_DTYPE_I32, 1, dims);
    OK(ctx, an_program_bind(t->program, "batch", count));
    OK(ctx, an_program_set_input(t->program, "x", &x_array));
    OK(ctx, an_program_set_input(t->program, "targets", &target_array));
}

/* Micro-batches of 4 and 2 samples: one update of the running mean with the mean over both, weighted 4 : 2. */
static void test_running_statistics_move_once_a_step(void **state) {
    static const char name[] = "hidden.0.norm.running_mean";
    float statistics[2][6], running[6];
    const int64_t dims[] = {6};
    training t;
    (void)state;
    training_create(&t, make_normed_mlp(), NULL);
    an_array array = array_of(running, AN_DTYPE_F32, 1, dims);
    OK(ctx, an_step_begin(t.stepper, 6));
    for (int i = 0; i < 2; i++) {
        an_array statistic = array_of(statistics[i], AN_DTYPE_F32, 1, dims);
        set_vectors(&t, i * 4, i ? 2 : 4);
        OK(ctx, an_step_micro_batch(t.stepper, 0, i ? 2 : 4));
        OK(ctx, an_program_get_output(t.program, name, &statistic));
    }
    OK(ctx, an_params_get(t.params, name, AN_PART_WEIGHT, &array));
    for (int k = 0; k < 6; k++) assert_true(running[k] == 0); /* not before the step is made */
    OK(ctx, an_step_reduce(t.stepper));
    const uint64_t version = t.params->version;
    finish(&t);
    assert_int_equal(t.params->version, version + 1); /* by the update alone: copies of weights are made once a step */
    OK(ctx, an_params_get(t.params, name, AN_PART_WEIGHT, &array));
    for (int k = 0; k < 6; k++) {
        const double mean = ((double)statistics[0][k] * 4 + (double)statistics[1][k] * 2) / 6;
        assert_true(fabs((double)running[k] - 0.1 * mean) < 1e-6);
    }
    training_destroy(&t);
}

/* ---- what is not finite ---- */

static void plant(const training *t, float value) {
    float weights[6 * 4];
    const int64_t dims[] = {6, 4};
    an_array array = array_of(weights, AN_DTYPE_F32, 2, dims);
    OK(ctx, an_params_get(t->params, "hidden.0.weight", AN_PART_WEIGHT, &array));
    weights[3] = value;
    OK(ctx, an_params_set(t->params, "hidden.0.weight", AN_PART_WEIGHT, &array));
}

static an_graph *make_mlp(void) {
    an_graph *graph = NULL;
    const an_mlp_options options = small_mlp_options();
    OK(ctx, an_model_mlp(&graph, ctx, &options));
    return graph;
}

static void test_gradient_that_is_not_finite_changes_nothing(void **state) {
    training t;
    int64_t n;
    (void)state;
    training_create(&t, make_mlp(), NULL);
    plant(&t, NAN);
    float *before = read_part(&t, AN_PART_WEIGHT, &n);
    OK(ctx, an_step_begin(t.stepper, 4));
    set_vectors(&t, 0, 4);
    OK(ctx, an_step_micro_batch(t.stepper, 0, 4));
    OK(ctx, an_step_reduce(t.stepper));
    assert_int_equal(an_step_unscale(t.stepper), AN_ERR_NONFINITE);
    assert_non_null(strstr(an_last_error(ctx), "nothing was updated"));
    float *after = read_part(&t, AN_PART_WEIGHT, &n);
    assert_memory_equal(before, after, (size_t)n * sizeof *before);
    free(before);
    free(after);
    training_destroy(&t);
}

/* A step that the scaler skips leaves weights, schedule and AdamW's t as they were, and halves the scale. */
static void test_skipped_step_advances_nothing_but_the_scale(void **state) {
    an_stepper_options options;
    an_stepper_options_init(&options, sizeof options);
    training t;
    int64_t n;
    (void)state;
    options.scales = true;
    training_create(&t, make_mlp(), &options);
    plant(&t, INFINITY);
    float *before = read_part(&t, AN_PART_WEIGHT, &n);
    OK(ctx, an_step_begin(t.stepper, 4));
    set_vectors(&t, 0, 4);
    OK(ctx, an_step_micro_batch(t.stepper, 0, 4));
    OK(ctx, an_step_reduce(t.stepper));
    an_step_metrics metrics = finish(&t);
    assert_true(metrics.skipped && metrics.scale == 65536);
    assert_int_equal(an_optimizer_updates(t.optimizer), 0);
    float *after = read_part(&t, AN_PART_WEIGHT, &n);
    assert_memory_equal(before, after, (size_t)n * sizeof *before);
    plant(&t, 0);
    OK(ctx, an_step_begin(t.stepper, 4));
    OK(ctx, an_step_micro_batch(t.stepper, 0, 4));
    OK(ctx, an_step_reduce(t.stepper));
    metrics = finish(&t);
    assert_true(!metrics.skipped && metrics.scale == 32768);
    assert_int_equal(an_optimizer_updates(t.optimizer), 1);
    free(before);
    free(after);
    training_destroy(&t);
}

/* With a power of two as scale, f32 gradients are the same bits after unscaling: so are the weights. */
static void test_scale_does_not_change_the_step(void **state) {
    float *weights[2];
    int64_t n = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        an_stepper_options options;
        an_stepper_options_init(&options, sizeof options);
        training t;
        options.scales = i == 1;
        training_create(&t, make_gpt(), &options);
        for (int step = 0; step < 3; step++) {
            accumulate(&t, SAMPLES, 1, 4);
            finish(&t);
        }
        weights[i] = read_part(&t, AN_PART_WEIGHT, &n);
        training_destroy(&t);
    }
    assert_memory_equal(weights[0], weights[1], (size_t)n * sizeof *weights[0]);
    free(weights[0]);
    free(weights[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts_of_a_batch_agree),
        cmocka_unit_test(test_loss_is_a_mean_over_targets),
        cmocka_unit_test(test_leaves_are_added_in_one_tree),
        cmocka_unit_test(test_leaves_of_a_short_step_are_absent),
        cmocka_unit_test(test_every_wrong_order_is_refused),
        cmocka_unit_test(test_messages_of_wrong_orders),
        cmocka_unit_test(test_step_without_targets_is_refused),
        cmocka_unit_test(test_running_statistics_move_once_a_step),
        cmocka_unit_test(test_gradient_that_is_not_finite_changes_nothing),
        cmocka_unit_test(test_skipped_step_advances_nothing_but_the_scale),
        cmocka_unit_test(test_scale_does_not_change_the_step),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
