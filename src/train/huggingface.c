#include "train/huggingface.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/reader.h"
#include "base/text/json.h"
#include "train/huggingface_keys.h"

enum { MOST_BYTES = 4 << 20, MOST_LISTED = 512, MOST_ARCHITECTURES = 8, WORD = 48 }; /* a list, a word: in bytes */

typedef struct {
    bool given, assumed; /* by the file; by Hugging Face, where the file has no such key */
    double number;
    char word[WORD];    /* as the file has it, for messages */
    const char *parent; /* "rope_scaling." or "rope_parameters."; "": the top */
} value;

typedef struct {
    an_context *ctx;
    const char *model_type; /* NULL: the graph comes from a file or a program */
    const char *path;       /* of config.json */
    an_json json;
    an_family family;
    value values[AN_KEY_ROWS];
    an_model_facts model;
    value architectures[MOST_ARCHITECTURES];
    int architecture_count;
    an_text contradictions;              /* a line each */
    size_t room;                         /* for these lines; what no longer fits is named in `others` */
    an_text others, unknown, uncompared; /* lists of keys */
} reading;

/* ---- reading ---- */

static void list(an_text *keys, const char *parent, const char *key) {
    if (keys->length < MOST_LISTED) an_text_add(keys, "%s%s%s", keys->length ? ", " : "", parent, AN_QUOTE(key));
}

/* Reads a value that must be off: null, false, zero, empty. */
static bool read_off(an_json *j, value *v) {
    const int first = an_json_peek(j);
    const size_t begin = j->at;
    double number = 0;
    bool on = false;
    if (first == 't' || first == 'f') {
        an_json_bool(j, &on);
    } else if (first == '-' || (first >= '0' && first <= '9')) {
        on = an_json_real(j, &number) && number != 0;
    } else if (an_json_skip(j)) {
        for (size_t i = begin + 1; first != 'n' && i + 1 < j->at; i++)
            on = on || !strchr(" \t\r\n", j->text[i]); /* between the quotes or brackets */
    }
    v->number = on;
    snprintf(v->word, WORD, "%s", first == '{' ? "{…}" : first == '[' ? "[…]" : on ? "true" : "false");
    return !j->problem;
}

static bool read_word(an_json *j, value *v) {
    an_json_string string;
    const size_t at = j->at;
    if (!an_json_string_value(j, &string)) return false;
    if (string.length >= WORD) return an_json_refuse(j, at, "this text is too long");
    memcpy(v->word, string.bytes, string.length + 1);
    return true;
}

static bool read_number(an_json *j, an_key_kind kind, value *v) {
    int64_t count;
    bool on;
    if (kind == AN_KEY_BOOL) {
        if (!an_json_bool(j, &on)) return false;
        v->number = on;
        snprintf(v->word, WORD, "%s", on ? "true" : "false");
        return true;
    }
    if (kind == AN_KEY_REAL) {
        if (!an_json_real(j, &v->number)) return false;
        an_text_number(v->word, WORD, v->number);
        return true;
    }
    if (!an_json_count(j, &count)) return false;
    v->number = (double)count;
    snprintf(v->word, WORD, "%lld", (long long)count);
    return true;
}

static bool read_value(reading *r, int row, const char *parent) {
    an_json *j = &r->json;
    const an_key_kind kind = an_key_rows[row].kind;
    value v = {.parent = parent}, *known = &r->values[row];
    const int first = an_json_peek(j);
    const size_t at = j->at;
    if (first == 'n') return an_json_skip(j); /* null: as if the key was absent */
    const bool read = kind == AN_KEY_OFF                                 ? read_off(j, &v)
                      : kind == AN_KEY_WORD || kind == AN_KEY_ACTIVATION ? read_word(j, &v)
                                                                         : read_number(j, kind, &v);
    if (!read) return false;
    if (known->given && (known->number != v.number || strcmp(known->word, v.word) != 0))
        return an_json_refuse(j, at, "this key appears twice, with different values");
    if (kind == AN_KEY_ACTIVATION) v.number = an_activation_find(v.word);
    v.given = true;
    *known = v;
    return true;
}

