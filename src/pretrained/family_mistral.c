/* Mistral: Llama with a window. GGUF files of it are of architecture llama. */
#include "pretrained/llama_like.h"

/* Defaults are those of MistralConfig in transformers. */
static const an_family_key keys[] = {
    AN_LLAMA_RELATIVE_KEYS(14336, 8, AN_KEY_UNSTATED, 32000, 131072),
    {AN_ROW_WINDOW, 4096, NULL},
    AN_FAMILY_KEYS_END,
};

static bool fits(const bool has[AN_FACTS]) {
    return has[AN_FACT_WINDOW] && !has[AN_FACT_QUERY_KEY_NORM] &&
           (!has[AN_FACT_ATTENTION_BIAS] || has[AN_FACT_OUTPUT_BIAS]);
}

const an_family an_family_mistral = {
    .name = "mistral",
    .gguf = NULL,
    .type = NULL,
    .architectures = {"MistralForCausalLM", "MistralModel", "MistralForSequenceClassification",
                      "MistralForTokenClassification", "MistralForQuestionAnswering"},
    .keys = keys,
    .table = AN_LLAMA_TABLE,
    .fits = fits,
    .names = an_llama_own_names,
    .settle = an_llama_settle,
    .build = an_llama_build,
    .gguf_as = "llama",
};
