#include "formats/gguf_write.h"

#include <string.h>

#include "base/integer.h"
#include "formats/gguf_file.h"

static void put_number(an_text *text, uint64_t number, int bytes) {
    char little[8];
    for (int i = 0; i < bytes; i++) little[i] = (char)(number >> (8 * i) & 0xff);
    an_text_bytes(text, little, (size_t)bytes);
}

static void put_string(an_text *text, const char *bytes, size_t length) {
    put_number(text, length, 8);
    an_text_bytes(text, bytes, length);
}

static void put_name(an_gguf_keys *keys, const char *name, unsigned type) {
    put_string(&keys->bytes, name, strlen(name));
    put_number(&keys->bytes, type, 4);
    keys->count++;
}

void an_gguf_put_text(an_gguf_keys *keys, const char *name, const char *text) {
    put_name(keys, name, AN_GGUF_STRING);
    put_string(&keys->bytes, text, strlen(text));
}

void an_gguf_put_u32(an_gguf_keys *keys, const char *name, uint32_t value) {
    put_name(keys, name, AN_GGUF_U32);
    put_number(&keys->bytes, value, 4);
}

void an_gguf_put_f32(an_gguf_keys *keys, const char *name, double value) {
    const float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    put_name(keys, name, AN_GGUF_F32);
    put_number(&keys->bytes, bits, 4);
}

void an_gguf_put_bool(an_gguf_keys *keys, const char *name, bool value) {
    put_name(keys, name, AN_GGUF_BOOL);
    put_number(&keys->bytes, value, 1);
}

static void put_array(an_gguf_keys *keys, const char *name, unsigned type, uint64_t count) {
    put_name(keys, name, AN_GGUF_ARRAY);
    put_number(&keys->bytes, type, 4);
    put_number(&keys->bytes, count, 8);
}

void an_gguf_put_texts(an_gguf_keys *keys, const char *name, uint64_t count) {
    put_array(keys, name, AN_GGUF_STRING, count);
}

void an_gguf_put_integers(an_gguf_keys *keys, const char *name, uint64_t count) {
    put_array(keys, name, AN_GGUF_I32, count);
}

void an_gguf_add_text(an_gguf_keys *keys, const char *text, size_t length) {
    put_string(&keys->bytes, text, length);
}

void an_gguf_add_integer(an_gguf_keys *keys, int32_t value) {
    put_number(&keys->bytes, (uint32_t)value, 4);
}

void an_gguf_copy_key(an_gguf_keys *keys, const an_gguf *file, const an_gguf_key *key) {
    an_gguf_cursor cursor = an_gguf_values(file, key);
    an_gguf_value value;
    while (an_gguf_next(&cursor, &value)) continue; /* it then stands behind the last */
    if (key->is_array)
        put_array(keys, an_gguf_key_name(file, key), key->type, key->count);
    else
        put_name(keys, an_gguf_key_name(file, key), key->type);
    if (cursor.at > key->at) an_text_bytes(&keys->bytes, (const char *)file->header + key->at, cursor.at - key->at);
}

an_status an_gguf_header(an_text *text, const an_gguf_keys *keys, const an_gguf_tensor *tensors, size_t count) {
    int64_t at = 0;
    AN_TRY_RETURN(keys->bytes.status);
    an_text_bytes(text, "GGUF", 4);
    put_number(text, 3, 4);
    put_number(text, count, 8);
    put_number(text, keys->count, 8);
    an_text_bytes(text, keys->bytes.bytes, keys->bytes.length);
    for (size_t i = 0; i < count; i++) {
        const an_gguf_tensor *t = &tensors[i];
        put_string(text, t->name, strlen(t->name));
        put_number(text, (uint64_t)t->ndims, 4);
        for (int d = t->ndims; d-- > 0;) put_number(text, (uint64_t)t->dims[d], 8); /* the fastest comes first there */
        put_number(text, t->type->number, 4);
        put_number(text, (uint64_t)at, 8);
        at += an_next_multiple(t->bytes, AN_GGUF_ALIGNMENT);
    }
    while (text->status == AN_OK && text->length % AN_GGUF_ALIGNMENT != 0) an_text_bytes(text, "", 1);
    return text->status;
}
