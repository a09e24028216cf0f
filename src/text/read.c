#include "text/read.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/guard.h"

enum { MOST_FILE = 1 << 30, MOST_IDS = 1 << 24 };

/* ---- added tokens ---- */

typedef struct added_list {
    an_added_token *tokens;
    size_t count, capacity;
} added_list;

static bool read_added(an_text_reader *r, an_added_token *token) {
    an_json *j = &r->json;
    an_json_string key, content = {NULL, 0};
    int64_t id = -1;
    *token = (an_added_token){.normalized = true};
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &key)) {
        const struct {
            const char *name;
            bool *value;
        } flags[] = {{"special", &token->special},
                     {"single_word", &token->single_word},
                     {"lstrip", &token->left_strip},
                     {"rstrip", &token->right_strip},
                     {"normalized", &token->normalized}};
        bool known = true;
        if (an_read_is(key, "id")) {
            if (!an_json_count(j, &id)) return false;
        } else if (an_read_is(key, "content")) {
            if (!an_json_string_value(j, &content)) return false;
        } else {
            known = false;
            for (size_t i = 0; i < sizeof flags / sizeof *flags && !known; i++)
                if (an_read_is(key, flags[i].name)) {
                    known = true;
                    if (!an_json_bool(j, flags[i].value)) return false;
                }
        }
        if (!known)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "an added token has '%.40s', which is not supported",
                                  key.bytes);
    }
    if (j->problem) return false;
    if (id < 0 || id >= MOST_IDS || content.length == 0)
        return an_read_refuse(r, AN_ERR_DAMAGED, "an added token has no content, or no id that is possible");
    token->id = (int32_t)id;
    token->content = (an_bytes){content.bytes, content.length};
    return true;
}

static bool read_added_list(an_text_reader *r, added_list *list) {
    an_json *j = &r->json;
    if (!an_json_array(j)) return false;
    while (an_json_element(j)) {
        const an_status status =
            an_grow(r->tokenizer->ctx, (void **)&list->tokens, &list->capacity, list->count + 1, sizeof *list->tokens);
        if (status) return an_read_failed(r, status);
        if (!read_added(r, &list->tokens[list->count])) return false;
        list->count++;
    }
    return !j->problem;
}

/* ---- the model ---- */

typedef struct merge_text {
    an_bytes left, right;
} merge_text;

typedef struct model_text {
    an_json_string type, unk, prefix;
    bool has_vocabulary;
    merge_text *merges;
    size_t count, capacity;
} model_text;

static bool read_vocabulary(an_text_reader *r) {
    an_json *j = &r->json;
    an_json_string token;
    const int64_t maximum = j->length < MOST_IDS ? (int64_t)j->length : MOST_IDS - 1;
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &token)) {
        int64_t id;
        if (!an_json_count(j, &id)) return false;
        const an_status status = an_tokenizer_put(r->tokenizer, id, token.bytes, token.length, maximum);
        if (status) return an_read_failed(r, status);
    }
    return !j->problem;
}

/* "left right", or ["left", "right"]. */
static bool read_merge(an_text_reader *r, merge_text *merge) {
    an_json *j = &r->json;
    an_json_string text[2] = {{NULL, 0}};
    if (an_json_peek(j) == '"') {
        if (!an_json_string_value(j, &text[0])) return false;
        const char *space = strchr(text[0].bytes, ' ');
        if (!space || strchr(space + 1, ' '))
            return an_read_refuse(r, AN_ERR_DAMAGED, "a merge is two texts with a space between");
        const size_t left = (size_t)(space - text[0].bytes);
        *merge = (merge_text){{text[0].bytes, left}, {space + 1, text[0].length - left - 1}};
        return true;
    }
    int count = 0;
    if (!an_json_array(j)) return false;
    for (; an_json_element(j); count++)
        if (!an_json_string_value(j, &text[count > 0])) return false;
    *merge = (merge_text){{text[0].bytes, text[0].length}, {text[1].bytes, text[1].length}};
    return !j->problem &&
           (count == 2 || an_read_refuse(r, AN_ERR_DAMAGED, "a merge has two texts, this has %d", count));
}

