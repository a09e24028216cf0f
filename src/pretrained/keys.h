/* The keys of config.json: which fact of the model each one states. Which of them a family has, and what an absent
 * one means there, its own file says. */
#ifndef AN_PRETRAINED_KEYS_H
#define AN_PRETRAINED_KEYS_H

#include <stdbool.h>

#include "pretrained/facts.h"

typedef enum an_key_kind {
    AN_KEY_COUNT,
    AN_KEY_REAL,
    AN_KEY_BOOL,
    AN_KEY_MOST,       /* a count that the model may stay below */
    AN_KEY_ACTIVATION, /* a word */
    AN_KEY_WORD,       /* read, and looked at by the code */
    AN_KEY_OFF         /* must be absent, null, false, zero or empty in every family: no model here can do it */
} an_key_kind;

typedef struct an_key_row {
    const char *key;
    bool rope; /* inside of rope_scaling or rope_parameters */
    an_key_kind kind;
    an_fact fact; /* AN_FACTS: none by itself */
} an_key_row;

enum {
    AN_ROW_MODEL_TYPE,
    AN_ROW_ROPE_TYPE,
    AN_ROW_ROPE_OLD_TYPE,
    AN_ROW_N_EMBD,
    AN_ROW_N_INNER,
    AN_ROW_HIDDEN_SIZE,
    AN_ROW_HEADS,
    AN_ROW_KV_HEADS,
    AN_ROW_HEAD_DIM,
    AN_ROW_THETA,
    AN_ROW_ROPE_THETA,
    AN_ROW_SHARE,
    AN_ROW_ROPE_SHARE,
    AN_ROW_FACTOR, /* these four in one row, for llama3 */
    AN_ROW_LOW,
    AN_ROW_HIGH,
    AN_ROW_ORIGINAL,
    AN_ROW_ACTIVATION_FUNCTION,
    AN_ROW_HIDDEN_ACT,
    AN_ROW_N_LAYER,
    AN_ROW_N_HEAD,
    AN_ROW_N_POSITIONS,
    AN_ROW_LAYER_NORM_EPSILON,
    AN_ROW_SCALE_ATTN_WEIGHTS,
    AN_ROW_VOCABULARY,
    AN_ROW_TIED,
    AN_ROW_LAYERS,
    AN_ROW_INTERMEDIATE_SIZE,
    AN_ROW_MOST_POSITIONS,
    AN_ROW_RMS_EPSILON,
    AN_ROW_ATTENTION_BIAS,
    AN_ROW_MLP_BIAS,
    AN_ROW_WINDOW,
    AN_ROW_USES_WINDOW,
    AN_ROW_MAX_WINDOW_LAYERS,
    AN_ROW_TOKEN_TYPES,
    AN_ROW_LAYER_NORM_EPS,
    AN_ROW_HIDDEN_DROPOUT,
    AN_ROW_POSITION_TYPE,
    AN_ROW_IS_DECODER,
    AN_ROW_LABELS,
    AN_ROW_OFF, /* from here on: AN_KEY_OFF */
    AN_ROW_AUTO_MAP = AN_ROW_OFF + 2,
    AN_KEY_ROWS = AN_ROW_OFF + 6
};
extern const an_key_row an_key_rows[AN_KEY_ROWS];

/* The row of a key; -1: there is none. */
int an_key_row_find(const char *key, bool rope);
/* Whether the key has no effect on what the model computes (dropout, token ids, generation …). It may have a row for
 * the families that look at it. */
bool an_key_is_harmless(const char *key);

/* A key of GGUF behind "llama." and so on, and the fact that it states; AN_FACTS: none by itself. The last has no
 * key. */
typedef struct an_gguf_fact {
    const char *key;
    an_fact fact;
} an_gguf_fact;
extern const an_gguf_fact an_gguf_facts[];

#endif
