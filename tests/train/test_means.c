/* Means over samples (loss.reduction: sample_mean), against PyTorch: a micro-batch is one run, so batch norm sees all
 * of its samples, also those without targets. The model, its data and its weights are those of
 * tests/golden/training.py. */
#include "anneal/train.h"
#include "step/series.h"

enum { CHANNELS = 3, PLACES = 4, HIDDEN = 5, KINDS = 6, SAMPLES = 31, IGNORED = -100, STEPS = 3, TENSORS = 7 };
static const int64_t samples_of[STEPS] = {12, 12, 7}; /* the last step is short */

static an_context *ctx;
static ledger counted;

static int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

/* ---- data ---- */

static double inputs[SAMPLES * CHANNELS * PLACES], values[SAMPLES * PLACES * KINDS];
static int32_t labels[SAMPLES * PLACES];

static double number(int64_t i) {
    return (double)((i * 7919 + 13) % 2003 - 1001) / 1001;
}

static void make_data(bool unit) {
    const int64_t each = PLACES * KINDS;
    for (int64_t i = 0; i < SAMPLES * CHANNELS * PLACES; i++) inputs[i] = number(i);
    for (int64_t i = 0; i < SAMPLES * each; i++) {
        const double value = number((SAMPLES - 1 - i / each) * each + i % each);
        values[i] = unit ? (value + 1) / 2 : value;
    }
    for (int i = 0; i < SAMPLES; i++)
        for (int p = 0; p < PLACES; p++) labels[i * PLACES + p] = p < i * 3 % 5 ? (i * 3 + p) % KINDS : IGNORED;
}

/* ---- the model ---- */

typedef enum { CROSS_ENTROPY, CROSS_ENTROPY_FLAT, SQUARED, ABSOLUTE, HUBER, BINARY, LOSSES } loss_kind;
static const char *const loss_names[LOSSES] = {"cross_entropy",  "cross_entropy", "squared_error",
                                               "absolute_error", "huber_error",   "binary_cross_entropy"};

static an_value make_loss(an_graph *g, loss_kind kind, an_value y, an_value t) {
    switch (kind) {
    case CROSS_ENTROPY: return an_cross_entropy(g, y, t, NULL);
    case CROSS_ENTROPY_FLAT: /* targets that the loss reads in another shape than the model has them */
        return an_cross_entropy(g, an_reshape(g, y, 2, (an_dim[]){AN_REST, KINDS}),
                                an_reshape(g, t, 1, (an_dim[]){AN_REST}), NULL);
    case SQUARED: return an_squared_error(g, y, t);
    case ABSOLUTE: return an_absolute_error(g, y, t);
    case HUBER: return an_huber_error(g, y, t, 0.7);
    default: return an_binary_cross_entropy(g, y, t);
    }
}

static an_graph *make_graph(loss_kind kind, an_dtype dtype) {
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "means"));
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value x = an_input(g, "x", dtype, AN_DIMS(batch, CHANNELS, PLACES));
    const an_value t = kind <= CROSS_ENTROPY_FLAT ? an_input(g, "t", AN_DTYPE_I32, AN_DIMS(batch, PLACES))
                                                  : an_input(g, "t", dtype, AN_DIMS(batch, PLACES, KINDS));
    an_value h = an_transpose(g, an_batch_norm_layer(g, x, "bn", 0.1, 1e-5), 1, 2);
    h = an_relu(g, an_linear(g, h, "first", HIDDEN));
    an_graph_set_loss(g, make_loss(g, kind, an_linear_plain(g, h, "head", KINDS), t), t);
    OK(ctx, an_graph_verify(g));
    return g;
}

static const char *const names[TENSORS] = {"bn.weight",   "bn.bias",         "first.weight",  "first.bias",
                                           "head.weight", "bn.running_mean", "bn.running_var"};
static const int64_t shapes[TENSORS][2] = {{CHANNELS},      {CHANNELS}, {HIDDEN, CHANNELS}, {HIDDEN},
                                           {KINDS, HIDDEN}, {CHANNELS}, {CHANNELS}};

static int64_t elements_of(int tensor) {
    return shapes[tensor][0] * (shapes[tensor][1] ? shapes[tensor][1] : 1);
}

static void copy_tensor(an_params *params, int tensor, an_dtype dtype, bool set, double *numbers) {
    float f32[KINDS * HIDDEN];
    const int64_t n = elements_of(tensor);
    an_array array =
        array_of(dtype == AN_DTYPE_F64 ? (void *)numbers : f32, dtype, shapes[tensor][1] ? 2 : 1, shapes[tensor]);
    for (int64_t i = 0; set && i < n; i++) f32[i] = (float)numbers[i];
    OK(ctx, set ? an_params_set(params, names[tensor], AN_PART_WEIGHT, &array)
                : an_params_get(params, names[tensor], AN_PART_WEIGHT, &array));
    for (int64_t i = 0; !set && dtype != AN_DTYPE_F64 && i < n; i++) numbers[i] = (double)f32[i];
}

