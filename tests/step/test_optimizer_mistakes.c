/* What optimizers refuse: options, stores, groups, updates and norms that are not finite. A refusal leaves
 * the weights as they were. */
#include "exec/params.h"
#include "step/series.h"

static void test_mistakes_of_options(void **state) {
    (void)state;
    bench b;
    an_optimizer *none = NULL;
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, NULL);
#define REFUSED(words, ...)                                                                              \
    do {                                                                                                 \
        const an_optimizer_options options_ = {__VA_ARGS__};                                             \
        FAILS(b.ctx, an_optimizer_create(&none, b.params, b.groups, &options_), AN_ERR_ARGUMENT, words); \
        assert_null(none);                                                                               \
    } while (0)
    REFUSED("_init first", .beta_1 = 0.5);
    REFUSED("optimizer type 7 does not exist", DEFAULTS(an_optimizer_options), .type = (an_optimizer_type)7);
    REFUSED("beta_1 is 1 and beta_2 0.999", DEFAULTS(an_optimizer_options), .beta_1 = 1);
    REFUSED("beta_2 -0.5", DEFAULTS(an_optimizer_options), .beta_2 = -0.5);
    REFUSED("epsilon is -1e-08", DEFAULTS(an_optimizer_options), .epsilon = -1e-8);
    REFUSED("epsilon is 1e-60", DEFAULTS(an_optimizer_options), .epsilon = 1e-60); /* 0 in f32 */
    REFUSED("momentum and dampening are for sgd; adamw has betas", DEFAULTS(an_optimizer_options), .momentum = 0.9);
    REFUSED("momentum is -0.5", DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD, .momentum = -0.5);
    REFUSED("nesterov needs sgd with momentum", DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD,
            .nesterov = true);
    REFUSED("nesterov needs sgd with momentum", DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD,
            .momentum = 0.9, .dampening = 0.1, .nesterov = true);
    REFUSED("dampening is", DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD, .momentum = 0.9,
            .dampening = INFINITY);
#undef REFUSED
    bench_close(&b);
}

static void test_mistakes_of_the_store(void **state) {
    (void)state;
    an_optimizer *none = NULL;
    an_params *params = NULL;
    an_params_options store;
    an_params_options_init(&store, sizeof store);
    const an_optimizer_options sgd = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD},
                               momentum = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD, .momentum = 0.9};
    bench b;
    assert_int_equal(an_optimizer_moments(NULL), 2);
    assert_int_equal(an_optimizer_moments(&momentum), 1);
    assert_int_equal(an_optimizer_moments(&sgd), 0);
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, NULL);
    store.moments = 1;
    OK(b.ctx, an_params_create(&params, b.ctx, b.graph, &store));
    FAILS(b.ctx, an_optimizer_create(&none, params, b.groups, NULL), AN_ERR_STATE,
          "the parameters have 1 moments, but the optimizer needs 2");
    OK(b.ctx, an_optimizer_create(&none, params, b.groups, &momentum));
    an_optimizer_destroy(&none);
    an_params_destroy(&params);
    store.gradients = false;
    OK(b.ctx, an_params_create(&params, b.ctx, b.graph, &store));
    FAILS(b.ctx, an_optimizer_create(&none, params, b.groups, &sgd), AN_ERR_STATE,
          "the parameters were created without gradients");
    an_params_destroy(&params);
    bench_close(&b);
}

/* Groups must be those of the parameters. */
static void test_groups_of_another_graph(void **state) {
    (void)state;
    bench b;
    an_graph *other = NULL;
    an_groups *groups = NULL;
    an_optimizer *none = NULL;
    const an_group_rule rule = {DEFAULTS(an_group_rule), .match = "bias", .freeze = true};
    const an_group_options freezes = {DEFAULTS(an_group_options), .rule_count = 1, .rules = &rule};
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, NULL);
    OK(b.ctx, small_mlp(&other, b.ctx));
    OK(b.ctx, an_groups_create(&groups, other, NULL));
    FAILS(b.ctx, an_optimizer_create(&none, b.params, groups, NULL), AN_ERR_ARGUMENT,
          "these groups belong to another graph, or were created after the parameters: create the groups first");
    an_groups_destroy(&groups);
    OK(b.ctx, an_groups_create(&groups, b.graph, &freezes));
    FAILS(b.ctx, an_optimizer_create(&none, b.params, groups, NULL), AN_ERR_ARGUMENT,
          "these groups belong to another graph, or were created after the parameters: create the groups first");
    an_groups_destroy(&groups);
    an_graph_destroy(&other);
    bench_close(&b);
}

static void assert_unchanged(bench *b) {
    double numbers[MOST_ELEMENTS] = {0};
    for (int p = 0; p < PARAMETERS; p++) {
        series_get(b->ctx, b->params, p, AN_PART_WEIGHT, b->dtype, numbers);
        for (int64_t i = 0; i < series_parameters[p].elements; i++) {
            const double w = series_weight(p, i);
            assert_true(numbers[i] == (b->dtype == AN_DTYPE_F64 ? w : (double)(float)w));
        }
        series_get(b->ctx, b->params, p, AN_PART_MOMENT_1, b->dtype, numbers);
        for (int64_t i = 0; i < series_parameters[p].elements; i++) assert_true(numbers[i] == 0);
    }
    assert_int_equal(an_optimizer_updates(b->optimizer), 0);
}

