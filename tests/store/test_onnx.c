/* Graphs as ONNX models: which nodes are written, what is refused. Given a graph's file, the program writes
 * its model with the weights as inputs: check_onnx.py compares what ONNX Runtime makes of it with the
 * golden files of every op. */
#include "support/export_as.h"
#include "support/support.h"

#include "anneal/checkpoint.h"
#include "interchange/onnx/export.h"
#include "interchange/onnx/model.h"

/* The model of a text form, as one message, for free; NULL and the status after an error. */
static char *model_of(an_context *ctx, const char *form, size_t *length, an_status *status) {
    an_graph *graph = NULL;
    an_onnx_parts parts;
    char *model = NULL;
    an_onnx_parts_init(&parts, ctx);
    *status = an_graph_parse(&graph, ctx, form, strlen(form));
    if (*status == AN_OK) *status = an_graph_verify(graph);
    if (*status == AN_OK) *status = an_onnx_write(&parts, graph, "A test", NULL, AN_ONNX_WEIGHTS_GIVEN);
    if (*status == AN_OK) {
        an_onnx_graph_head(&parts.model, parts.graph.length);
        an_text_bytes(&parts.model, parts.graph.bytes, parts.graph.length);
        *length = parts.model.length;
        *status = parts.model.status;
    }
    if (*status == AN_OK) { /* a string of the library ends at its first NUL */
        model = malloc(*length);
        assert_non_null(model);
        memcpy(model, parts.model.bytes, *length);
    }
    an_onnx_parts_destroy(&parts);
    an_graph_destroy(&graph);
    return model;
}

/* ---- reading messages ---- */

typedef struct {
    const unsigned char *at, *end;
} message;

static uint64_t take_varint(message *m) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(m->at < m->end);
        const unsigned char byte = *m->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
}

/* The next field; of one with bytes, these. False after the last. */
static bool take_field(message *m, int *field, message *inside) {
    if (m->at == m->end) return false;
    const uint64_t key = take_varint(m);
    *field = (int)(key >> 3);
    *inside = (message){m->at, m->at};
    switch (key & 7) {
    case 0: take_varint(m); break;
    case 2: {
        const uint64_t length = take_varint(m);
        assert_true(length <= (uint64_t)(m->end - m->at));
        *inside = (message){m->at, m->at + length};
        m->at += length;
        break;
    }
    case 5: m->at += 4; break;
    default: fail_msg("a field of kind %d", (int)(key & 7));
    }
    return true;
}

static message find_field(message m, int wanted, int which) {
    int field;
    message inside;
    while (take_field(&m, &field, &inside))
        if (field == wanted && which-- == 0) return inside;
    return (message){NULL, NULL};
}

static bool is_text(message m, const char *text) {
    return m.at && (size_t)(m.end - m.at) == strlen(text) && !memcmp(m.at, text, strlen(text));
}

enum { MODEL_PRODUCER = 2, MODEL_GRAPH = 7, GRAPH_NODE = 1, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, INFO_NAME = 1 };

