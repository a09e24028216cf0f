/* Normalizers, pre-tokenizers, decoders and post-processors of a tokenizer.json. The members of each are collected
 * first, as its type may stand anywhere among them; a table says which members a type has. */
#include <string.h>

#include "text/read.h"

typedef enum member {
    MEMBER_TYPE,
    MEMBER_STEPS, /* of a Sequence */
    MEMBER_PATTERN,
    MEMBER_BEHAVIOR,
    MEMBER_INVERT,
    MEMBER_INDIVIDUAL,
    MEMBER_PREFIX_SPACE,
    MEMBER_TRIM,
    MEMBER_REGEX,
    MEMBER_CONTENT,
    MEMBER_PREPEND,
    MEMBER_LEFT,
    MEMBER_RIGHT,
    MEMBER_CLEAN,
    MEMBER_CHINESE,
    MEMBER_ACCENTS,
    MEMBER_LOWER,
    MEMBER_PREFIX,
    MEMBER_CLEANUP,
    MEMBER_START,
    MEMBER_STOP,
    MEMBER_SINGLE,
    MEMBER_PAIR,
    MEMBER_TOKENS,
    MEMBER_SEP,
    MEMBER_CLS,
    MEMBERS
} member;

static const struct {
    const char *name;
    member member;
} names[] = {
    {"type", MEMBER_TYPE},
    {"normalizers", MEMBER_STEPS},
    {"pretokenizers", MEMBER_STEPS},
    {"decoders", MEMBER_STEPS},
    {"processors", MEMBER_STEPS},
    {"pattern", MEMBER_PATTERN},
    {"behavior", MEMBER_BEHAVIOR},
    {"invert", MEMBER_INVERT},
    {"individual_digits", MEMBER_INDIVIDUAL},
    {"add_prefix_space", MEMBER_PREFIX_SPACE},
    {"trim_offsets", MEMBER_TRIM},
    {"use_regex", MEMBER_REGEX},
    {"content", MEMBER_CONTENT},
    {"prepend", MEMBER_PREPEND},
    {"strip_left", MEMBER_LEFT},
    {"strip_right", MEMBER_RIGHT},
    {"clean_text", MEMBER_CLEAN},
    {"handle_chinese_chars", MEMBER_CHINESE},
    {"strip_accents", MEMBER_ACCENTS},
    {"lowercase", MEMBER_LOWER},
    {"prefix", MEMBER_PREFIX},
    {"cleanup", MEMBER_CLEANUP},
    {"start", MEMBER_START},
    {"stop", MEMBER_STOP},
    {"single", MEMBER_SINGLE},
    {"pair", MEMBER_PAIR},
    {"special_tokens", MEMBER_TOKENS},
    {"sep", MEMBER_SEP},
    {"cls", MEMBER_CLS},
};

#define HAS(name) (1u << MEMBER_##name)

typedef enum special { PLAIN, SEQUENCE, TEMPLATE, BERT, ROBERTA, NOTHING } special;

