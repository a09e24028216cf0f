/* The leaves pass: which sums over samples are added by leaves, and why a run has one leaf where they cannot be. */
#include "ir/verify.h"
#include "pass/pass.h"
#include "pass/shard.h"
#include "support/own_ops.h"

static bool extras;    /* a run is not a whole step */
static an_reach reach; /* of steep_relu and its gradient op */

#define HEAD "ang 1\ngraph \"m\"\nsymbol batch\nsymbol tokens\n"

static an_graph *compile(an_context *ctx, const char *text) {
    an_graph *g = NULL;
    an_flat_sizes sizes;
    an_own_op op = steep_record(), diff = steep_diff_record();
    op.reach = diff.reach = reach;
    OK(ctx, an_context_add_op(ctx, &op));
    OK(ctx, an_context_add_op(ctx, &diff));
    OK(ctx, an_graph_parse(&g, ctx, text, strlen(text)));
    OK(ctx, an_graph_verify(g));
    for (size_t i = 0; i < g->dimensions.symbol_count; i++) OK(ctx, an_graph_bind(g, g->dimensions.symbols[i].name, 8));
    OK(ctx, an_graph_lay_out(g, true, &sizes));
    const an_pass_options options = {
        .form = AN_FORM_TRAIN_FIRST, .unfused = true, .leaves = 8, .samples = "batch", .extras = extras};
    for (const an_pass *p = an_pass_table; p->name; p++) {
        OK(ctx, p->run(g, &options));
        OK(ctx, an_graph_check(g));
        if (!strcmp(p->name, "select")) break;
    }
    return g;
}

