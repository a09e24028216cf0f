/* The recompute pass on small graphs: what is kept, what is copied and from what, and what never is. That nothing of it
 * changes bits is shown in tests/exec/test_recompute.c. */
#include "ir/text_support.h"
#include "ir/verify.h"
#include "ops/sink.h"
#include "pass/memory.h"
#include "pass/recompute.h"

/* What recompute needs of the passes before it: ops stay as they are written. */
static void run_passes(an_graph *g, const an_pass_options *options) {
    static an_status (*const passes[])(an_graph * g, const an_pass_options *options) = {
        an_pass_program, an_pass_autodiff, an_pass_simplify, an_pass_prune, an_pass_select, an_pass_recompute};
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        OK(ctx, passes[i](g, options));
        OK(ctx, an_graph_check(g));
    }
}

/* Runs the pass and checks what it must leave behind whatever the mode. */
static void recompute(an_graph *g, an_pass_options options) {
    an_flat_sizes sizes;
    for (size_t i = 0; i < g->dimensions.symbol_count; i++) OK(ctx, an_graph_bind(g, g->dimensions.symbols[i].name, 8));
    OK(ctx, an_graph_lay_out(g, true, &sizes));
    run_passes(g, &options);
    for (const an_node *n = g->first; n; n = n->next) {
        if (!n->is_copy) continue;
        assert_ptr_equal(n->op, n->origin->op);
        assert_ptr_equal(n->kernel, n->origin->kernel);
        assert_int_equal(n->scratch_bytes, n->origin->scratch_bytes);
        assert_int_equal(n->block, n->origin->block);
        assert_int_equal(n->phase, AN_PHASE_BACKWARD);
        assert_same_attributes(g, g, n, n->origin);
        assert_false(n->op->flags & (AN_OP_SOURCE | AN_OP_SINK | AN_OP_COMMUNICATION | AN_OP_NO_COPY));
    }
    check_dump_round_trip(g);
}

static an_graph *recomputed(const char *text, an_pass_options options) {
    an_graph *g = must_parse(text);
    OK(ctx, an_graph_verify(g));
    recompute(g, options);
    return g;
}

/* The copies in their order, as "op@path" or, at the top, "op". */
static const char *copies(const an_graph *g) {
    static char words[4096];
    size_t length = 0;
    words[0] = 0;
    for (const an_node *n = g->first; n; n = n->next)
        if (n->is_copy)
            length += (size_t)snprintf(words + length, sizeof words - length, "%s%s%s%s", length ? " " : "",
                                       n->op->name, *n->path ? "@" : "", n->path);
    return words;
}

static const an_node *find(const an_graph *g, const char *op, bool is_copy) {
    for (const an_node *n = g->first; n; n = n->next)
        if (!strcmp(n->op->name, op) && n->is_copy == is_copy) return n;
    fail_msg("there is no %s", op);
    return NULL;
}

/* Two blocks on a residual stream, with dropout, and a norm and a head in no block. */
#define TWO_BLOCKS                                                                                     \
    "ang 1\ngraph \"m\"\nsymbol batch\nblock 1 \"a\"\nblock 2 \"b\"\n"                                 \
    "%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : f32[batch,4]\n"                   \
    "%n = input(name=\"samples\") : i64[batch]\n%seed = scalar(name=\"seed\") : i64[]\n"               \
    "%step = scalar(name=\"step\") : i64[]\n"                                                          \
    "%wa = param(name=\"a.w\") : f32[4,4] {block=1}\n%wb = param(name=\"b.w\") : f32[4,4] {block=2}\n" \
    "%s = sigmoid(%x)\n"                                                                               \
    "%pa = matmul(%s, %wa) {block=1}\n%ga = gelu(%pa) {block=1}\n"                                     \
    "%da = dropout(%ga, %n, %seed, %step, rate=0.5, site=7) {block=1}\n"                               \
    "%qa = multiply(%da, %da) {block=1}\n%ra = add(%s, %qa) {block=1}\n"                               \
    "%pb = matmul(%ra, %wb) {block=2}\n%gb = gelu(%pb) {block=2}\n%rb = add(%ra, %gb) {block=2}\n"     \
    "%t = tanh(%rb)\n%l = squared_error(%t, %y)\nloss %l targets %y\n"

