/* Tokenizers from the keys of a GGUF file, whose pre-tokenizers have names only. */
#include <string.h>

#include "base/text/utf8.h"
#include "text/describe.h"
#include "text/structs.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

enum { MOST_TOKENS = 1 << 24 };

/* ---- pre-tokenizers ---- */

static const an_pre pres[] = {
    {"gpt-2", AN_PATTERN_GPT2, AN_SCANNER_GPT2, false, false, false},
    {"smollm", AN_PATTERN_GPT2, AN_SCANNER_GPT2, true, false, false},
    {"llama-bpe", AN_PATTERN_LLAMA3, AN_SCANNER_LLAMA3, false, false, true},
    {"qwen2", AN_PATTERN_QWEN2, AN_SCANNER_QWEN2, false, true, false},
};

const an_pre *an_pre_at(int index) {
    return index >= 0 && (size_t)index < sizeof pres / sizeof *pres ? &pres[index] : NULL;
}

const an_pre *an_pre_find(const char *name) {
    for (int i = 0; an_pre_at(i); i++)
        if (!strcmp(pres[i].name, name ? name : "gpt-2")) return &pres[i];
    return NULL;
}

static an_status add_step(an_tokenizer *t, an_steps *steps, an_step step) {
    return an_steps_add(t->ctx, steps, &step);
}

static an_status set_byte_level(an_tokenizer *t, const char *name) {
    an_context *ctx = t->ctx;
    an_step split = {.kind = AN_STEP_BYTE_LEVEL, .behavior = AN_SPLIT_ISOLATED};
    const an_pre *pre = an_pre_find(name);
    char text[128];
    const an_note note = {text, sizeof text};
    if (!pre)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "the pre-tokenizer '%.40s' is not supported: gpt-2, smollm, llama-bpe and qwen2 are", name);
    t->byte_level = true;
    t->ignore_merges = pre->ignore_merges;
    if (pre->nfc) AN_TRY_RETURN(add_step(t, &t->normalizers, (an_step){.kind = AN_STEP_NFC}));
    if (pre->digits)
        AN_TRY_RETURN(add_step(t, &t->splitters, (an_step){.kind = AN_STEP_DIGITS, .behavior = AN_SPLIT_ISOLATED}));
    AN_TRY_RETURN(
        an_note_raise(ctx, an_matcher_compile(&split.matcher, pre->pattern, strlen(pre->pattern), true, note), note));
    AN_TRY_RETURN(add_step(t, &t->splitters, split));
    return add_step(t, &t->decoders, (an_step){.kind = AN_STEP_DECODE_BYTE_LEVEL});
}

static an_status set_bert(an_tokenizer *t) {
    enum { CHARACTERS = 100 };
    t->model = AN_TEXT_WORDPIECE;
    t->prefix = AN_BYTES("##");
    t->most_characters = CHARACTERS;
    AN_TRY_RETURN(add_step(
        t, &t->normalizers,
        (an_step){.kind = AN_STEP_BERT_NORMALIZER, .clean = true, .chinese = true, .accents = true, .lower = true}));
    AN_TRY_RETURN(add_step(t, &t->splitters, (an_step){.kind = AN_STEP_BERT_SPLIT}));
    return add_step(t, &t->decoders,
                    (an_step){.kind = AN_STEP_DECODE_WORDPIECE, .text = AN_BYTES("##"), .cleanup = true});
}

/* ---- tokens ---- */

/* GGUF marks the beginning of a word of WordPiece (U+2581), where vocabularies mark what continues one. */
static an_status put_wordpiece(an_tokenizer *t, int64_t id, const char *text) {
    static const char mark[] = "\xe2\x96\x81";
    const size_t length = strlen(text), before = sizeof mark - 1;
    char *copy = NULL;
    if (!strncmp(text, mark, before)) return an_tokenizer_put(t, id, text + before, length - before, MOST_TOKENS);
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&copy, length + 3, 1));
    copy[0] = copy[1] = '#';
    memcpy(copy + 2, text, length + 1);
    return an_tokenizer_put(t, id, copy, length + 2, MOST_TOKENS);
}

static an_status put_tokens(an_tokenizer *t, const an_tokenizer_parts *p, uint64_t *seed) {
    an_context *ctx = t->ctx;
    for (int64_t i = 0; i < p->token_count; i++) {
        const char *copy;
        const int32_t type = p->types ? p->types[i] : AN_TOKEN_NORMAL;
        if (!p->tokens[i] || !an_utf8_is_valid(p->tokens[i]))
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "token %lld is not valid UTF-8", (long long)i);
        const size_t length = strlen(p->tokens[i]);
        AN_TRY_RETURN(an_arena_string(&t->arena, &copy, p->tokens[i], length));
        *seed = an_text_hash(copy, length, *seed);
        const bool is_word = t->model == AN_TEXT_WORDPIECE && type == AN_TOKEN_NORMAL;
        AN_TRY_RETURN(is_word ? put_wordpiece(t, i, copy) : an_tokenizer_put(t, i, copy, length, MOST_TOKENS));
    }
    return AN_OK;
}

static an_status put_merges(an_tokenizer *t, const an_tokenizer_parts *p, uint64_t seed) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_merges_make(ctx, &t->vocabulary.merges, (size_t)p->merge_count, seed));
    for (int64_t i = 0; i < p->merge_count; i++) {
        const char *space = p->merges[i] && p->merges[i][0] ? strchr(p->merges[i] + 1, ' ') : NULL;
        if (!space)
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "merge %lld is not two texts with a space between", (long long)i + 1);
        const an_bytes left = {p->merges[i], (size_t)(space - p->merges[i])}, right = {space + 1, strlen(space + 1)};
        AN_TRY_RETURN(an_tokenizer_merge(t, left, right, (uint32_t)i));
    }
    return AN_OK;
}

