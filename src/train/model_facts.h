/* Facts about a model that follow from its graph, whatever built it: sizes, heads, rotary positions, epsilon,
 * activation. The configurations of other tools state the same facts, so the two can be compared. */
#ifndef AN_TRAIN_MODEL_FACTS_H
#define AN_TRAIN_MODEL_FACTS_H

#include "train/trainer.h"

typedef enum an_fact {
    AN_FACT_LAYERS, /* attention ops */
    AN_FACT_HEADS,
    AN_FACT_KV_HEADS,
    AN_FACT_HEAD_SIZE,
    AN_FACT_SCALED, /* 1: scores are divided by the root of the head size; 0: by something else */
    AN_FACT_WINDOW, /* keys that a query sees; 0: all */
    AN_FACT_WIDTH,
    AN_FACT_VOCABULARY,
    AN_FACT_POSITIONS, /* rows of a table of learned positions */
    AN_FACT_CONTEXT,   /* tokens in a sample */
    AN_FACT_HIDDEN,    /* width of the feed-forward layers */
    AN_FACT_ROTARY_BASE,
    AN_FACT_ROTARY_SHARE,  /* of a head's elements that rotate: 0 to 1 */
    AN_FACT_ROTARY_FACTOR, /* these four: llama3 scaling; all 0 without */
    AN_FACT_ROTARY_LOW,
    AN_FACT_ROTARY_HIGH,
    AN_FACT_ROTARY_ORIGINAL,
    AN_FACT_EPSILON,    /* of layer norms and RMS norms */
    AN_FACT_ACTIVATION, /* an index for an_activation_op */
    AN_FACT_TIED,       /* 1: the head is the token table */
    AN_FACT_ATTENTION_BIAS,
    AN_FACT_MLP_BIAS,
    AN_FACTS
} an_fact;

typedef struct an_model_facts {
    struct {
        bool known;  /* false: the graph has nothing of the kind */
        bool varies; /* layers differ */
        double value;
    } facts[AN_FACTS];
} an_model_facts;

void an_model_facts_find(an_model_facts *facts, const an_trainer *trainer);

/* The op's name of an activation, "gelu_tanh"; NULL after the last. */
const char *an_activation_op(int index);

#endif