static void test_block(void **state) {
    (void)state;
    an_graph *g = recomputed(TWO_BLOCKS, (an_pass_options){.recompute = AN_RECOMPUTE_BLOCK});
    /* b comes first; what its gradients do not need is not made again: neither gelu, whose sum is all that is used, nor
     * the sums, which the next unit reads */
    assert_string_equal(copies(g), "matmul@b matmul@a gelu@a dropout@a");
    assert_int_equal(g->recompute->copies, 4);
    assert_int_equal(g->recompute->blocks, 2);
    /* the copy in b reads the kept sum of a, the one in a the kept value from outside */
    const an_node *b = find(g, "matmul", true);
    assert_string_equal(b->inputs[0].result->node->op->name, "add");
    assert_false(b->inputs[0].result->node->is_copy);
    const an_node *dropout = find(g, "dropout", true);
    assert_true(dropout->inputs[0].result->node->is_copy);
    assert_int_equal(*(const int64_t *)an_node_attribute(dropout, "site", AN_ATTRIBUTE_INT), 7);
    for (const an_use *u = find(g, "sigmoid", false)->outputs[0].first_use; u; u = u->next)
        assert_string_not_equal(u->node->op->name, "sigmoid");
    /* no gradient reads what was dropped */
    for (const an_use *u = find(g, "gelu", false)->outputs[0].first_use; u; u = u->next)
        assert_int_equal(u->node->phase, AN_PHASE_FORWARD);
    an_graph_destroy(&g);
}

static void test_none_and_evaluation(void **state) {
    (void)state;
    an_graph *g = recomputed(TWO_BLOCKS, (an_pass_options){.recompute = AN_RECOMPUTE_NONE});
    assert_string_equal(copies(g), "");
    an_graph_destroy(&g);
    g = recomputed(TWO_BLOCKS, (an_pass_options){.form = AN_FORM_EVALUATE, .recompute = AN_RECOMPUTE_FULL});
    assert_string_equal(copies(g), "");
    an_graph_destroy(&g);
}

/* One segment of both blocks keeps what enters the first; what enters the second is made again. */
static void test_segments(void **state) {
    (void)state;
    an_graph *g = recomputed(TWO_BLOCKS, (an_pass_options){.recompute = AN_RECOMPUTE_SEGMENTS, .segments = 1});
    assert_string_equal(copies(g), "matmul@a gelu@a dropout@a multiply@a add@a matmul@b");
    an_graph_destroy(&g);
    g = recomputed(TWO_BLOCKS, (an_pass_options){.recompute = AN_RECOMPUTE_SEGMENTS, .segments = 2});
    assert_string_equal(copies(g), "matmul@b matmul@a gelu@a dropout@a");
    an_graph_destroy(&g);
}

/* Blocks in blocks and scopes in them: the outermost block is the unit. */
static void test_nested(void **state) {
    (void)state;
    an_graph *g =
        recomputed("ang 1\ngraph \"n\"\nblock 1 \"outer\"\nblock 2 \"inner\" parent=1\nscope 3 \"s\" parent=2\n"
                   "scope 4 \"t\"\n"
                   "%x = input(name=\"x\") : f32[8,4]\n%w = param(name=\"w\") : f32[4]\n"
                   "%a = multiply(%x, %w) {block=1}\n%b = exp(%a) {block=2}\n%c = tanh(%b) {block=3}\n"
                   "%d = sigmoid(%c) {block=1}\n%e = exp(%d) {block=4}\n"
                   "%l = reduce_sum(%e, axes=[0,1])\nloss %l\n",
                   (an_pass_options){.recompute = AN_RECOMPUTE_BLOCK});
    /* what leaves the outer block stays, and so does what lies in no block, whatever its scope */
    assert_string_equal(copies(g), "multiply@outer exp@outer.inner tanh@outer.inner.s");
    assert_int_equal(g->recompute->blocks, 1);
    an_graph_destroy(&g);
}

