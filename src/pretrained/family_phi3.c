/* Phi-3, and later models whose rotary positions are not scaled: Llama with q, k and v in one tensor, and gate and
 * up in another. */
#include "pretrained/llama_like.h"

/* Defaults are those of Phi3Config in transformers. */
static const an_family_key keys[] = {
    AN_LLAMA_KEY(HIDDEN_SIZE, 3072),
    AN_LLAMA_KEY(INTERMEDIATE_SIZE, 8192),
    AN_LLAMA_KEY(LAYERS, 32),
    AN_LLAMA_KEY(HEADS, 32),
    AN_LLAMA_KEY(KV_HEADS, AN_KEY_UNSTATED),
    AN_LLAMA_KEY(HEAD_DIM, AN_KEY_UNSTATED),
    AN_LLAMA_KEY(VOCABULARY, 32064),
    {AN_ROW_MOST_POSITIONS, 4096, AN_SETTING(model.context)},
    AN_LLAMA_KEY(RMS_EPSILON, 1e-5),
    AN_LLAMA_KEY(HIDDEN_ACT, AN_KEY_UNSTATED),
    AN_LLAMA_KEY(TIED, 0),
    AN_LLAMA_KEY(THETA, 10000),
    AN_LLAMA_KEY(ROPE_THETA, AN_KEY_UNSTATED),
    AN_LLAMA_KEY(SHARE, 1),
    AN_LLAMA_KEY(ROPE_SHARE, AN_KEY_UNSTATED),
    AN_LLAMA_KEY(WINDOW, 0),
    AN_FAMILY_KEYS_END,
};

static const an_family_joint joints[] = {
    {"model.layers.#.self_attn.qkv_proj",
     {"model.layers.#.self_attn.q_proj", "model.layers.#.self_attn.k_proj", "model.layers.#.self_attn.v_proj"}},
    {"model.layers.#.mlp.gate_up_proj", {"model.layers.#.mlp.gate_proj", "model.layers.#.mlp.up_proj"}},
    AN_FAMILY_JOINTS_END,
};

static const an_family_name names[] = {
    {"token_embd", "model.embed_tokens", false},
    {"output_norm", "model.norm", false},
    {"output", "lm_head", false},
    {"blk.#.attn_norm", "model.layers.#.input_layernorm", false},
    {"blk.#.attn_qkv", "model.layers.#.self_attn.qkv_proj", false},
    {"blk.#.attn_output", "model.layers.#.self_attn.o_proj", false},
    {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm", false},
    {"blk.#.ffn_up", "model.layers.#.mlp.gate_up_proj", false},
    {"blk.#.ffn_down", "model.layers.#.mlp.down_proj", false},
    AN_FAMILY_NAMES_END,
};

/* Folders name code of their own, from the time before transformers had the model. */
static void settle(an_description *d) {
    an_llama_settle(d);
    d->values[AN_ROW_AUTO_MAP].given = false;
}

/* A model that was trained here is a Llama. */
static bool fits(const bool has[AN_FACTS]) {
    (void)has;
    return false;
}

const an_family an_family_phi3 = {
    .name = "phi3",
    .gguf = "phi3",
    .type = NULL,
    .architectures = {"Phi3ForCausalLM", "Phi3Model", "Phi3ForSequenceClassification", "Phi3ForTokenClassification"},
    .keys = keys,
    .table = AN_LLAMA_TABLE,
    .fits = fits,
    .names = names,
    .joints = joints,
    .settle = settle,
    .build = an_llama_build,
};
