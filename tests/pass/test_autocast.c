/* autocast alone, on graphs written as text: who gets which type, and that forms agree. */
#include "ir/verify.h"
#include "ops/source.h"
#include "pass/pass.h"
#include "support/support.h"

typedef struct {
    an_context *ctx;
    an_graph *g;
} text_graph;

static text_graph lowered_with(const char *text, an_form form, an_dtype precision, bool f32_storage) {
    text_graph t = {0};
    an_flat_sizes sizes;
    an_pass_options options = {.form = form, .precision = precision, .f32_storage = f32_storage};
    assert_int_equal(an_context_create(&t.ctx, NULL), AN_OK);
    OK(t.ctx, an_graph_parse(&t.g, t.ctx, text, strlen(text)));
    OK(t.ctx, an_graph_verify(t.g));
    for (size_t i = 0; i < t.g->dimensions.symbol_count; i++)
        OK(t.ctx, an_graph_bind(t.g, t.g->dimensions.symbols[i].name, 8));
    OK(t.ctx, an_graph_lay_out(t.g, true, &sizes));
    for (const an_pass *p = an_pass_table; p->name; p++) {
        OK(t.ctx, p->run(t.g, &options));
        OK(t.ctx, an_graph_check(t.g));
        if (!strcmp(p->name, an_form_trains(form) ? "autodiff" : "autocast")) break;
    }
    return t;
}

static text_graph lowered(const char *text, an_form form, an_dtype precision) {
    return lowered_with(text, form, precision, false);
}

static void done(text_graph *t) {
    an_graph_destroy(&t->g);
    an_context_destroy(&t->ctx);
}

/* "matmul:bf16 add:f32" for the nodes of a phase that are neither sources nor sinks without outputs. */
static const char *types(const an_graph *g, an_phase phase) {
    static char words[4096];
    size_t length = 0;
    words[0] = 0;
    for (const an_node *n = g->first; n; n = n->next) {
        if (n->op->flags & AN_OP_SOURCE || n->output_count == 0 || n->phase != phase) continue;
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s:%s", length ? " " : "", n->op->name,
                                   an_dtype_name(n->outputs[0].dtype));
    }
    return words;
}

#define HEAD \
    "ang 1\ngraph \"m\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : f32[batch,4]\n"
#define TAIL "%l = squared_error(%out, %y)\noutput(%out, name=\"out\")\nloss %l targets %y\n"
#define LAYER                             \
    "%w = param(name=\"w\") : f32[4,4]\n" \
    "%b = param(name=\"b\") : f32[4]\n"   \
    "%p = matmul(%x, %w, transpose_b=true)\n%q = bias(%p, %b, axis=1)\n"

/* The residual stream is f32; what lies between two products is low; the loss reads f32. */
static void test_policies(void **state) {
    (void)state;
    text_graph t = lowered(HEAD LAYER "%r = gelu_tanh(%q)\n%v = param(name=\"v\") : f32[4,4]\n"
                                      "%s = matmul(%r, %v)\n%out = add(%s, %x)\n" TAIL,
                           AN_FORM_TRAIN_FIRST, AN_DTYPE_BF16);
    assert_string_equal(types(t.g, AN_PHASE_FORWARD),
                        "cast:bf16 matmul:bf16 bias:bf16 gelu_tanh:bf16 matmul:f32 add:f32 squared_error:f32");
    /* gradients: of values in their type, of parameters f32 straight from the op that makes them */
    assert_string_equal(types(t.g, AN_PHASE_BACKWARD),
                        "squared_error_diff:f32 cast:bf16 matmul:bf16 matmul:f32 grad:f32 gelu_tanh_diff:bf16 "
                        "reduce_sum:f32 grad:f32 matmul:f32 grad:f32");
    done(&t);
}

/* With f32 storage, products read low copies, and that is all: what they and their gradients give is f32. */
static void test_f32_storage(void **state) {
    (void)state;
    text_graph t = lowered_with(HEAD LAYER "%r = gelu_tanh(%q)\n%v = param(name=\"v\") : f32[4,4]\n"
                                           "%s = matmul(%r, %v)\n%u = matmul(%r, %w)\n%z = add(%s, %u)\n"
                                           "%out = add(%z, %x)\n" TAIL,
                                AN_FORM_TRAIN_FIRST, AN_DTYPE_BF16, true);
    assert_string_equal(types(t.g, AN_PHASE_FORWARD),
                        "cast:bf16 matmul:f32 bias:f32 gelu_tanh:f32 cast:bf16 matmul:f32 matmul:f32 add:f32 add:f32 "
                        "squared_error:f32");
    for (const an_node *n = t.g->first; n; n = n->next)
        for (int i = 0; i < n->output_count; i++)
            if (n->outputs[i].dtype == AN_DTYPE_BF16)
                assert_true(!strcmp(n->op->name, "cast") || n->outputs[i].storage == AN_STORAGE_LOW);
    /* both gradients of %r are added in f32 */
    assert_non_null(strstr(types(t.g, AN_PHASE_BACKWARD), "add:f32 gelu_tanh_diff:f32"));
    done(&t);
}

