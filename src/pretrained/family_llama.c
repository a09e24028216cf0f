/* Llama 2, 3 and 3.1, SmolLM2, and whatever else calls itself llama. */
#include "pretrained/llama_like.h"

/* Defaults are those of LlamaConfig in transformers. */
static const an_family_key keys[] = {
    {AN_ROW_HIDDEN_SIZE, 4096, AN_SETTING(model.width)},
    {AN_ROW_INTERMEDIATE_SIZE, 11008, AN_SETTING(model.hidden)},
    {AN_ROW_LAYERS, 32, AN_SETTING(model.layers)},
    {AN_ROW_HEADS, 32, AN_SETTING(model.heads)},
    {AN_ROW_KV_HEADS, AN_KEY_UNSTATED, AN_SETTING(model.kv_heads)},
    {AN_ROW_HEAD_DIM, AN_KEY_UNSTATED, NULL},
    {AN_ROW_VOCABULARY, 32000, AN_SETTING(model.vocabulary)},
    {AN_ROW_MOST_POSITIONS, 2048, AN_SETTING(model.context)},
    {AN_ROW_RMS_EPSILON, 1e-6, AN_SETTING(model.epsilon)},
    {AN_ROW_HIDDEN_ACT, AN_KEY_UNSTATED, NULL},
    {AN_ROW_TIED, 0, AN_SETTING(model.tied)},
    {AN_ROW_THETA, 10000, AN_SETTING(model.rotary_base)},
    {AN_ROW_ROPE_THETA, AN_KEY_UNSTATED, AN_SETTING(model.rotary_base)},
    {AN_ROW_SHARE, 1, NULL},
    {AN_ROW_ROPE_SHARE, AN_KEY_UNSTATED, NULL},
    {AN_ROW_FACTOR, 0, NULL},
    {AN_ROW_LOW, 0, NULL},
    {AN_ROW_HIGH, 0, NULL},
    {AN_ROW_ORIGINAL, 0, NULL},
    {AN_ROW_ATTENTION_BIAS, 0, NULL},
    {AN_ROW_MLP_BIAS, 0, NULL},
    {AN_ROW_WINDOW, 0, NULL},
    AN_FAMILY_KEYS_END,
};

const an_family an_family_llama = {
    .name = "llama",
    .gguf = "llama",
    .type = "llama",
    .architectures = {"LlamaForCausalLM", "LlamaModel", "LlamaForSequenceClassification", "LlamaForTokenClassification",
                      "LlamaForQuestionAnswering", "LLaMAForCausalLM"},
    .keys = keys,
    .table = AN_LLAMA_TABLE,
    .names = an_llama_own_names,
    .settle = an_llama_settle,
    .build = an_llama_build,
};
