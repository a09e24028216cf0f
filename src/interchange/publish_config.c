/* config.json: that of the folder which the model began as, with another type of weights and the classes of its run;
 * or the facts of the model, by the same table that reads them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/status.h"
#include "interchange/publish.h"

enum { MOST_BYTES = 4 << 20 }; /* of a config.json */

static const char *type_word(const an_publication *p) {
    const an_dtype dtype = p->type->shown.dtype;
    return dtype == AN_DTYPE_BF16 ? "bfloat16" : dtype == AN_DTYPE_F16 ? "float16" : "float32";
}

/* ---- labels ---- */

static void write_labels(an_json_writer *j, const an_publication *p, bool by_name) {
    for (int64_t i = 0; i < p->label_count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        if (by_name)
            an_json_write_integer(j, p->labels[i], i);
        else
            an_json_write_string(j, number, p->labels[i]);
    }
}

/* ---- from a folder ---- */

/* A key whose value is another in the new file. */
typedef struct {
    const char *key;
    an_text value;     /* empty: it stays */
    bool needed;       /* it is added if the file does not have it */
    size_t begin, end; /* of the old value in the text; `end` 0: there is none */
} edit;
enum { DTYPE, TORCH_DTYPE, ARCHITECTURES, LABEL_NAMES, LABEL_NUMBERS, LABEL_COUNT, EDITS };

static void make_edits(const an_publication *p, edit edits[EDITS]) {
    static const char *const keys[EDITS] = {"dtype",    "torch_dtype", "architectures",
                                            "id2label", "label2id",    "num_labels"};
    for (int i = 0; i < EDITS; i++) {
        edits[i] = (edit){.key = keys[i]};
        an_text_init(&edits[i].value, p->ctx);
    }
    an_text_add(&edits[DTYPE].value, "\"%s\"", type_word(p));
    an_text_add(&edits[TORCH_DTYPE].value, "\"%s\"", type_word(p));
    if (p->new_head) {
        an_text_add(&edits[ARCHITECTURES].value, "[\"%s\"]", p->description->family->classifier);
        edits[ARCHITECTURES].needed = true;
    }
    if (!p->labels) return;
    an_text_add(&edits[LABEL_COUNT].value, "%lld", (long long)p->label_count);
    for (int i = LABEL_NAMES; i <= LABEL_NUMBERS; i++) {
        an_json_writer json = an_text_json(&edits[i].value, AN_JSON_FLAT);
        an_json_write_object(&json, NULL);
        write_labels(&json, p, i == LABEL_NUMBERS);
        an_json_write_end(&json);
        edits[i].needed = true;
    }
}

static bool find_values(an_json *j, edit edits[EDITS]) {
    an_json_string key;
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &key)) {
        int which = 0;
        while (which < EDITS && strcmp(edits[which].key, key.bytes) != 0) which++;
        an_json_peek(j);
        const size_t begin = j->at;
        if (!an_json_skip(j)) return false;
        if (which == EDITS || edits[which].value.length == 0) continue;
        edits[which].begin = begin;
        edits[which].end = j->at;
    }
    return an_json_end(j);
}

/* The edit whose place is the next from here on; NULL: there is none. */
static const edit *next_edit(const edit edits[EDITS], size_t at) {
    const edit *next = NULL;
    for (int i = 0; i < EDITS; i++)
        if (edits[i].end && edits[i].begin >= at && (!next || edits[i].begin < next->begin)) next = &edits[i];
    return next;
}

static void write_edited(const edit edits[EDITS], const char *whole, size_t length, an_text *text) {
    size_t at = (size_t)(strchr(whole, '{') - whole) + 1;
    an_text_bytes(text, whole, at);
    for (int i = 0; i < EDITS; i++)
        if (edits[i].needed && !edits[i].end) an_text_add(text, "\n  \"%s\": %s,", edits[i].key, edits[i].value.bytes);
    for (const edit *e = next_edit(edits, at); e; e = next_edit(edits, at)) {
        an_text_bytes(text, whole + at, e->begin - at);
        an_text_bytes(text, e->value.bytes, e->value.length);
        at = e->end;
    }
    an_text_bytes(text, whole + at, length - at);
}

