#include "base/text/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"

void an_text_init(an_text *text, an_context *ctx) {
    *text = (an_text){.ctx = ctx};
}

void an_text_bytes(an_text *text, const char *bytes, size_t length) {
    if (text->status != AN_OK) return;
    text->status = an_grow(text->ctx, (void **)&text->bytes, &text->capacity, text->length + length + 1, 1);
    if (text->status != AN_OK) return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void an_text_add(an_text *text, const char *format, ...) {
    char piece[AN_MESSAGE_BYTES];
    va_list arguments, again;
    int length;
    if (text->status != AN_OK) return;
    va_start(arguments, format);
    va_copy(again, arguments);
    length = vsnprintf(piece, sizeof piece, format, arguments);
    if (length >= 0 && (size_t)length < sizeof piece) {
        an_text_bytes(text, piece, (size_t)length);
    } else if (length >= 0) { /* long names: print into place */
        text->status = an_grow(text->ctx, (void **)&text->bytes, &text->capacity, text->length + (size_t)length + 1, 1);
        if (text->status == AN_OK) {
            vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
            text->length += (size_t)length;
        }
    }
    va_end(again);
    va_end(arguments);
}

static void put_json(void *to, const char *bytes, size_t length) {
    an_text_bytes(to, bytes, length);
}

an_json_writer an_text_json(an_text *text, an_json_layout layout) {
    return (an_json_writer){.put = put_json, .to = text, .layout = layout};
}

void an_text_destroy(an_text *text) {
    an_release(text->ctx, (void **)&text->bytes, text->capacity, 1);
    text->length = text->capacity = 0;
}

an_status an_text_take(an_text *text, char **string) {
    an_context *ctx = text->ctx;
    void *copy = NULL;
    AN_TRY_RETURN(text->status);
    AN_TRY_RETURN(an_alloc(ctx, &copy, text->length + 1, 1));
    if (text->length) memcpy(copy, text->bytes, text->length);
    *string = copy;
    an_text_destroy(text);
    return AN_OK;
}

void an_string_release(an_context *ctx, char **text) {
    AN_NEED_OR(, ctx);
    if (text && *text) an_release(ctx, (void **)text, strlen(*text) + 1, 1);
}

uint64_t an_hash(const void *bytes, size_t length, uint64_t seed) {
    const unsigned char *b = bytes;
    uint64_t h = 0xcbf29ce484222325u ^ seed; /* FNV-1a's offset and prime */
    for (size_t i = 0; i < length; i++) h = (h ^ b[i]) * 0x100000001b3u;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu; /* MurmurHash3's finaliser: FNV's low bits alone are weak */
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

an_quote_text an_quote_describe(const char *text) {
    an_quote_text out;
    enum { MOST = 60 }; /* bytes */
    const char *left = an_utf8_show(out.text, MOST, text);
    if (*left) memcpy(out.text + strlen(out.text), "...", sizeof "...");
    return out;
}
