/* Sentences with classes, for BERT. All are tokenized when the dataset is made, and held in memory, four bytes a
 * token. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "anneal/text.h"
#include "base/guard.h"
#include "base/text/json_message.h"
#include "data/dataset.h"
#include "data/structs.h"
#include "data/tables/cells.h"
#include "data/tables/encoding.h"
#include "data/texts/lines.h"

enum { TOKENS, TYPES, MASK, TARGETS, FIELDS };

typedef struct {
    int64_t begin; /* among all tokens */
    int32_t length;
    int32_t first; /* tokens of the first text and what is before it: their type is 0, that of the others 1 */
    int32_t label;
} sentence;

typedef struct {
    an_context *ctx;
    const char *path;
    an_arena arena;
    int32_t *tokens;
    size_t token_count, token_capacity;
    sentence *sentences;
    size_t count, capacity;
    int64_t first_record, cut, context;
    int32_t padding;
    bool has_targets;
    an_name_set set; /* of classes, while they are being collected */
    an_name_list names;
    int64_t classes;
    an_encoding *encoding;
    const an_dataset *like;
    char notice[640];
} sentences;

/* ---- reading samples ---- */

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const sentences *s = user;
    (void)message, (void)message_capacity;
    for (int64_t i = 0; i < n; i++) {
        const sentence *one = &s->sentences[indices[i]];
        int32_t *tokens = (int32_t *)fields[TOKENS] + i * s->context,
                *types = (int32_t *)fields[TYPES] + i * s->context;
        int32_t *mask = (int32_t *)fields[MASK] + i * s->context;
        for (int64_t k = 0; k < s->context; k++) {
            const bool is_token = k < one->length;
            tokens[k] = is_token ? s->tokens[one->begin + k] : s->padding;
            types[k] = is_token && k >= one->first;
            mask[k] = is_token;
        }
        if (s->has_targets) ((int32_t *)fields[TARGETS])[i] = one->label;
    }
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const sentences *s = user;
    (void)field, (void)element;
    an_note_write((an_note){place, place_capacity}, "%s: record %" PRId64, s->path, s->first_record + index + 1);
}

static an_status read_cells(void *user, an_cells *cells) {
    const sentences *s = user;
    return an_jsonl_read_cells(cells, s->path, s->first_record);
}

static int32_t class_at(const void *user, int64_t index) {
    const sentences *s = user;
    return s->sentences[index].label;
}

static void close_sentences(void *user) {
    sentences *s = user;
    an_context *ctx = s->ctx;
    an_release(ctx, (void **)&s->tokens, s->token_capacity, sizeof *s->tokens);
    an_release(ctx, (void **)&s->sentences, s->capacity, sizeof *s->sentences);
    an_name_set_destroy(&s->set, ctx);
    an_encoding_destroy(&s->encoding);
    an_arena_destroy(&s->arena);
    an_release(ctx, (void **)&s, 1, sizeof *s);
}

/* ---- records ---- */

typedef struct {
    an_json_string text, pair, name; /* name: of the class */
    bool has_label;
    int64_t number; /* of the class, if it has no name */
    size_t label_at;
} members;

static bool read_label(an_json *json, members *m) {
    const bool is_name = an_json_peek(json) == '"';
    m->label_at = json->at;
    if (m->has_label) return an_json_refuse(json, json->at, "'label' appears twice");
    m->has_label = true;
    return is_name ? an_json_string_value(json, &m->name) : an_json_integer(json, &m->number);
}

static void read_members(an_json *json, members *m, bool has_targets) {
    an_json_string key;
    *m = (members){.has_label = false};
    if (!an_json_object(json)) return;
    while (an_json_member(json, &key))
        if (!strcmp(key.bytes, "text"))
            an_json_string_once(json, &m->text, "'text' is one text");
        else if (!strcmp(key.bytes, "text_pair"))
            an_json_string_once(json, &m->pair, "'text_pair' is one text");
        else if (!strcmp(key.bytes, "label") && has_targets)
            read_label(json, m);
        else
            an_json_skip(json);
    an_json_end(json);
    if (!json->problem && !m->text.bytes) an_json_refuse(json, 0, "a record needs 'text'");
    if (!json->problem && has_targets && !m->has_label) an_json_refuse(json, 0, "a record needs 'label', its class");
}

