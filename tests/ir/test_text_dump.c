/* Dumps: what passes note on a graph is printed and read back, so that a pass can be tested alone on text. */
#include "ir/text_support.h"
#include "ops/sink.h"
#include "ops/source.h"
#include "pass/pass.h"

static void test_annotations(void **state) {
    (void)state;
    an_graph *g =
        must_parse("ang 1 dump\nsymbol n maximum=64 value=32\nblock 1 \"h\" depth=3\n"
                   "%x = input(name=\"x\") : f32[n,4]\n"
                   "%y = relu(%x) {block=1, path=\"h\", at=\"src/model.c:12\", kernel=\"portable\", storage=arena, "
                   "offset=128, bytes=512, scratch=64, scratch_offset=1024, order=[0,1]}\n"
                   "%a, %b = split(%y, axis=1) {phase=backward, origin=%y, offset=[-1,8], elided=true}\n");
    const an_node *relu = g->first->next, *split = relu->next;
    assert_int_equal(g->dimensions.symbols[0].maximum, 64);
    assert_int_equal(g->dimensions.symbols[0].value, 32);
    assert_int_equal(relu->block, 1);
    assert_string_equal(relu->path, "h");
    assert_string_equal(relu->place.file, "src/model.c");
    assert_int_equal(relu->place.line, 12);
    assert_ptr_equal(relu->kernel, an_op_kernels(relu->op, an_context_isa(ctx)));
    assert_int_equal(relu->outputs[0].place, 128);
    assert_int_equal(relu->outputs[0].bytes, 512);
    assert_int_equal(relu->scratch_bytes, 64);
    assert_int_equal(relu->scratch_place, 1024);
    assert_int_equal(split->phase, AN_PHASE_BACKWARD);
    assert_ptr_equal(split->origin, relu);
    assert_int_equal(split->outputs[0].place, -1);
    assert_int_equal(split->outputs[1].place, 8);
    assert_true(split->elided);
    check_dump_round_trip(g);
    an_graph_destroy(&g);
}

/* Passes remove and move nodes; numbers in the text are those of the text. */
static void test_dump_after_changes(void **state) {
    (void)state;
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "changed"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(2, 2));
    an_value unused = an_param(g, "unused", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(2));
    an_value gone = an_relu(g, x);
    an_value w = an_param(g, "w", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(2, 2));
    an_value y = an_matmul(g, x, w, false, false);
    g->added.origin = an_graph_result(g, gone)->node;
    an_value copy = an_relu(g, y);
    g->added.origin = an_graph_result(g, y)->node;
    g->added.phase = AN_PHASE_BACKWARD;
    an_grad(g, copy, 1, 0, false);
    g->added.origin = NULL;
    an_graph_remove(g, an_graph_result(g, gone)->node);
    an_graph_remove(g, an_graph_result(g, unused)->node);
    an_graph_move_last(g, an_graph_result(g, x)->node); /* before all that reads it, again */
    for (an_node *n = g->first; n->op != &an_op_input; n = g->first) an_graph_move_last(g, n);

    static const char expected[] = "ang 1 dump\ngraph \"changed\"\n"
                                   "%0 = param(name=\"unused\", scale=1) : f32[2]\n"
                                   "%1 = param(name=\"w\", scale=1, parameter=1) : f32[2,2]\n"
                                   "%2 = input(name=\"x\") : f32[2,2]\n"
                                   "%3 = matmul(%2, %1) : f32[2,2]\n"
                                   "%4 = relu(%3) : f32[2,2]\n"
                                   "%5 = grad(%4, parameter=1) : f32[2,2] {phase=backward, origin=%3}\n";
    for (an_node *n = g->first; n; n = n->next) n->place = (an_place){0}; /* lines of this file */
    for (size_t i = 0; i < g->parameter_count; i++) g->parameters[i].node->place = (an_place){0};
    an_text text;
    an_text_init(&text, ctx);
    OK(ctx, an_graph_dump(g, &text));
    assert_same_text("dump", expected, text.bytes);
    an_text_destroy(&text);
    check_dump_round_trip(g);
    an_graph_destroy(&g);
}

/* Every pass of every form of a model: what it leaves is read back, and is the same. */
static void check_passes(an_graph *g, int symbol_count, const char *const *symbols, const int64_t *maxima) {
    static const an_form forms[] = {AN_FORM_TRAIN_FIRST, AN_FORM_TRAIN_NEXT, AN_FORM_EVALUATE, AN_FORM_PREDICT};
    an_plan *plan = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.symbol_count = symbol_count;
    options.symbols = symbols;
    options.maxima = maxima;
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        for (const an_pass *pass = an_pass_table; pass->name; pass++) {
            char *text = NULL;
            OK(ctx, an_plan_dump(plan, forms[i], pass->name, &text));
            an_graph *again = must_parse(text);
            an_text dumped;
            an_text_init(&dumped, ctx);
            OK(ctx, an_graph_dump(again, &dumped));
            assert_same_text(pass->name, text, dumped.bytes);
            an_text_destroy(&dumped);
            an_string_release(ctx, &text);
            an_graph_destroy(&again);
        }
    }
    an_plan_destroy(&plan);
}

static void test_passes_of_mlp(void **state) {
    (void)state;
    an_graph *g = NULL;
    OK(ctx, small_mlp(&g, ctx));
    check_passes(g, 1, (const char *const[]){"batch"}, (const int64_t[]){8});
    an_graph_destroy(&g);
}

/* A model from text, with blocks, views, an order of its own in memory and a loss over tokens. */
static void test_passes_of_attention(void **state) {
    (void)state;
    size_t length;
    char *text = read_file(CORPUS "attention.ang", &length);
    an_graph *g = must_parse(text);
    check_passes(g, 2, (const char *const[]){"batch", "tokens"}, (const int64_t[]){2, 16});
    an_graph_destroy(&g);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_annotations),
        IN_CONTEXT(test_dump_after_changes),
        IN_CONTEXT(test_passes_of_mlp),
        IN_CONTEXT(test_passes_of_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
