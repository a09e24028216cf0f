/* Graphs as programs for PyTorch: which lines are written, which names, what is refused. Given a file, the program
 * writes its module: check_torch.py compares what that computes with the golden files of every op. */
#include "support/support.h"

#include "interchange/torch_text.h"

/* The module of a text form; NULL and the status after an error. */
static char *module_of(an_context *ctx, const char *form, an_status *status) {
    an_graph *graph = NULL;
    an_text text;
    char *module = NULL;
    an_text_init(&text, ctx);
    *status = an_graph_parse(&graph, ctx, form, strlen(form));
    if (*status == AN_OK) *status = an_graph_verify(graph);
    if (*status == AN_OK) *status = an_torch_write(&text, graph, "A \"test\".");
    if (*status == AN_OK) *status = an_text_take(&text, &module);
    an_text_destroy(&text);
    an_graph_destroy(&graph);
    return module;
}

static void expect_lines(const char *module, const char *lines) {
    if (!strstr(module, lines)) fail_msg("not in it:\n%s\nbut:\n%s", lines, module);
}

static void test_lines(void **state) {
    static const char form[] = "ang 1\nsymbol batch\n"
                               "%x = input(name=\"x\") : f32[batch,32]\n"
                               "%y = input(name=\"y\") : i64[batch]\n"
                               "scope 1 \"fc\"\n"
                               "%w = param(name=\"fc.weight\", initializer=2, scale=0.17) : f32[10,32] {block=1}\n"
                               "%b = param(name=\"fc.bias\", frozen=true) : f32[10] {block=1}\n"
                               "%1 = matmul(%x, %w, transpose_b=true) {block=1}\n"
                               "%2 = bias(%1, %b, axis=1) {block=1}\n"
                               "%unused = relu(%2)\n"
                               "%3 = reshape(%2, dims=[2*batch,5])\n"
                               "%4 = clamp(%3, low=-inf, high=1.5)\n"
                               "output(%4, name=\"logits\")\n"
                               "%loss, _ = cross_entropy(%2, %y, ignored=-100)\n"
                               "loss %loss targets %y\n";
    an_context *ctx = NULL;
    an_status status;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    char *module = module_of(ctx, form, &status);
    OK(ctx, status);
    expect_lines(module, "\"\"\"A _test_.\n");
    expect_lines(module, "    \"fc.weight\": (TRAINED, torch.float32, [10, 32]),\n"
                         "    \"fc.bias\": (FROZEN, torch.float32, [10]),\n}\n");
    expect_lines(module, "    def forward(self, x):\n"
                         "        p = dict(self.named_parameters()) | dict(self.named_buffers())\n"
                         "        n_batch = x.shape[0]\n"
                         "        x0 = x @ p[\"fc.weight\"].mT\n"
                         "        x0 = x0 + p[\"fc.bias\"]\n"
                         "        x0 = x0.reshape((2*n_batch, 5))\n"
                         "        x0 = torch.clamp(x0, float(\"-inf\"), 1.5)\n"
                         "        return x0\n");
    assert_null(strstr(module, "def attention"));
    an_string_release(ctx, &module);
    an_context_destroy(&ctx);
}

/* Names that Python, PyTorch or the module itself have, several outputs, a value that is read again later. */
static void test_names(void **state) {
    static const char form[] = "ang 1\nsymbol p\n"
                               "%a = input(name=\"lambda\") : f32[p,6]\n"
                               "%b = input(name=\"x1\") : f32[p,6]\n"
                               "%s = run_state(name=\"a.\\\"b\\\\\") : f32[6]\n"
                               "%1 = add(%a, %b)\n"
                               "%2, %3, %4 = split(%1, axis=1)\n"
                               "%5 = multiply(%2, %4)\n"
                               "%6 = multiply(%1, %s)\n"
                               "output(%5, name=\"first\")\n"
                               "output(%6, name=\"second\")\n";
    an_context *ctx = NULL;
    an_status status;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    char *module = module_of(ctx, form, &status);
    OK(ctx, status);
    expect_lines(module, "    \"a.\\\"b\\\\\": (BUFFER, torch.float32, [6]),\n");
    expect_lines(module, "    def forward(self, lambda_, x1_):\n");
    expect_lines(module, "        n_p = lambda_.shape[0]\n"
                         "        x0 = lambda_ + x1_\n"
                         "        x1, x2, x3 = x0.chunk(3, 1)\n"
                         "        x1 = x1 * x3\n"
                         "        x0 = x0 * p[\"a.\\\"b\\\\\"]\n"
                         "        return {\"first\": x1, \"second\": x0}\n");
    an_string_release(ctx, &module);
    an_context_destroy(&ctx);
}

