/* Published models that are refused: every key of config.json that no model here can do, descriptions that
 * are damaged or promise what the files do not have, and GGUF files likewise. The folders are golden
 * ones with another config.json. */
#include <unistd.h>

#include "anneal/pretrained.h"
#include "base/context.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/pretrained/"
#define TOP "\"model_type\"" /* a place where a key can be put in */
enum { MOST = 1 << 16 };

static size_t read_all(const char *path, char *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    const size_t count = fread(bytes, 1, MOST - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_true(count < MOST - 1);
    bytes[count] = 0;
    return count;
}

/* A folder with the golden weights, and a config.json in which `old` is `new`. */
static void make_folder(const char *golden, const char *old, const char *new) {
    static char config[MOST], changed[2 * MOST];
    char path[512];
    mkdir("hub", 0777);
    snprintf(path, sizeof path, GOLDEN "%s/model.safetensors", golden);
    const size_t count = read_all(path, config);
    write_file("hub/model.safetensors", config, count);
    snprintf(path, sizeof path, GOLDEN "%s/config.json", golden);
    read_all(path, config);
    char *at = strstr(config, old);
    if (!at) fail_msg("'%s' is not in %s", old, path);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - config), config, new, at + strlen(old));
    write_text("hub/config.json", changed);
}

/* Opening or building fails; nothing is left. */
static void assert_refused(const char *path, an_status expected, const char *words) {
    an_pretrained *p = NULL;
    an_graph *g = NULL;
    const size_t held = an_context_bytes(ctx);
    an_status status = an_pretrained_open(&p, ctx, path);
    if (status == AN_OK) status = an_pretrained_graph(p, &g, NULL);
    an_pretrained_close(&p);
    assert_null(g);
    if (status != expected)
        fail_msg("%s, not %s (%s): %s", an_status_name(status), an_status_name(expected), words, an_last_error(ctx));
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    if (strncmp(an_last_error(ctx), path, strlen(path)) != 0) fail_msg("no file: %s", an_last_error(ctx));
    assert_int_equal(an_context_bytes(ctx), held);
}

static void assert_taken(const char *path) {
    an_pretrained *p = NULL;
    an_graph *g = NULL;
    OK(ctx, an_pretrained_open(&p, ctx, path));
    OK(ctx, an_pretrained_graph(p, &g, NULL));
    an_graph_destroy(&g);
    an_pretrained_close(&p);
}

/* ---- config.json ---- */

