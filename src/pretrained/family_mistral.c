/* Mistral: Llama with a window. GGUF files of it are of architecture llama. */
#include "pretrained/llama_like.h"

/* Defaults are those of MistralConfig in transformers. */
static const an_family_key keys[] = {
    {AN_ROW_HIDDEN_SIZE, 4096, NULL},
    {AN_ROW_INTERMEDIATE_SIZE, 14336, NULL},
    {AN_ROW_LAYERS, 32, NULL},
    {AN_ROW_HEADS, 32, NULL},
    {AN_ROW_KV_HEADS, 8, NULL},
    {AN_ROW_HEAD_DIM, AN_KEY_UNSTATED, NULL},
    {AN_ROW_VOCABULARY, 32000, NULL},
    {AN_ROW_MOST_POSITIONS, 131072, "model.context"},
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
    AN_FAMILY_KEYS_END,
};

const an_family an_family_mistral = {
    .name = "mistral",
    .gguf = NULL,
    .type = NULL,
    .architectures = {"MistralForCausalLM", "MistralModel", "MistralForSequenceClassification",
                      "MistralForTokenClassification", "MistralForQuestionAnswering"},
    .keys = keys,
    .names = an_llama_own_names,
    .settle = an_llama_settle,
    .build = an_llama_build,
    .gguf_as = "llama",
};
