/* Turns a model that reads sequences into one that reads their next tokens. */
#ifndef AN_PASS_DECODING_H
#define AN_PASS_DECODING_H

#include "ir/graph.h"

/* The inputs that the decoding graph has besides the model's own. */
#define AN_DECODING_POSITIONS "positions" /* i32 (batch, tokens): where in its sequence a token is */
#define AN_DECODING_SLOTS "slots"         /* i32 (batch): which part of the caches a sample has */

typedef struct an_decoding_options {
    int64_t slots, context; /* sequences in the caches, and positions of each */
    an_dtype cache;         /* of keys and values; NONE: as the graph has them */
    const char *output;     /* of the model; NULL: its first prediction */
} an_decoding_options;

typedef struct an_decoding {
    const char *input, *output; /* names of the model's tokens and of its logits, in the graph's memory */
    const char *batch, *tokens; /* names of the symbols */
    int64_t vocabulary;
    int64_t most_context; /* positions that the model has; 0: any */
    int64_t cache_bytes;
} an_decoding;

/* Changes the graph. What it makes of the output is (batch, 1, vocabulary): the logits of the token that follows the
 * last one of each sample. A model in which a token is not computed from itself and the tokens before it alone is
 * refused, with the op that does otherwise. */
an_status an_graph_make_decoding(an_graph *g, const an_decoding_options *options, an_decoding *decoding);

#endif
