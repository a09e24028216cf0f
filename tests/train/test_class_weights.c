/* Weights of classes: a class of weight 2 is trained on as if each of its samples were there twice; only ratios matter,
 * and how a step is cut into micro-batches and leaves does not. */
#include "train/trainer.h"

#include <math.h>

#include "train/array_trainer.h"

enum { INPUTS = 4, CLASSES = 3, SAMPLES = 24, MOST = 3 * SAMPLES };

static double inputs[MOST][INPUTS];
static int32_t classes[MOST];

/* Each sample as often as its class says; how many there are. */
static int64_t make_samples(const int copies[CLASSES]) {
    int64_t count = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int copy = 0; copy < copies[class_of(i)]; copy++, count++) {
            classes[count] = class_of(i);
            for (int k = 0; k < INPUTS; k++) inputs[count][k] = sin(i * 7 + k * 3) + classes[count];
        }
    return count;
}

typedef struct {
    double loss, norm;
    double later; /* loss, of the second step */
} outcome;

static outcome train(int64_t count, const double *weights, int64_t micro, int64_t leaves) {
    const int64_t dims[] = {count, INPUTS};
    const an_batch_options batch = {.size = sizeof batch, .global = count, .micro = micro, .leaves = leaves};
    an_trainer_options options = few_steps(2, &batch);
    options.class_weights = weights;
    options.class_weight_count = weights ? CLASSES : 0;
    array_trainer a = array_trainer_create(f64_mlp(AN_LOSS_CROSS_ENTROPY), array_of(inputs, AN_DTYPE_F64, 2, dims),
                                           array_of(classes, AN_DTYPE_I32, 1, dims), &options);
    const an_step_metrics first = array_trainer_step(&a), second = array_trainer_step(&a);
    array_trainer_destroy(&a);
    return (outcome){.loss = first.loss, .norm = first.norm, .later = second.loss};
}

static void check_same(const outcome *a, const outcome *b, double close) {
    if (!(fabs(a->loss / b->loss - 1) < close && fabs(a->norm / b->norm - 1) < close &&
          fabs(a->later / b->later - 1) < close))
        fail_msg("loss %.17g, norm %.17g, later loss %.17g are not %.17g, %.17g, %.17g", a->loss, a->norm, a->later,
                 b->loss, b->norm, b->later);
}

static void test_a_weight_is_a_number_of_copies(void **state) {
    (void)state;
    const double weights[] = {1, 3, 2};
    const int64_t copies = make_samples((const int[]){1, 3, 2});
    const outcome copied = train(copies, NULL, 0, 1);
    const int64_t count = make_samples((const int[]){1, 1, 1});
    const outcome weighed = train(count, weights, 0, 1), plain = train(count, NULL, 0, 1);
    check_same(&weighed, &copied, 1e-11);
    assert_true(fabs(weighed.loss / plain.loss - 1) > 1e-4);
    const double scaled[] = {0.7, 2.1, 1.4}, equal[] = {5, 5, 5};
    const outcome other = train(count, scaled, 0, 1), same = train(count, equal, 0, 1);
    check_same(&other, &weighed, 1e-9);
    check_same(&same, &plain, 1e-11);
}

static void test_cuts_do_not_matter(void **state) {
    (void)state;
    const double weights[] = {0.01, 3, 200};
    const int64_t count = make_samples((const int[]){1, 1, 1});
    const outcome whole = train(count, weights, 0, 1);
    for (int64_t micro = 1; micro < 9; micro += 3)
        for (int64_t leaves = 1; leaves < 9; leaves *= 2) {
            const outcome cut = train(count, weights, micro, leaves);
            check_same(&cut, &whole, 1e-11);
        }
}

static void refuse(const double *weights, int64_t count, const char *words) {
    const int64_t samples = make_samples((const int[]){1, 1, 1}), dims[] = {samples, INPUTS};
    const an_batch_options batch = {.size = sizeof batch, .global = samples};
    an_trainer_options options = few_steps(1, &batch);
    array_trainer a;
    options.class_weights = weights;
    options.class_weight_count = count;
    an_status status = array_trainer_try(&a, f64_mlp(AN_LOSS_CROSS_ENTROPY), array_of(inputs, AN_DTYPE_F64, 2, dims),
                                         array_of(classes, AN_DTYPE_I32, 1, dims), &options);
    if (status == AN_OK) status = an_trainer_step(a.trainer, NULL);
    FAILS(ctx, status, AN_ERR_ARGUMENT, words);
    array_trainer_destroy(&a);
}

static void test_what_is_refused(void **state) {
    (void)state;
    refuse((const double[]){1, 0, 1}, CLASSES, "the weight of class 1 is 0; it must be a number above 0");
    refuse((const double[]){1, 1, NAN}, CLASSES, "the weight of class 2 is");
    refuse((const double[]){1, 1e-12, 1}, CLASSES, "less than a billionth");
    refuse((const double[]){1}, 1, "but there are weights for 1 classes");
    refuse(NULL, CLASSES, "class_weights is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_weight_is_a_number_of_copies),
        cmocka_unit_test(test_cuts_do_not_matter),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