/* The ops of the nodes that add by leaves, in order. */
static void check_sums(const char *text, const char *expected) {
    an_context *ctx = NULL;
    char found[512] = "";
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    an_graph *g = compile(ctx, text);
    if (g->one_leaf) fail_msg("one leaf: %s", g->one_leaf);
    for (const an_node *n = g->first; n; n = n->next)
        if (n->leaf_sum)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", *found ? " " : "", n->op->name);
    assert_string_equal(found, expected);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

static void check_refused(const char *text, const char *reason) {
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    an_graph *g = compile(ctx, text);
    if (!g->one_leaf || !strstr(g->one_leaf, reason))
        fail_msg("'%s' is not in: %s", reason, g->one_leaf ? g->one_leaf : "(nothing)");
    for (const an_node *n = g->first; n; n = n->next) assert_null(n->leaf_sum);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

static void test_sums_over_samples_are_found(void **state) {
    (void)state;
    check_sums(HEAD "%x = input(name=\"x\") : f32[batch,4]\n"
                    "%y = input(name=\"y\") : f32[batch,2]\n"
                    "%w = param(name=\"w\") : f32[4,2]\n"
                    "%b = param(name=\"b\") : f32[2]\n"
                    "%p = matmul(%x, %w)\n"
                    "%o = bias(%p, %b, axis=1)\n"
                    "output(%o, name=\"out\")\n"
                    "%l = squared_error(%o, %y)\n"
                    "loss %l targets %y\n",
               "squared_error reduce_sum matmul");
    /* tokens of samples are rows; a table, and a view of a gradient on its way */
    check_sums(HEAD "%x = input(name=\"x\") : i32[batch,tokens]\n"
                    "%y = input(name=\"y\") : f32[batch,tokens,2]\n"
                    "%t = param(name=\"t\") : f32[8,4]\n"
                    "%n = param(name=\"n\") : f32[4]\n"
                    "%w = param(name=\"w\") : f32[2,2,4]\n"
                    "%e = embedding(%x, %t)\n"
                    "%r, %i = rms_norm(%e, %n)\n"
                    "%v = slice(%w, axis=0, begin=1, end=2)\n"
                    "%u = reshape(%v, dims=[2,4])\n"
                    "%o = matmul(%r, %u, transpose_b=true)\n"
                    "output(%o, name=\"out\")\n"
                    "%l = squared_error(%o, %y)\n"
                    "loss %l targets %y\n",
               "squared_error matmul rms_norm_diff_weights embedding_diff");
    /* samples that pick from a parameter */
    check_sums(HEAD "%x = input(name=\"x\") : i32[batch,4]\n"
                    "%y = input(name=\"y\") : f32[batch,4]\n"
                    "%w = param(name=\"w\") : f32[9,4]\n"
                    "%o = gather(%w, %x, axis=0)\n"
                    "output(%o, name=\"out\")\n"
                    "%l = squared_error(%o, %y)\n"
                    "loss %l targets %y\n",
               "squared_error gather_diff");
}

/* A gradient of what broadcasting repeated is negated before it is added, and a maximum over other axes is of each
 * sample. */
static void test_sums_come_last(void **state) {
    (void)state;
    check_sums(HEAD "%x = input(name=\"x\") : f32[batch,tokens,4]\n"
                    "%y = input(name=\"y\") : f32[batch,4]\n"
                    "%s = param(name=\"s\") : f32[4]\n"
                    "%d = param(name=\"d\") : f32[4]\n"
                    "%c = subtract(%x, %s)\n"
                    "%q = divide(%c, %d)\n"
                    "%o = reduce_max(%q, axes=[1])\n"
                    "output(%o, name=\"out\")\n"
                    "%l = squared_error(%o, %y)\n"
                    "loss %l targets %y\n",
               "squared_error reduce_sum reduce_sum");
}

/* A parameter that is read twice has two gradients, each with a tree of its own. */
static void test_a_shared_parameter(void **state) {
    (void)state;
    static const char text[] = HEAD "%x = input(name=\"x\") : f32[batch,4]\n"
                                    "%y = input(name=\"y\") : f32[batch,4]\n"
                                    "%v = param(name=\"v\") : f32[4,4]\n"
                                    "%w = param(name=\"w\") : f32[40,40]\n"
                                    "%z = param(name=\"z\") : f32[4,4]\n"
                                    "%s = slice(%w, axis=0, begin=0, end=4)\n"
                                    "%t = slice(%s, axis=1, begin=0, end=4)\n"
                                    "%h = matmul(%x, %v)\n"
                                    "%i = matmul(%h, %t)\n"
                                    "%j = matmul(%i, %z)\n"
                                    "%o = matmul(%j, %v)\n"
                                    "output(%o, name=\"out\")\n"
                                    "%l = squared_error(%o, %y)\n"
                                    "loss %l targets %y\n";
    check_sums(text, "squared_error matmul matmul matmul matmul");
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    extras = true;
    an_graph *g = compile(ctx, text);
    extras = false;
    const an_parameter *v = &g->parameters[0];
    assert_true(v->is_shared);
    assert_int_equal(v->extras, 1);
    assert_int_equal(v->extra, 4 * AN_PAGE);
    assert_int_equal(g->parameters[1].extras + g->parameters[2].extras, 0);
    int first = 0, second = 0;
    for (const an_node *n = g->first; n; n = n->next) {
        if (strcmp(n->op->name, "grad") != 0) continue;
        assert_false(*(const bool *)an_node_attribute(n, "add", AN_ATTRIBUTE_BOOL));
        first += an_gradient_offset(g, n) == v->offset;
        second += an_gradient_offset(g, n) == v->extra;
    }
    assert_int_equal(first, 1);
    assert_int_equal(second, 1);
    an_unit units[4];
    int extra_units;
    assert_int_equal(an_units_find(g, units, &extra_units, NULL), 3);
    assert_int_equal(extra_units, 1);
    assert_int_equal(units[2].begin, 4 * AN_PAGE);
    assert_int_equal(units[2].end, 5 * AN_PAGE);
    assert_int_equal(units[2].turn, 0);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

static void test_what_is_no_tree_has_one_leaf(void **state) {
    (void)state;
    const char *const inputs = HEAD "%x = input(name=\"x\") : f32[batch,4]\n"
                                    "%y = input(name=\"y\") : f32[batch,4]\n";
    char text[2048];
    /* a gradient that is computed with after it was added */
    snprintf(text, sizeof text, "%s%%w = param(name=\"w\") : f32[4,4]\n%%e = exp(%%w)\n%%o = matmul(%%x, %%e)\n%s",
             inputs, "output(%o, name=\"out\")\n%l = squared_error(%o, %y)\nloss %l targets %y\n");
    check_refused(text, "computes with a sum over samples");
    /* samples that see each other */
    snprintf(text, sizeof text,
             "%s%%w = param(name=\"w\") : f32[4,4]\n%%h = matmul(%%x, %%w)\n%%o = softmax(%%h, axis=0)\n%s", inputs,
             "output(%o, name=\"out\")\n%l = squared_error(%o, %y)\nloss %l targets %y\n");
    check_refused(text, "softmax at '' may compute a sample from others");
    snprintf(text, sizeof text,
             "%s%%w = param(name=\"w\") : f32[4,4]\n%%h = matmul(%%x, %%w)\n%%s = matmul(%%h, %%x, transpose_b=true)\n"
             "%%o = matmul(%%s, %%h)\n%s",
             inputs, "output(%o, name=\"out\")\n%l = squared_error(%o, %y)\nloss %l targets %y\n");
    check_refused(text, "has more than one axis of samples");
}

/* A sample may pick from others, or be picked by them. */
static void test_samples_that_are_picked(void **state) {
    (void)state;
    check_refused(HEAD "%x = input(name=\"x\") : i32[batch,4]\n"
                       "%y = input(name=\"y\") : f32[batch,4]\n"
                       "%w = param(name=\"w\") : f32[4,4]\n"
                       "%h = matmul(%y, %w)\n"
                       "%o = gather(%h, %x, axis=0)\n"
                       "output(%o, name=\"out\")\n"
                       "%l = squared_error(%o, %y)\n"
                       "loss %l targets %y\n",
                  "gather at '' may compute a sample from others");
}

/* An op of the program says how far it reaches. */
static void test_ops_of_the_program(void **state) {
    static const char text[] = HEAD "%x = input(name=\"x\") : f32[batch,4]\n"
                                    "%y = input(name=\"y\") : f32[batch,4]\n"
                                    "%w = param(name=\"w\") : f32[4,4]\n"
                                    "%h = matmul(%x, %w)\n"
                                    "%o = steep_relu(%h, slope=2)\n"
                                    "output(%o, name=\"out\")\n"
                                    "%l = squared_error(%o, %y)\n"
                                    "loss %l targets %y\n";
    (void)state;
    for (reach = AN_REACH_SAMPLE; reach <= AN_REACH_ELEMENT; reach++) check_sums(text, "squared_error matmul");
    reach = AN_REACH_ALL;
    check_refused(text, "steep_relu at '' may compute a sample from others");
}

/* A reshape that takes samples apart puts them into another order. */
static void test_samples_must_stay_outside(void **state) {
    (void)state;
    check_refused(HEAD "%x = input(name=\"x\") : f32[batch,tokens,4]\n"
                       "%y = input(name=\"y\") : f32[batch,tokens,2]\n"
                       "%w = param(name=\"w\") : f32[4,2]\n"
                       "%t = transpose(%x, axes=[1,0,2])\n"
                       "%c = contiguous(%t)\n"
                       "%r = reshape(%c, dims=[batch*tokens,4])\n"
                       "%p = matmul(%r, %w)\n"
                       "%o = reshape(%p, dims=[batch,tokens,2])\n"
                       "output(%o, name=\"out\")\n"
                       "%l = squared_error(%o, %y)\n"
                       "loss %l targets %y\n",
                  "may compute a sample from others");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_over_samples_are_found), cmocka_unit_test(test_sums_come_last),
        cmocka_unit_test(test_a_shared_parameter),          cmocka_unit_test(test_what_is_no_tree_has_one_leaf),
        cmocka_unit_test(test_samples_that_are_picked),     cmocka_unit_test(test_samples_must_stay_outside),
        cmocka_unit_test(test_ops_of_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
