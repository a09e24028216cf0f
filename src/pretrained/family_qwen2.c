/* Qwen2 and 2.5: Llama with a bias on q, k and v, and a window that is seldom used. */
#include "pretrained/llama_like.h"

/* Defaults are those of Qwen2Config in transformers. */
static const an_family_key keys[] = {
    AN_LLAMA_RELATIVE_KEYS(22016, 32, AN_KEY_UNSTATED, 151936, 32768),
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

static bool fits(const bool has[AN_FACTS]) {
    return has[AN_FACT_ATTENTION_BIAS] && !has[AN_FACT_OUTPUT_BIAS] && !has[AN_FACT_QUERY_KEY_NORM];
}

const an_family an_family_qwen2 = {
    .name = "qwen2",
    .gguf = "qwen2",
    .type = NULL,
    .architectures = {"Qwen2ForCausalLM", "Qwen2Model", "Qwen2ForSequenceClassification", "Qwen2ForTokenClassification",
                      "Qwen2ForQuestionAnswering"},
    .keys = keys,
    .table = AN_LLAMA_TABLE,
    .fits = fits,
    .names = an_llama_names,
    .settle = settle,
    .build = an_llama_build,
};
