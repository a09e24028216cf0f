#include "text/bpe.h"

#include <string.h>

#include "text/unicode.h"

enum {
    SHORT = 48, /* symbols of a word that is searched for the best pair again and again */
    LAST = -1,  /* no next symbol */
    NO_RANK = AN_NO_RANK
};

static uint32_t rank_of(const an_tokenizer *t, int32_t left, int32_t right) {
    const an_merge *merge = an_merges_find(&t->vocabulary.merges, left, right);
    return merge ? merge->rank : (uint32_t)NO_RANK;
}

/* ---- the symbols that a word begins with ---- */

static an_status add_unknown(an_encoder *e, bool after_unknown) {
    const an_tokenizer *t = e->tokenizer;
    if (t->model_unk == AN_NO_TOKEN) return AN_OK; /* the character is lost, as in other tokenizers */
    return after_unknown && t->fuse_unk ? AN_OK : an_ids_add(e, &e->other, t->model_unk);
}

static bool has_bytes(const an_tokenizer *t, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (t->byte_tokens[(unsigned char)bytes[i]] == AN_NO_TOKEN) return false;
    return true;
}

static an_status add_bytes(an_encoder *e, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        AN_STEP_TRY(an_ids_add(e, &e->other, e->tokenizer->byte_tokens[(unsigned char)bytes[i]]));
    return AN_OK;
}

static an_status begin_word(an_encoder *e, const char *word, size_t length) {
    const an_tokenizer *t = e->tokenizer;
    bool unknown = false;
    e->other.count = 0;
    for (size_t at = 0, end; at < length; at = end) {
        end = at + 1;
        if (!t->byte_level) end = at, an_character_next(word, &end);
        const int32_t token = t->byte_level
                                  ? t->byte_tokens[(unsigned char)word[at]]
                                  : an_index_find(&t->vocabulary.by_bytes, &t->vocabulary, word + at, end - at);
        if (token != AN_NO_TOKEN) {
            AN_STEP_TRY(an_ids_add(e, &e->other, token));
            unknown = false;
        } else if (t->byte_fallback && has_bytes(t, word + at, end - at)) {
            AN_STEP_TRY(add_bytes(e, word + at, end - at));
            unknown = false;
        } else {
            AN_STEP_TRY(add_unknown(e, unknown));
            unknown = true;
        }
    }
    return AN_OK;
}

/* ---- short words ---- */

static void merge_short(const an_tokenizer *t, an_ids *word) {
    uint32_t ranks[SHORT];
    size_t n = word->count;
    int32_t *ids = word->ids;
    for (size_t i = 0; i + 1 < n; i++) ranks[i] = rank_of(t, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best]) best = i;
        if (ranks[best] == (uint32_t)NO_RANK) break;
        ids[best] = an_merges_find(&t->vocabulary.merges, ids[best], ids[best + 1])->token;
        memmove(&ids[best + 1], &ids[best + 2], (n - best - 2) * sizeof *ids);
        memmove(&ranks[best], &ranks[best + 1], (n - best - 2) * sizeof *ranks);
        n--;
        if (best > 0) ranks[best - 1] = rank_of(t, ids[best - 1], ids[best]);
        if (best + 1 < n) ranks[best] = rank_of(t, ids[best], ids[best + 1]);
    }
    word->count = n;
}

/* ---- long words: a heap of rank << 32 | place. What is no longer so is found when it comes up. ---- */

static an_status push(an_encoder *e, uint32_t rank, size_t place) {
    if (rank == (uint32_t)NO_RANK) return AN_OK;
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&e->heap, &e->heap_capacity, e->heap_count + 1, sizeof *e->heap));
    const uint64_t key = (uint64_t)rank << 32 | (uint64_t)place;
    size_t at = e->heap_count++;
    for (size_t up; at > 0 && e->heap[up = (at - 1) / 2] > key; at = up) e->heap[at] = e->heap[up];
    e->heap[at] = key;
    return AN_OK;
}

static uint64_t pop(an_encoder *e) {
    const uint64_t minimum = e->heap[0], last = e->heap[--e->heap_count];
    const size_t n = e->heap_count;
    size_t at = 0;
    for (size_t down; (down = 2 * at + 1) < n; at = down) {
        if (down + 1 < n && e->heap[down + 1] < e->heap[down]) down++;
        if (e->heap[down] >= last) break;
        e->heap[at] = e->heap[down];
    }
    e->heap[at] = last;
    return minimum;
}

static an_status join(an_encoder *e, size_t place) {
    const an_tokenizer *t = e->tokenizer;
    an_symbol *s = e->symbols, *here = &s[place], *next = &s[here->next];
    here->token = an_merges_find(&t->vocabulary.merges, here->token, next->token)->token;
    next->rank = (uint32_t)NO_RANK;
    next->token = AN_NO_TOKEN;
    here->next = next->next;
    here->rank = (uint32_t)NO_RANK;
    if (here->next != LAST) {
        s[here->next].previous = (int32_t)place;
        here->rank = rank_of(t, here->token, s[here->next].token);
        AN_STEP_TRY(push(e, here->rank, place));
    }
    if (here->previous != LAST) {
        an_symbol *before = &s[here->previous];
        before->rank = rank_of(t, before->token, here->token);
        AN_STEP_TRY(push(e, before->rank, (size_t)here->previous));
    }
    return AN_OK;
}

static an_status merge_long(an_encoder *e, an_ids *word) {
    const size_t n = word->count;
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&e->symbols, &e->symbol_capacity, n, sizeof *e->symbols));
    an_symbol *s = e->symbols;
    e->heap_count = 0;
    for (size_t i = 0; i < n; i++) {
        const bool last = i + 1 == n;
        s[i] =
            (an_symbol){word->ids[i], last ? (uint32_t)NO_RANK : rank_of(e->tokenizer, word->ids[i], word->ids[i + 1]),
                        (int32_t)i - 1, last ? LAST : (int32_t)i + 1};
        AN_STEP_TRY(push(e, s[i].rank, i));
    }
    while (e->heap_count > 0) {
        const uint64_t best = pop(e);
        const size_t place = (size_t)(uint32_t)best;
        if (s[place].rank == (uint32_t)(best >> 32)) AN_STEP_TRY(join(e, place));
    }
    size_t count = 0;
    for (int32_t i = 0; i != LAST; i = s[i].next) word->ids[count++] = s[i].token;
    word->count = count;
    return AN_OK;
}

an_status an_bpe_word(an_encoder *e, const char *word, size_t length) {
    const an_tokenizer *t = e->tokenizer;
    const int32_t whole =
        t->ignore_merges ? an_index_find(&t->vocabulary.by_bytes, &t->vocabulary, word, length) : AN_NO_TOKEN;
    if (whole != AN_NO_TOKEN) {
        e->other.count = 0;
        return an_ids_add(e, &e->other, whole);
    }
    AN_STEP_TRY(begin_word(e, word, length));
    if (e->other.count > SHORT) return merge_long(e, &e->other);
    merge_short(t, &e->other);
    return AN_OK;
}