static an_status copy_config(const an_publication *p, const char *path, an_text *text) {
    an_status status;
    an_context *ctx = p->ctx;
    char *whole = NULL, *read = NULL;
    size_t length = 0;
    edit edits[EDITS];
    an_json json;
    make_edits(p, edits);
    for (int i = 0; i < EDITS; i++) AN_TRY(edits[i].value.status);
    AN_TRY(an_file_read(ctx, path, MOST_BYTES, &whole, &length));
    AN_TRY(an_alloc_raw(ctx, (void **)&read, length + 1));
    memcpy(read, whole, length); /* which reading changes */
    an_json_init(&json, read, length);
    AN_CHECK(ctx, find_values(&json, edits), AN_ERR_DAMAGED, "%s: byte %zu: %s", path, json.at, json.problem);
    edits[TORCH_DTYPE].needed = !edits[DTYPE].end;
    write_edited(edits, whole, length, text);
    AN_TRY(text->status);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&read, length + 1, 1);
    an_release(ctx, (void **)&whole, length + 1, 1);
    for (int i = 0; i < EDITS; i++) an_text_destroy(&edits[i].value);
    return status;
}

/* ---- from facts ---- */

/* GGUF has f32: the shortest number with the same bits is the one that was meant. */
static double shortest(double value) {
    char text[32];
    const float narrow = (float)value;
    if ((double)narrow != value) return value;
    for (int digits = 1; digits < 9; digits++) {
        an_text_rounded(text, sizeof text, value, digits);
        const double shorter = an_text_double(text, strlen(text));
        if ((float)shorter == narrow) return shorter;
    }
    return value;
}

static bool has(const an_description *d, an_fact fact) {
    return d->facts[fact].known;
}

static void write_key(an_json_writer *j, const an_description *d, int row) {
    const an_key_row *key = &an_key_rows[row];
    const bool states = key->fact != AN_FACTS; /* some keys state no fact by themselves */
    const double window = an_description_fact(d, AN_FACT_WINDOW);
    const double value = states ? an_description_fact(d, key->fact) : 0;
    const bool usual = key->fact == AN_FACT_ROTARY_SHARE && value == 1; /* what it is without the key */
    if (row == AN_ROW_USES_WINDOW) {
        an_json_write_bool(j, key->key, window > 0);
    } else if (row == AN_ROW_MAX_WINDOW_LAYERS) {
        an_json_write_whole(j, key->key, window > 0 ? 0 : an_description_fact(d, AN_FACT_LAYERS));
    } else if (!states || key->rope || usual || !has(d, key->fact)) {
        return;
    } else if (key->fact == AN_FACT_WINDOW && value == 0) {
        an_json_write_null(j, key->key);
    } else if (key->kind == AN_KEY_ACTIVATION) {
        an_json_write_string(j, key->key, an_activation_word((int)value));
    } else if (key->kind == AN_KEY_BOOL) {
        an_json_write_bool(j, key->key, value != 0);
    } else if (key->kind == AN_KEY_REAL) {
        an_json_write_real(j, key->key, shortest(value));
    } else {
        an_json_write_whole(j, key->key, value);
    }
}

static void write_scaling(an_json_writer *j, const an_description *d) {
    if (an_description_fact(d, AN_FACT_ROTARY_FACTOR) == 0) return;
    an_json_write_object(j, "rope_scaling");
    an_json_write_string(j, "rope_type", "llama3");
    for (int row = AN_ROW_FACTOR; row <= AN_ROW_ORIGINAL; row++) {
        const an_key_row *key = &an_key_rows[row];
        const double value = an_description_fact(d, key->fact);
        if (key->kind == AN_KEY_REAL)
            an_json_write_real(j, key->key, value);
        else
            an_json_write_whole(j, key->key, value);
    }
    an_json_write_end(j);
}

/* Without the key, Hugging Face takes a token of its own. */
static void write_token(an_json_writer *j, const char *key, int32_t token) {
    if (token >= 0)
        an_json_write_integer(j, key, token);
    else
        an_json_write_null(j, key);
}

