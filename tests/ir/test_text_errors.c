/* What the parser says of wrong texts, word for word: the place, what was expected, the nearest name. */
#include "ir/text_form.h"
#include "support/support.h"

typedef struct wrong {
    const char *text, *message; /* the first line of it */
} wrong;

/* Most begin with two lines that are right, so that line 3 is where the mistake is. */
#define X "ang 1\n%x = input(name=\"x\") : f32[4,8]\n"

static const wrong header[] = {
    {"", "1:1: expected 'ang 1' at the beginning of the text, not the end of the text"},
    {"\n# a comment\n  agn 1\n", "3:3: expected 'ang 1' at the beginning of the text, not 'agn'"},
    {"ang\n", "1:4: expected an integer, not the end of the line"},
    {"ang 2\n", "1:5: the text has version 2, but this library reads version 1"},
    {"ang 1 dump\n", "1:7: this is a dump of a model after some passes, not a model"},
    {"ang 1 2\n", "1:7: expected the end of the line, not '2'"},
    {"ang 1\ngraph mlp\n", "2:7: expected a string, not 'mlp'"},
    {"ang 1\ngraph \"a\"\ngraph \"b\"\n", "3:1: the graph's name must appear once, right after the first line"},
    {X "grap \"a\"\n",
     "3:1: expected a node such as %y = relu(%x), or symbol, block, scope or loss, not 'grap'; did you mean 'graph'?"},
    {X "= relu(%x)\n", "3:1: expected the name of an op, not '='"},
};

static const wrong tokens[] = {
    {X "%y = relu(%x) ;\n", "3:15: ';' has no meaning here"},
    {X "%y = relu(\x01%x)\n", "3:11: byte 0x01 has no meaning outside a string"},
    {X "\xef\xbb\xbf%y = relu(%x)\n", "3:1: byte 0xef has no meaning outside a string"},
    {X "% = relu(%x)\n", "3:1: expected a name of letters, digits, _ and . after %"},
    {X "%y = scale(%x, factor=1e)\n", "3:23: a number's exponent has no digits"},
    {X "%y = scale(%x, factor=1.5x)\n", "3:23: a number cannot be followed by 'x'"},
    {X "%y = scale(%x, factor=1e999)\n", "3:23: the number does not fit in 64 bits; infinity is written inf"},
    {X "%y = scale(%x, factor=-nan)\n", "3:24: expected a number, not 'nan'"},
    {X "%y = softmax(%x, axis=9223372036854775808)\n", "3:23: the integer does not fit in 64 bits"},
    {X "%y = softmax(%x, axis=1.0)\n", "3:23: expected an integer, not '1.0'"},
    {X "output(%x, name=\"y)\n", "3:17: a string has no closing quote on its line"},
    {X "output(%x, name=\"\\q\")\n",
     "3:18: a \\ in a string must be followed by \" \\ n t r, or by x and two hexadecimal digits"},
    {X "output(%x, name=\"\\x00\")\n", "3:18: a string cannot hold the byte 0"},
    {X "output(%x, name=\"a\tb\")\n", "3:19: byte 0x09 in a string: write it as \\x09"},
    {X "%y = matmul(%x, %x, transpose_b=yes)\n", "3:33: expected true or false, not 'yes'"},
};

static const wrong nodes[] = {
    {X "%y = matml(%x, %x)\n", "3:6: there is no op 'matml'; did you mean 'matmul'?"},
    {X "%y = frobnicate(%x)\n",
     "3:6: there is no op 'frobnicate'; an op that a program added (an_context_add_op) is known to that program only"},
    {X "%y = matmul(%x, %x, transpos_b=true)\n",
     "3:21: matmul has no attribute 'transpos_b'; did you mean 'transpose_b'?"},
    {X "%y = relu(%x, alpha=1)\n", "3:15: relu has no attribute 'alpha'"},
    {X "%y = softmax(%x, axis=1, axis=1)\n", "3:26: 'axis' is given twice"},
    {X "%y = softmax(axis=1, %x)\n", "3:22: inputs come before attributes"},
    {X "%y = softmax(%x, axis)\n", "3:22: expected '=' after the attribute's name, not ')'"},
    {X "%y = relu(%x\n", "3:13: expected ')' after inputs and attributes, not the end of the line"},
    {X "%y = relu(3)\n", "3:11: expected an input such as %x or _, or attribute=value, not '3'"},
    {X "%y = relu %x\n", "3:11: expected '(' after the op, not %x"},
    {X "%y relu(%x)\n", "3:4: expected '=' after the outputs, not 'relu'"},
    {X "%y, 3 = relu(%x)\n", "3:5: expected a value such as %x, or _, not '3'"},
    {X "%y = relu(%z)\n", "3:11: %z is not defined above this line, and values must be defined before they are used"},
    {X "%hidden = relu(%x)\n%z = relu(%hiden)\n", "4:11: %hiden is not defined above this line, and values must be "
                                                  "defined before they are used; did you mean 'hidden'?"},
    {X "%loop = add(%x, %loop)\n",
     "3:17: %loop is not defined above this line, and values must be defined before they are used"},
    {X "%x = relu(%x)\n", "3:1: %x is defined twice, first on line 2"},
    {X "relu(%x)\n", "3:1: relu has 1 output, but the line names 0; use _ for an output that is not read"},
    {X "%a, %b = relu(%x)\n", "3:10: relu has 1 output, but the line names 2; use _ for an output that is not read"},
    {X "split(%x, axis=1)\n",
     "3:1: split has at least 1 output, but the line names 0; use _ for an output that is not read"},
    {X "%y = output(%x, name=\"y\")\n",
     "3:6: output has 0 outputs, but the line names 1; use _ for an output that is not read"},
    {X "%y = relu(%x) relu\n", "3:15: expected the end of the line, not 'relu'"},
};

