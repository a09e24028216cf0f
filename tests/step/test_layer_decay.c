/* Layer decay: the deeper a parameter lies, the smaller its learning rate. */
#include "ir/graph.h"
#include "step/groups_support.h"

static void check_depths(an_graph *g, int blocks, const char *block, const char *const *names, const int *depths,
                         int count) {
    const double d = 0.8;
    const an_group_options o = {DEFAULTS(an_group_options), .layer_decay = d};
    const int last = blocks + 1;
    const size_t prefix = strlen(block);
    an_groups *groups = NULL;
    OK(ctx, an_groups_create(&groups, g, &o));
    for (size_t i = 0; i < g->parameter_count; i++) {
        const char *name = g->parameters[i].name;
        int depth = -1;
        if (!strncmp(name, block, prefix)) depth = (int)strtol(name + prefix, NULL, 10) + 1;
        for (int k = 0; k < count; k++)
            if (!strcmp(names[k], name)) depth = depths[k];
        if (depth < 0) fail_msg("'%s' has no depth here", name);
        const double expected = pow(d, last - depth), got = info_of(groups, name).lr_scale;
        if (!(fabs(got - expected) <= 1e-15)) fail_msg("'%s' has the factor %.17g, not %.17g", name, got, expected);
    }
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

static void test_layer_decay(void **state) {
    (void)state;
    check_depths(gpt2(), 2, "h.", (const char *const[]){"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"},
                 (const int[]){0, 0, 3, 3}, 4);
    check_depths(llama(true), 3, "model.layers.",
                 (const char *const[]){"model.embed_tokens.weight", "model.norm.weight"}, (const int[]){0, 4}, 2);
    check_depths(llama(false), 3, "model.layers.",
                 (const char *const[]){"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"},
                 (const int[]){0, 4, 4}, 3);
    assert_int_equal(warned.count, 0);
}

static void test_layer_decay_out_of_range(void **state) {
    (void)state;
    an_graph *g = gpt2();
    an_groups *groups = NULL;
    an_group_options o;
    an_group_options_init(&o, sizeof o);
    static const double refused[] = {-0.5, 0, NAN, INFINITY}, unusual[] = {0.49, 1.01}, usual[] = {0.5, 1};
    for (int i = 0; i < 4; i++) {
        o.layer_decay = refused[i];
        FAILS(ctx, an_groups_create(&groups, g, &o), AN_ERR_ARGUMENT, "layer_decay is");
        assert_null(groups);
    }
    for (int i = 0; i < 2; i++) {
        warned = (warnings){0};
        o.layer_decay = unusual[i];
        OK(ctx, an_groups_create(&groups, g, &o));
        assert_int_equal(warned.count, 1);
        assert_non_null(strstr(warned.text, i ? "layer_decay is 1.01: every layer gets 1.01 times the learning rate of "
                                                "the one after it (0.85 to 0.95 is usual)"
                                              : "layer_decay is 0.49: every layer gets 0.49 times the learning rate of "
                                                "the one after it (0.85 to 0.95 is usual)"));
        an_groups_destroy(&groups);
    }
    warned = (warnings){0};
    for (int i = 0; i < 2; i++) {
        o.layer_decay = usual[i];
        OK(ctx, an_groups_create(&groups, g, &o));
        an_groups_destroy(&groups);
    }
    assert_int_equal(warned.count, 0);
    an_graph_destroy(&g);
}

static void test_layer_decay_without_blocks_is_refused(void **state) {
    an_graph *g = NULL;
    an_groups *groups = NULL;
    an_group_options o = {DEFAULTS(an_group_options), .layer_decay = 0.9};
    (void)state;
    OK(ctx, small_mlp(&g, ctx)); /* two layers, and no an_block_begin */
    FAILS(ctx, an_groups_create(&groups, g, &o), AN_ERR_ARGUMENT, "layer_decay is 0.9, but the model");
    FAILS(ctx, an_groups_create(&groups, g, &o), AN_ERR_ARGUMENT, "has no blocks of different depth");
    assert_null(groups);
    o.layer_decay = 1;
    OK(ctx, an_groups_create(&groups, g, &o));
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

/* Depths may be anything in a graph that was read from a file. */
static void test_layer_decay_of_any_depth(void **state) {
    (void)state;
    const an_group_options o = {DEFAULTS(an_group_options), .layer_decay = 0.9};
    an_graph *g = NULL;
    an_groups *groups = NULL;
    OK(ctx, an_graph_create(&g, ctx, "deep"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4, 4)), y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(4, 4));
    an_block_begin(g, "low", INT32_MIN);
    x = an_linear(g, x, "fc", 4);
    an_block_end(g);
    an_block_begin(g, "high", INT32_MAX);
    x = an_linear(g, x, "fc", 4);
    an_block_end(g);
    an_graph_set_loss(g, an_squared_error(g, x, y), y);
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_groups_create(&groups, g, &o));
    assert_true(info_of(groups, "low.fc.weight").lr_scale == 0);
    assert_true(info_of(groups, "high.fc.weight").lr_scale == 1);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_decay),
        cmocka_unit_test(test_layer_decay_out_of_range),
        cmocka_unit_test(test_layer_decay_without_blocks_is_refused),
        cmocka_unit_test(test_layer_decay_of_any_depth),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