static const struct type {
    an_step_role role;
    const char *name;
    an_step_kind kind;
    unsigned members;  /* that it may have */
    unsigned required; /* of these */
    special special;
} types[] = {
    {AN_ROLE_NORMALIZER, "Sequence", 0, HAS(STEPS), HAS(STEPS), SEQUENCE},
    {AN_ROLE_NORMALIZER, "NFC", AN_STEP_NFC, 0, 0, PLAIN},
    {AN_ROLE_NORMALIZER, "NFD", AN_STEP_NFD, 0, 0, PLAIN},
    {AN_ROLE_NORMALIZER, "NFKC", AN_STEP_NFKC, 0, 0, PLAIN},
    {AN_ROLE_NORMALIZER, "NFKD", AN_STEP_NFKD, 0, 0, PLAIN},
    {AN_ROLE_NORMALIZER, "Lowercase", AN_STEP_LOWERCASE, 0, 0, PLAIN},
    {AN_ROLE_NORMALIZER, "StripAccents", AN_STEP_STRIP_ACCENTS, 0, 0, PLAIN},
    {AN_ROLE_NORMALIZER, "Strip", AN_STEP_STRIP, HAS(LEFT) | HAS(RIGHT), HAS(LEFT) | HAS(RIGHT), PLAIN},
    {AN_ROLE_NORMALIZER, "Prepend", AN_STEP_PREPEND, HAS(PREPEND), HAS(PREPEND), PLAIN},
    {AN_ROLE_NORMALIZER, "Replace", AN_STEP_REPLACE, HAS(PATTERN) | HAS(CONTENT), HAS(PATTERN) | HAS(CONTENT), PLAIN},
    {AN_ROLE_NORMALIZER, "BertNormalizer", AN_STEP_BERT_NORMALIZER,
     HAS(CLEAN) | HAS(CHINESE) | HAS(ACCENTS) | HAS(LOWER), 0, PLAIN},
    {AN_ROLE_SPLITTER, "Sequence", 0, HAS(STEPS), HAS(STEPS), SEQUENCE},
    {AN_ROLE_SPLITTER, "ByteLevel", AN_STEP_BYTE_LEVEL, HAS(PREFIX_SPACE) | HAS(TRIM) | HAS(REGEX), 0, PLAIN},
    {AN_ROLE_SPLITTER, "Split", AN_STEP_SPLIT, HAS(PATTERN) | HAS(BEHAVIOR) | HAS(INVERT), HAS(PATTERN) | HAS(BEHAVIOR),
     PLAIN},
    {AN_ROLE_SPLITTER, "Digits", AN_STEP_DIGITS, HAS(INDIVIDUAL), 0, PLAIN},
    {AN_ROLE_SPLITTER, "Punctuation", AN_STEP_PUNCTUATION, HAS(BEHAVIOR), 0, PLAIN},
    {AN_ROLE_SPLITTER, "Whitespace", AN_STEP_WHITESPACE, 0, 0, PLAIN},
    {AN_ROLE_SPLITTER, "WhitespaceSplit", AN_STEP_WHITESPACE_SPLIT, 0, 0, PLAIN},
    {AN_ROLE_SPLITTER, "BertPreTokenizer", AN_STEP_BERT_SPLIT, 0, 0, PLAIN},
    {AN_ROLE_DECODER, "Sequence", 0, HAS(STEPS), HAS(STEPS), SEQUENCE},
    {AN_ROLE_DECODER, "ByteLevel", AN_STEP_DECODE_BYTE_LEVEL, HAS(PREFIX_SPACE) | HAS(TRIM) | HAS(REGEX), 0, PLAIN},
    {AN_ROLE_DECODER, "WordPiece", AN_STEP_DECODE_WORDPIECE, HAS(PREFIX) | HAS(CLEANUP), HAS(PREFIX), PLAIN},
    {AN_ROLE_DECODER, "Replace", AN_STEP_DECODE_REPLACE, HAS(PATTERN) | HAS(CONTENT), HAS(PATTERN) | HAS(CONTENT),
     PLAIN},
    {AN_ROLE_DECODER, "ByteFallback", AN_STEP_DECODE_BYTES, 0, 0, PLAIN},
    {AN_ROLE_DECODER, "Fuse", AN_STEP_DECODE_FUSE, 0, 0, PLAIN},
    {AN_ROLE_DECODER, "Strip", AN_STEP_DECODE_STRIP, HAS(CONTENT) | HAS(START) | HAS(STOP), HAS(CONTENT), PLAIN},
    {AN_ROLE_PROCESSOR, "Sequence", 0, HAS(STEPS), HAS(STEPS), SEQUENCE},
    {AN_ROLE_PROCESSOR, "ByteLevel", 0, HAS(PREFIX_SPACE) | HAS(TRIM) | HAS(REGEX), 0, NOTHING},
    {AN_ROLE_PROCESSOR, "TemplateProcessing", 0, HAS(SINGLE) | HAS(PAIR) | HAS(TOKENS), HAS(SINGLE) | HAS(TOKENS),
     TEMPLATE},
    {AN_ROLE_PROCESSOR, "BertProcessing", 0, HAS(SEP) | HAS(CLS), HAS(SEP) | HAS(CLS), BERT},
    {AN_ROLE_PROCESSOR, "RobertaProcessing", 0, HAS(SEP) | HAS(CLS) | HAS(PREFIX_SPACE) | HAS(TRIM),
     HAS(SEP) | HAS(CLS), ROBERTA},
};

