/* Adapters: fine-tuning a few numbers beside frozen weights (LoRA, DoRA), and learning from pairs of answers (DPO).
 * None of these functions is collective. */
#ifndef ANNEAL_ADAPTER_H
#define ANNEAL_ADAPTER_H

#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An adapter of low rank (LoRA) for the linear layers whose weights the targets match: x·Wᵀ becomes x·Wᵀ + scale ·
 * (dropout(x)·Aᵀ)·Bᵀ, where A has `rank` rows and B `rank` columns. A starts at random and B at zero, so the model
 * first computes what it did. */
typedef struct an_lora_options {
    size_t size;
    /* PCRE2 regular expressions, each found anywhere in the name of a weight, such as "q_proj". Each must match
     * one */
    const char *const *targets;
    int64_t rank;
    double alpha;   /* scale is alpha ÷ rank. AN_AUTO: rank, so that scale is 1 */
    double dropout; /* share of what enters A that is dropped in training; 0 by default */
    /* a PEFT folder, whose adapter_config.json gives targets, rank, alpha, rslora and dora; these members must then be
     * 0. NULL: none */
    const char *from;
    /* regular expressions like `targets`, for layers that are trained in full beside the adapter; the adapter does not
     * change them. A head that the published model does not have (an_pretrained_graph) is always trained */
    const char *const *train;
    int64_t train_count;
    int target_count;
    /* type in which the frozen matrices of the model are stored: AN_DTYPE_BF16, AN_DTYPE_F16 or AN_DTYPE_Q8_0;
     * AN_DTYPE_NONE: unchanged */
    an_dtype base;
    bool rslora; /* scale is alpha ÷ √rank */
    /* DoRA: every output is also multiplied by a trained magnitude ÷ the norm of its row of W + scale · B·A. Without
     * dropout */
    bool dora;
    uint8_t reserved[6];
} an_lora_options;
AN_API void an_lora_options_init(an_lora_options *options, size_t size);

/* Adds an adapter to a model and freezes all other parameters, except those of options.train. Call it after
 * an_graph_verify and before an_groups_create, an_params_create and an_plan_create. For a weight NAME.weight, the
 * parameters are NAME.lora_A.weight (rank, inputs) and NAME.lora_B.weight (outputs, rank), with DoRA also
 * NAME.lora_magnitude_vector (outputs), which starts as the norms of the rows of the weight: an_params_reset sets it,
 * and so does an_trainer_load_weights after it has loaded the weights. After an error, destroy the graph. */
AN_API an_status an_graph_add_lora(an_graph *graph, const an_lora_options *options);

/* Replaces the loss of a language model with an adapter by that of direct preference optimization (DPO): -log sigmoid
 * of the reward of the chosen answer minus that of the rejected one, where a reward is beta times the sum, over the
 * tokens of the answer, of log p minus log p of the base without its adapter. Needs rotary positions and documents;
 * samples are those of an_chat_source.pairs, with the class of the chosen answer in the new input "preferred". Label
 * smoothing s of the model's loss is kept: it treats the answers of a pair as swapped with probability s ÷ 2. After an
 * error, destroy the graph. */
AN_API an_status an_graph_add_dpo(an_graph *graph, double beta);

#ifdef __cplusplus
}
#endif
#endif