static const wrong types[] = {
    {X "%y = relu(%x) : f33[4,8]\n",
     "3:17: there is no type 'f33'; the types are f32, f64, bf16, f16, i32, i64, u8 and q8_0"},
    {X "%y = relu(%x) : 3\n", "3:17: expected a type such as f32, not '3'"},
    {X "%y = relu(%x) : f32\n", "3:20: expected '[' before the list, not the end of the line"},
    {X "%y = relu(%x) : f32[4,9]\n", "3:17: relu gives f32[4,8] here, not f32[4,9]"},
    {X "%y = relu(%x) : f64[4,8]\n", "3:17: relu gives f32[4,8] here, not f64[4,8]"},
    {X "%y = relu(%x) : f32[4,8], f32[4]\n", "3:27: there are more types than outputs"},
    {X "%a, %b = split(%x, axis=1) : f32[4,4]\n", "3:38: 1 of 2 outputs have a type: give all or none"},
    {X "%y = input(name=\"y\")\n", "3:6: input: a source needs a type"},
    {X "%y = input(name=\"y\") : f32[1,1,1,1,1,1,1,1,1]\n", "3:44: a list has at most 8 elements"},
    {X "%y = input(name=\"y\", dtype=f64) : f32[1]\n", "3:35: input gives f64[1] here, not f32[1]"},
};

static const wrong dimensions[] = {
    {X "%y = input(name=\"y\") : f32[batch]\n",
     "3:28: there is no symbol 'batch'; declare it with a line 'symbol batch' above this one"},
    {"ang 1\nsymbol batch\n%y = input(name=\"y\") : f32[bach]\n",
     "3:28: there is no symbol 'bach'; declare it with a line 'symbol bach' above this one; did you mean 'batch'?"},
    {"ang 1\nsymbol batch\nsymbol batch\n", "3:8: symbol batch is defined twice, first on line 2"},
    {"ang 1\nsymbol 3\n", "2:8: expected a name that begins with a letter, not '3'"},
    {"ang 1\nsymbol _a\n", "2:8: expected a name that begins with a letter, not '_a'"},
    {"ang 1\nsymbol a maximum=3\n",
     "2:10: 'maximum' is written by the library: it is allowed in dumps ('ang 1 dump'), not in models"},
    {X "%y = input(name=\"y\") : f32[2*]\n", "3:30: expected a dimension, not ']'"},
    {X "%y = input(name=\"y\") : f32[(2]\n", "3:30: expected ')' in a dimension, not ']'"},
    {X "%y = input(name=\"y\") : f32[3-5]\n", "3:28: a dimension is negative: -2"},
    {X "%y = input(name=\"y\") : f32[2-2]\n", "3:6: input: dimension 0 of f32[0] is 0; sizes are at least 1"},
    {X "%y = input(name=\"y\") : f32[9223372036854775807*2]\n",
     "3:47: a dimension does not fit in 64 bits: check the sizes that are multiplied"},
    {X "%y = input(name=\"y\") : f32[window(3,5,1)]\n", "3:28: a window of 5 does not fit into 3 elements"},
    {X "%y = input(name=\"y\") : f32[window(3,5)]\n", "3:38: expected ',' in window(dimension, size, stride), not ')'"},
};

