/* Added tokens: they are found in a text before anything else happens to it, the first and of these the longest. */
#ifndef AN_TEXT_ADDED_H
#define AN_TEXT_ADDED_H

#include "text/step.h"

enum { AN_ADDED_LONGEST = 1024 }; /* bytes of one: a text of n bytes takes up to n times as many steps */

typedef struct an_added_token {
    int32_t id;
    an_bytes content; /* what is looked for */
    bool special, single_word, left_strip, right_strip, normalized;
} an_added_token;

/* Those that are looked for in the text as it is, and then those that are looked for in the normalized text. */
typedef enum an_added_stage { AN_ADDED_PLAIN, AN_ADDED_NORMALIZED, AN_ADDED_STAGES } an_added_stage;

/* A node of the trie of their bytes: its first child, and its next sibling, which has a larger byte. */
typedef struct an_added_node {
    uint32_t child, sibling; /* 0: none */
    int32_t token;           /* of `tokens`; -1: none ends here */
    unsigned char byte;
} an_added_node;

typedef struct an_added_tokens {
    an_added_token *tokens;
    size_t count;
    an_added_node *nodes; /* the first is the root */
    size_t node_count, node_capacity;
    uint32_t first[256]; /* children of the root */
} an_added_tokens;

/* The tokens are copied; their contents must outlive it. */
an_status an_added_tokens_make(an_context *ctx, an_added_tokens *added, const an_added_token *tokens, size_t count);
void an_added_tokens_release(an_context *ctx, an_added_tokens *added);

typedef struct an_added_match {
    const an_added_token *token; /* NULL: none */
    size_t begin, end;           /* with the white space that belongs to it */
    size_t next;                 /* where to look for the next */
} an_added_match;

/* The next token of the text at or after `from`. White space before `taken` belongs to another.
 * `special`: special tokens too. */
void an_added_tokens_find(const an_added_tokens *added, const char *text, size_t length, size_t from, size_t taken,
                          bool special, an_added_match *match);

#endif