static bool read_merges(an_text_reader *r, model_text *m) {
    an_json *j = &r->json;
    if (!an_json_array(j)) return false;
    while (an_json_element(j)) {
        const an_status status =
            an_grow(r->tokenizer->ctx, (void **)&m->merges, &m->capacity, m->count + 1, sizeof *m->merges);
        if (status) return an_read_failed(r, status);
        if (!read_merge(r, &m->merges[m->count])) return false;
        m->count++;
    }
    return !j->problem;
}

/* A string, or null. */
static bool read_text(an_json *j, an_json_string *text) {
    return an_json_peek(j) == 'n' ? an_json_skip(j) : an_json_string_value(j, text);
}

static bool read_dropout(an_text_reader *r) {
    double dropout = 0;
    if (!an_json_real(&r->json, &dropout)) return false;
    if (dropout > 0) return an_read_refuse(r, AN_ERR_UNSUPPORTED, "dropout of merges is not supported");
    return true;
}

static bool read_suffix(an_text_reader *r) {
    an_json_string suffix = {"", 0};
    if (!read_text(&r->json, &suffix)) return false;
    return suffix.length == 0 || an_read_refuse(r, AN_ERR_UNSUPPORTED, "end_of_word_suffix is not supported");
}

static bool read_model_member(an_text_reader *r, an_json_string key, model_text *m) {
    an_tokenizer *t = r->tokenizer;
    an_json *j = &r->json;
    if (an_read_is(key, "type")) return an_json_string_value(j, &m->type);
    if (an_read_is(key, "vocab")) return m->has_vocabulary = true, read_vocabulary(r);
    if (an_read_is(key, "merges")) return read_merges(r, m);
    if (an_read_is(key, "unk_token")) return read_text(j, &m->unk);
    if (an_read_is(key, "continuing_subword_prefix")) return read_text(j, &m->prefix);
    if (an_read_is(key, "end_of_word_suffix")) return read_suffix(r);
    if (an_read_is(key, "dropout")) return read_dropout(r);
    if (an_read_is(key, "fuse_unk")) return an_json_bool(j, &t->fuse_unk);
    if (an_read_is(key, "byte_fallback")) return an_json_bool(j, &t->byte_fallback);
    if (an_read_is(key, "ignore_merges")) return an_json_bool(j, &t->ignore_merges);
    if (an_read_is(key, "max_input_chars_per_word")) return an_json_count(j, &t->most_characters);
    return an_read_refuse(r, AN_ERR_UNSUPPORTED, "the model has '%.40s', which is not supported", key.bytes);
}

static bool read_model(an_text_reader *r, model_text *m) {
    an_tokenizer *t = r->tokenizer;
    an_json_string key;
    if (!an_json_object(&r->json)) return false;
    while (an_json_member(&r->json, &key))
        if (!read_model_member(r, key, m)) return false;
    if (r->json.problem) return false;
    if (!m->has_vocabulary) return an_read_refuse(r, AN_ERR_DAMAGED, "the model has no 'vocab'");
    /* Old files have no type, and are told apart by what only BPE has. */
    if (!m->type.bytes) m->type = m->merges ? (an_json_string){"BPE", 3} : (an_json_string){"WordPiece", 9};
    if (an_read_is(m->type, "BPE")) {
        t->model = AN_TEXT_BPE;
        if (m->prefix.length > 0)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "continuing_subword_prefix of BPE is not supported");
    } else if (an_read_is(m->type, "WordPiece")) {
        t->model = AN_TEXT_WORDPIECE;
        t->prefix = m->prefix.bytes ? (an_bytes){m->prefix.bytes, m->prefix.length} : AN_BYTES("##");
    } else {
        return an_read_refuse(r, AN_ERR_UNSUPPORTED, "the model '%.40s' is not supported: BPE and WordPiece are",
                              m->type.bytes);
    }
    return true;
}

