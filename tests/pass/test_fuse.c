/* fuse alone, on graphs written as text: what becomes one node, and what must not.
 * tests/exec/test_fuse.c has the bits. */
#include "ir/text_form.h"
#include "ir/verify.h"
#include "pass/pass.h"
#include "support/support.h"

typedef struct {
    an_context *ctx;
    an_graph *g;
} text_graph;

/* `rank`: of the graph's adapter; 0: it has none. */
static text_graph fused_with(const char *text, an_form form, an_recompute recompute, int64_t rank) {
    text_graph t = {0};
    an_flat_sizes sizes;
    an_pass_options options = {.form = form, .recompute = recompute};
    assert_int_equal(an_context_create(&t.ctx, NULL), AN_OK);
    OK(t.ctx, an_graph_parse(&t.g, t.ctx, text, strlen(text)));
    OK(t.ctx, an_graph_verify(t.g));
    t.g->adapter.rank = rank;
    for (size_t i = 0; i < t.g->dimensions.symbol_count; i++)
        OK(t.ctx, an_graph_bind(t.g, t.g->dimensions.symbols[i].name, 8));
    OK(t.ctx, an_graph_lay_out(t.g, true, &sizes));
    for (const an_pass *p = an_pass_table; p->name; p++) {
        OK(t.ctx, p->run(t.g, &options));
        OK(t.ctx, an_graph_check(t.g));
        if (!strcmp(p->name, "fuse")) break;
    }
    return t;
}

static text_graph fused(const char *text, an_form form, an_recompute recompute) {
    return fused_with(text, form, recompute, 0);
}

static void done(text_graph *t) {
    an_graph_destroy(&t->g);
    an_context_destroy(&t->ctx);
}

/* The ops that are left, with the programs of chains. */
static const char *ops(const an_graph *g) {
    static char words[4096];
    size_t length = 0;
    words[0] = 0;
    for (const an_node *n = g->first; n; n = n->next) {
        if (n->op->flags & AN_OP_SOURCE || n->output_count == 0) continue;
        const char *const *program = an_node_attribute(n, "program", AN_ATTRIBUTE_STRING);
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s", length ? " | " : "", n->op->name);
        if (program) length += (size_t)snprintf(words + length, sizeof words - length, " %s", *program);
    }
    return words;
}

static void expect(const char *text, an_form form, an_recompute recompute, const char *expected) {
    text_graph t = fused(text, form, recompute);
    assert_string_equal(ops(t.g), expected);
    done(&t);
}

#define HEAD                                                                                             \
    "ang 1\ngraph \"m\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : " \
    "f32[batch,4]\n%w = param(name=\"w\") : f32[4,4]\n%b = param(name=\"b\") : f32[4]\n"
#define LINEAR HEAD "%p = matmul(%x, %w, transpose_b=true)\n%q = bias(%p, %b, axis=1)\n"
#define OUTPUT "output(%out, name=\"out\")\n"
#define LOSS "%l = squared_error(%out, %y)\nloss %l targets %y\n"

static void test_product_takes_its_end(void **state) {
    (void)state;
    expect(LINEAR "%r = relu(%q)\n%out = add(%r, %x)\n" OUTPUT, AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "matmul_chain add(x,2):f32 relu(x):f32 add(x,3):f32");
    /* the value may be any operand */
    expect(LINEAR "%out = subtract(%x, %q)\n" OUTPUT, AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "matmul_chain add(x,2):f32 subtract(3,x):f32");
}

static int count(const an_graph *g, const char *op, int inputs) {
    int found = 0;
    for (const an_node *n = g->first; n; n = n->next)
        found += !strcmp(n->op->name, op) && n->input_count == inputs && n->outputs[0].first_use;
    return found;
}

/* A sum of products takes its end too. Gradients that meet become one where the graph has an adapter, and stay apart
 * where it has none, whose bits are old. */