static const wrong statements[] = {
    {"ang 1\nblock 2 \"h\"\n", "2:7: blocks and scopes must be numbered in order; this one is 1"},
    {"ang 1\nblock 1 \"h\" parent=1\n", "2:20: parent is 1; it must be 0 to 0"},
    {"ang 1\nblock 1 \"h\" depth=1 depth=1\n", "2:21: expected the end of the line, not 'depth'"},
    {"ang 1\nblock 1 \"\"\n", "2:7: a block needs a name"},
    {X "\nscope 1 \"\"\n", "4:7: a scope needs a name"},
    {"ang 1\nscope 1 \"h\" depth=1\n", "2:13: expected the end of the line, not 'depth'"},
    {X "loss %y\n", "3:6: %y is not defined above this line, and values must be defined before they are used"},
    {X "loss %x\n", "3:6: the loss is f32[4,8]; it must be one f32 or f64 number, a sum over the targets"},
    {X "%s = reduce_sum(%x, axes=[0,1])\nloss %s\nloss %s\n", "5:6: the loss is given twice"},
    {X "%s = reduce_sum(%x, axes=[0,1])\nloss %s targets %s\n",
     "4:6: the targets must be an input, so that they can be counted on the host"},
};

static const wrong annotations[] = {
    {X "%y = relu(%x) {blok=1}\n", "3:16: 'blok' is not an annotation; did you mean 'block'?"},
    {X "%y = relu(%x) {block=1}\n", "3:22: block 1 is not declared above this line"},
    {X "%y = relu(%x) {block=0, block=0}\n", "3:25: 'block' is given twice"},
    {X "%y = relu(%x) {block=-1}\n", "3:22: expected at least 0, not -1"},
    {X "%y = relu(%x) {path=\"fc\"}\n", "3:21: the path of block 0 is \"\", not \"fc\""},
    {X "%y = relu(%x) {block=0\n", "3:23: expected '}' after the annotations, not the end of the line"},
    {X "%y = relu(%x) {offset=64}\n",
     "3:16: 'offset' is written by the library: it is allowed in dumps ('ang 1 dump'), not in models"},
    {"ang 1\n%w = param(name=\"w\", parameter=0) : f32[4]\n",
     "2:22: 'parameter' is written by the library: it is allowed in dumps ('ang 1 dump'), not in models"},
};

/* These are dumps. */
#define D "ang 1 dump\n%x = input(name=\"x\") : f32[4,8]\n"
static const wrong dumps[] = {
    {D "%y = relu(%x) {phase=backwards}\n", "3:22: 'backwards' is not a phase; did you mean 'backward'?"},
    {D "%y = relu(%x) {storage=arenas}\n", "3:24: 'arenas' is not a storage; did you mean 'arena'?"},
    {D "%y = relu(%x) {kernel=\"portabel\"}\n",
     "3:23: relu has no kernel 'portabel' in this build; did you mean 'portable'?"},
    {D "%y = relu(%x) {at=\"model.c\"}\n", "3:19: expected a place such as \"model.c:12\""},
    {D "%y = relu(%x) {origin=%z}\n",
     "3:23: %z is not defined above this line, and values must be defined before they are used"},
    {D "%y = relu(%x) {order=[1,0]}\n", "3:22: the physical order of output 0 does not match relu"},
    {D "%a, %b = split(%x, axis=1) {offset=0}\n", "3:36: expected '[' and a value for each output, not '0'"},
    {D "%a, %b = split(%x, axis=1) {offset=[0]}\n", "3:38: expected ',' and a value for each output, not ']'"},
    {"ang 1 dump\nsymbol a maximum=4 value=5\n", "2:26: value is 5; it must be 1 to 4"},
};

/* From inference: the same words as for builders, with the place in the text in front. */
static const wrong inference[] = {
    {X "%y = relu()\n", "3:6: relu takes 1 to 1 inputs, not 0"},
    {X "%y = relu(_)\n", "3:6: relu: input 0 is absent, but the op needs it"},
    {X "scope 1 \"fc\"\n%y = relu(_) {block=1}\n", "4:6: fc (relu): input 0 is absent, but the op needs it"},
};

static void check(const wrong *cases, size_t count) {
    an_context *ctx = NULL;
    ledger l = {0};
    OK(NULL, context_with_ledger(&ctx, &l, 1));
    size_t before = an_context_bytes(ctx);
    for (size_t i = 0; i < count; i++) {
        an_graph *g = NULL;
        bool dump = !strncmp(cases[i].text, "ang 1 dump", strlen("ang 1 dump")) && cases != header;
        an_status status = (dump ? an_graph_parse_dump : an_graph_parse)(&g, ctx, cases[i].text, strlen(cases[i].text));
        assert_null(g);
        assert_int_not_equal(status, AN_OK);
        if (cases != inference && cases != statements && cases != dimensions && cases != types)
            assert_int_equal(status, AN_ERR_PARSE);
        const char *message = an_last_error(ctx);
        size_t length = strcspn(message, "\n");
        if (length != strlen(cases[i].message) || memcmp(message, cases[i].message, length) != 0)
            fail_msg("%s\ngave     %.*s\nand not  %s", cases[i].text, (int)length, message, cases[i].message);
        assert_int_equal(an_context_bytes(ctx), before);
    }
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
    assert_false(l.mismatch);
}

