/* Several layers in one tensor of a file, as Phi-3 has q, k and v, and gate and up: the model of such a folder has the
 * bits of one whose folder has the layers apart, and what is exported has the tensors of the folder again. */
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/predict.h"
#include "anneal/pretrained.h"
#include "formats/weights.h"

#include "open/init_model.h"
#include "open/init_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

enum { LAYERS = 2, WIDTH = 32, KEYS = 16, HIDDEN = 64, VOCABULARY = 24, TOKENS = 16, MOST_NAMES = 64, MOST = 1 << 16 };

static void forget(const char *paths) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", paths);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own files */
}

/* ---- the folders ---- */

#define SIZES                                                                                                   \
    "\"hidden_size\": 32, \"intermediate_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "    \
    "\"num_key_value_heads\": 2, \"vocab_size\": 24, \"max_position_embeddings\": 8, \"rms_norm_eps\": 1e-05, " \
    "\"rope_theta\": 10000.0, \"tie_word_embeddings\": false, \"sliding_window\": 3"
#define PHI3                                                                                                         \
    "{\"architectures\": [\"Phi3ForCausalLM\"], \"model_type\": \"phi3\", \"auto_map\": {\"AutoModelForCausalLM\": " \
    "\"modeling_phi3.Phi3ForCausalLM\"}, \"original_max_position_embeddings\": 8, \"attention_bias\": false, "       \
    "\"embd_pdrop\": 0.0, " SIZES
#define MISTRAL "{\"architectures\": [\"MistralForCausalLM\"], \"model_type\": \"mistral\", " SIZES

typedef struct {
    builder b;
    char names[MOST_NAMES][96];
} writing;

static void add_layer(writing *w, int layer, const char *name, const char *type, int ndims, int64_t rows,
                      int64_t columns) {
    char *own = w->names[w->b.count];
    snprintf(own, sizeof w->names[0], layer < 0 ? "%s" : "model.layers.%2$d.%1$s", name, layer);
    add(&w->b, own, type, ndims, rows, columns);
    /* other numbers for every row, small enough for bf16 to hold them */
    static unsigned state = 1;
    const int64_t size = (int64_t)w->b.tensors[w->b.count - 1].type->size;
    unsigned char *at = w->b.data + w->b.tensors[w->b.count - 1].begin;
    if (w->b.count == 1) state = 1;
    for (int64_t i = 0; i < rows * (columns ? columns : 1); i++) {
        state = state * 1664525 + 1013904223;
        put(at + i * size, type, (double)((int)(state >> 24) - 128) / 512);
    }
}

/* Rows of q come before those of k and v, so the same random numbers are in both folders. */
static void write_folder(const char *folder, const char *config, const char *type, bool joined) {
    char path[64];
    writing w = {.b = begin()};
    forget(folder);
    mkdir(folder, 0777);
    add_layer(&w, -1, "model.embed_tokens.weight", type, 2, VOCABULARY, WIDTH);
    for (int i = 0; i < LAYERS; i++) {
        add_layer(&w, i, "input_layernorm.weight", type, 1, WIDTH, 0);
        if (joined) {
            add_layer(&w, i, "self_attn.qkv_proj.weight", type, 2, WIDTH + 2 * KEYS, WIDTH);
        } else {
            add_layer(&w, i, "self_attn.q_proj.weight", type, 2, WIDTH, WIDTH);
            add_layer(&w, i, "self_attn.k_proj.weight", type, 2, KEYS, WIDTH);
            add_layer(&w, i, "self_attn.v_proj.weight", type, 2, KEYS, WIDTH);
        }
        add_layer(&w, i, "self_attn.o_proj.weight", type, 2, WIDTH, WIDTH);
        add_layer(&w, i, "post_attention_layernorm.weight", type, 1, WIDTH, 0);
        if (joined) {
            add_layer(&w, i, "mlp.gate_up_proj.weight", type, 2, 2 * HIDDEN, WIDTH);
        } else {
            add_layer(&w, i, "mlp.gate_proj.weight", type, 2, HIDDEN, WIDTH);
            add_layer(&w, i, "mlp.up_proj.weight", type, 2, HIDDEN, WIDTH);
        }
        add_layer(&w, i, "mlp.down_proj.weight", type, 2, WIDTH, HIDDEN);
    }
    add_layer(&w, -1, "model.norm.weight", type, 1, WIDTH, 0);
    add_layer(&w, -1, "lm_head.weight", type, 2, VOCABULARY, WIDTH);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    end(&w.b, path);
    snprintf(path, sizeof path, "%s/config.json", folder);
    write_text(path, config);
}

static void write_folders(const char *type) {
    write_folder("phi3", PHI3 "}", type, true);
    write_folder("apart", MISTRAL "}", type, false);
}

/* ---- what is compared ---- */

