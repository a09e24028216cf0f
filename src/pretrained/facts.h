/* Facts about a language model. Its graph has them, whatever built it (interchange/model_facts.h), and so do the files
 * that publish it: config.json and the keys of GGUF. So a model can be built of what a file says, or compared with
 * it. */
#ifndef AN_PRETRAINED_FACTS_H
#define AN_PRETRAINED_FACTS_H

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
    AN_FACT_EPSILON,        /* of layer norms and RMS norms */
    AN_FACT_ACTIVATION,     /* an index for an_activation_op */
    AN_FACT_TIED,           /* 1: the head is the token table */
    AN_FACT_ATTENTION_BIAS, /* 1: q, k and v have a bias */
    AN_FACT_OUTPUT_BIAS,    /* of the layer after attention */
    AN_FACT_MLP_BIAS,
    AN_FACT_QUERY_KEY_NORM, /* 1: heads of q and k are normalised */
    AN_FACT_TOKEN_TYPES,    /* these four: BERT */
    AN_FACT_CLASSES,        /* of its classifier; 0: it has none */
    AN_FACT_POOLING,        /* 1 + an_bert_pooling; 0: nothing says it */
    AN_FACT_DROPOUT,        /* of hidden states, in training */
    AN_FACTS
} an_fact;

/* The op's name of an activation, "gelu_tanh"; NULL after the last. */
const char *an_activation_op(int index);
/* The activation that a word of Hugging Face stands for; -1: none that we have. */
int an_activation_find(const char *word);
/* The first word that Hugging Face has for an activation; NULL: none. */
const char *an_activation_word(int index);

#endif
