/* Weights stream from disk: while a published model is loaded, memory stays within 1.05 times what the model is in the
 * end. tests/models/load_memory.c measures the same with large models, as the resident memory of a process. */
#include "anneal/pretrained.h"
#include "interchange/load_model.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */

enum { LAYERS = 4, WIDTH = 512, HIDDEN = 1408, VOCABULARY = 4096, MOST_TENSORS = 64 };

static const char config[] =
    "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 512, "
    "\"intermediate_size\": 1408, "
    "\"num_hidden_layers\": 4, \"num_attention_heads\": 8, \"num_key_value_heads\": 8, \"vocab_size\": 4096, "
    "\"max_position_embeddings\": 128, \"tie_word_embeddings\": true}";

typedef struct {
    an_safetensor tensors[MOST_TENSORS];
    char names[MOST_TENSORS][80];
    size_t count;
    int64_t bytes;
} contents;

static void add(contents *c, const char *dtype, const char *name, int64_t rows, int64_t columns) {
    an_safetensor *t = &c->tensors[c->count];
    snprintf(c->names[c->count], sizeof c->names[0], "%s", name);
    t->name = c->names[c->count++];
    t->type = an_safetensors_type_named(dtype);
    t->ndims = columns ? 2 : 1;
    t->dims[0] = rows;
    t->dims[1] = columns;
    t->begin = c->bytes;
    t->bytes = rows * (columns ? columns : 1) * (int64_t)t->type->size;
    c->bytes += t->bytes;
}

/* The tables in the first part, the blocks in the second. */
static void list(contents *c, const char *dtype, bool tables, bool blocks) {
    static const struct {
        const char *name;
        int64_t rows, columns;
    } parts[] = {
        {"self_attn.q_proj", WIDTH, WIDTH}, {"self_attn.k_proj", WIDTH, WIDTH}, {"self_attn.v_proj", WIDTH, WIDTH},
        {"self_attn.o_proj", WIDTH, WIDTH}, {"mlp.gate_proj", HIDDEN, WIDTH},   {"mlp.up_proj", HIDDEN, WIDTH},
        {"mlp.down_proj", WIDTH, HIDDEN},   {"input_layernorm", WIDTH, 0},      {"post_attention_layernorm", WIDTH, 0}};
    char name[80];
    *c = (contents){.count = 0};
    if (tables) {
        add(c, dtype, "model.embed_tokens.weight", VOCABULARY, WIDTH);
        add(c, dtype, "model.norm.weight", WIDTH, 0);
    }
    for (int i = 0; blocks && i < LAYERS; i++)
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", i, parts[k].name);
            add(c, dtype, name, parts[k].rows, parts[k].columns);
        }
}

static void write_part(const char *path, const contents *c) {
    void *zeros = calloc(1, (size_t)c->bytes);
    assert_non_null(zeros);
    write_tensors(path, c->tensors, c->count, zeros, (size_t)c->bytes);
    free(zeros);
}

static void check(const char *folder) {
    an_pretrained *p = NULL;
    an_graph *graph = NULL;
    an_params *params = NULL;
    an_params_options stored;
    an_params_options_init(&stored, sizeof stored);
    stored.gradients = false;
    stored.moments = 0;
    const size_t before = counted.held;
    counted.maximum = before;
    OK(ctx, an_pretrained_open(&p, ctx, folder));
    OK(ctx, an_pretrained_graph(p, &graph, NULL));
    an_pretrained_close(&p);
    OK(ctx, an_params_create(&params, ctx, graph, &stored));
    OK(ctx, an_weights_load(params, folder, AN_MODEL_WEIGHTS_AUTO));
    const double ratio = (double)(counted.maximum - before) / (double)(counted.held - before);
    print_message("%s: %.1f MiB, at most %.4f times as much\n", folder, (double)(counted.held - before) / 1048576,
                  ratio);
    if (!(ratio <= 1.05)) fail_msg("%s: loading takes %.3f times the memory of the weights", folder, ratio);
    an_params_destroy(&params);
    an_graph_destroy(&graph);
}

static void test_one_file(void **state) {
    static const char *const types[] = {"F32", "BF16"};
    contents c;
    (void)state;
    mkdir("one", 0777);
    write_text("one/config.json", config);
    for (int i = 0; i < 2; i++) {
        list(&c, types[i], true, true);
        write_part("one/model.safetensors", &c);
        check("one");
    }
}

static void test_several_files(void **state) {
    char index[8192];
    size_t at = (size_t)snprintf(index, sizeof index, "{\"weight_map\": {");
    contents c;
    (void)state;
    mkdir("several", 0777);
    write_text("several/config.json", config);
    for (int part = 0; part < 2; part++) {
        list(&c, "F32", part == 0, part == 1);
        write_part(part ? "several/b.safetensors" : "several/a.safetensors", &c);
        for (size_t i = 0; i < c.count; i++)
            at += (size_t)snprintf(index + at, sizeof index - at, "%s\"%s\": \"%c.safetensors\"", part || i ? ", " : "",
                                   c.names[i], "ab"[part]);
    }
    snprintf(index + at, sizeof index - at, "}}");
    write_text("several/model.safetensors.index.json", index);
    check("several");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_file), cmocka_unit_test(test_several_files)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