/* A view has no storage: it is made again over the copy of its root, and stays where the root is kept. */
static void test_views(void **state) {
    (void)state;
    an_graph *g = recomputed("ang 1\ngraph \"v\"\nblock 1 \"a\"\n%x = input(name=\"x\") : f32[8,4]\n"
                             "%w = param(name=\"w\") : f32[4,6]\n%s = exp(%x)\n%t = reshape(%s, dims=[4,8]) {block=1}\n"
                             "%u = reshape(%t, dims=[8,4]) {block=1}\n"
                             "%p = matmul(%u, %w) {block=1}\n%q, %r = split(%p, axis=1) {block=1}\n"
                             "%m = multiply(%q, %r) {block=1}\n%l = reduce_sum(%m, axes=[0,1])\nloss %l\n",
                             (an_pass_options){.recompute = AN_RECOMPUTE_BLOCK});
    assert_string_equal(copies(g), "matmul@a split@a");
    const an_node *split = find(g, "split", true);
    assert_ptr_equal(split->outputs[1].root->node, find(g, "matmul", true));
    assert_int_equal(g->recompute->copies, 1); /* views do not run */
    an_graph_destroy(&g);
}

/* Statistics that the host reads after the run are there anyway; the large output of the same node is not. */
static void test_what_the_host_reads(void **state) {
    (void)state;
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "h"));
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 4)),
             y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 3));
    an_block_begin(g, "a", 1);
    an_value h = an_linear_plain(g, x, "fc", 3);
    h = an_tanh(g, an_exp(g, an_batch_norm_layer(g, h, "norm", 0.1, 1e-5)));
    an_block_end(g);
    an_graph_set_loss(g, an_squared_error(g, h, y), y);
    OK(ctx, an_graph_verify(g));
    recompute(g, (an_pass_options){.recompute = AN_RECOMPUTE_BLOCK});
    assert_string_equal(copies(g), "matmul@a.fc batch_norm@a.norm exp@a");
    const an_node *diff = find(g, "batch_norm_diff", false);
    int from_copies = 0, from_originals = 0;
    for (int i = 0; i < diff->input_count; i++) {
        const an_node *source = diff->inputs[i].result ? diff->inputs[i].result->root->node : NULL;
        if (source && !strcmp(source->op->name, "batch_norm")) *(source->is_copy ? &from_copies : &from_originals) += 1;
    }
    assert_int_equal(from_originals, 1); /* the mean, which a run state takes in */
    assert_int_equal(from_copies, 1);    /* the inverse deviation */
    an_graph_destroy(&g);
}

/* ---- what may not run twice ---- */

static an_status same_infer(an_graph *g, an_node *node) {
    (void)g;
    an_result_like(&node->outputs[0], an_node_input(node, 0));
    return AN_OK;
}

static void same_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    (void)want;
    diff_src[0] = an_multiply(g, diff_dst[0], an_node_output_value(g, node, 0));
}

static const an_kernel same_kernels[] = {{.name = "portable"}, {0}};

