/* Keys of a GGUF file that is written, beside those of its architecture: where the model comes from, and its
 * tokenizer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "formats/gguf.h"
#include "interchange/publish.h"
#include "text/chat/template.h"
#include "text/describe.h"

static an_status copy_keys(an_context *ctx, const char *path, const char *begin, const char *const *others,
                           an_gguf_keys *keys) {
    an_gguf *file = NULL;
    AN_TRY_RETURN(an_gguf_open(&file, ctx, path));
    for (size_t i = 0; i < an_gguf_key_count(file); i++) {
        const an_gguf_key *key = an_gguf_key_at(file, i);
        const char *name = an_gguf_key_name(file, key);
        int other = 0;
        if (strncmp(name, begin, strlen(begin)) != 0) continue;
        while (others[other] && strcmp(name, others[other]) != 0) other++;
        if (!others[other]) an_gguf_copy_key(keys, file, key);
    }
    an_gguf_close(&file);
    return keys->bytes.status;
}

an_status an_publish_general_keys(const an_publication *p, const char *file, an_gguf_keys *keys) {
    static const char *const own[] = {"general.architecture", "general.file_type", "general.quantization_version",
                                      "general.alignment", NULL};
    an_context *ctx = p->ctx;
    const char *slash = strrchr(file, '/');
    if (p->from && an_gguf_is(p->from)) {
        AN_TRY_RETURN(copy_keys(ctx, p->from, "general.", own, keys));
    } else {
        an_gguf_put_text(keys, "general.type", "model");
        an_gguf_put_text(keys, "general.name", slash ? slash + 1 : file);
    }
    return keys->bytes.status;
}

/* ---- the tokenizer ---- */

/* The model may have more rows than there are tokens, and llama.cpp wants as many. */
static an_status put_tokens(const an_publication *p, const an_tokenizer_parts *parts, an_gguf_keys *keys) {
    an_context *ctx = p->ctx;
    int64_t rows;
    AN_TRY_RETURN(an_description_count(p->description, AN_FACT_VOCABULARY, "size of the vocabulary", &rows));
    if (parts->token_count > rows)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: has %" PRId64 " tokens, but the model has only %" PRId64 ", so it is not its tokenizer",
                        p->tokenizer, parts->token_count, rows);
    an_gguf_put_texts(keys, "tokenizer.ggml.tokens", (uint64_t)rows);
    for (int64_t i = 0; i < rows; i++) {
        char unused[32];
        snprintf(unused, sizeof unused, "[PAD%" PRId64 "]", i);
        const char *text = i < parts->token_count ? parts->tokens[i] : unused;
        an_gguf_add_text(keys, text, strlen(text));
    }
    an_gguf_put_integers(keys, "tokenizer.ggml.token_type", (uint64_t)rows);
    for (int64_t i = 0; i < rows; i++)
        an_gguf_add_integer(keys, i < parts->token_count ? parts->types[i] : AN_TOKEN_UNUSED);
    an_gguf_put_texts(keys, "tokenizer.ggml.merges", (uint64_t)parts->merge_count);
    for (int64_t i = 0; i < parts->merge_count; i++) an_gguf_add_text(keys, parts->merges[i], strlen(parts->merges[i]));
    return keys->bytes.status;
}

static void put_id(an_gguf_keys *keys, const char *name, int32_t id) {
    if (id >= 0) an_gguf_put_u32(keys, name, (uint32_t)id);
}

static an_status put_template(const an_publication *p, an_gguf_keys *keys) {
    an_context *ctx = p->ctx;
    char file[AN_FILE_PATH];
    an_text template;
    an_text_init(&template, ctx);
    const an_status status = an_chat_template_read(ctx, p->tokenizer, file, &template);
    if (status == AN_OK && template.bytes) an_gguf_put_text(keys, "tokenizer.chat_template", template.bytes);
    an_text_destroy(&template);
    return status;
}

static an_status make_keys(const an_publication *p, an_gguf_keys *keys) {
    an_status status;
    an_context *ctx = p->ctx;
    an_tokenizer *tokenizer = NULL;
    an_tokenizer_parts parts;
    an_arena arena;
    an_arena_init(&arena, ctx);
    AN_TRY(an_tokenizer_open(&tokenizer, ctx, p->tokenizer));
    status = an_tokenizer_describe(tokenizer, &arena, &parts);
    if (status != AN_OK)
        AN_FAIL(ctx, status, "%s: %s; --to hf copies the tokenizer as it is", p->tokenizer, an_last_error(ctx));
    an_gguf_put_text(keys, "tokenizer.ggml.model", parts.model);
    an_gguf_put_text(keys, "tokenizer.ggml.pre", parts.pre);
    AN_TRY(put_tokens(p, &parts, keys));
    put_id(keys, "tokenizer.ggml.bos_token_id", parts.bos);
    put_id(keys, "tokenizer.ggml.eos_token_id", parts.eos);
    put_id(keys, "tokenizer.ggml.unknown_token_id", parts.unk);
    put_id(keys, "tokenizer.ggml.padding_token_id", parts.pad);
    an_gguf_put_bool(keys, "tokenizer.ggml.add_bos_token", parts.add_bos);
    an_gguf_put_bool(keys, "tokenizer.ggml.add_eos_token", parts.add_eos);
    AN_TRY(put_template(p, keys));
    AN_TRY(keys->bytes.status);
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    an_arena_destroy(&arena);
    return status;
}

an_status an_publish_tokenizer_keys(const an_publication *p, an_gguf_keys *keys) {
    static const char *const none[] = {NULL};
    if (!p->tokenizer) {
        an_gguf_put_text(keys, "tokenizer.ggml.model", "no_vocab"); /* texts cannot be read, but tokens can */
        return keys->bytes.status;
    }
    if (an_gguf_is(p->tokenizer)) return copy_keys(p->ctx, p->tokenizer, "tokenizer.", none, keys);
    return make_keys(p, keys);
}
