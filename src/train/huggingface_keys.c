#include "train/huggingface_keys.h"

#include <string.h>

#define NONE \
    { AN_KEY_UNSTATED, AN_KEY_UNSTATED }
#define GPT2(x) \
    { (x), AN_KEY_UNSTATED }
#define LLAMA(x) \
    { AN_KEY_UNSTATED, (x) }
#define OPTION(x) \
    { (x), (x) }
#define OF_LLAMA(x) \
    { NULL, (x) }

/* Defaults are those of GPT2Config and LlamaConfig in transformers. */
const an_key_row an_key_rows[AN_KEY_ROWS] = {
    [AN_ROW_MODEL_TYPE] = {"model_type", false, AN_KEY_WORD, AN_FACTS, NONE, {0}},
    [AN_ROW_ROPE_TYPE] = {"rope_type", true, AN_KEY_WORD, AN_FACTS, NONE, {0}},
    [AN_ROW_ROPE_OLD_TYPE] = {"type", true, AN_KEY_WORD, AN_FACTS, NONE, {0}},
    [AN_ROW_N_EMBD] = {"n_embd", false, AN_KEY_COUNT, AN_FACT_WIDTH, GPT2(768), OPTION("model.width")},
    [AN_ROW_N_INNER] = {"n_inner", false, AN_KEY_COUNT, AN_FACT_HIDDEN, NONE, {0}},
    [AN_ROW_HIDDEN_SIZE] = {"hidden_size", false, AN_KEY_COUNT, AN_FACT_WIDTH, LLAMA(4096), OPTION("model.width")},
    [AN_ROW_HEADS] = {"num_attention_heads", false, AN_KEY_COUNT, AN_FACT_HEADS, LLAMA(32), OPTION("model.heads")},
    [AN_ROW_KV_HEADS] = {"num_key_value_heads", false, AN_KEY_COUNT, AN_FACT_KV_HEADS, NONE,
                         OF_LLAMA("model.kv_heads")},
    [AN_ROW_HEAD_DIM] = {"head_dim", false, AN_KEY_COUNT, AN_FACT_HEAD_SIZE, NONE, {0}},
    [AN_ROW_THETA] = {"rope_theta", false, AN_KEY_REAL, AN_FACT_ROTARY_BASE, LLAMA(10000),
                      OF_LLAMA("model.rotary_base")},
    [AN_ROW_ROPE_THETA] = {"rope_theta", true, AN_KEY_REAL, AN_FACT_ROTARY_BASE, NONE, OF_LLAMA("model.rotary_base")},
    [AN_ROW_SHARE] = {"partial_rotary_factor", false, AN_KEY_REAL, AN_FACT_ROTARY_SHARE, LLAMA(1), {0}},
    [AN_ROW_ROPE_SHARE] = {"partial_rotary_factor", true, AN_KEY_REAL, AN_FACT_ROTARY_SHARE, NONE, {0}},
    [AN_ROW_FACTOR] = {"factor", true, AN_KEY_REAL, AN_FACT_ROTARY_FACTOR, LLAMA(0), {0}},
    [AN_ROW_LOW] = {"low_freq_factor", true, AN_KEY_REAL, AN_FACT_ROTARY_LOW, LLAMA(0), {0}},
    [AN_ROW_HIGH] = {"high_freq_factor", true, AN_KEY_REAL, AN_FACT_ROTARY_HIGH, LLAMA(0), {0}},
    [AN_ROW_ORIGINAL] =
        {"original_max_position_embeddings", true, AN_KEY_COUNT, AN_FACT_ROTARY_ORIGINAL, LLAMA(0), {0}},
    [AN_ROW_ACTIVATION_FUNCTION] = {"activation_function", false, AN_KEY_ACTIVATION, AN_FACT_ACTIVATION, NONE, {0}},
    [AN_ROW_HIDDEN_ACT] = {"hidden_act", false, AN_KEY_ACTIVATION, AN_FACT_ACTIVATION, NONE, {0}},
    [AN_ROW_OTHERS] = {"n_layer", false, AN_KEY_COUNT, AN_FACT_LAYERS, GPT2(12), OPTION("model.layers")},
    {"n_head", false, AN_KEY_COUNT, AN_FACT_HEADS, GPT2(12), OPTION("model.heads")},
    {"n_positions", false, AN_KEY_COUNT, AN_FACT_POSITIONS, GPT2(1024), OPTION("model.context")},
    {"layer_norm_epsilon", false, AN_KEY_REAL, AN_FACT_EPSILON, GPT2(1e-5), OF_LLAMA("model.epsilon")},
    {"scale_attn_weights", false, AN_KEY_BOOL, AN_FACT_SCALED, GPT2(1), {0}},
    {"scale_attn_by_inverse_layer_idx", false, AN_KEY_OFF, AN_FACTS, NONE, {0}},
    {"vocab_size", false, AN_KEY_COUNT, AN_FACT_VOCABULARY, {50257, 32000}, OPTION("model.vocabulary")},
    {"tie_word_embeddings", false, AN_KEY_BOOL, AN_FACT_TIED, {1, 0}, OF_LLAMA("model.tied")},
    {"num_hidden_layers", false, AN_KEY_COUNT, AN_FACT_LAYERS, LLAMA(32), OPTION("model.layers")},
    {"intermediate_size", false, AN_KEY_COUNT, AN_FACT_HIDDEN, LLAMA(11008), OF_LLAMA("model.hidden")},
    {"max_position_embeddings", false, AN_KEY_MOST, AN_FACT_CONTEXT, LLAMA(2048), OPTION("model.context")},
    {"rms_norm_eps", false, AN_KEY_REAL, AN_FACT_EPSILON, LLAMA(1e-6), OF_LLAMA("model.epsilon")},
    {"attention_bias", false, AN_KEY_BOOL, AN_FACT_ATTENTION_BIAS, LLAMA(0), {0}},
    {"mlp_bias", false, AN_KEY_BOOL, AN_FACT_MLP_BIAS, LLAMA(0), {0}},
    {"sliding_window", false, AN_KEY_COUNT, AN_FACT_WINDOW, {0, 0}, {0}},
    {"quantization_config", false, AN_KEY_OFF, AN_FACTS, NONE, {0}},
    {"auto_map", false, AN_KEY_OFF, AN_FACTS, NONE, {0}}, /* the folder brings code of its own */
    {"pruned_heads", false, AN_KEY_OFF, AN_FACTS, NONE, {0}},
    {"is_encoder_decoder", false, AN_KEY_OFF, AN_FACTS, NONE, {0}},
    {"add_cross_attention", false, AN_KEY_OFF, AN_FACTS, NONE, {0}},
};