static void test_mistakes_of_an_update(void **state) {
    (void)state;
    bench b;
    double norm;
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, NULL);
    bench_gradients(&b, 0, 1);
#define REFUSED(code, words, ...)                                              \
    do {                                                                       \
        const an_update update_ = {__VA_ARGS__};                               \
        FAILS(b.ctx, an_optimizer_update(b.optimizer, &update_), code, words); \
        assert_unchanged(&b);                                                  \
    } while (0)
    REFUSED(AN_ERR_ARGUMENT, "_init first", .rate = 0.1);
    REFUSED(AN_ERR_ARGUMENT, "the learning rate is -0.1", DEFAULTS(an_update), .rate = -0.1);
    REFUSED(AN_ERR_ARGUMENT, "the learning rate is", DEFAULTS(an_update), .rate = NAN);
    REFUSED(AN_ERR_ARGUMENT, "the learning rate is", DEFAULTS(an_update), .rate = INFINITY);
    REFUSED(AN_ERR_ARGUMENT, "clip_norm is -1", DEFAULTS(an_update), .rate = 0.1, .clip_norm = -1);
    REFUSED(AN_ERR_ARGUMENT, "and clip_value", DEFAULTS(an_update), .rate = 0.1, .clip_value = NAN);
    REFUSED(AN_ERR_ARGUMENT, "scale is -2", DEFAULTS(an_update), .rate = 0.1, .scale = -2);
    REFUSED(AN_ERR_ARGUMENT, "beta_1 is 1", DEFAULTS(an_update), .rate = 0.1, .beta_1 = 1);
    REFUSED(AN_ERR_ORDER, "clipping needs the norm of these gradients", DEFAULTS(an_update), .rate = 0.1,
            .clip_norm = 1);
    OK(b.ctx, an_optimizer_norm(b.optimizer, 8, &norm));
    REFUSED(AN_ERR_ORDER, "the norm was computed with scale 8, but the update has scale 1", DEFAULTS(an_update),
            .rate = 0.1, .clip_norm = 1);
    REFUSED(AN_ERR_ORDER, "the norm was computed with scale 8, but the update has scale 4", DEFAULTS(an_update),
            .rate = 0.1, .clip_norm = 1, .scale = 4);
    FAILS(b.ctx, an_optimizer_norm(b.optimizer, -1, &norm), AN_ERR_ARGUMENT, "scale is -1");
    FAILS(b.ctx, an_optimizer_norm(b.optimizer, NAN, &norm), AN_ERR_ARGUMENT, "scale is");
    /* An update uses the norm up: the next gradients need their own. */
    const an_update good = {DEFAULTS(an_update), .rate = 0.1, .clip_norm = 1};
    OK(b.ctx, an_optimizer_norm(b.optimizer, 1, &norm));
    OK(b.ctx, an_optimizer_update(b.optimizer, &good));
    FAILS(b.ctx, an_optimizer_update(b.optimizer, &good), AN_ERR_ORDER, "clipping needs the norm");
    bench_close(&b);
}

static void test_a_norm_that_is_not_finite_changes_nothing(void **state) {
    (void)state;
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    static const an_dtype types[] = {AN_DTYPE_F32, AN_DTYPE_F64};
    double numbers[MOST_ELEMENTS] = {0}, norm;
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < 3; k++) {
            bench b;
            bench_open(&b, types[t], NULL, NULL, NULL);
            bench_gradients(&b, 0, 1);
            for (int64_t i = 0; i < 2500; i++) numbers[i] = 1;
            numbers[2499] = bad[k];
            series_set(b.ctx, b.params, 0, AN_PART_GRADIENT, b.dtype, numbers);
            OK(b.ctx, an_optimizer_norm(b.optimizer, 2, &norm));
            assert_true(!isfinite(norm));
            REFUSED(AN_ERR_STATE, "so an update would destroy the weights", DEFAULTS(an_update), .rate = 0.1,
                    .scale = 2);
            REFUSED(AN_ERR_STATE, "so an update would destroy the weights", DEFAULTS(an_update), .rate = 0.1,
                    .scale = 2, .clip_norm = 1);
            /* With other gradients it goes on. */
            const an_update good = {DEFAULTS(an_update), .rate = 0.1};
            bench_gradients(&b, 0, 1);
            OK(b.ctx, an_optimizer_norm(b.optimizer, 1, &norm));
            OK(b.ctx, an_optimizer_update(b.optimizer, &good));
            bench_close(&b);
        }
}

/* Gradients of f32 whose squares do not fit in f32 are finite all the same. */
static void test_large_gradients_are_finite(void **state) {
    (void)state;
    bench b;
    double norm;
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, NULL);
    bench_gradients(&b, 0, 3e38);
    OK(b.ctx, an_optimizer_norm(b.optimizer, 1, &norm));
    assert_true(norm > 3e39 && isfinite(norm));
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes_of_options),
        cmocka_unit_test(test_mistakes_of_the_store),
        cmocka_unit_test(test_groups_of_another_graph),
        cmocka_unit_test(test_mistakes_of_an_update),
        cmocka_unit_test(test_a_norm_that_is_not_finite_changes_nothing),
        cmocka_unit_test(test_large_gradients_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
