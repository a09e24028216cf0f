/* Writes tokenizer.json. */
#include <string.h>

#include "text/describe.h"

static void add_added(an_json_writer *j, const an_tokenizer_parts *p) {
    an_json_write_array(j, "added_tokens");
    for (int64_t i = 0; p->types && i < p->token_count; i++) {
        const bool special = p->types[i] == AN_TOKEN_CONTROL || p->types[i] == AN_TOKEN_UNKNOWN;
        if (!special && p->types[i] != AN_TOKEN_USER) continue;
        an_json_write_object(j, NULL);
        an_json_write_integer(j, "id", i);
        an_json_write_string(j, "content", p->tokens[i]);
        an_json_write_bool(j, "single_word", false);
        an_json_write_bool(j, "lstrip", false);
        an_json_write_bool(j, "rstrip", false);
        an_json_write_bool(j, "normalized", false);
        an_json_write_bool(j, "special", special);
        an_json_write_end(j);
    }
    an_json_write_end(j);
}

static void add_byte_level(an_json_writer *j, const char *key, bool regex) {
    an_json_write_object(j, key);
    an_json_write_string(j, "type", "ByteLevel");
    an_json_write_bool(j, "add_prefix_space", false);
    an_json_write_bool(j, "trim_offsets", true);
    an_json_write_bool(j, "use_regex", regex);
    an_json_write_end(j);
}

static void add_split(an_json_writer *j, const an_pre *pre) {
    an_json_write_object(j, NULL);
    an_json_write_string(j, "type", "Split");
    an_json_write_object(j, "pattern");
    an_json_write_string(j, "Regex", pre->pattern);
    an_json_write_end(j);
    an_json_write_string(j, "behavior", "Isolated");
    an_json_write_bool(j, "invert", false);
    an_json_write_end(j);
}

static void add_steps(an_json_writer *j, const an_pre *pre) {
    const bool own = pre->scanner != AN_SCANNER_GPT2; /* ByteLevel has GPT-2's pattern itself */
    if (pre->nfc) {
        an_json_write_object(j, "normalizer");
        an_json_write_string(j, "type", "NFC");
        an_json_write_end(j);
    } else {
        an_json_write_null(j, "normalizer");
    }
    an_json_write_object(j, "pre_tokenizer");
    an_json_write_string(j, "type", "Sequence");
    an_json_write_array(j, "pretokenizers");
    if (pre->digits) {
        an_json_write_object(j, NULL);
        an_json_write_string(j, "type", "Digits");
        an_json_write_bool(j, "individual_digits", true);
        an_json_write_end(j);
    }
    if (own) add_split(j, pre);
    add_byte_level(j, NULL, !own);
    an_json_write_end(j);
    an_json_write_end(j);
}

static void add_part(an_json_writer *j, const char *kind, const char *id, int type) {
    an_json_write_object(j, NULL);
    an_json_write_object(j, kind);
    an_json_write_string(j, "id", id);
    an_json_write_integer(j, "type_id", type);
    an_json_write_end(j);
    an_json_write_end(j);
}

static void add_around(an_json_writer *j, const char *begin, const char *end, bool pair) {
    an_json_write_array(j, pair ? "pair" : "single");
    for (int i = 0; i <= pair; i++) {
        if (begin && i == 0) add_part(j, "SpecialToken", begin, i);
        add_part(j, "Sequence", i ? "B" : "A", i);
        if (end) add_part(j, "SpecialToken", end, i);
    }
    an_json_write_end(j);
}

static void add_special(an_json_writer *j, const char *text, int32_t id) {
    an_json_write_object(j, text);
    an_json_write_string(j, "id", text);
    an_json_write_array(j, "ids");
    an_json_write_integer(j, NULL, id);
    an_json_write_end(j);
    an_json_write_array(j, "tokens");
    an_json_write_string(j, NULL, text);
    an_json_write_end(j);
    an_json_write_end(j);
}

static void add_template(an_json_writer *j, const an_tokenizer_parts *p) {
    const char *begin = p->add_bos && p->bos >= 0 ? p->tokens[p->bos] : NULL;
    const char *end = p->add_eos && p->eos >= 0 ? p->tokens[p->eos] : NULL;
    if (!begin && !end) {
        add_byte_level(j, "post_processor", true);
        return;
    }
    an_json_write_object(j, "post_processor");
    an_json_write_string(j, "type", "TemplateProcessing");
    add_around(j, begin, end, false);
    add_around(j, begin, end, true);
    an_json_write_object(j, "special_tokens");
    if (begin) add_special(j, begin, p->bos);
    if (end && (!begin || p->bos != p->eos)) add_special(j, end, p->eos);
    an_json_write_end(j);
    an_json_write_end(j);
}

static void add_model(an_json_writer *j, const an_tokenizer_parts *p, const an_pre *pre) {
    an_json_write_object(j, "model");
    an_json_write_string(j, "type", "BPE");
    an_json_write_null(j, "dropout");
    an_json_write_null(j, "unk_token");
    an_json_write_null(j, "continuing_subword_prefix");
    an_json_write_null(j, "end_of_word_suffix");
    an_json_write_bool(j, "fuse_unk", false);
    an_json_write_bool(j, "byte_fallback", false);
    an_json_write_bool(j, "ignore_merges", pre->ignore_merges);
    an_json_write_object(j, "vocab");
    for (int64_t i = 0; i < p->token_count; i++) an_json_write_integer(j, p->tokens[i], i);
    an_json_write_end(j);
    an_json_write_array(j, "merges");
    for (int64_t i = 0; i < p->merge_count; i++) an_json_write_string(j, NULL, p->merges[i]);
    an_json_write_end(j);
    an_json_write_end(j);
}

an_status an_tokenizer_write(an_text *text, const an_tokenizer_parts *parts) {
    const an_tokenizer_parts *p = parts;
    const an_pre *pre = an_pre_find(p->pre);
    if (strcmp(p->model, "gpt2") != 0 || !pre)
        return AN_ERROR(text->ctx, AN_ERR_UNSUPPORTED, "the tokenizer '%.40s' cannot be written as tokenizer.json",
                        p->model);
    an_json_writer json = an_text_json(text, AN_JSON_LINES), *j = &json;
    an_json_write_object(j, NULL);
    an_json_write_string(j, "version", "1.0");
    an_json_write_null(j, "truncation");
    an_json_write_null(j, "padding");
    add_added(j, p);
    add_steps(j, pre);
    add_template(j, p);
    add_byte_level(j, "decoder", true);
    add_model(j, p, pre);
    an_json_write_finish(j);
    return text->status;
}
