/* Raw text, by bytes or by characters. Characters are numbered over the whole file, whichever part of it is read, so
 * that parts of one file agree. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "data/structs.h"
#include "data/texts/sequences.h"

/* ---- UTF-8 ---- */

enum { POINTS = 0x110000, SURROGATES = 0xd800, AFTER_SURROGATES = 0xe000 };

/* One code point of at most `left` bytes; gives its length, or 0 if there is none. */
static int decode(const unsigned char *bytes, size_t left, uint32_t *point) {
    static const uint32_t minimum[AN_TOKEN_BYTES + 1] = {0, 0, 0x80, 0x800,
                                                         0x10000}; /* a shorter form is the only right one */
    const unsigned char first = bytes[0];
    const int length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
    if (length == 0 || (size_t)length > left) return 0;
    uint32_t value = length == 1 ? first : first & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (bytes[i] & 0x3f);
    }
    if (value < minimum[length] || value >= POINTS || (value >= SURROGATES && value < AFTER_SURROGATES)) return 0;
    *point = value;
    return length;
}

static int encode(uint32_t point, char *bytes) {
    const int length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned lead[AN_TOKEN_BYTES + 1] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = length - 1; i > 0; i--, point >>= 6) bytes[i] = (char)(0x80 | (point & 0x3f));
    bytes[0] = (char)(lead[length] | point);
    return length;
}

/* ---- the characters of a file ---- */

enum { BUFFER = 1 << 16 };

typedef struct {
    an_reader_stream stream;
    unsigned char *buffer;
    size_t at, end;
    int64_t offset; /* of `at` in the text */
    bool ended;
} reader;

static an_status open_reader(reader *r, an_context *ctx, const char *path, an_note note) {
    *r = (reader){.at = 0};
    const an_status status = an_reader_stream_open(&r->stream, ctx, path, note);
    if (status != AN_OK) return status;
    if (an_alloc_raw(ctx, (void **)&r->buffer, BUFFER) == AN_OK) return AN_OK;
    an_reader_stream_close(&r->stream);
    return AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory to read it", path);
}

static void close_reader(reader *r) {
    an_context *ctx = r->stream.ctx;
    an_reader_stream_close(&r->stream);
    an_release(ctx, (void **)&r->buffer, BUFFER, 1);
}

/* The next character; *more is false at the end. */
static an_status next_character(reader *r, uint32_t *point, bool *more, an_note note) {
    if (r->end - r->at < AN_TOKEN_BYTES && !r->ended) {
        size_t kept = r->end - r->at, got;
        memmove(r->buffer, r->buffer + r->at, kept);
        const an_status status = an_reader_stream_read(&r->stream, r->buffer + kept, BUFFER - kept, &got, note);
        if (status != AN_OK) return status;
        r->at = 0;
        r->end = kept + got;
        r->ended = r->end < BUFFER;
    }
    *more = r->at < r->end;
    if (!*more) return AN_OK;
    const int length = decode(r->buffer + r->at, r->end - r->at, point);
    if (length == 0)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: byte %" PRId64
                       ": 0x%02x does not begin a UTF-8 character; such a text can be read with tokens: bytes",
                       r->stream.file.path, r->offset, r->buffer[r->at]);
    r->at += (size_t)length;
    r->offset += length;
    return AN_OK;
}

/* Which characters there are, and how many of them are below a word of 64: the number of a character in two steps.
 * Words from `end` on are empty: most texts need few. */
enum { WORDS = POINTS / 64 };
typedef struct {
    uint32_t end;
    uint32_t below[WORDS];
    uint64_t words[WORDS];
} character_set;

static void add_character(character_set *set, uint32_t point) {
    set->words[point / 64] |= UINT64_C(1) << point % 64;
    if (point / 64 >= set->end) set->end = point / 64 + 1;
}

static bool has_character(const character_set *set, uint32_t point) {
    return set->words[point / 64] >> point % 64 & 1;
}

static uint32_t count_characters(character_set *set) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->end; i++) {
        set->below[i] = count;
        count += (uint32_t)__builtin_popcountll(set->words[i]);
    }
    return count;
}

static uint32_t number_of(const character_set *set, uint32_t point) {
    const uint64_t before = set->words[point / 64] & ((UINT64_C(1) << point % 64) - 1);
    return set->below[point / 64] + (uint32_t)__builtin_popcountll(before);
}

