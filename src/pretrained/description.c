/* Reads config.json of a Hugging Face folder. */
#include "pretrained/description.h"

#include <stdio.h>
#include <string.h>

#include "base/files/reader.h"
#include "base/status.h"

enum { MOST_BYTES = 4 << 20 }; /* of the file */

/* ---- values ---- */

bool an_stated_read_off(an_json *j, an_stated *v) {
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
    snprintf(v->word, AN_WORD, "%s", first == '{' ? "{…}" : first == '[' ? "[…]" : on ? "true" : "false");
    return !j->problem;
}

static bool read_word(an_json *j, an_stated *v) {
    an_json_string string;
    const size_t at = j->at;
    if (!an_json_string_value(j, &string)) return false;
    if (string.length >= AN_WORD) return an_json_refuse(j, at, "this text is too long");
    memcpy(v->word, string.bytes, string.length + 1);
    return true;
}

static bool read_number(an_json *j, an_key_kind kind, an_stated *v) {
    int64_t count;
    bool on;
    if (kind == AN_KEY_BOOL) {
        if (!an_json_bool(j, &on)) return false;
        v->number = on;
        snprintf(v->word, AN_WORD, "%s", on ? "true" : "false");
        return true;
    }
    if (kind == AN_KEY_REAL) {
        if (!an_json_real(j, &v->number)) return false;
        an_text_number(v->word, AN_WORD, v->number);
        return true;
    }
    if (!an_json_count(j, &count)) return false;
    v->number = (double)count;
    snprintf(v->word, AN_WORD, "%lld", (long long)count);
    return true;
}

static bool read_value(an_description *d, an_json *j, int row, const char *parent) {
    const an_key_kind kind = an_key_rows[row].kind;
    an_stated v = {.parent = parent}, *known = &d->values[row];
    const int first = an_json_peek(j);
    const size_t at = j->at;
    if (first == 'n') { /* mostly as if the key was absent */
        if (!known->given) known->is_null = true;
        return an_json_skip(j);
    }
    const bool read = kind == AN_KEY_OFF                                 ? an_stated_read_off(j, &v)
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
static void read_unknown(an_description *d, an_json *j, const char *parent, const char *key) {
    an_stated v = {0};
    if (an_stated_read_off(j, &v) && v.number != 0) an_description_doubt(d, parent, key);
}

/* ---- keys with several values ---- */

static bool skip_null(an_json *j) {
    return an_json_peek(j) == 'n' && an_json_skip(j);
}

static void read_rope(an_description *d, an_json *j, const char *parent) {
    an_json_string key;
    if (skip_null(j)) return;
    an_json_object(j);
    while (an_json_member(j, &key)) {
        const int row = an_key_row_find(key.bytes, true);
        if (row >= 0)
            read_value(d, j, row, parent);
        else
            read_unknown(d, j, parent, key.bytes);
    }
}

static void read_architectures(an_description *d, an_json *j) {
    if (skip_null(j)) return;
    an_json_array(j);
    while (an_json_element(j)) {
        if (d->architecture_count == AN_MOST_ARCHITECTURES)
            an_json_refuse(j, j->at, "there are too many architectures");
        if (j->problem || !read_word(j, &d->architectures[d->architecture_count])) return;
        d->architecture_count++;
    }
}

static void read_layer_types(an_description *d, an_json *j) {
    an_stated v = {.parent = ""};
    bool unknown = false;
    if (skip_null(j)) return;
    d->windowed_layers = d->whole_layers = 0;
    an_json_array(j);
    while (an_json_element(j)) {
        if (!read_word(j, &v)) return;
        if (!strcmp(v.word, "sliding_attention"))
            d->windowed_layers++;
        else if (!strcmp(v.word, "full_attention"))
            d->whole_layers++;
        else
            unknown = true;
    }
    if (unknown) an_description_doubt(d, "", "layer_types");
}

static void read_labels(an_description *d, an_json *j) {
    an_json_string key;
    if (an_json_peek(j) != '{') {
        an_json_skip(j);
        return;
    }
    an_json_object(j);
    while (an_json_member(j, &key))
        if (an_json_skip(j)) d->labels++;
}

static an_status read_all(an_description *d, an_json *j) {
    an_json_string key;
    an_json_object(j);
    while (an_json_member(j, &key)) {
        const int row = an_key_row_find(key.bytes, false);
        if (row >= 0)
            read_value(d, j, row, "");
        else if (!strcmp(key.bytes, "rope_scaling"))
            read_rope(d, j, "rope_scaling.");
        else if (!strcmp(key.bytes, "rope_parameters"))
            read_rope(d, j, "rope_parameters.");
        else if (!strcmp(key.bytes, "architectures"))
            read_architectures(d, j);
        else if (!strcmp(key.bytes, "layer_types"))
            read_layer_types(d, j);
        else if (!strcmp(key.bytes, "id2label"))
            read_labels(d, j);
        else if (an_key_is_harmless(key.bytes))
            an_json_skip(j);
        else
            read_unknown(d, j, "", key.bytes);
        if (j->problem)
            return AN_ERROR(d->ctx, AN_ERR_DAMAGED, "%s: byte %zu, the value of '%s': %s", d->path, j->at,
                            AN_QUOTE(key.bytes), j->problem);
    }
    if (!an_json_end(j)) return AN_ERROR(d->ctx, AN_ERR_DAMAGED, "%s: byte %zu: %s", d->path, j->at, j->problem);
    return AN_OK;
}

/* ---- what they mean ---- */

static an_status find_family(an_description *d, const char *advice) {
    char names[256];
    const an_stated *v = &d->values[AN_ROW_MODEL_TYPE];
    if (!v->given)
        return AN_ERROR(d->ctx, AN_ERR_DAMAGED, "%s: has no model_type, which says what kind of model it is", d->path);
    d->family = an_family_find(v->word);
    if (d->family) return AN_OK;
    return AN_ERROR(d->ctx, AN_ERR_UNSUPPORTED, "%s: model_type is '%s', but only %s are supported%s", d->path,
                    AN_QUOTE(v->word), an_family_list(names, sizeof names, false), advice);
}

/* Keys that another family has are like keys that nobody has. */
static void drop_foreign(an_description *d) {
    for (int i = AN_ROW_N_EMBD; i < AN_ROW_OFF; i++) {
        an_stated *v = &d->values[i];
        const an_key_row *row = &an_key_rows[i];
        const bool is_word = row->kind == AN_KEY_ACTIVATION || row->kind == AN_KEY_WORD;
        if (an_family_key_of(d->family, i)) continue;
        if (v->given && (v->number != 0 || is_word) && !an_key_is_harmless(row->key))
            an_description_doubt(d, v->parent, row->key);
        *v = (an_stated){.parent = ""};
    }
}

/* Where null is not what an absent key is. */
static bool null_means_none(int row) {
    return row == AN_ROW_WINDOW || row == AN_ROW_KV_HEADS || row == AN_ROW_HEAD_DIM;
}

/* Gives every key that the family has, and the folder does not, the value that Hugging Face assumes. */
static void assume_usual(an_description *d) {
    an_stated *v = d->values;
    const an_stated *type = an_description_rope_type(d);
    if (!type->given || strcmp(type->word, "llama3") != 0)
        for (int i = AN_ROW_FACTOR; i <= AN_ROW_ORIGINAL; i++) v[i].given = false; /* they have no effect */
    for (const an_family_key *key = d->family->keys; key->row >= 0; key++)
        if (key->usual >= 0 && !(v[key->row].is_null && null_means_none(key->row)))
            an_description_assume(d, key->row, key->usual);
    if (v[AN_ROW_ROPE_THETA].given) v[AN_ROW_THETA].assumed = false;
    if (v[AN_ROW_ROPE_SHARE].given) v[AN_ROW_SHARE].assumed = false;
}

/* Given values come after assumed ones, so that they win. */
static void collect_facts(an_description *d) {
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < AN_KEY_ROWS; i++) {
            const an_stated *v = &d->values[i];
            const an_fact fact = an_key_rows[i].fact;
            if (fact == AN_FACTS || !(pass == 0 ? v->assumed : v->given)) continue;
            if (pass == 1 && d->facts[fact].known && (i == AN_ROW_ROPE_THETA || i == AN_ROW_ROPE_SHARE) &&
                d->values[i - 1].given && d->facts[fact].value != v->number)
                an_description_refuse(d, v->parent, an_key_rows[i].key, v->word, "the top of the file says another");
            an_description_state(d, fact, v->number);
        }
}

