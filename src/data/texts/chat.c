/* Samples for fine-tuning a language model. All records are tokenized when the dataset is made, which packing needs to
 * know their lengths; they are held in memory, five bytes a token. */
#include "data/texts/chat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "data/dataset.h"
#include "data/structs.h"
#include "data/texts/pack.h"
#include "text/structs.h"

typedef struct {
    an_context *ctx;
    const char *path;
    an_arena arena;
    an_pieces pieces;
    an_packing packing;
    int64_t context;
    int32_t padding;
    bool packed, pairs;
    char notice[640];
} chat;

enum { TOKENS, TARGETS, DOCUMENTS, PREFERRED, FIELDS };
enum { CHOSEN_CLASS = 1 }; /* of a pair: so answers that are equally likely are not counted as right */

/* ---- reading ---- */

static void write_sample(const chat *c, int64_t sample, int32_t *tokens, int32_t *targets, int32_t *documents) {
    const an_tokenized *t = &c->pieces.tokenized;
    int64_t at = 0;
    int32_t document = 0;
    for (int64_t i = c->packing.begins[sample]; i < c->packing.begins[sample + 1]; i++, document++) {
        const an_piece *piece = &c->pieces.pieces[c->packing.order[i]];
        for (int64_t k = piece->begin; k + 1 < piece->begin + piece->length; k++, at++) {
            tokens[at] = t->tokens[k];
            targets[at] = t->learned[k + 1] ? t->tokens[k + 1] : AN_TARGET_IGNORED;
            if (documents) documents[at] = document;
        }
    }
    for (; at < c->context; at++) { /* what is left is a document of its own, without targets */
        tokens[at] = c->padding;
        targets[at] = AN_TARGET_IGNORED;
        if (documents) documents[at] = document;
    }
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const chat *c = user;
    (void)message, (void)message_capacity;
    for (int64_t i = 0; i < n && c->pairs; i++) ((int32_t *)fields[PREFERRED])[i] = CHOSEN_CLASS;
    for (int64_t i = 0; i < n; i++)
        write_sample(c, indices[i], (int32_t *)fields[TOKENS] + i * c->context,
                     (int32_t *)fields[TARGETS] + i * c->context,
                     c->packed ? (int32_t *)fields[DOCUMENTS] + i * c->context : NULL);
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const chat *c = user;
    int64_t i = c->packing.begins[index];
    (void)field;
    for (; i + 1 < c->packing.begins[index + 1]; i++) {
        const int64_t length = c->pieces.pieces[c->packing.order[i]].length - 1;
        if (element < length) break;
        element -= length;
    }
    an_note_write((an_note){place, place_capacity}, "%s: record %" PRId64, c->path,
                  c->pieces.pieces[c->packing.order[i]].record + 1);
}

static void close_chat(void *user) {
    chat *c = user;
    an_context *ctx = c->ctx;
    an_packing_destroy(&c->packing);
    an_pieces_destroy(&c->pieces);
    an_arena_destroy(&c->arena);
    an_release(ctx, (void **)&c, 1, sizeof *c);
}

/* ---- making one ---- */

static an_status check_source(an_context *ctx, const an_chat_source *s) {
    an_status status;
    AN_CHECK(ctx, s->tokenizer, AN_ERR_ARGUMENT, "the tokenizer is NULL");
    AN_CHECK(ctx, s->context > 0 && s->context <= AN_MOST_CONTEXT, AN_ERR_ARGUMENT,
             "the context is %" PRId64 " tokens; it must be from 1 to %d", s->context, AN_MOST_CONTEXT);
    AN_CHECK(ctx, !s->pairs || (s->packed && !s->prompts && s->context > 1), AN_ERR_ARGUMENT,
             "pairs of answers need a context of at least 2 tokens, packed samples, and prompts that are not learned");
    return AN_OK;
fail:
    return status;
}

/* A template whose tokens the tokenizer does not have would become plain text. */
static an_status check_template(an_context *ctx, const an_chat_source *s) {
    for (int i = 0; s->format; i++) {
        const char *token = an_chat_token(s->format->type, i);
        if (!token) break;
        if (an_tokenizer_id(s->tokenizer, token, strlen(token)) < 0)
            return AN_ERROR(
                ctx, AN_ERR_ARGUMENT,
                "the tokenizer has no token '%s', which the chat template %s needs; choose another template", token,
                an_chat_template_name((int)s->format->type));
    }
    return AN_OK;
}

