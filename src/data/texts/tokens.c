/* Files that contain only tokens, and llm.c's, which have a header of 256 numbers: a magic number, the version, the
 * number of tokens. */
#include <inttypes.h>

#include "base/guard.h"
#include "data/structs.h"
#include "data/texts/sequences.h"

enum { HEADER_BYTES = 256 * 4, HEADER_USED = 3 * 4 };

typedef struct {
    int64_t magic, version;
    const an_token_type *type;
} header_form;

static const header_form forms[] = {{20240520, 1, &an_token_u16}, {20240801, 7, &an_token_u32}};
enum { FORMS = sizeof forms / sizeof *forms };

static an_status find_header(an_sequences *s, an_note note) {
    unsigned char header[HEADER_USED];
    const header_form *form = NULL;
    int64_t numbers[3], bytes;
    an_status status;
    if (s->file.size < HEADER_USED) return AN_OK;
    status = an_reader_read(&s->file, 0, header, sizeof header, note);
    if (status != AN_OK) return status;
    for (int i = 0; i < 3; i++) numbers[i] = an_token_i32.decode(header + 4 * i);
    for (int i = 0; i < FORMS; i++)
        if (forms[i].magic == numbers[0]) form = &forms[i];
    if (!form) return AN_OK;
    if (form->version != numbers[1])
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: byte 4: version %" PRId64 " of llm.c's token format is not supported; only version %" PRId64
                       " is",
                       s->path, numbers[1], form->version);
    bytes = HEADER_BYTES + numbers[2] * (int64_t)form->type->width; /* 34 bits at most */
    if (numbers[2] < 0 || bytes != s->file.size)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: byte 8: the header announces %" PRId64 " tokens of %s, so the file should have %" PRId64
                       " bytes, but it has %" PRId64,
                       s->path, numbers[2], form->type->name, bytes, s->file.size);
    s->type = form->type;
    s->offset = HEADER_BYTES;
    s->tokens = numbers[2];
    return AN_OK;
}

static an_status find_tokens(an_sequences *s, an_token_format format, an_note note) {
    an_status status = an_reader_open(&s->file, s->path, note);
    if (status == AN_OK && format == AN_TOKENS_AUTO) status = find_header(s, note);
    if (status != AN_OK || s->type) return status;
    s->type = format == AN_TOKENS_U32 ? &an_token_u32 : &an_token_u16;
    s->tokens = s->file.size / (int64_t)s->type->width;
    if (s->file.size % (int64_t)s->type->width != 0)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ": the file ends in the middle of a token of %s",
                       s->path, s->file.size, s->type->name);
    return AN_OK;
}

an_status an_dataset_create_tokens(an_dataset **dataset, an_context *ctx, const an_token_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_token_source own;
    const an_token_source *const source = &own;
    an_status status;
    an_sequences *s = NULL;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    *dataset = NULL;
    AN_TRY(an_token_source_read(ctx, &own, given));
    AN_CHECK(ctx, (unsigned)source->format <= AN_TOKENS_U32, AN_ERR_ARGUMENT,
             "format is %d, which is not a value of an_token_format", (int)source->format);
    AN_TRY(an_sequences_create(&s, ctx, source->path, source->context));
    AN_TRY(an_note_raise(ctx, find_tokens(s, source->format, note), note));
    s->documents = source->documents ? AN_DOCUMENTS_END_TOKEN : AN_DOCUMENTS_NONE;
    s->end_token = source->end_token;
    s->ignore_borders = source->ignore_borders;
    AN_TRY(an_sequences_dataset(dataset, s, source->begin, source->end, source->limit, true));
    return AN_OK;
fail:
    an_sequences_destroy(&s);
    return status;
}
