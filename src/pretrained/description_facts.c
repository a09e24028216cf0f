/* Facts of a description: what families state, and what builders ask. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "pretrained/description.h"

enum { MOST_PROBLEMS = 2048, MOST_LISTED = 512, KEY = 96 }; /* bytes of their lines; of a list; of a key */

an_status an_description_begin(an_description *d, an_context *ctx, const char *path) {
    *d = (an_description){.ctx = ctx};
    for (int i = 0; i < AN_KEY_ROWS; i++) d->values[i].parent = "";
    an_text_init(&d->problems, ctx);
    an_text_init(&d->unknown, ctx);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->path, strlen(path) + 1, 1));
    memcpy(d->path, path, strlen(path) + 1);
    return AN_OK;
}

void an_description_destroy(an_description *d) {
    if (!d->ctx) return;
    an_text_destroy(&d->problems);
    an_text_destroy(&d->unknown);
    an_string_release(d->ctx, &d->path);
}

/* ---- stating ---- */

void an_description_assume(an_description *d, int row, double number) {
    an_stated *v = &d->values[row];
    if (v->given) return;
    *v = (an_stated){.assumed = true, .number = number, .parent = ""};
    if (an_key_rows[row].kind == AN_KEY_BOOL)
        snprintf(v->word, AN_WORD, "%s", number != 0 ? "true" : "false");
    else
        an_text_number(v->word, AN_WORD, number);
}

void an_description_assume_word(an_description *d, int row, const char *word) {
    an_stated *v = &d->values[row];
    if (v->given) return;
    *v = (an_stated){.assumed = true, .number = an_activation_find(word), .parent = ""};
    snprintf(v->word, AN_WORD, "%s", word);
}

void an_description_state(an_description *d, an_fact fact, double value) {
    d->facts[fact].known = true;
    d->facts[fact].value = value;
}

void an_description_doubt(an_description *d, const char *parent, const char *key) {
    an_text *keys = &d->unknown;
    if (keys->length < MOST_LISTED) an_text_add(keys, "%s%s%s", keys->length ? ", " : "", parent, AN_QUOTE(key));
}

void an_description_refuse(an_description *d, const char *parent, const char *key, const char *word, const char *why) {
    if (d->problems.length < MOST_PROBLEMS)
        an_text_add(&d->problems, "\n  %s%s: %s: %s", parent, key, AN_QUOTE(word), why);
}

/* ---- asking ---- */

an_status an_description_check(const an_description *d) {
    if (d->problems.length)
        return AN_ERROR(d->ctx, AN_ERR_UNSUPPORTED, "%s: describes a model that anneal does not have:%s", d->path,
                        d->problems.bytes);
    if (d->unknown.length)
        return AN_ERROR(d->ctx, AN_ERR_UNSUPPORTED,
                        "%s: has keys that a model of type %s does not have here, and that may change what it "
                        "computes: %s",
                        d->path, d->family->name, d->unknown.bytes);
    return AN_OK;
}

const an_stated *an_description_rope_type(const an_description *d) {
    return &d->values[d->values[AN_ROW_ROPE_TYPE].given ? AN_ROW_ROPE_TYPE : AN_ROW_ROPE_OLD_TYPE];
}

double an_description_fact(const an_description *d, an_fact fact) {
    return d->facts[fact].known ? d->facts[fact].value : 0;
}

/* " (hidden_size)": the key that states the fact in such a file; "": there is none. */
static const char *key_of(const an_description *d, an_fact fact, char *word, size_t bytes) {
    *word = 0;
    if (d->values[AN_ROW_MODEL_TYPE].given) {
        for (const an_family_key *key = d->family->keys; key->row >= 0 && !*word; key++)
            if (an_key_rows[key->row].fact == fact) snprintf(word, bytes, " (%s)", an_key_rows[key->row].key);
    } else {
        for (const an_gguf_fact *row = an_gguf_facts; row->key && !*word; row++)
            if (row->fact == fact) snprintf(word, bytes, " (%s.%s)", d->family->gguf, row->key);
    }
    return word;
}

an_status an_description_count(const an_description *d, an_fact fact, const char *name, int64_t *count) {
    const double maximum = 1e15, value = an_description_fact(d, fact), minimum = fact == AN_FACT_WINDOW ? 0 : 1;
    char key[KEY];
    if (!d->facts[fact].known)
        return AN_ERROR(d->ctx, AN_ERR_DAMAGED, "%s: does not say the %s%s", d->path, name,
                        key_of(d, fact, key, sizeof key));
    if (!(value >= minimum && value <= maximum && value == (double)(int64_t)value))
        return AN_ERROR(d->ctx, AN_ERR_DAMAGED, "%s: the %s%s is %g", d->path, name, key_of(d, fact, key, sizeof key),
                        value);
    *count = (int64_t)value;
    return AN_OK;
}

an_status an_description_positive(const an_description *d, an_fact fact, const char *name, double *number) {
    const double maximum = 1e15, value = an_description_fact(d, fact);
    char key[KEY];
    if (!(value > 0 && value <= maximum))
        return AN_ERROR(d->ctx, AN_ERR_DAMAGED, "%s: the %s%s is %g; it must be above 0", d->path, name,
                        key_of(d, fact, key, sizeof key), value);
    *number = value;
    return AN_OK;
}

an_status an_description_expect(const an_description *d, an_fact fact, const char *name, double value) {
    const double rounding = 1e-6, known = d->facts[fact].known ? d->facts[fact].value : value; /* f32 in some files */
    const double difference = known > value ? known - value : value - known;
    char key[KEY];
    if (difference <= rounding * (value < 0 ? -value : value)) return AN_OK;
    if (fact == AN_FACT_ACTIVATION) {
        const char *found = an_activation_op((int)known);
        return AN_ERROR(d->ctx, AN_ERR_UNSUPPORTED, "%s: the %s%s is %s, but a model of type %s has %s here", d->path,
                        name, key_of(d, fact, key, sizeof key), found ? found : "unknown", d->family->name,
                        an_activation_op((int)value));
    }
    return AN_ERROR(d->ctx, AN_ERR_UNSUPPORTED, "%s: the %s%s is %g, but a model of type %s has %g here", d->path, name,
                    key_of(d, fact, key, sizeof key), known, d->family->name, value);
}

an_status an_description_no_classes(const an_description *d, const an_pretrained_options *options) {
    if (options->classes == 0 && options->pooling == 0) return AN_OK;
    return AN_ERROR(d->ctx, AN_ERR_ARGUMENT, "%s: a model of type %s predicts tokens: it has no %s", d->path,
                    d->family->name, options->classes != 0 ? "classes" : "pooling");
}
