/* Qwen3: heads of a size of their own, whose queries and keys are normalised before they rotate. */
#include "pretrained/llama_like.h"

/* Defaults are those of Qwen3Config in transformers. */
static const an_family_key keys[] = {
    AN_LLAMA_RELATIVE_KEYS(22016, 32, 128, 151936, 32768),
    {AN_ROW_ATTENTION_BIAS, 0, NULL},
    {AN_ROW_WINDOW, 4096, NULL},
    {AN_ROW_USES_WINDOW, 0, NULL},
    {AN_ROW_MAX_WINDOW_LAYERS, 28, NULL},
    AN_FAMILY_KEYS_END,
};

static void settle(an_description *d) {
    an_llama_settle(d);
    an_llama_settle_window(d);
    an_description_state(d, AN_FACT_QUERY_KEY_NORM, 1);
}

static bool fits(const bool has[AN_FACTS]) {
    return has[AN_FACT_QUERY_KEY_NORM];
}

const an_family an_family_qwen3 = {
    .name = "qwen3",
    .gguf = "qwen3",
    .type = NULL,
    .architectures = {"Qwen3ForCausalLM", "Qwen3Model", "Qwen3ForSequenceClassification", "Qwen3ForTokenClassification",
                      "Qwen3ForQuestionAnswering"},
    .keys = keys,
    .table = AN_LLAMA_TABLE,
    .fits = fits,
    .names = an_llama_names,
    .settle = settle,
    .build = an_llama_build,
};
