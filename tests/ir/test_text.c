/* The text form: what is printed is read back to the same graph, and printed again to the same text. */
#include <fenv.h>
#include <locale.h>

#include "ir/text_support.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/ir/golden/"

static void check_corpus_file(const char *name, const char *text, size_t length) {
    an_graph *g = NULL;
    an_status status = an_graph_parse_dump(&g, ctx, text, length);
    bool wrong = strncmp(name, "wrong", strlen("wrong")) == 0;
    if ((status != AN_OK) != wrong) fail_msg("%s: %s: %s", name, an_status_name(status), an_last_error(ctx));
    if (wrong) return;
    if (strncmp(name, "dump", strlen("dump")) != 0) check_model_round_trip(g);
    check_dump_round_trip(g);
    an_graph_destroy(&g);
}

static void test_corpus(void **state) {
    (void)state;
    each_of_corpus(check_corpus_file);
}

/* Texts of version 1 as they are printed: every later version reads them, and writes them while the version is 1. */
static void check_golden(const char *path, const char *as_printed, bool dump) {
    size_t length;
    char *text = read_file(path, &length), *expected = read_file(as_printed, &length), *printed = NULL;
    an_graph *g = must_parse(text);
    if (dump) {
        an_text t;
        an_text_init(&t, ctx);
        OK(ctx, an_graph_dump(g, &t));
        assert_same_text("golden dump", expected, t.bytes);
        an_text_destroy(&t);
    } else {
        OK(ctx, an_graph_print(g, &printed));
        assert_same_text("golden model", expected, printed);
        an_string_release(ctx, &printed);
    }
    an_graph_destroy(&g);
    free(text);
    free(expected);
}

static void test_golden(void **state) {
    (void)state;
    check_golden(GOLDEN "model-mlp-1.ang", GOLDEN "model-mlp-1.ang", false);
    check_golden(GOLDEN "model-convolution-1.ang", GOLDEN "model-convolution-1.ang", false);
    check_golden(GOLDEN "model-attention-1.ang", GOLDEN "model-attention-1.ang", false);
    check_golden(GOLDEN "dump-1-portable.ang", GOLDEN "dump-1-portable.ang", true);
    check_golden(GOLDEN "dump-1.ang", GOLDEN "dump-1-portable.ang",
                 true); /* has the portable kernel's old name, reference */
}

/* The example of the specification. */
static void test_documented(void **state) {
    (void)state;
    size_t length;
    char *document = read_file(ANNEAL_SOURCE_DIR "/docs/ang-format.md", &length);
    char *text = strstr(document, "ang 1\ngraph"), *end = text ? strstr(text, "```") : NULL;
    assert_non_null(end);
    *end = 0;
    an_graph *g = must_parse(text);
    OK(ctx, an_graph_verify(g));
    check_model_round_trip(g);
    an_graph_destroy(&g);
    free(document);
}

/* ---- graphs from builders ---- */

static void test_printed_form(void **state) {
    (void)state;
    static const char expected[] =
        "ang 1\n"
        "graph \"small \\\"net\\\"\"\n"
        "symbol batch\n"
        "%0 = input(name=\"x\") : f32[batch,4]\n"
        "block 1 \"h.0\" depth=2\n"
        "scope 2 \"fc\" parent=1\n"
        "%1 = param(name=\"h.0.fc.weight\", initializer=1, scale=0.02) : f32[4,4] {block=2}\n"
        "%2 = matmul(%0, %1, transpose_b=true) : f32[batch,4] {block=2}\n"
        "%3, %4 = split(%2, axis=1) : f32[batch,2], f32[batch,2] {block=1}\n"
        "%5 = add(%3, %4) : f32[batch,2]\n"
        "output(%5, name=\"y\")\n"
        "%6 = reduce_sum(%5, axes=[0,1]) : f32[]\n"
        "loss %6 targets %0\n";
    an_graph *g = NULL;
    char *text = NULL;
    OK(ctx, an_graph_create(&g, ctx, "small \"net\""));
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 4));
    an_block_begin(g, "h.0", 2);
    an_scope_begin(g, "fc");
    an_value w = an_param(g, "weight", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.02, AN_DIMS(4, 4));
    an_value y = an_matmul(g, x, w, false, true);
    an_scope_end(g);
    an_value parts = an_split(g, y, 1, 2);
    an_block_end(g);
    an_value sum = an_add(g, parts, an_value_output(parts, 1));
    an_graph_set_output(g, sum, "y");
    an_graph_set_loss(g, an_reduce_sum(g, sum, AN_ALL_AXES, false), x);
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_graph_print(g, &text));
    assert_same_text("printed form", expected, text);
    an_string_release(ctx, &text);
    check_model_round_trip(g);
    check_dump_round_trip(g);
    an_graph_destroy(&g);
}

static void test_model_of_layers(void **state) {
    (void)state;
    an_graph *g = NULL;
    OK(ctx, small_mlp(&g, ctx));
    check_model_round_trip(g);
    check_dump_round_trip(g);
    an_graph_destroy(&g);
}