static void test_sums_of_products(void **state) {
    (void)state;
    expect(HEAD
           "%p = matmul_sum(%x, %w, %y, %w, transpose_b=true)\n%q = bias(%p, %b, axis=1)\n%out = relu(%q)\n" OUTPUT,
           AN_FORM_PREDICT, AN_RECOMPUTE_NONE, "matmul_chain add(x,4):f32 relu(x):f32");
    for (int rank = 0; rank < 2; rank++) {
        text_graph t = fused_with(HEAD "%h = matmul(%x, %w, transpose_b=true)\n%v = param(name=\"v\") : f32[4,4]\n"
                                       "%u = param(name=\"u\") : f32[4,4]\n%z = param(name=\"z\") : f32[4,4]\n"
                                       "%p = matmul(%h, %v, transpose_b=true)\n%q = matmul(%h, %u, transpose_b=true)\n"
                                       "%r = matmul(%h, %z, transpose_b=true)\n%m = multiply(%p, %q)\n"
                                       "%out = multiply(%m, %r)\n" LOSS,
                                  AN_FORM_TRAIN_FIRST, AN_RECOMPUTE_NONE, rank);
        assert_int_equal(count(t.g, "matmul_sum", 6), rank);
        assert_int_equal(count(t.g, "matmul_sum", 4), 0);
        done(&t);
    }
}

static void test_chains(void **state) {
    (void)state;
    expect(HEAD "%p = multiply(%x, %y)\n%q = tanh(%p)\n%out = add(%q, %x)\n" OUTPUT, AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "chain multiply(x,1):f32 tanh(x):f32 add(x,0):f32");
    /* attributes are no part of a chain */
    expect(HEAD "%p = scale(%x, factor=2)\n%out = tanh(%p)\n" OUTPUT, AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "scale | tanh");
    /* at most six stages */
    expect(HEAD "%a = tanh(%x)\n%c = tanh(%a)\n%d = tanh(%c)\n%e = tanh(%d)\n%f = tanh(%e)\n%h = tanh(%f)\n"
                "%i = tanh(%h)\n%out = tanh(%i)\n" OUTPUT,
           AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "chain tanh(x):f32 tanh(x):f32 tanh(x):f32 tanh(x):f32 tanh(x):f32 tanh(x):f32 | chain tanh(x):f32 "
           "tanh(x):f32");
}

/* A value that others read stays; one that is read twice by the same node too. */
static void test_what_stays(void **state) {
    (void)state;
    expect(LINEAR "%r = relu(%q)\n%out = add(%r, %q)\n" OUTPUT, AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "matmul_chain add(x,2):f32 | chain relu(x):f32 add(x,0):f32");
    expect(HEAD "%p = matmul(%x, %w)\n%out = multiply(%p, %p)\n" OUTPUT, AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "matmul | multiply");
    expect(HEAD "%p = matmul(%x, %w)\noutput(%p, name=\"p\")\n%out = relu(%p)\n" OUTPUT, AN_FORM_PREDICT,
           AN_RECOMPUTE_NONE, "matmul | relu");
    /* a bias along another axis */
    expect(HEAD "%p = matmul(%w, %w)\n%out = bias(%p, %b, axis=0)\n" OUTPUT, AN_FORM_PREDICT, AN_RECOMPUTE_NONE,
           "matmul | bias");
}

/* What the gradient reads becomes a second output, but not where recompute must be able to make it alone. */
static void test_kept(void **state) {
    (void)state;
    text_graph t = fused(LINEAR "%out = gelu(%q)\n" LOSS, AN_FORM_TRAIN_FIRST, AN_RECOMPUTE_NONE);
    const an_node *n = t.g->first;
    while (n->op->flags & AN_OP_SOURCE) n = n->next;
    assert_string_equal(n->op->name, "matmul_chain");
    assert_int_equal(n->output_count, 2);
    assert_string_equal(n->outputs[1].first_use->node->op->name, "gelu_diff");
    assert_null(n->outputs[1].first_use->next);
    done(&t);
    t = fused(LINEAR "%out = gelu(%q)\n" LOSS, AN_FORM_TRAIN_FIRST, AN_RECOMPUTE_BUDGET);
    assert_non_null(strstr(ops(t.g), "matmul_chain add(x,2):f32 | gelu | "));
    done(&t);
}