static const char *const role_names[] = {"normalizer", "pre-tokenizer", "decoder", "post-processor"};

enum { MOST_PARTS = 64, MOST_SPECIALS = 64, MOST_IDS = 16 };

/* A part of a template before the ids of its tokens are known. */
typedef struct named_part {
    an_template_kind kind;
    an_json_string name;
    int32_t type;
} named_part;

typedef struct named_token {
    an_json_string name;
    int32_t ids[MOST_IDS];
    int count;
} named_token;

/* One step as it is written. */
typedef struct written {
    unsigned seen;
    an_json_string type, pattern, content;
    bool is_regex;
    bool regex, prefix_space, accents_given;
    an_step step;
    named_part parts[2][MOST_PARTS]; /* single, pair */
    int part_counts[2];
    named_token tokens[MOST_SPECIALS];
    int token_count;
    int32_t sep, cls;
} written;

/* ---- members ---- */

static bool read_pattern(an_text_reader *r, written *w) {
    an_json *j = &r->json;
    an_json_string key;
    int count = 0;
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &key)) {
        w->is_regex = an_read_is(key, "Regex");
        if (!w->is_regex && !an_read_is(key, "String"))
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "patterns of the kind '%.40s' are not supported", key.bytes);
        if (!an_json_string_value(j, &w->pattern)) return false;
        count++;
    }
    return count == 1 || j->problem || an_read_refuse(r, AN_ERR_DAMAGED, "a pattern is one String or one Regex");
}

static bool read_behavior(an_text_reader *r, written *w) {
    static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                            "Contiguous"};
    an_json_string value;
    if (!an_json_string_value(&r->json, &value)) return false;
    for (int i = 0; i < 5; i++)
        if (an_read_is(value, behaviors[i])) return w->step.behavior = (an_split_behavior)i, true;
    return an_read_refuse(r, AN_ERR_UNSUPPORTED, "the behavior '%.40s' is not supported", value.bytes);
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}} or {"Sequence": {"id": "A", "type_id": 0}} */
static bool read_part(an_text_reader *r, named_part *part) {
    an_json *j = &r->json;
    an_json_string kind, key;
    int64_t type = 0;
    int count = 0;
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &kind)) {
        const bool is_token = an_read_is(kind, "SpecialToken");
        if (!is_token && !an_read_is(kind, "Sequence"))
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a template has '%.40s', which is not supported", kind.bytes);
        if (!an_json_object(j)) return false;
        while (an_json_member(j, &key)) {
            if (an_read_is(key, "id") ? !an_json_string_value(j, &part->name)
                                      : !an_read_is(key, "type_id") || !an_json_count(j, &type))
                return j->problem ? false : an_read_refuse(r, AN_ERR_UNSUPPORTED, "a template has '%.40s'", key.bytes);
        }
        if (!is_token && part->name.bytes && !an_read_is(part->name, "A") && !an_read_is(part->name, "B"))
            return an_read_refuse(r, AN_ERR_DAMAGED, "a template has the text '%.40s', but texts are A and B",
                                  part->name.bytes);
        part->kind = is_token                      ? AN_TEMPLATE_TOKEN
                     : an_read_is(part->name, "B") ? AN_TEMPLATE_SECOND
                                                   : AN_TEMPLATE_FIRST;
        count++;
    }
    part->type = (int32_t)type;
    if (j->problem) return false;
    return (count == 1 && part->name.bytes && type <= INT32_MAX) ||
           an_read_refuse(r, AN_ERR_DAMAGED, "a part of a template has no id, or a type that is too large");
}

static bool read_parts(an_text_reader *r, written *w, int which) {
    an_json *j = &r->json;
    if (!an_json_array(j)) return false;
    while (an_json_element(j)) {
        if (w->part_counts[which] == MOST_PARTS)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a template has more than %d parts", MOST_PARTS);
        named_part *part = &w->parts[which][w->part_counts[which]++];
        *part = (named_part){.type = 0};
        if (!read_part(r, part)) return false;
    }
    return !j->problem;
}