/* A key that nobody knows may change what the model computes, unless it is off. */
static void read_unknown(reading *r, const char *parent, const char *key) {
    value v = {0};
    if (read_off(&r->json, &v) && v.number != 0) list(&r->unknown, parent, key);
}

static void read_rope(reading *r, const char *parent) {
    an_json_string key;
    if (an_json_peek(&r->json) == 'n') {
        an_json_skip(&r->json);
        return;
    }
    an_json_object(&r->json);
    while (an_json_member(&r->json, &key)) {
        const int row = an_key_row_find(key.bytes, true);
        if (row >= 0)
            read_value(r, row, parent);
        else
            read_unknown(r, parent, key.bytes);
    }
}

static void read_architectures(reading *r) {
    an_json *j = &r->json;
    if (an_json_peek(j) == 'n') {
        an_json_skip(j);
        return;
    }
    an_json_array(j);
    while (an_json_element(j)) {
        if (r->architecture_count == MOST_ARCHITECTURES) an_json_refuse(j, j->at, "there are too many architectures");
        if (j->problem || !read_word(j, &r->architectures[r->architecture_count])) return;
        r->architecture_count++;
    }
}

static an_status read_all(reading *r) {
    an_json *j = &r->json;
    an_json_string key;
    an_json_object(j);
    while (an_json_member(j, &key)) {
        const int row = an_key_row_find(key.bytes, false);
        if (row >= 0)
            read_value(r, row, "");
        else if (!strcmp(key.bytes, "rope_scaling"))
            read_rope(r, "rope_scaling.");
        else if (!strcmp(key.bytes, "rope_parameters"))
            read_rope(r, "rope_parameters.");
        else if (!strcmp(key.bytes, "architectures"))
            read_architectures(r);
        else if (an_key_is_harmless(key.bytes))
            an_json_skip(j);
        else
            read_unknown(r, "", key.bytes);
        if (j->problem)
            return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: byte %zu, the value of '%s': %s", r->path, j->at,
                            AN_QUOTE(key.bytes), j->problem);
    }
    if (!an_json_end(j)) return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: byte %zu: %s", r->path, j->at, j->problem);
    return AN_OK;
}

/* ---- what absent keys mean ---- */

static void assume(reading *r, int row, double number) {
    value *v = &r->values[row];
    if (v->given) return;
    *v = (value){.assumed = true, .number = number, .parent = ""};
    if (an_key_rows[row].kind == AN_KEY_BOOL)
        snprintf(v->word, WORD, "%s", number != 0 ? "true" : "false");
    else
        an_text_number(v->word, WORD, number);
}

static void assume_activation(reading *r, int row, const char *word) {
    value *v = &r->values[row];
    if (v->given) return;
    *v = (value){.assumed = true, .number = an_activation_find(word), .parent = ""};
    snprintf(v->word, WORD, "%s", word);
}

/* The kind of rotary scaling, as the newer or the older key says it. */
static const value *rope_type(const reading *r) {
    return &r->values[r->values[AN_ROW_ROPE_TYPE].given ? AN_ROW_ROPE_TYPE : AN_ROW_ROPE_OLD_TYPE];
}

/* Gives every key that the family has, and the folder does not, the value that Hugging Face assumes. */
static void assume_all(reading *r) {
    value *v = r->values;
    if (!rope_type(r)->given || strcmp(rope_type(r)->word, "llama3") != 0)
        for (int i = AN_ROW_FACTOR; i <= AN_ROW_ORIGINAL; i++) v[i].given = false; /* they have no effect */
    for (int i = 0; i < AN_KEY_ROWS; i++)
        if (an_key_rows[i].usual[r->family] >= 0) assume(r, i, an_key_rows[i].usual[r->family]);
    if (v[AN_ROW_ROPE_THETA].given) v[AN_ROW_THETA].assumed = false;
    if (v[AN_ROW_ROPE_SHARE].given) v[AN_ROW_SHARE].assumed = false;
    if (r->family == AN_FAMILY_GPT2) {
        assume(r, AN_ROW_N_INNER, 4 * v[AN_ROW_N_EMBD].number);
        assume_activation(r, AN_ROW_ACTIVATION_FUNCTION, "gelu_new");
    } else {
        const double heads = v[AN_ROW_HEADS].number;
        assume(r, AN_ROW_KV_HEADS, heads);
        assume(r, AN_ROW_HEAD_DIM, heads > 0 ? (double)(int64_t)(v[AN_ROW_HIDDEN_SIZE].number / heads) : 0);
        assume_activation(r, AN_ROW_HIDDEN_ACT, "silu");
    }
}

