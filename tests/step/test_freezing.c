/* Frozen parameters: no step changes them, whichever they are. */
#include "exec/params.h"
#include "step/series.h"

#include "step/groups_support.h" /* last, as its ctx would be shadowed */

enum { BATCH = 3 };

static void train(an_graph *g, an_params *params, an_optimizer *optimizer, int steps) {
    an_plan *plan = NULL;
    an_program *program = NULL;
    float x[BATCH * 4], y[BATCH * 2];
    OK(ctx, plan_for(&plan, ctx, g, "batch", BATCH, AN_PROGRAM_TRAINING));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "batch", BATCH));
    for (int i = 0; i < BATCH * 4; i++) x[i] = (float)noise((uint64_t)i);
    for (int i = 0; i < BATCH * 2; i++) y[i] = (float)noise((uint64_t)i + 99);
    const an_array inputs = array_of(x, AN_DTYPE_F32, 2, (const int64_t[]){BATCH, 4}),
                   targets = array_of(y, AN_DTYPE_F32, 2, (const int64_t[]){BATCH, 2});
    OK(ctx, an_program_set_input(program, "x", &inputs));
    OK(ctx, an_program_set_input(program, "y", &targets));
    for (int step = 0; step < steps; step++) {
        const an_update u = {DEFAULTS(an_update), .rate = 0.1, .clip_norm = 1};
        double norm;
        OK(ctx, an_program_run(program, AN_FORM_TRAIN_FIRST));
        OK(ctx, an_optimizer_norm(optimizer, 1, &norm));
        OK(ctx, an_optimizer_update(optimizer, &u));
    }
    an_program_destroy(&program);
    an_plan_destroy(&plan);
}

static void test_frozen_parameters(void **state) {
    (void)state;
    const an_group_rule rule = {DEFAULTS(an_group_rule), .match = "^fc1\\.", .freeze = true, .lr_scale = 3};
    const an_group_options o = {DEFAULTS(an_group_options), .weight_decay = 0.5, .rule_count = 1, .rules = &rule};
    an_graph *g = NULL;
    an_groups *groups = NULL;
    an_params *params = NULL;
    an_optimizer *optimizer = NULL;
    float before[2][64], after[2][64];
    OK(ctx, small_mlp(&g, ctx));
    OK(ctx, an_groups_create(&groups, g, &o));
    OK(ctx, an_graph_verify(g));
    an_group_info info = info_of(groups, "fc1.weight");
    assert_true(info.frozen && info.lr_scale == 0 && info.weight_decay == 0);
    assert_true(!info_of(groups, "fc2.weight").frozen);
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_params_reset(params, 3));
    assert_int_equal(params->sizes.trainable_elements, 2 * AN_PAGE); /* fc2.weight and fc2.bias */
    OK(ctx, an_optimizer_create(&optimizer, params, groups, NULL));
    an_array fc1 = array_of(before[0], AN_DTYPE_F32, 2, (const int64_t[]){16, 4}),
             fc2 = array_of(before[1], AN_DTYPE_F32, 2, (const int64_t[]){2, 16});
    OK(ctx, an_params_get(params, "fc1.weight", AN_PART_WEIGHT, &fc1));
    OK(ctx, an_params_get(params, "fc2.weight", AN_PART_WEIGHT, &fc2));
    train(g, params, optimizer, 3);
    fc1.data = after[0], fc2.data = after[1];
    OK(ctx, an_params_get(params, "fc1.weight", AN_PART_WEIGHT, &fc1));
    OK(ctx, an_params_get(params, "fc2.weight", AN_PART_WEIGHT, &fc2));
    assert_memory_equal(before[0], after[0], sizeof before[0]);
    for (int i = 0; i < 32; i++) assert_true(before[1][i] != after[1][i]);
    FAILS(ctx, an_params_get(params, "fc1.weight", AN_PART_GRADIENT, &fc1), AN_ERR_STATE, "frozen");
    FAILS(ctx, an_params_get(params, "fc1.weight", AN_PART_MOMENT_1, &fc1), AN_ERR_STATE, "frozen");
    double norm;
    OK(ctx, an_optimizer_norm(optimizer, 1, &norm));
    FAILS(ctx, an_optimizer_parameter_norm(optimizer, "fc1.weight", &norm), AN_ERR_STATE,
          "'fc1.weight' is frozen and has no gradient");
    an_optimizer_destroy(&optimizer);
    an_params_destroy(&params);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

/* A frozen parameter between others of one group, and everything frozen. */
static void test_frozen_in_between_and_all(void **state) {
    (void)state;
    for (int all = 0; all < 2; all++) {
        const an_group_rule rule = {DEFAULTS(an_group_rule), .match = all ? "." : "layer\\.weight", .freeze = true};
        const an_group_options o = {DEFAULTS(an_group_options), .weight_decay = 0, .rule_count = 1, .rules = &rule};
        const an_optimizer_options sgd = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD};
        const an_update u = {DEFAULTS(an_update), .rate = 1, .clip_norm = 1e9};
        double numbers[MOST_ELEMENTS] = {0}, norm;
        bench b;
        bench_open(&b, AN_DTYPE_F64, NULL, &o, &sgd);
        for (int p = 0; p < PARAMETERS && !all; p++) {
            if (p == 1) continue;
            for (int64_t i = 0; i < series_parameters[p].elements; i++) numbers[i] = series_gradient(p, i, 1);
            series_set(b.ctx, b.params, p, AN_PART_GRADIENT, b.dtype, numbers);
        }
        OK(b.ctx, an_optimizer_norm(b.optimizer, 1, &norm));
        assert_true(all ? norm == 0 : norm > 1);
        OK(b.ctx, an_optimizer_update(b.optimizer, &u));
        for (int p = 0; p < PARAMETERS; p++) {
            const bool frozen = all || p == 1;
            series_get(b.ctx, b.params, p, AN_PART_WEIGHT, b.dtype, numbers);
            for (int64_t i = 0; i < series_parameters[p].elements; i++)
                assert_true(numbers[i] == series_weight(p, i) - (frozen ? 0 : series_gradient(p, i, 1)));
        }
        bench_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frozen_parameters),
        cmocka_unit_test(test_frozen_in_between_and_all),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
