/* Folders of Hugging Face as model.init.from: the logits of transformers, and every value of config.json that
 * contradicts the model. The folders of tests/golden/huggingface are as transformers wrote them; the others are
 * theirs with another config.json. */
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/config.h"
#include "anneal/predict.h"
#include "anneal/train.h"
#include "base/context.h"
#include "formats/safetensors.h"
#include "open/open.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/huggingface/"
#define REST                                                         \
    "data: {train: {type: tokens, path: tokens.bin}}\n"              \
    "run: {steps: 1}\nbatch: {global: 2}\ntrain: {precision: f32}\n" \
    "save: {every: off}\n"
#define GPT2(options, from)                                                                                         \
    "model: {type: gpt2, layers: 2, heads: 4, width: 16, context: 8, vocabulary: 24, " options "init: {from: " from \
    "}}\n" REST
#define LLAMA_OPTIONS "layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 40, context: 8, vocabulary: 24, "
#define LLAMA(options, from) "model: {type: llama, " LLAMA_OPTIONS options "init: {from: " from "}}\n" REST
#define LLAMA_3(from) LLAMA("rotary_base: 500000, ", from)

enum { MOST = 1 << 16 };

/* ---- files ---- */

static size_t read_all(const char *path, char *bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, MOST - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_true(count < MOST - 1);
    bytes[count] = 0;
    return count;
}

static void copy_file(const char *from, const char *to) {
    static char bytes[MOST];
    const size_t count = read_all(from, bytes);
    write_file(to, bytes, count);
}

static void write_tokens(void) {
    unsigned short tokens[256];
    for (int i = 0; i < 256; i++) tokens[i] = (unsigned short)(i * 7 % 24);
    write_file("tokens.bin", tokens, sizeof tokens);
}

/* A folder with the golden weights and a config.json in which `old` is `new`; NULL: no config.json. */
static void make_folder(const char *golden, const char *old, const char *new) {
    static char config[MOST], changed[2 * MOST];
    char path[512];
    mkdir("hub", 0777);
    snprintf(path, sizeof path, GOLDEN "%s/model.safetensors", golden);
    copy_file(path, "hub/model.safetensors");
    unlink("hub/config.json");
    if (!old) return;
    snprintf(path, sizeof path, GOLDEN "%s/config.json", golden);
    read_all(path, config);
    char *at = strstr(config, old);
    if (!at) fail_msg("'%s' is not in %s", old, path);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - config), config, new, at + strlen(old));
    write_text("hub/config.json", changed);
}

/* ---- logits ---- */

/* Opens a run that starts from a golden folder, and compares. */
static void assert_logits(const char *config, const char *golden) {
    enum { SEQUENCES = 2, TOKENS = 8, VOCABULARY = 24, ALL = SEQUENCES * TOKENS };
    char path[512];
    int sizes[3], token;
    int32_t tokens[ALL];
    static float logits[ALL * VOCABULARY];
    an_predictor *p = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    an_trainer *t = open_run(config);
    options.max_samples = SEQUENCES;
    OK(ctx, an_predictor_create(&p, t, &options));
    snprintf(path, sizeof path, GOLDEN "%s/logits.txt", golden);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    /* NOLINTBEGIN(cert-err34-c): what is no number is seen by what follows */
    assert_int_equal(fscanf(file, "%d %d %d", &sizes[0], &sizes[1], &sizes[2]), 3);
    assert_true(sizes[0] == SEQUENCES && sizes[1] == TOKENS && sizes[2] == VOCABULARY);
    for (int i = 0; i < ALL; i++) {
        assert_int_equal(fscanf(file, "%d", &token), 1);
        tokens[i] = token;
    }
    OK(ctx, an_predictor_run_tokens(p, SEQUENCES, tokens, logits));
    double largest = 0;
    for (int i = 0; i < ALL * VOCABULARY; i++) {
        double expected;
        assert_int_equal(fscanf(file, "%lf", &expected), 1);
        const double error = (double)logits[i] > expected ? (double)logits[i] - expected : expected - (double)logits[i];
        const double scale = expected > 1 ? expected : expected < -1 ? -expected : 1;
        if (error / scale > largest) largest = error / scale;
    }
    /* NOLINTEND(cert-err34-c) */
    fclose(file);
    print_message("%s: %.2g\n", golden, largest);
    if (!(largest <= 1e-5)) fail_msg("%s: a logit is off by %g", golden, largest);
    an_predictor_destroy(&p);
    an_trainer_destroy(&t);
}

