/* The nodes of a plan: together they have the parameters and the cost of the whole, and each knows the
 * layer that it belongs to. */
#include <math.h>
#include <string.h>

#include "anneal/models.h"
#include "anneal/plan.h"
#include "support/support.h"

enum { BATCH = 4, TOKENS = 6, WIDTH = 8, VOCABULARY = 17, LAYERS = 2, MOST_PARAMETERS = 64 };

typedef struct {
    an_context *ctx;
    an_graph *g;
    an_plan *plan;
} rig;

static void rig_up(rig *r) {
    const char *const symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {BATCH, TOKENS};
    an_plan_options plan;
    an_gpt2_options options;
    an_plan_options_init(&plan, sizeof plan);
    an_gpt2_options_init(&options, sizeof options);
    options.layers = LAYERS;
    options.heads = 2;
    options.width = WIDTH;
    options.context = TOKENS;
    options.vocabulary = VOCABULARY;
    *r = (rig){0};
    assert_int_equal(an_context_create(&r->ctx, NULL), AN_OK);
    OK(r->ctx, an_model_gpt2(&r->g, r->ctx, &options));
    plan.symbols = symbols;
    plan.maxima = maxima;
    plan.symbol_count = 2;
    plan.precision = AN_DTYPE_BF16; /* so that weights have a second node, for their low copies */
    OK(r->ctx, an_plan_create(&r->plan, r->ctx, r->g, &plan));
}

static void rig_down(rig *r) {
    an_plan_destroy(&r->plan);
    an_graph_destroy(&r->g);
    an_context_destroy(&r->ctx);
}

static an_plan_node node_at(const rig *r, int64_t index) {
    an_plan_node node;
    an_plan_node_init(&node, sizeof node);
    OK(r->ctx, an_plan_node_get(r->plan, AN_FORM_TRAIN_FIRST, index, &node));
    return node;
}

static void test_sums(void **state) {
    rig r;
    bool seen[MOST_PARAMETERS] = {false};
    int64_t parameters = 0, instructions = 0, again = 0;
    double flops = 0, bytes = 0;
    an_plan_cost cost;
    (void)state;
    rig_up(&r);
    an_plan_cost_init(&cost, sizeof cost);
    OK(r.ctx, an_plan_cost_get(r.plan, AN_FORM_TRAIN_FIRST, &cost));
    const int64_t count = an_plan_node_count(r.plan, AN_FORM_TRAIN_FIRST);
    assert_int_equal(count, cost.nodes);
    for (int64_t i = 0; i < count; i++) {
        const an_plan_node node = node_at(&r, i);
        assert_non_null(node.path);
        instructions += node.runs;
        flops += node.flops;
        bytes += node.bytes;
        assert_true(node.parameter < MOST_PARAMETERS && (node.parameter < 0) == (node.elements == 0));
        if (node.parameter < 0) continue;
        assert_true(!node.runs && node.trainable && node.flops == 0);
        again += seen[node.parameter];
        if (!seen[node.parameter]) parameters += node.elements;
        seen[node.parameter] = true;
    }
    assert_int_equal(parameters, an_graph_parameter_elements(r.g));
    assert_true(again > 0); /* low copies */
    assert_int_equal(instructions, cost.instructions);
    assert_true(flops > 0 && fabs(flops - cost.flops) < 1e-9 * cost.flops);
    assert_true(fabs(bytes - cost.bytes) < 1e-9 * cost.bytes);
    rig_down(&r);
}

/* The product of the first layer of the MLP is fused with what follows it, and is still that layer's. */
static void test_layers(void **state) {
    rig r;
    int products = 0, outside = 0;
    (void)state;
    rig_up(&r);
    for (int64_t i = 0; i < an_plan_node_count(r.plan, AN_FORM_TRAIN_FIRST); i++) {
        const an_plan_node node = node_at(&r, i);
        if (strncmp(node.path, "h.", 2) != 0) {
            if (!*node.path) assert_string_equal(node.block, "");
            outside += node.runs && !*node.path;
            continue;
        }
        assert_true(!strncmp(node.path, node.block, strlen("h.0")) && strlen(node.block) == strlen("h.0"));
        if (node.backward || !node.runs || strcmp(node.path, "h.1.mlp.c_fc") != 0) continue;
        products++;
        assert_int_equal(node.ndims, 3);
        assert_int_equal(node.dims[0], BATCH);
        assert_int_equal(node.dims[1], TOKENS);
        assert_int_equal(node.dims[2], 4 * WIDTH);
    }
    assert_int_equal(products, 1);
    assert_true(outside > 0);
    rig_down(&r);
}

static void test_refused(void **state) {
    rig r;
    an_plan_node node;
    (void)state;
    rig_up(&r);
    an_plan_node_init(&node, sizeof node);
    const int64_t count = an_plan_node_count(r.plan, AN_FORM_TRAIN_FIRST);
    FAILS(r.ctx, an_plan_node_get(r.plan, AN_FORM_TRAIN_FIRST, count, &node), AN_ERR_ARGUMENT, "does not exist");
    FAILS(r.ctx, an_plan_node_get(r.plan, AN_FORM_TRAIN_FIRST, -1, &node), AN_ERR_ARGUMENT, "does not exist");
    FAILS(r.ctx, an_plan_node_get(r.plan, AN_FORM_PREDICT, 0, &node), AN_ERR_ARGUMENT, "does not have this form");
    assert_int_equal(an_plan_node_count(r.plan, AN_FORM_PREDICT), 0);
    assert_int_equal(an_plan_node_count(r.plan, AN_FORM_LIMIT), 0);
    rig_down(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