static an_trainer *open_model(const char *model, const char *rest) {
    char config[1024];
    unsigned short tokens[3 * TOKENS];
    for (int i = 0; i < 3 * TOKENS; i++) tokens[i] = (unsigned short)(i * 7 % VOCABULARY);
    write_file("tokens.bin", tokens, sizeof tokens);
    snprintf(config, sizeof config,
             "model: {%s}\ndata: {train: {type: tokens, path: tokens.bin}}\nbatch: {global: 2}\nsave: {every: off}\n"
             "optimizer: {type: adamw, lr: 0.1}\ntrain: {precision: f32}\nrun: {dir: run, steps: 2}\n%s",
             model, rest);
    forget("run");
    return open_run(config);
}

static void find_logits(const char *model, const char *rest, float logits[TOKENS * VOCABULARY]) {
    int32_t tokens[TOKENS];
    an_predictor *p = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    an_trainer *t = open_model(model, rest);
    for (int i = 0; i < TOKENS; i++) tokens[i] = i * 5 % VOCABULARY;
    options.max_samples = 2;
    OK(ctx, an_predictor_create(&p, t, &options));
    OK(ctx, an_predictor_run_tokens(p, 2, tokens, logits));
    an_predictor_destroy(&p);
    an_trainer_destroy(&t);
}

static void assert_same_logits(const char *model, const char *other, const char *rest) {
    static float expected[TOKENS * VOCABULARY], found[TOKENS * VOCABULARY];
    find_logits(model, rest, expected);
    find_logits(other, rest, found);
    assert_memory_equal(expected, found, sizeof found);
    assert_true(found[0] != found[VOCABULARY]); /* they are not all the same */
}

/* Names, types and bytes of two files. */
static void assert_same_file(const char *path, const char *other) {
    static unsigned char expected[MOST], found[MOST];
    an_weights a, b;
    an_safetensor tensor, same;
    OK(ctx, an_weights_open_files(&a, ctx, path));
    OK(ctx, an_weights_open_files(&b, ctx, other));
    assert_int_equal(a.count, b.count);
    for (int64_t i = 0; i < a.count; i++) {
        OK(ctx, a.get(&a, i, &tensor));
        int64_t at = 0;
        for (; at < b.count; at++) {
            OK(ctx, b.get(&b, at, &same));
            if (!strcmp(tensor.name, same.name)) break;
        }
        if (at == b.count) fail_msg("%s: has no '%s'", other, tensor.name);
        assert_true(tensor.type == same.type && tensor.bytes == same.bytes && tensor.bytes <= MOST);
        const int64_t elements = tensor.bytes / (int64_t)tensor.type->size;
        OK(ctx, a.read(&a, i, &tensor, 0, elements, expected));
        OK(ctx, b.read(&b, at, &same, 0, elements, found));
        assert_memory_equal(expected, found, (size_t)tensor.bytes);
    }
    an_weights_close(&a);
    an_weights_close(&b);
}

static void export_to(const char *from, const char *to, bool folder, an_dtype type) {
    an_export_options o;
    an_export_options_init(&o, sizeof o);
    o.dtype = type;
    o.format = folder ? AN_EXPORT_HUGGINGFACE : AN_EXPORT_GGUF;
    an_checkpoint *c = NULL;
    forget(to);
    OK(ctx, an_checkpoint_open(&c, ctx, from));
    OK(ctx, an_checkpoint_export(c, to, &o));
    an_checkpoint_close(&c);
}

/* ---- tests ---- */

#define LLAMA \
    "type: llama, layers: 2, heads: 4, kv_heads: 2, width: 32, hidden: 64, context: 8, vocabulary: 24, init: {from: "

static void test_logits(void **state) {
    (void)state;
    static const char *const types[] = {"F32", "BF16"};
    for (int i = 0; i < 2; i++) {
        write_folders(types[i]);
        assert_same_logits("from: phi3", "from: apart", "");
    }
    /* the files alone, in a model that a config describes */
    assert_same_logits(LLAMA "phi3/model.safetensors}", LLAMA "apart/model.safetensors}", "");
}

static void test_round_trip(void **state) {
    (void)state;
    write_folders("F32");
    export_to("phi3", "hf", true, AN_DTYPE_F32);
    assert_same_file("phi3", "hf");
    export_to("phi3", "m.gguf", false, AN_DTYPE_F32);
    assert_same_logits("from: phi3", "from: m.gguf", "");
    export_to("m.gguf", "again", true, AN_DTYPE_F32);
    assert_same_file("phi3", "again");
    assert_same_logits("from: phi3", "from: again", "");
    write_folders("BF16");
    export_to("phi3", "hf", true, AN_DTYPE_BF16);
    assert_same_file("phi3", "hf");
}

