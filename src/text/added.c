#include "text/added.h"

#include <string.h>

#include "text/unicode.h"

static an_status add_node(an_context *ctx, an_added_tokens *a, unsigned char byte, uint32_t *node) {
    AN_TRY_RETURN(an_grow(ctx, (void **)&a->nodes, &a->node_capacity, a->node_count + 1, sizeof *a->nodes));
    *node = (uint32_t)a->node_count++;
    a->nodes[*node] = (an_added_node){.token = -1, .byte = byte};
    return AN_OK;
}

/* The child of a node for a byte; 0: it has none. */
static uint32_t child_of(const an_added_tokens *a, uint32_t node, unsigned char byte) {
    if (node == 0) return a->first[byte];
    uint32_t child = a->nodes[node].child;
    while (child && a->nodes[child].byte < byte) child = a->nodes[child].sibling;
    return child && a->nodes[child].byte == byte ? child : 0;
}

static an_status make_child(an_context *ctx, an_added_tokens *a, uint32_t node, unsigned char byte, uint32_t *made) {
    *made = child_of(a, node, byte);
    if (*made) return AN_OK;
    AN_TRY_RETURN(add_node(ctx, a, byte, made));
    if (node == 0) {
        a->first[byte] = *made;
        return AN_OK;
    }
    uint32_t *link = &a->nodes[node].child;
    while (*link && a->nodes[*link].byte < byte) link = &a->nodes[*link].sibling;
    a->nodes[*made].sibling = *link;
    *link = *made;
    return AN_OK;
}

an_status an_added_tokens_make(an_context *ctx, an_added_tokens *a, const an_added_token *tokens, size_t count) {
    uint32_t node;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&a->tokens, count, sizeof *a->tokens));
    a->count = count;
    if (count > 0) memcpy(a->tokens, tokens, count * sizeof *tokens);
    AN_TRY_RETURN(add_node(ctx, a, 0, &node));
    for (size_t i = 0; i < count; i++) {
        node = 0;
        for (size_t k = 0; k < tokens[i].content.length; k++)
            AN_TRY_RETURN(make_child(ctx, a, node, (unsigned char)tokens[i].content.bytes[k], &node));
        if (node > 0 && a->nodes[node].token < 0) a->nodes[node].token = (int32_t)i;
    }
    return AN_OK;
}

void an_added_tokens_release(an_context *ctx, an_added_tokens *a) {
    an_release(ctx, (void **)&a->tokens, a->count, sizeof *a->tokens);
    an_release(ctx, (void **)&a->nodes, a->node_capacity, sizeof *a->nodes);
}

static bool is_word_at(const char *text, size_t at) {
    return an_character_is_word(an_character_next(text, &at));
}

static bool is_word_before(const char *text, size_t at) {
    return an_character_is_word(an_character_before(text, &at));
}

static void strip(const an_added_token *token, const char *text, size_t length, size_t taken, an_added_match *m) {
    if (token->left_strip) {
        for (size_t at = m->begin; at > taken; m->begin = at)
            if (!an_character_is_space(an_character_before(text, &at))) break;
        if (m->begin < taken) m->begin = taken;
    }
    if (token->right_strip)
        for (size_t at = m->end; at < length; m->end = at)
            if (!an_character_is_space(an_character_next(text, &at))) break;
}

void an_added_tokens_find(const an_added_tokens *a, const char *text, size_t length, size_t from, size_t taken,
                          bool special, an_added_match *m) {
    for (size_t at = from; at < length;) {
        if (!a->first[(unsigned char)text[at]]) {
            at++;
            continue;
        }
        const an_added_token *longest = NULL;
        size_t end = at;
        uint32_t node = 0;
        for (size_t i = at; i < length && (node = child_of(a, node, (unsigned char)text[i])) != 0; i++)
            if (a->nodes[node].token >= 0) longest = &a->tokens[a->nodes[node].token], end = i + 1;
        if (!longest) {
            at++;
            continue;
        }
        /* A match that is refused takes its characters all the same: what lies within it is not looked for. */
        *m = (an_added_match){.token = longest, .begin = at, .end = end, .next = end};
        at = end;
        if (longest->special && !special) continue;
        if (longest->single_word &&
            ((m->begin > 0 && is_word_before(text, m->begin)) || (m->end < length && is_word_at(text, m->end))))
            continue;
        strip(longest, text, length, taken, m);
        return;
    }
    m->token = NULL;
}