static bool read_ids(an_text_reader *r, named_token *token) {
    an_json *j = &r->json;
    if (!an_json_array(j)) return false;
    while (an_json_element(j)) {
        int64_t id;
        if (!an_json_count(j, &id)) return false;
        if (token->count == MOST_IDS || id > INT32_MAX)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED,
                                  "a special token of a template has too many ids, or one that is too large");
        token->ids[token->count++] = (int32_t)id;
    }
    return !j->problem;
}

static bool read_tokens(an_text_reader *r, written *w) {
    an_json *j = &r->json;
    an_json_string name, key;
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &name)) {
        if (w->token_count == MOST_SPECIALS)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a template has more than %d special tokens", MOST_SPECIALS);
        named_token *token = &w->tokens[w->token_count++];
        *token = (named_token){.name = name};
        if (!an_json_object(j)) return false;
        while (an_json_member(j, &key))
            if (an_read_is(key, "ids") ? !read_ids(r, token) : !an_json_skip(j)) return false;
    }
    return !j->problem;
}

/* ["[SEP]", 102] */
static bool read_token_pair(an_text_reader *r, int32_t *token) {
    an_json *j = &r->json;
    an_json_string text;
    int64_t id = -1;
    int count = 0;
    if (!an_json_array(j)) return false;
    for (; an_json_element(j); count++)
        if (count == 0 ? !an_json_string_value(j, &text) : !an_json_count(j, &id)) return false;
    *token = (int32_t)id;
    return !j->problem && ((count == 2 && id >= 0 && id <= INT32_MAX) ||
                           an_read_refuse(r, AN_ERR_DAMAGED, "sep and cls are a text and an id"));
}

static bool read_member(an_text_reader *r, an_step_role role, written *w, member m) {
    an_json *j = &r->json;
    bool ignored;
    switch (m) {
    case MEMBER_TYPE: return an_json_string_value(j, &w->type);
    case MEMBER_STEPS:
        if (!an_json_array(j)) return false;
        while (an_json_element(j))
            if (!an_read_steps(r, role)) return false;
        return !j->problem;
    case MEMBER_PATTERN: return read_pattern(r, w);
    case MEMBER_BEHAVIOR: return read_behavior(r, w);
    case MEMBER_INVERT: return an_json_bool(j, &w->step.invert);
    case MEMBER_INDIVIDUAL: return an_json_bool(j, &w->step.individual);
    case MEMBER_PREFIX_SPACE: return an_json_bool(j, &w->prefix_space);
    case MEMBER_TRIM: return an_json_bool(j, &ignored); /* of places in the text, which are not reported */
    case MEMBER_REGEX: return an_json_bool(j, &w->regex);
    case MEMBER_CONTENT:
    case MEMBER_PREPEND:
    case MEMBER_PREFIX: return an_json_string_value(j, &w->content);
    case MEMBER_LEFT: return an_json_bool(j, &w->step.left);
    case MEMBER_RIGHT: return an_json_bool(j, &w->step.right);
    case MEMBER_CLEAN: return an_json_bool(j, &w->step.clean);
    case MEMBER_CHINESE: return an_json_bool(j, &w->step.chinese);
    case MEMBER_ACCENTS:
        if (an_json_peek(j) == 'n') return an_json_skip(j); /* as lowercase */
        return w->accents_given = true, an_json_bool(j, &w->step.accents);
    case MEMBER_LOWER: return an_json_bool(j, &w->step.lower);
    case MEMBER_CLEANUP: return an_json_bool(j, &w->step.cleanup);
    case MEMBER_START: return an_json_count(j, &w->step.start);
    case MEMBER_STOP: return an_json_count(j, &w->step.stop);
    case MEMBER_SINGLE: return read_parts(r, w, 0);
    case MEMBER_PAIR: return read_parts(r, w, 1);
    case MEMBER_TOKENS: return read_tokens(r, w);
    case MEMBER_SEP: return read_token_pair(r, &w->sep);
    default: return read_token_pair(r, &w->cls);
    }
}

