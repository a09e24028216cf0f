/* The tokens of a tokenizer, by id and by text. */
#ifndef AN_TEXT_VOCABULARY_H
#define AN_TEXT_VOCABULARY_H

#include "text/step.h"

enum { AN_NO_TOKEN = -1 };

typedef struct an_token {
    const char *text;  /* as the vocabulary writes it; NULL: there is no token of this id */
    const char *bytes; /* what it stands for in a text */
    uint32_t text_length, byte_length;
    bool special;
    bool added; /* it is not of the model, and no word is made of it */
} an_token;

/* Texts to ids. The hash depends on the file, so that no file can make its own texts collide. */
typedef struct an_index {
    int32_t *slots; /* ids, AN_NO_TOKEN: free */
    size_t count;   /* of slots, a power of two */
    uint64_t seed;
    bool by_bytes; /* keys are the bytes of tokens, not their texts, and only those of the model */
} an_index;

/* A pair of tokens that become one. */
typedef struct an_merge {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank; /* the lowest comes first */
    int32_t token;
} an_merge;

typedef struct an_merges {
    an_merge *slots;
    size_t count;
    uint64_t seed;
} an_merges;

typedef struct an_vocabulary {
    an_token *tokens;
    size_t count, capacity;
    an_index by_text, by_bytes;
    an_merges merges;
} an_vocabulary;

enum { AN_NO_RANK = -1 }; /* as uint32_t: above every rank */

uint64_t an_text_hash(const void *bytes, size_t length, uint64_t seed);

/* An index of all tokens that are there now; of two with the same key, the lower id. */
an_status an_index_make(an_context *ctx, an_index *index, const an_vocabulary *vocabulary, bool by_bytes,
                        uint64_t seed);
int32_t an_index_find(const an_index *index, const an_vocabulary *vocabulary, const char *key, size_t length);

an_status an_merges_make(an_context *ctx, an_merges *merges, size_t count, uint64_t seed);
/* Of a pair that is there already, the later rank holds. */
void an_merges_put(an_merges *merges, int32_t left, int32_t right, uint32_t rank, int32_t token);

static inline const an_merge *an_merges_find(const an_merges *merges, int32_t left, int32_t right) {
    if (merges->count == 0) return NULL;
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t hash = (pair ^ merges->seed) * 0x9e3779b97f4a7c15u; /* 2^64 ÷ the golden ratio */
    hash ^= hash >> 32;
    for (size_t at = (size_t)hash & (merges->count - 1);; at = (at + 1) & (merges->count - 1)) {
        const an_merge *merge = &merges->slots[at];
        if (merge->token == AN_NO_TOKEN) return NULL;
        if (merge->pair == pair) return merge;
    }
}

void an_vocabulary_release(an_context *ctx, an_vocabulary *vocabulary);

#endif