/* ---- comparing ---- */

static void contradict(reading *r, const value *v, const char *key, const char *model, const char *remedy) {
    an_text *t = &r->contradictions;
    char line[AN_MESSAGE_BYTES];
    const int length = snprintf(line, sizeof line, "\n  %s%s: %s in the folder%s, %s in the model: %s", v->parent, key,
                                AN_QUOTE(v->word), v->assumed ? " (the default)" : "", model, remedy);
    if (t->length + (size_t)length <= r->room)
        an_text_add(t, "%s", line);
    else
        list(&r->others, v->parent, key);
}

static const char *without_option(const reading *r, char remedy[WORD]) {
    if (!r->model_type) return "change the graph";
    snprintf(remedy, WORD, "model.type %s has no setting for it", an_family_name(r->family));
    return remedy;
}

static bool agrees(an_key_kind kind, double folder, double model) {
    const double rounding = 1e-6, difference = folder > model ? folder - model : model - folder; /* f32 in some files */
    if (kind == AN_KEY_MOST) return model <= folder;
    return kind == AN_KEY_REAL ? difference <= rounding * model : difference == 0;
}

static void describe_fact(const reading *r, const an_key_row *row, char text[WORD]) {
    const double number = r->model.facts[row->fact].value;
    if (r->model.facts[row->fact].varies)
        snprintf(text, WORD, "several");
    else if (row->kind == AN_KEY_BOOL)
        snprintf(text, WORD, "%s", number != 0 ? "true" : "false");
    else if (row->kind == AN_KEY_ACTIVATION)
        snprintf(text, WORD, "%s", an_activation_op((int)number));
    else
        an_text_number(text, WORD, number);
}

static void compare(reading *r, int index) {
    const an_key_row *row = &an_key_rows[index];
    const value *v = &r->values[index];
    char model[WORD], remedy[2 * WORD];
    if ((!v->given && !v->assumed) || row->kind == AN_KEY_WORD) return;
    if (row->kind == AN_KEY_OFF) {
        if (v->number != 0) contradict(r, v, row->key, "off", "anneal does not support it");
        return;
    }
    if (!r->model.facts[row->fact].known) {
        if (v->given && v->number != 0) list(&r->uncompared, v->parent, row->key);
        return;
    }
    if (!r->model.facts[row->fact].varies && agrees(row->kind, v->number, r->model.facts[row->fact].value)) return;
    describe_fact(r, row, model);
    const char *option = row->option[r->family];
    if (!option || !r->model_type)
        contradict(r, v, row->key, model, without_option(r, remedy));
    else {
        const char *word = row->kind != AN_KEY_BOOL ? v->word : v->number != 0 ? "on" : "off";
        snprintf(remedy, sizeof remedy, "set %s: %s%s", option, word, row->kind == AN_KEY_MOST ? " or less" : "");
        contradict(r, v, row->key, model, remedy);
    }
}

static void compare_all(reading *r) {
    static const value top = {.parent = ""};
    const value *type = rope_type(r);
    char remedy[WORD];
    for (int i = 0; i < r->architecture_count; i++) {
        value named = top;
        memcpy(named.word, r->architectures[i].word, WORD);
        if (!an_family_has(r->family, named.word))
            contradict(r, &named, "architectures", an_family_name(r->family), "anneal does not have this model");
    }
    if (type->given && strcmp(type->word, "default") != 0 && strcmp(type->word, "llama3") != 0)
        contradict(r, type, type == &r->values[AN_ROW_ROPE_TYPE] ? "rope_type" : "type", "none",
                   without_option(r, remedy));
    for (int i = 0; i < AN_KEY_ROWS; i++) compare(r, i);
}

/* ---- the family ---- */