/* ---- the file ---- */

/* The members of the file. Two of a name would be read as one by one program and as the other by the next. */
static bool read_file(an_text_reader *r, added_list *added, model_text *model) {
    enum { ADDED_TOKENS, NORMALIZER, PRE_TOKENIZER, POST_PROCESSOR, DECODER, MODEL, VERSION, TRUNCATION, PADDING };
    static const char *const names[] = {"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
                                        "model",        "version",    "truncation",    "padding"};
    enum { MEMBERS = sizeof names / sizeof *names };
    an_json *j = &r->json;
    an_json_string key;
    bool seen[MEMBERS] = {false}, good = an_json_object(j);
    while (good && an_json_member(j, &key)) {
        int member = 0;
        while (member < MEMBERS && !an_read_is(key, names[member])) member++;
        if (member == MEMBERS)
            return an_read_refuse(r, AN_ERR_UNSUPPORTED, "the file has '%.40s', which is not supported", key.bytes);
        if (seen[member]) return an_read_refuse(r, AN_ERR_DAMAGED, "'%s' appears twice", names[member]);
        seen[member] = true;
        switch (member) {
        case ADDED_TOKENS: good = read_added_list(r, added); break;
        case NORMALIZER: good = an_read_steps(r, AN_ROLE_NORMALIZER); break;
        case PRE_TOKENIZER: good = an_read_steps(r, AN_ROLE_SPLITTER); break;
        case POST_PROCESSOR: good = an_read_steps(r, AN_ROLE_PROCESSOR); break;
        case DECODER: good = an_read_steps(r, AN_ROLE_DECODER); break;
        case MODEL: good = read_model(r, model); break;
        default: good = an_json_skip(j); /* lengths are the caller's: texts are neither cut nor padded */
        }
    }
    if (!good) return false;
    return an_json_end(j) && (model->has_vocabulary || an_read_refuse(r, AN_ERR_DAMAGED, "the file has no 'model'"));
}

/* An added token is in the vocabulary under its id, or is put there. */
static an_status put_added(an_tokenizer *t, const added_list *added, int64_t maximum) {
    an_context *ctx = t->ctx;
    for (size_t i = 0; i < added->count; i++) {
        const an_added_token *a = &added->tokens[i];
        const int32_t there =
            an_index_find(&t->vocabulary.by_text, &t->vocabulary, a->content.bytes, a->content.length);
        if (there != AN_NO_TOKEN && there != a->id)
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "the added token '%.40s' has the id %d, and in the vocabulary %d",
                            a->content.bytes, a->id, there);
        AN_TRY_RETURN(an_tokenizer_put(t, a->id, a->content.bytes, a->content.length, maximum));
        t->vocabulary.tokens[a->id].added = there == AN_NO_TOKEN;
    }
    return AN_OK;
}

static an_status check_template(const an_tokenizer *t, const an_template *template) {
    for (size_t i = 0; i < template->count; i++)
        if (template->parts[i].kind == AN_TEMPLATE_TOKEN && !an_tokenizer_token(t, template->parts[i].token, NULL))
            return AN_ERROR(t->ctx, AN_ERR_DAMAGED, "the post-processor has the id %d, which is no token",
                            template->parts[i].token);
    return AN_OK;
}

/* A text with two ids would be one token to this library and another to others. */
static an_status check_texts(const an_tokenizer *t) {
    const an_vocabulary *v = &t->vocabulary;
    for (size_t i = 0; i < v->count; i++) {
        const an_token *token = &v->tokens[i];
        if (!token->text) continue;
        const int32_t first = an_index_find(&v->by_text, v, token->text, token->text_length);
        if (first != (int32_t)i)
            return AN_ERROR(t->ctx, AN_ERR_DAMAGED, "the token '%.40s' appears twice, with the ids %d and %zu",
                            token->text, first, i);
    }
    return AN_OK;
}

