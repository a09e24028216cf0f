/* The header of a safetensors file, read into tables. */
#include <inttypes.h>
#include <string.h>

#include "formats/safetensors_file.h"

/* One piece of memory as long as the header holds all tables: entries from its front, behind them their numbers in the
 * order of names; and, while the header is read, the places of the keys of its metadata from its end. It is enough
 * whatever the header says, as no entry and no pair can be written in fewer bytes, with the comma for which the NUL
 * counts here, than it takes there. */
#define SHORTEST_ENTRY "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}"
#define SHORTEST_PAIR "\"\":\"\""
_Static_assert(sizeof(an_safetensors_entry) + sizeof(uint32_t) < sizeof SHORTEST_ENTRY,
               "tables may be longer than the header");
_Static_assert(sizeof(uint32_t) < sizeof SHORTEST_PAIR, "tables may be longer than the header");

int64_t an_safetensors_data_offset(const an_safetensors *file) {
    return AN_SAFETENSORS_LENGTH + (int64_t)file->header_bytes;
}

const char *an_safetensors_show(an_safetensors_shown *s, const char *name) {
    static const char more[] = "…";
    size_t n = 0;
    for (; *name && n < sizeof s->text - sizeof more; name++) {
        const unsigned char c = (unsigned char)name[0], after = (unsigned char)name[1];
        const bool high = c == 0xc2 && after < 0xa0; /* U+0080 to U+009F are control characters too */
        s->text[n++] = c < ' ' || c == 0x7f || high ? '?' : *name;
        name += high;
    }
    for (; n > 0 && ((unsigned char)*name & 0xc0) == 0x80; name--) n--; /* not within a character */
    memcpy(s->text + n, *name ? more : "", *name ? sizeof more : 1);
    return s->text;
}

static an_status check_json(const an_safetensors *s, const an_json *json) {
    an_context *ctx = s->ctx;
    if (!json->problem) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: in the header: %s", s->path, AN_SAFETENSORS_LENGTH + json->at,
                    json->problem);
}

static uint32_t place_of(const an_safetensors *s, an_json_string string) {
    return (uint32_t)(string.bytes - s->header);
}

/* That there always is room is said above; nothing is written on trust. */
static bool need_room(const an_safetensors *s, an_json *json, size_t entries, size_t keys) {
    const size_t bytes = (sizeof *s->entries + sizeof *s->numbers) * entries + sizeof *s->keys * keys;
    return bytes <= s->table_bytes ||
           an_json_refuse(json, json->at, "it has more entries than a header of its length can hold");
}

/* Strings by strings. Whether one is there twice is seen later, when all keys are there. */
static an_status read_metadata(an_safetensors *s, an_json *json, size_t at) {
    an_json_string key, value;
    if (s->has_metadata) an_json_refuse(json, at, AN_SAFETENSORS_METADATA " appears twice");
    s->has_metadata = true;
    an_json_object(json);
    while (an_json_member(json, &key) && an_json_string_value(json, &value) &&
           need_room(s, json, s->count, s->key_count + 1)) {
        *--s->keys = place_of(s, key);
        s->key_count++;
    }
    return check_json(s, json);
}

static an_status read_type(an_safetensors *s, an_json *json, an_safetensors_entry *e) {
    an_status status;
    an_context *ctx = s->ctx;
    an_json_string name;
    an_safetensors_shown tensor, type;
    const char *const t = an_safetensors_show(&tensor, s->header + e->name);
    if (!an_json_string_value(json, &name)) return AN_OK; /* the caller looks at the problem */
    const size_t at = AN_SAFETENSORS_LENGTH + place_of(s, name);
    AN_CHECK(ctx, strncmp(name.bytes, "F8_", 3) != 0, AN_ERR_UNSUPPORTED,
             "%s: byte %zu: tensor '%s' has the type %s, which is not supported: convert the file to BF16 or F32 first",
             s->path, at, t, an_safetensors_show(&type, name.bytes));
    e->type = an_safetensors_type_named(name.bytes);
    AN_CHECK(ctx, e->type, AN_ERR_DAMAGED,
             "%s: byte %zu: tensor '%s' has the unknown type '%s'; the types are BOOL, U8, I8, I16, U16, F16, BF16, "
             "I32, U32, F32, F64, I64 and U64",
             s->path, at, t, an_safetensors_show(&type, name.bytes));
    return AN_OK;
fail:
    return status;
}

int an_safetensors_dims(an_json *json, int64_t *dims) {
    int count = 0;
    int64_t dim;
    an_json_array(json);
    for (; an_json_element(json) && an_json_count(json, &dim); count++)
        if (count < AN_MAX_DIMS) dims[count] = dim;
    return count;
}

