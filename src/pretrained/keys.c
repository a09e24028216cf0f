#include "pretrained/keys.h"

#include <stddef.h>
#include <string.h>

const an_key_row an_key_rows[AN_KEY_ROWS] = {
    [AN_ROW_MODEL_TYPE] = {"model_type", false, AN_KEY_WORD, AN_FACTS},
    [AN_ROW_ROPE_TYPE] = {"rope_type", true, AN_KEY_WORD, AN_FACTS},
    [AN_ROW_ROPE_OLD_TYPE] = {"type", true, AN_KEY_WORD, AN_FACTS},
    [AN_ROW_N_EMBD] = {"n_embd", false, AN_KEY_COUNT, AN_FACT_WIDTH},
    [AN_ROW_N_INNER] = {"n_inner", false, AN_KEY_COUNT, AN_FACT_HIDDEN},
    [AN_ROW_HIDDEN_SIZE] = {"hidden_size", false, AN_KEY_COUNT, AN_FACT_WIDTH},
    [AN_ROW_HEADS] = {"num_attention_heads", false, AN_KEY_COUNT, AN_FACT_HEADS},
    [AN_ROW_KV_HEADS] = {"num_key_value_heads", false, AN_KEY_COUNT, AN_FACT_KV_HEADS},
    [AN_ROW_HEAD_DIM] = {"head_dim", false, AN_KEY_COUNT, AN_FACT_HEAD_SIZE},
    [AN_ROW_THETA] = {"rope_theta", false, AN_KEY_REAL, AN_FACT_ROTARY_BASE},
    [AN_ROW_ROPE_THETA] = {"rope_theta", true, AN_KEY_REAL, AN_FACT_ROTARY_BASE},
    [AN_ROW_SHARE] = {"partial_rotary_factor", false, AN_KEY_REAL, AN_FACT_ROTARY_SHARE},
    [AN_ROW_ROPE_SHARE] = {"partial_rotary_factor", true, AN_KEY_REAL, AN_FACT_ROTARY_SHARE},
    [AN_ROW_FACTOR] = {"factor", true, AN_KEY_REAL, AN_FACT_ROTARY_FACTOR},
    [AN_ROW_LOW] = {"low_freq_factor", true, AN_KEY_REAL, AN_FACT_ROTARY_LOW},
    [AN_ROW_HIGH] = {"high_freq_factor", true, AN_KEY_REAL, AN_FACT_ROTARY_HIGH},
    [AN_ROW_ORIGINAL] = {"original_max_position_embeddings", true, AN_KEY_COUNT, AN_FACT_ROTARY_ORIGINAL},
    [AN_ROW_ACTIVATION_FUNCTION] = {"activation_function", false, AN_KEY_ACTIVATION, AN_FACT_ACTIVATION},
    [AN_ROW_HIDDEN_ACT] = {"hidden_act", false, AN_KEY_ACTIVATION, AN_FACT_ACTIVATION},
    [AN_ROW_N_LAYER] = {"n_layer", false, AN_KEY_COUNT, AN_FACT_LAYERS},
    [AN_ROW_N_HEAD] = {"n_head", false, AN_KEY_COUNT, AN_FACT_HEADS},
    [AN_ROW_N_POSITIONS] = {"n_positions", false, AN_KEY_COUNT, AN_FACT_POSITIONS},
    [AN_ROW_LAYER_NORM_EPSILON] = {"layer_norm_epsilon", false, AN_KEY_REAL, AN_FACT_EPSILON},
    [AN_ROW_SCALE_ATTN_WEIGHTS] = {"scale_attn_weights", false, AN_KEY_BOOL, AN_FACT_SCALED},
    [AN_ROW_VOCABULARY] = {"vocab_size", false, AN_KEY_COUNT, AN_FACT_VOCABULARY},
    [AN_ROW_TIED] = {"tie_word_embeddings", false, AN_KEY_BOOL, AN_FACT_TIED},
    [AN_ROW_LAYERS] = {"num_hidden_layers", false, AN_KEY_COUNT, AN_FACT_LAYERS},
    [AN_ROW_INTERMEDIATE_SIZE] = {"intermediate_size", false, AN_KEY_COUNT, AN_FACT_HIDDEN},
    [AN_ROW_MOST_POSITIONS] = {"max_position_embeddings", false, AN_KEY_MOST, AN_FACT_CONTEXT},
    [AN_ROW_RMS_EPSILON] = {"rms_norm_eps", false, AN_KEY_REAL, AN_FACT_EPSILON},
    [AN_ROW_ATTENTION_BIAS] = {"attention_bias", false, AN_KEY_BOOL, AN_FACT_ATTENTION_BIAS},
    [AN_ROW_MLP_BIAS] = {"mlp_bias", false, AN_KEY_BOOL, AN_FACT_MLP_BIAS},
    [AN_ROW_WINDOW] = {"sliding_window", false, AN_KEY_COUNT, AN_FACT_WINDOW},
    [AN_ROW_USES_WINDOW] = {"use_sliding_window", false, AN_KEY_BOOL, AN_FACTS},
    [AN_ROW_MAX_WINDOW_LAYERS] = {"max_window_layers", false, AN_KEY_COUNT, AN_FACTS},
    [AN_ROW_TOKEN_TYPES] = {"type_vocab_size", false, AN_KEY_COUNT, AN_FACT_TOKEN_TYPES},
    [AN_ROW_LAYER_NORM_EPS] = {"layer_norm_eps", false, AN_KEY_REAL, AN_FACT_EPSILON},
    [AN_ROW_HIDDEN_DROPOUT] = {"hidden_dropout_prob", false, AN_KEY_REAL, AN_FACTS},
    [AN_ROW_POSITION_TYPE] = {"position_embedding_type", false, AN_KEY_WORD, AN_FACTS},
    [AN_ROW_IS_DECODER] = {"is_decoder", false, AN_KEY_BOOL, AN_FACTS},
    [AN_ROW_LABELS] = {"num_labels", false, AN_KEY_COUNT, AN_FACTS},
    [AN_ROW_OFF] = {"scale_attn_by_inverse_layer_idx", false, AN_KEY_OFF, AN_FACTS},
    {"quantization_config", false, AN_KEY_OFF, AN_FACTS},
    [AN_ROW_AUTO_MAP] = {"auto_map", false, AN_KEY_OFF, AN_FACTS}, /* the folder brings code of its own */
    {"pruned_heads", false, AN_KEY_OFF, AN_FACTS},
    {"is_encoder_decoder", false, AN_KEY_OFF, AN_FACTS},
    {"add_cross_attention", false, AN_KEY_OFF, AN_FACTS},
};