static void test_logits_of_transformers(void **state) {
    (void)state;
    write_tokens();
    begin_hearing();
    assert_logits(GPT2("", GOLDEN "gpt2"), "gpt2");
    assert_logits(GPT2("", GOLDEN "gpt2-shards"), "gpt2-shards");
    assert_logits(LLAMA_3(GOLDEN "llama"), "llama");
    assert_logits(LLAMA("tied: on, ", GOLDEN "llama-tied"), "llama-tied");
    assert_string_equal(heard, "");
    /* the file alone: names and shapes tell that it is a GPT-2 of Hugging Face */
    assert_logits(GPT2("", GOLDEN "gpt2/model.safetensors"), "gpt2");
    assert_string_equal(heard, "");
    /* without config.json there is a warning */
    make_folder("gpt2", NULL, NULL);
    assert_logits(GPT2("", "hub"), "gpt2");
    assert_non_null(strstr(heard, "hub: has no config.json"));
}

/* The layout of older versions: rope_theta at the top. */
static void test_older_config(void **state) {
    (void)state;
    write_tokens();
    make_folder("llama", "\"rope_parameters\": {\n    \"rope_theta\": 500000.0,\n    \"rope_type\": \"default\"\n  },",
                "\"rope_theta\": 500000.0, \"rope_scaling\": null,");
    assert_logits(LLAMA_3("hub"), "llama");
}

/* What anneal saved has [out, in], and is taken as it is: also the square weight. */
static void test_own_checkpoint_is_not_transposed(void **state) {
    (void)state;
    char config[2048], folder[] = "own-XXXXXX";
    write_tokens();
    assert_non_null(mkdtemp(folder));
    an_trainer *t = open_run(GPT2("", GOLDEN "gpt2"));
    OK(ctx, an_trainer_set_folder(t, folder));
    OK(ctx, an_trainer_save(t, 1));
    an_trainer_destroy(&t);
    snprintf(config, sizeof config, GPT2("", "%s"), folder);
    assert_logits(config, "gpt2");
}

/* The square attn.c_proj alone: config.json tells that it is [in, out], and nothing does for a file by itself. */
static void test_square_weight_alone(void **state) {
    (void)state;
    enum { SIDE = 16, HEADER = 4096 };
    static float weight[SIDE * SIDE], loaded[SIDE * SIDE];
    static const an_safetensor tensor = {.name = "h.1.attn.c_proj.weight", .ndims = 2, .dims = {SIDE, SIDE}};
    static const char partial[] = ", missing: init";
    char config[2048];
    an_safetensor t = tensor;
    write_tokens();
    for (int i = 0; i < SIDE * SIDE; i++) weight[i] = (float)i;
    t.type = an_safetensors_type_named("F32");
    assert_true(an_safetensor_measure(&t, &t.bytes));
    make_folder("gpt2", "\"n_embd\"", "\"n_embd\"");
    write_tensors("hub/model.safetensors", &t, 1, weight, sizeof weight);
    const int64_t dims[] = {SIDE, SIDE};
    an_array array = array_of(loaded, AN_DTYPE_F32, 2, dims);
    for (int alone = 0; alone < 2; alone++) {
        begin_hearing();
        snprintf(config, sizeof config, GPT2("", "%s%s"), alone ? "hub/model.safetensors" : "hub", partial);
        an_trainer *trainer = open_run(config);
        OK(ctx, an_params_get(an_trainer_params(trainer), tensor.name, AN_PART_WEIGHT, &array));
        for (int i = 0; i < SIDE; i++)
            for (int k = 0; k < SIDE; k++)
                assert_true(loaded[i * SIDE + k] == (alone ? weight[i * SIDE + k] : weight[k * SIDE + i]));
        assert_true(alone == (strstr(heard, "model.init: attn.c_proj.weight could be [in, out], as in Hugging Face "
                                            "files, or [out, in]; it was read as [out, in]") != NULL));
        an_trainer_destroy(&trainer);
    }
}

