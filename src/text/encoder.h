/* What a thread needs to encode. Its memory is malloc's: several threads encode at a time, and a context belongs to
 * one. */
#ifndef AN_TEXT_ENCODER_H
#define AN_TEXT_ENCODER_H

#include "base/context.h"
#include "text/tokenizer.h"

enum { AN_MOST_TEXT = INT32_MAX }; /* bytes: places in a text have 32 bits */

typedef struct an_characters {
    char *bytes;
    size_t length, capacity;
} an_characters;

typedef struct an_piece {
    uint32_t begin, end;
} an_piece;
typedef struct an_pieces {
    an_piece *pieces;
    size_t count, capacity;
} an_pieces;

typedef struct an_ids {
    int32_t *ids;
    size_t count, capacity;
} an_ids;

/* A symbol of a long word: a list in an array. */
typedef struct an_symbol {
    int32_t token;
    uint32_t rank; /* of the merge with the next symbol */
    int32_t previous, next;
} an_symbol;

/* A word and its tokens, in one cache line. */
enum { AN_CACHED_BYTES = 31, AN_CACHED_TOKENS = 7 };
#ifndef AN_CACHED_WORDS /* fuzzers, which make an encoder for every input, have a small cache */
#define AN_CACHED_WORDS (1 << 14)
#endif
typedef struct an_cached_word {
    char word[AN_CACHED_BYTES];
    uint8_t length; /* 0: free */
    int32_t tokens[AN_CACHED_TOKENS];
    int32_t count;
} an_cached_word;

struct an_encoder {
    const an_tokenizer *tokenizer;
    an_match_space space;
    an_characters valid;     /* the text with U+FFFD where it was not UTF-8 */
    an_characters normal[2]; /* the text after one normalizer and the next */
    an_characters folded;    /* between the parts of one normalizer */
    size_t normal_room;      /* bytes that normalizers may still make of the text */
    an_characters shaped;    /* pieces that a pre-tokenizer has changed */
    an_characters key;       /* what WordPiece looks up */
    uint32_t *points;        /* characters that are being normalized */
    size_t point_capacity;
    an_pieces pieces[2];
    an_ids tokens, other, result, types;
    an_symbol *symbols;
    size_t symbol_capacity;
    uint64_t *heap;
    size_t heap_count, heap_capacity;
    an_cached_word *cache;   /* NULL: words are not cached */
    struct an_words *counts; /* words are counted here instead of being encoded; NULL: they are not */
    char error[AN_MESSAGE_BYTES];
};

/* Room for `needed` elements; what was there stays. */
an_status an_encoder_reserve(an_encoder *encoder, void **memory, size_t *capacity, size_t needed, size_t element);
/* The result of a call in parts: empty at first, then plain text without special tokens, and tokens. */
void an_encoder_clear(an_encoder *encoder);
an_status an_encoder_add_text(an_encoder *encoder, an_bytes text);
an_status an_encoder_add_token(an_encoder *encoder, int32_t token);
an_status an_ids_add(an_encoder *encoder, an_ids *ids, int32_t id);
an_status an_pieces_add(an_encoder *encoder, an_pieces *pieces, size_t begin, size_t end);
an_status an_characters_add(an_encoder *encoder, an_characters *text, const char *bytes, size_t length);
an_status an_characters_put(an_encoder *encoder, an_characters *text, uint32_t character);
static inline an_note an_encoder_note(an_encoder *encoder) {
    return (an_note){encoder->error, sizeof encoder->error};
}

/* For functions with a status and nothing to free. */
#define AN_STEP_TRY(call)                     \
    do {                                      \
        const an_status status_ = (call);     \
        if (status_ != AN_OK) return status_; \
    } while (0)

#endif