/* The number of the class; a name that is new gets the next one, and all are numbered anew when they are known. */
static an_status find_label(sentences *s, an_lines *lines, int64_t record, const members *m, int32_t *label) {
    const bool named = m->name.bytes != NULL, have_names = s->like ? s->names.count > 0 : s->set.count > 0;
    if ((s->like || s->count > 0) && named != have_names)
        return an_lines_refuse(lines, record, m->label_at, "labels are all names, or all numbers", "");
    if (!named) {
        if (m->number != AN_TARGET_IGNORED && (m->number < 0 || m->number >= INT32_MAX))
            return an_lines_refuse(lines, record, m->label_at, "this is not a class: classes are 0, 1, 2, …", "");
        *label = (int32_t)m->number;
        if (m->number >= s->classes) s->classes = m->number + 1;
        return AN_OK;
    }
    if (s->like) {
        const int64_t found = an_name_list_find(&s->names, m->name.bytes, m->name.length);
        *label = (int32_t)found;
        return found >= 0 ? AN_OK
                          : an_lines_refuse(lines, record, m->label_at, "the training data has no class of this name",
                                            m->name.bytes);
    }
    if (s->set.count > AN_MOST_CLASSES)
        return an_lines_refuse(lines, record, m->label_at, "there are more than 10000 classes", "");
    if (m->name.length > AN_NAME_BYTES)
        return an_lines_refuse(lines, record, m->label_at, "the name of a class has more than 1000 bytes", "");
    return an_name_set_add(&s->set, &s->arena, m->name.bytes, m->name.length, label);
}

/* ---- tokens ---- */

static an_status encode(an_context *ctx, an_encoder *encoder, const members *m, bool pair, bool special,
                        const int32_t **tokens, int64_t *count) {
    an_encode_options options;
    an_encode_options_init(&options, sizeof options);
    options.special = special;
    if (pair) {
        options.pair = m->pair.bytes;
        options.pair_length = m->pair.length;
    }
    const an_status status = an_encoder_run(encoder, m->text.bytes, m->text.length, &options, tokens, count);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", an_last_error(NULL));
}

/* Takes the end of the longer text away until both fit, and of the second where they are as long. */
static void cut_texts(int64_t *lengths, int64_t maximum) {
    while (lengths[0] + lengths[1] > maximum && lengths[0] + lengths[1] > 0) lengths[lengths[0] > lengths[1] ? 0 : 1]--;
}

/* A text is between special tokens: before + text + between + pair + after. Types tell where the second part begins. */
static an_status add_tokens(sentences *s, an_encoder *encoder, const members *m, sentence *one) {
    an_context *ctx = s->ctx;
    const int32_t *tokens, *types;
    int64_t count, lengths[2] = {0, 0}, whole[2];
    members second = {.text = m->pair};
    AN_TRY_RETURN(encode(ctx, encoder, m, false, false, &tokens, &lengths[0]));
    if (m->pair.bytes) AN_TRY_RETURN(encode(ctx, encoder, &second, false, false, &tokens, &lengths[1]));
    AN_TRY_RETURN(encode(ctx, encoder, m, m->pair.bytes != NULL, true, &tokens, &count));
    types = an_encoder_types(encoder);
    memcpy(whole, lengths, sizeof whole);
    const int64_t around = count - lengths[0] - lengths[1];
    int64_t before = 0, types_at = count;
    for (int64_t i = count; i-- > 0 && types[i] == 1;) types_at = i;
    /* [CLS] text [SEP] pair [SEP]: as many special tokens follow each text, one if there is one text */
    const int64_t after = m->pair.bytes ? count - types_at - lengths[1] : around > 0;
    before = around - after * (m->pair.bytes ? 2 : 1);
    if (before < 0 || after < 0 || around >= s->context)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: the tokenizer puts %" PRId64 " tokens around a text in an order that is not supported, or "
                        "samples of %" PRId64 " tokens have no room for them",
                        s->path, around, s->context);
    cut_texts(lengths, s->context - around);
    s->cut += lengths[0] + lengths[1] < whole[0] + whole[1];
    const size_t needed = s->token_count + (size_t)(around + lengths[0] + lengths[1]);
    AN_TRY_RETURN(an_grow(ctx, (void **)&s->tokens, &s->token_capacity, needed, sizeof *s->tokens));
    int32_t *to = s->tokens + s->token_count;
    *one = (sentence){.begin = (int64_t)s->token_count, .length = (int32_t)(around + lengths[0] + lengths[1])};
    one->first = one->length;
    for (int64_t i = 0; i < before + lengths[0]; i++) *to++ = tokens[i];
    for (int64_t i = 0; i < after; i++) *to++ = tokens[before + whole[0] + i];
    if (m->pair.bytes) {
        one->first = (int32_t)(before + lengths[0] + after);
        for (int64_t i = 0; i < lengths[1]; i++) *to++ = tokens[before + whole[0] + after + i];
        for (int64_t i = 0; i < after; i++) *to++ = tokens[count - after + i];
    }
    s->token_count = needed;
    return AN_OK;
}

static an_status read_record(sentences *s, an_lines *lines, an_encoder *encoder, int64_t record) {
    an_context *ctx = s->ctx;
    an_json json;
    members m;
    sentence one;
    int32_t label = 0;
    AN_TRY_RETURN(an_lines_read(lines, record, &json));
    read_members(&json, &m, s->has_targets);
    if (json.problem) return an_lines_refuse(lines, record, json.at, json.problem, "");
    if (s->has_targets) AN_TRY_RETURN(find_label(s, lines, record, &m, &label));
    AN_TRY_RETURN(add_tokens(s, encoder, &m, &one));
    one.label = label;
    AN_TRY_RETURN(an_grow(ctx, (void **)&s->sentences, &s->capacity, s->count + 1, sizeof *s->sentences));
    s->sentences[s->count++] = one;
    return AN_OK;
}