/* ---- a run ---- */

static const struct {
    const char *name;
    int64_t leaves, micro;
} cuts[] = {{"whole", 1, 12}, {"micro", 1, 5}, {"leaves", 2, 4}};
enum { CUTS = sizeof cuts / sizeof *cuts };

typedef struct {
    double losses[STEPS], tensors[TENSORS][KINDS * HIDDEN];
} outcome;

static an_dataset *make_dataset(an_dtype dtype, loss_kind kind) {
    static float f32_inputs[SAMPLES * CHANNELS * PLACES], f32_values[SAMPLES * PLACES * KINDS];
    an_dataset *dataset = NULL;
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    const bool f64 = dtype == AN_DTYPE_F64;
    for (int i = 0; i < SAMPLES * CHANNELS * PLACES; i++) f32_inputs[i] = (float)inputs[i];
    for (int i = 0; i < SAMPLES * PLACES * KINDS; i++) f32_values[i] = (float)values[i];
    const an_array arrays[] = {
        array_of(f64 ? (void *)inputs : f32_inputs, dtype, 3, (const int64_t[]){SAMPLES, CHANNELS, PLACES}),
        kind <= CROSS_ENTROPY_FLAT
            ? array_of(labels, AN_DTYPE_I32, 2, (const int64_t[]){SAMPLES, PLACES})
            : array_of(f64 ? (void *)values : f32_values, dtype, 3, (const int64_t[]){SAMPLES, PLACES, KINDS})};
    source.array_count = 2;
    source.arrays = arrays;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

static outcome run(loss_kind kind, int cut, an_dtype dtype, an_dtype precision, bool unfused) {
    outcome result = {0};
    an_trainer *trainer = NULL;
    an_trainer_options o;
    an_trainer_options_init(&o, sizeof o);
    an_optimizer_options optimizer;
    an_optimizer_options_init(&optimizer, sizeof optimizer);
    an_group_options groups;
    an_group_options_init(&groups, sizeof groups);
    make_data(kind == BINARY);
    an_graph *graph = make_graph(kind, dtype);
    an_dataset *dataset = make_dataset(dtype, kind);
    optimizer.type = AN_OPTIMIZER_SGD;
    groups.weight_decay = 0;
    o.batch = &(const an_batch_options){
        .size = sizeof(an_batch_options), .global = 12, .micro = cuts[cut].micro, .leaves = cuts[cut].leaves};
    o.epochs = 1;
    o.groups = &groups;
    o.optimizer = &optimizer;
    o.rate = 0.5;
    o.clip_norm = 0;
    o.precision = precision;
    o.fused = !unfused;
    o.sample_mean = true;
    const size_t before = counted.held;
    OK(ctx, an_trainer_create(&trainer, graph, dataset, NULL, &o));
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    OK(ctx, an_plan_memory_get(an_trainer_plan(trainer), &memory));
    assert_int_equal(counted.held - before, memory.peak); /* the weights of samples too */
    an_params *params = an_trainer_params(trainer);
    for (int n = 0; n < TENSORS - 2; n++) {
        double numbers[KINDS * HIDDEN];
        for (int64_t i = 0; i < elements_of(n); i++) numbers[i] = (double)((i * 31 + n * 17) % 101 - 50) / 50;
        copy_tensor(params, n, dtype, true, numbers);
    }
    for (int64_t step = 0, begin = 0; step < STEPS; begin += samples_of[step++]) {
        const int64_t n = samples_of[step];
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        const an_array x =
            array_of(inputs + begin * CHANNELS * PLACES, AN_DTYPE_F64, 3, (const int64_t[]){n, CHANNELS, PLACES});
        const an_array t =
            kind <= CROSS_ENTROPY_FLAT
                ? array_of(labels + begin * PLACES, AN_DTYPE_I32, 2, (const int64_t[]){n, PLACES})
                : array_of(values + begin * PLACES * KINDS, AN_DTYPE_F64, 3, (const int64_t[]){n, PLACES, KINDS});
        OK(ctx, an_trainer_step_on(trainer, n, &x, &t, &metrics));
        assert_int_equal(metrics.samples, n);
        assert_false(metrics.skipped);
        result.losses[step] = metrics.loss;
    }
    for (int n = 0; n < TENSORS; n++) copy_tensor(params, n, dtype, false, result.tensors[n]);
    an_trainer_destroy(&trainer);
    an_dataset_destroy(&dataset);
    an_graph_destroy(&graph);
    return result;
}

/* ---- against PyTorch ---- */

static void compare(const series_file *file, loss_kind kind, int cut, const char *part, const char *type,
                    const double *got, int64_t count, double tolerance) {
    double golden[KINDS * HIDDEN];
    char name[96];
    snprintf(name, sizeof name, "%s.%s.%s", loss_names[kind], cuts[cut].name, part);
    assert_int_equal(series_read(file, name, golden, KINDS * HIDDEN), count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - golden[i]) <= tolerance * (1 + fabs(golden[i]))))
            fail_msg("%s in %s: number %lld is %.9g, PyTorch has %.9g", name, type, (long long)i, got[i], golden[i]);
}

