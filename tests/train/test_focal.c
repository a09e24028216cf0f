/* The focal loss: its gradient is that of its loss, as a small step down shows, and targets that are
 * certain leave it finite. */
#include "train/trainer.h"

#include <math.h>

#include "train/array_trainer.h"

enum { INPUTS = 4, SAMPLES = 24 };

static double inputs[SAMPLES][INPUTS];
static int32_t classes[SAMPLES];

/* Losses of two steps of plain gradient descent, and the norm of the first. */
static void descend(double gamma, double rate, double size, double losses[2], double *norm) {
    const int64_t dims[] = {SAMPLES, INPUTS};
    const an_batch_options batch = {.size = sizeof batch, .global = SAMPLES, .micro = 5};
    const an_optimizer_options optimizer = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD};
    an_trainer_options options = few_steps(2, &batch);
    an_graph *graph = f64_mlp(AN_LOSS_CROSS_ENTROPY);
    for (int i = 0; i < SAMPLES; i++) {
        classes[i] = class_of(i);
        for (int k = 0; k < INPUTS; k++) inputs[i][k] = size * (sin(i * 7 + k * 3) + classes[i]);
    }
    options.optimizer = &optimizer;
    options.rate = rate;
    OK(ctx, an_graph_set_focal(graph, gamma));
    array_trainer a = array_trainer_create(graph, array_of(inputs, AN_DTYPE_F64, 2, dims),
                                           array_of(classes, AN_DTYPE_I32, 1, dims), &options);
    for (int step = 0; step < 2; step++) {
        const an_step_metrics metrics = array_trainer_step(&a);
        losses[step] = metrics.loss;
        if (step == 0) *norm = metrics.norm;
    }
    array_trainer_destroy(&a);
}

static void test_the_gradient_is_that_of_the_loss(void **state) {
    (void)state;
    static const double gammas[] = {0, 0.3, 1, 2, 5};
    const double rate = 1e-5;
    double plain = 0;
    for (int i = 0; i < 5; i++) {
        double losses[2], norm;
        descend(gammas[i], rate, 1, losses, &norm);
        const double fell = (losses[0] - losses[1]) / (rate * norm * norm);
        if (!(fabs(fell - 1) < 1e-3))
            fail_msg("gamma %g: the loss fell by %g of what its gradient says", gammas[i], fell);
        if (i == 0) plain = losses[0];
        assert_true(i == 0 || losses[0] < plain);
    }
}

/* Logits so far apart that the probability of a target is 1 or 0. */
static void test_certain_targets_are_finite(void **state) {
    (void)state;
    double losses[2], norm;
    descend(0.5, 1e-12, 1e4, losses, &norm);
    assert_true(isfinite(losses[0]) && isfinite(losses[1]) && isfinite(norm));
}

static void test_what_is_refused(void **state) {
    (void)state;
    an_mlp_options model = small_mlp_options();
    an_graph *graph = NULL;
    OK(ctx, an_model_mlp(&graph, ctx, &model));
    FAILS(ctx, an_graph_set_focal(graph, -1), AN_ERR_ARGUMENT, "the focal exponent is -1; it must be 0 to 100");
    FAILS(ctx, an_graph_set_focal(graph, NAN), AN_ERR_ARGUMENT, "must be 0 to 100");
    OK(ctx, an_graph_set_label_smoothing(graph, 0.1));
    FAILS(ctx, an_graph_set_focal(graph, 2), AN_ERR_ARGUMENT, "has no label smoothing");
    an_graph_destroy(&graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_gradient_is_that_of_the_loss),
        cmocka_unit_test(test_certain_targets_are_finite),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
