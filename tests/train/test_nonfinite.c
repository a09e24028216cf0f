/* A number that is not finite stops a run before the update, and the message names where it came from. */
#include "train/trainer_support.h"

/* Steps until one fails; its message must have these words. */
static void expect_nonfinite(run *r, const char *words) {
    an_status status = AN_OK;
    hash before = {""}, after;
    while (status == AN_OK && an_trainer_next_step(r->trainer) < an_trainer_steps(r->trainer)) {
        OK(ctx, an_trainer_weights_hash(r->trainer, before.text));
        status = an_trainer_step(r->trainer, NULL);
    }
    assert_int_equal(status, AN_ERR_NONFINITE);
    print_message("%s\n", an_last_error(ctx));
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    OK(ctx, an_trainer_weights_hash(r->trainer, after.text));
    assert_string_equal(before.text, after.text);
}

static void test_nan_in_a_weight_is_named(void **state) {
    const an_trainer_options o = usual_options();
    const int64_t dims[] = {5, 6};
    float weight[5 * 6];
    an_array array = array_of(weight, AN_DTYPE_F32, 2, dims);
    run r;
    (void)state;
    run_create(&r, &o, 0);
    OK(ctx, an_trainer_step(r.trainer, NULL));
    OK(ctx, an_params_get(an_trainer_params(r.trainer), "hidden.1.weight", AN_PART_WEIGHT, &array));
    weight[17] = NAN;
    OK(ctx, an_params_set(an_trainer_params(r.trainer), "hidden.1.weight", AN_PART_WEIGHT, &array));
    expect_nonfinite(&r, "a weight: 'hidden.1.weight', element 17");
    assert_non_null(strstr(an_last_error(ctx), "\n  1: "));
    run_destroy(&r);
}

static void test_nan_in_a_sample_is_named(void **state) {
    const an_trainer_options o = usual_options();
    const float was = inputs[40][2];
    run r;
    (void)state;
    inputs[40][2] = NAN;
    run_create(&r, &o, 0);
    expect_nonfinite(&r, "input 'x' of sample 40, element 2");
    inputs[40][2] = was;
    run_destroy(&r);
}

/* A norm without epsilon over constant input divides by zero. */
static void test_first_node_that_is_not_finite_is_named(void **state) {
    const an_trainer_options o = usual_options();
    run r;
    (void)state;
    r.training = make_dataset(0, TRAINING);
    r.evaluation = NULL;
    OK(ctx, an_graph_create(&r.graph, ctx, "norm"));
    const an_dim batch = an_symbol_dim(r.graph, "batch");
    an_value x = an_input(r.graph, "x", AN_DTYPE_F32, AN_DIMS(batch, INPUTS));
    an_value targets = an_input(r.graph, "targets", AN_DTYPE_I32, AN_DIMS(batch));
    x = an_scale(r.graph, x, 0); /* constant */
    x = an_layer_norm_layer(r.graph, x, "middle", 0);
    an_graph_set_loss(r.graph, an_cross_entropy(r.graph, an_linear(r.graph, x, "head", CLASSES), targets, NULL),
                      targets);
    OK(ctx, an_trainer_create(&r.trainer, r.graph, r.training, NULL, &o));
    expect_nonfinite(&r, "the first node whose output is not finite is layer_norm at 'middle'");
    run_destroy(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan_in_a_weight_is_named),
        cmocka_unit_test(test_nan_in_a_sample_is_named),
        cmocka_unit_test(test_first_node_that_is_not_finite_is_named),
    };
    make_data();
    return cmocka_run_group_tests(tests, setup, teardown);
}
