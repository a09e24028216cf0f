/* Reads a GGUF file: its header once, its tensors in pieces. */
#include "formats/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/reader.h"
#include "base/integer.h"
#include "base/text/utf8.h"
#include "formats/gguf_file.h"
#include "formats/safetensors_file.h"

static const char magic[4] = {'G', 'G', 'U', 'F'};

enum {
    HEAD = 24,            /* magic, version, number of tensors, number of keys */
    LEAST_TENSOR = 24,    /* a name without bytes, no dimensions, type, offset */
    LEAST_KEY = 13,       /* a key without bytes, a type, a value of one byte */
    FIRST_READ = 1 << 16, /* bytes of the header; then twice as many as there are */
    USUAL_ALIGNMENT = 32, /* where no key says another */
    MOST_ALIGNMENT = 1 << 20
};

typedef an_gguf gguf;
typedef an_gguf_entry entry;

/* ---- the header ---- It ends where its last tensor does, so it is loaded as it is read. */

static an_status damaged(an_context *ctx, const gguf *g, size_t at, const char *what) {
    return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: %s", g->path, at, what);
}

/* The next bytes are there, and *at is where; memory moves, so pointers into it do not last. */
static an_status take(an_context *ctx, gguf *g, uint64_t bytes, const char *what, size_t *at) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const uint64_t size = (uint64_t)g->file.size;
    if (bytes > size - g->at)
        return AN_ERROR(ctx, AN_ERR_DAMAGED,
                        "%s: byte %zu: %s needs %" PRIu64 " bytes, but the file has only %" PRIu64 " more", g->path,
                        g->at, what, bytes, size - g->at);
    if (g->at + bytes > g->loaded) {
        uint64_t wanted = 2 * (uint64_t)g->loaded;
        if (wanted < FIRST_READ) wanted = FIRST_READ;
        if (wanted < g->at + bytes) wanted = g->at + bytes;
        if (wanted > size) wanted = size;
        unsigned char *larger = NULL;
        AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&larger, (size_t)wanted));
        if (g->loaded) memcpy(larger, g->header, g->loaded);
        an_release(ctx, (void **)&g->header, g->capacity, 1);
        g->header = larger;
        g->capacity = (size_t)wanted;
        AN_TRY_RETURN(an_note_raise(
            ctx, an_reader_read(&g->file, (int64_t)g->loaded, g->header + g->loaded, g->capacity - g->loaded, note),
            note));
        g->loaded = g->capacity;
    }
    *at = g->at;
    g->at += (size_t)bytes;
    return AN_OK;
}

static uint64_t number_at(const gguf *g, size_t at, int bytes) {
    uint64_t number = 0;
    for (int i = bytes; i-- > 0;) number = number << 8 | g->header[at + (size_t)i];
    return number;
}

static an_status take_number(an_context *ctx, gguf *g, int bytes, const char *what, uint64_t *number) {
    size_t at;
    AN_TRY_RETURN(take(ctx, g, (uint64_t)bytes, what, &at));
    *number = number_at(g, at, bytes);
    return AN_OK;
}

static an_status take_string(an_context *ctx, gguf *g, const char *what, size_t *at, uint64_t *length) {
    AN_TRY_RETURN(take_number(ctx, g, 8, what, length));
    return take(ctx, g, *length, what, at);
}

/* ---- keys ---- */

/* 0: the value says it itself */
static const unsigned char value_bytes[AN_GGUF_VALUES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static an_status read_value(an_context *ctx, gguf *g, uint64_t type, an_gguf_key *key) {
    uint64_t length;
    size_t at;
    key->count = 1;
    if (type == AN_GGUF_ARRAY) {
        key->is_array = true;
        AN_TRY_RETURN(take_number(ctx, g, 4, "the type of an array", &type));
        AN_TRY_RETURN(take_number(ctx, g, 8, "the length of an array", &key->count));
        if (type == AN_GGUF_ARRAY)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: byte %zu: arrays of arrays are not supported", g->path,
                            g->at);
    }
    if (type >= AN_GGUF_VALUES)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: a value has the unknown type %" PRIu64, g->path, g->at,
                        type);
    key->type = (unsigned char)type;
    key->at = g->at;
    if (type != AN_GGUF_STRING) {
        if (key->count > (uint64_t)g->file.size) return damaged(ctx, g, g->at, "an array is longer than the file");
        return take(ctx, g, key->count * value_bytes[type], "a value", &at);
    }
    for (uint64_t i = 0; i < key->count; i++) AN_TRY_RETURN(take_string(ctx, g, "a string", &at, &length));
    return AN_OK;
}