static an_status find_family(reading *r) {
    an_context *ctx = r->ctx;
    const value *v = &r->values[AN_ROW_MODEL_TYPE];
    if (!v->given)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has no model_type, so its values cannot be compared with the model",
                        r->path);
    r->family = an_family_find(v->word);
    if (r->family == AN_FAMILIES)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: model_type is '%s', but only gpt2 and llama are supported. To load the weights without "
                        "this check, give the path of the safetensors file itself",
                        r->path, AN_QUOTE(v->word));
    if (!r->model_type || !strcmp(r->model_type, v->word)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: model_type is %s, but model.type is different: set model.type to %s",
                    r->path, v->word, v->word);
}

/* ---- all of it ---- */

static an_status report(const reading *r) {
    an_context *ctx = r->ctx;
    if (r->uncompared.length)
        an_log_write(ctx, AN_LOG_WARNING, "%s: not checked, because the model has nothing to compare them with: %s",
                     r->path, r->uncompared.bytes);
    if (r->unknown.length)
        an_log_write(ctx, AN_LOG_WARNING, "%s: unknown keys, which may change what the original model computes: %s",
                     r->path, r->unknown.bytes);
    if (!r->contradictions.length && !r->others.length) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s contradicts the model:%s%s%s", r->path,
                    r->contradictions.length ? r->contradictions.bytes : "", r->others.length ? "\n  also: " : "",
                    r->others.length ? r->others.bytes : "");
}

static an_status check_text(reading *r) {
    an_status status;
    an_context *ctx = r->ctx;
    an_text *texts[] = {&r->contradictions, &r->others, &r->unknown, &r->uncompared};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) an_text_init(texts[i], ctx);
    AN_TRY(read_all(r));
    AN_TRY(find_family(r));
    assume_all(r);
    compare_all(r);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) AN_TRY(texts[i]->status);
    AN_TRY(report(r));
fail:
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) an_text_destroy(texts[i]);
    return status;
}

static an_status check_file(reading *r) {
    an_status status;
    an_context *ctx = r->ctx;
    char message[AN_MESSAGE_BYTES], *text = NULL;
    size_t bytes = 0;
    const an_note note = {message, sizeof message};
    an_reader file;
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&file, r->path, note), note));
    AN_CHECK(ctx, file.size <= MOST_BYTES, AN_ERR_UNSUPPORTED, "%s: has %lld bytes, but a config.json has at most %d",
             r->path, (long long)file.size, MOST_BYTES);
    bytes = (size_t)file.size;
    AN_TRY(an_alloc_raw(ctx, (void **)&text, bytes));
    AN_TRY(an_note_raise(ctx, an_reader_read(&file, 0, text, bytes, note), note));
    an_json_init(&r->json, text, bytes);
    AN_TRY(check_text(r));
fail:
    an_release(ctx, (void **)&text, bytes, 1);
    an_reader_close(&file);
    return status;
}

an_status an_huggingface_check(const an_trainer *trainer, const char *folder, const char *model_type, size_t taken,
                               bool *gpt2) {
    enum { KEYS_ONLY = 240, AROUND = 64 }; /* bytes for keys whose lines do not fit; for the words around the lines */
    an_status status;
    an_context *ctx = trainer->ctx;
    an_text path;
    reading *r = NULL;
    *gpt2 = false;
    an_text_init(&path, ctx);
    an_text_add(&path, "%s/config.json", folder);
    AN_TRY(path.status);
    if (access(path.bytes, F_OK) != 0) {
        an_log_write(ctx, AN_LOG_WARNING, "%s: has no config.json, so only names and shapes were checked", folder);
        goto fail;
    }
    AN_TRY(an_alloc(ctx, (void **)&r, 1, sizeof *r));
    r->ctx = ctx;
    r->model_type = model_type;
    an_model_facts_find(&r->model, trainer);
    r->path = path.bytes;
    taken += KEYS_ONLY + AROUND + path.length;
    r->room = taken < AN_MESSAGE_BYTES ? AN_MESSAGE_BYTES - taken : 0;
    AN_TRY(check_file(r));
    *gpt2 = r->family == AN_FAMILY_GPT2;
fail:
    an_release(ctx, (void **)&r, 1, sizeof *r);
    an_text_destroy(&path);
    return status;
}