int an_key_row_find(const char *key, bool rope) {
    for (int i = 0; i < AN_KEY_ROWS; i++)
        if (an_key_rows[i].rope == rope && !strcmp(an_key_rows[i].key, key)) return i;
    return -1;
}

static bool is_among(const char *word, const char *const *words) {
    while (*words && strcmp(word, *words) != 0) words++;
    return *words != NULL;
}

bool an_key_is_harmless(const char *key) {
    static const char *const harmless[] = {
        /* where it comes from, and how it is stored */
        "_name_or_path", "name_or_path", "transformers_version", "dtype", "torch_dtype", "torchscript", "use_bfloat16",
        "tf_legacy_loss", "gradient_checkpointing", "chunk_size_feed_forward", "pretraining_tp", "_attn_implementation",
        "attn_implementation", "_attn_implementation_autoset", "use_cache", "return_dict", "use_return_dict",
        "output_attentions", "output_hidden_states", "output_past", "is_decoder", "tie_encoder_decoder",
        "cross_attention_hidden_size",
        /* only rounding differs, or the size that another key says */
        "reorder_and_upcast_attn", "n_ctx",
        /* training: anneal's own config says them */
        "attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout", "hidden_dropout", "classifier_dropout",
        "initializer_range",
        /* tokens and labels */
        "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "unk_token_id", "decoder_start_token_id",
        "forced_bos_token_id", "forced_eos_token_id", "tokenizer_class", "prefix", "id2label", "label2id", "num_labels",
        "problem_type", "finetuning_task", "task_specific_params",
        /* heads for other tasks */
        "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
        /* generation */
        "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
        "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
        "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
        "return_dict_in_generate", "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
        "begin_suppress_tokens", NULL};
    return is_among(key, harmless);
}

/* ---- families ---- */

static const struct {
    const char *name;
    const char *architectures[8];
} families[AN_FAMILIES] = {
    [AN_FAMILY_GPT2] = {"gpt2",
                        {"GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel", "GPT2ForSequenceClassification",
                         "GPT2ForTokenClassification", "GPT2ForQuestionAnswering"}},
    [AN_FAMILY_LLAMA] = {"llama",
                         {"LlamaForCausalLM", "LlamaModel", "LlamaForSequenceClassification",
                          "LlamaForTokenClassification", "LlamaForQuestionAnswering", "LLaMAForCausalLM"}}};

an_family an_family_find(const char *model_type) {
    int f = 0;
    while (f < AN_FAMILIES && strcmp(families[f].name, model_type) != 0) f++;
    return (an_family)f;
}

bool an_family_has(an_family family, const char *architecture) {
    return is_among(architecture, families[family].architectures);
}

const char *an_family_name(an_family family) {
    return families[family].name;
}

/* ---- activations ---- */

int an_activation_find(const char *word) {
    static const struct {
        const char *word, *op;
    } words[] = {{"relu", "relu"},
                 {"gelu", "gelu"},
                 {"gelu_new", "gelu_tanh"}, /* the tanh form under three names */
                 {"gelu_pytorch_tanh", "gelu_tanh"},
                 {"gelu_fast", "gelu_tanh"},
                 {"silu", "silu"},
                 {"swish", "silu"},
                 {"sigmoid", "sigmoid"},
                 {"tanh", "tanh"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int op = 0; !strcmp(words[i].word, word) && an_activation_op(op); op++)
            if (!strcmp(an_activation_op(op), words[i].op)) return op;
    return -1;
}
