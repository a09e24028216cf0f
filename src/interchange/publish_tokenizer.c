/* The tokenizer of a model that is written: its files are copied from a folder, or made from the keys of a GGUF
 * file. */
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/files/reader.h"
#include "base/integer.h"
#include "base/status.h"
#include "formats/gguf.h"
#include "interchange/export_file.h"
#include "interchange/publish.h"
#include "text/describe.h"

/* ---- copies ---- */

an_status an_publish_copy(an_context *ctx, const char *from, const char *name, const char *to) {
    enum { PIECE = 1 << 16 };
    an_status status;
    char source[AN_FILE_PATH], path[AN_FILE_PATH], message[AN_MESSAGE_BYTES] = "", *piece = NULL;
    const an_note note = {message, sizeof message};
    an_reader file = {0};
    an_export_file f = {0};
    AN_CHECK(ctx, an_path_join(source, from, name) && an_path_join(path, to, name), AN_ERR_ARGUMENT,
             "the path is too long: %.100s…", to);
    if (!an_file_exists(source)) return AN_OK;
    AN_TRY(an_alloc_raw(ctx, (void **)&piece, PIECE));
    AN_TRY(an_note_raise(ctx, an_reader_open(&file, source, note), note));
    AN_TRY(an_export_file_open(&f, ctx, path));
    for (int64_t at = 0; at < file.size; at += PIECE) {
        const size_t bytes = (size_t)an_smaller(PIECE, file.size - at);
        AN_TRY(an_note_raise(ctx, an_reader_read(&file, at, piece, bytes, note), note));
        AN_TRY(an_export_file_bytes(&f, piece, bytes));
    }
    AN_TRY(an_export_file_finish(&f));
    status = AN_OK;
fail:
    an_export_file_close(&f);
    an_reader_close(&file);
    an_release(ctx, (void **)&piece, PIECE, 1);
    return status;
}

/* The folder of a tokenizer.json, or the folder itself. */
static bool folder_of(const char *path, char folder[AN_FILE_PATH]) {
    struct stat what;
    const char *slash = strrchr(path, '/');
    if (stat(path, &what) == 0 && S_ISDIR(what.st_mode)) return an_path_join(folder, path, ".");
    if (!slash) return an_path_join(folder, ".", ".");
    const size_t length = (size_t)(slash - path) + 1;
    if (length >= AN_FILE_PATH) return false;
    memcpy(folder, path, length);
    folder[length] = 0;
    return true;
}

static an_status copy_files(const an_publication *p, const char *to) {
    static const char *const files[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        NULL};
    an_context *ctx = p->ctx;
    char folder[AN_FILE_PATH];
    if (!folder_of(p->tokenizer, folder))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", p->tokenizer);
    for (int i = 0; files[i]; i++) AN_TRY_RETURN(an_publish_copy(ctx, folder, files[i], to));
    return AN_OK;
}

/* ---- from keys ---- */

static an_status put_file(an_context *ctx, const char *folder, const char *name, const an_text *text) {
    char path[AN_FILE_PATH], message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    AN_TRY_RETURN(text->status);
    if (!an_path_join(path, folder, name))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    return an_note_raise(ctx, an_file_replace(path, text->bytes, text->length, note), note);
}

static void write_token(an_json_writer *j, const char *key, const an_tokenizer_parts *parts, int32_t id) {
    if (id >= 0) an_json_write_string(j, key, parts->tokens[id]);
}

static an_status write_config(const an_publication *p, const char *folder, const an_tokenizer_parts *parts,
                              const char *template) {
    an_context *ctx = p->ctx;
    an_text text;
    an_text_init(&text, ctx);
    an_json_writer json = an_text_json(&text, AN_JSON_LINES), *j = &json;
    an_json_write_object(j, NULL);
    an_json_write_string(j, "tokenizer_class", "PreTrainedTokenizerFast");
    write_token(j, "bos_token", parts, parts->bos);
    write_token(j, "eos_token", parts, parts->eos);
    write_token(j, "unk_token", parts, parts->unk);
    write_token(j, "pad_token", parts, parts->pad);
    an_json_write_bool(j, "clean_up_tokenization_spaces", false);
    an_json_write_whole(j, "model_max_length", an_description_fact(p->description, AN_FACT_CONTEXT));
    if (template) an_json_write_string(j, "chat_template", template);
    an_json_write_finish(j);
    const an_status status = put_file(ctx, folder, "tokenizer_config.json", &text);
    an_text_destroy(&text);
    return status;
}

static an_status get_template(const an_gguf *g, an_arena *arena, const char **template) {
    const char *bytes = NULL;
    size_t length = 0;
    AN_TRY_RETURN(an_gguf_string(g, "tokenizer.chat_template", &bytes, &length));
    return bytes ? an_arena_string(arena, template, bytes, length) : AN_OK;
}

static an_status make_files(const an_publication *p, const char *folder) {
    an_status status;
    an_context *ctx = p->ctx;
    an_tokenizer *tokenizer = NULL;
    an_tokenizer_parts parts;
    an_gguf *file = NULL;
    const char *template = NULL;
    an_arena arena;
    an_text text;
    an_arena_init(&arena, ctx);
    an_text_init(&text, ctx);
    AN_TRY(an_gguf_open(&file, ctx, p->tokenizer));
    AN_TRY(an_pretrained_tokenizer(&tokenizer, ctx, p->tokenizer));
    AN_TRY(an_tokenizer_describe(tokenizer, &arena, &parts));
    AN_TRY(an_tokenizer_write(&text, &parts));
    AN_TRY(put_file(ctx, folder, "tokenizer.json", &text));
    AN_TRY(get_template(file, &arena, &template));
    AN_TRY(write_config(p, folder, &parts, template));
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    an_gguf_close(&file);
    an_text_destroy(&text);
    an_arena_destroy(&arena);
    return status;
}

/* How sentence-transformers makes a row of a sentence. A classifier that a run has made is none of its models. */
static an_status copy_sentence_files(const an_publication *p, const char *folder) {
    static const char *const settings[] = {"modules.json", "sentence_bert_config.json",
                                           "config_sentence_transformers.json", NULL};
    static const char pooling[] = "1_Pooling";
    an_context *ctx = p->ctx;
    char source[AN_FILE_PATH], path[AN_FILE_PATH], message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    for (int i = 0; settings[i]; i++) AN_TRY_RETURN(an_publish_copy(ctx, p->from, settings[i], folder));
    if (!an_path_join(source, p->from, pooling) || !an_file_exists(source)) return AN_OK;
    if (!an_path_join(path, folder, pooling))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    AN_TRY_RETURN(an_note_raise(ctx, an_folders_make(path, note), note));
    return an_publish_copy(ctx, source, "config.json", path);
}

an_status an_publish_tokenizer(const an_publication *p, const char *folder) {
    an_context *ctx = p->ctx;
    const bool is_folder = p->from && !an_gguf_is(p->from);
    if (is_folder) AN_TRY_RETURN(an_publish_copy(ctx, p->from, "generation_config.json", folder));
    if (is_folder && !p->new_head) AN_TRY_RETURN(copy_sentence_files(p, folder));
    if (!p->tokenizer) return AN_OK;
    return an_gguf_is(p->tokenizer) ? make_files(p, folder) : copy_files(p, folder);
}