const an_gguf_fact an_gguf_facts[] = {
    {"block_count", AN_FACT_LAYERS},
    {"context_length", AN_FACT_CONTEXT},
    {"embedding_length", AN_FACT_WIDTH},
    {"feed_forward_length", AN_FACT_HIDDEN},
    {"attention.head_count", AN_FACT_HEADS},
    {"attention.head_count_kv", AN_FACT_KV_HEADS},
    {"attention.key_length", AN_FACT_HEAD_SIZE},
    {"attention.layer_norm_rms_epsilon", AN_FACT_EPSILON},
    {"attention.layer_norm_epsilon", AN_FACT_EPSILON},
    {"attention.sliding_window", AN_FACT_WINDOW},
    {"rope.freq_base", AN_FACT_ROTARY_BASE},
    {"vocab_size", AN_FACT_VOCABULARY},
    {"attention.value_length", AN_FACTS}, /* these are compared with others */
    {"rope.dimension_count", AN_FACTS},
    {"rope.scaling.type", AN_FACTS},
    {"rope.scaling.factor", AN_FACTS},
    {"rope.scaling.original_context_length", AN_FACTS},
    {"rope.scaling.finetuned", AN_FACTS},
    {"attention.causal", AN_FACTS},
    {NULL, AN_FACTS},
};

int an_key_row_find(const char *key, bool rope) {
    for (int i = 0; i < AN_KEY_ROWS; i++)
        if (an_key_rows[i].rope == rope && !strcmp(an_key_rows[i].key, key)) return i;
    return -1;
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
        /* read with a scaling of rotary positions only, which says it too, or is refused */
        "original_max_position_embeddings",
        /* training: anneal's own config says them */
        "attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout", "hidden_dropout", "hidden_dropout_prob",
        "attention_probs_dropout_prob", "classifier_dropout", "initializer_range",
        /* tokens and labels */
        "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "unk_token_id", "decoder_start_token_id",
        "forced_bos_token_id", "forced_eos_token_id", "tokenizer_class", "prefix", "id2label", "label2id", "num_labels",
        "problem_type", "finetuning_task", "task_specific_params",
        /* heads for other tasks */
        "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
        "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
        "pooler_size_per_head", "pooler_type",
        /* generation */
        "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
        "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
        "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
        "return_dict_in_generate", "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
        "begin_suppress_tokens", NULL};
    size_t i = 0;
    while (harmless[i] && strcmp(key, harmless[i]) != 0) i++;
    return harmless[i] != NULL;
}

/* ---- activations ---- */

const char *an_activation_op(int index) {
    static const char *const ops[] = {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"};
    return index >= 0 && (size_t)index < sizeof ops / sizeof *ops ? ops[index] : NULL;
}

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
enum { WORDS = sizeof words / sizeof *words };

int an_activation_find(const char *word) {
    for (size_t i = 0; i < WORDS; i++)
        for (int op = 0; !strcmp(words[i].word, word) && an_activation_op(op); op++)
            if (!strcmp(an_activation_op(op), words[i].op)) return op;
    return -1;
}

const char *an_activation_word(int index) {
    const char *op = an_activation_op(index);
    for (size_t i = 0; op && i < WORDS; i++)
        if (!strcmp(words[i].op, op)) return words[i].word;
    return NULL;
}
