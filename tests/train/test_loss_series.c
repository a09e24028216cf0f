/* Weights of classes, the focal loss and the moving average of the weights against PyTorch: losses, norms of gradients,
 * weights and averages of a few steps, however a step is cut. The numbers are of tests/golden/training.py. */
#include <math.h>

#include "step/series.h"
#include "train/trainer.h"

#include "train/array_trainer.h"

enum { INPUTS = 4, CLASSES = 3, SAMPLES = 24, STEPS = 4, MOST = 32 };

static const double rate = 0.2, decay = 0.7;

static const struct {
    const char *name;
    int ndims;
    int64_t dims[2];
} tensors[] = {{"hidden.0.weight", 2, {6, 4}}, {"hidden.0.bias", 1, {6}},    {"hidden.1.weight", 2, {5, 6}},
               {"hidden.1.bias", 1, {5}},      {"output.weight", 2, {3, 5}}, {"output.bias", 1, {3}}};
enum { TENSORS = sizeof tensors / sizeof *tensors };

static double inputs[SAMPLES][INPUTS];
static int32_t classes[SAMPLES];

static void make_samples(void) {
    for (int i = 0; i < SAMPLES; i++) {
        classes[i] = class_of(i);
        for (int k = 0; k < INPUTS; k++) inputs[i][k] = ((i * INPUTS + k) * 7919 + 13) % 2003 / 1001.0 - 1;
    }
}

static an_array parameter_array(int number, double *values) {
    return array_of(values, AN_DTYPE_F64, tensors[number].ndims, tensors[number].dims);
}

static void set_weights(an_params *params) {
    for (int n = 0; n < TENSORS; n++) {
        double values[MOST];
        for (int i = 0; i < MOST; i++) values[i] = ((i * 31 + n * 17) % 101 - 50) / 50.0;
        const an_array array = parameter_array(n, values);
        OK(ctx, an_params_set(params, tensors[n].name, AN_PART_WEIGHT, &array));
    }
}

static void compare(const series_file *file, const char *run, const char *part, const double *got) {
    char name[96];
    double golden[MOST];
    snprintf(name, sizeof name, "%s.%s", run, part);
    const int count = series_read(file, name, golden, MOST);
    for (int i = 0; i < count; i++)
        if (!(fabs(got[i] - golden[i]) <= 1e-10 * (1 + fabs(golden[i]))))
            fail_msg("%s: number %d is %.17g, PyTorch has %.17g", name, i, got[i], golden[i]);
}

static void compare_run(const series_file *file, const char *name, const double *weights, double gamma,
                        const an_batch_options *batch) {
    const int64_t dims[] = {SAMPLES, INPUTS};
    const an_optimizer_options optimizer = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD};
    const an_group_options groups = {DEFAULTS(an_group_options), .weight_decay = 0};
    an_trainer_options options = few_steps(STEPS, batch);
    an_graph *graph = f64_mlp(AN_LOSS_CROSS_ENTROPY);
    double losses[STEPS], norms[STEPS];
    options.optimizer = &optimizer;
    options.groups = &groups;
    options.rate = rate;
    options.ema_decay = decay;
    options.class_weights = weights;
    options.class_weight_count = weights ? CLASSES : 0;
    OK(ctx, an_graph_set_focal(graph, gamma));
    array_trainer a = array_trainer_create(graph, array_of(inputs, AN_DTYPE_F64, 2, dims),
                                           array_of(classes, AN_DTYPE_I32, 1, dims), &options);
    an_params *params = an_trainer_params(a.trainer);
    set_weights(params);
    for (int step = 0; step < STEPS; step++) {
        const an_step_metrics metrics = array_trainer_step(&a);
        losses[step] = metrics.loss;
        norms[step] = metrics.norm;
    }
    compare(file, name, "losses", losses);
    compare(file, name, "norms", norms);
    for (int n = 0; n < TENSORS; n++) {
        char part[64];
        double values[MOST];
        an_array array = parameter_array(n, values);
        OK(ctx, an_params_get(params, tensors[n].name, AN_PART_WEIGHT, &array));
        compare(file, name, tensors[n].name, values);
        OK(ctx, an_params_get(params, tensors[n].name, AN_PART_AVERAGE, &array));
        snprintf(part, sizeof part, "ema.%s", tensors[n].name);
        compare(file, name, part, values);
    }
    array_trainer_destroy(&a);
}

static void test_pytorch_has_the_same_numbers(void **state) {
    static const struct {
        const char *name;
        double gamma;
    } focal[] = {{"0", 0}, {"0.5", 0.5}, {"2", 2}};
    static const double given[] = {0.25, 3, 1.7};
    static const an_batch_options cuts[] = {{.size = sizeof cuts[0], .global = SAMPLES},
                                            {.size = sizeof cuts[0], .global = SAMPLES, .micro = 5},
                                            {.size = sizeof cuts[0], .global = SAMPLES, .micro = 4, .leaves = 2}};
    series_file file = series_open("classes");
    double balanced[CLASSES] = {0};
    (void)state;
    make_samples();
    for (int i = 0; i < SAMPLES; i++) balanced[classes[i]]++;
    for (int c = 0; c < CLASSES; c++) balanced[c] = SAMPLES / (CLASSES * balanced[c]);
    const struct {
        const char *name;
        const double *weights;
    } kinds[] = {{"none", NULL}, {"given", given}, {"balanced", balanced}};
    for (int kind = 0; kind < 3; kind++)
        for (int f = 0; f < 3; f++)
            for (int cut = 0; cut < 3; cut++) {
                char name[32];
                snprintf(name, sizeof name, "%s.%s", kinds[kind].name, focal[f].name);
                compare_run(&file, name, kinds[kind].weights, focal[f].gamma, &cuts[cut]);
            }
    series_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pytorch_has_the_same_numbers)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