static an_status refuse_character(const reader *r, uint32_t point, an_note note) {
    return AN_NOTE(note, AN_ERR_PARSE,
                   "%s: before byte %" PRId64 ": the character U+%04" PRIX32 " is not in the vocabulary",
                   r->stream.file.path, r->offset, point);
}

/* First pass: counts characters, and finds out which there are unless that is given. */
static an_status scan(an_sequences *s, character_set *set, bool given, an_note note) {
    reader r;
    uint32_t point = 0;
    bool more = true;
    an_status status = open_reader(&r, s->ctx, s->path, note);
    if (status != AN_OK) return status;
    while ((status = next_character(&r, &point, &more, note)) == AN_OK && more) {
        if (!given)
            add_character(set, point);
        else if (!has_character(set, point)) {
            status = refuse_character(&r, point, note);
            break;
        }
        s->tokens++;
    }
    close_reader(&r);
    return status;
}

/* Second pass: writes their numbers. */
static an_status store(an_sequences *s, const character_set *set, an_note note) {
    reader r;
    uint32_t point = 0;
    bool more = true;
    int64_t at = 0;
    an_status status = open_reader(&r, s->ctx, s->path, note);
    if (status != AN_OK) return status;
    while ((status = next_character(&r, &point, &more, note)) == AN_OK && more) {
        unsigned char *to = s->memory + (size_t)at * s->type->width;
        if (at == s->tokens || !has_character(set, point)) break;
        const uint32_t number = number_of(set, point);
        for (size_t i = 0; i < s->type->width; i++) to[i] = (unsigned char)(number >> 8 * i);
        at++;
    }
    if (status == AN_OK && (more || at != s->tokens))
        status = AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ": the file changed while it was being read", s->path,
                         r.offset);
    close_reader(&r);
    return status;
}

static an_status make_vocabulary(an_sequences *s, const character_set *set, uint32_t count) {
    an_context *ctx = s->ctx;
    size_t at = 0;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&s->points, count, sizeof *s->points));
    s->point_count = count;
    for (uint32_t i = 0; i < set->end; i++)
        for (uint64_t word = set->words[i]; word != 0; word &= word - 1) /* without its lowest bit */
            s->points[at++] = i * 64 + (uint32_t)__builtin_ctzll(word);
    s->vocabulary = (an_vocabulary){count, s->points};
    return AN_OK;
}

static an_status read_characters(an_sequences *s, const an_vocabulary *given) {
    an_context *ctx = s->ctx;
    an_status status;
    character_set *set = NULL;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    AN_TRY(an_alloc(ctx, (void **)&set, 1, sizeof *set));
    for (int64_t i = 0; given && i < given->count; i++) add_character(set, given->points[i]);
    AN_TRY(an_note_raise(ctx, scan(s, set, given != NULL, note), note));
    const uint32_t count = count_characters(set);
    AN_CHECK(ctx, s->tokens > 0, AN_ERR_PARSE, "%s: byte 0: the text is empty", s->path);
    AN_TRY(make_vocabulary(s, set, count));
    s->type = count <= 1 << 8 ? &an_token_u8 : count <= 1 << 16 ? &an_token_u16 : &an_token_u32;
    const size_t bytes = (size_t)s->tokens * s->type->width; /* at most four times those of the text */
    AN_TRY(an_alloc_raw(ctx, (void **)&s->memory, bytes));
    s->memory_bytes = bytes;
    AN_TRY(an_note_raise(ctx, store(s, set, note), note));
    an_release(ctx, (void **)&set, 1, sizeof *set);
    return AN_OK;
fail:
    an_release(ctx, (void **)&set, 1, sizeof *set);
    return status;
}

/* ---- bytes ---- */

enum { BYTES = 256 };

static an_status find_bytes(an_sequences *s, an_note note) {
    an_reader_stream stream;
    an_status status = an_reader_stream_open(&stream, s->ctx, s->path, note);
    size_t size = 0;
    if (status != AN_OK) return status;
    const bool compressed = stream.compressed;
    an_reader_stream_close(&stream);
    s->type = &an_token_u8;
    s->vocabulary = (an_vocabulary){BYTES, NULL};
    if (compressed)
        status = an_reader_load(s->ctx, s->path, (char **)&s->memory, &size, &s->memory_bytes, note);
    else
        status = an_reader_open(&s->file, s->path, note);
    s->tokens = compressed ? (int64_t)size : s->file.size;
    return status;
}

