#include "text/words.h"

#include <stdlib.h>
#include <string.h>

#include "text/vocabulary.h"

enum { FIRST = 1024, MOST_WORDS = INT32_MAX };

bool an_words_reserve(void **memory, size_t *capacity, size_t needed, size_t element) {
    size_t count = *capacity ? *capacity : FIRST;
    if (needed <= *capacity) return true;
    while (count < needed) {
        if (count > SIZE_MAX / 2 / element) return false;
        count *= 2;
    }
    void *const grown = realloc(*memory, count * element);
    if (!grown) return false;
    *memory = grown;
    *capacity = count;
    return true;
}

/* The address is another in every process, so no text can make its own words collide. */
static size_t first_slot(const an_words *w, const char *word, size_t length) {
    return (size_t)an_text_hash(word, length, (uint64_t)(uintptr_t)w) & (w->slot_count - 1);
}

static uint32_t *slot_of(const an_words *w, const char *word, size_t length) {
    for (size_t at = first_slot(w, word, length);; at = (at + 1) & (w->slot_count - 1)) {
        uint32_t *slot = &w->slots[at];
        if (*slot == 0) return slot;
        const an_word *there = &w->words[*slot - 1];
        if (there->length == length && !memcmp(w->bytes + there->begin, word, length)) return slot;
    }
}

static bool grow_slots(an_words *w) {
    if (2 * (w->count + 1) <= w->slot_count) return true;
    const size_t slot_count = w->slot_count ? 2 * w->slot_count : FIRST;
    uint32_t *const slots = calloc(slot_count, sizeof *slots);
    if (!slots) return false;
    free(w->slots);
    w->slots = slots;
    w->slot_count = slot_count;
    for (size_t i = 0; i < w->count; i++)
        *slot_of(w, w->bytes + w->words[i].begin, w->words[i].length) = (uint32_t)i + 1;
    return true;
}

bool an_words_add(an_words *w, const char *word, size_t length, int64_t count) {
    if (!grow_slots(w)) return false;
    uint32_t *slot = slot_of(w, word, length);
    if (*slot) {
        w->words[*slot - 1].count += count;
        return true;
    }
    if (w->count == MOST_WORDS || !an_words_reserve((void **)&w->words, &w->capacity, w->count + 1, sizeof *w->words) ||
        !an_words_reserve((void **)&w->bytes, &w->byte_capacity, w->length + length, 1))
        return false;
    memcpy(w->bytes + w->length, word, length);
    w->words[w->count++] = (an_word){.begin = w->length, .length = (uint32_t)length, .count = count};
    w->length += length;
    *slot = (uint32_t)w->count;
    return true;
}

int64_t an_words_find(const an_words *w, const char *word, size_t length) {
    return w->slot_count ? (int64_t)*slot_of(w, word, length) - 1 : -1;
}

void an_words_release(an_words *w) {
    free(w->words);
    free(w->bytes);
    free(w->slots);
    *w = (an_words){.count = 0};
}
