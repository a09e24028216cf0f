/* Counts of pairs are kept up to date: a merge looks only at the words that contain its pair. The pair with the
 * highest count is on top of a heap, whose entries may be out of date; one whose count has changed is put back
 * with the count that it has now. */
#include "text/bpe_merges.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t key; /* left << 32 | right */
    int64_t count;
    uint32_t *words; /* that have contained it; some may not any more, or appear twice */
    size_t word_count, word_capacity;
    bool grew;
} pair;

typedef struct {
    int64_t count;
    uint64_t key;
} entry;

typedef struct {
    const an_words *words;
    an_bpe_merges *result;
    int32_t *symbols;  /* of all words */
    size_t *begins;    /* of each word */
    uint32_t *lengths; /* in symbols */
    pair *pairs;
    size_t pair_count, pair_capacity;
    uint32_t *slots; /* numbers of pairs + 1; 0: free */
    size_t slot_count;
    entry *heap;
    size_t heap_count, heap_capacity;
    uint32_t *grown; /* pairs that the present merge has made more frequent */
    size_t grown_count, grown_capacity;
    char *text; /* of a token that is tried */
    size_t text_capacity;
} training;

static uint64_t key_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* ---- pairs ---- */

/* The address is another in every process, so no text can make its own pairs collide. */
static uint32_t *slot_of(const training *t, uint64_t key) {
    uint64_t hash = (key ^ (uint64_t)(uintptr_t)t) * 0x9e3779b97f4a7c15u; /* 2^64 ÷ the golden ratio */
    hash ^= hash >> 32;
    for (size_t at = (size_t)hash & (t->slot_count - 1);; at = (at + 1) & (t->slot_count - 1))
        if (t->slots[at] == 0 || t->pairs[t->slots[at] - 1].key == key) return &t->slots[at];
}