/* ---- contradictions ---- */

#define OLD_ROPE "\"rope_parameters\": {\n    \"rope_theta\": 500000.0,\n    \"rope_type\": \"default\"\n  },"
#define TOP "\"model_type\"" /* a place where a key can be put in */

static const struct {
    const char *golden, *old, *new, *words;
} contradictions[] = {
    {"gpt2", "\"n_head\": 4", "\"n_head\": 2", "n_head: 2 in the folder, 4 in the model: set model.heads: 2"},
    {"gpt2", "\"n_head\": 4,", "", "n_head: 12 in the folder (the default), 4 in the model: set model.heads: 12"},
    {"gpt2", "\"n_layer\": 2", "\"n_layer\": 3", "n_layer: 3 in the folder, 2 in the model: set model.layers: 3"},
    {"gpt2", "\"n_embd\": 16", "\"n_embd\": 32", "n_embd: 32 in the folder, 16 in the model: set model.width: 32"},
    {"gpt2", "\"n_embd\": 16", "\"n_embd\": 32", "n_inner: 128 in the folder (the default), 64 in the model: "},
    {"gpt2", "\"n_inner\": null", "\"n_inner\": 32",
     "n_inner: 32 in the folder, 64 in the model: model.type gpt2 has no setting for it"},
    {"gpt2", "\"n_positions\": 8", "\"n_positions\": 16",
     "n_positions: 16 in the folder, 8 in the model: set model.context: 16"},
    {"gpt2", "\"vocab_size\": 24", "\"vocab_size\": 25",
     "vocab_size: 25 in the folder, 24 in the model: set model.vocabulary: 25"},
    {"gpt2", "\"layer_norm_epsilon\": 1e-05", "\"layer_norm_epsilon\": 1e-06",
     "layer_norm_epsilon: 1e-06 in the folder, 1e-05 in the model: model.type gpt2 has no setting for it"},
    {"gpt2", "gelu_new", "relu", "activation_function: relu in the folder, gelu_tanh in the model: "},
    {"gpt2", "gelu_new", "gelu", "activation_function: gelu in the folder, gelu_tanh in the model: "},
    {"gpt2", "gelu_new", "quick_gelu", "activation_function: quick_gelu in the folder, gelu_tanh in the model: "},
    {"gpt2", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false",
     "tie_word_embeddings: false in the folder, true in the model: "},
    {"gpt2", "\"scale_attn_weights\": true", "\"scale_attn_weights\": false",
     "scale_attn_weights: false in the folder, true in the model: "},
    {"gpt2", "\"scale_attn_by_inverse_layer_idx\": false", "\"scale_attn_by_inverse_layer_idx\": true",
     "scale_attn_by_inverse_layer_idx: true in the folder, off in the model: anneal does not support it"},
    {"gpt2", "\"add_cross_attention\": false", "\"add_cross_attention\": true",
     "add_cross_attention: true in the folder, off"},
    {"gpt2", TOP, "\"pruned_heads\": {\"0\": [1]}, " TOP, "pruned_heads: {…} in the folder, off in the model: "},
    {"gpt2", "GPT2LMHeadModel", "MambaModel", "architectures: MambaModel in the folder, gpt2 in the model: "},
    {"llama", "\"num_attention_heads\": 4", "\"num_attention_heads\": 8",
     "num_attention_heads: 8 in the folder, 4 in the model: set model.heads: 8"},
    {"llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 1",
     "num_key_value_heads: 1 in the folder, 2 in the model: set model.kv_heads: 1"},
    {"llama", "\"num_key_value_heads\": 2,", "",
     "num_key_value_heads: 4 in the folder (the default), 2 in the model: set model.kv_heads: 4"},
    {"llama", "\"head_dim\": 4", "\"head_dim\": 8",
     "head_dim: 8 in the folder, 4 in the model: model.type llama has no setting for it"},
    {"llama", "\"hidden_size\": 16", "\"hidden_size\": 32",
     "hidden_size: 32 in the folder, 16 in the model: set model.width: 32"},
    {"llama", "\"intermediate_size\": 40", "\"intermediate_size\": 64",
     "intermediate_size: 64 in the folder, 40 in the model: set model.hidden: 64"},
    {"llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1",
     "num_hidden_layers: 1 in the folder, 2 in the model: set model.layers: 1"},
    {"llama", "\"max_position_embeddings\": 8", "\"max_position_embeddings\": 4",
     "max_position_embeddings: 4 in the folder, 8 in the model: set model.context: 4 or less"},
    {"llama", "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 1e-06",
     "rms_norm_eps: 1e-06 in the folder, 1e-05 in the model: set model.epsilon: 1e-06"},
    {"llama", "\"rms_norm_eps\": 1e-05,", "",
     "rms_norm_eps: 1e-06 in the folder (the default), 1e-05 in the model: set model.epsilon: 1e-06"},
    {"llama", "500000.0", "10000.0",
     "rope_parameters.rope_theta: 10000 in the folder, 500000 in the model: set model.rotary_base: 10000"},
    {"llama", OLD_ROPE, "\"rope_theta\": 1e6,",
     "rope_theta: 1000000 in the folder, 500000 in the model: set model.rotary_base: 1000000"},
    {"llama", OLD_ROPE, "", "rope_theta: 10000 in the folder (the default), 500000 in the model: "},
    {"llama", OLD_ROPE, "\"rope_theta\": 500000, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0},",
     "rope_scaling.type: linear in the folder, none in the model: model.type llama has no setting for it"},
    {"llama", OLD_ROPE,
     "\"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
     "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192},",
     "rope_scaling.factor: 8 in the folder, 0 in the model: model.type llama has no setting for it"},
    {"llama", "\"rope_type\": \"default\"", "\"rope_type\": \"yarn\", \"factor\": 4.0",
     "rope_parameters.rope_type: yarn in the folder, none in the model: "},
    {"llama", "\"rope_type\": \"default\"", "\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5",
     "rope_parameters.partial_rotary_factor: 0.5 in the folder, 1 in the model: "},
    {"llama", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"",
     "hidden_act: gelu in the folder, silu in the model: "},
    {"llama", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true",
     "tie_word_embeddings: true in the folder, false in the model: set model.tied: on"},
    {"llama", "\"attention_bias\": false", "\"attention_bias\": true",
     "attention_bias: true in the folder, false in the model: "},
    {"llama", "\"mlp_bias\": false", "\"mlp_bias\": true", "mlp_bias: true in the folder, false in the model: "},
    {"llama", TOP, "\"sliding_window\": 4, " TOP, "sliding_window: 4 in the folder, 0 in the model: "},
    {"llama", TOP, "\"quantization_config\": {\"bits\": 4}, " TOP,
     "quantization_config: {…} in the folder, off in the model: "},
    {"llama", TOP, "\"auto_map\": {\"AutoModel\": \"m.M\"}, " TOP, "auto_map: {…} in the folder, off in the model: "},
    {"llama", "\"model_type\": \"llama\"", "\"model_type\": \"gpt2\"",
     "hub/config.json: model_type is gpt2, but model.type is different: set model.type to gpt2"},
};