#define CLASSES                                                                                                      \
    "ang 1\ngraph \"m\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : i32[batch]\n" \
    "%v = param(name=\"v\") : f32[4,4]\n%h = matmul(%x, %v)\n%w = param(name=\"w\") : f32[9,4]\n"
#define ENTROPY "%l, _ = cross_entropy(%p, %y)\nloss %l targets %y\n"

static void test_loss(void **state) {
    (void)state;
    expect(CLASSES "%p = matmul(%h, %w, transpose_b=true)\n" ENTROPY, AN_FORM_EVALUATE, AN_RECOMPUTE_NONE,
           "matmul | matmul_cross_entropy");
    expect(CLASSES "%p = matmul(%h, %w, transpose_b=true)\n" ENTROPY, AN_FORM_TRAIN_NEXT, AN_RECOMPUTE_NONE,
           "matmul | matmul_cross_entropy | grad | matmul | grad");
    /* logits that somebody reads are stored */
    expect(CLASSES "%p = matmul(%h, %w, transpose_b=true)\noutput(%p, name=\"logits\")\n" ENTROPY, AN_FORM_EVALUATE,
           AN_RECOMPUTE_NONE, "matmul | matmul | cross_entropy");
    /* weights the other way round */
    expect(
        "ang 1\ngraph \"m\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : i32[batch]\n"
        "%w = param(name=\"w\") : f32[4,9]\n%p = matmul(%x, %w)\n" ENTROPY,
        AN_FORM_EVALUATE, AN_RECOMPUTE_NONE, "matmul | cross_entropy | count_right");
}

/* A dump with fused nodes is read back; a chain that is none is refused with the reason. */
static void test_text(void **state) {
    (void)state;
    text_graph t = fused(LINEAR "%out = gelu(%q)\n" LOSS, AN_FORM_TRAIN_FIRST, AN_RECOMPUTE_NONE);
    an_text text;
    an_graph *again = NULL;
    an_text_init(&text, t.ctx);
    OK(t.ctx, an_graph_dump(t.g, &text));
    OK(t.ctx, an_graph_parse_dump(&again, t.ctx, text.bytes, text.length));
    assert_string_equal(ops(again), ops(t.g));
    an_graph_destroy(&again);
    static const struct {
        const char *program, *words;
    } wrong[] = {
        {"", "at least one stage"},
        {"relu", "a stage needs as many operands as its op takes, each x or the number of an input"},
        {"relu(x", "ends with ) or ):dtype"},
        {"relu(x):i32", "ends with ) or ):dtype"},
        {"relu(1):f32", "a stage needs as many operands as its op takes, each x or the number of an input"},
        {"relu(99999999999999999999):f32",
         "a stage needs as many operands as its op takes, each x or the number of an input"},
        {"add(x):f32", "a stage needs as many operands as its op takes, each x or the number of an input"},
        {"softmax(x):f32", "elementwise op without attributes"},
        {"scale(x):f32", "elementwise op without attributes"},
        {"relu(x):f32  relu(x):f32", "elementwise op without attributes"},
        {"relu(x):f32 ", "elementwise op without attributes"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char source[512];
        snprintf(source, sizeof source,
                 "ang 1\ngraph \"m\"\n%%x = input(name=\"x\") : f32[4]\n%%out = chain(%%x, "
                 "program=\"%s\")\noutput(%%out, name=\"out\")\n",
                 wrong[i].program);
        FAILS(t.ctx, an_graph_parse(&again, t.ctx, source, strlen(source)), AN_ERR_ARGUMENT, wrong[i].words);
    }
    an_text_destroy(&text);
    done(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product_takes_its_end),
        cmocka_unit_test(test_sums_of_products),
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