static bool grow_slots(training *t) {
    enum { FIRST = 1 << 12 };
    if (2 * (t->pair_count + 1) <= t->slot_count) return true;
    const size_t slot_count = t->slot_count ? 2 * t->slot_count : FIRST;
    uint32_t *const slots = calloc(slot_count, sizeof *slots);
    if (!slots || t->pair_count == UINT32_MAX) {
        free(slots);
        return false;
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    for (size_t i = 0; i < t->pair_count; i++) *slot_of(t, t->pairs[i].key) = (uint32_t)i + 1;
    return true;
}

/* NULL: no memory. */
static pair *pair_of(training *t, uint64_t key) {
    if (!grow_slots(t)) return NULL;
    uint32_t *slot = slot_of(t, key);
    if (*slot == 0) {
        if (!an_words_reserve((void **)&t->pairs, &t->pair_capacity, t->pair_count + 1, sizeof *t->pairs)) return NULL;
        t->pairs[t->pair_count++] = (pair){.key = key};
        *slot = (uint32_t)t->pair_count;
    }
    return &t->pairs[*slot - 1];
}

static bool pair_grows(training *t, int32_t left, int32_t right, uint32_t word) {
    pair *p = pair_of(t, key_of(left, right));
    if (!p) return false;
    p->count += t->words->words[word].count;
    if (p->word_count == 0 || p->words[p->word_count - 1] != word) {
        if (p->word_count == p->word_capacity) { /* most pairs are in a few words */
            const size_t capacity = 2 * p->word_capacity + 2;
            uint32_t *const larger = realloc(p->words, capacity * sizeof *larger);
            if (!larger) return false;
            p->words = larger;
            p->word_capacity = capacity;
        }
        p->words[p->word_count++] = word;
    }
    if (p->grew) return true;
    p->grew = true;
    if (!an_words_reserve((void **)&t->grown, &t->grown_capacity, t->grown_count + 1, sizeof *t->grown)) return false;
    t->grown[t->grown_count++] = (uint32_t)(p - t->pairs);
    return true;
}

static void pair_shrinks(training *t, int32_t left, int32_t right, uint32_t word) {
    const uint32_t slot = *slot_of(t, key_of(left, right));
    if (slot) t->pairs[slot - 1].count -= t->words->words[word].count;
}

/* ---- the heap: the highest count first, then the lowest ids ---- */

static bool comes_first(entry a, entry b) {
    return a.count != b.count ? a.count > b.count : a.key < b.key;
}

static bool push(training *t, entry e) {
    if (!an_words_reserve((void **)&t->heap, &t->heap_capacity, t->heap_count + 1, sizeof *t->heap)) return false;
    size_t at = t->heap_count++;
    for (; at > 0 && comes_first(e, t->heap[(at - 1) / 2]); at = (at - 1) / 2) t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = e;
    return true;
}

static entry pop(training *t) {
    const entry first = t->heap[0], last = t->heap[--t->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < t->heap_count; at = child) {
        if (child + 1 < t->heap_count && comes_first(t->heap[child + 1], t->heap[child])) child++;
        if (!comes_first(t->heap[child], last)) break;
        t->heap[at] = t->heap[child];
    }
    if (t->heap_count > 0) t->heap[at] = last;
    return first;
}

static bool push_grown(training *t) {
    for (size_t i = 0; i < t->grown_count; i++) {
        pair *p = &t->pairs[t->grown[i]];
        p->grew = false;
        if (p->count > 0 && !push(t, (entry){p->count, p->key})) return false;
    }
    t->grown_count = 0;
    return true;
}

/* ---- words ---- */

static bool begin(training *t, const unsigned char bytes[256]) {
    const an_words *w = t->words;
    int32_t token_of[256];
    t->symbols = malloc((w->length + 1) * sizeof *t->symbols);
    t->begins = malloc((w->count + 1) * sizeof *t->begins);
    t->lengths = malloc((w->count + 1) * sizeof *t->lengths);
    if (!t->symbols || !t->begins || !t->lengths) return false;
    for (int i = 0; i < 256; i++) {
        token_of[bytes[i]] = i;
        if (!an_words_add(&t->result->tokens, (const char *)&bytes[i], 1, 0)) return false;
    }
    for (size_t i = 0; i < w->length; i++) t->symbols[i] = token_of[(unsigned char)w->bytes[i]];
    for (size_t i = 0; i < w->count; i++) {
        const an_word *word = &w->words[i];
        t->begins[i] = word->begin;
        t->lengths[i] = word->length;
        for (size_t k = 0; k + 1 < word->length; k++)
            if (!pair_grows(t, t->symbols[word->begin + k], t->symbols[word->begin + k + 1], (uint32_t)i)) return false;
    }
    return push_grown(t);
}

static bool merge_in_word(training *t, uint32_t word, int32_t left, int32_t right, int32_t token) {
    int32_t *s = t->symbols + t->begins[word];
    const uint32_t length = t->lengths[word];
    uint32_t to = 0;
    for (uint32_t from = 0; from < length; to++) {
        if (s[from] != left || from + 1 == length || s[from + 1] != right) {
            s[to] = s[from++];
            continue;
        }
        from += 2;
        if (to > 0) {
            pair_shrinks(t, s[to - 1], left, word);
            if (!pair_grows(t, s[to - 1], token, word)) return false;
        }
        if (from < length) {
            pair_shrinks(t, right, s[from], word);
            if (!pair_grows(t, token, s[from], word)) return false;
        }
        s[to] = token;
    }
    t->lengths[word] = to;
    return true;
}

/* The bytes of both tokens together, in t->text; 0: no memory. */
static size_t join(training *t, int32_t left, int32_t right) {
    const an_words *k = &t->result->tokens;
    const an_word a = k->words[left], b = k->words[right];
    const size_t length = (size_t)a.length + b.length;
    if (!an_words_reserve((void **)&t->text, &t->text_capacity, length, 1)) return 0;
    memcpy(t->text, k->bytes + a.begin, a.length);
    memcpy(t->text + a.length, k->bytes + b.begin, b.length);
    return length;
}

/* A token that was made from other parts before is the same token. */
static bool merge(training *t, uint64_t key, const an_words *reserved) {
    an_bpe_merges *r = t->result;
    const int32_t left = (int32_t)(key >> 32), right = (int32_t)(key & UINT32_MAX);
    const size_t length = join(t, left, right);
    const size_t number = *slot_of(t, key) - 1;
    if (length == 0) return false;
    t->pairs[number].count = 0;
    if (an_words_find(reserved, t->text, length) >= 0) return true;
    if (!an_words_add(&r->tokens, t->text, length, 0)) return false;
    const int32_t token = (int32_t)an_words_find(&r->tokens, t->text, length);
    if (!an_words_reserve((void **)&r->merges, &r->capacity, r->count + 1, sizeof *r->merges)) return false;
    r->merges[r->count++] = (an_bpe_merge){left, right};
    uint32_t *const words = t->pairs[number].words; /* pairs may move while words are merged */
    const size_t word_count = t->pairs[number].word_count;
    t->pairs[number].words = NULL;
    t->pairs[number].word_count = t->pairs[number].word_capacity = 0;
    bool good = true;
    for (size_t i = 0; i < word_count && good; i++) good = merge_in_word(t, words[i], left, right, token);
    free(words);
    t->pairs[number].count =
        0; /* where it overlapped itself, its parts were counted as gone once too often or too seldom */
    return good && push_grown(t);
}

bool an_bpe_merges_find(an_bpe_merges *merges, const an_words *words, const unsigned char bytes[256],
                        const an_words *reserved, int64_t vocabulary, int64_t minimum) {
    training t = {.words = words, .result = merges};
    *merges = (an_bpe_merges){.count = 0};
    bool good = begin(&t, bytes);
    while (good && t.heap_count > 0 && (int64_t)merges->tokens.count < vocabulary) {
        const entry top = pop(&t);
        const int64_t now = t.pairs[*slot_of(&t, top.key) - 1].count;
        if (now != top.count) { /* a higher count has its own entry */
            if (now > 0 && now < top.count) good = push(&t, (entry){now, top.key});
            continue;
        }
        if (now < minimum || now < 1) break;
        good = merge(&t, top.key, reserved);
    }
    for (size_t i = 0; i < t.pair_count; i++) free(t.pairs[i].words);
    free(t.symbols);
    free(t.begins);
    free(t.lengths);
    free(t.pairs);
    free(t.slots);
    free(t.heap);
    free(t.grown);
    free(t.text);
    return good;
}

void an_bpe_merges_release(an_bpe_merges *merges) {
    an_words_release(&merges->tokens);
    free(merges->merges);
    *merges = (an_bpe_merges){.count = 0};
}