an_status an_dataset_create_text(an_dataset **dataset, an_context *ctx, const an_text_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_text_source own;
    const an_text_source *const source = &own;
    an_status status;
    an_sequences *s = NULL;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const an_vocabulary *vocabulary = NULL;
    *dataset = NULL;
    AN_TRY(an_text_source_read(ctx, &own, given));
    AN_CHECK(ctx, (unsigned)source->tokens <= AN_TEXT_CHARACTERS, AN_ERR_ARGUMENT,
             "tokens is %d, which is not a value of an_text_tokens", (int)source->tokens);
    if (source->vocabulary) {
        vocabulary = source->vocabulary->vocabulary;
        AN_CHECK(ctx, vocabulary && !vocabulary->points == (source->tokens == AN_TEXT_BYTES), AN_ERR_ARGUMENT,
                 "vocabulary is a dataset with a different kind of tokens");
    }
    AN_TRY(an_sequences_create(&s, ctx, source->path, source->context));
    if (source->tokens == AN_TEXT_BYTES)
        AN_TRY(an_note_raise(ctx, find_bytes(s, note), note));
    else
        AN_TRY(read_characters(s, vocabulary));
    AN_TRY(an_sequences_dataset(dataset, s, source->begin, source->end, s->vocabulary.count, false));
    return AN_OK;
fail:
    an_sequences_destroy(&s);
    return status;
}

/* ---- asking for the vocabulary ---- */

an_status an_dataset_vocabulary(const an_dataset *dataset, int64_t *count) {
    AN_NEED(dataset, count);
    *count = dataset->vocabulary ? dataset->vocabulary->count : 0;
    return AN_OK;
}

static an_status need_vocabulary(const an_dataset *dataset) {
    if (!dataset->vocabulary)
        return AN_ERROR(dataset->ctx, AN_ERR_UNSUPPORTED, "the dataset is not a text, so its tokens have no text");
    return AN_OK;
}

an_status an_dataset_token_text(const an_dataset *dataset, int32_t token, char bytes[AN_TOKEN_BYTES], int *length) {
    AN_NEED(dataset, bytes, length);
    an_context *ctx = dataset->ctx;
    const an_vocabulary *v = dataset->vocabulary;
    *length = 0;
    AN_TRY_RETURN(need_vocabulary(dataset));
    if (token < 0 || token >= v->count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "token %" PRId32 " is not in the vocabulary, which has %" PRId64 " tokens", token, v->count);
    *length = 1;
    if (v->points)
        *length = encode(v->points[token], bytes);
    else
        bytes[0] = (char)token;
    return AN_OK;
}

/* The number of a character, or -1. */
static int32_t find_point(const an_vocabulary *v, uint32_t point) {
    int64_t low = 0, high = v->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (v->points[middle] < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->count && v->points[low] == point ? (int32_t)low : -1;
}

an_status an_dataset_encode(const an_dataset *dataset, const char *text, size_t length, int32_t *tokens,
                            int64_t capacity, int64_t *count) {
    AN_NEED(dataset, count);
    if (length > 0) AN_NEED(dataset, text);
    if (capacity > 0) AN_NEED(dataset, tokens);
    an_context *ctx = dataset->ctx;
    const an_vocabulary *v = dataset->vocabulary;
    const unsigned char *bytes = (const unsigned char *)text;
    *count = 0;
    AN_TRY_RETURN(need_vocabulary(dataset));
    for (size_t at = 0; at < length; ++*count) {
        uint32_t point = 0;
        const int step = v->points ? decode(bytes + at, length - at, &point) : 1;
        if (step == 0)
            return AN_ERROR(ctx, AN_ERR_PARSE, "byte %zu of the text: 0x%02x does not begin a UTF-8 character", at,
                            bytes[at]);
        const int32_t token = v->points ? find_point(v, point) : bytes[at];
        if (token < 0)
            return AN_ERROR(ctx, AN_ERR_UNKNOWN,
                            "byte %zu of the text: the character U+%04" PRIX32 " is not in the vocabulary", at, point);
        if (*count < capacity) tokens[*count] = token;
        at += (size_t)step;
    }
    return AN_OK;
}