#define CHECK(cases)                                    \
    static void test_##cases(void **state) {            \
        (void)state;                                    \
        check(cases, sizeof(cases) / sizeof(cases)[0]); \
    }
CHECK(header)
CHECK(tokens)
CHECK(nodes)
CHECK(types)
CHECK(dimensions)
CHECK(statements)
CHECK(annotations)
CHECK(dumps)
CHECK(inference)

/* Too much of anything. */
static void test_limits(void **state) {
    (void)state;
    enum { LONG = 70000 };
    an_context *ctx = NULL;
    an_graph *g = NULL;
    OK(NULL, an_context_create(&ctx, NULL));
    char *text = malloc(2 * LONG);
    assert_non_null(text);

    snprintf(text, LONG, "ang 1\n%%%0300d = relu()\n", 1);
    FAILS(ctx, an_graph_parse(&g, ctx, text, strlen(text)), AN_ERR_PARSE, "2:1: a name has at most 255 characters");
    snprintf(text, LONG, "ang %0100d\n", 1);
    FAILS(ctx, an_graph_parse(&g, ctx, text, strlen(text)), AN_ERR_PARSE, "1:5: a number has at most 64 characters");

    strcpy(text, "ang 1\ngraph \"");
    size_t start = strlen(text);
    memset(text + start, 'a', LONG);
    strcpy(text + start + LONG, "\"\n");
    FAILS(ctx, an_graph_parse(&g, ctx, text, strlen(text)), AN_ERR_PARSE, "2:7: a string has at most 65535 bytes");

    strcpy(text, X "%y = input(name=\"y\") : f32[");
    start = strlen(text);
    memset(text + start, '(', LONG);
    FAILS(ctx, an_graph_parse(&g, ctx, text, start + LONG), AN_ERR_PARSE,
          "a dimension has more than 72 nested parentheses");

    strcpy(text, X "_");
    for (int i = 0; i < 32; i++) strcat(text, ",_");
    strcat(text, " = split(%x, axis=1)\n");
    FAILS(ctx, an_graph_parse(&g, ctx, text, strlen(text)), AN_ERR_PARSE, "3:65: a node has at most 32 outputs");
    strcpy(text, X "%y = concat(%x");
    for (int i = 0; i < 32; i++) strcat(text, ",%x");
    FAILS(ctx, an_graph_parse(&g, ctx, text, strlen(text)), AN_ERR_PARSE, "a node has at most 32 inputs");

    /* The length is looked at before the text. */
    FAILS(ctx, an_graph_parse(&g, ctx, text, (size_t)1 << 40), AN_ERR_PARSE,
          "the text has 1099511627776 bytes, but at most 268435456 can be read");
    free(text);
    an_context_destroy(&ctx);
}

/* A NUL is a byte like any other that has no meaning: the text does not end there. */
static void test_embedded_nul(void **state) {
    (void)state;
    static const char after[] = "ang 1\n\0%x = relu(%y)\n", in_comment[] = "ang 1 # a \0 b\n",
                      in_string[] = "ang 1\ngraph \"a\0b\"\n";
    an_context *ctx = NULL;
    an_graph *g = NULL;
    OK(NULL, an_context_create(&ctx, NULL));
    FAILS(ctx, an_graph_parse(&g, ctx, after, sizeof after - 1), AN_ERR_PARSE,
          "2:1: byte 0x00 has no meaning outside a string");
    FAILS(ctx, an_graph_parse(&g, ctx, in_string, sizeof in_string - 1), AN_ERR_PARSE,
          "2:9: byte 0x00 in a string: write it as \\x00");
    OK(ctx, an_graph_parse(&g, ctx, in_comment, sizeof in_comment - 1));
    an_graph_destroy(&g);
    FAILS(ctx, an_graph_parse(&g, ctx, NULL, 0), AN_ERR_PARSE, "1:1: expected 'ang 1'");
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),      cmocka_unit_test(test_tokens),       cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_types),       cmocka_unit_test(test_dimensions),   cmocka_unit_test(test_statements),
        cmocka_unit_test(test_annotations), cmocka_unit_test(test_dumps),        cmocka_unit_test(test_inference),
        cmocka_unit_test(test_limits),      cmocka_unit_test(test_embedded_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