/* ---- making one ---- */

static an_status number_classes(sentences *s) {
    an_status status;
    an_context *ctx = s->ctx;
    int32_t *numbers = NULL;
    const size_t count = s->set.count;
    if (count == 0) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&numbers, count, sizeof *numbers));
    AN_TRY(an_name_set_finish(&s->set, &s->arena, &s->names, numbers));
    for (size_t i = 0; i < s->count; i++) s->sentences[i].label = numbers[s->sentences[i].label];
    AN_TRY(an_encoding_of_classes(&s->encoding, ctx, "label", s->names.texts, s->names.count));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&numbers, count, sizeof *numbers);
    return status;
}

/* Those of another dataset, which outlives this one. */
static an_status take_names(sentences *s) {
    s->names.count = s->classes = s->like->class_count;
    AN_TRY_RETURN(an_arena_alloc(&s->arena, (void **)&s->names.texts, (size_t)s->names.count, sizeof *s->names.texts));
    for (int64_t i = 0; i < s->names.count; i++) s->names.texts[i] = s->like->class_names[i];
    return AN_OK;
}

static an_status read_records(sentences *s, const an_sentence_source *source, an_lines *lines) {
    an_status status;
    an_encoder *encoder = NULL;
    AN_TRY(an_encoder_create(&encoder, source->tokenizer));
    for (int64_t i = lines->first; i < lines->last; i++) AN_TRY(read_record(s, lines, encoder, i));
    AN_TRY(number_classes(s));
    if (s->names.count > 0) s->classes = s->names.count;
    int64_t longest = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->sentences[i].length > longest) longest = s->sentences[i].length;
    if (!source->padded) s->context = longest;
    if (s->cut > 0)
        snprintf(s->notice, sizeof s->notice,
                 "%.200s: %" PRId64 " of %zu records (%.3g%%) are longer than %" PRId64 " tokens and were cut", s->path,
                 s->cut, s->count, 100 * (double)s->cut / (double)s->count, source->context);
    status = AN_OK;
fail:
    an_encoder_destroy(&encoder);
    return status;
}

static an_status make_dataset(an_dataset **dataset, sentences *s, int64_t vocabulary) {
    static const char *const names[FIELDS] = {"tokens", "token_types", "mask", "targets"};
    const int64_t limits[FIELDS] = {vocabulary, 2, 2, s->classes};
    an_context *ctx = s->ctx;
    an_field fields[FIELDS];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    for (int i = 0; i < FIELDS; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = names[i];
        fields[i].dtype = AN_DTYPE_I32;
        fields[i].ndims = i < TARGETS;
        fields[i].dims[0] = s->context;
        fields[i].limit = limits[i];
        fields[i].target = i == TARGETS;
    }
    record.count = (int64_t)s->count;
    record.field_count = s->has_targets ? FIELDS : TARGETS;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_sentences;
    record.user = s;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    if (*s->notice) (*dataset)->notice = s->notice;
    (*dataset)->read_cells = read_cells;
    (*dataset)->class_names = s->names.texts;
    (*dataset)->class_count = s->names.count;
    (*dataset)->encoding = s->like ? s->like->encoding : s->encoding;
    if (s->has_targets) (*dataset)->class_at = class_at;
    return AN_OK;
}

an_status an_dataset_create_sentences(an_dataset **dataset, an_context *ctx, const an_sentence_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_sentence_source own;
    an_status status;
    sentences *s = NULL;
    an_lines lines = {.first = 0};
    an_tokenizer_info info;
    *dataset = NULL;
    an_tokenizer_info_init(&info, sizeof info);
    AN_TRY(an_sentence_source_read(ctx, &own, given));
    AN_CHECK(ctx, own.tokenizer, AN_ERR_ARGUMENT, "the tokenizer is NULL");
    AN_CHECK(ctx, own.context > 0 && own.context <= AN_MOST_CONTEXT, AN_ERR_ARGUMENT,
             "the context is %" PRId64 " tokens; it must be from 1 to %d", own.context, AN_MOST_CONTEXT);
    AN_TRY(an_tokenizer_info_get(own.tokenizer, &info));
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->context = own.context;
    s->has_targets = own.has_targets;
    s->like = own.like;
    s->padding = info.pad >= 0 ? info.pad : 0;
    an_arena_init(&s->arena, ctx);
    if (own.like) AN_TRY(take_names(s));
    AN_TRY(an_lines_open(&lines, ctx, own.path, own.begin, own.end));
    AN_TRY(an_arena_string(&s->arena, &s->path, own.path, strlen(own.path)));
    s->first_record = lines.first;
    AN_TRY(read_records(s, &own, &lines));
    AN_TRY(make_dataset(dataset, s, info.count));
    an_lines_close(&lines);
    return AN_OK;
fail:
    if (lines.table.ctx) an_lines_close(&lines);
    if (s) close_sentences(s);
    return status;
}
