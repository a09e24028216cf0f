#include "text/describe.h"

#include <stdio.h>
#include <string.h>

#include "text/tokenizer.h"

/* ---- the pre-tokenizer ---- */

/* ByteLevel with the pattern in it, or a Split by the pattern before it. */
static bool splits_as(const an_tokenizer *t, const an_pre *pre) {
    const an_step *s = t->splitters.steps;
    size_t left = t->splitters.count;
    if (pre->digits) {
        if (left == 0 || s->kind != AN_STEP_DIGITS || s->behavior != AN_SPLIT_ISOLATED) return false;
        s++;
        left--;
    }
    if (left == 2) {
        if (s->kind != AN_STEP_SPLIT || s->behavior != AN_SPLIT_ISOLATED || s->invert) return false;
        if (s->matcher.scanner != pre->scanner) return false;
        return s[1].kind == AN_STEP_BYTE_LEVEL && !s[1].prefix_space && s[1].matcher.scanner == AN_SCANNER_NONE &&
               !s[1].matcher.code;
    }
    return left == 1 && s->kind == AN_STEP_BYTE_LEVEL && !s->prefix_space && s->matcher.scanner == pre->scanner;
}

static bool normalizes_as(const an_tokenizer *t, const an_pre *pre) {
    if (t->normalizers.count == 0) return !pre->nfc;
    return pre->nfc && t->normalizers.count == 1 && t->normalizers.steps[0].kind == AN_STEP_NFC;
}

static const an_pre *find_pre(const an_tokenizer *t) {
    const an_pre *pre;
    for (int i = 0; (pre = an_pre_at(i)); i++)
        if (t->ignore_merges == pre->ignore_merges && normalizes_as(t, pre) && splits_as(t, pre)) return pre;
    return NULL;
}

/* ---- tokens and merges ---- */

static an_status list_tokens(const an_tokenizer *t, an_arena *arena, an_tokenizer_parts *p) {
    const size_t count = t->vocabulary.count;
    const char **tokens = NULL;
    int32_t *types = NULL;
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&tokens, count + 1, sizeof *tokens));
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&types, count + 1, sizeof *types));
    for (size_t i = 0; i < count; i++) {
        const an_token *token = &t->vocabulary.tokens[i];
        char unused[32];
        types[i] = token->text ? AN_TOKEN_NORMAL : AN_TOKEN_UNUSED;
        const int length = snprintf(unused, sizeof unused, "[PAD%zu]", i);
        AN_TRY_RETURN(an_arena_string(arena, &tokens[i], token->text ? token->text : unused,
                                      token->text ? token->text_length : (size_t)length));
    }
    for (int stage = 0; stage < AN_ADDED_STAGES; stage++)
        for (size_t i = 0; i < t->added[stage].count; i++) {
            const an_added_token *added = &t->added[stage].tokens[i];
            types[added->id] = added->special ? AN_TOKEN_CONTROL : AN_TOKEN_USER;
        }
    p->tokens = tokens;
    p->types = types;
    p->token_count = (int64_t)count;
    return AN_OK;
}

/* The table of merges has them by pairs; here they are by rank again. */
static an_status list_merges(const an_tokenizer *t, an_arena *arena, an_tokenizer_parts *p) {
    const an_merges *merges = &t->vocabulary.merges;
    const an_merge **ranked = NULL;
    const char **texts = NULL;
    size_t ranks = 0;
    for (size_t i = 0; i < merges->count; i++)
        if (merges->slots[i].token != AN_NO_TOKEN && merges->slots[i].rank >= ranks) ranks = merges->slots[i].rank + 1;
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&ranked, ranks + 1, sizeof(const an_merge *)));
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&texts, ranks + 1, sizeof *texts));
    for (size_t i = 0; i < merges->count; i++)
        if (merges->slots[i].token != AN_NO_TOKEN) ranked[merges->slots[i].rank] = &merges->slots[i];
    for (size_t i = 0; i < ranks; i++) {
        if (!ranked[i]) continue; /* a pair that a later merge has too */
        const an_token *left = &t->vocabulary.tokens[ranked[i]->pair >> 32],
                       *right = &t->vocabulary.tokens[(uint32_t)ranked[i]->pair];
        char *text = NULL;
        AN_TRY_RETURN(an_arena_alloc(arena, (void **)&text, (size_t)left->text_length + right->text_length + 2, 1));
        memcpy(text, left->text, left->text_length);
        text[left->text_length] = ' ';
        memcpy(text + left->text_length + 1, right->text, right->text_length);
        texts[p->merge_count++] = text;
    }
    p->merges = texts;
    return AN_OK;
}

/* Whether the template has this token at its beginning or its end. */
static bool has_at(const an_template *t, size_t at, int32_t token) {
    return token >= 0 && t->count > 1 && t->parts[at].kind == AN_TEMPLATE_TOKEN && t->parts[at].token == token;
}

an_status an_tokenizer_describe(const an_tokenizer *tokenizer, an_arena *arena, an_tokenizer_parts *parts) {
    const an_tokenizer *t = tokenizer;
    an_context *ctx = arena->ctx;
    const an_pre *pre = t->model == AN_TEXT_BPE && t->byte_level ? find_pre(t) : NULL;
    an_tokenizer_parts_init(parts, sizeof *parts);
    if (!pre)
        return AN_ERROR(
            ctx, AN_ERR_UNSUPPORTED,
            "GGUF has names for four kinds of tokenizers: byte-level BPE that splits texts as GPT-2, SmolLM, "
            "Llama 3 or Qwen does; this is another");
    parts->model = "gpt2";
    parts->pre = pre->name;
    parts->bos = t->bos;
    parts->eos = t->eos;
    parts->unk = t->unk;
    parts->pad = t->pad;
    parts->add_bos = has_at(&t->single, 0, t->bos);
    parts->add_eos = t->single.count > 0 && has_at(&t->single, t->single.count - 1, t->eos);
    if (t->single.count > 1u + parts->add_bos + parts->add_eos)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "the tokenizer puts other tokens around a text than those for its beginning and end, which "
                        "GGUF cannot say");
    AN_TRY_RETURN(list_tokens(t, arena, parts));
    return list_merges(t, arena, parts);
}
