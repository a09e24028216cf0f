/* Qwen2 and 2.5: Llama with a bias on q, k and v, and a window that is seldom used. */
#include "pretrained/llama_like.h"

/* Defaults are those of Qwen2Config in transformers. */
static const an_family_key keys[] = {
    {AN_ROW_HIDDEN_SIZE, 4096, NULL},
    {AN_ROW_INTERMEDIATE_SIZE, 22016, NULL},
    {AN_ROW_LAYERS, 32, NULL},
    {AN_ROW_HEADS, 32, NULL},
    {AN_ROW_KV_HEADS, 32, NULL},
    {AN_ROW_HEAD_DIM, AN_KEY_UNSTATED, NULL},
    {AN_ROW_VOCABULARY, 151936, NULL},
    {AN_ROW_MOST_POSITIONS, 32768, "model.context"},
    {AN_ROW_RMS_EPSILON, 1e-6, NULL},
    {AN_ROW_HIDDEN_ACT, AN_KEY_UNSTATED, NULL},
    {AN_ROW_TIED, 0, NULL},
    {AN_ROW_THETA, 10000, NULL},
    {AN_ROW_ROPE_THETA, AN_KEY_UNSTATED, NULL},
    {AN_ROW_SHARE, 1, NULL},
    {AN_ROW_ROPE_SHARE, AN_KEY_UNSTATED, NULL},
    {AN_ROW_FACTOR, 0, NULL},
    {AN_ROW_LOW, 0, NULL},
    {AN_ROW_HIGH, 0, NULL},
    {AN_ROW_ORIGINAL, 0, NULL},
    {AN_ROW_WINDOW, 4096, NULL},
    {AN_ROW_USES_WINDOW, 0, NULL},
    {AN_ROW_MAX_WINDOW_LAYERS, 28, NULL},
    AN_FAMILY_KEYS_END,
};

static void settle(an_description *d) {
    an_llama_settle(d);
    an_llama_settle_window(d);
    an_description_state(d, AN_FACT_ATTENTION_BIAS, 1);
}

const an_family an_family_qwen2 = {
    .name = "qwen2",
    .gguf = "qwen2",
    .type = NULL,
    .architectures = {"Qwen2ForCausalLM", "Qwen2Model", "Qwen2ForSequenceClassification", "Qwen2ForTokenClassification",
                      "Qwen2ForQuestionAnswering"},
    .keys = keys,
    .names = an_llama_names,
    .settle = settle,
    .build = an_llama_build,
};