static const struct {
    const char *golden, *old, *new;
    an_status status;
    const char *words;
} folders[] = {
    {"llama", "\"model_type\": \"llama\"", "\"model_type\": \"mamba\"", AN_ERR_UNSUPPORTED,
     "model_type is 'mamba', but only bert, gpt2, llama, mistral, phi3, qwen2 and qwen3 are supported"},
    {"llama", "\"model_type\": \"llama\"", "\"x\": 0", AN_ERR_DAMAGED, "has no model_type"},
    {"llama", "LlamaForCausalLM", "GemmaForCausalLM", AN_ERR_UNSUPPORTED, "architectures: GemmaForCausalLM"},
    {"llama", TOP, "\"logit_soft_cap\": 30.0, \"off\": false, " TOP, AN_ERR_UNSUPPORTED, "computes: logit_soft_cap"},
    {"llama", TOP, "\"quantization_config\": {\"bits\": 4}, " TOP, AN_ERR_UNSUPPORTED, "quantization_config: {…}"},
    {"llama", TOP, "\"auto_map\": {\"AutoModel\": \"m.M\"}, " TOP, AN_ERR_UNSUPPORTED, "auto_map: {…}"},
    {"llama", TOP, "\"n_embd\": 12, " TOP, AN_ERR_UNSUPPORTED, "computes: n_embd"},
    {"llama", TOP, "\"layer_types\": [\"full_attention\", \"sliding_attention\"], " TOP, AN_ERR_UNSUPPORTED,
     "computes: layer_types"},
    {"llama", TOP, "\"layer_types\": [\"linear_attention\"], " TOP, AN_ERR_UNSUPPORTED, "computes: layer_types"},
    {"llama", TOP, "\"rope_theta\": 51, " TOP, AN_ERR_UNSUPPORTED, "rope_theta: 50: the top of the file says another"},
    {"llama", "\"rope_type\": \"llama3\"", "\"rope_type\": \"yarn\"", AN_ERR_UNSUPPORTED,
     "rope_parameters.rope_type: yarn: only default and llama3 are supported"},
    {"llama", "\"low_freq_factor\": 1.0", "\"low_freq_factor\": 9.0", AN_ERR_ARGUMENT, "scaling by factor 4 needs"},
    {"llama", "\"rope_type\": \"llama3\"", "\"rope_type\": \"llama3\", \"partial_rotary_factor\": 0.5",
     AN_ERR_UNSUPPORTED, "the share of a head that rotates (partial_rotary_factor) is 0.5"},
    {"llama", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", AN_ERR_UNSUPPORTED,
     "the activation (hidden_act) is gelu"},
    {"llama", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"quick\"", AN_ERR_UNSUPPORTED,
     "the activation (hidden_act) is unknown"},
    {"llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 0", AN_ERR_DAMAGED,
     "the number of layers (num_hidden_layers) is 0"},
    {"llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1000000000000", AN_ERR_UNSUPPORTED,
     "but at most 4096 are possible"},
    {"llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", AN_ERR_DAMAGED,
     "describes a model of 5748 parameters, but its files have only 4028 numbers"},
    {"llama", "\"vocab_size\": 24", "\"vocab_size\": 1000000000000", AN_ERR_DAMAGED, "but its files have only 4028"},
    {"llama", "\"num_attention_heads\": 4", "\"num_attention_heads\": 3", AN_ERR_ARGUMENT, "3 heads cannot share 2"},
    {"llama", "\"head_dim\": 6", "\"head_dim\": 7", AN_ERR_ARGUMENT, "head_size is 7"},
    {"llama", "\"hidden_size\": 12", "\"hidden_size\": -12", AN_ERR_DAMAGED, "the value of 'hidden_size'"},
    {"mistral", TOP, "\"attention_bias\": true, " TOP, AN_ERR_UNSUPPORTED, "computes: attention_bias"},
    {"gpt2", "\"n_inner\": null", "\"n_inner\": 13", AN_ERR_UNSUPPORTED, "feed-forward layers (n_inner) is 13"},
    {"gpt2", "gelu_new", "relu", AN_ERR_UNSUPPORTED,
     "the activation (activation_function) is relu, but a model of type gpt2 has gelu_tanh"},
    {"gpt2", "\"layer_norm_epsilon\": 1e-05", "\"layer_norm_epsilon\": 0.1", AN_ERR_UNSUPPORTED,
     "epsilon of the norms"},
    {"gpt2", "\"scale_attn_weights\": true", "\"scale_attn_weights\": false", AN_ERR_UNSUPPORTED, "scaling of the"},
    {"gpt2", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", AN_ERR_UNSUPPORTED, "tie of head"},
    {"gpt2", TOP, "\"num_key_value_heads\": 1, " TOP, AN_ERR_UNSUPPORTED, "computes: num_key_value_heads"},
};

static void test_folders(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        make_folder(folders[i].golden, folders[i].old, folders[i].new);
        assert_refused("hub", folders[i].status, folders[i].words);
    }
    make_folder("llama", TOP, "\"torch_dtype\": \"bfloat16\", \"temperature\": 0.6, \"use_new\": false, " TOP);
    assert_taken("hub");
    make_folder("mistral", "\"sliding_window\": 3", "\"sliding_window\": null");
    assert_taken("hub");
    unlink("hub/model.safetensors"); /* what it is can be said without weights */
    assert_taken("hub");
    unlink("hub/config.json");
    assert_refused("hub", AN_ERR_FILE, "is neither a folder with config.json nor a GGUF file");
    assert_refused("nowhere", AN_ERR_FILE, "is neither a folder with config.json nor a GGUF file");
}

/* Some layers of Qwen2 have the window, if the file does not list them. */
static void test_window_of_some_layers(void **state) {
    static char config[MOST];
    char *from, *to;
    (void)state;
    make_folder("qwen2-window", "\"max_window_layers\": 0", "\"max_window_layers\": 1");
    read_all("hub/config.json", config);
    from = strstr(config, "\"layer_types\"");
    to = from ? strstr(from, "],") : NULL;
    if (!from || !to) fail_msg("there are no layer_types");
    memset(from, ' ', (size_t)(to + 2 - from));
    write_text("hub/config.json", config);
    assert_refused("hub", AN_ERR_UNSUPPORTED, "computes: max_window_layers");
}