static an_status pack(chat *c) {
    an_status status;
    an_context *ctx = c->ctx;
    const size_t count = c->pieces.count;
    int32_t *lengths = NULL;
    if (!c->packed || c->pairs) return an_packing_create_equal(&c->packing, ctx, (int64_t)count, c->pairs ? 2 : 1);
    AN_TRY(an_alloc(ctx, (void **)&lengths, count, sizeof *lengths));
    for (size_t i = 0; i < count; i++) lengths[i] = c->pieces.pieces[i].length - 1;
    AN_TRY(an_packing_create(&c->packing, ctx, lengths, (int64_t)count, (int32_t)c->context));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&lengths, count, sizeof *lengths);
    return status;
}

static double percent(int64_t part, int64_t all) {
    return all > 0 ? 100 * (double)part / (double)all : 0;
}

/* What users should know of: records that lost tokens, or gave none. */
static void write_notice(chat *c) {
    const an_pieces *p = &c->pieces;
    char cut[160] = "", left_out[160] = "";
    if (p->cut == 0 && p->left_out == 0) return;
    if (p->cut > 0)
        snprintf(cut, sizeof cut,
                 "%" PRId64 " (%.3g%%) are longer than %" PRId64
                 " tokens and were cut, so %.3g%% of all tokens are not used",
                 p->cut, percent(p->cut, p->records), c->context, percent(p->cut_tokens, p->all_tokens));
    if (p->left_out > 0)
        snprintf(left_out, sizeof left_out,
                 "%" PRId64 " have nothing to learn within %" PRId64 " tokens and were left out", p->left_out,
                 c->context);
    snprintf(c->notice, sizeof c->notice, "%.180s: of %" PRId64 " records, %s%s%s", c->path, p->records, cut,
             *cut && *left_out ? "; " : "", left_out);
}

static an_status make_dataset(an_dataset **dataset, chat *c) {
    static const char *const names[FIELDS] = {"tokens", "targets", "documents", "preferred"};
    an_context *ctx = c->ctx;
    an_field fields[FIELDS];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    for (int i = 0; i < FIELDS; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = names[i];
        fields[i].dtype = AN_DTYPE_I32;
        fields[i].ndims = 1;
        fields[i].dims[0] = c->context;
        fields[i].limit = i == DOCUMENTS ? c->context + 1 : c->pieces.tokenized.info.count;
        fields[i].target = i == TARGETS;
    }
    record.count = c->packing.samples;
    fields[PREFERRED].ndims = 0;
    fields[PREFERRED].limit = CHOSEN_CLASS + 1;
    record.field_count = c->pairs ? FIELDS : c->packed ? PREFERRED : DOCUMENTS;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_chat;
    record.user = c;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    if (*c->notice) (*dataset)->notice = c->notice;
    return AN_OK;
}

an_status an_dataset_create_chat(an_dataset **dataset, an_context *ctx, const an_chat_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_chat_source own;
    an_chat_format format;
    an_status status;
    chat *c = NULL;
    an_lines lines = {.first = 0};
    *dataset = NULL;
    AN_TRY(an_chat_source_read(ctx, &own, given));
    AN_TRY(check_source(ctx, &own));
    if (own.format) {
        AN_TRY(an_chat_format_read(ctx, &format, own.format));
        own.format = &format;
    }
    AN_TRY(an_alloc(ctx, (void **)&c, 1, sizeof *c));
    c->ctx = ctx;
    c->context = own.context;
    c->packed = own.packed;
    c->pairs = own.pairs;
    an_arena_init(&c->arena, ctx);
    AN_TRY(an_lines_open(&lines, ctx, own.path, own.begin, own.end));
    AN_TRY(an_arena_string(&c->arena, &c->path, own.path, strlen(own.path)));
    AN_TRY(check_template(ctx, &own));
    AN_TRY(an_pieces_read(&c->pieces, ctx, &own, &lines));
    AN_TRY(pack(c));
    const an_tokenizer_info *info = &c->pieces.tokenized.info;
    c->padding = info->pad >= 0 ? info->pad : info->eos >= 0 ? info->eos : 0;
    write_notice(c);
    AN_TRY(make_dataset(dataset, c));
    an_lines_close(&lines);
    return AN_OK;
fail:
    if (lines.table.ctx) an_lines_close(&lines);
    if (c) close_chat(c);
    return status;
}
