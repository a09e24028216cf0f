/* What Llama and its relatives share: names, and a builder that follows the facts. */
#ifndef AN_PRETRAINED_LLAMA_LIKE_H
#define AN_PRETRAINED_LLAMA_LIKE_H

#include "base/options/settings.h"
#include "pretrained/description.h"

#define AN_LLAMA_TABLE "model.embed_tokens.weight"

/* Keys of config.json that Llama's relatives share, with the sizes in which their defaults differ. */
#define AN_LLAMA_KEY(row, usual) \
    { AN_ROW_##row, (usual), NULL }
#define AN_LLAMA_RELATIVE_KEYS(hidden, kv_heads, head_size, vocabulary, positions)                           \
    AN_LLAMA_KEY(HIDDEN_SIZE, 4096), AN_LLAMA_KEY(INTERMEDIATE_SIZE, hidden), AN_LLAMA_KEY(LAYERS, 32),      \
        AN_LLAMA_KEY(HEADS, 32), AN_LLAMA_KEY(KV_HEADS, kv_heads), AN_LLAMA_KEY(HEAD_DIM, head_size),        \
        AN_LLAMA_KEY(VOCABULARY, vocabulary), {AN_ROW_MOST_POSITIONS, positions, AN_SETTING(model.context)}, \
        AN_LLAMA_KEY(RMS_EPSILON, 1e-6), AN_LLAMA_KEY(HIDDEN_ACT, AN_KEY_UNSTATED), AN_LLAMA_KEY(TIED, 0),   \
        AN_LLAMA_KEY(THETA, 10000), AN_LLAMA_KEY(ROPE_THETA, AN_KEY_UNSTATED), AN_LLAMA_KEY(SHARE, 1),       \
        AN_LLAMA_KEY(ROPE_SHARE, AN_KEY_UNSTATED), AN_LLAMA_KEY(FACTOR, 0), AN_LLAMA_KEY(LOW, 0),            \
        AN_LLAMA_KEY(HIGH, 0), AN_LLAMA_KEY(ORIGINAL, 0)

extern const an_family_name an_llama_names[]; /* rows of q and k as they are */
extern const an_family_name
    an_llama_own_names[]; /* rows of q and k as pairs, which only files of architecture llama have */

/* Keys whose default is another key, and the activation. */
void an_llama_settle(an_description *d);
/* Qwen: the window is for layers from max_window_layers on, if it is used at all. */
void an_llama_settle_window(an_description *d);
an_status an_llama_build(an_graph **graph, const an_description *d, const an_pretrained_options *options);

#endif
