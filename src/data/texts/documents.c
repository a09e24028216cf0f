/* Assigns each token of a sample to a document. Documents fill samples without gaps: a document that does not fit
 * continues in the next sample, where it is document 0. */
#include "data/texts/sequences.h"

/* A document ends with the end token, which is its own. */
static void by_end_token(const an_sequences *s, const int32_t *tokens, int32_t *targets, int32_t *documents) {
    int32_t document = 0;
    for (int64_t i = 0; i < s->context; i++) {
        documents[i] = document;
        if (tokens[i] != s->end_token) continue;
        document++;
        if (s->ignore_borders) targets[i] = AN_TARGET_IGNORED;
    }
}

/* The first border after a token. */
static int64_t border_after(const an_sequences *s, int64_t token) {
    int64_t low = 0, high = s->border_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->borders[middle] > token)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void by_borders(const an_sequences *s, int64_t begin, int32_t *targets, int32_t *documents) {
    int64_t next = border_after(s, begin);
    int32_t document = 0;
    for (int64_t i = 0; i < s->context; i++) {
        documents[i] = document;
        if (next == s->border_count || s->borders[next] != begin + i + 1) continue;
        document++;
        if (s->ignore_borders) targets[i] = AN_TARGET_IGNORED;
        while (next < s->border_count && s->borders[next] == begin + i + 1) next++; /* documents without a token */
    }
}

void an_documents_write(const an_sequences *s, int64_t begin, const int32_t *tokens, int32_t *targets,
                        int32_t *documents) {
    if (s->documents == AN_DOCUMENTS_END_TOKEN)
        by_end_token(s, tokens, targets, documents);
    else
        by_borders(s, begin, targets, documents);
}