/* ---- steps ---- */

static bool add_part(an_text_reader *r, an_template *to, an_template_kind kind, int32_t token, int32_t type) {
    const an_status status = an_template_add(r->tokenizer->ctx, to, kind, token, type);
    return status == AN_OK || an_read_failed(r, status);
}

static bool add_named(an_text_reader *r, const written *w, const named_part *part, an_template *to) {
    if (part->kind != AN_TEMPLATE_TOKEN) return add_part(r, to, part->kind, 0, part->type);
    for (int i = 0; i < w->token_count; i++) {
        const named_token *token = &w->tokens[i];
        if (strcmp(token->name.bytes, part->name.bytes) != 0) continue;
        for (int k = 0; k < token->count; k++)
            if (!add_part(r, to, AN_TEMPLATE_TOKEN, token->ids[k], part->type)) return false;
        return true;
    }
    return an_read_refuse(r, AN_ERR_DAMAGED, "the special token '%.40s' of a template is not described",
                          part->name.bytes);
}

static bool add_template(an_text_reader *r, const written *w) {
    an_template *const to[] = {&r->tokenizer->single, &r->tokenizer->pair};
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < w->part_counts[which]; i++)
            if (!add_named(r, w, &w->parts[which][i], to[which])) return false;
    return true;
}

/* [CLS] A [SEP], and with a second text B [SEP], of type 1; Roberta has two [SEP] between, and no types. */
static bool add_bert(an_text_reader *r, const written *w, bool roberta) {
    an_template *one = &r->tokenizer->single, *two = &r->tokenizer->pair;
    const int32_t second = roberta ? 0 : 1;
    return add_part(r, one, AN_TEMPLATE_TOKEN, w->cls, 0) && add_part(r, one, AN_TEMPLATE_FIRST, 0, 0) &&
           add_part(r, one, AN_TEMPLATE_TOKEN, w->sep, 0) && add_part(r, two, AN_TEMPLATE_TOKEN, w->cls, 0) &&
           add_part(r, two, AN_TEMPLATE_FIRST, 0, 0) && add_part(r, two, AN_TEMPLATE_TOKEN, w->sep, 0) &&
           (!roberta || add_part(r, two, AN_TEMPLATE_TOKEN, w->sep, 0)) &&
           add_part(r, two, AN_TEMPLATE_SECOND, 0, second) && add_part(r, two, AN_TEMPLATE_TOKEN, w->sep, second);
}

static bool compile(an_text_reader *r, written *w, const char *pattern, size_t length, bool scanned) {
    char text[AN_READ_PROBLEM];
    const an_status status =
        an_matcher_compile(&w->step.matcher, pattern, length, scanned, (an_note){text, sizeof text});
    return status == AN_OK || an_read_refuse(r, status, "%s", text);
}