static void test_means_are_pytorchs(void **state) {
    static const struct {
        const char *name;
        an_dtype dtype, precision;
        double loss,
            tensors; /* tolerances; in low precision, rounding may take the input of a relu to the other side of 0 */
    } types[] = {{"f64", AN_DTYPE_F64, AN_DTYPE_NONE, 1e-12, 1e-12},
                 {"f32", AN_DTYPE_F32, AN_DTYPE_NONE, 2e-6, 1e-5},
                 {"bf16", AN_DTYPE_F32, AN_DTYPE_BF16, 2e-2, 3e-2},
                 {"f16", AN_DTYPE_F32, AN_DTYPE_F16, 5e-3, 2e-2}};
    series_file file = series_open("means");
    (void)state;
    for (int kind = 0; kind < LOSSES; kind++)
        for (int cut = 0; cut < CUTS; cut++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                const outcome o = run((loss_kind)kind, cut, types[t].dtype, types[t].precision, false);
                compare(&file, (loss_kind)kind, cut, "loss", types[t].name, o.losses, STEPS, types[t].loss);
                for (int n = 0; n < TENSORS; n++)
                    compare(&file, (loss_kind)kind, cut, names[n], types[t].name, o.tensors[n], elements_of(n),
                            types[t].tensors);
            }
    series_close(&file);
}

/* The loss with the last product has the bits of its parts, with weights too. */
static void test_fused_means_have_the_bits_of_their_parts(void **state) {
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16, AN_DTYPE_F16};
    (void)state;
    for (int cut = 0; cut < CUTS; cut++)
        for (int p = 0; p < 3; p++) {
            const outcome fused = run(CROSS_ENTROPY, cut, AN_DTYPE_F32, precisions[p], false),
                          parts = run(CROSS_ENTROPY, cut, AN_DTYPE_F32, precisions[p], true);
            assert_memory_equal(&fused, &parts, sizeof fused);
        }
}

/* ---- weights of a loss ---- */

static void test_weights_that_do_not_fit_are_refused(void **state) {
    static const struct {
        an_dtype dtype;
        int ndims;
        an_dim dims[2];
        const char *words;
    } cases[] = {{AN_DTYPE_F32, 1, {5}, "do not match targets"},
                 {AN_DTYPE_F32, 2, {4, 3}, "do not match targets"},
                 {AN_DTYPE_F64, 1, {4}, "use f32"},
                 {AN_DTYPE_I32, 1, {4}, "float"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_graph *g = NULL;
        OK(ctx, an_graph_create(&g, ctx, "weights"));
        const an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4, 2)),
                       t = an_input(g, "t", AN_DTYPE_F32, AN_DIMS(4, 2));
        an_weigh_loss(g, an_squared_error(g, x, t), an_input(g, "w", cases[i].dtype, cases[i].ndims, cases[i].dims));
        const an_status status = an_graph_verify(g);
        if (status == AN_OK || !strstr(an_last_error(ctx), cases[i].words))
            fail_msg("case %zu: %s: %s", i, an_status_name(status), an_last_error(ctx));
        an_graph_destroy(&g);
    }
}

/* A loss has weights once, and only a loss has. */
static void test_only_losses_are_weighed(void **state) {
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        an_graph *g = NULL;
        OK(ctx, an_graph_create(&g, ctx, "weights"));
        const an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4, 2)),
                       t = an_input(g, "t", AN_DTYPE_F32, AN_DIMS(4, 2)),
                       w = an_input(g, "w", AN_DTYPE_F32, AN_DIMS(4));
        const an_value loss = an_squared_error(g, x, t);
        an_weigh_loss(g, twice ? an_weigh_loss(g, loss, w) : x, w);
        FAILS(ctx, an_graph_verify(g), AN_ERR_ARGUMENT,
              "weights can only be added to a loss, such as the result of an_cross_entropy, that has none yet");
        an_graph_destroy(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_means_are_pytorchs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fused_means_have_the_bits_of_their_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_weights_that_do_not_fit_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_losses_are_weighed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