static void test_contradictions_are_refused_by_name(void **state) {
    (void)state;
    write_tokens();
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++) {
        make_folder(contradictions[i].golden, contradictions[i].old, contradictions[i].new);
        refused(*contradictions[i].golden == 'g' ? GPT2("", "hub") : LLAMA_3("hub"), AN_ERR_ARGUMENT,
                contradictions[i].words);
        if (!strstr(an_last_error(ctx), ": model.init: hub/config.json")) fail_msg("%s", an_last_error(ctx));
    }
    /* what a model has by the default of Hugging Face is no contradiction */
    make_folder("gpt2", "\"tie_word_embeddings\": true,", "");
    assert_logits(GPT2("", "hub"), "gpt2");
    make_folder("llama", "\"tie_word_embeddings\": false,", "");
    assert_logits(LLAMA_3("hub"), "llama");
    make_folder("llama", "\"max_position_embeddings\": 8", "\"max_position_embeddings\": 131072");
    assert_logits(LLAMA_3("hub"), "llama");
    make_folder("llama", "\"head_dim\": 4,", "\"rms_norm_eps\": 9.999999747378752e-06, \"x\": null,");
    refused(LLAMA_3("hub"), AN_ERR_DAMAGED, "this key appears twice, with different values");
    make_folder("llama", "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 9.999999747378752e-06"); /* as f32 has it */
    assert_logits(LLAMA_3("hub"), "llama");
}