/* What absent keys and null mean to transformers. */
static void test_defaults(void **state) {
    an_pretrained *p = NULL;
    an_pretrained_info info;
    an_pretrained_info_init(&info, sizeof info);
    (void)state;
    mkdir("bare", 0777);
    write_text("bare/config.json", "{\"model_type\": \"mistral\"}");
    OK(ctx, an_pretrained_open(&p, ctx, "bare"));
    OK(ctx, an_pretrained_info_get(p, &info));
    assert_true(info.window == 4096 && info.kv_heads == 8 && info.hidden == 14336 && info.context == 131072 &&
                !info.tied);
    assert_int_equal(info.tensors, 0);
    an_pretrained_close(&p);
    write_text("bare/config.json",
               "{\"model_type\": \"mistral\", \"sliding_window\": null, \"num_key_value_heads\": null}");
    OK(ctx, an_pretrained_open(&p, ctx, "bare"));
    OK(ctx, an_pretrained_info_get(p, &info));
    assert_true(info.window == 0 && info.kv_heads == 32 && info.head_size == 128);
    an_pretrained_close(&p);
    write_text("bare/config.json",
               "{\"model_type\": \"qwen3\", \"use_sliding_window\": true, \"max_window_layers\": 99}");
    OK(ctx, an_pretrained_open(&p, ctx, "bare"));
    OK(ctx, an_pretrained_info_get(p, &info));
    assert_true(info.window == 0 && info.kv_heads == 32 && info.head_size == 128 && info.vocabulary == 151936);
    an_pretrained_close(&p);
    write_text("bare/config.json", "{\"model_type\": \"gpt2\"}");
    OK(ctx, an_pretrained_open(&p, ctx, "bare"));
    OK(ctx, an_pretrained_info_get(p, &info));
    assert_true(info.layers == 12 && info.width == 768 && info.context == 1024 && info.tied && info.rotary_base == 0);
    an_pretrained_close(&p);
    for (int i = 0; an_pretrained_family(i); i++) assert_true(i < 100);
    assert_string_equal(an_pretrained_family(0), "bert");
}

/* Every shorter file is refused, and none crashes that has one byte changed. */
static void test_damaged_descriptions(void **state) {
    static char config[MOST];
    (void)state;
    make_folder("llama", TOP, TOP);
    const size_t length = read_all("hub/config.json", config);
    for (size_t cut = 0; cut + 2 < length; cut++) {
        an_pretrained *p = NULL;
        write_file("hub/config.json", config, cut);
        assert_int_equal(an_pretrained_open(&p, ctx, "hub"), AN_ERR_DAMAGED);
    }
    for (size_t i = 0; i < length; i++) {
        an_pretrained *p = NULL;
        an_graph *g = NULL;
        const char kept = config[i];
        config[i] = (char)(config[i] ^ 1 << i % 7);
        write_file("hub/config.json", config, length);
        if (an_pretrained_open(&p, ctx, "hub") == AN_OK) an_pretrained_graph(p, &g, NULL);
        an_graph_destroy(&g);
        an_pretrained_close(&p);
        config[i] = kept;
    }
}

/* ---- GGUF ---- */

/* The golden file with one text in it replaced by another of the same length. */
static void make_gguf(const char *golden, const char *old, const char *new) {
    static char bytes[MOST];
    char path[512];
    snprintf(path, sizeof path, GOLDEN "%s.gguf", golden);
    const size_t length = read_all(path, bytes);
    const size_t count = strlen(old);
    assert_int_equal(strlen(new), count);
    for (size_t i = 0; i + count <= length; i++)
        if (!memcmp(bytes + i, old, count)) {
            for (size_t k = 0; k < count; k++) bytes[i + k] = new[k];
            write_file("f.gguf", bytes, length);
            return;
        }
    fail_msg("'%s' is not in %s", old, path);
}

static void test_gguf(void **state) {
    (void)state;
    make_gguf("qwen3", "general.architecture", "general.architectura");
    assert_refused("f.gguf", AN_ERR_DAMAGED, "has no general.architecture");
    make_gguf("qwen3", "qwen3", "qwenX");
    assert_refused("f.gguf", AN_ERR_UNSUPPORTED,
                   "general.architecture is 'qwenX', but only gpt2, llama, phi3, qwen2 and qwen3 are supported");
    make_gguf("qwen3", "qwen3.block_count", "qwen3.block_kount");
    assert_refused("f.gguf", AN_ERR_UNSUPPORTED, "computes: qwen3.block_kount");
    make_gguf("qwen3", "qwen3.attention.key_length", "qwen3.attention.kex_length");
    assert_refused("f.gguf", AN_ERR_UNSUPPORTED,
                   "qwen3.attention.value_length: 10: values must have the head size of keys");
    make_gguf("mistral", "llama.rope.freq_base", "llama.rope.scaling.x");
    assert_refused("f.gguf", AN_ERR_UNSUPPORTED, "llama.rope.scaling.x");
    assert_refused(ANNEAL_SOURCE_DIR "/tests/golden/gguf/types.gguf", AN_ERR_DAMAGED,
                   "does not say the number of heads (llama.attention.head_count)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),  cmocka_unit_test(test_window_of_some_layers),
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_damaged_descriptions),
        cmocka_unit_test(test_gguf),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