static void refuse_values(an_description *d) {
    const an_stated *type = an_description_rope_type(d);
    for (int i = 0; i < d->architecture_count; i++)
        if (!an_family_has(d->family, d->architectures[i].word))
            an_description_refuse(d, "", "architectures", d->architectures[i].word, "anneal does not have this model");
    if (type->given && strcmp(type->word, "default") != 0 && strcmp(type->word, "llama3") != 0)
        an_description_refuse(d, type->parent, type == &d->values[AN_ROW_ROPE_TYPE] ? "rope_type" : "type", type->word,
                              "only default and llama3 are supported");
    for (int i = AN_ROW_OFF; i < AN_KEY_ROWS; i++)
        if (d->values[i].given && d->values[i].number != 0)
            an_description_refuse(d, "", an_key_rows[i].key, d->values[i].word, "anneal does not support it");
}

static an_status interpret(an_description *d, char *text, size_t bytes, const char *advice) {
    an_json j;
    an_json_init(&j, text, bytes);
    AN_TRY_RETURN(read_all(d, &j));
    AN_TRY_RETURN(find_family(d, advice));
    drop_foreign(d);
    assume_usual(d);
    d->family->settle(d);
    collect_facts(d);
    refuse_values(d);
    AN_TRY_RETURN(d->problems.status);
    return d->unknown.status;
}

static an_status read_file(an_description *d, const an_reader *file, const char *advice) {
    an_context *ctx = d->ctx;
    char message[AN_MESSAGE_BYTES], *text = NULL;
    const an_note note = {message, sizeof message};
    if (file->size > MOST_BYTES)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has %lld bytes, but a config.json has at most %d", d->path,
                        (long long)file->size, MOST_BYTES);
    const size_t bytes = (size_t)file->size;
    AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&text, bytes));
    an_status status = an_note_raise(ctx, an_reader_read(file, 0, text, bytes, note), note);
    if (status == AN_OK) status = interpret(d, text, bytes, advice);
    an_release(ctx, (void **)&text, bytes, 1);
    return status;
}

an_status an_description_read(an_description *d, an_context *ctx, const char *path, const char *advice) {
    char message[AN_MESSAGE_BYTES];
    const an_note note = {message, sizeof message};
    an_reader file;
    AN_TRY_RETURN(an_description_begin(d, ctx, path));
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&file, d->path, note), note));
    const an_status status = read_file(d, &file, advice);
    an_reader_close(&file);
    return status;
}
