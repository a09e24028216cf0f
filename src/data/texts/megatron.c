/* Megatron's indexed datasets: PREFIX.bin has the tokens, PREFIX.idx says how they are divided into sequences and
 * documents.
 *
 *     "MMIDIDX\0\0", u64 version 1, u8 type, u64 sequences, u64 document boundaries,
 *     i32 length of each sequence, i64 byte at which it begins, i64 sequence at which each document begins (and the
 *     end)
 *
 * Every number is checked, in one pass with a small buffer. Afterwards only the boundaries are kept, and only if they
 * are needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "data/structs.h"
#include "data/texts/sequences.h"

enum { HEADER_BYTES = 9 + 8 + 1 + 8 + 8, VERSION = 1, CHUNK = 512 }; /* a chunk is on the stack */
static const char magic[9] = "MMIDIDX\0";

/* By the number in the index; those without a name are no tokens. */
static const an_token_type *const types[] = {NULL,          &an_token_u8, &an_token_i8, &an_token_i16, &an_token_i32,
                                             &an_token_i64, NULL,         NULL,         &an_token_u16};
enum { TYPES = sizeof types / sizeof *types };

typedef struct {
    an_reader file;
    int64_t sequences, borders;
    int64_t lengths_at, offsets_at, borders_at; /* bytes of the file */
} index_file;

static an_status read_header(an_sequences *s, index_file *index, an_note note) {
    unsigned char header[HEADER_BYTES];
    int64_t version, bytes = HEADER_BYTES, part;
    const char *path = index->file.path;
    an_status status = an_reader_read(&index->file, 0, header, sizeof header, note);
    if (status != AN_OK) return status;
    if (memcmp(header, magic, sizeof magic) != 0)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: byte 0: this is not a Megatron index: it does not begin with MMIDIDX",
                       path);
    version = an_token_i64.decode(header + 9);
    if (version != VERSION)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: byte 9: the index has version %" PRId64 "; only version 1 is supported",
                       path, version);
    s->type = header[17] < TYPES ? types[header[17]] : NULL;
    if (!s->type)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: byte 17: the token type is %d; only the integer types 1 to 5 and 8 are supported", path,
                       header[17]);
    index->sequences = an_token_i64.decode(header + 18);
    index->borders = an_token_i64.decode(header + 26);
    index->lengths_at = HEADER_BYTES;
    if (index->sequences < 0 || index->borders < 1 || !an_multiply_i64(index->sequences, 4 + 8, &part) ||
        !an_add_i64(bytes, part, &bytes) || !an_multiply_i64(index->borders, 8, &part) ||
        !an_add_i64(bytes, part, &bytes) || bytes != index->file.size)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: byte 18: %" PRIu64 " sequences and %" PRIu64
                       " document boundaries do not match the file size of %" PRId64 " bytes",
                       path, (uint64_t)index->sequences, (uint64_t)index->borders, index->file.size);
    index->offsets_at = index->lengths_at + 4 * index->sequences;
    index->borders_at = index->offsets_at + 8 * index->sequences;
    return AN_OK;
}

/* Lengths and offsets must say the same: every sequence begins where the one before it ends, and the
 * last ends with the file. */
static an_status check_sequences(an_sequences *s, const index_file *index, an_note note) {
    unsigned char lengths[CHUNK * 4], offsets[CHUNK * 8];
    int64_t end = 0; /* bytes of the tokens so far */
    for (int64_t first = 0; first < index->sequences; first += CHUNK) {
        const int64_t left = index->sequences - first, n = left < CHUNK ? left : CHUNK;
        an_status status = an_reader_read(&index->file, index->lengths_at + first * 4, lengths, (size_t)n * 4, note);
        if (status == AN_OK)
            status = an_reader_read(&index->file, index->offsets_at + first * 8, offsets, (size_t)n * 8, note);
        if (status != AN_OK) return status;
        for (int64_t i = 0; i < n; i++) {
            const int64_t length = an_token_i32.decode(lengths + 4 * i), offset = an_token_i64.decode(offsets + 8 * i);
            if (length < 0)
                return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ": sequence %" PRId64 " has %" PRId64 " tokens",
                               index->file.path, index->lengths_at + (first + i) * 4, first + i, length);
            if (offset != end)
                return AN_NOTE(note, AN_ERR_PARSE,
                               "%s: byte %" PRId64 ": sequence %" PRId64 " begins at byte %" PRId64
                               ", but the one before it ends at %" PRId64,
                               index->file.path, index->offsets_at + (first + i) * 8, first + i, offset, end);
            end += length * (int64_t)s->type->width; /* at most 2^34 beyond a file's size: it fits */
            if (end > s->file.size)
                return AN_NOTE(note, AN_ERR_PARSE,
                               "%s: byte %" PRId64 ": sequence %" PRId64 " ends at byte %" PRId64
                               ", but the token file has %" PRId64 " bytes",
                               index->file.path, index->lengths_at + (first + i) * 4, first + i, end, s->file.size);
        }
    }
    if (end != s->file.size)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: byte %" PRId64 ": according to the index %s, the tokens end here, but the file has %" PRId64
                       " bytes",
                       s->path, end, index->file.path, s->file.size);
    s->tokens = end / (int64_t)s->type->width;
    return AN_OK;
}