static void test_nodes(void **state) {
    static const char form[] = "ang 1\nsymbol batch\n"
                               "%x = input(name=\"x\") : f32[batch,32]\n"
                               "%y = input(name=\"y\") : i64[batch]\n"
                               "%w = param(name=\"fc.weight\", initializer=2, scale=0.17) : f32[10,32]\n"
                               "%b = param(name=\"fc.bias\") : f32[10]\n"
                               "%1 = matmul(%x, %w, transpose_b=true)\n"
                               "%2 = bias(%1, %b, axis=1)\n"
                               "%unused = relu(%2)\n"
                               "%3 = reshape(%2, dims=[2*batch,5])\n"
                               "output(%3, name=\"logits\")\n"
                               "%loss, _ = cross_entropy(%2, %y, ignored=-100)\n"
                               "loss %loss targets %y\n";
    static const char *const ops[] = {"Transpose", "MatMul", "Add", "Shape", "Mul", "Concat", "Reshape", "Identity"};
    static const char *const inputs[] = {"x", "fc.weight", "fc.bias"};
    const int count = sizeof ops / sizeof *ops;
    an_context *ctx = NULL;
    an_status status;
    size_t length = 0;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    char *bytes = model_of(ctx, form, &length, &status);
    OK(ctx, status);
    const message model = {(unsigned char *)bytes, (unsigned char *)bytes + length};
    assert_true(is_text(find_field(model, MODEL_PRODUCER, 0), "anneal"));
    const message graph = find_field(model, MODEL_GRAPH, 0);
    for (int i = 0; i < count; i++) {
        const message node = find_field(graph, GRAPH_NODE, i);
        if (!is_text(find_field(node, NODE_OP, 0), ops[i])) fail_msg("node %d is not %s", i, ops[i]);
    }
    assert_null(find_field(graph, GRAPH_NODE, count).at);
    assert_true(is_text(find_field(find_field(graph, GRAPH_NODE, 0), NODE_INPUT, 0), "fc.weight"));
    assert_true(is_text(find_field(find_field(graph, GRAPH_NODE, count - 1), NODE_OUTPUT, 0), "logits"));
    for (int i = 0; i < 3; i++)
        assert_true(is_text(find_field(find_field(graph, GRAPH_INPUT, i), INFO_NAME, 0), inputs[i]));
    assert_null(find_field(graph, GRAPH_INPUT, 3).at); /* targets are read by the loss only */
    assert_true(is_text(find_field(find_field(graph, GRAPH_OUTPUT, 0), INFO_NAME, 0), "logits"));
    free(bytes);
    an_context_destroy(&ctx);
}

/* Nodes of a text, from the inside out, and what the last one reads. */
static void test_expressions(void **state) {
    static const struct {
        const char *form, *ops[4], *read[3];
    } cases[] = {
        {"mish(%x)", {"Softplus", "Tanh", "Mul", "Identity"}, {"x", "/1"}},
        {"hard_swish(%x)", {"HardSwish", "Identity"}, {"x"}},
        {"silu(%x)", {"Sigmoid", "Mul", "Identity"}, {"/0", "x"}},
        {"clamp(%x, low=-1, high=2)", {"Clip", "Identity"}, {"x", "/0", "/1"}},
    };
    an_context *ctx = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_status status;
        size_t length = 0;
        char form[128];
        int count = 0;
        snprintf(form, sizeof form, "ang 1\n%%x = input(name=\"x\") : f32[3]\n%%1 = %s\noutput(%%1, name=\"y\")\n",
                 cases[i].form);
        char *bytes = model_of(ctx, form, &length, &status);
        OK(ctx, status);
        const message graph =
            find_field((message){(unsigned char *)bytes, (unsigned char *)bytes + length}, MODEL_GRAPH, 0);
        for (; count < 4 && cases[i].ops[count]; count++)
            assert_true(is_text(find_field(find_field(graph, GRAPH_NODE, count), NODE_OP, 0), cases[i].ops[count]));
        assert_null(find_field(graph, GRAPH_NODE, count).at);
        const message last = find_field(graph, GRAPH_NODE, count - 2);
        for (int k = 0; k < 3 && cases[i].read[k]; k++)
            assert_true(is_text(find_field(last, NODE_INPUT, k), cases[i].read[k]));
        free(bytes);
    }
    an_context_destroy(&ctx);
}

static void test_refused(void **state) {
    static const struct {
        const char *form, *message;
    } cases[] = {
        {"ang 1\n%x = input(name=\"x\") : f32[4,3]\n%1 = relu(%x)\n", "the model has no output"},
        {"ang 1\n%x = input(name=\"x\") : f32[4,3]\n%s = program_state(name=\"s\") : f32[3]\n%1 = add(%x, %s)\n"
         "output(%1, name=\"y\")\n",
         "the op 'program_state' cannot be exported to ONNX"},
        {"ang 1\n%x = input(name=\"x\") : f32[4,3]\n%w = param(name=\"w\") : f32[3]\n"
         "%1, %2, %3 = layer_norm(%x, %w, epsilon=1e-05)\noutput(%2, name=\"mean\")\n",
         "the model reads output 1 of the op 'layer_norm', which ONNX does not have"},
        {"ang 1\n%x = input(name=\"x\") : f32[4,3]\n%1 = relu(%x)\noutput(%1, name=\"x\")\n", "are called 'x'"},
        {"ang 1\n%x = input(name=\"/1\") : f32[4,3]\n%1 = relu(%x)\noutput(%1, name=\"y\")\n", "begins with a slash"},
        {"ang 1\nsymbol n\n%x = input(name=\"x\") : f32[3]\n%1 = expand(%x, dims=[n,3])\noutput(%1, name=\"y\")\n",
         "the size 'n', which is no dimension of an input"},
    };
    an_context *ctx = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_status status;
        size_t length;
        assert_null(model_of(ctx, cases[i].form, &length, &status));
        if (status != AN_ERR_UNSUPPORTED || !strstr(an_last_error(ctx), cases[i].message))
            fail_msg("%s: %s", an_status_name(status), an_last_error(ctx));
    }
    an_context_destroy(&ctx);
}