/* All of them at once: none is left out, though a message has an end. */
static void test_every_contradiction_is_listed(void **state) {
    (void)state;
    static const char *const keys[] = {"hidden_size",
                                       "num_attention_heads",
                                       "num_key_value_heads",
                                       "head_dim",
                                       "rope_theta",
                                       "partial_rotary_factor",
                                       "vocab_size",
                                       "tie_word_embeddings",
                                       "num_hidden_layers",
                                       "intermediate_size",
                                       "max_position_embeddings",
                                       "rms_norm_eps",
                                       "hidden_act",
                                       "attention_bias",
                                       "mlp_bias",
                                       "sliding_window",
                                       "quantization_config"};
    write_tokens();
    make_folder("llama", TOP, TOP);
    write_text(
        "hub/config.json",
        "{\"model_type\": \"llama\", \"hidden_size\": 320, \"num_attention_heads\": 20, \"num_key_value_heads\": 5, "
        "\"head_dim\": 64, \"rope_theta\": 123, \"partial_rotary_factor\": 0.25, \"vocab_size\": 1000, "
        "\"tie_word_embeddings\": true, \"num_hidden_layers\": 7, \"intermediate_size\": 77, "
        "\"max_position_embeddings\": 2, \"rms_norm_eps\": 0.5, \"hidden_act\": \"gelu\", \"attention_bias\": true, "
        "\"mlp_bias\": true, \"sliding_window\": 9, \"quantization_config\": {\"a\": 1}}");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) refused(LLAMA_3("hub"), AN_ERR_ARGUMENT, keys[i]);
    assert_non_null(
        strstr(an_last_error(ctx), "\n  hidden_size: 320 in the folder, 16 in the model: set model.width: 320\n"));
    assert_non_null(strstr(an_last_error(ctx), "\n  also: "));
}

static void test_unknown_keys_are_said(void **state) {
    (void)state;
    write_tokens();
    begin_hearing();
    make_folder("llama", TOP,
                "\"logit_soft_cap\": 30.0, \"use_new_norm\": false, \"clip_qkv\": null, \"layer_types\": [\"full\"], "
                "\"extra\": [], \"torch_dtype\": \"bfloat16\", \"temperature\": 0.3, \"alibi\": true, " TOP);
    assert_logits(LLAMA_3("hub"), "llama");
    if (!strstr(heard, "hub/config.json: unknown keys, which may change what the original model computes: "
                       "logit_soft_cap, layer_types, alibi\n"))
        fail_msg("heard: %s", heard);
}

/* ---- hostile files ---- */