/* A graph with a mistake is not a model. */
static void test_mistake_is_not_printed(void **state) {
    (void)state;
    an_graph *g = NULL;
    char *text = NULL;
    OK(ctx, an_graph_create(&g, ctx, "wrong"));
    an_relu(g, AN_NONE);
    FAILS(ctx, an_graph_print(g, &text), AN_ERR_ARGUMENT, "relu");
    assert_null(text);
    an_graph_destroy(&g);
}

/* Expressions are written in one order, whichever window was made first. */
static void test_order_of_windows(void **state) {
    (void)state;
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "windows"));
    an_dim h = an_symbol_dim(g, "h"), late = an_dim_window(g, h, 7, 3), early = an_dim_window(g, h, 3, 2);
    an_dim nested = an_dim_window(g, an_dim_multiply(g, late, early), 2, 2), batch = an_symbol_dim(g, "batch");
    an_dim product = an_dim_multiply(g, an_dim_multiply(g, nested, batch), an_dim_multiply(g, early, late));
    an_input(g, "a", AN_DTYPE_F32, AN_DIMS(product, an_dim_add(g, early, late)));
    an_input(g, "b", AN_DTYPE_F32, AN_DIMS(an_dim_subtract(g, product, an_dim_multiply(g, 2, batch)), h));
    check_model_round_trip(g);
    an_graph_destroy(&g);
}

/* ---- values ---- */

/* The factor that `text` gives a scale node, and back. */
static void check_number(const char *text, double expected) {
    char model[256], *printed = NULL;
    snprintf(model, sizeof model, "ang 1\n%%x = input(name=\"x\") : f32[1]\n%%y = scale(%%x, factor=%s)\n", text);
    an_graph *g = must_parse(model);
    const double *factor = an_node_attribute(g->last, "factor", AN_ATTRIBUTE_FLOAT);
    if (isnan(expected))
        assert_true(isnan(*factor));
    else
        assert_memory_equal(factor, &expected, sizeof expected);
    check_model_round_trip(g);
    OK(ctx, an_graph_print(g, &printed));
    assert_null(strchr(printed, ';')); /* no locale has changed a point into something else */
    an_string_release(ctx, &printed);
    an_graph_destroy(&g);
}

static void check_numbers(void) {
    check_number("0", 0.0);
    check_number("-0", -0.0);
    check_number("1", 1.0);
    check_number("0.1", 0.1);
    check_number("1.", 1.0);
    check_number("0.17677669529663687", 0.17677669529663687);
    check_number("1e-05", 1e-5);
    check_number("1E5", 1e5);
    check_number("1.7976931348623157e+308", 1.7976931348623157e308);
    check_number("2.2250738585072014e-308", 2.2250738585072014e-308);
    check_number("5e-324", 5e-324);
    check_number("123456789012345678", 123456789012345678.0);
    check_number("inf", INFINITY);
    check_number("-inf", -INFINITY);
    check_number("nan", NAN);
    for (uint64_t i = 0; i < 200; i++) { /* all 17 digits */
        char text[32];
        double number = noise(i) * pow(10, (double)((int64_t)i - 100));
        snprintf(text, sizeof text, "%.17g", number);
        for (char *at = text; *at; at++)
            if (*at == ',') *at = '.';
        check_number(text, number);
    }
}

static void test_numbers(void **state) {
    (void)state;
    check_numbers();
}

/* In a locale that writes 0,1 the text still has 0.1. */
static void test_locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE",
                                        "fr_FR.UTF-8", "fr_FR.utf8", "ru_RU.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++) found = setlocale(LC_NUMERIC, names[i]);
    if (!found) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    check_numbers();
    setlocale(LC_NUMERIC, "C");
}

/* A host that rounds upwards reads and writes the same numbers, and still rounds upwards afterwards. */
static void test_rounding(void **state) {
    (void)state;
    fesetround(FE_UPWARD);
    check_number("0.1", 0.1);
    check_number("0.30000000000000004", 0.30000000000000004);
    check_number("-1e-05", -1e-5);
    int rounding = fegetround();
    fesetround(FE_TONEAREST);
    assert_int_equal(rounding, FE_UPWARD);
}

static void test_integers(void **state) {
    (void)state;
    static const int64_t numbers[] = {INT64_MIN, INT64_MIN + 1, -100, -1, 0, 1, INT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char model[512];
        snprintf(model, sizeof model,
                 "ang 1\n%%x = input(name=\"x\") : f32[2,3]\n%%t = input(name=\"t\") : i64[2]\n"
                 "%%l, _ = cross_entropy(%%x, %%t, ignored=%lld)\n",
                 (long long)numbers[i]);
        an_graph *g = must_parse(model);
        assert_int_equal(*(int64_t *)an_node_attribute(g->last, "ignored", AN_ATTRIBUTE_INT), numbers[i]);
        check_model_round_trip(g);
        an_graph_destroy(&g);
    }
}