static an_status assemble(an_tokenizer *t, const added_list *added, const model_text *model) {
    enum { CHARACTERS = 100, MOST_CHARACTERS = 1000 };
    an_context *ctx = t->ctx;
    const uint64_t seed = an_text_hash(t->text, t->text_bytes, 0);
    const int64_t maximum = t->text_bytes < MOST_IDS ? (int64_t)t->text_bytes : MOST_IDS - 1;
    AN_TRY_RETURN(an_index_make(ctx, &t->vocabulary.by_text, &t->vocabulary, false, seed));
    AN_TRY_RETURN(check_texts(t));
    AN_TRY_RETURN(put_added(t, added, maximum));
    AN_TRY_RETURN(an_tokenizer_index(t, seed));
    AN_TRY_RETURN(an_merges_make(ctx, &t->vocabulary.merges, model->count, seed));
    for (size_t i = 0; i < model->count; i++)
        AN_TRY_RETURN(an_tokenizer_merge(t, model->merges[i].left, model->merges[i].right, (uint32_t)i));
    if (model->unk.bytes) {
        t->unk = t->model_unk = an_tokenizer_id(t, model->unk.bytes, model->unk.length);
        if (t->unk == AN_NO_TOKEN)
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "unk_token '%.40s' is not in the vocabulary", model->unk.bytes);
    }
    if (t->model == AN_TEXT_WORDPIECE) {
        if (t->model_unk == AN_NO_TOKEN) return AN_ERROR(ctx, AN_ERR_DAMAGED, "a WordPiece model without unk_token");
        if (t->most_characters == 0) t->most_characters = CHARACTERS;
        if (t->most_characters > MOST_CHARACTERS)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "max_input_chars_per_word is %lld, but can be at most %d",
                            (long long)t->most_characters, MOST_CHARACTERS);
    }
    AN_TRY_RETURN(check_template(t, &t->single));
    AN_TRY_RETURN(check_template(t, &t->pair));
    return an_tokenizer_finish(t, added->tokens, added->count);
}

/* ---- tokenizer_config.json: the names of special tokens ---- */

/* "</s>", {"content": "</s>", …} or null. */
static bool read_name(an_json *j, an_json_string *name) {
    an_json_string key;
    if (an_json_peek(j) != '{') return read_text(j, name);
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &key))
        if (an_read_is(key, "content") ? !an_json_string_value(j, name) : !an_json_skip(j)) return false;
    return !j->problem;
}

static an_status read_config(an_tokenizer *t, char *text, size_t length) {
    an_context *ctx = t->ctx;
    const struct {
        const char *name;
        int32_t *token;
    } tokens[] = {{"bos_token", &t->bos}, {"eos_token", &t->eos}, {"unk_token", &t->unk}, {"pad_token", &t->pad}};
    an_json j;
    an_json_string key;
    an_json_init(&j, text, length);
    if (an_json_object(&j))
        while (an_json_member(&j, &key)) {
            size_t i = 0;
            an_json_string name = {NULL, 0};
            while (i < 4 && !an_read_is(key, tokens[i].name)) i++;
            if (i == 4) {
                if (!an_json_skip(&j)) break;
                continue;
            }
            if (!read_name(&j, &name)) break;
            if (name.bytes) *tokens[i].token = an_tokenizer_id(t, name.bytes, name.length);
        }
    if (an_json_end(&j)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_DAMAGED, "tokenizer_config.json: byte %zu: %s", j.at, j.problem);
}

/* ---- the calls ---- */

