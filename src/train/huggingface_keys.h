/* The keys of config.json: which fact of the model each one states, and what an absent one means. */
#ifndef AN_TRAIN_HUGGINGFACE_KEYS_H
#define AN_TRAIN_HUGGINGFACE_KEYS_H

#include "train/model_facts.h"

typedef enum an_family { AN_FAMILY_GPT2, AN_FAMILY_LLAMA, AN_FAMILIES } an_family;

typedef enum an_key_kind {
    AN_KEY_COUNT,
    AN_KEY_REAL,
    AN_KEY_BOOL,
    AN_KEY_MOST,       /* a count that the model may stay below */
    AN_KEY_ACTIVATION, /* a word */
    AN_KEY_WORD,       /* read, and looked at by the code */
    AN_KEY_OFF         /* must be absent, null, false, zero or empty: no model here can do it */
} an_key_kind;

enum { AN_KEY_UNSTATED = -1 }; /* no default, or one that depends on other keys */

typedef struct an_key_row {
    const char *key;
    bool rope; /* inside of rope_scaling or rope_parameters */
    an_key_kind kind;
    an_fact fact;
    double usual[AN_FAMILIES];       /* what Hugging Face takes where the key is absent */
    const char *option[AN_FAMILIES]; /* of our config; NULL: this type of model has none */
} an_key_row;

/* Rows that the code refers to; the table has them in this order, and others after them. */
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
    AN_ROW_FACTOR,
    AN_ROW_LOW,
    AN_ROW_HIGH,
    AN_ROW_ORIGINAL,
    AN_ROW_ACTIVATION_FUNCTION,
    AN_ROW_HIDDEN_ACT,
    AN_ROW_OTHERS,
    AN_KEY_ROWS = AN_ROW_OTHERS + 20
};
extern const an_key_row an_key_rows[AN_KEY_ROWS];

/* The row of a key; -1: there is none. */
int an_key_row_find(const char *key, bool rope);
/* Whether the key has no effect on what the model computes (dropout, token ids, generation …). */
bool an_key_is_harmless(const char *key);
/* The family of a model_type, and whether it may have this name in `architectures`; AN_FAMILIES: none. */
an_family an_family_find(const char *model_type);
bool an_family_has(an_family family, const char *architecture);
const char *an_family_name(an_family family);
/* The fact that a word of activation_function or hidden_act stands for; -1: none that we have. */
int an_activation_find(const char *word);

#endif
