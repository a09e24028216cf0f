/* The memory of encoders. */
#include <stdlib.h>
#include <string.h>

#include "text/encoder.h"
#include "text/unicode.h"

an_status an_encoder_reserve(an_encoder *e, void **memory, size_t *capacity, size_t needed, size_t element) {
    enum { FIRST = 64 };
    size_t count = *capacity ? *capacity : FIRST;
    if (needed <= *capacity) return AN_OK;
    while (count < needed) count *= 2; /* texts have at most 2^31 bytes */
    void *const grown = realloc(*memory, count * element);
    if (!grown)
        return AN_NOTE(an_encoder_note(e), AN_ERR_MEMORY, "out of memory: %zu bytes were requested", count * element);
    *memory = grown;
    *capacity = count;
    return AN_OK;
}

an_status an_ids_add(an_encoder *e, an_ids *ids, int32_t id) {
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&ids->ids, &ids->capacity, ids->count + 1, sizeof *ids->ids));
    ids->ids[ids->count++] = id;
    return AN_OK;
}

an_status an_pieces_add(an_encoder *e, an_pieces *p, size_t begin, size_t end) {
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&p->pieces, &p->capacity, p->count + 1, sizeof *p->pieces));
    p->pieces[p->count++] = (an_piece){(uint32_t)begin, (uint32_t)end};
    return AN_OK;
}

an_status an_characters_add(an_encoder *e, an_characters *text, const char *bytes, size_t length) {
    if (length > AN_MOST_TEXT - text->length)
        return AN_NOTE(an_encoder_note(e), AN_ERR_OVERFLOW, "a text has 2^31 bytes or more: encode it in parts");
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&text->bytes, &text->capacity, text->length + length, 1));
    if (length > 0) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    return AN_OK;
}

an_status an_characters_put(an_encoder *e, an_characters *text, uint32_t character) {
    char bytes[AN_UTF8_MOST];
    return an_characters_add(e, text, bytes, an_character_put(character, bytes));
}