static bool add_plain(an_text_reader *r, an_step_role role, written *w, const struct type *type) {
    enum { MOST_STRING = 4096, MOST_STEPS = 256, MOST_RATIO = 32 };
    an_tokenizer *t = r->tokenizer;
    an_steps *const lists[] = {&t->normalizers, &t->splitters, &t->decoders};
    an_step *s = &w->step;
    s->kind = type->kind;
    s->text = (an_bytes){w->content.bytes, w->content.length};
    if (lists[role]->count == MOST_STEPS)
        return an_read_refuse(r, AN_ERR_UNSUPPORTED, "there are more than %d %ss", MOST_STEPS, role_names[role]);
    if (role == AN_ROLE_SPLITTER && t->byte_level) /* even a second one: it encodes again what the first has encoded */
        return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a pre-tokenizer after ByteLevel is not supported");
    if (type->members & HAS(PATTERN)) {
        if (w->is_regex && role == AN_ROLE_DECODER)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a decoder that replaces a Regex is not supported");
        if (w->pattern.length > MOST_STRING || (w->pattern.length == 0))
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a pattern is empty, or has more than %d bytes", MOST_STRING);
        if (role == AN_ROLE_DECODER && w->content.length > MOST_RATIO * w->pattern.length)
            return an_read_refuse(
                r, AN_ERR_UNSUPPORTED,
                "a decoder replaces %zu bytes by %zu: the text of a token can become %d times as long",
                w->pattern.length, w->content.length, MOST_RATIO);
        s->matcher = an_matcher_of_string(w->pattern.bytes, w->pattern.length);
        if (w->is_regex && !compile(r, w, w->pattern.bytes, w->pattern.length, true)) return false;
    }
    if (s->kind == AN_STEP_BYTE_LEVEL) {
        s->prefix_space = w->prefix_space;
        s->behavior = AN_SPLIT_ISOLATED;
        if (w->regex && !compile(r, w, AN_PATTERN_GPT2, sizeof AN_PATTERN_GPT2 - 1, true)) return false;
        t->byte_level = true;
    }
    if (s->kind == AN_STEP_DIGITS) s->behavior = s->individual ? AN_SPLIT_ISOLATED : AN_SPLIT_CONTIGUOUS;
    if (s->kind == AN_STEP_WHITESPACE_SPLIT) s->behavior = AN_SPLIT_REMOVED;
    if (s->kind == AN_STEP_BERT_NORMALIZER && !w->accents_given) s->accents = s->lower;
    if (s->kind == AN_STEP_DECODE_STRIP && s->stop > 0)
        return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a decoder that strips the end of a text is not supported");
    const an_status status = an_steps_add(t->ctx, lists[role], s);
    if (status) an_matcher_release(&s->matcher);
    return status == AN_OK || an_read_failed(r, status);
}

static bool add_step(an_text_reader *r, an_step_role role, written *w) {
    const struct type *type = NULL;
    if (!(w->seen & HAS(TYPE))) return an_read_refuse(r, AN_ERR_DAMAGED, "a %s has no type", role_names[role]);
    for (size_t i = 0; i < sizeof types / sizeof *types && !type; i++)
        if (types[i].role == role && an_read_is(w->type, types[i].name)) type = &types[i];
    if (!type)
        return an_read_refuse(r, AN_ERR_UNSUPPORTED, "the %s '%.40s' is not supported", role_names[role],
                              w->type.bytes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const unsigned bit = 1u << names[i].member;
        if (w->seen & bit & ~type->members & ~HAS(TYPE))
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "the %s '%s' has '%s', which is not supported",
                                  role_names[role], type->name, names[i].name);
        if (type->required & bit & ~w->seen)
            return an_read_refuse(r, AN_ERR_DAMAGED, "the %s '%s' has no '%s'", role_names[role], type->name,
                                  names[i].name);
    }
    switch (type->special) {
    case SEQUENCE:
    case NOTHING: return true;
    case TEMPLATE: return add_template(r, w);
    case BERT: return add_bert(r, w, false);
    case ROBERTA: return add_bert(r, w, true);
    default: return add_plain(r, role, w, type);
    }
}

bool an_read_steps(an_text_reader *r, an_step_role role) {
    an_json *j = &r->json;
    an_json_string key;
    written *w = NULL;
    if (an_json_peek(j) == 'n') return an_json_skip(j); /* null: none */
    if (!an_json_object(j)) return false;
    const an_status status = an_arena_alloc(&r->tokenizer->arena, (void **)&w, 1, sizeof *w);
    if (status) return an_read_failed(r, status);
    w->regex = w->prefix_space = true;
    w->step = (an_step){.behavior = AN_SPLIT_ISOLATED, .clean = true, .chinese = true, .lower = true, .cleanup = true};
    while (an_json_member(j, &key)) {
        size_t i = 0;
        while (i < sizeof names / sizeof *names && !an_read_is(key, names[i].name)) i++;
        if (i == sizeof names / sizeof *names)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "a %s has '%.40s', which is not supported", role_names[role],
                                  key.bytes);
        const unsigned bit = 1u << names[i].member;
        if (w->seen & bit) return an_read_refuse(r, AN_ERR_DAMAGED, "'%s' appears twice", names[i].name);
        w->seen |= bit;
        if (!read_member(r, role, w, names[i].member)) return false;
    }
    return !j->problem && add_step(r, role, w);
}
