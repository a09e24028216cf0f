/* The tokenizer of a published model, and how conversations are written for it. A folder has files for
 * them, a GGUF file has keys. */
#include <inttypes.h>
#include <string.h>

#include "anneal/pretrained.h"
#include "base/guard.h"
#include "formats/gguf_keys.h"

/* What the keys say, until the tokenizer has copied it. */
typedef struct {
    an_context *ctx;
    const char *path;
    const an_gguf *file;
    an_arena arena;
    an_tokenizer_parts parts;
} reading;

/* A string that C can hold: absent keys leave *text as it is. */
static an_status get_text(reading *r, const char *name, const char **text) {
    an_context *ctx = r->ctx;
    const char *bytes = NULL;
    size_t length = 0;
    AN_TRY_RETURN(an_gguf_string(r->file, name, &bytes, &length));
    if (!bytes) return AN_OK;
    if (memchr(bytes, 0, length))
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: the key '%s' has a NUL in its text", r->path, name);
    return an_arena_string(&r->arena, text, bytes, length);
}

static an_status get_texts(reading *r, const char *name, const char *const **texts, int64_t *count) {
    an_context *ctx = r->ctx;
    an_gguf_cursor cursor;
    an_gguf_value value;
    const char **list = NULL;
    AN_TRY_RETURN(an_gguf_array(r->file, name, AN_GGUF_KIND_STRING, &cursor));
    *count = cursor.key ? (int64_t)an_gguf_key_elements(cursor.key) : 0;
    AN_TRY_RETURN(an_arena_alloc(&r->arena, (void **)&list, (size_t)*count + 1, sizeof *list));
    for (int64_t i = 0; i < *count && an_gguf_next(&cursor, &value); i++) {
        if (memchr(value.bytes, 0, value.length))
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: element %" PRId64 " of the key '%s' has a NUL in its text",
                            r->path, i, name);
        AN_TRY_RETURN(an_arena_string(&r->arena, &list[i], value.bytes, value.length));
    }
    *texts = list;
    return AN_OK;
}

static an_status get_types(reading *r) {
    static const char name[] = "tokenizer.ggml.token_type";
    an_context *ctx = r->ctx;
    an_gguf_cursor cursor;
    an_gguf_value value;
    int32_t *types = NULL;
    AN_TRY_RETURN(an_gguf_array(r->file, name, AN_GGUF_KIND_INTEGER, &cursor));
    if (!cursor.key) return AN_OK;
    if (an_gguf_key_elements(cursor.key) != (uint64_t)r->parts.token_count)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: there are %" PRId64 " tokens, but the key '%s' has %" PRIu64 " types",
                        r->path, r->parts.token_count, name, an_gguf_key_elements(cursor.key));
    AN_TRY_RETURN(an_arena_alloc(&r->arena, (void **)&types, (size_t)r->parts.token_count + 1, sizeof *types));
    for (int64_t i = 0; i < r->parts.token_count && an_gguf_next(&cursor, &value); i++)
        types[i] = value.integer >= 0 && value.integer <= INT32_MAX ? (int32_t)value.integer : -1;
    r->parts.types = types;
    return AN_OK;
}

static an_status get_special(reading *r, const char *name, int32_t *id) {
    an_context *ctx = r->ctx;
    int64_t value = -1;
    AN_TRY_RETURN(an_gguf_integer(r->file, name, &value));
    if (value >= r->parts.token_count)
        return AN_ERROR(ctx, AN_ERR_DAMAGED,
                        "%s: the key '%s' names token %" PRId64 ", but there are %" PRId64 " tokens", r->path, name,
                        value, r->parts.token_count);
    *id = value < 0 ? -1 : (int32_t)value;
    return AN_OK;
}

static an_status read_parts(reading *r) {
    an_context *ctx = r->ctx;
    an_tokenizer_parts *p = &r->parts;
    AN_TRY_RETURN(get_text(r, "tokenizer.ggml.model", &p->model));
    if (!p->model)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has no tokenizer: there is no key tokenizer.ggml.model", r->path);
    AN_TRY_RETURN(get_text(r, "tokenizer.ggml.pre", &p->pre));
    AN_TRY_RETURN(get_texts(r, "tokenizer.ggml.tokens", &p->tokens, &p->token_count));
    AN_TRY_RETURN(get_texts(r, "tokenizer.ggml.merges", &p->merges, &p->merge_count));
    AN_TRY_RETURN(get_types(r));
    AN_TRY_RETURN(get_special(r, "tokenizer.ggml.bos_token_id", &p->bos));
    AN_TRY_RETURN(get_special(r, "tokenizer.ggml.eos_token_id", &p->eos));
    AN_TRY_RETURN(get_special(r, "tokenizer.ggml.unknown_token_id", &p->unk));
    AN_TRY_RETURN(get_special(r, "tokenizer.ggml.padding_token_id", &p->pad));
    AN_TRY_RETURN(an_gguf_bool(r->file, "tokenizer.ggml.add_bos_token", &p->add_bos));
    return an_gguf_bool(r->file, "tokenizer.ggml.add_eos_token", &p->add_eos);
}

/* Memory is bounded by the file: nothing is copied that is not in it. */
static an_status open_gguf(an_tokenizer **tokenizer, an_context *ctx, const char *path) {
    an_status status;
    an_gguf *file = NULL;
    reading r = {.ctx = ctx, .path = path};
    an_arena_init(&r.arena, ctx);
    an_tokenizer_parts_init(&r.parts, sizeof r.parts);
    AN_TRY(an_gguf_open(&file, ctx, path));
    r.file = file;
    AN_TRY(read_parts(&r));
    status = an_tokenizer_create_parts(tokenizer, ctx, &r.parts);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s: %s", path, an_last_error(ctx));
fail:
    an_gguf_close(&file);
    an_arena_destroy(&r.arena);
    return status;
}

an_status an_pretrained_tokenizer(an_tokenizer **tokenizer, an_context *ctx, const char *path) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, tokenizer, path);
    *tokenizer = NULL;
    return an_gguf_is(path) ? open_gguf(tokenizer, ctx, path) : an_tokenizer_open(tokenizer, ctx, path);
}

static an_status open_chat(an_chat_format *format, an_context *ctx, const char *path,
                           char memory[AN_CHAT_SYSTEM_BYTES]) {
    static const char name[] = "tokenizer.chat_template";
    an_status status;
    an_gguf *file = NULL;
    const char *template = NULL;
    reading r = {.ctx = ctx, .path = path};
    an_arena_init(&r.arena, ctx);
    AN_TRY(an_gguf_open(&file, ctx, path));
    r.file = file;
    AN_TRY(get_text(&r, name, &template));
    AN_CHECK(ctx, template, AN_ERR_UNSUPPORTED, "%s: there is no chat template; choose one by its name", path);
    status = an_chat_recognize(format, ctx, template, memory);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s: %s", path, an_last_error(ctx));
fail:
    an_gguf_close(&file);
    an_arena_destroy(&r.arena);
    return status;
}

an_status an_pretrained_chat(an_chat_format *format, an_context *ctx, const char *path,
                             char memory[AN_CHAT_SYSTEM_BYTES]) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, format, path, memory);
    return an_gguf_is(path) ? open_chat(format, ctx, path, memory) : an_chat_open(format, ctx, path, memory);
}
