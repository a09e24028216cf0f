#include "data/texts/sequences.h"

#include <inttypes.h>
#include <string.h>

/* ---- types ---- */

static uint64_t bytes_up(const unsigned char *bytes, int width) {
    uint64_t value = 0;
    for (int i = width - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static int64_t decode_u8(const unsigned char *b) {
    return b[0];
}
static int64_t decode_i8(const unsigned char *b) {
    return (int8_t)b[0];
}
static int64_t decode_u16(const unsigned char *b) {
    return (int64_t)bytes_up(b, 2);
}
static int64_t decode_i16(const unsigned char *b) {
    return (int16_t)bytes_up(b, 2);
}
static int64_t decode_u32(const unsigned char *b) {
    return (int64_t)bytes_up(b, 4);
}
static int64_t decode_i32(const unsigned char *b) {
    return (int32_t)bytes_up(b, 4);
}
static int64_t decode_i64(const unsigned char *b) {
    return (int64_t)bytes_up(b, 8);
}

const an_token_type an_token_u8 = {"u8", 1, decode_u8}, an_token_i8 = {"i8", 1, decode_i8},
                    an_token_u16 = {"u16", 2, decode_u16}, an_token_i16 = {"i16", 2, decode_i16},
                    an_token_u32 = {"u32", 4, decode_u32}, an_token_i32 = {"i32", 4, decode_i32},
                    an_token_i64 = {"i64", 8, decode_i64};

/* ---- reading ---- */

static void place(const an_sequences *s, int64_t token, an_note text) {
    if (s->vocabulary.points)
        an_note_write(text, "%s: character %" PRId64, s->path, token);
    else
        an_note_write(text, "%s: byte %" PRId64, s->path, s->offset + token * (int64_t)s->type->width);
}

static an_status decode(const an_sequences *s, int64_t token, const unsigned char *bytes, int32_t *value,
                        an_note note) {
    const int64_t number = s->type->decode(bytes);
    char text[AN_MESSAGE_BYTES / 2];
    *value = (int32_t)number;
    if (number >= 0 && number <= INT32_MAX) return AN_OK;
    place(s, token, (an_note){text, sizeof text});
    return AN_NOTE(note, AN_ERR_PARSE, "%s: the token is %" PRId64 ", but tokens must be 0 to %d", text, number,
                   INT32_MAX);
}

/* context + 1 tokens from `begin` on: the first is no target, the last only one. */
static an_status read_sample(const an_sequences *s, int64_t begin, int32_t *tokens, int32_t *targets, an_note note) {
    enum { CHUNK = 1 << 13 };
    unsigned char chunk[CHUNK];
    const size_t width = s->type->width;
    int64_t at = 0;
    while (at <= s->context) {
        const int64_t left = s->context + 1 - at, fit = (int64_t)(CHUNK / width), n = left < fit ? left : fit;
        const unsigned char *bytes = chunk;
        an_status status = AN_OK;
        if (s->memory)
            bytes = s->memory + (size_t)(begin + at) * width;
        else
            status =
                an_reader_read(&s->file, s->offset + (begin + at) * (int64_t)width, chunk, (size_t)n * width, note);
        for (int64_t i = 0; i < n && status == AN_OK; i++, at++) {
            int32_t value;
            status = decode(s, begin + at, bytes + (size_t)i * width, &value, note);
            if (at < s->context) tokens[at] = value;
            if (at > 0) targets[at - 1] = value;
        }
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const an_sequences *s = user;
    const an_note note = {message, message_capacity};
    for (int64_t i = 0; i < n; i++) {
        int32_t *tokens = (int32_t *)fields[0] + i * s->context, *targets = (int32_t *)fields[1] + i * s->context;
        const int64_t begin = s->first + indices[i] * s->context;
        const an_status status = read_sample(s, begin, tokens, targets, note);
        if (status != AN_OK) return status;
        if (s->documents != AN_DOCUMENTS_NONE)
            an_documents_write(s, begin, tokens, targets, (int32_t *)fields[2] + i * s->context);
    }
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *text, size_t capacity) {
    const an_sequences *s = user;
    place(s, s->first + index * s->context + element + (field == 1), (an_note){text, capacity});
}

static void close_sequences(void *user) {
    an_sequences *s = user;
    an_sequences_destroy(&s);
}

/* ---- making one ---- */

an_status an_sequences_create(an_sequences **sequences, an_context *ctx, const char *path, int64_t context) {
    an_status status;
    an_sequences *s = NULL;
    *sequences = NULL;
    AN_CHECK(ctx, path && *path, AN_ERR_ARGUMENT, "a file of the data has no name");
    AN_CHECK(ctx, context > 0 && context <= AN_MOST_CONTEXT, AN_ERR_ARGUMENT,
             "%s: the context is %" PRId64 " tokens; it must be from 1 to %d", path, context, AN_MOST_CONTEXT);
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->context = context;
    an_arena_init(&s->arena, ctx);
    *sequences = s;
    AN_TRY(an_arena_string(&s->arena, &s->path, path, strlen(path)));
    return AN_OK;
fail:
    an_sequences_destroy(sequences);
    return status;
}

void an_sequences_destroy(an_sequences **sequences) {
    an_sequences *s = sequences ? *sequences : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    an_reader_close(&s->file);
    an_release(ctx, (void **)&s->memory, s->memory_bytes, 1);
    an_release(ctx, (void **)&s->borders, (size_t)s->border_capacity, sizeof *s->borders);
    an_release(ctx, (void **)&s->points, s->point_count, sizeof *s->points);
    an_arena_destroy(&s->arena);
    an_release(ctx, (void **)sequences, 1, sizeof *s);
}

an_status an_sequences_dataset(an_dataset **dataset, an_sequences *s, double begin, double end, int64_t limit,
                               bool checked) {
    an_context *ctx = s->ctx;
    an_status status;
    an_dataset *d = NULL;
    int64_t last;
    static const char *const names[] = {"tokens", "targets", "documents"};
    an_field fields[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = names[i];
        fields[i].dtype = AN_DTYPE_I32;
        fields[i].ndims = 1;
        fields[i].dims[0] = s->context;
        fields[i].limit = i == 2 ? s->context : checked ? 0 : limit;
        fields[i].target = i == 1;
    }
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    AN_TRY(an_data_part(ctx, begin, end, s->tokens, &s->first, &last));
    AN_CHECK(ctx, last - s->first > s->context, AN_ERR_ARGUMENT,
             "%s: the part has %" PRId64 " tokens, but a sample needs %" PRId64 ": the context and the token after it",
             s->path, last - s->first, s->context + 1);
    record.count = (last - s->first - 1) / s->context;
    record.field_count = s->documents == AN_DOCUMENTS_NONE ? 2 : 3;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_sequences;
    record.user = s;
    AN_TRY(an_dataset_create(&d, ctx, &record));
    d->record.close = NULL; /* it is the caller's until nothing can fail */
    if (s->vocabulary.count > 0) d->vocabulary = &s->vocabulary;
    for (int i = 0; i < 2 && checked && limit != 0; i++) AN_TRY(an_dataset_set_limit(d, fields[i].name, limit));
    d->record.close = close_sequences;
    *dataset = d;
    return AN_OK;
fail:
    an_dataset_destroy(&d);
    return status;
}