/* The token at which a sequence begins: what was checked is read again, and so it is checked again. */
static an_status token_of(const an_sequences *s, const index_file *index, int64_t sequence, int64_t *token,
                          an_note note) {
    unsigned char bytes[8];
    an_status status = AN_OK;
    *token = s->tokens;
    if (sequence == index->sequences) return AN_OK;
    status = an_reader_read(&index->file, index->offsets_at + sequence * 8, bytes, sizeof bytes, note);
    *token = status == AN_OK ? an_token_i64.decode(bytes) / (int64_t)s->type->width : 0;
    return status;
}

static an_status check_border(const index_file *index, int64_t i, int64_t before, int64_t border, an_note note) {
    const int64_t minimum = i == index->borders - 1 ? index->sequences : before,
                  maximum = i == 0 ? 0 : index->sequences;
    if (border >= minimum && border <= maximum) return AN_OK;
    return AN_NOTE(note, AN_ERR_PARSE,
                   "%s: byte %" PRId64 ": document %" PRId64 " begins at sequence %" PRId64
                   ", but documents must be in order, from 0 to %" PRId64,
                   index->file.path, index->borders_at + i * 8, i, border, index->sequences);
}

static an_status check_borders(an_sequences *s, const index_file *index, bool keep, an_note note) {
    unsigned char chunk[CHUNK * 8];
    int64_t before = 0, token_before = 0;
    for (int64_t first = 0; first < index->borders; first += CHUNK) {
        const int64_t left = index->borders - first, n = left < CHUNK ? left : CHUNK;
        an_status status = an_reader_read(&index->file, index->borders_at + first * 8, chunk, (size_t)n * 8, note);
        for (int64_t i = 0; i < n && status == AN_OK; i++) {
            const int64_t border = an_token_i64.decode(chunk + 8 * i);
            int64_t token = 0;
            status = check_border(index, first + i, before, border, note);
            before = border;
            if (status == AN_OK && keep) {
                status = token_of(s, index, border, &token, note);
                if (status == AN_OK && token < token_before)
                    status =
                        AN_NOTE(note, AN_ERR_PARSE, "%s: the file changed while it was being read", index->file.path);
                s->borders[first + i] = token_before = token;
            }
        }
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

static an_status read_index(an_sequences *s, index_file *index, bool keep) {
    an_context *ctx = s->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    AN_TRY_RETURN(an_note_raise(ctx, read_header(s, index, note), note));
    AN_TRY_RETURN(an_note_raise(ctx, check_sequences(s, index, note), note));
    if (keep) {
        AN_TRY_RETURN(an_alloc(ctx, (void **)&s->borders, (size_t)index->borders, sizeof *s->borders));
        s->border_count = s->border_capacity = index->borders;
    }
    return an_note_raise(ctx, check_borders(s, index, keep, note), note);
}

static an_status path_with(an_arena *arena, const char *prefix, const char *end, const char **path) {
    const size_t bytes = strlen(prefix) + strlen(end) + 1;
    char *text = NULL;
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&text, bytes, 1));
    snprintf(text, bytes, "%s%s", prefix, end);
    *path = text;
    return AN_OK;
}

an_status an_dataset_create_megatron(an_dataset **dataset, an_context *ctx, const an_megatron_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_megatron_source own;
    const an_megatron_source *const source = &own;
    an_status status;
    an_sequences *s = NULL;
    index_file index = {.sequences = 0};
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const char *index_path, *path;
    *dataset = NULL;
    AN_TRY(an_megatron_source_read(ctx, &own, given));
    AN_TRY(an_sequences_create(&s, ctx, source->prefix, source->context));
    AN_TRY(path_with(&s->arena, source->prefix, ".bin", &path));
    AN_TRY(path_with(&s->arena, source->prefix, ".idx", &index_path));
    s->path = path;
    AN_TRY(an_note_raise(ctx, an_reader_open(&s->file, path, note), note));
    AN_TRY(an_note_raise(ctx, an_reader_open(&index.file, index_path, note), note));
    AN_TRY(read_index(s, &index, source->documents));
    s->documents = source->documents ? AN_DOCUMENTS_BORDERS : AN_DOCUMENTS_NONE;
    s->ignore_borders = source->ignore_borders;
    AN_TRY(an_sequences_dataset(dataset, s, source->begin, source->end, source->limit, true));
    an_reader_close(&index.file);
    return AN_OK;
fail:
    an_reader_close(&index.file);
    an_sequences_destroy(&s);
    return status;
}
