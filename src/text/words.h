/* Different words and how often each appears. Memory is malloc's: several threads count at a time,
 * and a context belongs to one. */
#ifndef AN_TEXT_WORDS_H
#define AN_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct an_word {
    size_t begin; /* in the bytes of all words */
    uint32_t length;
    int64_t count;
} an_word;

typedef struct an_words {
    an_word *words; /* in the order in which they were added first */
    size_t count, capacity;
    char *bytes;
    size_t length, byte_capacity;
    uint32_t *slots; /* numbers of words + 1; 0: free */
    size_t slot_count;
} an_words;

/* Adds to the count of a word. False: no memory. */
bool an_words_add(an_words *words, const char *word, size_t length, int64_t count);
/* The number of a word; -1: it is not there. */
int64_t an_words_find(const an_words *words, const char *word, size_t length);
void an_words_release(an_words *words);

/* Room for `needed` elements; what was there stays. False: no memory. */
bool an_words_reserve(void **memory, size_t *capacity, size_t needed, size_t element);

#endif