static an_status write_tokens(an_json_writer *j, const an_publication *p) {
    an_context *ctx = p->ctx;
    an_tokenizer *tokenizer = NULL;
    an_tokenizer_info info = {.size = sizeof info, .bos = -1, .eos = -1, .pad = -1};
    if (p->tokenizer) {
        AN_TRY_RETURN(an_pretrained_tokenizer(&tokenizer, ctx, p->tokenizer));
        const an_status status = an_tokenizer_info_get(tokenizer, &info);
        an_tokenizer_destroy(&tokenizer);
        AN_TRY_RETURN(status);
    }
    write_token(j, "bos_token_id", info.bos);
    write_token(j, "eos_token_id", info.eos);
    write_token(j, "pad_token_id", info.pad);
    return AN_OK;
}

/* GGUF calls Mistral llama, but Hugging Face's Llama has no window. */
static const an_family *written_family(const an_description *d) {
    const bool windowed = d->family == &an_family_llama && an_description_fact(d, AN_FACT_WINDOW) > 0;
    return windowed ? &an_family_mistral : d->family;
}

static an_status make_config(const an_publication *p, an_text *text) {
    const an_description *d = p->description;
    const an_family *family = written_family(d);
    an_json_writer json = an_text_json(text, AN_JSON_LINES), *j = &json;
    an_json_write_object(j, NULL);
    an_json_write_array(j, "architectures");
    an_json_write_string(j, NULL,
                         an_description_fact(d, AN_FACT_CLASSES) > 0 ? family->classifier : family->architectures[0]);
    an_json_write_end(j);
    an_json_write_string(j, "model_type", family->name);
    for (const an_family_key *key = family->keys; key->row >= 0; key++) write_key(j, d, key->row);
    write_scaling(j, d);
    for (int by_name = 0; p->labels && by_name < 2; by_name++) {
        an_json_write_object(j, by_name ? "label2id" : "id2label");
        write_labels(j, p, by_name);
        an_json_write_end(j);
    }
    AN_TRY_RETURN(write_tokens(j, p));
    an_json_write_string(j, "torch_dtype", type_word(p));
    an_json_write_bool(j, "use_cache", true);
    an_json_write_finish(j);
    return text->status;
}

/* ---- the file ---- */

/* What was written must describe the same model. */
static an_status compare(const an_publication *p, const char *path) {
    an_status status;
    an_context *ctx = p->ctx;
    const double rounding = 1e-6; /* f32 in GGUF */
    an_description *d = NULL;
    AN_TRY(an_alloc(ctx, (void **)&d, 1, sizeof *d));
    AN_TRY(an_description_read(d, ctx, path, ""));
    AN_TRY(an_description_check(d));
    for (int i = 0; i < AN_FACTS; i++) {
        const double was = p->description->facts[i].value, is = d->facts[i].value,
                     difference = was < is ? is - was : was - is;
        if (!has(p->description, (an_fact)i) || !has(d, (an_fact)i)) continue;
        AN_CHECK(ctx, difference <= rounding * (was < 0 ? -was : was), AN_ERR_UNSUPPORTED,
                 "%s: a model of type %s cannot say in its config.json what this model is", p->description->path,
                 d->family->name);
    }
    status = AN_OK;
fail:
    if (d) an_description_destroy(d);
    an_release(ctx, (void **)&d, 1, sizeof *d);
    return status;
}

an_status an_publish_config(const an_publication *p, const char *folder) {
    an_status status;
    an_context *ctx = p->ctx;
    char source[AN_FILE_PATH], path[AN_FILE_PATH], message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    an_text text;
    an_text_init(&text, ctx);
    AN_CHECK(ctx, an_path_join(path, folder, "config.json"), AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    const bool copies = p->from && an_path_join(source, p->from, "config.json") && an_file_exists(source);
    AN_TRY(copies ? copy_config(p, source, &text) : make_config(p, &text));
    AN_TRY(an_note_raise(ctx, an_file_replace(path, text.bytes, text.length, note), note));
    status = compare(p, path);
    if (status != AN_OK) unlink(path);
fail:
    an_text_destroy(&text);
    return status;
}