static const struct {
    const char *config;
    an_status status;
    const char *words;
} bad[] = {
    {"", AN_ERR_DAMAGED, "hub/config.json: byte 0: an object is expected here"},
    {"[]", AN_ERR_DAMAGED, "hub/config.json: byte 0: an object is expected here"},
    {"{}", AN_ERR_DAMAGED, "hub/config.json: has no model_type"},
    {"{\"model_type\": 3}", AN_ERR_DAMAGED, "byte 15, the value of 'model_type': a string is expected here"},
    {"{\"model_type\": \"mamba\"}", AN_ERR_UNSUPPORTED,
     ": model_type is 'mamba', but only bert, gpt2, llama, mistral, phi3, qwen2 and qwen3 are supported. To load the "
     "weights "
     "without "
     "this check, give the path of the safetensors file itself"},
    {"{\"model_type\": \"qwen2\"}", AN_ERR_ARGUMENT,
     ": model_type is qwen2, but model.type is llama: write model: {from: …} with this folder instead"},
    {"{\"model_type\": \"a\\u001b[31m\"}", AN_ERR_UNSUPPORTED, "model_type is 'a"},
    {"{\"model_type\": \"0123456789012345678901234567890123456789012345678901234567890123456789\"}", AN_ERR_DAMAGED,
     "this text is too long"},
    {"{\"num_attention_heads\": \"4\"}", AN_ERR_DAMAGED,
     "the value of 'num_attention_heads': a number is expected here"},
    {"{\"num_attention_heads\": 4.5}", AN_ERR_DAMAGED, "a whole number is expected here"},
    {"{\"num_attention_heads\": -4}", AN_ERR_DAMAGED, "a number without a sign is expected here"},
    {"{\"num_attention_heads\": 99999999999999999999}", AN_ERR_DAMAGED, "a number does not fit in 64 bits"},
    {"{\"num_attention_heads\": [4]}", AN_ERR_DAMAGED, "a number is expected here"},
    {"{\"rms_norm_eps\": NaN}", AN_ERR_DAMAGED, "the value of 'rms_norm_eps': a number is expected here"},
    {"{\"rope_theta\": 1e999}", AN_ERR_DAMAGED, "a number is too large for a double"},
    {"{\"tie_word_embeddings\": 1}", AN_ERR_DAMAGED, "true or false is expected here"},
    {"{\"hidden_act\": true}", AN_ERR_DAMAGED, "a string is expected here"},
    {"{\"rope_scaling\": 3}", AN_ERR_DAMAGED, "the value of 'rope_scaling': an object is expected here"},
    {"{\"rope_scaling\": {\"factor\": \"8\"}}", AN_ERR_DAMAGED, "a number is expected here"},
    {"{\"architectures\": \"LlamaModel\"}", AN_ERR_DAMAGED, "the value of 'architectures': an array is expected here"},
    {"{\"architectures\": [1]}", AN_ERR_DAMAGED, "a string is expected here"},
    {"{\"architectures\": [\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]}", AN_ERR_DAMAGED,
     "there are too many architectures"},
    {"{\"n_head\": 4, \"n_head\": 5}", AN_ERR_DAMAGED, "this key appears twice, with different values"},
    {"{\"model_type\": \"llama\"} x", AN_ERR_DAMAGED, "hub/config.json: byte 24: "},
    {"{\"num_attention_heads\": 0, \"model_type\": \"llama\"}", AN_ERR_ARGUMENT,
     "num_attention_heads: 0 in the folder, 4"},
};

static void test_bad_configs(void **state) {
    (void)state;
    write_tokens();
    make_folder("llama", NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("hub/config.json", bad[i].config);
        refused(LLAMA_3("hub"), bad[i].status, bad[i].words);
        assert_null(strchr(an_last_error(ctx), 27));
    }
    /* cut off anywhere, it is refused */
    static char whole[MOST];
    const size_t length = read_all(GOLDEN "llama/config.json", whole);
    for (size_t cut = 0; cut + 2 < length; cut += 7) {
        write_file("hub/config.json", whole, cut);
        refused(LLAMA_3("hub"), AN_ERR_DAMAGED, "hub/config.json: byte ");
    }
    assert_int_equal(truncate("hub/config.json", (4 << 20) + 1), 0);
    refused(LLAMA_3("hub"), AN_ERR_UNSUPPORTED, ": has 4194305 bytes, but a config.json has at most 4194304");
    unlink("hub/config.json");
    assert_int_equal(mkfifo("hub/config.json", 0600), 0);
    refused(LLAMA_3("hub"), AN_ERR_FILE, "hub/config.json: is a pipe, not a file");
    unlink("hub/config.json");
}

/* Weights stay as they were when a folder is refused, and every allocation may fail. */
static void test_memory(void **state) {
    (void)state;
    an_config *c = NULL;
    write_tokens();
    make_folder("gpt2", TOP, "\"odd_key\": 1, " TOP);
    an_trainer *t = open_with_config(GPT2("", "hub"), &c);
    init_without_memory(t, c, AN_OK, 400);
    make_folder("gpt2", "\"n_head\": 4", "\"n_head\": 2");
    init_without_memory(t, c, AN_ERR_ARGUMENT, 400);
    an_trainer_destroy(&t);
    an_config_destroy(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_logits_of_transformers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_config, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_checkpoint_is_not_transposed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_square_weight_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contradictions_are_refused_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_contradiction_is_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_keys_are_said, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_configs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
