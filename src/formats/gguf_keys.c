#include "formats/gguf_keys.h"

#include <string.h>

#include "formats/gguf_file.h"

size_t an_gguf_key_count(const an_gguf *file) {
    return file->key_count;
}

const an_gguf_key *an_gguf_key_at(const an_gguf *file, size_t index) {
    return &file->keys[index];
}

const an_gguf_key *an_gguf_find(const an_gguf *file, const char *name) {
    for (size_t i = 0; i < file->key_count; i++)
        if (!strcmp(an_gguf_key_name(file, &file->keys[i]), name)) return &file->keys[i];
    return NULL;
}

const char *an_gguf_key_name(const an_gguf *file, const an_gguf_key *key) {
    return (const char *)file->header + key->name;
}

an_gguf_kind an_gguf_key_kind(const an_gguf_key *key) {
    return key->type == AN_GGUF_STRING                            ? AN_GGUF_KIND_STRING
           : key->type == AN_GGUF_BOOL                            ? AN_GGUF_KIND_BOOL
           : key->type == AN_GGUF_F32 || key->type == AN_GGUF_F64 ? AN_GGUF_KIND_REAL
                                                                  : AN_GGUF_KIND_INTEGER;
}

bool an_gguf_key_is_array(const an_gguf_key *key) {
    return key->is_array;
}

uint64_t an_gguf_key_elements(const an_gguf_key *key) {
    return key->count;
}

/* ---- elements ---- */

an_gguf_cursor an_gguf_values(const an_gguf *file, const an_gguf_key *key) {
    return (an_gguf_cursor){.file = file, .key = key, .at = key ? key->at : 0};
}

static uint64_t number_at(const unsigned char *from, int bytes) {
    uint64_t number = 0;
    for (int i = bytes; i-- > 0;) number = number << 8 | from[i];
    return number;
}

static double real_at(const unsigned char *from, int bytes) {
    const uint64_t bits = number_at(from, bytes);
    const uint32_t half = (uint32_t)bits;
    float small;
    double large;
    memcpy(&small, &half, sizeof small);
    memcpy(&large, &bits, sizeof large);
    return bytes == sizeof small ? (double)small : large;
}

static int64_t integer_at(const unsigned char *from, int bytes, bool is_signed) {
    const uint64_t bits = number_at(from, bytes), sign = UINT64_C(1) << (8 * bytes - 1);
    if (is_signed && (bits & sign)) return (int64_t)(bits ^ sign) - (int64_t)(sign - 1) - 1;
    return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

bool an_gguf_next(an_gguf_cursor *cursor, an_gguf_value *value) {
    static const unsigned char bytes_of[AN_GGUF_VALUES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    const an_gguf_key *key = cursor->key;
    if (!key || cursor->index == key->count) return false;
    const unsigned char *from = cursor->file->header + cursor->at;
    const int type = key->type, bytes = bytes_of[type];
    *value = (an_gguf_value){.kind = an_gguf_key_kind(key)};
    cursor->index++;
    cursor->at += (size_t)bytes;
    switch (value->kind) {
    case AN_GGUF_KIND_STRING:
        value->length = (size_t)number_at(from, bytes);
        value->bytes = (const char *)from + bytes;
        cursor->at += value->length;
        break;
    case AN_GGUF_KIND_REAL: value->real = real_at(from, bytes); break;
    case AN_GGUF_KIND_BOOL:
        value->integer = *from != 0;
        value->real = (double)value->integer;
        break;
    case AN_GGUF_KIND_INTEGER:
        value->integer = integer_at(
            from, bytes, type == AN_GGUF_I8 || type == AN_GGUF_I16 || type == AN_GGUF_I32 || type == AN_GGUF_I64);
        value->real = (double)value->integer;
        break;
    }
    return true;
}

/* ---- values of one kind ---- */

static const char *const kinds[] = {[AN_GGUF_KIND_INTEGER] = "an integer",
                                    [AN_GGUF_KIND_REAL] = "a number",
                                    [AN_GGUF_KIND_BOOL] = "true or false",
                                    [AN_GGUF_KIND_STRING] = "a text"};
static const char *const many[] = {[AN_GGUF_KIND_INTEGER] = "an array of integers",
                                   [AN_GGUF_KIND_REAL] = "an array of numbers",
                                   [AN_GGUF_KIND_BOOL] = "an array of truth values",
                                   [AN_GGUF_KIND_STRING] = "an array of texts"};

static an_status expect(const an_gguf *file, const char *name, an_gguf_kind kind, bool is_array,
                        const an_gguf_key **key) {
    *key = an_gguf_find(file, name);
    if (!*key) return AN_OK;
    const an_gguf_kind own = an_gguf_key_kind(*key);
    const bool fits = own == kind || (kind == AN_GGUF_KIND_REAL && own == AN_GGUF_KIND_INTEGER);
    if (fits && (*key)->is_array == is_array) return AN_OK;
    return AN_ERROR(file->ctx, AN_ERR_DAMAGED, "%s: %s is %s, but %s is expected", file->path, name,
                    (*key)->is_array ? many[own] : kinds[own], is_array ? many[kind] : kinds[kind]);
}

static an_status get(const an_gguf *file, const char *name, an_gguf_kind kind, an_gguf_value *value, bool *found) {
    const an_gguf_key *key;
    AN_TRY_RETURN(expect(file, name, kind, false, &key));
    an_gguf_cursor cursor = an_gguf_values(file, key);
    *found = an_gguf_next(&cursor, value);
    return AN_OK;
}

an_status an_gguf_integer(const an_gguf *file, const char *name, int64_t *value) {
    an_gguf_value v;
    bool found;
    AN_TRY_RETURN(get(file, name, AN_GGUF_KIND_INTEGER, &v, &found));
    if (found) *value = v.integer;
    return AN_OK;
}

an_status an_gguf_real(const an_gguf *file, const char *name, double *value) {
    an_gguf_value v;
    bool found;
    AN_TRY_RETURN(get(file, name, AN_GGUF_KIND_REAL, &v, &found));
    if (found) *value = v.real;
    return AN_OK;
}

an_status an_gguf_bool(const an_gguf *file, const char *name, bool *value) {
    an_gguf_value v;
    bool found;
    AN_TRY_RETURN(get(file, name, AN_GGUF_KIND_BOOL, &v, &found));
    if (found) *value = v.integer != 0;
    return AN_OK;
}

an_status an_gguf_string(const an_gguf *file, const char *name, const char **bytes, size_t *length) {
    an_gguf_value v;
    bool found;
    AN_TRY_RETURN(get(file, name, AN_GGUF_KIND_STRING, &v, &found));
    if (found) {
        *bytes = v.bytes;
        *length = v.length;
    }
    return AN_OK;
}

an_status an_gguf_array(const an_gguf *file, const char *name, an_gguf_kind kind, an_gguf_cursor *cursor) {
    const an_gguf_key *key;
    AN_TRY_RETURN(expect(file, name, kind, true, &key));
    *cursor = an_gguf_values(file, key);
    return AN_OK;
}