static an_status check_name(an_context *ctx, const gguf *g, const char *what, size_t at, uint64_t length) {
    const char *name = (const char *)g->header + at;
    if (length == 0) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: a %s has no name", g->path, at, what);
    if (memchr(name, 0, (size_t)length))
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: the name of a %s has a NUL in it", g->path, at, what);
    for (size_t i = 0; i < length;) {
        const size_t bytes = an_utf8_length(name + i, (size_t)length - i);
        if (bytes == 0)
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: the name of a %s is not valid UTF-8", g->path, at + i,
                            what);
        i += bytes;
    }
    return AN_OK;
}

static an_status check_alignment(an_context *ctx, gguf *g, const an_gguf_key *key) {
    if (key->is_array || key->type != AN_GGUF_U32)
        return damaged(ctx, g, key->at, "general.alignment is not a number of 32 bits");
    const uint64_t alignment = number_at(g, key->at, 4);
    if (alignment == 0 || alignment > MOST_ALIGNMENT || (alignment & (alignment - 1)) != 0)
        return AN_ERROR(ctx, AN_ERR_DAMAGED,
                        "%s: byte %zu: general.alignment is %" PRIu64 ", but a power of two up to %d is expected",
                        g->path, key->at, alignment, MOST_ALIGNMENT);
    g->alignment = (int64_t)alignment;
    return AN_OK;
}

static an_status read_key(an_context *ctx, gguf *g, an_gguf_key *key) {
    size_t at;
    uint64_t length, type;
    AN_TRY_RETURN(take_string(ctx, g, "a key", &at, &length));
    AN_TRY_RETURN(check_name(ctx, g, "key", at, length));
    AN_TRY_RETURN(take_number(ctx, g, 4, "the type of a value", &type));
    key->name = at;
    g->header[at + length] = 0; /* the type, which has been read */
    AN_TRY_RETURN(read_value(ctx, g, type, key));
    if (strcmp((const char *)g->header + at, "general.alignment") != 0) return AN_OK;
    return check_alignment(ctx, g, key);
}

/* ---- tensors ---- */

static an_status read_type(an_context *ctx, gguf *g, entry *e) {
    uint64_t number;
    const size_t at = g->at;
    AN_TRY_RETURN(take_number(ctx, g, 4, "the type of a tensor", &number));
    e->type = an_gguf_type_of((uint32_t)number);
    if (e->type) return AN_OK;
    const char *name = an_gguf_unread_type((uint32_t)number);
    if (name)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: byte %zu: a tensor has the type %s, which is not supported; F32, F16, BF16, Q8_0, Q4_0, "
                        "Q4_1, Q5_0, Q5_1, Q4_K and Q6_K are",
                        g->path, at, name);
    return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: a tensor has the unknown type %" PRIu64, g->path, at, number);
}

/* Bytes of a tensor; false: more than there can be. */
static bool measure(const entry *e, int64_t *bytes) {
    return an_multiply_i64(e->elements / e->type->elements, e->type->bytes, bytes);
}