/* A parameter is never cast: its reader gets the copy of the store, at its place in it, and it is not registered
 * again. */
static void test_parameters(void **state) {
    (void)state;
    text_graph t = lowered(HEAD LAYER "%out = matmul(%q, %w)\n" TAIL, AN_FORM_TRAIN_FIRST, AN_DTYPE_BF16);
    int copies = 0;
    assert_int_equal(t.g->parameter_count, 2);
    for (const an_node *n = t.g->first; n; n = n->next) {
        if (n->op != &an_op_param || n->outputs[0].storage != AN_STORAGE_LOW) continue;
        copies++;
        assert_int_equal(n->outputs[0].dtype, AN_DTYPE_BF16);
        assert_int_equal(n->outputs[0].place * 2, t.g->parameters[0].node->outputs[0].place);
        assert_int_equal(((const an_param_attributes *)n->attributes)->parameter, 0);
        assert_non_null(n->outputs[0].first_use->next); /* one for both products */
    }
    assert_int_equal(copies, 1);
    done(&t);
}

/* A form without dropout rounds where the one with dropout does. */
static void test_forms_agree(void **state) {
    (void)state;
#define DROPOUT                                                                                                     \
    HEAD "%n = input(name=\"samples\") : i64[batch]\n%seed = scalar(name=\"seed\") : i64[]\n%step = "               \
         "scalar(name=\"step\") : i64[]\n%w = param(name=\"w\") : f32[4,4]\n%p = matmul(%x, %w)\n%d = dropout(%p, " \
         "%n, "                                                                                                     \
         "%seed, %step, rate=0.5)\n%out = add(%d, %x)\n" TAIL
    text_graph train = lowered(DROPOUT, AN_FORM_TRAIN_FIRST, AN_DTYPE_BF16);
    assert_string_equal(types(train.g, AN_PHASE_FORWARD), "cast:bf16 matmul:f32 dropout:f32 add:f32 squared_error:f32");
    done(&train);
    text_graph predict = lowered(DROPOUT, AN_FORM_PREDICT, AN_DTYPE_BF16);
    assert_non_null(strstr(types(predict.g, AN_PHASE_FORWARD), "cast:bf16 matmul:f32 "));
    done(&predict);
}

/* What moves elements moves them in one type: the low one is widened, not the wide one rounded. */
static void test_concat(void **state) {
    (void)state;
    text_graph t = lowered(HEAD "%w = param(name=\"w\") : f32[4,4]\n%p = matmul(%x, %w)\n%c = concat(%p, %x, axis=1)\n"
                                "%m = param(name=\"m\") : f32[8,4]\n%out = matmul(%c, %m)\n" TAIL,
                           AN_FORM_PREDICT, AN_DTYPE_BF16);
    assert_string_equal(types(t.g, AN_PHASE_FORWARD),
                        "cast:bf16 matmul:bf16 cast:f32 concat:f32 cast:bf16 matmul:f32 squared_error:f32");
    done(&t);
}

static void test_f16_and_none(void **state) {
    (void)state;
    text_graph t = lowered(HEAD LAYER "%out = relu(%q)\n" TAIL, AN_FORM_PREDICT, AN_DTYPE_F16);
    assert_string_equal(types(t.g, AN_PHASE_FORWARD), "cast:f16 matmul:f16 bias:f32 relu:f32 squared_error:f32");
    done(&t);
    t = lowered(HEAD LAYER "%out = relu(%q)\n" TAIL, AN_FORM_PREDICT, AN_DTYPE_NONE);
    assert_string_equal(types(t.g, AN_PHASE_FORWARD), "matmul:f32 bias:f32 relu:f32 squared_error:f32");
    done(&t);
}

static void test_refusals(void **state) {
    (void)state;
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    static const char text[] =
        "ang 1\ngraph \"m\"\n%x = input(name=\"x\") : f64[4,4]\n%w = param(name=\"w\") : f64[4,4]\n"
        "%p = matmul(%x, %w)\noutput(%p, name=\"p\")\n";
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_graph_parse(&g, ctx, text, strlen(text)));
    OK(ctx, an_graph_verify(g));
    options.precision = AN_DTYPE_BF16;
    FAILS(ctx, an_plan_create(&plan, ctx, g, &options), AN_ERR_DTYPE, "'w' is f64");
    options.precision = AN_DTYPE_F32;
    FAILS(ctx, an_plan_create(&plan, ctx, g, &options), AN_ERR_ARGUMENT, "build the graph in that type");
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies),    cmocka_unit_test(test_f32_storage), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_forms_agree), cmocka_unit_test(test_concat),      cmocka_unit_test(test_f16_and_none),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
