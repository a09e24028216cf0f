#include "text/wordpiece.h"

#include <string.h>

#include "text/unicode.h"

static bool is_too_long(const char *word, size_t length, int64_t maximum) {
    int64_t count = 0;
    for (size_t at = 0; at < length && count <= maximum; count++) an_character_next(word, &at);
    return count > maximum;
}

/* The longest token at *at, which is moved behind it; AN_NO_TOKEN: none. `key` begins with the prefix of continued
 * words. */
static int32_t longest_at(const an_tokenizer *t, an_characters *key, const char *word, size_t length, size_t *at) {
    const size_t prefix = *at > 0 ? t->prefix.length : 0, room = t->longest > prefix ? t->longest - prefix : 0;
    size_t end = length - *at > room ? *at + room : length;
    char *const begin = key->bytes + t->prefix.length;
    memcpy(begin, word + *at, end - *at);
    for (; end > *at; end--) {
        if (end < length && ((unsigned char)word[end] & 0xc0) == 0x80) continue; /* inside of a character */
        const int32_t token =
            an_index_find(&t->vocabulary.by_bytes, &t->vocabulary, begin - prefix, prefix + end - *at);
        if (token == AN_NO_TOKEN) continue;
        *at = end;
        return token;
    }
    return AN_NO_TOKEN;
}

an_status an_wordpiece_word(an_encoder *e, const char *word, size_t length) {
    const an_tokenizer *t = e->tokenizer;
    e->other.count = 0;
    if (is_too_long(word, length, t->most_characters)) return an_ids_add(e, &e->other, t->model_unk);
    e->key.length = 0;
    AN_STEP_TRY(an_characters_add(e, &e->key, t->prefix.bytes, t->prefix.length));
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&e->key.bytes, &e->key.capacity, t->prefix.length + length + 1, 1));
    for (size_t at = 0; at < length;) {
        const int32_t token = longest_at(t, &e->key, word, length, &at);
        if (token == AN_NO_TOKEN) {
            e->other.count = 0;
            return an_ids_add(e, &e->other, t->model_unk);
        }
        AN_STEP_TRY(an_ids_add(e, &e->other, token));
    }
    return AN_OK;
}