static an_status read_tensor(an_context *ctx, gguf *g, entry *e) {
    uint64_t length, ndims, offset;
    size_t at;
    AN_TRY_RETURN(take_string(ctx, g, "the name of a tensor", &at, &length));
    AN_TRY_RETURN(check_name(ctx, g, "tensor", at, length));
    e->name = at;
    AN_TRY_RETURN(take_number(ctx, g, 4, "the number of dimensions", &ndims));
    if (ndims > AN_GGUF_MOST_DIMS)
        return AN_ERROR(ctx, AN_ERR_DAMAGED,
                        "%s: byte %zu: a tensor has %" PRIu64 " dimensions, but the format has at most %d", g->path,
                        g->at - 4, ndims, AN_GGUF_MOST_DIMS);
    e->ndims = (int)ndims;
    e->elements = 1;
    for (int i = e->ndims; i-- > 0;) { /* the fastest comes first there */
        uint64_t dim;
        AN_TRY_RETURN(take_number(ctx, g, 8, "a dimension", &dim));
        if (dim == 0 || dim > INT64_MAX || !an_multiply_i64(e->elements, (int64_t)dim, &e->elements))
            return damaged(ctx, g, g->at - 8, "a tensor has a dimension of 0, or more elements than 63 bits can count");
        e->dims[i] = (int64_t)dim;
    }
    AN_TRY_RETURN(read_type(ctx, g, e));
    AN_TRY_RETURN(take_number(ctx, g, 8, "the offset of a tensor", &offset));
    if (offset > (uint64_t)g->file.size)
        return damaged(ctx, g, g->at - 8, "a tensor begins behind the end of the file");
    e->begin = (int64_t)offset; /* in the data, whose begin is not known yet */
    const int64_t row = e->ndims ? e->dims[e->ndims - 1] : 1;
    if (row % e->type->elements != 0)
        return AN_ERROR(ctx, AN_ERR_DAMAGED,
                        "%s: byte %zu: rows of %" PRId64 " elements cannot be in blocks of %d (%s)", g->path, at, row,
                        e->type->elements, e->type->shown.name);
    return AN_OK;
}

/* One behind the other, each at a multiple of the alignment. */
static an_status check_cover(an_context *ctx, gguf *g) {
    const int64_t data = an_next_multiple((int64_t)g->at, g->alignment);
    int64_t end = 0;
    for (size_t i = 0; i < g->count; i++) {
        entry *e = &g->entries[i];
        const char *name = (const char *)g->header + e->name;
        an_safetensors_shown shown;
        int64_t bytes;
        if (e->begin != end)
            return AN_ERROR(ctx, AN_ERR_DAMAGED,
                            "%s: tensor '%s' begins at byte %" PRId64 " of the data, but byte %" PRId64 " is expected",
                            g->path, an_safetensors_show(&shown, name), e->begin, end);
        if (!measure(e, &bytes) || bytes > g->file.size - data - end)
            return AN_ERROR(ctx, AN_ERR_DAMAGED,
                            "%s: tensor '%s' does not fit into the file, which was perhaps not copied to its end",
                            g->path, an_safetensors_show(&shown, name));
        e->begin += data;
        end = an_next_multiple(end + bytes, g->alignment);
        if (end > g->file.size - data) end = g->file.size - data; /* the last one may be without padding */
    }
    return AN_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static an_status check_names(an_context *ctx, const gguf *g, const char *what, size_t count, const char **names) {
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++) {
        an_safetensors_shown shown;
        if (!strcmp(names[i - 1], names[i]))
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: %s '%s' appears twice", g->path, what,
                            an_safetensors_show(&shown, names[i]));
    }
    return AN_OK;
}

static an_status check_all_names(an_context *ctx, const gguf *g) {
    const size_t maximum = (g->count > g->key_count ? g->count : g->key_count) + 1;
    const char **names = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&names, maximum, sizeof *names));
    for (size_t i = 0; i < g->key_count; i++) names[i] = (const char *)g->header + g->keys[i].name;
    an_status status = check_names(ctx, g, "key", g->key_count, names);
    for (size_t i = 0; i < g->count; i++) names[i] = (const char *)g->header + g->entries[i].name;
    if (status == AN_OK) status = check_names(ctx, g, "tensor", g->count, names);
    an_release(ctx, (void **)&names, maximum, sizeof *names);
    return status;
}