static void read_offsets(an_json *json, an_safetensors_entry *e) {
    const size_t at = json->at;
    an_json_array(json);
    if (!an_json_element(json) || !an_json_count(json, &e->begin) || !an_json_element(json) ||
        !an_json_count(json, &e->end) || an_json_element(json))
        an_json_refuse(json, at, "data_offsets is not an array of two numbers");
}

/* That the parts of an entry fit together. */
static an_status check_entry(const an_safetensors *s, const an_safetensors_entry *e, const an_safetensor *t) {
    an_status status;
    an_context *ctx = s->ctx;
    an_safetensors_shown name;
    int64_t bytes = 0;
    const size_t at = AN_SAFETENSORS_LENGTH + (size_t)e->name;
    const char *const shown_name = an_safetensors_show(&name, t->name);
    const int64_t data = s->file.size - an_safetensors_data_offset(s);
    AN_CHECK(ctx, t->ndims <= AN_MAX_DIMS, AN_ERR_UNSUPPORTED,
             "%s: byte %zu: tensor '%s' has %d dimensions; at most %d are supported", s->path, at, shown_name, t->ndims,
             AN_MAX_DIMS);
    AN_CHECK(ctx, an_safetensor_measure(t, &bytes), AN_ERR_DAMAGED,
             "%s: byte %zu: the size of tensor '%s' in bytes does not fit in 63 bits", s->path, at, shown_name);
    AN_CHECK(ctx, e->begin <= e->end && e->end <= data, AN_ERR_DAMAGED,
             "%s: byte %zu: tensor '%s' lies from byte %" PRId64 " to %" PRId64 " of the data, which has only %" PRId64
             " bytes",
             s->path, at, shown_name, e->begin, e->end, data);
    AN_CHECK(ctx, e->end - e->begin == bytes, AN_ERR_DAMAGED,
             "%s: byte %zu: tensor '%s' needs %" PRId64 " bytes for its shape and type, but has %" PRId64, s->path, at,
             shown_name, bytes, e->end - e->begin);
    return AN_OK;
fail:
    return status;
}

static an_status read_entry(an_safetensors *s, an_json *json, an_json_string name) {
    enum { DTYPE, SHAPE, OFFSETS, PARTS };
    static const char *const parts[] = {"dtype", "shape", "data_offsets"};
    an_json_string key;
    an_safetensor t = {.name = name.bytes};
    an_safetensors_entry e = {.name = place_of(s, name)};
    bool seen[PARTS] = {false};
    an_json_object(json);
    while (an_json_member(json, &key)) {
        int part = 0;
        while (part < PARTS && strcmp(key.bytes, parts[part]) != 0) part++;
        if (part == PARTS)
            an_json_refuse(json, place_of(s, key), "a tensor has a key other than dtype, shape and data_offsets");
        else if (seen[part])
            an_json_refuse(json, place_of(s, key), "a key of a tensor appears twice");
        else
            seen[part] = true;
        if (part == DTYPE) AN_TRY_RETURN(read_type(s, json, &e));
        e.shape = part == SHAPE ? (uint32_t)json->at : e.shape;
        if (part == SHAPE) t.ndims = an_safetensors_dims(json, t.dims);
        if (part == OFFSETS) read_offsets(json, &e);
    }
    for (int part = 0; part < PARTS; part++)
        if (!seen[part]) an_json_refuse(json, e.name, "a tensor has no dtype, no shape or no data_offsets");
    need_room(s, json, s->count + 1, s->key_count);
    AN_TRY_RETURN(check_json(s, json));
    t.type = e.type;
    AN_TRY_RETURN(check_entry(s, &e, &t));
    s->entries[s->count++] = e;
    return AN_OK;
}

an_status an_safetensors_parse(an_safetensors *s) {
    an_status status;
    an_json json;
    an_json_string key;
    an_json_init(&json, s->header, s->header_bytes);
    an_json_object(&json);
    while (an_json_member(&json, &key))
        if (strcmp(key.bytes, AN_SAFETENSORS_METADATA) == 0)
            AN_TRY(read_metadata(s, &json, place_of(s, key)));
        else
            AN_TRY(read_entry(s, &json, key));
    while (!json.problem && json.at < json.length && s->header[json.at] == ' ') json.at++;
    if (json.at < json.length) an_json_refuse(&json, json.at, "only spaces may follow the last }");
    AN_TRY(check_json(s, &json));
    return AN_OK;
fail:
    return status;
}