static void test_every_byte_in_a_string(void **state) {
    (void)state;
    char name[256], model[1024];
    for (int i = 1; i < 256; i++) name[i - 1] = (char)i;
    name[255] = 0;
    an_graph *g = NULL, *again = NULL;
    char *text = NULL;
    OK(ctx, an_graph_create(&g, ctx, name));
    OK(ctx, an_graph_print(g, &text));
    for (const char *at = text; *at; at++) assert_true((*at >= ' ' && *at <= '~') || *at == '\n'); /* safe to show */
    OK(ctx, an_graph_parse(&again, ctx, text, strlen(text)));
    assert_string_equal(again->name, name);
    an_string_release(ctx, &text);
    an_graph_destroy(&again);
    an_graph_destroy(&g);
    snprintf(model, sizeof model, "ang 1\ngraph \"%s \\xC3\\xa9\"\n",
             "\xc3\xa9"); /* bytes above 127 may stand as they are */
    g = must_parse(model);
    assert_string_equal(g->name, "\xc3\xa9 \xc3\xa9");
    an_graph_destroy(&g);
}

/* One node for each type of attribute, with its value read by name. */
static void test_every_attribute_type(void **state) {
    (void)state;
    an_graph *g = must_parse("ang 1\nsymbol n\n"
                             "%x = input(name=\"in\\tput\", dtype=f64, dims=[n,2*n+1])\n" /* STRING, DTYPE, DIMS */
                             "%1 = slice(%x, axis=1, begin=n-1, end=2*n)\n"               /* INT, DIM */
                             "%2 = reduce_sum(%x, axes=[0,1], keep=true)\n"               /* INTS, BOOL */
                             "%3 = scale(%x, factor=-2.5e-3)\n");                         /* FLOAT */
    const an_node *x = g->first, *slice = x->next, *sum = slice->next, *scale = sum->next;
    assert_string_equal(*(const char **)an_node_attribute(x, "name", AN_ATTRIBUTE_STRING), "in\tput");
    assert_int_equal(*(an_dtype *)an_node_attribute(x, "dtype", AN_ATTRIBUTE_DTYPE), AN_DTYPE_F64);
    assert_int_equal(((an_dim_list *)an_node_attribute(x, "dims", AN_ATTRIBUTE_DIMS))->count, 2);
    assert_int_equal(*(int64_t *)an_node_attribute(slice, "axis", AN_ATTRIBUTE_INT), 1);
    assert_string_equal(AN_DESCRIBE(g, &slice->outputs[0]), "f64[n,n+1]");
    const an_int_list *axes = an_node_attribute(sum, "axes", AN_ATTRIBUTE_INTS);
    assert_int_equal(axes->count, 2);
    assert_true(*(bool *)an_node_attribute(sum, "keep", AN_ATTRIBUTE_BOOL));
    assert_true(*(double *)an_node_attribute(scale, "factor", AN_ATTRIBUTE_FLOAT) == -2.5e-3);
    check_model_round_trip(g);
    an_graph_destroy(&g);
}

/* ---- what people do to text ---- */

static void check_same_as_plain(const char *text, size_t length) {
    static const char plain[] =
        "ang 1\ngraph \"\"\nsymbol n\n%0 = input(name=\"x\") : f32[n]\n%1 = relu(%0) : f32[n]\n";
    an_graph *g = NULL;
    char *printed = NULL;
    OK(ctx, an_graph_parse(&g, ctx, text, length));
    OK(ctx, an_graph_print(g, &printed));
    assert_same_text("text", plain, printed);
    an_string_release(ctx, &printed);
    an_graph_destroy(&g);
}

static void test_layout_of_lines(void **state) {
    (void)state;
    static const char *const texts[] = {
        "ang 1\nsymbol n\n%x = input(name=\"x\") : f32[n]\n%y = relu(%x)\n",
        "ang 1\nsymbol n\n%x = input(name=\"x\") : f32[n]\n%y = relu(%x)", /* no newline at the end */
        "ang 1\r\nsymbol n\r\n%x = input(name=\"x\") : f32[n]\r\n%y = relu(%x)\r\n",
        "# first\n\nang\t1 # one\n\n  symbol n\n\n%x=input(name=\"x\",):f32[n]# \"\n\t%y = relu ( %x , ) { } # %\n#",
        "ang 1\nsymbol n\n%a.b_0 = input(dims=[n], name=\"x\", dtype=f32)\n%0 = relu(%a.b_0) : f32[1*n+0]\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) check_same_as_plain(texts[i], strlen(texts[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_corpus),
        IN_CONTEXT(test_golden),
        IN_CONTEXT(test_documented),
        IN_CONTEXT(test_printed_form),
        IN_CONTEXT(test_model_of_layers),
        IN_CONTEXT(test_mistake_is_not_printed),
        IN_CONTEXT(test_order_of_windows),
        IN_CONTEXT(test_numbers),
        IN_CONTEXT(test_locale),
        IN_CONTEXT(test_rounding),
        IN_CONTEXT(test_integers),
        IN_CONTEXT(test_every_byte_in_a_string),
        IN_CONTEXT(test_every_attribute_type),
        IN_CONTEXT(test_layout_of_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