/* Tokens that are found in a text as they are. */
static an_status finish(an_tokenizer *t, const an_tokenizer_parts *p) {
    an_context *ctx = t->ctx;
    an_status status;
    an_added_token *added = NULL;
    size_t count = 0;
    AN_TRY(an_alloc(ctx, (void **)&added, (size_t)p->token_count, sizeof *added));
    for (int64_t i = 0; i < p->token_count && p->types; i++) {
        const an_token *token = &t->vocabulary.tokens[i];
        const bool special = p->types[i] == AN_TOKEN_CONTROL || p->types[i] == AN_TOKEN_UNKNOWN;
        if ((special || p->types[i] == AN_TOKEN_USER) && token->text_length > 0)
            added[count++] =
                (an_added_token){.id = (int32_t)i, .content = {token->text, token->text_length}, .special = special};
    }
    AN_TRY(an_tokenizer_finish(t, added, count));
fail:
    an_release(ctx, (void **)&added, (size_t)p->token_count, sizeof *added);
    return status;
}

/* What is around a text. */
static an_status add_templates(an_tokenizer *t, const an_tokenizer_parts *p) {
    an_context *ctx = t->ctx;
    const bool bert = t->model == AN_TEXT_WORDPIECE, begin = (p->add_bos || bert) && p->bos >= 0;
    const bool end = (p->add_eos || bert) && p->eos >= 0;
    an_template *one = &t->single, *two = &t->pair;
    if (begin) AN_TRY_RETURN(an_template_add(ctx, one, AN_TEMPLATE_TOKEN, p->bos, 0));
    AN_TRY_RETURN(an_template_add(ctx, one, AN_TEMPLATE_FIRST, 0, 0));
    if (end) AN_TRY_RETURN(an_template_add(ctx, one, AN_TEMPLATE_TOKEN, p->eos, 0));
    if (begin) AN_TRY_RETURN(an_template_add(ctx, two, AN_TEMPLATE_TOKEN, p->bos, 0));
    AN_TRY_RETURN(an_template_add(ctx, two, AN_TEMPLATE_FIRST, 0, 0));
    if (end) AN_TRY_RETURN(an_template_add(ctx, two, AN_TEMPLATE_TOKEN, p->eos, 0));
    AN_TRY_RETURN(an_template_add(ctx, two, AN_TEMPLATE_SECOND, 0, 1));
    if (end) AN_TRY_RETURN(an_template_add(ctx, two, AN_TEMPLATE_TOKEN, p->eos, 1));
    return AN_OK;
}

static an_status check(an_context *ctx, const an_tokenizer_parts *p) {
    an_status status;
    const int32_t ids[] = {p->bos, p->eos, p->unk, p->pad};
    AN_CHECK(ctx, p->model && p->tokens && p->token_count > 0 && p->token_count <= MOST_TOKENS, AN_ERR_ARGUMENT,
             "a tokenizer has a model and 1 to 2^24 tokens");
    AN_CHECK(ctx, p->merge_count >= 0 && p->merge_count <= MOST_TOKENS && (p->merge_count == 0 || p->merges),
             AN_ERR_ARGUMENT, "a tokenizer has 0 to 2^24 merges");
    for (int i = 0; i < 4; i++)
        AN_CHECK(ctx, ids[i] >= -1 && ids[i] < p->token_count, AN_ERR_DAMAGED,
                 "the special token %d is not in the vocabulary", ids[i]);
    AN_CHECK(ctx, !strcmp(p->model, "gpt2") || !strcmp(p->model, "bert"), AN_ERR_UNSUPPORTED,
             "the tokenizer '%.40s' is not supported: gpt2 (byte-level BPE) and bert (WordPiece) are", p->model);
    return AN_OK;
fail:
    return status;
}

an_status an_tokenizer_create_parts(an_tokenizer **tokenizer, an_context *ctx, const an_tokenizer_parts *parts) {
    AN_NEED_IN(ctx, ctx, tokenizer, parts);
    an_tokenizer_parts p;
    an_status status;
    an_tokenizer *t = NULL;
    uint64_t seed = 0;
    *tokenizer = NULL;
    AN_TRY(an_tokenizer_parts_read(ctx, &p, parts));
    AN_TRY(check(ctx, &p));
    AN_TRY(an_tokenizer_begin(&t, ctx));
    if (!strcmp(p.model, "gpt2"))
        AN_TRY(set_byte_level(t, p.pre));
    else
        AN_TRY(set_bert(t));
    t->bos = p.bos;
    t->eos = p.eos;
    t->unk = p.unk;
    t->pad = p.pad;
    AN_TRY(put_tokens(t, &p, &seed));
    AN_TRY(an_tokenizer_index(t, seed));
    if (t->model == AN_TEXT_BPE) AN_TRY(put_merges(t, &p, seed));
    if (t->model == AN_TEXT_WORDPIECE) {
        AN_CHECK(ctx, p.unk >= 0, AN_ERR_DAMAGED, "a WordPiece tokenizer without an unknown token");
        t->model_unk = p.unk;
    }
    AN_TRY(add_templates(t, &p));
    AN_TRY(finish(t, &p));
    *tokenizer = t;
    return AN_OK;
fail:
    an_tokenizer_destroy(&t);
    return status;
}
