/* Records of texts for fine-tuning a language model, as pieces of tokens. */
#ifndef AN_DATA_TEXTS_CHAT_H
#define AN_DATA_TEXTS_CHAT_H

#include "anneal/data.h"
#include "data/texts/lines.h"
#include "data/texts/tokenized.h"

/* A piece is what a record became: tokens begin to begin + length, of which all but the first are targets. */
typedef struct an_piece {
    int64_t begin, record;
    int32_t length;
} an_piece;

typedef struct an_pieces {
    an_tokenized tokenized;
    an_piece *pieces;
    size_t count, capacity;
    int64_t records;    /* that were read */
    int64_t cut;        /* of these, longer than a sample */
    int64_t cut_tokens; /* that they lost */
    int64_t all_tokens; /* of all records, before they were cut */
    int64_t left_out;   /* records without a token to learn */
} an_pieces;

/* Reads all records of the part: texts, prompts with completions, or conversations. */
an_status an_pieces_read(an_pieces *pieces, an_context *ctx, const an_chat_source *source, an_lines *lines);
void an_pieces_destroy(an_pieces *pieces);

#endif