/* Each allocation fails once: nothing is left behind. */
static void test_memory_fails(void **state) {
    static const char form[] =
        "ang 1\nsymbol n\n%q = input(name=\"q\") : f32[n,4,6,8]\n%k = input(name=\"k\") : f32[n,2,6,8]\n"
        "%1 = rotary(%q, base=10000, rotated=8)\n%2, _ = attention(%1, %k, %k, causal=true, scale=0.5)\n"
        "%t = contiguous(%2)\n%3 = reshape(%t, dims=[4*n,48])\noutput(%3, name=\"y\")\n";
    ledger l = {0};
    an_context *ctx = NULL;
    an_status status = AN_ERR_MEMORY;
    char *model = NULL;
    size_t length;
    (void)state;
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    const size_t held = l.held;
    for (long at = 1; status != AN_OK; at++) {
        l.calls = 0;
        l.fail_at = at;
        model = model_of(ctx, form, &length, &status);
        if (status != AN_OK && status != AN_ERR_MEMORY) fail_msg("%s", an_last_error(ctx));
        assert_true((status == AN_OK) == (model != NULL));
        if (status != AN_OK) assert_int_equal(l.held, held);
    }
    l.fail_at = 0;
    free(model);
    assert_int_equal(l.held, held);
    assert_false(l.mismatch);
    an_context_destroy(&ctx);
}

/* ---- files ---- */

enum {
    GRAPH_INITIALIZER = 5,
    TENSOR_NAME = 8,
    TENSOR_BYTES = 9,
    TENSOR_EXTERNAL = 13,
    ENTRY_VALUE = 2,
    MOST_FILE = 1 << 20
};

static size_t read_whole(const char *path, unsigned char *bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t length = fread(bytes, 1, MOST_FILE, file);
    fclose(file);
    assert_in_range(length, 1, MOST_FILE - 1);
    return length;
}

/* The bytes of a weight, in the model or where it says that they are in the file beside it. */
static message weight_bytes(message tensor, message data) {
    char digits[24] = "";
    if (!data.at) return find_field(tensor, TENSOR_BYTES, 0);
    assert_true(is_text(find_field(find_field(tensor, TENSOR_EXTERNAL, 0), ENTRY_VALUE, 0), "model.onnx.data"));
    const message offset = find_field(find_field(tensor, TENSOR_EXTERNAL, 1), ENTRY_VALUE, 0);
    memcpy(digits, offset.at, (size_t)(offset.end - offset.at));
    const unsigned char *begin = data.at + strtoll(digits, NULL, 10);
    const message length = find_field(find_field(tensor, TENSOR_EXTERNAL, 2), ENTRY_VALUE, 0);
    memset(digits, 0, sizeof digits);
    memcpy(digits, length.at, (size_t)(length.end - length.at));
    assert_true(begin + strtoll(digits, NULL, 10) <= data.end);
    return (message){begin, begin + strtoll(digits, NULL, 10)};
}