static void test_refused(void **state) {
    static const struct {
        const char *form, *message;
    } cases[] = {
        {"ang 1\n%x = input(name=\"x\") : f32[4,3]\n%1 = relu(%x)\n", "the model has no output"},
        {"ang 1\n%x = input(name=\"x\") : f32[4,3]\n%s = program_state(name=\"s\") : f32[3]\n%1 = add(%x, %s)\n"
         "output(%1, name=\"y\")\n",
         "the op 'program_state' cannot be exported to PyTorch"},
        {"ang 1\n%x = input(name=\"x\") : f32[4,3]\n%w = param(name=\"w\") : f32[3]\n"
         "%1, %2, %3 = layer_norm(%x, %w, epsilon=1e-05)\noutput(%2, name=\"mean\")\n",
         "the model reads output 1 of the op 'layer_norm', which PyTorch does not have"},
    };
    an_context *ctx = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_status status;
        assert_null(module_of(ctx, cases[i].form, &status));
        assert_int_equal(status, AN_ERR_UNSUPPORTED);
        assert_non_null(strstr(an_last_error(ctx), cases[i].message));
    }
    an_context_destroy(&ctx);
}

/* Each allocation fails once: nothing is left behind. */
static void test_memory_fails(void **state) {
    static const char form[] = "ang 1\nsymbol n\n%x = input(name=\"x\") : f32[n,3]\n%w = param(name=\"w\") : f32[3]\n"
                               "%1 = add(%x, %w)\n%2 = reshape(%1, dims=[3*n])\noutput(%2, name=\"y\")\n";
    ledger l = {0};
    an_context *ctx = NULL;
    an_status status = AN_ERR_MEMORY;
    char *module = NULL;
    (void)state;
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    const size_t held = l.held;
    for (long at = 1; status != AN_OK; at++) {
        l.calls = 0;
        l.fail_at = at;
        module = module_of(ctx, form, &status);
        if (status != AN_OK) assert_string_equal(an_status_name(status), "AN_ERR_MEMORY");
        assert_true((status == AN_OK) == (module != NULL));
        if (status != AN_OK) assert_int_equal(l.held, held);
    }
    l.fail_at = 0;
    an_string_release(ctx, &module);
    assert_int_equal(l.held, held);
    assert_false(l.mismatch);
    an_context_destroy(&ctx);
}

/* What golden cases leave out, as losses that are no outputs, ends with 77. */
static int write_module(const char *path) {
    enum { MOST = 1 << 20 };
    an_context *ctx = NULL;
    char *form = calloc(1, MOST), *module = NULL;
    FILE *file = fopen(path, "r");
    an_status status = file && form && an_context_create(&ctx, NULL) == AN_OK ? AN_OK : AN_ERR_FILE;
    if (status == AN_OK && fread(form, 1, MOST - 1, file) == 0) status = AN_ERR_FILE;
    if (status == AN_OK) module = module_of(ctx, form, &status);
    if (module) fputs(module, stdout);
    if (status != AN_OK) fprintf(stderr, "%s: %s\n", path, an_last_error(ctx));
    an_string_release(ctx, &module);
    an_context_destroy(&ctx);
    if (file) fclose(file);
    free(form);
    return status == AN_OK ? 0 : status == AN_ERR_UNSUPPORTED ? 77 : 1;
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory_fails),
    };
    return count == 1 ? cmocka_run_group_tests(tests, NULL, NULL) : write_module(arguments[1]);
}