/* Rows of blocks are blocks. */
static void test_blocks(void **state) {
    (void)state;
    write_folders("F32");
    export_to("phi3", "m.gguf", false, AN_DTYPE_Q8_0);
    export_to("apart", "apart.gguf", false, AN_DTYPE_Q8_0);
    assert_same_logits("from: m.gguf", "from: m.gguf", "lora: {targets: [q_proj], rank: 2, base: q8_0}\n");
    assert_same_logits("from: m.gguf", "from: apart.gguf", "lora: {targets: [q_proj], rank: 2, base: q8_0}\n");
}

static void train_adapter(const char *from, const char *lora) {
    char model[64];
    snprintf(model, sizeof model, "from: %s", from);
    an_trainer *t = open_model(model, lora);
    train(t);
    OK(ctx, an_trainer_save(t, 1));
    an_trainer_destroy(&t);
}

static void merge_to(const char *file) {
    an_checkpoint *c = NULL;
    forget(file);
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    OK(ctx, export_as(c, file, AN_EXPORT_MERGED));
    an_checkpoint_close(&c);
}

/* What was trained is the same in both, and merged into the tensors of each folder. */
static void test_adapter(void **state) {
    (void)state;
    static const char *const types[] = {"F32", "BF16"}, lora[] = "lora: {targets: [k_proj, up_proj], rank: 2}\n";
    for (int i = 0; i < 2; i++) {
        write_folders(types[i]);
        train_adapter("apart", lora);
        merge_to("apart.safetensors");
        export_to("run", "apart-hf", true, AN_DTYPE_F32);
        train_adapter("phi3", lora);
        merge_to("phi3.safetensors");
        export_to("run", "phi3-hf", true, AN_DTYPE_F32);
        write_folders(types[i]);
        assert_int_equal(rename("phi3.safetensors", "phi3/model.safetensors"), 0);
        assert_int_equal(rename("apart.safetensors", "apart/model.safetensors"), 0);
        assert_same_logits("from: phi3", "from: apart", "");
        assert_same_logits("from: phi3-hf", "from: apart-hf", "");
        export_to("phi3", "hf", true, i ? AN_DTYPE_BF16 : AN_DTYPE_F32);
        assert_same_file("phi3", "hf"); /* the file has the tensors of its folder */
    }
}

static void test_adapter_refused(void **state) {
    (void)state;
    an_checkpoint *c = NULL;
    write_folders("F32");
    train_adapter("phi3", "lora: {targets: [q_proj], rank: 2}\n");
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    FAILS(ctx, export_as(c, "adapter", AN_EXPORT_ADAPTER), AN_ERR_UNSUPPORTED,
          "changes 'model.layers.0.self_attn.q_proj.weight', which a model of type phi3 has in "
          "'model.layers.0.self_attn.qkv_proj.weight' with other layers");
    an_checkpoint_close(&c);
    train_adapter("phi3", "lora: {targets: [o_proj], rank: 2}\n");
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    OK(ctx, export_as(c, "adapter", AN_EXPORT_ADAPTER));
    an_checkpoint_close(&c);
}

/* A layer that was trained whole has another type than those beside it in its tensor. */
static void test_whole_layer_refused(void **state) {
    (void)state;
    an_checkpoint *c = NULL;
    write_folders("BF16");
    train_adapter("phi3", "lora: {targets: [o_proj], rank: 2, train: [layers.0.mlp.up_proj]}\n");
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    FAILS(ctx, export_as(c, "whole.safetensors", AN_EXPORT_MERGED), AN_ERR_UNSUPPORTED,
          "'model.layers.0.mlp.up_proj.weight' was trained whole beside an adapter, and the files of the model have it "
          "in one tensor with layers of another type");
    an_checkpoint_close(&c);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *key, *words;
    } cases[] = {
        {", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, 2], \"long_factor\": [1, 2]}}",
         "rope_scaling.type: longrope: only default and llama3 are supported"},
        {", \"partial_rotary_factor\": 0.75}", "share of a head that rotates (partial_rotary_factor) is 0.75"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[2048];
        an_pretrained *p = NULL;
        an_graph *graph = NULL;
        snprintf(config, sizeof config, PHI3 "%s", cases[i].key);
        write_folder("phi3", config, "F32", true);
        an_status status = an_pretrained_open(&p, ctx, "phi3");
        if (status == AN_OK) status = an_pretrained_graph(p, &graph, NULL);
        assert_int_equal(status, AN_ERR_UNSUPPORTED);
        if (!strstr(an_last_error(ctx), cases[i].words)) fail_msg("%s", an_last_error(ctx));
        an_pretrained_close(&p);
    }
    /* rows that are not those of the layers stay what they are */
    write_folders("F32");
    write_text("phi3/config.json", PHI3 ", \"head_dim\": 4}");
    refused("model: {from: phi3}\ndata: {train: {type: tokens, path: tokens.bin}}\n", AN_ERR_ARGUMENT,
            "unexpected: model.layers.0.self_attn.qkv_proj.weight [64, 32]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_adapter),
        cmocka_unit_test(test_adapter_refused),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_whole_layer_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