static bool is_weight(an_checkpoint *c, message tensor, message data, an_checkpoint_tensor *t, int64_t index) {
    an_checkpoint_tensor_init(t, sizeof *t);
    assert_int_equal(an_checkpoint_tensor_get(c, index, t), AN_OK);
    if (t->role != AN_SAVED_WEIGHT || !is_text(find_field(tensor, TENSOR_NAME, 0), t->name)) return false;
    const message found = weight_bytes(tensor, data);
    const size_t bytes = (size_t)t->elements * t->element_bytes;
    void *expected = malloc(bytes);
    assert_non_null(expected);
    assert_int_equal(an_checkpoint_read(c, index, 0, t->elements, expected), AN_OK);
    if ((size_t)(found.end - found.at) != bytes || memcmp(found.at, expected, bytes) != 0)
        fail_msg("%s has other bytes", t->name);
    free(expected);
    return true;
}

/* Every weight of the checkpoint is in the file with its bits, and every initializer with a name is one. */
static void check_file(an_checkpoint *c, message model, message data) {
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    assert_int_equal(an_checkpoint_info_get(c, &info), AN_OK);
    const message graph = find_field(model, MODEL_GRAPH, 0);
    int64_t weights = 0, written = 0;
    an_checkpoint_tensor t;
    for (int i = 0;; i++) {
        const message tensor = find_field(graph, GRAPH_INITIALIZER, i);
        if (!tensor.at) break;
        const message name = find_field(tensor, TENSOR_NAME, 0);
        if (*name.at == '/') continue; /* a constant */
        bool found = false;
        for (int64_t k = 0; k < info.tensors && !found; k++) found = is_weight(c, tensor, data, &t, k);
        assert_true(found);
        written++;
    }
    for (int64_t k = 0; k < info.tensors; k++) {
        an_checkpoint_tensor_init(&t, sizeof t);
        assert_int_equal(an_checkpoint_tensor_get(c, k, &t), AN_OK);
        weights += t.role == AN_SAVED_WEIGHT;
    }
    assert_int_equal(written, weights);
    assert_true(weights > 0);
}

static void test_files(void **state) {
    static const char *const names[] = {"v1-mlp", "v1-cnn", "v1-gpt2"};
    an_context *ctx = NULL;
    unsigned char *model = malloc(MOST_FILE), *data = malloc(MOST_FILE);
    (void)state;
    assert_non_null(model);
    assert_non_null(data);
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[1024];
        an_checkpoint *c = NULL;
        snprintf(folder, sizeof folder, ANNEAL_SOURCE_DIR "/tests/golden/checkpoints/%s/step-00000007-1", names[i]);
        OK(ctx, an_checkpoint_open(&c, ctx, folder));
        OK(ctx, export_as(c, "model.onnx", AN_EXPORT_ONNX));
        size_t length = read_whole("model.onnx", model);
        check_file(c, (message){model, model + length}, (message){NULL, NULL});
        OK(ctx, an_onnx_export(c, "./model.onnx", 0)); /* as if it was too large for one file */
        const size_t data_length = read_whole("model.onnx.data", data);
        length = read_whole("model.onnx", model);
        check_file(c, (message){model, model + length}, (message){data, data + data_length});
        an_checkpoint_close(&c);
    }
    an_context_destroy(&ctx);
    free(data);
    free(model);
}

/* What golden cases leave out, as losses that are no outputs, ends with 77. */
static int write_model(const char *path) {
    enum { MOST = 1 << 20 };
    an_context *ctx = NULL;
    char *form = calloc(1, MOST), *model = NULL;
    size_t length = 0;
    FILE *file = fopen(path, "r");
    an_status status = file && form && an_context_create(&ctx, NULL) == AN_OK ? AN_OK : AN_ERR_FILE;
    if (status == AN_OK && fread(form, 1, MOST - 1, file) == 0) status = AN_ERR_FILE;
    if (status == AN_OK) model = model_of(ctx, form, &length, &status);
    if (model) fwrite(model, 1, length, stdout);
    if (status != AN_OK) fprintf(stderr, "%s: %s\n", path, an_last_error(ctx));
    free(model);
    an_context_destroy(&ctx);
    if (file) fclose(file);
    free(form);
    return status == AN_OK ? 0 : status == AN_ERR_UNSUPPORTED ? 77 : 1;
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),        cmocka_unit_test(test_expressions), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory_fails), cmocka_unit_test(test_files),
    };
    return count == 1 ? cmocka_run_group_tests(tests, NULL, NULL) : write_model(arguments[1]);
}