static void test_no_copy(void **state) {
    (void)state;
    static const struct {
        unsigned flags;
        const char *copies;
    } cases[] = {{0, "exp@a same@a"}, {AN_OP_NO_COPY, "exp@a"}, {AN_OP_COMMUNICATION, "exp@a"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const an_op same = {.name = "same",
                            .inputs_min = 1,
                            .inputs_max = 1,
                            .outputs = 1,
                            .flags = AN_OP_OWN | cases[i].flags,
                            .infer = same_infer,
                            .grad = same_grad,
                            .kernels = {same_kernels}};
        an_graph *g = NULL;
        an_flat_sizes sizes;
        an_pass_options options = {.recompute = AN_RECOMPUTE_BLOCK};
        OK(ctx, an_graph_create(&g, ctx, "s"));
        an_value w = an_param(g, "w", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(4));
        an_block_begin(g, "a", 1);
        an_value h = an_exp(g, w);
        h = an_graph_add(g, &same, 1, &h, NULL);
        h = an_tanh(g, an_scale(g, h, 2));
        an_block_end(g);
        an_graph_set_loss(g, an_reduce_sum(g, h, 1, (const int[]){0}, false), AN_NONE);
        OK(ctx, an_graph_verify(g));
        OK(ctx, an_graph_lay_out(g, true, &sizes));
        run_passes(g, &options);
        assert_string_equal(copies(g), cases[i].copies);
        an_graph_destroy(&g);
    }
}

/* ---- full ---- */

enum { DEEP = 8 };

static an_graph *deep_model(void) {
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "deep"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(16, 16));
    for (int i = 0; i < DEEP; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        an_block_begin(g, name, i + 1);
        x = an_tanh(g, an_linear_plain(g, x, "fc", 16));
        an_block_end(g);
    }
    an_graph_set_loss(g, an_reduce_sum(g, x, 2, (const int[]){0, 1}, false), AN_NONE);
    OK(ctx, an_graph_verify(g));
    return g;
}

/* Eight blocks and the loss are nine units, halved as 4 + (2 + (1 + (1 + 1))): what forward leaves behind
 * are the inputs of units 4, 6, 7 and 8. A block is made again once for itself and once for every range
 * whose left half it is in. */
static void test_full(void **state) {
    (void)state;
    static const int products[DEEP] = {3, 2, 2, 1, 2, 1, 1, 1};
    int found[DEEP] = {0};
    an_graph *g = deep_model();
    recompute(g, (an_pass_options){.recompute = AN_RECOMPUTE_FULL});
    for (const an_node *n = g->first; n; n = n->next)
        if (n->is_copy && !strcmp(n->op->name, "matmul")) found[n->path[0] - '0']++;
    for (int i = 0; i < DEEP; i++)
        if (found[i] != products[i]) fail_msg("block %d is made again %d times: %s", i, found[i], copies(g));
    an_graph_destroy(&g);
}

/* ---- a budget ---- */

/* At each level one value more is dropped: first what frees most for its time. */
static void test_levels(void **state) {
    (void)state;
    static const char text[] =
        "ang 1\ngraph \"b\"\n%x = input(name=\"x\") : f32[64,64]\n%w = param(name=\"w\") : f32[64,64]\n"
        "%v = param(name=\"v\") : f32[64,64]\n%p = matmul(%x, %w)\n%g = gelu(%p)\n%q = matmul(%g, %v)\n"
        "%t = tanh(%q)\n%l = reduce_sum(%t, axes=[0,1])\nloss %l\n";
    static const char *const expected[] = {"", "gelu", "matmul gelu", "matmul gelu"};
    an_graph *g = NULL;
    for (int level = 0; level < 4; level++) {
        g = recomputed(text, (an_pass_options){.recompute = AN_RECOMPUTE_BUDGET, .budget = 1, .budget_level = level});
        /* tanh's output is read by its gradient right after the loss: dropping it would free nothing */
        assert_int_equal(g->recompute->levels, 2);
        assert_string_equal(copies(g), expected[level]);
        an_graph_destroy(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_block),    IN_CONTEXT(test_none_and_evaluation),
        IN_CONTEXT(test_segments), IN_CONTEXT(test_nested),
        IN_CONTEXT(test_views),    IN_CONTEXT(test_what_the_host_reads),
        IN_CONTEXT(test_no_copy),  IN_CONTEXT(test_full),
        IN_CONTEXT(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