/* `text` becomes the tokenizer's. */
static an_status create(an_tokenizer **tokenizer, an_context *ctx, const char *name, char **text, size_t length,
                        size_t capacity) {
    an_status status;
    an_tokenizer *t = NULL;
    added_list added = {NULL, 0, 0};
    model_text model = {.has_vocabulary = false};
    char message[AN_MESSAGE_BYTES];
    AN_TRY(an_tokenizer_begin(&t, ctx));
    t->text = *text;
    t->text_bytes = capacity;
    *text = NULL;
    an_text_reader r = {.tokenizer = t};
    an_json_init(&r.json, t->text, length);
    if (!read_file(&r, &added, &model))
        AN_FAIL(ctx, r.status ? r.status : AN_ERR_DAMAGED, "%s: byte %zu: %s", name, r.json.at, r.json.problem);
    status = assemble(t, &added, &model);
    if (status) {
        snprintf(message, sizeof message, "%s", an_last_error(ctx));
        AN_FAIL(ctx, status, "%s: %s", name, message);
    }
    *tokenizer = t;
    t = NULL;
fail:
    an_release(ctx, (void **)&added.tokens, added.capacity, sizeof *added.tokens);
    an_release(ctx, (void **)&model.merges, model.capacity, sizeof *model.merges);
    an_tokenizer_destroy(&t);
    return status;
}

static an_status copy_of(an_context *ctx, char **copy, const char *text, size_t length) {
    AN_TRY_RETURN(an_alloc(ctx, (void **)copy, length + 1, 1));
    memcpy(*copy, text, length);
    return AN_OK;
}

an_status an_tokenizer_create(an_tokenizer **tokenizer, an_context *ctx, const char *json, size_t length,
                              const char *config, size_t config_length) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, tokenizer, json);
    an_status status;
    char *text = NULL, *settings = NULL;
    *tokenizer = NULL;
    AN_CHECK(ctx, length <= MOST_FILE && config_length <= MOST_FILE, AN_ERR_UNSUPPORTED,
             "a tokenizer of more than 1 GiB");
    AN_TRY(copy_of(ctx, &text, json, length));
    AN_TRY(create(tokenizer, ctx, "tokenizer.json", &text, length, length + 1));
    if (config) {
        AN_TRY(copy_of(ctx, &settings, config, config_length));
        AN_TRY(read_config(*tokenizer, settings, config_length));
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&text, length + 1, 1);
    an_release(ctx, (void **)&settings, config_length + 1, 1);
    if (status) an_tokenizer_destroy(tokenizer);
    return status;
}

/* The path of `name` beside a file, or in a folder. */
static bool beside(char path[AN_FILE_PATH], const char *file, bool folder, const char *name) {
    const char *slash = strrchr(file, '/');
    if (folder) return an_path_join(path, file, name);
    if (!slash) return snprintf(path, AN_FILE_PATH, "%s", name) < AN_FILE_PATH;
    return snprintf(path, AN_FILE_PATH, "%.*s/%s", (int)(slash - file), file, name) < AN_FILE_PATH;
}

an_status an_tokenizer_open(an_tokenizer **tokenizer, an_context *ctx, const char *path) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, tokenizer, path);
    an_status status;
    char file[AN_FILE_PATH], config[AN_FILE_PATH];
    char *text = NULL, *settings = NULL;
    size_t length = 0, settings_length = 0;
    struct stat what;
    const bool folder = stat(path, &what) == 0 && S_ISDIR(what.st_mode);
    *tokenizer = NULL;
    const bool fits =
        folder ? an_path_join(file, path, "tokenizer.json") : snprintf(file, sizeof file, "%s", path) < AN_FILE_PATH;
    AN_CHECK(ctx, fits && beside(config, path, folder, "tokenizer_config.json"), AN_ERR_ARGUMENT,
             "%s: the path is too long", path);
    AN_TRY(an_file_read(ctx, file, MOST_FILE, &text, &length));
    AN_TRY(create(tokenizer, ctx, file, &text, length, length + 1));
    if (an_file_exists(config)) {
        AN_TRY(an_file_read(ctx, config, MOST_FILE, &settings, &settings_length));
        AN_TRY(read_config(*tokenizer, settings, settings_length));
    }
    status = AN_OK;
fail:
    if (text) an_release(ctx, (void **)&text, length + 1, 1);
    if (settings) an_release(ctx, (void **)&settings, settings_length + 1, 1);
    if (status) an_tokenizer_destroy(tokenizer);
    return status;
}