static an_status read_head(an_context *ctx, gguf *g, uint64_t *keys, uint64_t *tensors) {
    size_t at;
    AN_TRY_RETURN(take(ctx, g, HEAD, "the head of a GGUF file", &at));
    if (memcmp(g->header, magic, sizeof magic) != 0)
        return damaged(ctx, g, 0, "a GGUF file begins with the letters GGUF");
    const uint64_t version = number_at(g, 4, 4);
    if (version != 0 && (version & 0xffff) == 0)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: is big endian, which is not supported", g->path);
    if (version != 2 && version != 3)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has version %" PRIu64 " of GGUF; versions 2 and 3 are supported",
                        g->path, version);
    *tensors = number_at(g, 8, 8);
    *keys = number_at(g, 16, 8);
    const uint64_t left = (uint64_t)g->file.size - HEAD;
    if (*tensors > left / LEAST_TENSOR || *keys > left / LEAST_KEY)
        return AN_ERROR(ctx, AN_ERR_DAMAGED,
                        "%s: byte 8: says that it has %" PRIu64 " tensors and %" PRIu64
                        " keys, which do not fit into the file",
                        g->path, *tensors, *keys);
    return AN_OK;
}

static an_status read_header(an_context *ctx, gguf *g) {
    uint64_t keys, tensors;
    AN_TRY_RETURN(read_head(ctx, g, &keys, &tensors));
    if (keys > 0) AN_TRY_RETURN(an_alloc(ctx, (void **)&g->keys, (size_t)keys, sizeof *g->keys));
    g->key_count = (size_t)keys;
    for (size_t i = 0; i < g->key_count; i++) AN_TRY_RETURN(read_key(ctx, g, &g->keys[i]));
    if (tensors > 0) AN_TRY_RETURN(an_alloc(ctx, (void **)&g->entries, (size_t)tensors, sizeof *g->entries));
    g->count = (size_t)tensors;
    for (size_t i = 0; i < g->count; i++) {
        AN_TRY_RETURN(read_tensor(ctx, g, &g->entries[i]));
        /* Behind a name lies the number of dimensions, which has been read: a NUL fits there. */
        g->header[g->entries[i].name + number_at(g, g->entries[i].name - 8, 8)] = 0;
    }
    AN_TRY_RETURN(check_cover(ctx, g));
    return check_all_names(ctx, g);
}

void an_gguf_close(an_gguf **file) {
    gguf *g = *file;
    if (!g) return;
    an_context *ctx = g->ctx;
    an_reader_close(&g->file);
    an_release(ctx, (void **)&g->entries, g->count, sizeof *g->entries);
    an_release(ctx, (void **)&g->keys, g->key_count, sizeof *g->keys);
    an_release(ctx, (void **)&g->header, g->capacity, 1);
    an_string_release(ctx, &g->path);
    an_release(ctx, (void **)file, 1, sizeof *g);
}

bool an_gguf_is(const char *path) {
    an_reader file;
    char text[1], first[sizeof magic];
    const an_note note = {text, sizeof text};
    if (an_reader_open(&file, path, note) != AN_OK) return false;
    const bool is = file.size >= (int64_t)sizeof first &&
                    an_reader_read(&file, 0, first, sizeof first, note) == AN_OK && !memcmp(first, magic, sizeof magic);
    an_reader_close(&file);
    return is;
}

an_status an_gguf_open(an_gguf **file, an_context *ctx, const char *path) {
    an_status status;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    gguf *g = NULL;
    *file = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g, 1, sizeof *g));
    g->ctx = ctx;
    g->alignment = USUAL_ALIGNMENT;
    AN_TRY(an_alloc(ctx, (void **)&g->path, strlen(path) + 1, 1));
    memcpy(g->path, path, strlen(path) + 1);
    AN_TRY(an_note_raise(ctx, an_reader_open(&g->file, g->path, note), note));
    g->file.path = g->path;
    AN_TRY(read_header(ctx, g));
    *file = g;
    return AN_OK;
fail:
    an_gguf_close(&g);
    return status;
}
